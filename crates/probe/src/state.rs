//! What each thread knows: its buffer, and where in which causal chain it is (the function-transportable log of 2003 §2, in thread-local storage).

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::buffer::{Buffer, Counts, NO_CHAIN, Probe, Raw, Shared};
use crate::chain::{Carrier, Chain};
use crate::clock::{CPU, NONE, Stamp, WALL, stamp, thread_time};

/// What is on: the generation of the recorder, and in the low bits its clocks; no clocks, nothing on.
static SWITCH: AtomicU32 = AtomicU32::new(0);
/// How many bits the clocks take.
const CLOCK_BITS: u32 = 3;

static SHARED: Mutex<Option<Arc<Shared>>> = Mutex::new(None);

/// The switch as a probe finds it; 0 when nothing records.
#[inline]
pub(crate) fn switch() -> u32 {
    let switch = SWITCH.load(Ordering::Relaxed);
    if switch & (WALL | CPU) == 0 { 0 } else { switch }
}

/// The switch, if the recorder of that generation still runs.
#[inline]
pub(crate) fn switch_of(generation: u32) -> Option<u32> {
    Some(switch()).filter(|switch| *switch != 0 && self::generation(*switch) == generation)
}

pub(crate) const fn generation(switch: u32) -> u32 {
    switch >> CLOCK_BITS
}

/// Turns probes on for a recorder; none if another one runs.
pub(crate) fn turn_on(bits: u32) -> Option<Arc<Shared>> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if shared.is_some() {
        return None;
    }
    // The generation wraps after 2^29 recorders.
    let generation = (SWITCH.load(Ordering::Relaxed) >> CLOCK_BITS).wrapping_add(1) << CLOCK_BITS >> CLOCK_BITS;
    let new = Arc::new(Shared::of(generation));
    *shared = Some(Arc::clone(&new));
    SWITCH.store(generation << CLOCK_BITS | bits, Ordering::Release);
    Some(new)
}

/// Turns probes off; the recorder may still be writing.
pub(crate) fn turn_off() {
    SWITCH.fetch_and(!((1 << CLOCK_BITS) - 1), Ordering::Relaxed);
}

/// Lets another recorder start.
pub(crate) fn release() {
    *SHARED.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Where a thread, a task or a branch is in its chain.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) chain: Arc<Chain>,
    /// The number of the next event.
    pub(crate) next: u32,
    /// What its processor time is ahead of that of the thread. While it is suspended, what it used in all.
    pub(crate) offset: i64,
    /// The call that is executed now, and the innermost one that is open, by the numbers of their starts; they differ where a task holds several
    /// futures.
    pub(crate) active: u32,
    pub(crate) innermost: u32,
}

impl Context {
    pub(crate) fn new(chain: Chain) -> Self {
        Self { chain: Arc::new(chain), next: 1, offset: 0, active: 0, innermost: 0 }
    }

    pub(crate) fn event(&mut self) -> u32 {
        let event = self.next;
        self.next = event.saturating_add(1);
        event
    }

    /// Whether a call that starts now lies within all that are open.
    pub(crate) fn nests(&self) -> bool {
        self.active == self.innermost
    }

    /// Goes on running on this thread, whose processor time is `now`.
    pub(crate) fn resume(&mut self, now: i64) {
        if now != NONE {
            self.offset = self.offset.wrapping_sub(now);
        }
    }

    /// Stops running.
    pub(crate) fn suspend(&mut self, now: i64) {
        if now != NONE {
            self.offset = self.offset.wrapping_add(now);
        }
    }
}

/// A call that is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) generation: u32,
    /// The number of its chain in this process.
    pub(crate) chain: u64,
    pub(crate) event: u32,
    outer: u32,
    pub(crate) function: u32,
    pub(crate) end: Probe,
    pub(crate) flags: u8,
}

