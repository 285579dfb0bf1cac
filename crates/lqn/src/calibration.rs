//! What else than the numbers of a calibrated model fits what was measured, so that predictions can tell how far they may be off.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Body, EntryId, Model, Multiplicity, Work};

/// Of a model that was calibrated: other models that fit as well, and how far predictions were off where they could be held against
/// measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration {
    /// By how much predictions of loads that were left out were off, as a part of what was measured.
    pub error: f64,
    /// What differs in each of the other models.
    pub variations: Vec<Variation>,
}

/// What differs in a model that fits as well.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variation {
    /// Servers of processors.
    pub servers: Vec<ServersVariation>,
    /// Times of phases and activities.
    pub works: Vec<WorkVariation>,
}

/// Another number of servers.
#[derive(Clone, Debug, PartialEq)]
pub struct ServersVariation {
    /// The processor's name.
    pub processor: Arc<str>,
    /// In the model.
    pub from: Multiplicity,
    /// In the other one.
    pub to: Multiplicity,
}

/// Other times of a phase or an activity, seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkVariation {
    /// Whose they are.
    pub of: WorkName,
    /// The demand in the model and in the other one.
    pub demand: (f64, f64),
    /// The think time in the model and in the other one.
    pub think_time: (f64, f64),
}

/// A phase or an activity by names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkName {
    /// A phase of an entry, from 1.
    Phase(Arc<str>, u8),
    /// An activity of a task.
    Activity(Arc<str>, Arc<str>),
}

impl Calibration {
    /// What differs between a model and others of the same elements.
    pub fn between(model: &Model, others: &[Model], error: f64) -> Self {
        Self { error, variations: others.iter().map(|other| Variation::between(model, other)).collect() }
    }

    /// The models that fit as well, in place of a model whose parameters may have been changed since it was calibrated. What was set to
    /// another number of servers has that number in all of them; times change in proportion.
    pub fn models(&self, model: &Model) -> Vec<Model> {
        let places = works(model);
        let others = self.variations.iter().map(|variation| {
            let mut other = model.clone();
            other.calibration = None;
            variation.apply(&places, &mut other);
            other
        });
        others.collect()
    }
}

impl Variation {
    fn between(model: &Model, other: &Model) -> Self {
        let processors = model.processors.iter().zip(&other.processors);
        let servers = processors.filter(|(own, other)| own.multiplicity != other.multiplicity).map(|(own, other)| {
            ServersVariation { processor: Arc::clone(&own.name), from: own.multiplicity, to: other.multiplicity }
        });
        let works = works(model).into_iter().filter_map(|(of, place)| {
            let (own, other) = (place.of(model)?, place.of(other)?);
            let is_same = own.demand == other.demand && own.think_time == other.think_time;
            let (demand, think_time) = ((own.demand, other.demand), (own.think_time, other.think_time));
            (!is_same).then_some(WorkVariation { of, demand, think_time })
        });
        Self { servers: servers.collect(), works: works.collect() }
    }

    fn apply(&self, places: &BTreeMap<WorkName, Place>, model: &mut Model) {
        for own in &self.servers {
            let processor = model.processors.iter_mut().find(|processor| processor.name == own.processor);
            if let Some(processor) = processor.filter(|processor| processor.multiplicity == own.from) {
                processor.multiplicity = own.to;
            }
        }
        for own in &self.works {
            if let Some(work) = places.get(&own.of).and_then(|place| place.of_mut(model)) {
                work.demand = moved(work.demand, own.demand);
                work.think_time = moved(work.think_time, own.think_time);
            }
        }
    }
}

/// A time that may have been changed, as the other model has it.
fn moved(now: f64, (from, to): (f64, f64)) -> f64 {
    if now == from {
        to
    } else if from > 0.0 {
        now * (to / from)
    } else {
        now
    }
}

/// Where a phase or an activity is.
#[derive(Clone, Copy, Debug)]
enum Place {
    Phase(EntryId, usize),
    Activity(usize),
}

impl Place {
    fn of(self, model: &Model) -> Option<&Work> {
        match self {
            Self::Phase(entry, phase) => match &model.entries.get(entry.index())?.body {
                Body::Phases(phases) => phases.get(phase),
                Body::Activities(_) => None,
            },
            Self::Activity(number) => model.activities.get(number).map(|activity| &activity.work),
        }
    }

    fn of_mut(self, model: &mut Model) -> Option<&mut Work> {
        match self {
            Self::Phase(entry, phase) => match &mut model.entries.get_mut(entry.index())?.body {
                Body::Phases(phases) => phases.get_mut(phase),
                Body::Activities(_) => None,
            },
            Self::Activity(number) => model.activities.get_mut(number).map(|activity| &mut activity.work),
        }
    }
}

/// All phases and activities by their names.
fn works(model: &Model) -> BTreeMap<WorkName, Place> {
    let phases = model.entries.iter().enumerate().flat_map(|(at, entry)| {
        let count = if let Body::Phases(phases) = &entry.body { phases.len() } else { 0 };
        (0..count).map(move |phase| {
            let name = WorkName::Phase(Arc::clone(&entry.name), phase as u8 + 1);
            (name, Place::Phase(EntryId::from(at), phase))
        })
    });
    let activities = model.activities.iter().enumerate().map(|(at, activity)| {
        let task = &model.tasks[activity.task.index()].name;
        (WorkName::Activity(Arc::clone(task), Arc::clone(&activity.name)), Place::Activity(at))
    });
    phases.chain(activities).collect()
}
