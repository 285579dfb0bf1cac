//! Random models for property tests.
//!
//! They are structurally sound (every name is borne, every index points somewhere) and in canonical form, but not always
//! solvable.

use dyelog::lqn::{
    Activity, ActivityId, Body, Call, CallKind, CallOrder, Entry, EntryId, Fork, Forwarding, Group, GroupId, Histogram,
    Join, Model, Multiplicity, Parameters, Precedence, Processor, ProcessorId, Scheduling, SemaphoreRole, Task, TaskId,
    Work,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Names as traces have them: plain, with spaces and slashes, in other scripts, of one letter.
fn base_name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z][a-z0-9_]{0,6}",
        1 => "GET /[a-z]{1,5}/:id",
        1 => select(vec!["-1", "7", "f", "A", "m", "->", "a & b", "$x", "#", "zürich", "行列", "a.b", "[x]", "<&'>", " "])
            .prop_map(str::to_owned),
    ]
}

/// A number that tools can write: not negative, of few digits or many.
fn amount() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), (1..10_000u32).prop_map(|value| f64::from(value) / 100.0), 1e-9..1e9f64]
}

/// A number above 0.
fn positive() -> impl Strategy<Value = f64> {
    amount().prop_map(|value| if value == 0.0 { 0.5 } else { value })
}

fn multiplicity() -> impl Strategy<Value = Multiplicity> {
    prop_oneof![3 => Just(Multiplicity::Finite(1)), 2 => (2..50u32).prop_map(Multiplicity::Finite), 1 => Just(Multiplicity::Infinite)]
}

fn processor() -> impl Strategy<Value = Processor> {
    let schedulings = vec![
        Scheduling::Fcfs,
        Scheduling::HeadOfLine,
        Scheduling::PreemptivePriority,
        Scheduling::Delay,
        Scheduling::Random,
        Scheduling::ProcessorSharing,
        Scheduling::CompletelyFair,
    ];
    (base_name(), select(schedulings), option::of(positive()), multiplicity(), 1..4u32, positive()).prop_map(
        |(name, scheduling, quantum, multiplicity, replicas, speed)| Processor {
            quantum,
            multiplicity,
            replicas,
            speed,
            ..Processor::new(&name, scheduling)
        },
    )
}

fn histogram() -> impl Strategy<Value = Histogram> {
    (amount(), positive(), 0..40u32).prop_map(|(from, to, bins)| Histogram { from, to, bins })
}

/// What one entry does, before entries are known: calls go to an index among all. And distributions that are asked for.
fn work() -> impl Strategy<Value = Draft> {
    let kind = select(vec![CallKind::Synchronous, CallKind::Asynchronous]);
    let order = select(vec![CallOrder::Stochastic, CallOrder::Deterministic]);
    let calls = vec((any::<Index>(), kind, positive()), 0..3);
    let idle = prop_oneof![3 => Just(0.0), 1 => positive()];
    let histograms = prop_oneof![4 => Just(Vec::new()), 1 => vec(histogram(), 1..4)];
    (amount(), option::of(amount()), idle, order, calls, histograms).prop_map(
        |(demand, cv2, think_time, call_order, calls, histograms)| {
            (Work { demand, cv2, think_time, think_cv2: None, call_order, calls: Vec::new() }, calls, histograms)
        },
    )
}

type Draft = (Work, Vec<(Index, CallKind, f64)>, Vec<Histogram>);

#[derive(Clone, Debug)]
struct EntryDraft {
    name: String,
    priority: Option<i32>,
    rate: Option<f64>,
    role: Option<SemaphoreRole>,
    phases: Vec<Draft>,
    forwarding: Vec<(Index, f64)>,
}

fn entry() -> impl Strategy<Value = EntryDraft> {
    let roles = vec![
        SemaphoreRole::Signal,
        SemaphoreRole::Wait,
        SemaphoreRole::ReadLock,
        SemaphoreRole::ReadUnlock,
        SemaphoreRole::WriteLock,
        SemaphoreRole::WriteUnlock,
    ];
    (
        base_name(),
        option::weighted(0.1, 0..9i32),
        option::weighted(0.2, positive()),
        option::weighted(0.1, select(roles)),
        vec(work(), 1..4),
        vec((any::<Index>(), (1..=10u32).prop_map(|tenths| f64::from(tenths) / 10.0)), 0..2),
    )
        .prop_map(|(name, priority, rate, role, phases, forwarding)| EntryDraft {
            name,
            priority,
            rate,
            role,
            phases,
            forwarding,
        })
}

