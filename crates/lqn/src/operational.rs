//! Operational analysis: what an invocation of each entry does on average, and what it asks of the model when nothing queues.
//!
//! Visit ratios, service demands and holding times in the sense of Denning and Buzen (1978), for entries instead of stations.
//! [`crate::bounds`] and the lint come to their sums by it, and solvers take its order of entries.

use crate::flow::ActivityGraph;
use crate::invocation::{Invocation, InvocationError, StepWork};
use crate::{Body, CallKind, EntryId, Model, Work};

/// Why a model has no operational analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnalysisError {
    /// The activities of an entry have no meaning.
    Activities {
        /// The entry.
        entry: EntryId,
        /// What is wrong with them.
        error: InvocationError,
    },
    /// Entries that call or forward to each other in a circle: one such circle, each before those it calls.
    CallCycle(Vec<EntryId>),
    /// More phases and activities than the limit, those that entries share counted as often as they do.
    TooLarge,
}

/// Calls of one entry to another in an invocation.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct MeanCalls {
    /// The target.
    pub to: EntryId,
    /// Whether the caller waits.
    pub kind: CallKind,
    /// Their mean number, to all copies that are called.
    pub mean: f64,
}

/// What an invocation of an entry does on average.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MeanInvocation {
    /// Time at its processor, seconds; the processor's speed is taken into account.
    pub demand: f64,
    /// Pure delays, seconds.
    pub delay: f64,
    /// Calls, in the order of phases and activities.
    pub calls: Vec<MeanCalls>,
}

impl MeanInvocation {
    /// The entries whose replies it waits for.
    pub fn waits_for(&self) -> impl Iterator<Item = EntryId> {
        self.calls.iter().filter(|call| call.kind == CallKind::Synchronous).map(|call| call.to)
    }
}

/// For how long an invocation holds what, when nothing queues; seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HoldingTime {
    /// Until the entry replies or forwards.
    pub first_phase: f64,
    /// Until the thread that serves it is free.
    pub thread: f64,
    /// Until the caller has the reply, wherever it is forwarded.
    pub reply: f64,
}

/// The operational analysis of a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OperationalAnalysis<'a> {
    /// The model.
    pub model: &'a Model,
    /// By entry: its strands.
    pub invocations: Vec<Invocation>,
    /// By entry: what an invocation does on average.
    pub means: Vec<MeanInvocation>,
    /// All entries, callers before those they call or forward to.
    pub order: Vec<EntryId>,
}

