//! How wide text is, and names cut to a width.
//!
//! A picture goes to readers whose fonts we do not know, so widths are upper bounds: those of DejaVu Sans, the widest of the fonts
//! that the pictures ask for. Text in another of them takes less room than was kept for it.

/// Advance widths of the characters from space to tilde, in thousandths of the font size.
const REGULAR: [u16; 95] = [
    318, 401, 460, 838, 637, 951, 780, 275, 391, 391, 500, 838, 318, 361, 318, 337, 637, 637, 637, 637, 637, 637, 637,
    637, 637, 637, 337, 337, 838, 838, 838, 560, 1020, 685, 687, 722, 771, 668, 611, 778, 752, 295, 500, 667, 558, 863,
    749, 788, 667, 788, 722, 668, 611, 732, 685, 989, 686, 668, 686, 391, 337, 391, 838, 560, 500, 613, 635, 550, 635,
    616, 353, 635, 634, 278, 278, 580, 278, 975, 634, 612, 635, 635, 412, 521, 393, 634, 592, 818, 592, 592, 525, 637,
    337, 637, 838,
];

/// The same of the bold face.
const BOLD: [u16; 95] = [
    349, 457, 521, 838, 696, 1002, 873, 307, 458, 458, 523, 838, 380, 416, 380, 366, 696, 696, 696, 696, 696, 696, 696,
    696, 696, 696, 400, 400, 838, 838, 838, 611, 1000, 774, 763, 734, 831, 684, 684, 821, 837, 373, 556, 775, 638, 996,
    837, 851, 733, 851, 771, 721, 683, 813, 774, 1104, 771, 725, 726, 458, 366, 458, 838, 560, 500, 675, 716, 593, 716,
    679, 436, 716, 712, 343, 343, 666, 343, 1042, 712, 688, 716, 716, 494, 596, 479, 712, 652, 924, 646, 652, 583, 712,
    366, 712, 838,
];

/// How text is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Face {
    /// Font size, pixels.
    pub size: f64,
    /// Whether it is bold.
    pub bold: bool,
}

/// Names of tasks and the like.
pub const NAME: Face = Face { size: 12.0, bold: true };
/// Everything else.
pub const PLAIN: Face = Face { size: 12.0, bold: false };
/// What may be overlooked.
pub const SMALL: Face = Face { size: 11.0, bold: false };

impl Face {
    /// An upper bound of the width of text, pixels.
    pub fn width(self, text: &str) -> f64 {
        text.chars().map(|character| self.advance(character)).sum()
    }

    /// From the top of the highest letters to the foot of the lowest.
    pub fn height(self) -> f64 {
        self.ascent() + self.size * 0.24
    }

    /// From the top of the highest letters to the base line.
    pub fn ascent(self) -> f64 {
        self.size * 0.93
    }

    fn advance(self, character: char) -> f64 {
        let table = if self.bold { &BOLD } else { &REGULAR };
        let thousandths = match character {
            ' '..='~' => table[character as usize - 32],
            'µ' | 'λ' | '×' | '∞' | '→' | '−' | '·' => 840,
            '…' => 1000,
            // The widest of Latin, Greek and Cyrillic letters in either face; ideographs and emoji are narrower than this, too.
            _ if self.bold => 1560,
            _ => 1430,
        };
        f64::from(thousandths) * self.size / 1000.0
    }

    /// Text in at most so much room: cut in the middle, since names that begin alike often end differently.
    pub fn fit(self, text: &str, room: f64) -> String {
        // Whatever does not fit into this many characters does not fit at all.
        const ENOUGH: usize = 400;
        let ellipsis = self.advance('…');
        let head: Vec<char> = text.chars().take(ENOUGH + 1).map(shown).collect();
        if head.len() <= ENOUGH && head.iter().map(|&character| self.advance(character)).sum::<f64>() <= room {
            return head.into_iter().collect();
        }
        let tail: Vec<char> = text.chars().rev().take(ENOUGH).map(shown).collect();
        let (mut left, mut right) = (0, 0);
        let mut used = ellipsis;
        // Three characters from the front for every two from the back.
        loop {
            let front = left * 2 <= right * 3;
            let next = if front { head.get(left) } else { tail.get(right) };
            let Some(&next) = next else { break };
            used += self.advance(next);
            if used > room {
                break;
            }
            if front { left += 1 } else { right += 1 }
        }
        let front: String = head[..left].iter().collect();
        let back: String = tail[..right].iter().rev().collect();
        format!("{}…{}", front.trim_end(), back.trim_start())
    }
}

/// A text of at most so many characters, for tooltips and descriptions.
pub fn clip(text: &str, most: usize) -> String {
    let mut clipped: String = text.chars().take(most).map(shown).collect();
    if text.chars().nth(most).is_some() {
        clipped.push('…');
    }
    clipped
}

/// What is shown of a character. Control characters, those that turn the direction of text or join what stands apart, and those
/// that XML cannot carry become a visible mark.
fn shown(character: char) -> char {
    match character {
        '\t'
        | '\n'
        | '\r'
        | '\u{85}'
        | '\u{a0}'
        | '\u{2000}'..='\u{200a}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{202f}'
        | '\u{3000}' => ' ',
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{fdd0}'..='\u{fdef}'
        | '\u{feff}'
        | '\u{fff0}'..='\u{ffff}'
        | '\u{e0000}'..='\u{e0fff}' => '\u{b7}',
        other if other.is_control() || (other as u32) & 0xfffe == 0xfffe => '\u{b7}',
        // Letters that run from right to left would turn the digits and brackets beside them; each stands on its own.
        other => other,
    }
}

/// A string as DOT has it.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::{NAME, PLAIN, clip};

    #[test]
    fn a_name_that_fits_stays_and_one_that_does_not_keeps_both_ends() {
        assert_eq!(PLAIN.fit("GET /a", 100.0), "GET /a");
        let cut = PLAIN.fit("com.example.shop.checkout.OrderService", 120.0);
        assert!(cut.starts_with("com.ex") && cut.ends_with("vice") && cut.contains('…'), "{cut}");
        assert!(PLAIN.width(&cut) <= 120.0);
        assert_eq!(PLAIN.fit("abc", 0.0), "…");
        assert_eq!(PLAIN.fit("", 0.0), "");
    }

    #[test]
    fn hostile_names_are_cut_and_made_visible() {
        let long = "x".repeat(1 << 20);
        assert!(NAME.width(&NAME.fit(&long, 150.0)) <= 150.0);
        assert_eq!(PLAIN.fit("a\u{202e}b\u{0}c\nd\u{feff}", 200.0), "a·b·c d·");
        assert_eq!(clip(&long, 3), "xxx…");
        assert_eq!(clip("\u{1}ab", 3), "·ab");
    }
}
