//! Calls of tasks, as futures: at each poll the context of the task comes onto the thread, and goes off it again.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, ready};

use pin_project_lite::pin_project;

use crate::buffer::{CANCELLED, Counts};
use crate::chain::{Carrier, Chain};
use crate::clock::stamp;
use crate::function::Function;
use crate::guard::{fused, skeleton, stub};
use crate::state::{self, Context, Open, Origin, Reach, Start, State};

impl Function {
    /// Runs a future as the body of this function, within the task of its caller: a collocated call from the first poll to the end.
    ///
    /// A task that holds several such futures at once must make branches of them, see [`branch`].
    pub fn run<F: Future>(&self, body: F) -> Instrumented<F> {
        Instrumented::new(Kind::Nested(fused(self)), body)
    }

    /// Calls this function elsewhere: `request` is given what must travel with it, and the future that it makes lasts until the answer is there.
    ///
    /// ```
    /// use dyelog_probe::{Carrier, Function};
    ///
    /// static PRINT: Function = Function::new("Mod::Printer", "print");
    ///
    /// async fn print(page: &str) -> usize {
    ///     PRINT.call_async(|carrier| post(page, carrier)).await
    /// }
    ///
    /// async fn post(page: &str, carrier: Option<Carrier>) -> usize {
    ///     // … puts the carrier into the request, and sends it …
    ///     # drop(carrier);
    ///     page.len()
    /// }
    /// ```
    pub fn call_async<F: Future, M: FnOnce(Option<Carrier>) -> F>(&self, request: M) -> Calling<Closure<M>> {
        Calling::new(self, Closure(request))
    }

    /// Runs a future as the body of this function, for a request that is here. Without a carrier, as from a client that is not instrumented, it
    /// begins a chain, or is a call of the one that the task is in.
    pub fn serve_async<F: Future>(&self, carrier: Option<Carrier>, body: F) -> Instrumented<F> {
        let kind = match carrier {
            Some(carrier) => Kind::Skeleton(skeleton(self), carrier),
            None => Kind::Nested(fused(self)),
        };
        Instrumented::new(kind, body)
    }
}

/// Makes a branch of a future: a chain of its own, forked off here, with processor time of its own. What a task does at once (`join!`, `select!`) must be
/// branches, and so must tasks that it spawns.
///
/// A branch that is dropped before its end is recorded as given up. Outside of any call this is the future and nothing else.
///
/// ```
/// # async fn catalog() {}
/// # async fn stock() {}
/// use dyelog_probe::branch;
///
/// async fn page() {
///     futures_util::join!(branch(catalog()), branch(stock()));
/// }
/// ```
pub fn branch<F: Future>(future: F) -> Instrumented<F> {
    let kind = state::origin(state::switch()).map_or(Kind::Nothing, |origin| Kind::Branch(Box::new(origin)));
    Instrumented::new(kind, future)
}

/// What is recorded of a future.
#[derive(Debug)]
enum Kind {
    Nothing,
    Nested(Start),
    Skeleton(Start, Carrier),
    Branch(Box<Origin>),
}

/// Where the call of a future is.
#[derive(Debug)]
enum Place {
    New,
    /// In a chain of its own, which is here while the future is not polled.
    Own(Open, Option<Box<Context>>),
    /// In the chain of the task that polls it.
    Within(Open),
    Done,
}

/// A call that comes and goes: begun at a first time, then suspended and resumed, at last finished.
#[derive(Debug)]
pub(crate) struct Activity {
    kind: Kind,
    place: Place,
}

/// What was there before an activity went on.
#[derive(Debug)]
pub(crate) enum Before {
    /// Nothing is recorded.
    Nothing,
    /// The chain that the thread was in.
    Chain(Option<Box<Context>>),
    /// The call that was executed in the same chain.
    Call(u32),
}

impl Activity {
    fn new(kind: Kind) -> Self {
        Self { kind, place: Place::New }
    }

    /// A collocated call.
    #[cfg(feature = "tracing")]
    pub(crate) fn call(function: &Function) -> Self {
        Self::new(Kind::Nested(fused(function)))
    }

    /// Whether its first record is written and its last is not.
    #[cfg(feature = "tracing")]
    pub(crate) fn has_begun(&self) -> bool {
        matches!(self.place, Place::Own(..) | Place::Within(_))
    }

