//! Quotas of processor time of hosts: those that stays tell, those that resources or metrics tell, and what is said of them.

use std::collections::BTreeMap;

use super::{Host, SHOWN, hundredths};
use crate::diagnostic::quantity::percent;
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::Multiplicity;
use crate::model::codes;
use crate::model::config::Configuration;
use crate::model::servers::discipline::Discipline;
use crate::model::servers::fit::{CLEARLY, Fit, Known, fitted, unlikelihood};
use crate::model::servers::occupancy::{AskedQuota, Occupancy};
use crate::solve::capped_slowdown;

/// A host with a quota of processor time.
pub(super) struct WithQuota {
    pub fit: Fit,
    /// How many cores each copy may use on the mean.
    pub cores: f64,
    /// Whether stays tell that work stands still once it has used them.
    pub stands_still: bool,
}

/// How many cores a copy may use, where resources or metrics tell.
pub(super) fn told(configuration: &Configuration, processor: &str) -> Option<f64> {
    if !configuration.bounds.contains(processor) {
        return None;
    }
    let whole = || match configuration.processors.get(processor)?.multiplicity? {
        Multiplicity::Finite(servers) => Some(f64::from(servers)),
        Multiplicity::Infinite => None,
    };
    configuration.quotas.get(processor).copied().or_else(whole)
}

/// The host with a quota of processor time, if stays tell of one, or show that work uses more cores at once than it may use on the mean. `free` is the host without
/// regard to what was told.
pub(super) fn with_quota(
    fit: &Fit,
    (told, free): (Option<f64>, Option<Fit>),
    occupancy: &Occupancy,
    (probability, seen): (f64, f64),
    known: Known,
) -> Option<WithQuota> {
    if !occupancy.is_whole(probability) {
        return None;
    }
    let each = seen / occupancy.stations as f64;
    let more = told.zip(free).and_then(|(cores, free)| more_than(cores, fit, free, occupancy, seen, known));
    // What speaks against a host without a quota counts only where one is told.
    let likelihood = match told {
        Some(_) => more.as_ref().map_or(fit, |(more, _)| more).likelihood_in_all(),
        None => fit.likelihood(),
    };
    let servers = (told.is_none() && known.servers.is_some()).then_some(fit.servers);
    let asked = AskedQuota { likelihood, seen: each, told, servers };
    // What is told may be the cores of a machine, and the quota less.
    let less = || told.and_then(|_| occupancy.quota(AskedQuota { told: None, ..asked }));
    if let Some(quota) = occupancy.quota(asked).or_else(less) {
        let cores = told.unwrap_or(f64::INFINITY).min(quota.cores);
        let fit = Fit::alone(quota.servers, Discipline::Sharing, quota.imputed, -quota.likelihood);
        return Some(WithQuota { fit, cores, stands_still: true });
    }
    more.map(|(fit, cores)| WithQuota { fit, cores, stands_still: false })
}

/// How long an invocation queues and stands still under open arrivals, in units of its processor time, where a copy may use so many cores and `busy` of its servers are.
pub(super) fn queueing(fit: &Fit, cores: f64, busy: f64, occupancy: &Occupancy) -> f64 {
    let mean = occupancy.mean_stay() * 1e-9 * fit.imputed.all;
    capped_slowdown(f64::from(fit.servers), cores, busy, mean, mean * f64::midpoint(1.0, fit.imputed.cv2))
}

/// The host where others slow work as if it used more servers at once than there are cores by what was told, and no more than those on the mean.
fn more_than(cores: f64, fit: &Fit, free: Fit, occupancy: &Occupancy, seen: f64, known: Known) -> Option<(Fit, f64)> {
    // Where nobody waits it has as many servers as were at work together, or more.
    let free = if free.is_delay {
        let servers = occupancy.most as u32;
        let all = Multiplicity::Finite(servers.saturating_mul(occupancy.stations as u32));
        let found = fitted(occupancy, 1.0, seen, Known { servers: Some(all), ..known });
        Fit { unlikelihood: found.unlikelihood + unlikelihood(servers), range: (fit.servers, None), ..found }
    } else {
        free
    };
    let is_used = seen / occupancy.stations as f64 * free.imputed.all;
    let is_taken = free.servers > fit.servers && is_used <= cores && free.unlikelihood + CLEARLY < fit.unlikelihood;
    is_taken.then_some((free, cores))
}

/// Tells of processors on which work stands still for a quota.
pub(super) fn finding(hosts: &BTreeMap<String, Host>) -> Option<Diagnostic> {
    let throttled: Vec<(&String, f64, &Host)> = hosts
        .iter()
        .filter(|(_, host)| host.stands_still)
        .filter_map(|(name, host)| Some((name, host.quota?, host)))
        .collect();
    let line = |(name, cores, host): &(&String, f64, &Host)| {
        let used = host.utilization * f64::from(host.servers) / f64::from(host.copies.max(1));
        format!(
            "`{name}`: {} of a quota of {} cores are used, {}",
            hundredths(used),
            hundredths(*cores),
            percent(used / cores)
        )
    };
    let message = match throttled.len() {
        0 => return None,
        1 => "work on a processor stands still now and then, until the next 100 ms: it has a quota of processor time"
            .to_owned(),
        count => format!(
            "work on {count} processors stands still now and then, until the next 100 ms: they have quotas of processor time"
        ),
    };
    let finding = Diagnostic::new(Severity::Note, codes::QUOTA, Place::Nowhere, message);
    let told = throttled.iter().map(line).take(SHOWN).fold(finding, Diagnostic::with_note);
    Some(told.with_hint(
        "ask for another CPU limit by `dyelog whatif --vary processor.NAME.quota=…`, or use no more threads than it has cores",
    ))
}

/// What is said of the quota of a host that was found to have one.
pub(super) fn described(host: &Host) -> Option<String> {
    let cores = hundredths(host.quota.filter(|_| host.is_throttled)?);
    Some(if host.stands_still {
        format!("; a quota of {cores} cores: work stands still once it is used, until the next 100 ms")
    } else {
        format!(
            "; {cores} cores are told, and work uses more at once: they are a quota for each 100 ms, which was not seen to be used up"
        )
    })
}
