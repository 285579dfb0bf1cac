//! Tables with aligned columns.

/// A column's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A table in the making.
#[derive(Clone, Debug)]
pub struct Table {
    headings: Vec<(String, Side)>,
    rows: Vec<Vec<String>>,
}

/// The least width that a column of words is cut to.
const LEAST: usize = 12;

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
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table's lines, at most so wide if cutting words with `…` can reach it; numbers are never cut.
    pub fn render(&self, width: usize) -> String {
        let used: Vec<usize> = (0..self.headings.len()).filter(|column| !self.is_blank(*column)).collect();
        let widths = self.widths(&used, width);
        let mut text = String::new();
        let headings: Vec<String> = self.headings.iter().map(|(heading, _)| heading.clone()).collect();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let mut line = String::new();
            for (&column, &width) in used.iter().zip(&widths) {
                let cell = cut(row.get(column).map_or("", String::as_str), width);
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                if !line.is_empty() || column != used[0] {
                    line.push_str("  ");
                }
                match self.headings[column].1 {
                    Side::Left => line.extend([cell.as_str(), &padding]),
                    Side::Right => line.extend([padding.as_str(), &cell]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// A column in which no row has anything is left out.
    fn is_blank(&self, column: usize) -> bool {
        self.rows.iter().all(|row| row.get(column).is_none_or(String::is_empty))
    }

    fn widths(&self, used: &[usize], limit: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = used
            .iter()
            .map(|&column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
                cells.chain([self.headings[column].0.chars().count()]).max().unwrap_or(0)
            })
            .collect();
        let mut total = widths.iter().sum::<usize>() + 2 * used.len().saturating_sub(1);
        while total > limit {
            let widest = (0..used.len())
                .filter(|place| self.headings[used[*place]].1 == Side::Left && widths[*place] > LEAST)
                .max_by_key(|place| widths[*place]);
            let Some(widest) = widest else { break };
            // Down to the next widest at most, so that the widest share what is missing.
            let next = (0..used.len())
                .filter(|place| *place != widest && self.headings[used[*place]].1 == Side::Left)
                .map(|place| widths[place])
                .filter(|width| *width < widths[widest])
                .max()
                .unwrap_or(LEAST)
                .max(LEAST);
            let equals = (0..used.len())
                .filter(|place| self.headings[used[*place]].1 == Side::Left && widths[*place] == widths[widest])
                .count();
            let step = (total - limit).div_ceil(equals).min((widths[widest] - next).max(1));
            widths[widest] -= step;
            total -= step;
        }
        widths
    }
}

fn cut(cell: &str, width: usize) -> String {
    // A cell holds one line, whatever names are made of.
    let clean = |character: char| if character.is_control() { ' ' } else { character };
    if cell.chars().count() <= width {
        return cell.chars().map(clean).collect();
    }
    cell.chars().take(width.saturating_sub(1)).map(clean).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::Table;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", ">COUNT", "NOTHING", "WHERE"]);
        table.row(vec!["a rather long name indeed".into(), "7".into(), String::new(), "here".into()]);
        table.row(vec!["b".into(), "12345678".into(), String::new(), "not so very far away".into()]);
        table
    }

    #[test]
    fn columns_are_aligned_and_blank_ones_left_out() {
        let text = "NAME                          COUNT  WHERE\n\
                    a rather long name indeed         7  here\n\
                    b                          12345678  not so very far away\n";
        assert_eq!(table().render(usize::MAX), text);
    }

    #[test]
    fn words_are_cut_to_the_width_and_numbers_are_not() {
        let text = table().render(40);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.contains("12345678"), "{text}");
        assert_eq!(text.lines().nth(1), Some("a rather long…         7  here"));
        assert!(table().render(0).contains("12345678"));
    }
}
