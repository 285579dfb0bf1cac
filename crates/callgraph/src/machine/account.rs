//! What is known of a call when it is left: its time, its latency, and its share in the call around it.

use crate::abnormal::Kind;
use crate::context::{Key, NONE};
use crate::latency::{Latency, NO_TIME};
use crate::machine::{Chain, Frame, Machine, Role, sum};
use crate::record::{Reading, Record};

impl Machine {
    /// What a function spent itself, now that it ends; [`NO_TIME`] where it cannot be told.
    pub(super) fn spent(&self, frame: &Frame, end: &Record) -> i64 {
        let clock = self.clock(end);
        if frame.lossy || frame.started == NO_TIME || !clock.is_some() {
            return NO_TIME;
        }
        clock.begin.checked_sub(frame.started).and_then(|time| time.checked_sub(frame.children)).unwrap_or(NO_TIME)
    }

    /// Leaves a call: what it spent goes to its context, its probes and its share of the clock to the call around it.
    pub(super) fn leave(&mut self, chain: &mut Chain, mut frame: Frame, end: Option<&Record>, complete: bool) {
        let key = (frame.context != NONE).then(|| self.contexts.key(frame.context as usize));
        let base = chain.stack.is_empty().then_some(chain.role);
        let last = end.map_or(0, |record| record.wall.duration());
        if let Some(record) = end.filter(|_| frame.stub) {
            frame.outside.end = record.wall.begin;
        }
        if let Some(key) = key {
            self.spend(&frame, key, complete);
        }
        self.latency_of(chain, &frame, key, base, end.filter(|_| complete));
        if base.is_some_and(|role| role != Role::Root) && self.has_begun(chain.link) {
            self.release_link(chain.link);
        }
        if let Some(around) = chain.stack.last_mut() {
            let clock = end.map_or(Reading::NONE, |end| if self.wall { end.wall } else { end.cpu });
            if frame.stub && frame.called != NO_TIME && clock.is_some() {
                around.children = around.children.saturating_add(clock.end.saturating_sub(frame.called));
            } else {
                around.lossy = true;
            }
            around.beneath = sum([around.beneath, frame.first, last, frame.own, frame.beneath]);
            around.stubs = sum([around.stubs, frame.first, last, frame.stubs]);
        }
    }

    pub(super) fn spend(&mut self, frame: &Frame, key: Key, complete: bool) {
        let mut time = Some(frame.time).filter(|time| *time != NO_TIME);
        if complete && time.is_none() {
            self.counts.one(Kind::Unmeasured, frame.spot);
        }
        if time.is_some_and(|time| time < 0) {
            self.counts.one(Kind::NegativeTime, frame.spot);
            time = None;
        }
        if let Some(spent) = time {
            if self.contexts.spend(frame.context, spent) {
                self.statistics[key.index()].time.add(spent);
            } else {
                self.counts.one(Kind::Overflow, frame.spot);
            }
        }
        if let Some(calls) = self.calls.as_mut().filter(|_| frame.call != NONE) {
            let call = &mut calls.calls[frame.call as usize];
            (call.time, call.complete, call.inside) = (time, complete, frame.inside);
            if frame.stub {
                call.outside = frame.outside;
            }
        }
    }

    pub(super) fn latency_of(
        &mut self,
        chain: &mut Chain,
        frame: &Frame,
        key: Option<Key>,
        base: Option<Role>,
        end: Option<&Record>,
    ) {
        let remote = base == Some(Role::Remote) && !frame.stub;
        let skeleton_only = !frame.stub && !frame.thread;
        let interval = match end {
            Some(end) if frame.from != NO_TIME && end.wall.is_some() && !frame.oneway && !remote => {
                end.wall.begin.checked_sub(frame.from)
            }
            _ => None,
        };
        let overhead = match self.latency {
            // Between the ends of a skeleton, or of a fused call, its own probes do not lie.
            Latency::Net if skeleton_only || frame.fused => frame.beneath,
            Latency::Net => sum([frame.own, frame.beneath]),
            Latency::Paper if skeleton_only => frame.stubs,
            Latency::Paper => frame.beneath,
        };
        let net = interval.map(|interval| interval.saturating_sub(overhead));
        if frame.waiting == NONE {
            if let (Some(key), Some(net)) = (key, net) {
                self.statistics[key.index()].latency.add(net);
            }
            return;
        }
        let mut parent = NONE;
        if let Some(around) = chain.stack.last_mut() {
            if around.waiting == NONE {
                around.waiting = self.waiting.open();
            }
            parent = around.waiting;
        } else if chain.link != NONE && base != Some(Role::OneWay) {
            parent = self.links[chain.link as usize].waiting;
        }
        self.waiting.nest(frame.waiting, parent);
        let waiting = self.waiting.at(frame.waiting);
        waiting.key = key.or(waiting.key);
        waiting.base = net.unwrap_or(NO_TIME);
        waiting.window = (frame.from, end.map_or(NO_TIME, |end| end.wall.begin));
        self.settle(frame.waiting);
    }

    /// A latency waits for one thing less.
    pub(super) fn settle(&mut self, waiting: u32) {
        let statistics = &mut self.statistics;
        self.waiting.release(waiting, self.latency, |key, latency| statistics[key.index()].latency.add(latency));
    }
}
