//! Writes the JSON form.

use crate::json::shape::{self, Document};
use crate::scheduling::{ROLE_WORDS, WORDS, word};
use crate::{
    Activity, ActivityId, Body, CallKind, CallOrder, Dispatching, Entry, EntryId, Fork, Histogram, Join, Model,
    Multiplicity, Precedence, Scheduling, Task, TaskId, Work,
};

/// The model as JSON of several lines, in canonical form (see [`Model::into_canonical`]).
pub fn write(model: &Model) -> String {
    let model = model.clone().into_canonical();
    render(&document(&model))
}

fn render(document: &Document) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("names and numbers can be written as JSON");
    text.push('\n');
    text
}

fn document(model: &Model) -> Document {
    let shapes = Shapes { model };
    Document {
        version: super::VERSION,
        comment: model.comment.clone(),
        parameters: model.parameters.clone().into(),
        processors: model
            .processors
            .iter()
            .map(|processor| shape::Processor {
                name: processor.name.to_string(),
                scheduling: scheduling(processor.scheduling),
                quantum: processor.quantum,
                multiplicity: multiplicity(processor.multiplicity, processor.scheduling),
                replicas: processor.replicas,
                speed: processor.speed,
            })
            .collect(),
        groups: model
            .groups
            .iter()
            .map(|group| shape::Group {
                name: group.name.to_string(),
                processor: name(model.processors.get(group.processor.index()), |processor| &processor.name),
                share: group.share,
                cap: group.cap,
            })
            .collect(),
        tasks: model.tasks.iter().map(|task| shapes.task(task)).collect(),
        calibration: model.calibration.as_ref().map(super::calibration::Shape::of),
    }
}

/// The name of an element; `undefined` where there is none.
fn name<T>(element: Option<&T>, name: impl Fn(&T) -> &std::sync::Arc<str>) -> String {
    element.map_or_else(|| "undefined".to_owned(), |element| name(element).to_string())
}

fn scheduling(scheduling: Scheduling) -> String {
    word(&WORDS, scheduling).expect("every scheduling has a word").to_owned()
}

fn multiplicity(multiplicity: Multiplicity, scheduling: Scheduling) -> Option<shape::Multiplicity> {
    match multiplicity {
        Multiplicity::Infinite if scheduling == Scheduling::Delay => None,
        Multiplicity::Infinite => Some(shape::Multiplicity::Word(shape::Infinite::Infinite)),
        Multiplicity::Finite(1) => None,
        Multiplicity::Finite(number) => Some(shape::Multiplicity::Finite(number)),
    }
}

struct Shapes<'a> {
    model: &'a Model,
}

