//! Who watches a simulation, event by event.

/// Told of all that happens. Strands and visits are told by number; a number is given again when its bearer has ended. Times
/// are simulated seconds.
pub(super) trait Probe {
    /// A cycle of a source begins: nobody asked for it.
    fn cycle(&mut self, _time: f64, _visit: u32, _entry: u32) {}
    /// A request arrives from outside.
    fn open(&mut self, _time: f64, _visit: u32, _entry: u32) {}
    /// A strand makes a request, and waits if it is synchronous.
    fn call(&mut self, _time: f64, _strand: u32, _visit: u32, _entry: u32, _synchronous: bool) {}
    /// A strand that serves a visit passes its request on.
    fn forward(&mut self, _time: f64, _strand: u32, _visit: u32, _entry: u32) {}
    /// A thread takes up the request; the strand begins.
    fn accept(&mut self, _time: f64, _visit: u32, _strand: u32) {}
    /// A strand had so much of a processor.
    fn slice(&mut self, _time: f64, _strand: u32, _demand: f64) {}
    /// A strand answers the request that its visit serves; the client, if one waits, goes on. It may be the last that the strand
    /// and its visit do.
    fn reply(&mut self, _time: f64, _strand: u32, _client: Option<u32>, _last: bool) {}
    /// A strand begins another beside it.
    fn fork(&mut self, _time: f64, _strand: u32, _branch: u32) {}
    /// A strand comes to a join of its visit and goes on, or ends there.
    fn join(&mut self, _time: f64, _strand: u32, _goes_on: bool) {}
    /// A strand has nothing more to do.
    fn end(&mut self, _time: f64, _strand: u32) {}
    /// A visit has ended with its last strand.
    fn finish(&mut self, _time: f64, _visit: u32) {}
    /// Whether there is nothing more to see.
    fn satisfied(&self) -> bool {
        false
    }
}

/// Looks away.
impl Probe for () {}

/// Which operations a probe writes down: so many, after so many others.
#[derive(Debug)]
pub(super) struct Wanted {
    first: u64,
    last: u64,
    begun: u64,
    ended: bool,
    /// Operations that were written down whole.
    pub done: u64,
}

impl Wanted {
    pub fn new(skip: u64, operations: u64) -> Self {
        Self { first: skip, last: skip.saturating_add(operations), begun: 0, ended: operations == 0, done: 0 }
    }

    /// An operation begins; its number among those wanted, from 0, if it is one of them.
    pub fn begins(&mut self) -> Option<u64> {
        let number = self.begun;
        self.begun += 1;
        ((self.first..self.last).contains(&number) && !self.ended).then(|| number - self.first)
    }

    /// Nobody wants more.
    pub fn stop(&mut self) {
        self.ended = true;
    }

    pub fn satisfied(&self) -> bool {
        self.ended || self.done + self.first >= self.last
    }
}

/// Notes what a number stands for from now on; numbers that were not met yet stand for nothing.
pub(super) fn note<T: Copy>(notes: &mut Vec<T>, number: u32, note: T, nothing: T) {
    if notes.len() <= number as usize {
        notes.resize(number as usize + 1, nothing);
    }
    notes[number as usize] = note;
}