/// A block of an activity graph, between one activity and the next.
#[derive(Clone, Debug)]
enum Block {
    Sequence,
    Parallel(usize, Option<u32>),
    Choice(usize),
    Loop(f64),
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        Just(Block::Sequence),
        (2..4usize, option::of(1..3u32)).prop_map(|(branches, quorum)| Block::Parallel(branches, quorum)),
        (2..4usize).prop_map(Block::Choice),
        positive().prop_map(Block::Loop),
    ]
}

#[derive(Clone, Debug)]
struct TaskDraft {
    task: Task,
    processor: Index,
    group: Option<Index>,
    entries: Vec<EntryDraft>,
    /// Blocks of the graph of the first entry, and the work of its activities.
    graph: Option<(Vec<Block>, Vec<Draft>)>,
    fans: Vec<(bool, Index, u32)>,
}

fn task() -> impl Strategy<Value = TaskDraft> {
    let schedulings = vec![
        Scheduling::Reference,
        Scheduling::Fcfs,
        Scheduling::Fcfs,
        Scheduling::HeadOfLine,
        Scheduling::PreemptivePriority,
        Scheduling::Delay,
        Scheduling::Burst,
        Scheduling::Polling,
        Scheduling::Semaphore,
        Scheduling::ReadWriteLock,
    ];
    let own = (
        base_name(),
        select(schedulings),
        multiplicity(),
        1..4u32,
        prop_oneof![Just(0), 0..20i32],
        prop_oneof![Just(0.0), positive()],
        option::weighted(0.2, 1..20u32),
    );
    let fans = vec((any::<bool>(), any::<Index>(), 1..4u32), 0..2);
    let graph = option::weighted(0.4, (vec(block(), 0..3), vec(work(), 1..4)));
    (own, any::<Index>(), option::weighted(0.3, any::<Index>()), vec(entry(), 1..4), graph, fans).prop_map(
        |(
            (name, scheduling, multiplicity, replicas, priority, think_time, queue_length),
            processor,
            group,
            entries,
            graph,
            fans,
        )| {
            let task = Task {
                multiplicity,
                replicas,
                priority,
                think_time,
                queue_length,
                ..Task::new(&name, ProcessorId(0), scheduling)
            };
            TaskDraft { task, processor, group, entries, graph, fans }
        },
    )
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let pragma = ("[a-z-]{1,8}", "[a-z0-9]{1,8}");
    (positive(), 1..1000u32, option::of(1..50u32), option::of(positive()), vec(pragma, 0..2)).prop_map(
        |(convergence, iteration_limit, print_interval, underrelaxation, pragmas)| Parameters {
            convergence,
            iteration_limit,
            print_interval,
            underrelaxation,
            pragmas,
        },
    )
}

/// The name, changed where another of the kind bears it.
fn unique(names: &mut Vec<String>, name: &str) -> std::sync::Arc<str> {
    let mut free = name.to_owned();
    while names.contains(&free) {
        free.push('x');
    }
    names.push(free.clone());
    free.into()
}

/// Adds the graph of blocks to the task: the first activity, and what follows.
fn add_graph(
    model: &mut Model,
    task: TaskId,
    entry: EntryId,
    blocks: &[Block],
    works: &[Draft],
    entries: usize,
) -> ActivityId {
    let mut number = 0;
    let mut activity = |model: &mut Model| {
        let id = ActivityId::from(model.activities.len());
        let work = finished(&works[number % works.len()], entries);
        let name = format!("a{number}");
        number += 1;
        let histograms = works[number % works.len()].2.clone();
        model.activities.push(Activity { work, histograms, ..Activity::new(&name, task) });
        model.tasks[task.index()].activities.push(id);
        id
    };
    let first = activity(model);
    let mut last = first;
    let mut arcs: Vec<(Join, Fork)> = Vec::new();
    for block in blocks {
        match block {
            Block::Sequence => {
                let next = activity(model);
                arcs.push((Join::Sequence(last), Fork::Sequence(next)));
                last = next;
            }
            Block::Parallel(branches, quorum) => {
                let branches: Vec<ActivityId> = (0..*branches).map(|_| activity(model)).collect();
                arcs.push((Join::Sequence(last), Fork::And(branches.clone())));
                let next = activity(model);
                arcs.push((Join::And { activities: branches, quorum: *quorum }, Fork::Sequence(next)));
                last = next;
            }
            Block::Choice(branches) => {
                let ids: Vec<ActivityId> = (0..*branches).map(|_| activity(model)).collect();
                let share = 1.0 / *branches as f64;
                arcs.push((Join::Sequence(last), Fork::Or(ids.iter().map(|&id| (share, id)).collect())));
                let next = activity(model);
                arcs.push((Join::Or(ids), Fork::Sequence(next)));
                last = next;
            }
            Block::Loop(mean) => {
                let body = activity(model);
                let next = activity(model);
                let fork = Fork::Loop { bodies: vec![(*mean, body)], end: Some(next) };
                arcs.push((Join::Sequence(last), fork));
                last = next;
            }
        }
    }
    model.activities[last.index()].replies = vec![entry];
    let precedences = arcs.into_iter().map(|(join, fork)| Precedence { join, fork: Some(fork) });
    model.tasks[task.index()].precedences.extend(precedences);
    first
}

