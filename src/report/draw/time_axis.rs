//! The axis of time of a message sequence chart.

use crate::report::draw::operation::{OperationView, Shown, timed};
use crate::report::draw::text::SMALL;

/// The unit of the axis.
pub(super) const UNIT: &str = "ms";

/// Time on the vertical axis.
pub(super) struct Axis {
    /// Of the first node, seconds.
    start: f64,
    /// Pixels for a second, where there is room.
    scale: f64,
    /// Digits behind the point that tell a thousandth of the whole.
    digits: usize,
    /// The time of each line.
    times: Vec<f64>,
    /// Room for its labels.
    pub width: f64,
}

impl Axis {
    /// The axis of the nodes that are shown, each `step` pixels from the next on the mean; none where some have no time, or all have the same.
    pub fn new(view: &OperationView<'_>, shown: &Shown, step: f64) -> Option<Self> {
        if !timed(view.toeg) {
            return None;
        }
        let times = || shown.order.iter().map(|&node| view.toeg.event(node).time);
        let start = times().fold(f64::INFINITY, f64::min);
        let whole = times().fold(f64::NEG_INFINITY, f64::max) - start;
        if !(whole.is_finite() && whole > 0.0) {
            return None;
        }
        let digits = (3.0 - (whole * 1e3).log10().ceil()).clamp(0.0, 9.0) as usize;
        let widest = format!("{:.digits$}", whole * 1e3);
        let width = SMALL.width(&widest).max(SMALL.width(UNIT)) + 30.0;
        let scale = shown.order.len() as f64 * step / whole;
        Some(Self { start, scale, digits, times: Vec::new(), width })
    }

    /// Puts down the time of the next line; gives the room that the time since the last one asks for. Time does not run backwards,
    /// whatever clocks say.
    pub fn passes_to(&mut self, time: f64) -> f64 {
        let last = self.times.last().copied().unwrap_or(self.start);
        let time = time.max(last);
        self.times.push(time);
        (time - last) * self.scale
    }

    /// What stands at each line: its time, where that is not told already.
    pub fn labels(&self) -> Vec<String> {
        let mut last = String::new();
        let label = |time: &f64| {
            let own = format!("{:.*}", self.digits, (time - self.start) * 1e3);
            if own == last {
                return String::new();
            }
            last.clone_from(&own);
            own
        };
        self.times.iter().map(label).collect()
    }
}
