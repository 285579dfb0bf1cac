//! What iterations ended with, for the next solution of a like network to start from.

use super::Stay;

/// Steps that an iteration makes at a time when it starts from what was kept.
const STEPS: usize = 2;

/// Ends of the iterations inside [`solve`](super::solve), in the order in which they come.
///
/// An iteration that starts from where the same one of a like network ended finds the same fixed point sooner. A start
/// that does not fit, or that is far off, does no harm but takes longer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    ends: Vec<End>,
    next: usize,
    /// Whether iterations that start from what was kept make a few steps only: then they come to their end together with the
    /// iteration around them.
    pub hurries: bool,
    /// The largest relative change in the last step of an iteration that made a few steps only.
    change: f64,
}

#[derive(Clone, Debug, Default)]
struct End {
    stays: Vec<Stay>,
    strain: Vec<f64>,
}

impl Memory {
    /// The next iteration is the first one.
    pub(super) fn rewind(&mut self) {
        self.next = 0;
        self.change = 0.0;
    }

    /// How many steps the present iteration may make.
    pub(super) fn steps(&self) -> Option<usize> {
        (self.hurries && self.next < self.ends.len()).then_some(STEPS)
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
    pub(super) fn recall(&self, stays: &mut [Stay], strain: &mut [f64]) {
        if let Some(end) = self.ends.get(self.next)
            && end.stays.len() == stays.len()
            && end.strain.len() == strain.len()
        {
            stays.copy_from_slice(&end.stays);
            strain.copy_from_slice(&end.strain);
        }
    }

    /// Shows all numbers.
    pub(crate) fn visit(&mut self, see: &mut dyn FnMut(&mut f64)) {
        for end in &mut self.ends {
            for stay in &mut end.stays {
                see(&mut stay.wait);
                see(&mut stay.stretch);
            }
            end.strain.iter_mut().for_each(&mut *see);
        }
    }

    /// Keeps the end of the present iteration and goes on to the next.
    pub(super) fn keep(&mut self, stays: &[Stay], strain: &[f64]) {
        if self.ends.len() <= self.next {
            self.ends.resize_with(self.next + 1, End::default);
        }
        let end = &mut self.ends[self.next];
        end.stays.clear();
        end.stays.extend_from_slice(stays);
        end.strain.clear();
        end.strain.extend_from_slice(strain);
        self.next += 1;
    }
}
