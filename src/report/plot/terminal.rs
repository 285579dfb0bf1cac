//! Plots for terminals: curves in Braille dots or in ASCII, with a letter at the end of each.

use crate::report::plot::Plot;
use crate::report::plot::axis::Axis;

/// What a plot is drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Braille dots, eight to a character.
    Braille,
    /// Letters and signs that every terminal has.
    Ascii,
}

const ROWS: usize = 14;
/// Columns for the labels of the vertical axis.
const LEFT: usize = 9;
const LEAST: usize = 24;
const MOST: usize = 100;
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// The plots one below the other, at most so wide.
pub fn terminal(plots: &[Plot], width: usize, ink: Ink) -> String {
    plots
        .iter()
        .map(|plot| draw(plot, width.min(MOST).saturating_sub(LEFT + 2).max(LEAST), ink))
        .collect::<Vec<_>>()
        .join("\n")
}

fn draw(plot: &Plot, columns: usize, ink: Ink) -> String {
    let (low, high, most) = plot.bounds().unwrap_or((0.0, 1.0, 1.0));
    let (across, upward) = (Axis::across(&plot.scale, low, high), Axis::upward(most));
    let (dots_x, dots_y) = if ink == Ink::Braille { (2, 4) } else { (1, 1) };
    let (wide, tall) = (columns * dots_x, ROWS * dots_y);
    let place = |x: f64, y: f64| {
        let column = (across.part(x) * (wide - 1) as f64).round().clamp(0.0, (wide - 1) as f64);
        let row = ((1.0 - upward.part(y)) * (tall - 1) as f64).round().clamp(0.0, (tall - 1) as f64);
        (column as i64, row as i64)
    };
    let mut dots = vec![0_u8; columns * ROWS];
    let mut marks: Vec<Option<char>> = vec![None; columns * ROWS];
    for (number, series) in plot.series.iter().enumerate() {
        let letter = LETTERS[number % LETTERS.len()] as char;
        let mut last: Option<(i64, i64)> = None;
        let mut end = None;
        for (x, y, _) in &series.points {
            let Some(y) = y else {
                last = None;
                continue;
            };
            let to = place(*x, *y);
            for (column, row) in line(last.unwrap_or(to), to) {
                let (column, row) = (column as usize, row as usize);
                let cell = row / dots_y * columns + column / dots_x;
                dots[cell] |= dot(column % dots_x, row % dots_y);
                if ink == Ink::Ascii && marks[cell].is_none() {
                    marks[cell] = Some(letter);
                }
                end = Some(cell);
            }
            last = Some(to);
        }
        if let Some(end) = end.filter(|_| plot.series.len() > 1) {
            marks[end] = Some(letter);
        }
    }
    let mut text = format!("{}\n", plot.y);
    for row in 0..ROWS {
        let label = upward.ticks.iter().find(|(value, _)| {
            let at = ((1.0 - upward.part(*value)) * (tall - 1) as f64).round() as usize / dots_y;
            at == row
        });
        let bar = if ink == Ink::Braille { '│' } else { '|' };
        let mut line = format!("{:>LEFT$} {bar}", label.map_or("", |(_, label)| label));
        for column in 0..columns {
            let cell = row * columns + column;
            line.push(match marks[cell] {
                Some(letter) => letter,
                None if dots[cell] == 0 => ' ',
                None if ink == Ink::Braille => char::from_u32(0x2800 + u32::from(dots[cell])).unwrap_or('*'),
                None => '*',
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let (corner, rule) = if ink == Ink::Braille { ('└', "─") } else { ('+', "-") };
    text.push_str(&format!("{}{corner}{}\n", " ".repeat(LEFT + 1), rule.repeat(columns)));
    text.push_str(&labels(&across, columns));
    text.push_str(&format!("{:>width$}\n", plot.x, width = LEFT + 2 + columns));
    if plot.series.len() > 1 {
        for (number, series) in plot.series.iter().enumerate() {
            text.push_str(&format!(
                "{}{}  {}\n",
                " ".repeat(LEFT + 2),
                LETTERS[number % LETTERS.len()] as char,
                series.name
            ));
        }
    }
    if plot.series.iter().any(|series| series.points.iter().any(|point| point.2)) {
        text.push_str(&format!("{}some points did not converge\n", " ".repeat(LEFT + 2)));
    }
    text
}

/// The labels below the horizontal axis, as many as fit.
fn labels(across: &Axis, columns: usize) -> String {
    let mut line: Vec<char> = vec![' '; LEFT + 2 + columns];
    let mut free = 0;
    for (value, label) in &across.ticks {
        let label: Vec<char> = label.chars().collect();
        let middle = LEFT + 2 + (across.part(*value) * (columns - 1) as f64).round() as usize;
        let start = middle.saturating_sub(label.len() / 2).min(line.len().saturating_sub(label.len()));
        if start >= free && start + label.len() <= line.len() {
            line[start..start + label.len()].copy_from_slice(&label);
            free = start + label.len() + 1;
        }
    }
    let line: String = line.into_iter().collect();
    format!("{}\n", line.trim_end())
}

/// The bit of a dot in a Braille character (its columns are numbered downwards, the last row later).
fn dot(column: usize, row: usize) -> u8 {
    const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
    BITS[column][row]
}

/// The dots of a straight line (Bresenham 1965).
fn line(from: (i64, i64), to: (i64, i64)) -> Vec<(i64, i64)> {
    let (across, down) = ((to.0 - from.0).abs(), -(to.1 - from.1).abs());
    let step = ((to.0 - from.0).signum(), (to.1 - from.1).signum());
    let (mut at, mut error) = (from, across + down);
    let mut dots = vec![at];
    while at != to {
        let twice = 2 * error;
        if twice >= down {
            error += down;
            at.0 += step.0;
        }
        if twice <= across {
            error += across;
            at.1 += step.1;
        }
        dots.push(at);
    }
    dots
}

#[cfg(test)]
mod tests {
    use super::{Ink, terminal};
    use crate::report::plot::{Plot, Scale, Series};

    #[test]
    fn a_curve_is_cut_where_there_is_no_steady_state() {
        let drawn = |figures: [Option<f64>; 5]| {
            let points = figures.iter().enumerate().map(|(place, figure)| (place as f64, *figure, false));
            let series = vec![Series { name: "response".into(), points: points.collect(), bars: Vec::new() }];
            let plot = Plot { x: "arrivals".into(), y: "s".into(), scale: Scale::Linear, series };
            let text = terminal(&[plot], 60, Ink::Ascii);
            let line = text.lines().find(|line| line.contains("|a"));
            line.and_then(|line| line.split('|').nth(1)).unwrap_or_default().to_owned()
        };
        let (one, none) = (Some(1.0), None);
        let whole = drawn([one; 5]);
        assert!(whole.len() > 30 && !whole.contains(' '), "{whole:?}");
        let cut = drawn([one, one, none, none, none]);
        assert_eq!((cut.len() - 1) * 4, whole.len() - 1, "{cut:?} is a fourth of {whole:?}");
        let gap = drawn([one, one, none, one, one]);
        assert_eq!((gap.len(), gap.matches("  ").count() > 0), (whole.len(), true), "{gap:?}");
    }
}