    /// Begins, or goes on.
    pub(crate) fn resume(&mut self) -> Before {
        let switch = state::switch();
        if switch == 0 {
            if matches!(self.place, Place::New) {
                self.place = Place::Done;
            }
            return Before::Nothing;
        }
        let reached = state::with(switch, |state| match &mut self.place {
            Place::New => {
                let (place, before) = self.kind.begin(state, switch);
                self.place = place;
                before
            }
            Place::Own(open, context) if open.generation == state::generation(switch) => {
                let Some(mut context) = context.take() else { return Before::Nothing };
                let now = state::cpu_now(switch);
                let mut previous = state.context.take().map(Box::new);
                if let Some(previous) = &mut previous {
                    previous.suspend(now);
                }
                context.resume(now);
                state.context = Some(*context);
                Before::Chain(previous)
            }
            Place::Within(open) => match &mut state.context {
                Some(context) if context.chain.number == open.chain => {
                    Before::Call(std::mem::replace(&mut context.active, open.event))
                }
                _ => Before::Nothing,
            },
            Place::Own(..) | Place::Done => Before::Nothing,
        });
        match reached {
            Reach::Done(before) => before,
            Reach::Past(sink) => {
                Counts::one(&sink.shared.counts.misplaced);
                Before::Nothing
            }
            Reach::Not => Before::Nothing,
        }
    }

    /// The chain that a call by this activity goes on in elsewhere.
    fn carrier(&self) -> Option<Carrier> {
        let (Place::Within(open) | Place::Own(open, _)) = &self.place else { return None };
        let made = state::with(state::switch_of(open.generation)?, |state| {
            let context = state.context.as_ref().filter(|context| context.chain.number == open.chain)?;
            state::carrier(context, open.event)
        });
        if let Reach::Done(carrier) = made { carrier } else { None }
    }

    /// Goes off the thread until it is resumed.
    pub(crate) fn suspend(&mut self, before: Before) {
        let (Place::Within(open) | Place::Own(open, _)) = &self.place else { return };
        let Some(switch) = state::switch_of(open.generation) else { return };
        let reached = state::with(switch, |state| match (before, &mut self.place) {
            (Before::Chain(previous), Place::Own(open, place)) => {
                let now = state::cpu_now(switch);
                let own = state.context.take();
                state.context = previous.map(|mut previous| {
                    previous.resume(now);
                    *previous
                });
                let Some(mut own) = own.filter(|context| context.chain.number == open.chain) else { return false };
                own.suspend(now);
                *place = Some(Box::new(own));
                true
            }
            (Before::Call(active), Place::Within(open)) => {
                let context = state.context.as_mut().filter(|context| context.chain.number == open.chain);
                context.is_some_and(|context| {
                    context.active = active;
                    true
                })
            }
            _ => true,
        });
        if let Reach::Done(false) = reached {
            self.place = Place::Done;
            state::count(|counts| &counts.misplaced);
        }
    }

    /// Ends the call.
    pub(crate) fn finish(&mut self, before: Before, flags: u8) {
        let (Place::Within(open) | Place::Own(open, _)) = std::mem::replace(&mut self.place, Place::Done) else {
            return;
        };
        let Some(switch) = state::switch_of(open.generation) else { return };
        let stamp = stamp(switch);
        let reached = state::with(switch, |state| {
            let closed = !matches!(before, Before::Nothing) && state.close(&open, stamp, flags);
            match before {
                Before::Chain(previous) => {
                    state.context = previous.map(|mut previous| {
                        previous.resume(stamp.cpu);
                        *previous
                    });
                }
                // What lies around it goes on, even where its futures end in another order than they began.
                Before::Call(active) => {
                    if let Some(context) = state.context.as_mut().filter(|context| context.chain.number == open.chain) {
                        context.active = active;
                    }
                }
                Before::Nothing => {}
            }
            closed
        });
        if !matches!(reached, Reach::Done(true)) {
            state::count(|counts| &counts.misplaced);
        }
    }
}

impl Kind {
    /// Writes the first record, and puts the chain onto the thread.
    fn begin(&mut self, state: &mut State, switch: u32) -> (Place, Before) {
        let nothing = (Place::Done, Before::Nothing);
        let (chain, start) = match std::mem::replace(self, Self::Nothing) {
            Self::Nothing => return nothing,
            Self::Branch(origin) => return begin_branch(&origin, state, switch).unwrap_or(nothing),
            Self::Skeleton(start, carrier) => (Chain::of(carrier), start),
            Self::Nested(start) => {
                let active = state.context.as_ref().map(|context| (context.nests(), context.active));
                if let Some((true, active)) = active {
                    let Some((open, _)) = state.open(switch, &start, None) else { return nothing };
                    return (Place::Within(open), Before::Call(active));
                }
                if active.is_some() {
                    state::count(|counts| &counts.interleaved);
                }
                (Chain::root(), start)
            }
        };
        let mut previous = state.context.replace(Context::new(chain)).map(Box::new);
        let Some((open, stamp)) = state.open(switch, &start, None) else { return nothing };
        if let Some(previous) = &mut previous {
            previous.suspend(stamp.cpu);
        }
        (Place::Own(open, None), Before::Chain(previous))
    }
}