impl Open {
    /// A thread or a branch, which is no call: its end is all that there is of it in its chain.
    pub(crate) fn branch(generation: u32, chain: u64) -> Self {
        Self { generation, chain, event: 0, outer: 0, function: 0, end: Probe::ThreadEnd, flags: 0 }
    }
}

/// A thread's part.
#[derive(Debug)]
pub(crate) struct State {
    generation: u32,
    sink: Option<Sink>,
    pub(crate) context: Option<Context>,
}

/// Where records of a thread go.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    pub(crate) shared: Arc<Shared>,
    pub(crate) buffer: Arc<Buffer>,
}

thread_local! {
    static STATE: RefCell<State> = const { RefCell::new(State { generation: 0, sink: None, context: None }) };
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(sink) = &self.sink {
            sink.buffer.end();
        }
    }
}

/// What to do where the thread's part cannot be reached.
pub(crate) enum Reach<R> {
    Done(R),
    /// The thread is past the end of its thread-local storage; records go elsewhere.
    Past(Sink),
    /// Nothing records, or a probe was met while another one was at work.
    Not,
}

/// Runs `act` on the part of the calling thread, for the recorder that `switch` is of.
#[inline]
pub(crate) fn with<R>(switch: u32, act: impl FnOnce(&mut State) -> R) -> Reach<R> {
    let generation = generation(switch);
    let reached = STATE.try_with(|state| {
        let mut state = state.try_borrow_mut().ok()?;
        if state.generation != generation && !state.join(generation) {
            return None;
        }
        Some(act(&mut state))
    });
    match reached {
        Ok(Some(done)) => Reach::Done(done),
        Ok(None) => Reach::Not,
        Err(_) => past(generation),
    }
}

#[cold]
fn past<R>(generation: u32) -> Reach<R> {
    let shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    match shared.as_ref().filter(|shared| shared.generation == generation) {
        Some(shared) => Reach::Past(Sink { shared: Arc::clone(shared), buffer: Arc::clone(shared.last_resort()) }),
        None => Reach::Not,
    }
}

/// Counts something that should not be.
#[cold]
pub(crate) fn count(which: impl FnOnce(&Counts) -> &std::sync::atomic::AtomicU64) {
    if let Some(shared) = SHARED.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
        Counts::one(which(&shared.counts));
    }
}

impl State {
    /// Takes part in a recorder that started since.
    #[cold]
    fn join(&mut self, generation: u32) -> bool {
        let shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(shared) = shared.filter(|shared| shared.generation == generation) else { return false };
        if let Some(old) = self.sink.take() {
            old.buffer.end();
        }
        let buffer = shared.register();
        self.sink = Some(Sink { shared, buffer });
        self.generation = generation;
        self.context = None;
        true
    }

    pub(crate) fn sink(&self) -> Option<&Sink> {
        self.sink.as_ref()
    }

    /// Opens a call in the context, which must be there; the clocks are read last.
    #[inline]
    pub(crate) fn open(&mut self, switch: u32, start: &Start, child: Option<&Arc<Chain>>) -> Option<(Open, Stamp)> {
        let (Some(context), Some(sink)) = (&mut self.context, &self.sink) else { return None };
        let (mut open, event) = start.in_context(context);
        open.generation = self.generation;
        let stamp = sink.write(switch, context, event, start, child);
        Some((open, stamp))
    }

    /// Closes a call, at a time that was read before; false where the context is of another chain.
    #[inline]
    pub(crate) fn close(&mut self, open: &Open, stamp: Stamp, flags: u8) -> bool {
        let (Some(context), Some(sink)) = (&mut self.context, &self.sink) else { return false };
        if context.chain.number != open.chain {
            return false;
        }
        sink.close(context, open, stamp, flags);
        true
    }
}

/// What the record at the start of a call says.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) probe: Probe,
    pub(crate) end: Probe,
    pub(crate) function: u32,
    pub(crate) flags: u8,
}

