//! Within a visit: calls between slices, what comes after a step, replies.

use super::{Engine, Next, Visit};
use crate::simulate::probe::Probe;
use crate::simulate::program::{After, ENTRY_SUMS, NONE, OPEN};

/// What a whole number of calls may lack that was divided among copies.
const ROUNDING: f64 = 1e-9;

impl<P: Probe> Engine<'_, P> {
    /// Which call the strand makes after this slice, if any.
    #[inline]
    pub(super) fn next_call(&mut self, strand: u32) -> Option<u32> {
        let found = &mut self.strands[strand];
        let step = &self.program.steps[found.step as usize];
        if step.calls.count == 0 {
            return None;
        }
        let calls = &self.program.calls[step.calls.range()];
        if !step.deterministic {
            // One of the slices in the mean number of slices is the last.
            let at = self.random.uniform() * step.slices - 1.0;
            if at < 0.0 {
                return None;
            }
            let which = if calls.len() < 16 {
                calls.iter().position(|call| at < call.upto).unwrap_or(calls.len() - 1)
            } else {
                calls.partition_point(|call| call.upto <= at).min(calls.len() - 1)
            };
            return Some(step.calls.first + which as u32);
        }
        loop {
            let call = calls.get(found.call as usize)?;
            if found.left == NONE {
                let mean = call.mean * f64::from(call.any_of);
                let whole = (mean + ROUNDING).floor();
                let more = mean > whole && self.random.uniform() < mean - whole;
                found.left = (whole as u32).saturating_add(u32::from(more)).min(NONE - 1);
            }
            if found.left > 0 {
                found.left -= 1;
                let copy = if call.any_of > 1 { self.random.below(call.any_of as usize) as u32 } else { 0 };
                return Some(step.calls.first + found.call + copy);
            }
            found.call += call.any_of;
            found.left = NONE;
        }
    }

    /// A step has been done; what comes after.
    pub(super) fn done(&mut self, strand: u32) -> u32 {
        let found = self.strands[strand];
        let step = &self.program.steps[found.step as usize];
        if step.figures != NONE {
            self.series.sums[step.figures as usize] += 1.0;
            self.series.sums[step.figures as usize + 1] += self.now - found.began;
        }
        if step.replies && !self.visits[found.visit].replied {
            self.reply(strand, found.visit);
        } else if step.phase {
            self.end_phase(found.visit);
        }
        step.after
    }

    pub(super) fn end_phase(&mut self, visit: u32) {
        let found = &mut self.visits[visit];
        let sum = found.entry as usize * ENTRY_SUMS + 1 + usize::from(found.phase);
        self.series.sums[sum] += self.now - found.since;
        found.since = self.now;
        found.phase = (found.phase + 1).min(2);
    }

    /// The first phase has ended: the request is answered or passed on.
    pub(super) fn reply(&mut self, strand: u32, visit: u32) {
        self.end_phase(visit);
        let found = &mut self.visits[visit];
        found.replied = true;
        if self.program.is_source(self.program.entries[found.entry as usize].task) {
            return;
        }
        let (entry, client) = (found.entry, found.client);
        let forwards = self.program.entries[entry as usize].forwards;
        if forwards.count > 0 {
            let at = self.random.uniform();
            let forwards = &self.program.forwards[forwards.range()];
            if let Some(forward) = forwards.iter().find(|forward| at < forward.upto) {
                let from = *found;
                let copy = self.program.copy_of(from.instance);
                let (entry, figures) = (forward.entry, forward.figures);
                let instance = self.instance(entry, copy);
                let on = self.request(Visit { entry, instance, figures, sent: self.now, next: NONE, ..from });
                self.visits[visit].client = NONE;
                self.visits[visit].open = false;
                self.probe.forward(self.now, strand, on, entry);
                self.deliver(on);
                return;
            }
        }
        let response = self.now - found.origin;
        self.sketches[found.origin_entry as usize].add(response);
        if found.open {
            let sum = found.origin_entry as usize * ENTRY_SUMS + OPEN;
            self.series.sums[sum] += 1.0;
            self.series.sums[sum + 1] += response;
        }
        let last = self.program.steps[self.strands[strand].step as usize].after == 0 && found.strands == 1;
        self.probe.reply(self.now, strand, (client != NONE).then_some(client), last);
        if client != NONE {
            found.client = NONE;
            self.ready.push(client);
        }
    }

    /// What the strand does next, or nothing if it ends.
    pub(super) fn after(&mut self, strand: u32, number: u32) -> Option<Next> {
        let program = self.program;
        match program.afters[number as usize] {
            After::End => {
                self.end(strand);
                None
            }
            After::Next(step) => Some(Next::Begin(step)),
            After::Choose(targets) => {
                let targets = &program.targets[targets.range()];
                let total = targets.last().map_or(0.0, |target| target.upto);
                let at = self.random.uniform() * total;
                let target = targets.iter().find(|target| at < target.upto).or(targets.last());
                target.map(|target| Next::Begin(target.step))
            }
            After::Loop { bodies, total, end } => {
                // Geometric, like calls.
                let at = self.random.uniform() * (1.0 + total) - 1.0;
                let bodies = &program.targets[bodies.range()];
                let body = bodies.iter().find(|body| (0.0..body.upto).contains(&at));
                Some(body.map_or(Next::After(end), |body| Next::Begin(body.step)))
            }
            After::Fork(targets) => {
                let visit = self.strands[strand].visit;
                self.visits[visit].strands += targets.count;
                let first = self.ready.len();
                for target in &program.targets[targets.range()] {
                    let branch = self.strand(visit, target.step);
                    self.probe.fork(self.now, strand, branch);
                    self.ready.push(branch);
                    // They are put in any order.
                    let count = self.ready.len() - first;
                    let other = first + self.random.below(count);
                    self.ready.swap(first + count - 1, other);
                }
                self.finish_strand(strand);
                None
            }
            After::Join { slot, need, total, then } => {
                let visit = self.strands[strand].visit;
                let counter = &mut self.joins[(self.visits[visit].joins + slot) as usize];
                *counter += 1;
                let goes_on = *counter == need;
                if *counter == total {
                    *counter = 0;
                }
                self.probe.join(self.now, strand, goes_on);
                if goes_on {
                    return Some(Next::After(then));
                }
                self.finish_strand(strand);
                None
            }
        }
    }

    pub(super) fn end(&mut self, strand: u32) {
        let visit = self.strands[strand].visit;
        if self.visits[visit].strands == 1 && !self.visits[visit].replied {
            // Activities that never answer: the request is taken as answered at their end.
            self.reply(strand, visit);
        }
        self.probe.end(self.now, strand);
        self.finish_strand(strand);
    }

    pub(super) fn finish_strand(&mut self, strand: u32) {
        let visit = self.strands[strand].visit;
        self.visits[visit].strands -= 1;
        if self.visits[visit].strands == 0 {
            self.strands.give(strand);
            self.finish(visit);
        } else {
            self.strands.give(strand);
        }
    }
}
