//! Observers of a simulation, event by event.

/// Hears all that happens. Strands and visits have numbers; a number is given again when its bearer has ended. Times
/// are simulated seconds.
pub trait Probe {
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

/// Watches on behalf of another.
impl Probe for &mut dyn Probe {
    fn cycle(&mut self, time: f64, visit: u32, entry: u32) {
        (**self).cycle(time, visit, entry);
    }

    fn open(&mut self, time: f64, visit: u32, entry: u32) {
        (**self).open(time, visit, entry);
    }

    fn call(&mut self, time: f64, strand: u32, visit: u32, entry: u32, synchronous: bool) {
        (**self).call(time, strand, visit, entry, synchronous);
    }

    fn forward(&mut self, time: f64, strand: u32, visit: u32, entry: u32) {
        (**self).forward(time, strand, visit, entry);
    }

    fn accept(&mut self, time: f64, visit: u32, strand: u32) {
        (**self).accept(time, visit, strand);
    }

    fn slice(&mut self, time: f64, strand: u32, demand: f64) {
        (**self).slice(time, strand, demand);
    }

    fn reply(&mut self, time: f64, strand: u32, client: Option<u32>, last: bool) {
        (**self).reply(time, strand, client, last);
    }

    fn fork(&mut self, time: f64, strand: u32, branch: u32) {
        (**self).fork(time, strand, branch);
    }

    fn join(&mut self, time: f64, strand: u32, goes_on: bool) {
        (**self).join(time, strand, goes_on);
    }

    fn end(&mut self, time: f64, strand: u32) {
        (**self).end(time, strand);
    }

    fn finish(&mut self, time: f64, visit: u32) {
        (**self).finish(time, visit);
    }

    fn satisfied(&self) -> bool {
        (**self).satisfied()
    }
}
