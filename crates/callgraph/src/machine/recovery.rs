//! What a record that does not fit is answered with: calls that lost their end are closed, as few as can be.

use crate::abnormal::{Kind, Spot};
use crate::context::{NONE, NOWHERE};
use crate::machine::{Chain, Frame, Machine, State};
use crate::record::Record;

/// How many calls outwards a record that does not fit is tried.
const REACH: usize = 256;

impl Machine {
    pub(super) fn unexpected(&mut self, record: &Record) {
        self.counts.one(Kind::unexpected(record.probe), Spot::of(record));
    }

    /// Says that events are missing before the next one.
    pub(crate) fn gap(&mut self, chain: &mut Chain, missing: u64, record: &Record) {
        self.counts.add(Kind::Lost, missing, Spot::of(record));
        if let Some(top) = chain.stack.last_mut() {
            top.lossy = true;
        }
    }

    /// Closes what lost its end, up to where a call can start.
    pub(super) fn back_into_a_function(&mut self, chain: &mut Chain) {
        while let Some(top) = chain.stack.last() {
            match top.state {
                State::Running => return,
                State::Called if !top.oneway => {
                    let Some(mut frame) = chain.stack.pop() else { return };
                    let info = self.site(frame.site);
                    frame.lossy = true;
                    self.enter(chain, &mut frame, info.function, info.group);
                    chain.stack.push(frame);
                    return;
                }
                State::Called | State::Returned => self.close_open(chain, true),
            }
        }
    }

    /// Looks outwards for the call that a record belongs to and closes what lies within; false if there is none.
    pub(super) fn outwards(&mut self, chain: &mut Chain, tell: bool, fits: impl Fn(&Self, &Frame) -> bool) -> bool {
        let within = chain.stack.iter().rev().take(REACH).position(|frame| fits(self, frame));
        for _ in 0..within.unwrap_or(0) {
            self.close_open(chain, tell);
        }
        within.is_some()
    }

    /// Closes the innermost call, which has no end.
    pub(super) fn close_open(&mut self, chain: &mut Chain, tell: bool) {
        let Some(mut frame) = chain.stack.pop() else { return };
        if tell {
            self.counts.one(Kind::Unfinished, frame.spot);
        }
        if frame.context == NONE && !frame.oneway {
            let info = self.site(frame.site);
            self.enter(chain, &mut frame, info.function, NOWHERE);
        }
        self.leave(chain, frame, None, false);
    }

    /// Closes all that is open when the chain is read to its end.
    pub(crate) fn close_all(&mut self, chain: &mut Chain) {
        while !chain.stack.is_empty() {
            self.close_open(chain, true);
        }
    }
}
