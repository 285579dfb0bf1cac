//! What an answer takes for something simpler than the model says, in words.

use dyelog_lqn::invocation::{Invocation, Simplification};
use dyelog_lqn::model::{Model, Processor, ProcessorId, Scheduling, Task};

/// By what a model is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Mean value analysis or a Markov chain.
    Analysis,
    /// Discrete events.
    Simulation,
}

/// What any model of that kind of answer takes for something simpler, but for the choice of sources.
pub(crate) fn of_model(model: &Model, answer: Answer) -> Vec<String> {
    let processors = (0..).map(ProcessorId).zip(&model.processors);
    let processors = processors.flat_map(|(id, processor)| of_processor(model, id, processor, answer));
    let tasks = model.tasks.iter().flat_map(|task| of_task(task, answer));
    processors.chain(tasks).collect()
}

fn of_processor(model: &Model, id: ProcessorId, processor: &Processor, answer: Answer) -> Vec<String> {
    let mut caveats = Vec::new();
    let mut groups = model.groups.iter().filter(|group| group.processor == id);
    // A cap of all that runs there is a quota and no share.
    if processor.scheduling == Scheduling::CompletelyFair && model.cap(id).is_none() && groups.next().is_some() {
        let caps = if answer == Answer::Simulation { "but for their caps" } else { "and so are their caps" };
        caveats.push(format!("shares of groups are left out, {caps}; taken as processor sharing"));
    }
    if processor.replicas > 1 && answer == Answer::Analysis {
        caveats.push(format!("{} replicas are taken as one queue with as many servers", processor.replicas));
    }
    caveats.into_iter().map(|caveat| format!("processor `{}`: {caveat}", processor.name)).collect()
}

fn of_task(task: &Task, answer: Answer) -> Vec<String> {
    let simulated = answer == Answer::Simulation;
    let mut caveats = Vec::new();
    let order = match task.scheduling {
        Scheduling::Burst => Some("bursts are left out; taken as a reference task"),
        Scheduling::Polling => Some("polling is taken as first come, first served"),
        Scheduling::PreemptivePriority if simulated => {
            Some("its queue is by priority; what it has begun is not pre-empted")
        }
        Scheduling::ProcessorSharing | Scheduling::Random if simulated => {
            Some("its order of service is taken as first come, first served")
        }
        _ => None,
    };
    caveats.extend(order.map(str::to_owned));
    if task.replicas > 1 && !simulated {
        caveats.push(format!("{} replicas are taken as one queue with as many threads", task.replicas));
    }
    if task.queue_length.is_some_and(|length| length > 0) {
        caveats.push("the bound of its queue is left out".to_owned());
    }
    caveats.into_iter().map(|caveat| format!("task `{}`: {caveat}", task.name)).collect()
}

/// How sources with several entries choose among them.
pub(crate) fn of_sources(model: &Model) -> impl Iterator<Item = String> {
    model.tasks.iter().filter(|task| task.scheduling.is_source() && task.entries.len() > 1).map(|task| {
        format!(
            "reference task `{}` has several entries; each cycle is taken to choose one of them at random",
            task.name
        )
    })
}

/// What the activities of an entry of that name are taken for.
pub(crate) fn of_invocation(name: &str, invocation: &Invocation, answer: Answer) -> Vec<String> {
    let words = |simplification: &Simplification| match (simplification, answer) {
        (Simplification::JoinOfOtherEntries, _) => {
            Some("joins with activities of other entries; the wait for those is left out")
        }
        // The simulator follows each branch by itself.
        (_, Answer::Simulation) => None,
        (Simplification::JoinOfSomeBranches, _) => {
            Some("joins some branches of a fork only; the join is taken to wait for as many, whichever end first")
        }
        (Simplification::ReplyInBranch, _) => {
            Some("replies in a branch of a fork; what is left of the other branches then is estimated")
        }
        _ => None,
    };
    invocation.simplifications.iter().filter_map(words).map(|what| format!("entry `{name}` {what}")).collect()
}
