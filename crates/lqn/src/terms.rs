//! The terms of models as people and machine forms write them.

use dyelog_diagnostic::quantity::number;

use crate::results::Caller;
use crate::{ActivityId, CallKind, Fork, Join, Model, Multiplicity, Precedence, Scheduling, Task};

/// How many servers.
pub fn multiplicity(multiplicity: Multiplicity) -> String {
    match multiplicity {
        Multiplicity::Finite(servers) => servers.to_string(),
        Multiplicity::Infinite => "infinite".to_owned(),
    }
}

/// How many copies of a task, and how requests come to them; `None` where there is one.
pub fn replicas(task: &Task) -> Option<String> {
    (task.replicas > 1).then(|| match task.dispatching.told() {
        Some(word) => format!("{}, {word}", task.replicas),
        None => task.replicas.to_string(),
    })
}

/// An order of service.
pub fn scheduling(scheduling: Scheduling) -> &'static str {
    match scheduling {
        Scheduling::Fcfs => "FCFS",
        Scheduling::HeadOfLine => "head of line",
        Scheduling::PreemptivePriority => "pre-emptive",
        Scheduling::Delay => "delay",
        Scheduling::Random => "random",
        Scheduling::ProcessorSharing => "PS",
        Scheduling::CompletelyFair => "fair share",
        Scheduling::Reference => "reference",
        Scheduling::Burst => "burst",
        Scheduling::Polling => "polling",
        Scheduling::Semaphore => "semaphore",
        Scheduling::ReadWriteLock => "read-write lock",
    }
}

/// Kinds of calls, as the machine forms name them.
pub fn kind(kind: Option<CallKind>) -> &'static str {
    match kind {
        Some(CallKind::Synchronous) => "sync",
        Some(CallKind::Asynchronous) => "async",
        None => "forward",
    }
}

/// The phase of a caller, where it is not the first.
pub fn later_phase(caller: Caller) -> Option<u8> {
    match caller {
        Caller::Phase(_, phase) if phase > 1 => Some(phase),
        _ => None,
    }
}

/// An arc of an activity graph in the notation of the text language.
pub fn arc(model: &Model, precedence: &Precedence) -> String {
    let name = |activity: &ActivityId| model.activities[activity.index()].name.to_string();
    let list = |activities: &[ActivityId], sign: &str| activities.iter().map(name).collect::<Vec<_>>().join(sign);
    let chosen = |branches: &[(f64, ActivityId)], sign: &str, open: &str, close: &str| {
        let branch =
            |(share, activity): &(f64, ActivityId)| format!("{open}{}{close} {}", number(*share), name(activity));
        branches.iter().map(branch).collect::<Vec<_>>().join(sign)
    };
    let left = match &precedence.join {
        Join::Sequence(activity) => name(activity),
        Join::And { activities, quorum: None } => list(activities, " & "),
        Join::And { activities, quorum: Some(quorum) } => format!("{} ({quorum})", list(activities, " & ")),
        Join::Or(activities) => list(activities, " + "),
    };
    let right = match &precedence.fork {
        None => return left,
        Some(Fork::Sequence(activity)) => name(activity),
        Some(Fork::And(activities)) => list(activities, " & "),
        Some(Fork::Or(branches)) => chosen(branches, " + ", "(", ")"),
        Some(Fork::Loop { bodies, end }) => {
            let end = end.as_ref().map(|end| format!(", {}", name(end))).unwrap_or_default();
            format!("{}{end}", chosen(bodies, ", ", "", " *"))
        }
    };
    format!("{left} -> {right}")
}
