//! Calls of one thread, as guards: a call lasts as long as its guard.

use std::marker::PhantomData;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use crate::buffer::{CANCELLED, COLLOCATED, ONEWAY, Probe};
use crate::chain::{Carrier, Chain};
use crate::clock::stamp;
use crate::function::Function;
use crate::state::{self, Context, Open, Origin, Reach, Sink, Start, State};

impl Function {
    /// Enters the function, on the thread of its caller: the fused start of a collocated call; its end is when the guard is dropped. Outside of any call
    /// it begins a chain.
    ///
    /// In an `async` block a guard must not be held over an `.await`, since other tasks run there; use [`Function::run`].
    #[inline]
    #[must_use = "the call ends when the guard is dropped"]
    pub fn enter(&self) -> Call {
        Call(Guard::begin(None, || fused(self)))
    }

    /// Enters the stub: the caller waits for an answer from elsewhere. What must travel with the request is [`Stub::carrier`].
    #[must_use = "the call ends when the guard is dropped"]
    pub fn call(&self) -> Stub {
        Stub { guard: Guard::begin(None, || stub(self, 0)), child: None }
    }

    /// Enters the stub of a one-way call: nobody waits for the function. What must travel with the message is [`Stub::carrier`].
    #[must_use = "the sending ends when the guard is dropped"]
    pub fn send(&self) -> Stub {
        if state::switch() == 0 {
            return Stub { guard: Guard::off(), child: None };
        }
        let child = Arc::new(Chain::root());
        Stub { guard: Guard::begin(Some(&child), || stub(self, ONEWAY)), child: Some(child.carrier()) }
    }

    /// Enters the skeleton: a request is here, with what its stub sent along. Without a carrier, as from a client that is not instrumented, the
    /// function begins a chain, or is a call of the one that the thread is in.
    #[must_use = "the function ends when the guard is dropped"]
    pub fn serve(&self, carrier: Option<Carrier>) -> Call {
        match carrier {
            None => self.enter(),
            Some(carrier) => Call(Guard::begin_chain(carrier, || skeleton(self))),
        }
    }
}

pub(crate) fn fused(function: &Function) -> Start {
    Start { probe: Probe::StubStart, end: Probe::StubEnd, function: function.number(), flags: COLLOCATED }
}

pub(crate) fn stub(function: &Function, flags: u8) -> Start {
    Start { probe: Probe::StubStart, end: Probe::StubEnd, function: function.number(), flags }
}

pub(crate) fn skeleton(function: &Function) -> Start {
    Start { probe: Probe::SkelStart, end: Probe::SkelEnd, function: function.number(), flags: 0 }
}

/// A function that runs, until this is dropped. The guard of [`Function::enter`] and [`Function::serve`].
#[derive(Debug)]
pub struct Call(Guard);

impl Call {
    /// Ends the function as one that was given up.
    pub fn cancel(mut self) {
        self.0.finish(CANCELLED);
    }
}

/// A call that is under way, until this is dropped. The guard of [`Function::call`] and [`Function::send`].
#[derive(Debug)]
pub struct Stub {
    guard: Guard,
    child: Option<Carrier>,
}

impl Stub {
    /// What must travel with the request or message; none where nothing is recorded, or where calls are nested too deeply for a name
    /// ([`LONGEST_NAME`](crate::LONGEST_NAME)).
    pub fn carrier(&self) -> Option<Carrier> {
        self.child.clone().or_else(|| self.guard.carrier())
    }

    /// Ends the call as one that was given up: the answer is not waited for any more.
    pub fn cancel(mut self) {
        self.guard.finish(CANCELLED);
    }
}

/// What a guard puts back.
#[derive(Debug)]
enum Restore {
    Nothing,
    /// The call began a chain; the thread was in this one before.
    Previous(Option<Box<Context>>),
    /// The thread is past the end of its thread-local storage.
    Detached(Box<(Context, Sink)>),
}

/// Where nothing records all of it is one empty option, so that its end is one comparison.
#[derive(Debug)]
struct Guard {
    active: Option<Active>,
    _of_one_thread: PhantomData<*const ()>,
}

/// A call that is recorded.
#[derive(Debug)]
struct Active {
    open: Open,
    restore: Restore,
}

impl Guard {
    #[inline]
    const fn off() -> Self {
        Self { active: None, _of_one_thread: PhantomData }
    }

    #[inline]
    fn on(open: Open, restore: Restore) -> Self {
        Self { active: Some(Active { open, restore }), _of_one_thread: PhantomData }
    }

    /// Where nothing records this is all that there is, and the caller has it in place.
    #[inline]
    fn begin(child: Option<&Arc<Chain>>, start: impl FnOnce() -> Start) -> Self {
        match state::switch() {
            0 => Self::off(),
            switch => Self::begin_on(switch, &start(), child),
        }
    }

    #[inline(never)]
    fn begin_on(switch: u32, start: &Start, child: Option<&Arc<Chain>>) -> Self {
        let begun = state::with(switch, |state| {
            let fresh = match &state.context {
                Some(context) if context.nests() => false,
                Some(_) => {
                    state::count(|counts| &counts.interleaved);
                    true
                }
                None => true,
            };
            if fresh {
                Self::in_chain(state, switch, Chain::root(), start, child)
            } else {
                Self::nested(state, switch, start, child)
            }
        });
        Self::reached(begun, switch, None, start, child)
    }

