//! What a calibration is in the JSON form.

use serde::{Deserialize, Serialize};

use crate::calibration::{Calibration, ServersVariation, Variation, WorkName, WorkVariation};
use crate::findings::{Fault, fault};
use crate::json::shape::{Infinite, Multiplicity};
use crate::{Model, codes};

/// How many variations a model may have.
const MOST: usize = 1000;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shape {
    error: f64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    variations: Vec<VariationShape>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VariationShape {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    servers: Vec<ServersShape>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    phases: Vec<PhaseShape>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    activities: Vec<ActivityShape>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServersShape {
    processor: String,
    from: Multiplicity,
    to: Multiplicity,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseShape {
    entry: String,
    phase: u8,
    demand: (f64, f64),
    think_time: (f64, f64),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActivityShape {
    task: String,
    activity: String,
    demand: (f64, f64),
    think_time: (f64, f64),
}

impl Shape {
    pub(super) fn of(calibration: &Calibration) -> Self {
        Self { error: calibration.error, variations: calibration.variations.iter().map(VariationShape::of).collect() }
    }

    /// The calibration of a model that has all that it names.
    pub(super) fn read(self, model: &Model) -> Result<Calibration, Fault> {
        if !is_time(self.error) {
            return Err(fault(codes::BAD_NUMBER, "`error` is a number from 0"));
        }
        if self.variations.len() > MOST {
            return Err(fault(codes::BAD_NUMBER, format!("there are at most {MOST} variations")));
        }
        let variations = self.variations.into_iter().map(|own| own.read(model)).collect::<Result<_, _>>()?;
        Ok(Calibration { error: self.error, variations })
    }
}

impl VariationShape {
    fn of(variation: &Variation) -> Self {
        let servers = variation.servers.iter().map(|own| ServersShape {
            processor: own.processor.to_string(),
            from: shape(own.from),
            to: shape(own.to),
        });
        let (mut phases, mut activities) = (Vec::new(), Vec::new());
        for WorkVariation { of, demand, think_time } in &variation.works {
            let (demand, think_time) = (*demand, *think_time);
            match of {
                WorkName::Phase(entry, phase) => {
                    phases.push(PhaseShape { entry: entry.to_string(), phase: *phase, demand, think_time });
                }
                WorkName::Activity(task, activity) => {
                    let (task, activity) = (task.to_string(), activity.to_string());
                    activities.push(ActivityShape { task, activity, demand, think_time });
                }
            }
        }
        Self { servers: servers.collect(), phases, activities }
    }

    fn read(self, model: &Model) -> Result<Variation, Fault> {
        let mut variation = Variation::default();
        for ServersShape { processor, from, to } in self.servers {
            let name = model.processors.iter().map(|own| &own.name).find(|name| ***name == *processor);
            let processor = name.cloned().ok_or_else(|| unknown("processor", &processor))?;
            variation.servers.push(ServersVariation { processor, from: servers(&from)?, to: servers(&to)? });
        }
        for PhaseShape { entry, phase, demand, think_time } in self.phases {
            let id = model.entry_named(&entry).ok_or_else(|| unknown("entry", &entry))?;
            let of = WorkName::Phase(model.entries[id.index()].name.clone(), phase);
            variation.works.push(work(of, demand, think_time)?);
        }
        for ActivityShape { task, activity, demand, think_time } in self.activities {
            if model.task_named(&task).is_none() {
                return Err(unknown("task", &task));
            }
            let of = WorkName::Activity(task.into(), activity.into());
            variation.works.push(work(of, demand, think_time)?);
        }
        Ok(variation)
    }
}

fn work(of: WorkName, demand: (f64, f64), think_time: (f64, f64)) -> Result<WorkVariation, Fault> {
    if [demand.0, demand.1, think_time.0, think_time.1].into_iter().all(is_time) {
        Ok(WorkVariation { of, demand, think_time })
    } else {
        Err(fault(codes::BAD_NUMBER, "the times of a variation are numbers from 0"))
    }
}

fn is_time(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

fn unknown(kind: &str, name: &str) -> Fault {
    fault(codes::UNKNOWN_NAME, format!("the calibration names {kind} `{name}`, which there is not"))
}

fn shape(multiplicity: crate::Multiplicity) -> Multiplicity {
    match multiplicity {
        crate::Multiplicity::Finite(servers) => Multiplicity::Finite(servers),
        crate::Multiplicity::Infinite => Multiplicity::Word(Infinite::Infinite),
    }
}

fn servers(shape: &Multiplicity) -> Result<crate::Multiplicity, Fault> {
    match shape {
        Multiplicity::Finite(0) => Err(fault(codes::BAD_NUMBER, "a multiplicity is at least 1")),
        Multiplicity::Finite(servers) => Ok(crate::Multiplicity::Finite(*servers)),
        Multiplicity::Word(Infinite::Infinite) => Ok(crate::Multiplicity::Infinite),
    }
}
