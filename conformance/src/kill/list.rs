//! The kill list, `specs/kill-list.tsv`: every variant of `sound` with one fault, and what kills it.

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::Design;
use cleanslate_model::property::{self, PropertySpec};
use cleanslate_model::topology::Topology;
use thiserror::Error;

/// The list that this build was made with.
const LIST: &str = include_str!("../../../specs/kill-list.tsv");

/// One variant.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The design: a named one with one choice made otherwise.
    pub design: String,
    /// The rules.
    pub rules: Design,
    /// Where it is judged.
    pub topology: &'static Topology,
    /// Within which bounds.
    pub bounds: Bounds,
    /// What must come of it.
    pub fate: Fate,
}

/// What must come of a variant.
#[derive(Clone, Debug)]
pub enum Fate {
    /// This property breaks, with a shortest trace of so many steps.
    Killed {
        /// The property.
        property: &'static PropertySpec,
        /// The steps.
        steps: u32,
    },
    /// Nothing breaks, and this is why.
    Survives(String),
}

/// Why the list cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("specs/kill-list.tsv:{line}: {what}")]
pub struct KillListError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// The list that this build was made with.
///
/// # Errors
/// [`KillListError`] with the line.
pub fn load() -> Result<Vec<Variant>, KillListError> {
    parse(LIST)
}

/// Reads a list: design, topology, bounds, property or `-`, steps or the reason why it survives; tabs between fields, `#` starts a comment.
///
/// # Errors
/// [`KillListError`] with the line.
pub fn parse(text: &str) -> Result<Vec<Variant>, KillListError> {
    let lines = text.lines().enumerate().filter(|(_, l)| !l.starts_with('#') && !l.trim().is_empty());
    lines.map(|(i, line)| variant(line).map_err(|what| KillListError { line: i + 1, what })).collect()
}

fn variant(line: &str) -> Result<Variant, String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [design, topology, bounds, property, rest] = fields.as_slice() else {
        return Err("expected five fields separated by tabs: design, topology, bounds, property, steps".to_owned());
    };
    let rules = Design::parse(design).map_err(|e| e.to_string())?;
    let topology = Topology::by_name(topology).ok_or_else(|| format!("unknown topology '{topology}'"))?;
    let bounds = Bounds::parse(bounds, topology).map_err(|e| e.to_string())?;
    let fate = if *property == "-" {
        if rest.trim().is_empty() {
            return Err("a survivor needs a reason".to_owned());
        }
        Fate::Survives((*rest).to_owned())
    } else {
        let property = property::by_id(property).ok_or_else(|| format!("unknown property '{property}'"))?;
        Fate::Killed { property, steps: rest.parse().map_err(|_| format!("expected a number of steps, found '{rest}'"))? }
    };
    Ok(Variant { design: (*design).to_owned(), rules, topology, bounds, fate })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

    use super::*;

    fn what(line: &str) -> String {
        parse(line).unwrap_err().what
    }

    #[test]
    fn the_list_names_what_is_wrong() {
        assert!(what("sound").starts_with("expected five fields"));
        assert!(what("nosuch\tchain\tsmall\t-\twhy").starts_with("unknown design 'nosuch'"));
        assert!(what("sound\tnosuch\tsmall\t-\twhy").starts_with("unknown topology"));
        assert!(what("sound\tchain\tnosuch\t-\twhy").starts_with("unknown bound"));
        assert!(what("sound\tchain\tsmall\tnosuch\t3").starts_with("unknown property"));
        assert!(what("sound\tchain\tsmall\tfalse-duplicate\tmany").starts_with("expected a number"));
        assert!(what("sound\tchain\tsmall\t-\t ").starts_with("a survivor needs a reason"));
        assert_eq!(parse("# comment\n\nsound\tchain\tsmall\t-\twhy\n").unwrap().len(), 1);
    }

    #[test]
    fn every_variant_is_listed_once_and_differs_from_its_base() {
        let list = load().unwrap();
        for (i, variant) in list.iter().enumerate() {
            let base = Design::parse(variant.design.split('+').next().unwrap()).unwrap();
            assert_ne!(base, variant.rules, "{}", variant.design);
            assert!(!list[..i].iter().any(|other| other.rules == variant.rules), "{} is listed twice", variant.design);
        }
        let killed = list.iter().filter(|v| matches!(v.fate, Fate::Killed { .. })).count();
        assert!(killed >= 60, "only {killed} variants are killed");
    }
}
