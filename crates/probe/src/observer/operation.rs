//! Operations and the guards that observe them.

use std::marker::PhantomData;

use crate::clock::{self, WALL};
use crate::function::Function;
use crate::observer::table::{self, Key, Kind};

/// How an operation of an exported interface is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// The caller waits for the reply.
    Synchronous,
    /// The caller does not wait.
    Asynchronous,
    /// The request is passed on by an asynchronous one; its last receiver replies.
    Forwarding,
}

/// How an operation of an imported interface is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The caller waits for the reply.
    Synchronous,
    /// The caller does not wait.
    Asynchronous,
    /// The caller goes on, and waits for the reply later: the guard lives until then.
    Deferred,
}

/// An input operation: one that the process exports. Made once, as a `static`.
#[derive(Debug)]
pub struct Input {
    function: Function,
    kind: Kind,
}

impl Input {
    /// An operation of an interface.
    pub const fn new(interface: &'static str, operation: &'static str, service: Service) -> Self {
        let kind = match service {
            Service::Synchronous => Kind::Served,
            Service::Asynchronous => Kind::ServedAsynchronously,
            Service::Forwarding => Kind::Forwarded,
        };
        Self { function: Function::new(interface, operation), kind }
    }

    /// The cycle of a client, from one think time to the next: the one operation of its virtual interface.
    pub const fn cycle(name: &'static str) -> Self {
        Self { function: Function::new("", name), kind: Kind::Cycle }
    }

    /// Begins an execution on this thread; it ends where the guard is dropped. Output operations started meanwhile on this thread are its own.
    #[inline]
    pub fn start(&self) -> Inside {
        let timer = Timer::start(|| Key { within: 0, function: self.function.number(), kind: self.kind });
        let before = if timer.generation == 0 { 0 } else { table::enter(timer.key.function) };
        Inside { timer, before, thread: PhantomData }
    }

    /// Begins an execution that may go on on other threads, as tasks do.
    #[inline]
    pub fn begin(&self) -> Task {
        Task { timer: Timer::start(|| Key { within: 0, function: self.function.number(), kind: self.kind }) }
    }
}

/// An output operation: one that the process imports. Made once, as a `static`, or once a connection.
#[derive(Clone, Debug)]
pub struct Output {
    function: Function,
    kind: Kind,
}

impl Output {
    /// An operation of an interface.
    pub const fn new(interface: &'static str, operation: &'static str, request: Request) -> Self {
        let kind = match request {
            Request::Synchronous => Kind::Called,
            Request::Asynchronous => Kind::Sent,
            Request::Deferred => Kind::Deferred,
        };
        Self { function: Function::new(interface, operation), kind }
    }

    /// The same operation at a certain protocol sequence, such as `tcp:10.0.0.2:4000`. Make it when connecting and keep it.
    #[must_use]
    pub fn at(&self, protocol: impl Into<String>) -> Self {
        Self { function: self.function.of(protocol), kind: self.kind }
    }

    /// Begins a call on this thread, within the input operation that runs there; it ends where the guard is dropped.
    #[inline]
    pub fn start(&self) -> Outside {
        let key = || Key { within: table::within(), function: self.function.number(), kind: self.kind };
        Outside { _timer: Timer::start(key), thread: PhantomData }
    }
}

/// An execution under way: what it is, and when it began. Generation 0 where nothing observes.
#[derive(Debug)]
struct Timer {
    generation: u32,
    key: Key,
    begin: i64,
}

impl Timer {
    #[inline]
    fn start(key: impl FnOnce() -> Key) -> Self {
        let generation = table::generation();
        if generation == 0 {
            return Self { generation, key: Key { within: 0, function: 0, kind: Kind::Called }, begin: 0 };
        }
        let key = key();
        if key.kind.is_input() {
            table::arrive();
        }
        Self { generation, key, begin: clock::ticks(WALL) }
    }
}

impl Drop for Timer {
    #[inline]
    fn drop(&mut self) {
        if self.generation == 0 {
            return;
        }
        let took = clock::ticks(WALL).wrapping_sub(self.begin).max(0);
        if self.key.kind.is_input() {
            table::depart();
        }
        table::add(self.generation, self.key, took as u64);
    }
}

/// An input operation on one thread, until it is dropped.
#[derive(Debug)]
#[must_use = "the operation ends where the guard is dropped"]
pub struct Inside {
    timer: Timer,
    before: u32,
    /// It belongs to its thread.
    thread: PhantomData<*const ()>,
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        if self.timer.generation != 0 {
            table::enter(self.before);
        }
    }
}

/// An output operation on one thread, until it is dropped.
#[derive(Debug)]
#[must_use = "the call ends where the guard is dropped"]
pub struct Outside {
    _timer: Timer,
    thread: PhantomData<*const ()>,
}

/// An input operation of a task, until it is dropped.
#[derive(Debug)]
#[must_use = "the operation ends where the guard is dropped"]
pub struct Task {
    timer: Timer,
}

impl Task {
    /// Begins a call of this task; it ends where the guard is dropped.
    #[inline]
    pub fn call(&self, output: &Output) -> Waiting {
        let within = self.timer.key.function;
        let key = || Key { within, function: output.function.number(), kind: output.kind };
        Waiting { _timer: Timer::start(key) }
    }
}

/// An output operation of a task, until it is dropped.
#[derive(Debug)]
#[must_use = "the call ends where the guard is dropped"]
pub struct Waiting {
    _timer: Timer,
}
