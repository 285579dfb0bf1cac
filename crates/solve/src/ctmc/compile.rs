//! From a model to instructions. An activity graph is compiled once for each entry that starts it.

use rustc_hash::FxHashMap;

use crate::ctmc::program::{CtmcProgram, NONE, Order, ProgramStep, Source, Station, StepId, Threads};
use crate::numeric::two_moment::Distribution;
use crate::prepare::plan::{ModelPlan, PlannedWork};
use dyelog_lqn::flow::{ActivityGraph, BranchKind, Visit, Walk};
use dyelog_lqn::model::{ActivityId, Body, EntryId, Fork, Join, Scheduling, TaskId};

/// Programs longer than this are left to others.
const MOST_PROGRAM_STEPS: usize = 20_000;
/// Deterministic calls of a phase that are never many.
const FEW_CALLS: f64 = 2.0;

/// What is taken for something with fewer states.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rough {
    /// Many deterministic calls of a phase as geometric.
    pub calls: bool,
    /// Work of customers where nobody holds them up as exponential.
    pub customers: bool,
}

/// Compiles a model; nothing where it has something that instructions cannot say.
pub(super) fn compile(plan: &ModelPlan, rough: Rough) -> Option<CtmcProgram> {
    let model = plan.model;
    let mut compiler = Compiler {
        plan,
        program: CtmcProgram::default(),
        graph: ActivityGraph::new(model),
        rough,
        entry: NONE,
        work: NONE,
        phase: 0,
    };
    compiler.elements()?;
    let count = model.entries.len();
    let program = &mut compiler.program;
    (program.begin, program.end) = (vec![0; count], vec![0; count]);
    for index in 0..count {
        compiler.entry(index)?;
    }
    compiler.sources()?;
    compiler.trails();
    let mut program = compiler.program;
    program.find_reach();
    Some(program)
}

/// Whether a work makes so many deterministic calls that each of them makes the model much larger.
pub(super) fn is_long(work: &PlannedWork) -> bool {
    work.deterministic && work.own_calls() > FEW_CALLS
}

struct Compiler<'a> {
    plan: &'a ModelPlan<'a>,
    graph: ActivityGraph<'a>,
    program: CtmcProgram,
    rough: Rough,
    entry: u32,
    work: u32,
    phase: u8,
}

