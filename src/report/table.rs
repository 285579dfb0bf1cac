//! Tables with aligned columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::report::look::{Look, Tone};

/// A column's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A cell: one line of text in some tone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A text in a tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { tone, ..Self::from(text.into()) }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        // A cell holds one line, whatever names are made of.
        let text = if text.contains(is_unfit) { text.replace(is_unfit, " ") } else { text };
        Self { text, tone: Tone::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

/// Whether a character would break the line, steer the terminal or turn the direction of writing.
fn is_unfit(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A table in the making.
#[derive(Clone, Debug)]
pub struct Table {
    headings: Vec<(String, Side)>,
    rows: Vec<Vec<Cell>>,
}

/// The least width that a column of words is cut to.
const LEAST: usize = 12;

/// Between columns.
const GAP: usize = 2;

/// Columns that are shown side by side, with their widths.
type Block = Vec<(usize, usize)>;

impl Table {
    /// A table with these headings. Columns whose heading begins with `>` are aligned to the right.
    pub fn new(headings: &[&str]) -> Self {
        let headings = headings
            .iter()
            .map(|heading| match heading.strip_prefix('>') {
                Some(heading) => (heading.to_owned(), Side::Right),
                None => ((*heading).to_owned(), Side::Left),
            })
            .collect();
        Self { headings, rows: Vec::new() }
    }

    /// Adds a row, with as many cells as there are headings.
    pub fn row<C: Into<Cell>>(&mut self, cells: Vec<C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table's lines, none wider than the look allows.
    ///
    /// What is too wide gives way in steps: headings are broken at their spaces, then words lose their middle to a `…`,
    /// then columns that still have no room follow below, after the first column once more. Numbers are never cut, so only
    /// a look narrower than a name and a number is exceeded. Columns in which no row has anything are left out.
    pub fn render(&self, look: impl Into<Look>) -> String {
        let look = look.into();
        let used: Vec<usize> = (0..self.headings.len()).filter(|column| !self.is_blank(*column)).collect();
        let mut text = String::new();
        for (number, block) in self.blocks(&used, look.width).iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            self.render_block(block, look, &mut text);
        }
        text
    }

    fn render_block(&self, block: &Block, look: Look, text: &mut String) {
        let headings: Vec<Vec<&str>> =
            block.iter().map(|&(column, width)| broken(&self.headings[column].0, width)).collect();
        let lines = headings.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..lines {
            // Short headings stand next to what they head.
            let part = |place: usize| {
                let heading = &headings[place];
                (line + heading.len()).checked_sub(lines).map_or("", |from_top| heading[from_top])
            };
            self.line(block, look, text, |place| (part(place), Tone::Heading));
        }
        for row in &self.rows {
            self.line(block, look, text, |place| {
                row.get(block[place].0).map_or(("", Tone::Plain), |cell| (&cell.text, cell.tone))
            });
        }
    }

    fn line<'c>(&self, block: &Block, look: Look, text: &mut String, cell: impl Fn(usize) -> (&'c str, Tone)) {
        let mut pending = 0;
        for (place, &(column, width)) in block.iter().enumerate() {
            let (words, tone) = cell(place);
            let words = cut(words, width);
            let padding = width.saturating_sub(words.width());
            let (before, after) = match self.headings[column].1 {
                Side::Left => (0, padding),
                Side::Right => (padding, 0),
            };
            if words.is_empty() {
                pending += before + after;
            } else {
                text.extend(std::iter::repeat_n(' ', pending + before));
                look.paint_to(tone, &words, text);
                pending = after;
            }
            pending += GAP;
        }
        text.push('\n');
    }

    fn is_blank(&self, column: usize) -> bool {
        self.rows.iter().all(|row| row.get(column).is_none_or(|cell| cell.text.is_empty()))
    }

    /// The columns in blocks that fit.
    fn blocks(&self, used: &[usize], limit: usize) -> Vec<Block> {
        let cells: Vec<usize> = used.iter().map(|&column| self.cells_width(column)).collect();
        let whole: Vec<usize> =
            used.iter().zip(&cells).map(|(&column, &width)| width.max(self.headings[column].0.width())).collect();
        if total(&whole) <= limit {
            return vec![used.iter().copied().zip(whole).collect()];
        }
        let broken: Vec<(usize, usize)> = used
            .iter()
            .zip(&cells)
            .map(|(&column, &width)| (column, width.max(longest_word(&self.headings[column].0))))
            .collect();
        let least = |&(column, width): &(usize, usize)| self.least(column, width);
        let mut blocks: Vec<Block> = Vec::new();
        let mut room = 0;
        for (place, column) in broken.iter().enumerate() {
            if place == 0 || room < GAP + least(column) {
                let mut block = Vec::new();
                room = limit;
                if place > 0 {
                    room = room.saturating_sub(least(&broken[0]));
                    block.push(broken[0]);
                }
                blocks.push(block);
            }
            room = room.saturating_sub(GAP + least(column));
            blocks.last_mut().expect("one was pushed").push(*column);
        }
        // The first column alone says nothing.
        if blocks.len() > 1 && blocks[0].len() == 1 {
            blocks.remove(0);
        }
        for block in &mut blocks {
            self.shrink(block, limit);
        }
        blocks
    }

    fn cells_width(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width()).max().unwrap_or(0)
    }

    fn least(&self, column: usize, width: usize) -> usize {
        let floor = LEAST.max(longest_word(&self.headings[column].0));
        if self.headings[column].1 == Side::Left { width.min(floor) } else { width }
    }

    /// Takes width from the widest columns of words until the block fits or they are at their least.
    fn shrink(&self, block: &mut Block, limit: usize) {
        let mut excess = total(&block.iter().map(|(_, width)| *width).collect::<Vec<_>>()).saturating_sub(limit);
        while excess > 0 {
            let can_give = |&(column, width): &(usize, usize)| width > self.least(column, width);
            let Some(widest) = block.iter().filter(|column| can_give(column)).map(|(_, width)| *width).max() else {
                return;
            };
            let givers: Vec<usize> =
                (0..block.len()).filter(|place| block[*place].1 == widest && can_give(&block[*place])).collect();
            // Down to the next widest at most, so that the widest share what is missing.
            let next = block.iter().map(|(_, width)| *width).filter(|width| *width < widest).max().unwrap_or(0);
            let step = excess.div_ceil(givers.len()).min(widest - next).max(1);
            for place in givers {
                let (column, width) = block[place];
                let given = step.min(width - self.least(column, width)).min(excess);
                block[place].1 -= given;
                excess -= given;
            }
        }
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

fn longest_word(heading: &str) -> usize {
    heading.split(' ').map(UnicodeWidthStr::width).max().unwrap_or(0)
}

/// A heading in lines at most so wide, where its words allow.
fn broken(heading: &str, width: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = heading;
    while rest.width() > width {
        let fits = rest.match_indices(' ').map(|(at, _)| at).take_while(|at| rest[..*at].width() <= width).last();
        let Some(at) = fits.or_else(|| rest.find(' ')) else { break };
        lines.push(&rest[..at]);
        rest = &rest[at + 1..];
    }
    lines.push(rest);
    lines
}

/// The text, its middle cut out where it is wider than that: names differ at their ends.
fn cut(text: &str, width: usize) -> std::borrow::Cow<'_, str> {
    if text.width() <= width {
        return text.into();
    }
    let keep = width.saturating_sub(1);
    let head = taken(text.chars(), keep.div_ceil(2));
    let tail: Vec<char> = taken(text.chars().rev(), keep / 2).chars().collect();
    head.chars().chain(['…']).chain(tail.into_iter().rev()).collect()
}

