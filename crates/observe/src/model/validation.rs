//! What was measured in a period beside what the solved model says (§5.2).

use dyelog_lqn::results::Results;

use crate::model::{Measured, PeriodModel, Subject};
use crate::period::Estimate;

/// A figure, measured and predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The task, entry or processor.
    pub name: String,
    /// What the figure is of.
    pub subject: Subject,
    /// As measured, with its confidence interval.
    pub measured: Estimate,
    /// As the model has it; `None` where that has no load there.
    pub predicted: Option<f64>,
}

impl Comparison {
    /// By how much the prediction is off, as a part of what was measured.
    pub fn error(&self) -> Option<f64> {
        self.predicted.filter(|_| self.measured.value > 0.0).map(|predicted| predicted / self.measured.value - 1.0)
    }
}

impl Subject {
    /// What results say of it.
    pub fn of(self, results: &Results) -> Option<f64> {
        match self {
            Self::Cycle(task) => results.tasks.get(task.index())?.response(),
            Self::Operation(entry) => {
                let entry = results.entries.get(entry.index())?;
                (entry.throughput > 0.0).then_some(entry.service[0])
            }
            Self::Processor(processor) => Some(results.processors.get(processor.index())?.utilization),
        }
    }
}

impl PeriodModel {
    /// Measured against predicted.
    pub fn compare(&self, results: &Results) -> Vec<Comparison> {
        self.measured.iter().map(|measured| self.one(*measured, results)).collect()
    }

    fn one(&self, Measured { subject, figure }: Measured, results: &Results) -> Comparison {
        let name = self.name(subject).to_owned();
        Comparison { name, subject, measured: figure, predicted: subject.of(results) }
    }

    /// The name of what a figure is of.
    pub fn name(&self, subject: Subject) -> &str {
        match subject {
            Subject::Cycle(task) => &self.model.tasks[task.index()].name,
            Subject::Operation(entry) => &self.model.entries[entry.index()].name,
            Subject::Processor(processor) => &self.model.processors[processor.index()].name,
        }
    }
}
