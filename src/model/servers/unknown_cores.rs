//! Measured parts of all cores, where nothing tells how many cores there are.
//!
//! Stays tell how many servers work uses. A process of one thread uses one, on a machine of any number of cores, and a part of these is not as large a part of its servers. Where it is
//! taken for that, and stays contradict, the part tells nothing.

use super::SHOWN;
use crate::diagnostic::quantity::percent;
use crate::diagnostic::{Diagnostic, Place};
use crate::model::codes;
use crate::model::load;
use crate::model::servers::evidence::is_beyond;
use crate::model::servers::fit::{Fit, Known};
use crate::model::servers::occupancy::Occupancy;
use crate::model::utilisation::Busy;

/// A part of all cores that contradicts the times of spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct UnknownCores {
    /// That part.
    share: f64,
    /// How many servers are busy by the times of spans.
    busy: f64,
    /// How many servers work uses.
    servers: f64,
}

impl UnknownCores {
    /// Of a host that fits best with what was measured of it, where less of its servers than spans show would be busy, and stays do not show that they wait for anything else.
    pub fn of(fit: &Fit, occupancy: &Occupancy, (probability, seen): (f64, f64), known: Known) -> Option<Self> {
        let Some(Busy::Share(share)) = known.busy else { return None };
        let (busy, servers) =
            (seen / probability * fit.imputed.all, f64::from(fit.servers) * occupancy.stations as f64);
        let is_known = known.servers.is_some() || fit.is_delay || fit.busy.is_some();
        let is_less = occupancy.is_whole(probability) && is_beyond(busy, share * servers);
        (!is_known && is_less).then_some(Self { share, busy, servers })
    }

    fn described(&self) -> String {
        let Self { share, busy, servers } = *self;
        let short = |value: f64| load::short((value * 1000.0).round() / 1000.0);
        let cores = (busy / share.max(f64::MIN_POSITIVE)).round();
        format!(
            "{} of all cores were busy: {} of the servers that its work was seen to use ({}), and {} are by the times of spans. Both agree on {} cores",
            percent(share),
            short(share * servers),
            short(servers),
            short(busy),
            short(cores)
        )
    }
}

/// Warns of processors whose measured part of all cores tells nothing.
pub(super) fn finding<'h>(hosts: impl Iterator<Item = (&'h String, &'h UnknownCores)>) -> Option<Diagnostic> {
    let found: Vec<(&String, &UnknownCores)> = hosts.collect();
    let message = match found.len() {
        0 => return None,
        1 => "a measured part of all cores is left out: nothing tells how many cores there are".to_owned(),
        count => {
            format!(
                "measured parts of all cores of {count} processors are left out: nothing tells how many cores there are"
            )
        }
    };
    let mut told = Diagnostic::warning(codes::UTILISATION_UNIT, Place::Nowhere, message);
    for (name, own) in found.iter().take(SHOWN) {
        told = told.with_note(format!("`{name}`: {}", own.described()));
    }
    if found.len() > SHOWN {
        told = told.with_note(format!("and {} more", found.len() - SHOWN));
    }
    Some(told.with_note("demands follow from the times of spans").with_hint(
        "send how many cores there are (`system.cpu.logical.count`, `process.cpu.count`), or processor time (`process.cpu.time`); or set `multiplicity` under `[processor.NAME]`",
    ))
}
