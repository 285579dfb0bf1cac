//! Positions of the protocol, lines and UTF-16 units, and bytes of a text.

use std::ops::Range;

use lsp_types::{Position, Range as Between};

/// Where the lines of a text begin.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    /// Those of a text.
    pub fn of(text: &str) -> Self {
        let after = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { starts: [0].into_iter().chain(after).collect() }
    }

    /// The byte of a position; what lies behind the end of a line or of the text stands for that end.
    pub fn byte(&self, text: &str, position: Position) -> usize {
        let Some(start) = self.starts.get(position.line as usize).copied() else { return text.len() };
        let end = self.starts.get(position.line as usize + 1).copied().unwrap_or(text.len());
        let line = text[start..end].trim_end_matches(['\n', '\r']);
        let mut units = 0;
        for (at, character) in line.char_indices() {
            // The middle of a pair stands for its beginning.
            units += character.len_utf16() as u32;
            if units > position.character {
                return start + at;
            }
        }
        start + line.len()
    }

    /// The position of a byte.
    pub fn position(&self, text: &str, byte: usize) -> Position {
        let byte = (0..=byte.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let line = self.starts.partition_point(|start| *start <= byte).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let units: usize = text[start..byte].chars().map(char::len_utf16).sum();
        Position { line: line as u32, character: units as u32 }
    }

    /// The positions of some bytes.
    pub fn between(&self, text: &str, bytes: Range<usize>) -> Between {
        Between { start: self.position(text, bytes.start), end: self.position(text, bytes.end.max(bytes.start)) }
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;
    use lsp_types::Position;

    #[test]
    fn positions_count_units_of_utf_16() {
        let text = "aé𝕩b\r\nzwei";
        let lines = Lines::of(text);
        for (byte, line, character) in [(0, 0, 0), (1, 0, 1), (3, 0, 2), (7, 0, 4), (8, 0, 5), (10, 1, 0), (14, 1, 4)] {
            let position = Position { line, character };
            assert_eq!(lines.position(text, byte), position);
            assert_eq!(lines.byte(text, position), byte);
        }
        let byte = |line, character| lines.byte(text, Position { line, character });
        // Within a pair, behind a line, behind the text.
        assert_eq!((byte(0, 3), byte(0, 99), byte(9, 0), byte(1, u32::MAX)), (3, 8, 14, 14));
        assert_eq!(lines.position(text, 2), Position { line: 0, character: 1 });
        assert_eq!(lines.position(text, 999), Position { line: 1, character: 4 });
    }
}
