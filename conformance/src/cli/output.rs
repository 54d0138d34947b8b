//! Results on stdout, where a reader that went away is no error.

use std::io::{self, ErrorKind, IsTerminal, Write};

/// Writes `text` to stdout. A closed pipe (`cleanslate ... | head`) ends the output quietly.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    unless_closed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// What became of writing, where it is no error that nobody reads.
pub fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Says on stderr what a long run is doing; nothing when that is no terminal.
pub fn progress(text: &str) {
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        // Whoever cannot be told does not have to know.
        let _ = writeln!(stderr, "{text}");
    }
}

/// Joins words to lines of a readable width.
#[must_use]
pub fn pack(words: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= 98 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.clone()),
        }
    }
    lines
}