impl Shapes<'_> {
    fn entry_name(&self, id: EntryId) -> String {
        name(self.model.entries.get(id.index()), |entry| &entry.name)
    }

    fn activity_name(&self, id: ActivityId) -> String {
        name(self.model.activities.get(id.index()), |activity| &activity.name)
    }

    fn task(&self, task: &Task) -> shape::Task {
        let model = self.model;
        let fan = |list: &[(TaskId, u32)]| {
            let fan = |&(id, number): &(TaskId, u32)| {
                let task = name(model.tasks.get(id.index()), |task| &task.name);
                shape::Fan { task, number }
            };
            list.iter().map(fan).collect()
        };
        shape::Task {
            name: task.name.to_string(),
            processor: name(model.processors.get(task.processor.index()), |processor| &processor.name),
            group: task.group.map(|group| name(model.groups.get(group.index()), |group| &group.name)),
            scheduling: scheduling(task.scheduling),
            multiplicity: multiplicity(task.multiplicity, task.scheduling),
            replicas: task.replicas,
            dispatching: Some(task.dispatching)
                .filter(|own| *own != Dispatching::FanOut)
                .map(|own| own.word().to_owned()),
            priority: task.priority,
            think_time: task.think_time,
            queue_length: task.queue_length,
            fan_in: fan(&task.fan_in),
            fan_out: fan(&task.fan_out),
            entries: task
                .entries
                .iter()
                .filter_map(|id| model.entries.get(id.index()))
                .map(|entry| self.entry(entry))
                .collect(),
            activities: task
                .activities
                .iter()
                .filter_map(|id| model.activities.get(id.index()))
                .map(|activity| self.activity(activity))
                .collect(),
            precedences: task.precedences.iter().map(|precedence| self.precedence(precedence)).collect(),
        }
    }

    fn entry(&self, entry: &Entry) -> shape::Entry {
        let (phases, first_activity) = match &entry.body {
            Body::Phases(phases) => (Some(phases.iter().map(|work| self.work(work)).collect()), None),
            Body::Activities(first) => (None, Some(self.activity_name(*first))),
        };
        shape::Entry {
            name: entry.name.to_string(),
            priority: entry.priority,
            open_arrival_rate: entry.open_arrival_rate,
            semaphore: entry.semaphore.and_then(|role| word(&ROLE_WORDS, role)).map(str::to_owned),
            phases,
            first_activity,
            forwarding: entry
                .forwarding
                .iter()
                .map(|forwarding| shape::Forwarding {
                    to: self.entry_name(forwarding.to),
                    probability: forwarding.probability,
                })
                .collect(),
            histograms: entry.histograms.iter().map(|(phase, own)| histogram(own, Some(*phase))).collect(),
        }
    }

    fn activity(&self, activity: &Activity) -> shape::Activity {
        shape::Activity {
            name: activity.name.to_string(),
            work: self.work(&activity.work),
            replies: activity.replies.iter().map(|&entry| self.entry_name(entry)).collect(),
            histograms: activity.histograms.iter().map(|own| histogram(own, None)).collect(),
        }
    }

    fn work(&self, work: &Work) -> shape::Work {
        shape::Work {
            demand: work.demand,
            cv2: work.cv2,
            think_time: work.think_time,
            think_cv2: work.think_cv2,
            call_order: match work.call_order {
                CallOrder::Stochastic => shape::CallOrder::Stochastic,
                CallOrder::Deterministic => shape::CallOrder::Deterministic,
                CallOrder::Bernoulli => shape::CallOrder::Bernoulli,
            },
            calls: work
                .calls
                .iter()
                .map(|call| shape::Call {
                    to: self.entry_name(call.to),
                    kind: match call.kind {
                        CallKind::Synchronous => shape::CallKind::Synchronous,
                        CallKind::Asynchronous => shape::CallKind::Asynchronous,
                    },
                    mean: call.mean,
                })
                .collect(),
        }
    }

    fn precedence(&self, precedence: &Precedence) -> shape::Precedence {
        let names = |activities: &[ActivityId]| activities.iter().map(|&id| self.activity_name(id)).collect();
        let join = match &precedence.join {
            Join::Sequence(activity) => shape::Join::Sequence(self.activity_name(*activity)),
            Join::And { activities, quorum } => {
                shape::Join::And(shape::AndJoin { activities: names(activities), quorum: *quorum })
            }
            Join::Or(activities) => shape::Join::Or(names(activities)),
        };
        let fork = precedence.fork.as_ref().map(|fork| match fork {
            Fork::Sequence(activity) => shape::Fork::Sequence(self.activity_name(*activity)),
            Fork::And(activities) => shape::Fork::And(names(activities)),
            Fork::Or(branches) => shape::Fork::Or(
                branches
                    .iter()
                    .map(|&(probability, id)| shape::Branch { activity: self.activity_name(id), probability })
                    .collect(),
            ),
            Fork::Loop { bodies, end } => shape::Fork::Loop(shape::Loop {
                bodies: bodies
                    .iter()
                    .map(|&(mean, id)| shape::LoopBody { activity: self.activity_name(id), mean })
                    .collect(),
                end: end.map(|end| self.activity_name(end)),
            }),
        });
        shape::Precedence { join, fork }
    }
}

fn histogram(own: &Histogram, phase: Option<u8>) -> shape::Histogram {
    shape::Histogram { phase, from: own.from, to: own.to, bins: own.bins }
}