impl Start {
    #[inline]
    pub(crate) fn in_context(&self, context: &mut Context) -> (Open, u32) {
        let event = context.event();
        let open = Open {
            generation: 0,
            chain: context.chain.number,
            event,
            outer: context.innermost,
            function: self.function,
            end: self.end,
            flags: self.flags,
        };
        context.innermost = event;
        context.active = event;
        (open, event)
    }
}

impl Sink {
    /// Writes the record of a start; gives what the clocks of the thread showed.
    #[inline]
    pub(crate) fn write(
        &self,
        switch: u32,
        context: &Context,
        event: u32,
        start: &Start,
        child: Option<&Arc<Chain>>,
    ) -> Stamp {
        let mut read = Stamp { begin: NONE, end: NONE, cpu: NONE };
        self.buffer.push(&self.shared, |chunk| {
            let place = chunk.chain(&context.chain);
            let child = child.map_or(NO_CHAIN, |child| chunk.child(child));
            read = stamp(switch);
            let Start { probe, function, flags, .. } = *start;
            Raw { stamp: of_branch(read, context), chain: place, child, event, function, probe, flags }
        });
        read
    }

    /// Writes the record of the end of a call.
    #[inline]
    pub(crate) fn close(&self, context: &mut Context, open: &Open, stamp: Stamp, flags: u8) {
        let event = context.event();
        context.innermost = open.outer;
        context.active = open.outer;
        let (function, probe, flags) = (open.function, open.end, open.flags & !crate::buffer::ONEWAY | flags);
        let stamp = of_branch(stamp, context);
        self.buffer.push(&self.shared, |chunk| {
            let chain = chunk.chain(&context.chain);
            Raw { stamp, chain, child: NO_CHAIN, event, function, probe, flags }
        });
    }

    /// Writes the start of a thread or branch: an event of the chain that it was started in, at the times of its own.
    pub(crate) fn branch(&self, context: &Context, from: &Origin, stamp: Stamp) {
        let stamp = of_branch(stamp, context);
        self.buffer.push(&self.shared, |chunk| {
            let chain = chunk.chain(&from.chain);
            let child = chunk.child(&context.chain);
            let function = chunk.label(&from.label);
            Raw { stamp, chain, child, event: from.event, function, probe: Probe::ThreadStart, flags: 0 }
        });
    }
}

/// The place in a chain where a thread or a branch starts.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) generation: u32,
    pub(crate) chain: Arc<Chain>,
    pub(crate) event: u32,
    pub(crate) label: Arc<str>,
}

/// The place where the calling thread is now, as an event of its chain; none outside of calls.
pub(crate) fn origin(switch: u32) -> Option<Origin> {
    if switch == 0 {
        return None;
    }
    let made = with(switch, |state| {
        let generation = state.generation;
        let label = Arc::clone(&state.sink()?.buffer.label);
        let context = state.context.as_mut()?;
        if !context.nests() {
            count(|counts| &counts.interleaved);
            return None;
        }
        let event = context.event();
        Some(Origin { generation, chain: Arc::clone(&context.chain), event, label })
    });
    match made {
        Reach::Done(origin) => origin,
        Reach::Past(_) | Reach::Not => None,
    }
}

/// The times of a branch, whose processor time is its own.
#[inline]
fn of_branch(stamp: Stamp, context: &Context) -> Stamp {
    if stamp.cpu == NONE { stamp } else { Stamp { cpu: stamp.cpu.wrapping_add(context.offset), ..stamp } }
}

/// The processor time of the thread, if it is recorded.
#[inline]
pub(crate) fn cpu_now(switch: u32) -> i64 {
    if switch & CPU == 0 { NONE } else { thread_time() }
}

/// The carrier for the function that an event calls.
pub(crate) fn carrier(context: &Context, event: u32) -> Option<Carrier> {
    let carrier = context.chain.below(event);
    if carrier.is_none() {
        count(|counts| &counts.too_deep);
    }
    carrier
}