fn finished((work, calls, _): &Draft, entries: usize) -> Work {
    let mut work = work.clone();
    work.calls =
        calls.iter().map(|(to, kind, mean)| Call { to: to.index(entries).into(), kind: *kind, mean: *mean }).collect();
    work
}

fn assemble(
    comment: String,
    parameters: Parameters,
    processors: Vec<Processor>,
    groups: Vec<(String, Index, f64, bool)>,
    tasks: Vec<TaskDraft>,
) -> Model {
    let mut model = Model { comment, parameters, ..Model::default() };
    let mut names = Vec::new();
    for mut processor in processors {
        processor.name = unique(&mut names, &processor.name);
        model.processors.push(processor);
    }
    let mut names = Vec::new();
    for (name, processor, share, cap) in groups {
        let processor = processor.index(model.processors.len()).into();
        model.groups.push(Group { name: unique(&mut names, &name), processor, share, cap });
    }
    let count = tasks.len();
    let entries: usize = tasks.iter().map(|task| task.entries.len()).sum();
    let (mut task_names, mut entry_names) = (Vec::new(), Vec::new());
    for (draft, index) in tasks.into_iter().zip(0usize..) {
        let id = TaskId::from(index);
        let mut task = draft.task;
        task.name = unique(&mut task_names, &task.name);
        task.processor = draft.processor.index(model.processors.len()).into();
        if let Some(group) = draft.group.filter(|_| !model.groups.is_empty()) {
            let group = group.index(model.groups.len());
            task.group = Some(GroupId::from(group));
            task.processor = model.groups[group].processor;
        }
        for (inwards, other, number) in draft.fans {
            let list = if inwards { &mut task.fan_in } else { &mut task.fan_out };
            list.push((other.index(count).into(), number));
        }
        model.tasks.push(task);
        for (number, draft_entry) in draft.entries.into_iter().enumerate() {
            let entry = EntryId::from(model.entries.len());
            let body = match &draft.graph {
                Some((blocks, works)) if number == 0 => {
                    Body::Activities(add_graph(&mut model, id, entry, blocks, works, entries))
                }
                _ => Body::Phases(draft_entry.phases.iter().map(|phase| finished(phase, entries)).collect()),
            };
            let histograms = (1..).zip(&draft_entry.phases);
            let histograms = histograms.flat_map(|(phase, draft)| draft.2.iter().map(move |own| (phase, *own)));
            model.tasks[index].entries.push(entry);
            model.entries.push(Entry {
                histograms: histograms.collect(),
                name: unique(&mut entry_names, &draft_entry.name),
                task: id,
                priority: draft_entry.priority,
                open_arrival_rate: draft_entry.rate,
                semaphore: draft_entry.role,
                body,
                forwarding: draft_entry
                    .forwarding
                    .iter()
                    .map(|(to, probability)| Forwarding { to: to.index(entries).into(), probability: *probability })
                    .collect(),
            });
        }
    }
    model.into_canonical()
}

/// A random model of up to six tasks.
pub fn model() -> impl Strategy<Value = Model> {
    let group =
        (base_name(), any::<Index>(), (1..=100u32).prop_map(|percent| f64::from(percent) / 100.0), any::<bool>());
    ("[a-zA-Z0-9 ,.:&<>']{0,20}", parameters(), vec(processor(), 1..4), vec(group, 0..3), vec(task(), 1..6)).prop_map(
        |(comment, parameters, processors, groups, tasks)| assemble(comment, parameters, processors, groups, tasks),
    )
}
