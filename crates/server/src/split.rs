//! A period as people look at it: in parts, between moments at which something changes, each with a model of its own.

use crate::answer::{Answer, Held};
use crate::aside;
use crate::deployment;
use crate::late;
use crate::parts::{Part, Parts};
use crate::period::{Period, written};
use crate::store::{Store, StoreError};

/// The most parts that are modelled: each model takes a solution.
const MODELLED: usize = 3;
/// The most moments of change that are listed.
const MOMENTS: usize = 4;
/// The most changes that are listed of one moment.
const TOLD: usize = 3;

/// The parts of a period, with their models.
#[derive(Default)]
pub struct Split {
    /// What each is called, which is nothing where it is all of the period; in the order of time.
    parts: Vec<(String, Result<Answer, String>)>,
    changes: Vec<String>,
    bounds: Vec<String>,
    missing: Vec<String>,
    left_out: usize,
}

/// Measured against predicted responses of a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// By part: what it is called, which is nothing where it is all of the period, and its scenarios; or why it cannot be solved.
    pub parts: Vec<(String, Result<Vec<Held>, String>)>,
    /// What changes within the period, and when.
    pub changes: Vec<String>,
    /// Which rates are lower bounds.
    pub bounds: Vec<String>,
    /// What was received that the models do not have.
    pub missing: Vec<String>,
    /// Shorter parts that are not modelled.
    pub left_out: usize,
}

impl Split {
    /// Of what traces recorded in a period; of nothing it has no parts.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn of(store: &mut Store, period: Period) -> Result<Self, StoreError> {
        let Some((Parts { parts, borders, .. }, submodel, merge)) = Parts::with_whole(store, period)? else {
            return Ok(Self::default());
        };
        let mut whole = Some((submodel, merge)).filter(|_| parts.len() == 1);
        let moments = borders.iter().take(MOMENTS);
        let mut changes: Vec<String> = moments
            .map(|own| {
                format!("at {} {}", written(own.at), own.what.iter().take(TOLD).cloned().collect::<Vec<_>>().join(", "))
            })
            .collect();
        if borders.len() > MOMENTS {
            changes.push(format!("at {} other moments, too", borders.len() - MOMENTS));
        }
        let longest = longest(&parts);
        let left_out = parts.len() - longest.len();
        let (mut modelled, mut bounds, mut missing) = (Vec::new(), Vec::new(), Vec::<String>::new());
        for Part { from, to, .. } in longest {
            let (name, own) = match parts.len() {
                1 => (String::new(), period),
                _ => (format!("{} to {}", written(from), written(to)), Period { from, to }),
            };
            let found = match whole.take() {
                None => store.period(own.from, own.to)?,
                whole => whole,
            };
            let Some((submodel, merge)) = found else { continue };
            let headless = late::headless(&submodel);
            let mut answer = Answer::of(submodel, &merge, &store.metered(own.from, own.to)?);
            if let Ok(answer) = &mut answer {
                answer.tell(aside::findings(&store.set_aside(own.from, own.to)?, headless));
                answer.tell(deployment::findings(&store.deployed(own.from, own.to)?));
            }
            if let Ok(answer) = &answer {
                changes.extend(answer.changes());
                bounds.extend(answer.bound().filter(|bound| !bounds.contains(bound)));
                let own: Vec<String> = answer.missing().into_iter().filter(|own| !missing.contains(own)).collect();
                missing.extend(own);
            }
            modelled.push((name, answer));
        }
        Ok(Self { parts: modelled, changes, bounds, missing, left_out })
    }

    /// The model of the last part; `None` where nothing was recorded.
    pub fn last(&self) -> Option<Result<&Answer, String>> {
        self.parts.last().map(|(_, answer)| answer.as_ref().map_err(Clone::clone))
    }

    /// Measured against predicted responses.
    pub fn held(self) -> Compared {
        let held = |answer: Result<Answer, String>| answer.and_then(|own| own.agreement());
        let parts = self.parts.into_iter().map(|(name, answer)| (name, held(answer))).collect();
        let Self { changes, bounds, missing, left_out, .. } = self;
        Compared { parts, changes, bounds, missing, left_out }
    }
}

/// The last part, which is how the system is now, and the longest others.
fn longest(parts: &[Part]) -> Vec<Part> {
    let Some((last, rest)) = parts.split_last() else { return Vec::new() };
    let mut others = rest.to_vec();
    others.sort_by_key(|own| (std::cmp::Reverse(own.to.saturating_sub(own.from)), own.from));
    others.truncate(MODELLED - 1);
    others.sort_by_key(|own| own.from);
    others.push(*last);
    others
}