fn begin_branch(origin: &Origin, state: &mut State, switch: u32) -> Option<(Place, Before)> {
    if origin.generation != state::generation(switch) {
        return None;
    }
    let context = Context::new(Chain::root());
    let stamp = stamp(switch);
    state.sink()?.branch(&context, origin, stamp);
    let open = Open::branch(origin.generation, context.chain.number);
    let mut previous = state.context.replace(context).map(Box::new);
    if let Some(previous) = &mut previous {
        previous.suspend(stamp.cpu);
    }
    Some((Place::Own(open, None), Before::Chain(previous)))
}

/// An activity while its future is polled; suspended when that is over, also by a panic.
struct Polled<'a> {
    activity: &'a mut Activity,
    before: Before,
}

impl<'a> Polled<'a> {
    fn new(activity: &'a mut Activity) -> Self {
        let before = activity.resume();
        Self { activity, before }
    }

    fn finish(mut self, flags: u8) {
        let before = std::mem::replace(&mut self.before, Before::Nothing);
        self.activity.finish(before, flags);
    }
}

impl Drop for Polled<'_> {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut self.before, Before::Nothing);
        self.activity.suspend(before);
    }
}

pin_project! {
    /// A future whose run is recorded: of [`Function::run`], [`Function::serve_async`] and [`branch`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Instrumented<F> {
        activity: Activity,
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for Instrumented<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            give_up(this.activity, || this.future.set(None));
        }
    }
}

/// Ends what did not come to its end. What it holds is dropped within it, so that calls inside of it end first.
fn give_up(activity: &mut Activity, drop_inside: impl FnOnce()) {
    let forked = matches!((&activity.place, &activity.kind), (Place::New, Kind::Branch(_)));
    if forked || matches!(activity.place, Place::Own(..) | Place::Within(_)) {
        let polled = Polled::new(activity);
        drop_inside();
        polled.finish(CANCELLED);
    }
}

impl<F> Instrumented<F> {
    fn new(kind: Kind, future: F) -> Self {
        Self { activity: Activity::new(kind), future: Some(future) }
    }
}

impl<F: Future> Future for Instrumented<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let polled = Polled::new(this.activity);
        let future = this.future.as_mut().as_pin_mut().expect("a future is not polled after its end");
        let output = ready!(future.poll(task));
        // What it holds is dropped as a part of it.
        this.future.set(None);
        polled.finish(0);
        Poll::Ready(output)
    }
}

/// What makes the future of a call, once it is known what must travel with the request. Closures do; see [`Function::call_async`].
pub trait Request {
    /// The future that lasts until the answer is there.
    type Future: Future;

    /// Sends the request.
    fn send(self, carrier: Option<Carrier>) -> Self::Future;
}

/// A closure as a [`Request`].
#[derive(Clone, Copy, Debug)]
pub struct Closure<M>(M);

impl<F: Future, M: FnOnce(Option<Carrier>) -> F> Request for Closure<M> {
    type Future = F;

    fn send(self, carrier: Option<Carrier>) -> F {
        self.0(carrier)
    }
}

pin_project! {
    /// The future of [`Function::call_async`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Calling<M: Request> {
        activity: Activity,
        request: Option<M>,
        #[pin]
        future: Option<M::Future>,
    }

    impl<M: Request> PinnedDrop for Calling<M> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            give_up(this.activity, || this.future.set(None));
        }
    }
}

impl<M: Request> Calling<M> {
    pub(crate) fn new(function: &Function, request: M) -> Self {
        Self { activity: Activity::new(Kind::Nested(stub(function, 0))), request: Some(request), future: None }
    }
}

impl<M: Request> Future for Calling<M> {
    type Output = <M::Future as Future>::Output;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let polled = Polled::new(this.activity);
        if let Some(request) = this.request.take() {
            let carrier = polled.activity.carrier();
            this.future.set(Some(request.send(carrier)));
        }
        let future = this.future.as_mut().as_pin_mut().expect("a future is not polled after its end");
        let output = ready!(future.poll(task));
        this.future.set(None);
        polled.finish(0);
        Poll::Ready(output)
    }
}
