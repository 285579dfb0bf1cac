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
