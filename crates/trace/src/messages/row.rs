//! A row of a table, split into fields without an allocation.

use std::ops::Range;

/// What stands between fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// This byte; a field may stand in double quotes.
    Byte(u8),
    /// White space, as much as there is.
    White,
}

impl Delimiter {
    /// That of a header.
    pub fn of(header: &str) -> Self {
        [',', ';', '\t']
            .into_iter()
            .find(|byte| header.contains(*byte))
            .map_or(Self::White, |byte| Self::Byte(byte as u8))
    }
}

/// The fields of a row.
#[derive(Debug, Default)]
pub struct Row {
    fields: Vec<Range<usize>>,
    /// The text of fields that had quotes to be taken off.
    unquoted: String,
    quoted: bool,
    /// Whether there is a quotation mark without another one.
    unpaired: bool,
    /// Whether the last field is in quotes that do not end.
    open: bool,
}

impl Row {
    /// Splits a line.
    pub fn split(&mut self, line: &str, delimiter: Delimiter) {
        self.fields.clear();
        (self.quoted, self.unpaired, self.open) = (false, false, false);
        match delimiter {
            Delimiter::White => {
                for word in line.split_ascii_whitespace() {
                    let start = word.as_ptr() as usize - line.as_ptr() as usize;
                    self.fields.push(start..start + word.len());
                }
            }
            Delimiter::Byte(byte) if memchr::memchr(b'"', line.as_bytes()).is_some() => self.split_quoted(line, byte),
            Delimiter::Byte(byte) => {
                let mut start = 0;
                for at in memchr::memchr_iter(byte, line.as_bytes()) {
                    self.fields.push(trimmed(line, start..at));
                    start = at + 1;
                }
                self.fields.push(trimmed(line, start..line.len()));
            }
        }
    }

    /// Takes fields that are at hand, in the line that they make.
    pub fn join<'f>(&mut self, line: &mut String, fields: impl Iterator<Item = std::borrow::Cow<'f, str>>) {
        self.fields.clear();
        (self.quoted, self.unpaired, self.open) = (false, false, false);
        line.clear();
        for field in fields {
            let start = line.len();
            line.push_str(&field);
            self.fields.push(start..line.len());
        }
    }

    fn split_quoted(&mut self, line: &str, delimiter: u8) {
        self.quoted = true;
        self.unpaired = memchr::memchr_iter(b'"', line.as_bytes()).count() % 2 == 1;
        self.unquoted.clear();
        let mut rest = line.chars().peekable();
        loop {
            let start = self.unquoted.len();
            while rest.next_if(|next| *next == ' ').is_some() {}
            if rest.next_if_eq(&'"').is_some() {
                self.open = true;
                while let Some(next) = rest.next() {
                    if next == '"' && rest.next_if_eq(&'"').is_none() {
                        self.open = false;
                        break;
                    }
                    self.unquoted.push(next);
                }
            }
            while let Some(next) = rest.next_if(|next| *next != char::from(delimiter)) {
                self.unquoted.push(next);
            }
            let field = trimmed(&self.unquoted, start..self.unquoted.len());
            self.fields.push(field);
            if rest.next().is_none() {
                return;
            }
        }
    }

    /// Whether a field in quotes goes on on the next line, or came from the one before.
    pub fn is_broken(&self) -> bool {
        self.unpaired
    }

    /// Whether a field in quotes goes on on the next line.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field of the line that was split; empty where there is none.
    #[inline]
    pub fn get<'a>(&'a self, line: &'a str, place: usize) -> &'a str {
        match self.fields.get(place) {
            Some(range) if self.quoted => &self.unquoted[range.clone()],
            Some(range) => &line[range.clone()],
            None => "",
        }
    }
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let (mut start, mut end) = (range.start, range.end);
    while start < end && matches!(bytes[start], b' ' | b'\t') {
        start += 1;
    }
    while start < end && matches!(bytes[end - 1], b' ' | b'\t') {
        end -= 1;
    }
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str, delimiter: Delimiter) -> Vec<String> {
        let mut row = Row::default();
        row.split(line, delimiter);
        (0..row.len()).map(|place| row.get(line, place).to_owned()).collect()
    }

    #[test]
    fn a_field_over_several_lines_is_seen_at_both_ends() {
        let broken = |line: &str| {
            let mut row = Row::default();
            row.split(line, Delimiter::Byte(b','));
            row.is_broken()
        };
        assert!(broken("\"a") && broken("b\",c,1") && broken("a,b \"\"\",1"));
        assert!(!broken("\"a\",1") && !broken("say \"a\",1") && !broken("\"\"\"a\"\"\",1") && !broken("a,1"));
    }

    #[test]
    fn rows_are_split() {
        assert_eq!(fields("a, b ,,c", Delimiter::Byte(b',')), ["a", "b", "", "c"]);
        assert_eq!(fields("\"a,\"\"b\", c,\"", Delimiter::Byte(b',')), ["a,\"b", "c", ""]);
        assert_eq!(fields("  a\t b  ", Delimiter::White), ["a", "b"]);
        assert_eq!(fields("", Delimiter::Byte(b',')), [""]);
        assert_eq!(fields("é;\"ü\"", Delimiter::Byte(b';')), ["é", "ü"]);
    }
}
