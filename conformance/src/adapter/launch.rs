//! How an adapter is started.

use std::time::Duration;

use super::error::{AdapterError, Trouble};

/// A command, and how long to wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments; no shell is involved.
    pub words: Vec<String>,
    /// The longest wait for one reply, counted from when it is due. Also for the start.
    pub time_out: Duration,
}

impl Launch {
    /// Reads a command line: words apart by blanks; single quotes, double quotes and backslashes as in a shell, and nothing else of one.
    ///
    /// # Errors
    /// For an open quote, and for a line without a word.
    pub fn parse(command: &str, time_out: Duration) -> Result<Self, AdapterError> {
        let wrong = |why| AdapterError::new(Trouble::Command { command: command.to_owned(), why });
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        let mut chars = command.chars();
        while let Some(c) = chars.next() {
            match c {
                ' ' | '\t' | '\n' => words.extend(word.take()),
                '\'' => quoted(&mut chars, false, word.get_or_insert_default()).ok_or_else(|| wrong("a quote is not closed"))?,
                '"' => quoted(&mut chars, true, word.get_or_insert_default()).ok_or_else(|| wrong("a quote is not closed"))?,
                '\\' => word.get_or_insert_default().push(chars.next().ok_or_else(|| wrong("nothing follows a backslash"))?),
                other => word.get_or_insert_default().push(other),
            }
        }
        words.extend(word);
        if words.is_empty() {
            return Err(wrong("it is empty"));
        }
        Ok(Self { words, time_out })
    }
}

/// Takes the rest of a quoted part; nothing if it is not closed.
fn quoted(chars: &mut std::str::Chars<'_>, double: bool, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' if double => return Some(()),
            '\'' if !double => return Some(()),
            '\\' if double => word.push(chars.next()?),
            other => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_by_a_shell() {
        let words = |command| Launch::parse(command, Duration::ZERO).map(|l| l.words).map_err(|e| e.to_string());
        assert_eq!(words("java -cp 'a b:c' x\\ y \"q\\\"r\"").unwrap(), ["java", "-cp", "a b:c", "x y", "q\"r"]);
        assert_eq!(words("  a ''").unwrap(), ["a", ""]);
        assert_eq!(words("'a").unwrap_err(), "adapter: the command \"'a\" cannot be read: a quote is not closed");
        assert_eq!(words(" ").unwrap_err(), "adapter: the command \" \" cannot be read: it is empty");
    }
}
