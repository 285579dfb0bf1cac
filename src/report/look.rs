//! How text for people looks: how wide it may be, and whether it may have colour.

/// What text for people may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns that a line may fill; `usize::MAX` where it does not matter.
    pub width: usize,
    /// Whether colour is wanted.
    pub color: bool,
}

impl Look {
    /// As wide as it likes, with no colour: for files and pipes.
    pub const PLAIN: Self = Self { width: usize::MAX, color: false };

    /// The text in a tone, if colour is wanted.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let mut painted = String::with_capacity(text.len() + 8);
        self.paint_to(tone, text, &mut painted);
        painted
    }

    /// The same at the end of another text.
    pub(crate) fn paint_to(self, tone: Tone, text: &str, target: &mut String) {
        let code = if self.color { tone.code() } else { "" };
        if code.is_empty() || text.is_empty() {
            target.push_str(text);
        } else {
            target.extend([code, text, "\u{1b}[0m"]);
        }
    }
}

/// A width without colour.
impl From<usize> for Look {
    fn from(width: usize) -> Self {
        Self { width, color: false }
    }
}

/// What a text is about, which colour shows. Whatever a colour says, the text says, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// A heading.
    Heading,
    /// Near its limit.
    Caution,
    /// At its limit, or wrong.
    Alarm,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Heading => "\u{1b}[1m",
            Self::Caution => "\u{1b}[33m",
            Self::Alarm => "\u{1b}[1;31m",
        }
    }

    /// The tone of a share of servers that are busy: cautious from 80 %, alarmed from 95 %, where queues grow steeply.
    pub fn of_utilization(busy: f64) -> Self {
        match busy {
            busy if busy >= 0.95 => Self::Alarm,
            busy if busy >= 0.8 => Self::Caution,
            _ => Self::Plain,
        }
    }
}
