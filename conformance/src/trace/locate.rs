//! Finds the place of a field in JSON text, so that an error about the meaning of a trace can name line and column.

use std::fmt;

/// One step from a JSON value to a value inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// A member of an object.
    Key(String),
    /// An element of an array.
    Index(usize),
}

/// Where a field lies: keys and indices from the outermost value inwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) Vec<Segment>);

impl Place {
    /// The place of the member `name` of the value at this place.
    pub(crate) fn key(&self, name: &str) -> Self {
        self.with(Segment::Key(name.to_owned()))
    }

    /// The place of element `n` of the array at this place.
    pub(crate) fn index(&self, n: usize) -> Self {
        self.with(Segment::Index(n))
    }

    fn with(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if i == 0 => write!(f, "{key}")?,
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(n) => write!(f, "[{n}]")?,
            }
        }
        Ok(())
    }
}

/// Line and column, both from 1, of the value at `place`, or of the innermost value around it that the text has.
pub(crate) fn line_and_column(text: &str, place: &Place) -> (usize, usize) {
    let mut scanner = Scanner { rest: text.as_bytes(), at: 0 };
    scanner.skip_space();
    for segment in &place.0 {
        let outer = scanner.at;
        let found = match segment {
            Segment::Key(key) => scanner.enter_key(key),
            Segment::Index(n) => scanner.enter_index(*n),
        };
        if found.is_none() {
            return position(text.as_bytes(), outer);
        }
    }
    position(text.as_bytes(), scanner.at)
}

/// Line and column, both from 1, of a byte offset. The column counts bytes, as serde_json does.
pub(crate) fn position(text: &[u8], offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.split(|b| *b == b'\n').count();
    let column = before.rsplit(|b| *b == b'\n').next().map_or(0, <[u8]>::len) + 1;
    (line, column)
}

/// Walks over text that is known to be JSON; on any other text it ends early and the caller falls back to a place further out.
struct Scanner<'a> {
    rest: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn advance(&mut self, n: usize) -> Option<()> {
        self.rest = self.rest.get(n..)?;
        self.at += n;
        Some(())
    }

    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn skip_space(&mut self) {
        let n = self.rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let _ = self.advance(n);
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        self.skip_space();
        if self.peek()? != byte {
            return None;
        }
        self.advance(1)?;
        self.skip_space();
        Some(())
    }

    /// Skips a string and returns what stands between its quotes, escapes undecoded.
    fn string(&mut self) -> Option<&[u8]> {
        if self.peek()? != b'"' {
            return None;
        }
        let mut escaped = false;
        for (end, byte) in (1..).zip(self.rest.get(1..)?) {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    let all = self.rest;
                    self.advance(end + 1)?;
                    return all.get(1..end);
                }
                _ => {}
            }
        }
        None
    }

    /// Skips one value of any kind. Nesting is counted, not recursed into.
    fn value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            self.skip_space();
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.advance(1)?;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.advance(1)?;
                }
                b',' | b':' => self.advance(1)?,
                _ => {
                    let n = self
                        .rest
                        .iter()
                        .take_while(|b| !matches!(b, b',' | b':' | b'}' | b']') && !b.is_ascii_whitespace())
                        .count();
                    self.advance(n)?;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn enter_key(&mut self, key: &str) -> Option<()> {
        self.eat(b'{')?;
        loop {
            let found = self.string()? == key.as_bytes();
            self.eat(b':')?;
            if found {
                return Some(());
            }
            self.value()?;
            self.eat(b',')?;
        }
    }

    fn enter_index(&mut self, n: usize) -> Option<()> {
        self.eat(b'[')?;
        for _ in 0..n {
            self.value()?;
            self.eat(b',')?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_nested_places_and_falls_back_outwards() {
        let text = "{\n  \"a\": [1, {\"b\": \"x\\\"]\"},\n    {\"c\": [[], 7]}],\n  \"d\": null }";
        let root = Place::default();
        assert_eq!(line_and_column(text, &root), (1, 1));
        assert_eq!(line_and_column(text, &root.key("a").index(0)), (2, 9));
        assert_eq!(line_and_column(text, &root.key("a").index(1).key("b")), (2, 18));
        assert_eq!(line_and_column(text, &root.key("a").index(2).key("c").index(1)), (3, 16));
        assert_eq!(line_and_column(text, &root.key("d")), (4, 8));
        // No such member: the object around it.
        assert_eq!(line_and_column(text, &root.key("a").index(2).key("nope")), (3, 5));
        assert_eq!(root.key("a").index(2).key("c").to_string(), "a[2].c");
    }

    #[test]
    fn never_fails_on_text_that_is_not_json() {
        let place = Place::default().key("steps").index(3).key("n");
        for text in ["", "{", "[", "\"", "{\"steps\"", "{\"steps\":", "{\"steps\":[", "}}}}", "{\"steps\":[1,2,3,"] {
            let (line, column) = line_and_column(text, &place);
            assert!(line == 1 && column >= 1, "{text}");
        }
    }
}
