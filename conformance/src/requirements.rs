//! The requirements of `specs/requirements.md`: each is a line that starts with its permanent id in bold.

const TEXT: &str = include_str!("../../specs/requirements.md");

/// One requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The permanent id.
    pub id: &'static str,
    /// The sentence.
    pub text: String,
}

/// All requirements in the order of the document.
pub fn all() -> impl Iterator<Item = Requirement> {
    TEXT.lines().filter_map(|line| {
        let (id, text) = line.strip_prefix("- **")?.split_once("** ")?;
        Some(Requirement { id, text: text.to_owned() })
    })
}
