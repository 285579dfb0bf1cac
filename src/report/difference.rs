//! What differs between two texts, line by line.

/// A line of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'t> {
    /// In both.
    Same(&'t str),
    /// In the first only.
    Gone(&'t str),
    /// In the second only.
    New(&'t str),
}

/// Products of line numbers up to which the shortest difference is looked for; larger middles are shown as replaced.
const LIMIT: usize = 4_000_000;

/// The lines of both texts in order, those that they share once.
pub fn lines<'t>(before: &'t str, after: &'t str) -> Vec<Line<'t>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let mut all: Vec<Line<'t>> = old[..head].iter().map(|line| Line::Same(line)).collect();
    middle(&old_rest[..old_rest.len() - tail], &new_rest[..new_rest.len() - tail], &mut all);
    all.extend(old_rest[old_rest.len() - tail..].iter().map(|line| Line::Same(line)));
    all
}

/// The longest common subsequence, by the usual table.
fn middle<'t>(old: &[&'t str], new: &[&'t str], all: &mut Vec<Line<'t>>) {
    let width = new.len() + 1;
    let too_much = old.len().saturating_mul(new.len()) > LIMIT;
    let mut common = vec![0u32; if too_much { 0 } else { (old.len() + 1) * width }];
    if !too_much {
        for (i, a) in old.iter().enumerate().rev() {
            for (j, b) in new.iter().enumerate().rev() {
                common[i * width + j] = if a == b {
                    common[(i + 1) * width + j + 1] + 1
                } else {
                    common[(i + 1) * width + j].max(common[i * width + j + 1])
                };
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < new.len() && !too_much {
        if old[i] == new[j] {
            all.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if common[(i + 1) * width + j] >= common[i * width + j + 1] {
            all.push(Line::Gone(old[i]));
            i += 1;
        } else {
            all.push(Line::New(new[j]));
            j += 1;
        }
    }
    all.extend(old[i..].iter().map(|line| Line::Gone(line)));
    all.extend(new[j..].iter().map(|line| Line::New(line)));
}

/// The difference as text, `-` before lines that went and `+` before those that came, each with up to so many shared lines
/// around. Empty where the texts have the same lines.
pub fn text(before: &str, after: &str, context: usize) -> String {
    let all = lines(before, after);
    let differs = |line: &Line<'_>| !matches!(line, Line::Same(_));
    let mut near = vec![false; all.len()];
    for (at, _) in all.iter().enumerate().filter(|(_, line)| differs(line)) {
        near[at.saturating_sub(context)..(at + context + 1).min(all.len())].fill(true);
    }
    let mut text = String::new();
    let mut skipped = false;
    for (line, near) in all.iter().zip(near) {
        if !near {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            text.push_str("  …\n");
        }
        let (sign, line) = match line {
            Line::Same(line) => (' ', line),
            Line::Gone(line) => ('-', line),
            Line::New(line) => ('+', line),
        };
        text.push_str(format!("{sign} {line}").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn lines_that_went_and_came_stand_with_their_neighbours() {
        assert_eq!(text("a\nb\nc\nd\ne\n", "a\nb\nx\nd\ne\n", 1), "  …\n  b\n- c\n+ x\n  d\n");
        assert_eq!(text("a\nb\n", "a\nb\n", 3), "");
        assert_eq!(text("", "a\n", 3), "+ a\n");
        assert_eq!(text("a\nb\nc\n", "c\n", 0), "- a\n- b\n");
        assert_eq!(text("b\nc\n", "a\nb\nd\nc\n", 0), "+ a\n  …\n+ d\n");
    }
}