/// Characters up to a width.
fn taken(characters: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0;
    characters
        .take_while(|character| {
            used += character.width().unwrap_or(0);
            used <= width
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_width::UnicodeWidthStr;

    use super::{Cell, Table, cut};
    use crate::report::look::{Look, Tone};

    fn table() -> Table {
        let mut table = Table::new(&["NAME", ">COUNT (of them)", "NOTHING", "WHERE"]);
        table.row(vec!["a rather long name indeed", "7", "", "here"]);
        table.row(vec!["b", "12345678", "", "not so very far away"]);
        table
    }

    #[test]
    fn columns_are_aligned_and_blank_ones_left_out() {
        let text = "NAME                       COUNT (of them)  WHERE\n\
                    a rather long name indeed                7  here\n\
                    b                                 12345678  not so very far away\n";
        assert_eq!(table().render(usize::MAX), text);
    }

    #[test]
    fn headings_are_broken_before_words_are_cut() {
        let text = "\u{20}                             COUNT\n\
                    \u{20}                               (of\n\
                    NAME                          them)  WHERE\n\
                    a rather long name indeed         7  here\n\
                    b                          12345678  not so very far away\n";
        assert_eq!(table().render(58), text);
    }

    #[test]
    fn words_lose_their_middle_and_numbers_nothing() {
        let text = table().render(42);
        assert!(text.lines().all(|line| line.width() <= 42), "{text}");
        assert!(text.contains("12345678"), "{text}");
        assert!(text.contains("a rathe… indeed") || text.contains("a rather…indeed"), "{text}");
    }

    #[test]
    fn columns_without_room_follow_below() {
        let text = table().render(26);
        assert_eq!(text.matches("NAME").count(), 2, "{text}");
        assert!(text.lines().all(|line| line.width() <= 26), "{text}");
        assert!(table().render(0).contains("12345678"));
    }

    #[test]
    fn colour_changes_no_width_and_is_closed() {
        let mut table = Table::new(&["NAME", ">BUSY"]);
        table.row(vec![Cell::from("a\u{1b}[31mb\n\u{202e}c"), Cell::toned("0.99", Tone::of_utilization(0.99))]);
        let text = table.render(Look { width: 80, color: true });
        assert_eq!(
            text,
            "\u{1b}[1mNAME\u{1b}[0m        \u{1b}[1mBUSY\u{1b}[0m\na [31mb  c  \u{1b}[1;31m0.99\u{1b}[0m\n"
        );
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(cut("調製文件名称", 7), "調…称");
        assert_eq!(cut("abcdefgh", 5), "ab…gh");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(
            rows in prop::collection::vec(("\\PC{0,40}", 0_u32..1_000_000, "[a-z 調]{0,60}"), 1..6),
            width in 26_usize..120,
        ) {
            let mut table = Table::new(&["NAME", ">NUMBER OF (busy threads)", "SOME WORDS"]);
            for (name, number, words) in &rows {
                table.row(vec![name.clone(), number.to_string(), words.clone()]);
            }
            for line in table.render(width).lines() {
                prop_assert!(line.width() <= width, "{} > {width}: {line}", line.width());
            }
        }
    }
}
