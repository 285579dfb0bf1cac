//! What iterations ended with, for the next solution of a like network to start from.

use super::Stay;

/// Steps that an iteration makes at a time when it starts from what was kept.
const STEPS: usize = 2;

/// Ends of the iterations inside [`solve`](super::solve), in the order in which they come.
///
/// An iteration that starts from where the same one of a like network ended finds the same fixed point sooner. A start
/// that does not fit, or that is far off, does no harm but takes longer.
#[derive(Clone, Debug, Default)]
pub(crate) struct InnerStarts {
    ends: Vec<End>,
    next: usize,
    /// Whether iterations that start from what was kept make a few steps only: then they come to their end together with the
    /// iteration around them.
    pub inexact: bool,
    /// The largest relative change in the last step of an iteration that made a few steps only.
    change: f64,
}

#[derive(Clone, Debug, Default)]
struct End {
    stays: Vec<Stay>,
    overload: Vec<f64>,
}

impl InnerStarts {
    /// The next iteration is the first one.
    pub(super) fn rewind(&mut self) {
        self.next = 0;
        self.change = 0.0;
    }

    /// How many steps the present iteration may make.
    pub(super) fn steps(&self) -> Option<usize> {
        (self.inexact && self.next < self.ends.len()).then_some(STEPS)
    }

    /// Takes note of the change in the last step of the present iteration, which made all steps that it might.
    pub(super) fn unfinished(&mut self, change: f64) {
        self.change = self.change.max(change);
    }

    /// The largest relative change in the last step of an iteration that made all steps that it might.
    pub(crate) fn change(&self) -> f64 {
        self.change
    }

    /// Puts the end of the present iteration's forerunner into place, if there is one that fits.
    pub(super) fn recall(&self, stays: &mut [Stay], overload: &mut [f64]) {
        if let Some(end) = self.ends.get(self.next)
            && end.stays.len() == stays.len()
            && end.overload.len() == overload.len()
        {
            stays.copy_from_slice(&end.stays);
            overload.copy_from_slice(&end.overload);
        }
    }

    /// Shows all numbers.
    pub(crate) fn visit(&mut self, see: &mut dyn FnMut(&mut f64)) {
        for end in &mut self.ends {
            for stay in &mut end.stays {
                see(&mut stay.wait);
                see(&mut stay.slowdown);
            }
            end.overload.iter_mut().for_each(&mut *see);
        }
    }

    /// Keeps the end of the present iteration and goes on to the next.
    pub(super) fn keep(&mut self, stays: &[Stay], overload: &[f64]) {
        if self.ends.len() <= self.next {
            self.ends.resize_with(self.next + 1, End::default);
        }
        let end = &mut self.ends[self.next];
        end.stays.clear();
        end.stays.extend_from_slice(stays);
        end.overload.clear();
        end.overload.extend_from_slice(overload);
        self.next += 1;
    }
}
