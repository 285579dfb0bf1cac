//! Whether a model can sustain given rates: the utilisations that they would cause, without any queueing.

use crate::lqn::bounds::{self, AsymptoticBounds, Resource};
use crate::lqn::operational::{AnalysisError, OperationalAnalysis};
use crate::lqn::{EntryId, Model};

/// From this utilisation on an open queue has no steady state.
const LIMIT: f64 = 1.0;

/// A model of more steps is not analysed.
pub const MOST_STEPS: usize = 20_000_000;

/// An element that cannot sustain its load.
#[derive(Clone, Debug, PartialEq)]
pub struct Overload {
    /// The element, such as "processor `web`"; none where calls form a circle.
    pub element: Option<String>,
    /// Its utilisation, per server.
    pub utilization: f64,
}

/// Checks the utilisations of processors and tasks when the given entries are invoked at the given rates. A model that has no operational
/// analysis for another reason than a circle of calls passes: solvers say what is wrong with it.
pub fn check(model: &Model, rates: &[(EntryId, f64)]) -> Result<(), Overload> {
    let analysis = match OperationalAnalysis::new(model, MOST_STEPS) {
        Ok(analysis) => analysis,
        Err(errors) if circle_of(&errors).is_some() => {
            return Err(Overload { element: None, utilization: f64::INFINITY });
        }
        Err(_) => return Ok(()),
    };
    let mut invocations = vec![0.0; model.entries.len()];
    for (entry, rate) in rates {
        invocations[entry.index()] += rate;
    }
    let rooms = AsymptoticBounds::new(analysis).rooms_of(invocations);
    let Some(tightest) = rooms.first().filter(|room| room.utilization >= LIMIT) else { return Ok(()) };
    let element = match tightest.resource {
        Resource::Processor(id) => format!("processor `{}`", model.processors[id.index()].name),
        Resource::Task(id) => format!("task `{}`", model.tasks[id.index()].name),
    };
    Err(Overload { element: Some(element), utilization: tightest.utilization })
}

/// How busy the busiest processor or task is under open arrivals, per server; 0 where there are none.
pub fn busiest(model: &Model) -> f64 {
    bounds::busiest(model, MOST_STEPS)
}

/// Entries that call or forward to each other in a circle, if there is one.
pub fn circle(model: &Model) -> Option<Vec<EntryId>> {
    let errors = OperationalAnalysis::new(model, MOST_STEPS).err()?;
    circle_of(&errors).map(<[EntryId]>::to_vec)
}

fn circle_of(errors: &[AnalysisError]) -> Option<&[EntryId]> {
    errors.iter().find_map(|error| match error {
        AnalysisError::CallCycle(entries) => Some(&entries[..]),
        _ => None,
    })
}
