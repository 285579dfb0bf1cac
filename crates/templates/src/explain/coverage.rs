//! Which templates fired, how many nodes each took, and which nodes none did.

use crate::explain::Study;
use dyelog_diagnostic::Place;
use dyelog_trace::named::node_stamp;

/// What one template did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Matches.
    pub matches: u64,
    /// Nodes that they consumed.
    pub nodes: u64,
}

/// A node that no template took.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unprocessed {
    /// Where it is in the source.
    pub place: Place,
    /// Its name: scenario, thread and thread node counter.
    pub stamp: String,
    /// The run.
    pub run: String,
    /// Its task.
    pub task: String,
    /// Its kind.
    pub kind: &'static str,
}

/// What the templates did with some operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// By plan of the rules; what has alternatives is counted with the first of its plans.
    pub templates: Vec<Count>,
    /// Sound operations.
    pub operations: u64,
    /// Their nodes.
    pub nodes: u64,
    /// Nodes that no template took.
    pub unprocessed: u64,
    /// The first of them.
    pub shown: Vec<Unprocessed>,
}

impl Coverage {
    /// Takes in one operation; of unprocessed nodes at most so many are kept.
    pub fn add(&mut self, study: &Study<'_>, keep: usize) {
        let plans = study.rules.plans();
        self.templates.resize(plans.len(), Count::default());
        self.operations += 1;
        self.nodes += study.toeg.len() as u64;
        for made in &study.matches {
            let count = &mut self.templates[study.rules.first_of(made.template as usize)];
            count.matches += 1;
        }
        for node in 0..study.toeg.len() as u32 {
            if let Some(number) = study.consumer(node) {
                self.templates[study.rules.first_of(study.matches[number].template as usize)].nodes += 1;
                continue;
            }
            self.unprocessed += 1;
            if self.shown.len() < keep {
                let event = study.toeg.event(node);
                self.shown.push(Unprocessed {
                    place: study.toeg.operation().place(event),
                    stamp: node_stamp(study.toeg, &study.names.names, node),
                    run: study.run().to_string(),
                    task: study.names.task_label(event.task),
                    kind: event.kind.label(),
                });
            }
        }
    }

    /// Takes in another's; at most so many unprocessed nodes are kept.
    pub fn merge(&mut self, other: &Self, keep: usize) {
        self.templates.resize(self.templates.len().max(other.templates.len()), Count::default());
        for (own, count) in self.templates.iter_mut().zip(&other.templates) {
            own.matches += count.matches;
            own.nodes += count.nodes;
        }
        self.operations += other.operations;
        self.nodes += other.nodes;
        self.unprocessed += other.unprocessed;
        let room = keep.saturating_sub(self.shown.len());
        self.shown.extend(other.shown.iter().take(room).cloned());
    }
}