    fn begin_chain(carrier: Carrier, start: impl FnOnce() -> Start) -> Self {
        let switch = state::switch();
        if switch == 0 {
            return Self::off();
        }
        let start = start();
        let begun =
            state::with(switch, |state| Self::in_chain(state, switch, Chain::of(carrier.clone()), &start, None));
        Self::reached(begun, switch, Some(carrier), &start, None)
    }

    #[inline]
    fn nested(state: &mut State, switch: u32, start: &Start, child: Option<&Arc<Chain>>) -> Self {
        let open = state.open(switch, start, child);
        open.map_or_else(Self::off, |(open, _)| Self::on(open, Restore::Nothing))
    }

    fn in_chain(state: &mut State, switch: u32, chain: Chain, start: &Start, child: Option<&Arc<Chain>>) -> Self {
        let mut previous = state.context.replace(Context::new(chain)).map(Box::new);
        let Some((open, stamp)) = state.open(switch, start, child) else { return Self::off() };
        if let Some(previous) = &mut previous {
            previous.suspend(stamp.cpu);
        }
        Self::on(open, Restore::Previous(previous))
    }

    #[inline]
    fn reached(
        begun: Reach<Self>,
        switch: u32,
        carrier: Option<Carrier>,
        start: &Start,
        child: Option<&Arc<Chain>>,
    ) -> Self {
        match begun {
            Reach::Done(guard) => guard,
            Reach::Past(sink) => Self::detached(sink, switch, carrier, start, child),
            Reach::Not => Self::off(),
        }
    }

    #[cold]
    fn detached(sink: Sink, switch: u32, carrier: Option<Carrier>, start: &Start, child: Option<&Arc<Chain>>) -> Self {
        let mut context = Context::new(carrier.map_or_else(Chain::root, Chain::of));
        let (mut open, event) = start.in_context(&mut context);
        open.generation = state::generation(switch);
        sink.write(switch, &context, event, start, child);
        Self::on(open, Restore::Detached(Box::new((context, sink))))
    }

    fn carrier(&self) -> Option<Carrier> {
        let Active { open, restore } = self.active.as_ref()?;
        if let Restore::Detached(detached) = restore {
            return state::carrier(&detached.0, open.event);
        }
        let made = state::with(state::switch_of(open.generation)?, |state| {
            let context = state.context.as_ref().filter(|context| context.chain.number == open.chain)?;
            state::carrier(context, open.event)
        });
        if let Reach::Done(carrier) = made { carrier } else { None }
    }

    #[inline(never)]
    fn finish(&mut self, flags: u8) {
        let Some(Active { open, restore }) = self.active.take() else { return };
        let Some(switch) = state::switch_of(open.generation) else { return };
        let stamp = stamp(switch);
        if let Restore::Detached(mut detached) = restore {
            let (context, sink) = &mut *detached;
            sink.close(context, &open, stamp, flags);
            return;
        }
        let closed = state::with(switch, |state| {
            if !state.close(&open, stamp, flags) {
                return false;
            }
            if let Restore::Previous(previous) = restore {
                state.context = previous.map(|mut context| {
                    context.resume(stamp.cpu);
                    *context
                });
            }
            true
        });
        if !matches!(closed, Reach::Done(true)) {
            state::count(|counts| &counts.misplaced);
        }
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        if self.active.is_some() {
            self.finish(0);
        }
    }
}

/// Starts a thread as a part of the call that starts it: a chain of its own, forked off here.
///
/// Outside of any call, it is a thread like any other.
///
/// # Panics
/// Where [`std::thread::spawn`] does: the system refuses a thread.
///
/// ```
/// use dyelog_probe::{Function, spawn};
///
/// static COUNT: Function = Function::new("Words", "count");
///
/// let _call = COUNT.enter();
/// let half = spawn(|| 21);
/// assert_eq!(half.join().expect("it does not panic") * 2, 42);
/// ```
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    spawn_with(Builder::new(), work).expect("the system refuses a thread")
}

/// The same, for a thread with a name or a stack of its own.
///
/// # Errors
/// When the system refuses the thread.
pub fn spawn_with<T: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    let forked = Forked(state::origin(state::switch()));
    builder.spawn(move || {
        let _thread = forked.begin();
        work()
    })
}

/// A thread that is to start. One that never does is given up.
struct Forked(Option<Origin>);

impl Forked {
    fn begin(mut self) -> Thread {
        Thread(self.0.take().as_ref().and_then(begin_thread))
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        if let Some(open) = self.0.take().as_ref().and_then(begin_thread) {
            open.finish(CANCELLED);
        }
    }
}

struct Thread(Option<Forking>);

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            open.finish(0);
        }
    }
}

/// A thread that runs in a chain of its own.
struct Forking {
    open: Open,
    previous: Option<Box<Context>>,
}

fn begin_thread(origin: &Origin) -> Option<Forking> {
    let switch = state::switch_of(origin.generation)?;
    let begun = state::with(switch, |state| {
        let sink = state.sink()?;
        let context = Context::new(Chain::root());
        let stamp = stamp(switch);
        sink.branch(&context, origin, stamp);
        let open = Open::branch(origin.generation, context.chain.number);
        let mut previous = state.context.replace(context).map(Box::new);
        if let Some(previous) = &mut previous {
            previous.suspend(stamp.cpu);
        }
        Some(Forking { open, previous })
    });
    if let Reach::Done(forking) = begun { forking } else { None }
}

impl Forking {
    fn finish(self, flags: u8) {
        Guard::on(self.open, Restore::Previous(self.previous)).finish(flags);
    }
}