impl Compiler<'_> {
    fn push(&mut self, op: ProgramStep) -> StepId {
        let program = &mut self.program;
        program.steps.push(op);
        program.entry.push(self.entry);
        program.work.push(self.work);
        program.phase.push(self.phase);
        (program.steps.len() - 1) as StepId
    }

    /// Pushes what stands for a request and is no part of an invocation.
    fn push_outside(&mut self, op: ProgramStep) -> StepId {
        let (entry, work) = (self.entry, self.work);
        (self.entry, self.work) = (NONE, NONE);
        let step = self.push(op);
        (self.entry, self.work) = (entry, work);
        step
    }

    fn elements(&mut self) -> Option<()> {
        let model = self.plan.model;
        for processor in &model.processors {
            let servers = processor.all_servers();
            let order = order(processor.scheduling)?;
            let order = if servers.is_infinite() { Order::Delay } else { order };
            self.program.stations.push(Station { order, servers });
        }
        self.program.stations.push(Station { order: Order::Delay, servers: f64::INFINITY });
        for (index, task) in model.tasks.iter().enumerate() {
            let source = self.plan.is_source(TaskId::from(index));
            if task.scheduling == Scheduling::Burst
                || task.queue_length.is_some_and(|length| length > 0)
                || task.group.is_some()
            {
                return None;
            }
            let lock = task.scheduling.is_lock();
            let order = if source || lock { Order::Arrival } else { order(task.scheduling)? };
            let count = if order == Order::Delay { f64::INFINITY } else { self.plan.threads[index] };
            self.program.threads.push(Threads { count, order, lock });
            self.program.task_priority.push(task.priority);
        }
        self.program.entries = model.entries.len();
        self.program.works = self.plan.works.len();
        self.program.rows = self.plan.rows.len();
        self.program.events = 2 * model.entries.len() + self.plan.works.len() + 2 * self.plan.rows.len();
        for entry in &model.entries {
            self.program.roles.push(entry.semaphore);
            self.program.entry_task.push(entry.task.0);
            self.program.entry_priority.push(entry.priority.unwrap_or(0));
        }
        Some(())
    }

    fn entry(&mut self, index: usize) -> Option<()> {
        let model = self.plan.model;
        let entry = &model.entries[index];
        let source = self.plan.is_source(entry.task);
        (self.entry, self.work, self.phase) = (index as u32, NONE, 0);
        let end = self.push(ProgramStep::End);
        self.program.end[index] = end;
        let body = match &entry.body {
            Body::Phases(phases) => {
                let mut next = end;
                for phase in (0..phases.len().min(3)).rev() {
                    self.phase = phase as u8;
                    if phase == 0 && !source {
                        next = self.reply(index, next);
                    }
                    next = self.work(self.plan.first_phase[index] + phase, next)?;
                }
                if phases.is_empty() && !source {
                    next = self.reply(index, next);
                }
                next
            }
            Body::Activities(start) => self.graph(index, *start, end)?,
        };
        self.phase = 0;
        self.work = NONE;
        self.program.begin[index] = self.push(ProgramStep::Count { event: index as u32, next: body });
        Some(())
    }

    fn trails(&mut self) {
        let program = &mut self.program;
        program.trails = vec![false; program.entries];
        for (op, entry) in program.steps.iter().zip(&program.entry) {
            if let ProgramStep::Reply { next, .. } = op {
                let entry = *entry as usize;
                let threads = program.threads[program.entry_task[entry] as usize].count;
                program.trails[entry] |= threads.is_infinite() && *next != program.end[entry];
            }
        }
        program.unbounded |= program.trails.contains(&true);
    }

    /// The end of the first phase.
    fn reply(&mut self, index: usize, next: StepId) -> StepId {
        let model = self.plan.model;
        let mut forwards = Vec::new();
        let rows = self.first_forward(index)..;
        for (row, forward) in rows.zip(&model.entries[index].forwarding) {
            let target = self.push_outside(ProgramStep::Forward { to: forward.to, row: row as u32 });
            forwards.push((forward.probability, target));
        }
        self.push(ProgramStep::Reply { forwards, next })
    }

    /// Rows of forwards come last, entry by entry.
    fn first_forward(&self, index: usize) -> usize {
        let after: usize = self.plan.model.entries[index..].iter().map(|entry| entry.forwarding.len()).sum();
        self.plan.rows.len() - after
    }

    /// A work, then on.
    fn work(&mut self, number: usize, next: StepId) -> Option<StepId> {
        let plan = self.plan;
        let work = &plan.works[number];
        self.work = number as u32;
        let calls: Vec<_> = work.calls.iter().filter(|call| !call.forwarded).copied().collect();
        let mut begin = if calls.is_empty() {
            self.slice(work, next)?
        } else if work.deterministic && !(self.rough.calls && is_long(work)) {
            let mut next = self.slice(work, next)?;
            for call in calls.iter().rev() {
                let whole = call.mean.floor();
                if whole > 256.0 {
                    return None;
                }
                let part = call.mean - whole;
                if part > 1e-9 {
                    let call = self.request(call, next);
                    let made = self.slice(work, call)?;
                    next = self.push(ProgramStep::Choose(vec![(part, made), (1.0 - part, next)]));
                }
                for _ in 0..whole as usize {
                    let call = self.request(call, next);
                    next = self.slice(work, call)?;
                }
            }
            next
        } else {
            let total = work.slices;
            let choice = self.push(ProgramStep::Choose(Vec::new()));
            let begin = self.slice(work, choice)?;
            let mut ways = vec![(1.0 / total, next)];
            for call in &calls {
                ways.push((call.mean / total, self.request(call, begin)));
            }
            self.program.steps[choice as usize] = ProgramStep::Choose(ways);
            begin
        };
        if work.think > 0.0 {
            let station = self.program.thinking() as u32;
            let (mut more, next) = (0, begin);
            for (rate, again) in Distribution::new(work.think, work.think_cv2).phases()?.into_iter().rev() {
                more = self.push(ProgramStep::Stage { station, rate, more, again, next });
            }
            begin = more;
        }
        let event = (self.program.entries + number) as u32;
        let begin = self.push(ProgramStep::Count { event, next: begin });
        self.work = NONE;
        (self.program.steps.len() <= MOST_PROGRAM_STEPS).then_some(begin)
    }

    fn request(&mut self, call: &crate::prepare::plan::PlannedCall, next: StepId) -> StepId {
        let row = call.row as u32;
        let event = self.program.row_event(call.row) as u32;
        let made = if call.synchronous {
            self.push(ProgramStep::Call { to: call.to, row, next })
        } else {
            self.program.unbounded = true;
            let dropped = self.program.loss_event(call.row) as u32;
            let request = self.push_outside(ProgramStep::Request { to: call.to, row, dropped });
            self.push(ProgramStep::Send { request, next })
        };
        self.push(ProgramStep::Count { event, next: made })
    }

    /// One slice of a work, by phases; nothing where it has a constant part.
    fn slice(&mut self, work: &PlannedWork, next: StepId) -> Option<StepId> {
        if work.slice <= 0.0 {
            return Some(next);
        }
        let task = self.program.entry_task[self.entry as usize] as usize;
        let station = self.plan.model.tasks[task].processor.0;
        let mut cv2 = work.cv2;
        let alone =
            self.plan.is_source(TaskId::from(task)) && self.program.stations[station as usize].order == Order::Delay;
        if self.rough.customers && alone && (cv2 - 1.0).abs() > 1e-9 {
            self.program.taken_as_exponential.insert(self.work);
            cv2 = 1.0;
        }
        // The last phase first, as each knows the one after it.
        let mut more = 0;
        for (rate, again) in Distribution::new(work.slice, cv2).phases()?.into_iter().rev() {
            more = self.push(ProgramStep::Stage { station, rate, more, again, next });
        }
        Some(more)
    }

    /// The activities of an entry; `end` follows the last one.
    fn graph(&mut self, index: usize, start: ActivityId, end: StepId) -> Option<StepId> {
        let model = self.plan.model;
        let entry = &model.entries[index];
        let walk = self.graph.walk(entry.task, &[start]);
        let places = self.reserve(&walk, end);
        for visit in &walk.visits {
            match *visit {
                Visit::Precedence { number, branch, .. } => {
                    let precedence = &model.tasks[entry.task.index()].precedences[number];
                    let op = self.forked(precedence.fork.as_ref(), places.loose[branch], &places)?;
                    self.program.steps[places.after[&number].1 as usize] = op;
                }
                Visit::Activity { activity, branch } => {
                    let mut next = places.loose[branch];
                    if let Some(number) = self.graph.leaving(activity) {
                        let (joined, place) = places.after[&number];
                        let join = &model.tasks[entry.task.index()].precedences[number].join;
                        next = self.joined(join, number as u32, joined, place);
                    }
                    let known = &model.activities[activity.index()];
                    if !self.plan.is_source(entry.task) && known.replies.iter().any(|entry| entry.index() == index) {
                        next = self.reply(index, next);
                    }
                    let begin = self.work(self.plan.first_activity + activity.index(), next)?;
                    self.program.steps[places.begin[&activity] as usize] = ProgramStep::Choose(vec![(1.0, begin)]);
                }
            }
        }
        Some(places.begin[&start])
    }

    /// Places where activities will begin and where precedences will go on.
    fn reserve(&mut self, walk: &Walk, end: StepId) -> Places {
        let (mut begin, mut after) = (FxHashMap::default(), FxHashMap::default());
        for visit in &walk.visits {
            let place = self.push(ProgramStep::Choose(Vec::new()));
            match *visit {
                Visit::Activity { activity, .. } => drop(begin.insert(activity, place)),
                Visit::Precedence { number, joined, .. } => drop(after.insert(number, (joined, place))),
            }
        }
        let mut loose: Vec<StepId> = Vec::with_capacity(walk.branches.len());
        for branch in &walk.branches {
            loose.push(match branch.kind {
                BranchKind::Whole | BranchKind::Parallel => end,
                BranchKind::Alternative => loose[branch.parent],
                BranchKind::Repeated => after[&branch.fork].1,
            });
        }
        Places { begin, after, loose }
    }

    /// What happens once the left side of a precedence has come together.
    fn forked(&mut self, fork: Option<&Fork>, loose: StepId, places: &Places) -> Option<ProgramStep> {
        let begin = |activity: &ActivityId| places.begin[activity];
        Some(match fork {
            None => ProgramStep::Choose(vec![(1.0, loose)]),
            Some(Fork::Sequence(activity)) => ProgramStep::Choose(vec![(1.0, begin(activity))]),
            Some(Fork::Or(ways)) => {
                let total: f64 = ways.iter().map(|way| way.0).sum();
                if (total - 1.0).abs() > 1e-6 {
                    return None;
                }
                ProgramStep::Choose(ways.iter().map(|way| (way.0, begin(&way.1))).collect())
            }
            Some(Fork::And(branches)) => {
                self.program.forks = true;
                ProgramStep::Fork(branches.iter().map(begin).collect())
            }
            Some(Fork::Loop { bodies, end }) => {
                let total = 1.0 + bodies.iter().map(|body| body.0).sum::<f64>();
                let mut ways = vec![(1.0 / total, end.as_ref().map_or(loose, begin))];
                ways.extend(bodies.iter().map(|body| (body.0 / total, begin(&body.1))));
                ProgramStep::Choose(ways)
            }
        })
    }

    /// Where an activity on the left side of a precedence goes on: at an AND-join it waits for the others that come.
    fn joined(&mut self, join: &Join, number: u32, joined: u32, next: StepId) -> StepId {
        let Join::And { quorum, .. } = join else { return next };
        let need = quorum.filter(|count| *count > 0).map_or(joined, |count| count.min(joined));
        self.push(ProgramStep::Join { join: number, need, all: joined, next })
    }

    /// Reference tasks and open arrivals.
    fn sources(&mut self) -> Option<()> {
        let model = self.plan.model;
        for (index, task) in model.tasks.iter().enumerate() {
            let id = TaskId::from(index);
            self.program.cycle.push(NONE);
            self.program.customers.push(0);
            if !self.plan.is_source(id) {
                continue;
            }
            if task.entries.is_empty() || self.plan.threads[index] > 1e6 {
                return None;
            }
            (self.entry, self.work, self.phase) = (NONE, NONE, 0);
            let part = 1.0 / task.entries.len() as f64;
            let ways = task.entries.iter().map(|entry| (part, self.program.begin[entry.index()])).collect();
            let mut begin = self.push(ProgramStep::Choose(ways));
            if task.think_time > 0.0 {
                let station = self.program.thinking() as u32;
                begin = self.push(ProgramStep::Stage {
                    station,
                    rate: 1.0 / task.think_time,
                    more: 0,
                    again: 0.0,
                    next: begin,
                });
            }
            self.program.cycle[index] = begin;
            self.program.customers[index] = self.plan.threads[index] as u32;
        }
        for (index, entry) in self.plan.entries.iter().enumerate() {
            if entry.open > 0.0 {
                self.program.unbounded = true;
                let arrival = self.program.events as u32;
                self.program.events += 2;
                let request = self.push_outside(ProgramStep::Request {
                    to: EntryId::from(index),
                    row: NONE,
                    dropped: arrival + 1,
                });
                self.program.sources.push(Source { rate: entry.open, request, arrival });
            }
        }
        Some(())
    }
}

/// Where the activities of an entry begin and go on.
struct Places {
    begin: FxHashMap<ActivityId, StepId>,
    /// By precedence: how many activities lead into it, and where it goes on.
    after: FxHashMap<usize, (u32, StepId)>,
    /// By branch: what happens after an activity that leads nowhere.
    loose: Vec<StepId>,
}

fn order(scheduling: Scheduling) -> Option<Order> {
    Some(match scheduling {
        Scheduling::Fcfs => Order::Arrival,
        Scheduling::Random => Order::Random,
        Scheduling::HeadOfLine => Order::Priority,
        Scheduling::PreemptivePriority => Order::Preemptive,
        Scheduling::ProcessorSharing => Order::Sharing,
        Scheduling::Delay => Order::Delay,
        _ => return None,
    })
}