impl<'a> OperationalAnalysis<'a> {
    /// Analyses a model whose references all lead to something, of no more than `limit` phases and activities.
    ///
    /// # Errors
    /// All entries whose activities have no meaning; else a circle of calls, if there is one.
    pub fn new(model: &'a Model, limit: usize) -> Result<Self, Vec<AnalysisError>> {
        let graph = ActivityGraph::new(model);
        let (mut invocations, mut errors, mut total) = (Vec::with_capacity(model.entries.len()), Vec::new(), 0);
        for entry in (0..model.entries.len()).map(EntryId::from) {
            match Invocation::new(model, &graph, entry) {
                Ok(invocation) => {
                    total += invocation.len();
                    invocations.push(invocation);
                }
                Err(error) => errors.push(AnalysisError::Activities { entry, error }),
            }
            if total > limit {
                return Err(vec![AnalysisError::TooLarge]);
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let means: Vec<MeanInvocation> =
            (0..).zip(&invocations).map(|(number, invocation)| mean(model, number, invocation)).collect();
        let order = callers_first(model, &means).map_err(|circle| vec![AnalysisError::CallCycle(circle)])?;
        Ok(Self { model, invocations, means, order })
    }

    /// Visits to each entry, from those that come from outside: calls and forwarding are followed.
    pub fn visits(&self, mut visits: Vec<f64>) -> Vec<f64> {
        for &entry in &self.order {
            let flow = visits[entry.index()];
            if flow <= 0.0 {
                continue;
            }
            for call in &self.means[entry.index()].calls {
                visits[call.to.index()] += flow * call.mean;
            }
            for forward in &self.model.entries[entry.index()].forwarding {
                visits[forward.to.index()] += flow * forward.probability;
            }
        }
        visits
    }

    /// Invocations of each entry in a second because of open arrivals, at all copies of its task. A rate is that of each copy.
    pub fn open_rates(&self) -> Vec<f64> {
        self.visits((0..self.means.len()).map(|entry| self.model.open_rate(entry.into())).collect())
    }

    /// By entry: for how long an invocation holds what, when nothing queues. A fork takes as long as its longest branch at least; one
    /// with a quorum may be shorter, and is left out.
    pub fn holding_times(&self) -> Vec<HoldingTime> {
        let mut held = vec![HoldingTime::default(); self.means.len()];
        for &entry in self.order.iter().rev() {
            let mut own = self.own_holding_time(entry, &held);
            let forwarding = &self.model.entries[entry.index()].forwarding;
            own.reply = own.first_phase;
            own.reply += forwarding.iter().map(|on| on.probability * held[on.to.index()].reply).sum::<f64>();
            held[entry.index()] = own;
        }
        held
    }

    fn own_holding_time(&self, entry: EntryId, held: &[HoldingTime]) -> HoldingTime {
        let invocation = &self.invocations[entry.index()];
        let task = self.model.entries[entry.index()].task;
        let mut strands = vec![HoldingTime::default(); invocation.strands.len()];
        for (strand, time) in invocation.strands.iter().zip(&mut strands) {
            for step in &strand.steps {
                let work = work(self.model, entry, step.work);
                let waits = work.calls.iter().filter(|call| call.kind == CallKind::Synchronous);
                let called: f64 = waits
                    .map(|call| call.mean * self.model.replicas_called(task, call.to) * held[call.to.index()].reply)
                    .sum();
                let spent = step.visits * (work.demand / self.model.speed(task) + work.think_time + called);
                time.thread += spent;
                time.first_phase += if step.phase == 0 { spent } else { 0.0 };
            }
        }
        // Forks within branches come after those that begin the branches.
        for fork in invocation.forks.iter().rev().filter(|fork| fork.quorum.is_none()) {
            let longest = fork.branches.iter().map(|branch| strands[*branch].thread).fold(0.0, f64::max);
            let time = &mut strands[fork.parent];
            time.thread += fork.visits * longest;
            time.first_phase += if fork.phase == 0 { fork.visits * longest } else { 0.0 };
        }
        strands.first().copied().unwrap_or_default()
    }
}

/// The phase or activity that a step of an entry executes.
pub(crate) fn work(model: &Model, entry: EntryId, step: StepWork) -> &Work {
    match (step, &model.entries[entry.index()].body) {
        (StepWork::Activity(activity), _) => &model.activities[activity.index()].work,
        (StepWork::Phase(phase), Body::Phases(phases)) => &phases[phase],
        (StepWork::Phase(_), Body::Activities(_)) => unreachable!("entries of activities have steps of activities"),
    }
}

fn mean(model: &Model, number: usize, invocation: &Invocation) -> MeanInvocation {
    let entry = EntryId::from(number);
    let task = model.entries[number].task;
    let mut mean = MeanInvocation::default();
    for (strand, runs) in invocation.strands.iter().zip(invocation.runs()) {
        for step in &strand.steps {
            let executions = runs * step.visits;
            let work = work(model, entry, step.work);
            mean.demand += executions * work.demand / model.speed(task);
            mean.delay += executions * work.think_time;
            mean.calls.extend(work.calls.iter().map(|call| MeanCalls {
                to: call.to,
                kind: call.kind,
                mean: executions * call.mean * model.replicas_called(task, call.to),
            }));
        }
    }
    mean
}

/// Entries in an order in which callers come before those they call or forward to; else a circle.
fn callers_first(model: &Model, means: &[MeanInvocation]) -> Result<Vec<EntryId>, Vec<EntryId>> {
    let targets = |entry: usize| {
        let calls = means[entry].calls.iter().map(|call| call.to.index());
        calls.chain(model.entries[entry].forwarding.iter().map(|forward| forward.to.index()))
    };
    let mut callers = vec![0_usize; means.len()];
    for target in (0..means.len()).flat_map(targets) {
        callers[target] += 1;
    }
    let mut order: Vec<usize> = (0..means.len()).filter(|&entry| callers[entry] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        for target in targets(order[next]) {
            callers[target] -= 1;
            if callers[target] == 0 {
                order.push(target);
            }
        }
        next += 1;
    }
    if order.len() == means.len() {
        return Ok(order.into_iter().map(EntryId::from).collect());
    }
    // Every entry that is left has a caller that is left: going back from any of them runs into a circle.
    let left: Vec<usize> = (0..means.len()).filter(|&entry| callers[entry] > 0).collect();
    let mut back = vec![usize::MAX; means.len()];
    for &entry in &left {
        targets(entry).for_each(|target| back[target] = entry);
    }
    let mut seen = vec![usize::MAX; means.len()];
    let (mut path, mut at) = (Vec::new(), left[0]);
    while seen[at] == usize::MAX {
        seen[at] = path.len();
        path.push(at);
        at = back[at];
    }
    let mut circle = path.split_off(seen[at]);
    circle.reverse();
    // Begin where the model does.
    let first = (0..circle.len()).min_by_key(|&place| circle[place]).unwrap_or_default();
    circle.rotate_left(first);
    Err(circle.into_iter().map(EntryId::from).collect())
}

#[cfg(test)]
mod tests {
    use super::{AnalysisError, OperationalAnalysis};
    use crate::bounds::AsymptoticBounds;
    use crate::flow::FlowError;
    use crate::invocation::InvocationError;
    use crate::{ActivityId, Body, Fork, Model, parse_any};

    fn parse(text: &str) -> Model {
        parse_any("test.lqn", text).expect("the text is a model").0
    }

    fn first(model: &Model) -> ActivityId {
        let Body::Activities(first) = model.entries[1].body else { panic!("the entry has activities") };
        first
    }

    /// One user. A loop runs three times: it forks into `a` (10 s) and `b` (1 s), and `b` into `c` (5 s) and `d` (2 s).
    fn nested() -> Model {
        parse(
            "G \"\" 1e-5 50 -1\nP 2\np c i\np q f\n-1\nT 2\nt u r visit -1 c\nt w n serve -1 q\n-1\n\
             E 2\ns visit 0 -1\ny visit serve 1 -1\nA serve start\n-1\n\
             A w\ns start 0\ns body 0\ns a 10\ns b 1\ns c 5\ns d 2\ns e 0\ns f 0\ns last 0\n:\n\
             start -> 3*body, last;\nbody -> a & b;\nb -> c & d;\nc & d -> e;\na & e -> f;\nlast[serve]\n-1\n",
        )
    }

    #[test]
    fn a_fork_within_a_branch_lengthens_the_branch() {
        let model = nested();
        let analysis = OperationalAnalysis::new(&model, 100).expect("it has a meaning");
        assert!((analysis.means[1].demand - 3.0 * 18.0).abs() < 1e-9, "all branches ask for the processor");
        let held = analysis.holding_times();
        assert!((held[1].thread - 30.0).abs() < 1e-9, "`a` takes longer than `b` with `c`: {:?}", held[1]);
        let source = &AsymptoticBounds::new(analysis).closed()[0];
        assert!((source.response - 30.0).abs() < 1e-9);
        assert!((source.limits[0].seconds - 54.0).abs() < 1e-9, "the processor is the tightest");
    }

    #[test]
    fn open_arrivals_load_what_they_are_forwarded_to() {
        let model = parse(
            "G \"\" 1e-5 50 -1\nP 2\np a f\np b f\n-1\nT 2\nt front n enter -1 a\nt back n serve -1 b\n-1\n\
             E 2\na enter 2\ns enter 0.1 -1\nF enter serve 0.5 -1\ns serve 0.4 -1\n-1\n",
        );
        let analysis = OperationalAnalysis::new(&model, 100).expect("it has a meaning");
        let bounds = AsymptoticBounds::new(analysis);
        let (open, rooms) = (bounds.open(), bounds.rooms());
        assert!((open[0].response - 0.3).abs() < 1e-12, "half of them go on for 0.4 s");
        let back = rooms.iter().filter(|room| (room.utilization - 0.4).abs() < 1e-12).count();
        assert_eq!(back, 2, "the processor and the thread of `back`: {rooms:?}");
    }

    #[test]
    fn what_has_no_analysis_says_why() {
        let mut model = nested();
        let start = first(&model);
        let last = model.tasks[1].precedences.last_mut().expect("there are precedences");
        last.fork = Some(Fork::Sequence(start));
        let errors = OperationalAnalysis::new(&model, 100).expect_err("it runs in a circle");
        let error = InvocationError::Flow(FlowError::TwoWays(start));
        assert_eq!(errors, [AnalysisError::Activities { entry: 1usize.into(), error }]);
        assert_eq!(OperationalAnalysis::new(&nested(), 3).expect_err("too long"), [AnalysisError::TooLarge]);
    }
}
