//! Nodes under each other in columns, as in the paper's tables.

use std::ops::Range;

use crate::syntax::lexer::TokenKind;

/// A node's parts as text.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// Name with index, kind, then the five terms of the label.
    cells: [String; 7],
    /// What stands behind the label.
    rest: String,
}

/// Where the parts of a node lie among its pieces: name, kind, the label's terms, the rest.
pub(super) fn parts(kinds: &[TokenKind]) -> Option<([Range<usize>; 7], usize)> {
    use TokenKind as K;
    let equal = kinds.iter().position(|kind| *kind == K::Equal)?;
    // The label's bracket is the first outside the brackets of the kind.
    let mut depth = 0usize;
    let mut open = None;
    for (at, kind) in kinds.iter().enumerate().skip(equal + 1) {
        match kind {
            K::OpenRound => depth += 1,
            K::CloseRound => depth = depth.saturating_sub(1),
            K::OpenSquare if depth == 0 => {
                open = Some(at);
                break;
            }
            _ => {}
        }
    }
    let open = open?;
    let mut terms: Vec<Range<usize>> = Vec::new();
    let mut start = open + 1;
    for (at, kind) in kinds.iter().enumerate().skip(open + 1) {
        match kind {
            K::Comma | K::Bar if depth == 0 => {
                terms.push(start..at);
                start = at + 1;
            }
            K::CloseSquare if depth == 0 => {
                terms.push(start..at);
                let [j, k, m, i, v] = <[Range<usize>; 5]>::try_from(terms).ok()?;
                return Some(([0..equal, equal + 1..open, j, k, m, i, v], at + 1));
            }
            K::OpenSquare | K::OpenRound => depth += 1,
            K::CloseSquare | K::CloseRound => depth -= 1,
            _ => {}
        }
    }
    None
}

impl Row {
    pub(super) fn new(cells: [String; 7], rest: String) -> Self {
        Self { cells, rest }
    }

    /// The line, with each cell as wide as the widest of its column.
    pub(super) fn line(&self, widths: &[usize; 7]) -> String {
        let [name, kind, j, k, m, i, v] = &self.cells;
        let pad = |text: &str, column: usize, more: usize| format!("{text:<width$}", width = widths[column] + more);
        let comma = |text: &String, column| pad(&format!("{text},"), column, 1);
        let mut line = format!(
            "{} = {} [{} {} {} | {} {}]",
            pad(name, 0, 0),
            pad(kind, 1, 0),
            comma(j, 2),
            comma(k, 3),
            pad(m, 4, 0),
            comma(i, 5),
            pad(v, 6, 0)
        );
        if !self.rest.is_empty() {
            line.push(' ');
            line.push_str(&self.rest);
        }
        line
    }
}

/// The widths of the columns of some rows, in characters.
pub(super) fn widths<'r>(rows: impl IntoIterator<Item = &'r Row>) -> [usize; 7] {
    let mut widths = [0; 7];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}
