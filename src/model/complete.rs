//! From a sub-model and a configuration to a complete model.

use crate::diagnostic::quantity::milliseconds;
use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use crate::lqn::submodel::{Interaction, SubModel};
use crate::lqn::together;
use crate::lqn::{Body, EntryId, Model, Multiplicity, Task};
use crate::model::assembly::{Assembled, Assembly, Loads};
use crate::model::certainty::Certainty;
use crate::model::clones::Clones;
use crate::model::config::{Configuration, DemandValues};
use crate::model::contexts::Contexts;
use crate::model::demand::DemandSource;
use crate::model::load::Recording;
use crate::model::parts::{Customer, Parts};
use crate::model::population;
use crate::model::servers::Traced;
use crate::model::stationarity::OneFactor;
use crate::model::ticks;
use crate::model::{
    EntryOrigin, Load, LoadReason, Origins, TaskOrigin, alike, chance, chosen, clocks, codes, deployment, fragments,
    load, network, outcomes, sampling, servers, stability, stationarity, weave,
};

/// Makes a complete model: the model itself, what there is to know about how it was made, and where its elements come from.
///
/// The result does not depend on the order in which the sub-model's parts were merged. Fails where the sub-model shows
/// nothing at all.
pub fn complete(
    sub: &SubModel,
    configuration: &Configuration,
) -> Result<(Model, Vec<Diagnostic>, Origins), Diagnostics> {
    complete_as_traced(sub, configuration, None)
}

/// What traces tell of the hosts of a system that is configured so.
pub fn traced(sub: &SubModel, configuration: &Configuration) -> Traced {
    let decided = weave::decided(sub);
    let mut parts = Parts::of_decided(&decided);
    let lost = parts.leave_out_fragments();
    parts.configure(configuration, &mut Vec::new());
    let lost = fragments::lost_part(&lost, &parts);
    let colocated = servers::colocated_in(&parts, configuration, lost);
    let configuration = &deployment::placed_together(sub, configuration, &colocated).configuration;
    let mut traced = Traced::of(&parts, configuration, lost, &population::Found::default());
    traced.colocated = colocated;
    traced
}

/// The same as [`complete`] for a system that differs from the one that was traced: what was traced is read with the servers that there
/// were, and the model has those of the configuration.
///
/// # Errors
/// As [`complete`].
pub fn complete_as_traced(
    sub: &SubModel,
    configuration: &Configuration,
    traced: Option<&Traced>,
) -> Result<(Model, Vec<Diagnostic>, Origins), Diagnostics> {
    let demands = configuration.demands()?;
    let recorded = sub;
    let decided = weave::decided(sub);
    let sub = &decided.sub;
    let mut parts = Parts::of_decided(&decided);
    let lost = parts.leave_out_fragments();
    if parts.customers.is_empty() {
        let finding =
            Diagnostic::error(codes::NOTHING, Place::Nowhere, "the traces hold no operation to make a model of");
        return Err(match sub.set_aside {
            0 => finding,
            1 => finding.with_note("one damaged operation was set aside"),
            count => finding.with_note(format!("{count} damaged operations were set aside")),
        }
        .into());
    }
    let given = configuration;
    let mut clashes = Vec::new();
    parts.configure(given, &mut clashes);
    let lost_spans = fragments::lost_part(&lost, &parts);
    let found = || servers::colocated_in(&parts, given, lost_spans);
    let colocated = traced.map_or_else(found, |traced| traced.colocated.clone());
    let deployment::Placed { configuration, findings: found, uneven } =
        deployment::placed_together(sub, given, &colocated);
    let configuration = &configuration;
    let mut findings = crate::model::unused::check_placed(sub, given, configuration);
    findings.extend(clashes);
    let known = population::Found::default();
    // Neither asks the other, and both look at all times that are kept.
    let (own, work) = together::both(
        sub.threads(),
        || traced.is_none().then(|| Traced::of(&parts, configuration, lost_spans, &known)),
        || stationarity::work_findings(recorded),
    );
    let own = own.unwrap_or_default();
    let traced = traced.unwrap_or(&own);
    let chosen = chosen::findings(sub, &parts.customers);
    for (customer, finding) in parts.customers.iter_mut().zip(&chosen) {
        let is_chosen = finding.is_some() || outcomes::is_biased(&customer.scenario_total);
        load::leave_open(&mut customer.scenario_total, is_chosen);
    }
    let mut clones = Clones::default();
    let loads = choose_loads(&parts, configuration, (traced, &known), &demands, &mut clones, &mut findings);
    let mut built = Assembly::build(&parts, configuration, traced, &demands, &loads, &mut clones);
    let contexts = Contexts::new(&parts, &clones);
    for (scenario, customer) in built.origins.scenarios.iter_mut().zip(&parts.customers) {
        scenario.context = contexts.of(customer);
    }
    built.origins.uneven = uneven;
    built.origins.quotas.clone_from(&configuration.quotas);
    built.origins.quotas.extend(traced.quotas());
    built.origins.machines = traced.machines();
    built.origins.others = traced.others(configuration);
    let busiest = traced.hosts().map(|(_, host)| host.utilization).fold(stability::busiest(&built.model), f64::max);
    let doubt = fragments::doubt(lost_spans, busiest);
    let totals = parts.customers.iter().map(|own| &own.scenario_total);
    let by_queues = chance::queues(&built.model, &built.origins, busiest, totals);
    // Errors are logarithms of factors, the doubt is a part.
    for (scenario, queues) in built.origins.scenarios.iter_mut().zip(by_queues) {
        scenario.response_error = scenario.response_error.map(|error| error.max(queues).hypot(doubt.ln_1p()));
    }
    let recording = Recording::of(sub);
    let certainty = Certainty::new(&parts, traced, &recording, lost_spans);
    for origin in &mut built.origins.entries {
        origin.doubt = certainty.of(origin.total, &origin.sources);
    }
    let (rates, unknown) = (OneFactor::of(sub), Recording::default());
    findings.extend(chosen.into_iter().flatten());
    for (customer, (load, _)) in parts.customers.iter().zip(&loads).filter(|(own, _)| own.members.is_empty()) {
        let (scenario, total) = (&customer.scenario, &customer.scenario_total);
        findings.extend(clocks::finding(scenario, total));
        // What a configured load is of, the configuration knows.
        let around = if customer.load.is_some() { &unknown } else { &recording };
        findings.extend(stationarity::finding(scenario, total, *load, around, rates.as_ref()));
    }
    let open =
        parts.customers.iter().zip(&loads).filter(|(own, (load, _))| {
            own.members.is_empty() && own.load.is_none() && matches!(load, Load::Open { .. })
        });
    findings.extend(ticks::together(open.map(|(own, _)| (&*own.scenario, &own.scenario_total))));
    findings.extend(sampling::finding(&parts.customers, load::told_weight));
    findings.extend(work);
    findings.extend(alike::finding(sub));
    findings.extend(outcomes::note(&parts, sub, &built.model, &built.origins));
    findings.extend(found);
    findings.extend(traced.note());
    findings.extend(traced.throttled_finding());
    findings.extend(traced.unknown_cores_finding());
    findings.extend(traced.measured_note());
    findings.extend(traced.others_finding(&built.origins.others));
    findings.extend(traced.pools_note(sub));
    findings.extend(traced.hidden_pools(sub, |task| has_threads(configuration, task)));
    findings.extend(traced.lasting_findings(&parts));
    findings.extend(threads_note(&built, configuration));
    findings.extend(unseen_work(&built));
    findings.extend(unseen_waits(&built, sub));
    findings.extend(in_batches(&built));
    findings.extend(outvoted(&built, sub));
    findings.extend(fragments::decisions(&lost, &parts));
    findings.extend(fragments::note(&lost, &parts, lost_spans, doubt));
    findings.extend(network::findings(&parts, configuration));
    findings.extend(crate::model::unused::entries(&built.model, configuration));
    findings.extend(built.findings);
    if !has_demand(&built.model) {
        findings.push(
            Diagnostic::warning(codes::NO_DEMAND, Place::Nowhere, "all demands are zero: no demand is known")
                .with_note(
                    "the traces carry neither CPU demands nor times, and the configuration has no resource functions",
                )
                .with_hint("give `default = \"1 ms\"` under `[demand]`, or demands by activity"),
        );
    }
    findings.extend(stability::circle(&built.model).map(|circle| circle_warning(&built.model, &circle)));
    Ok((built.model, findings, built.origins))
}

fn has_demand(model: &Model) -> bool {
    let phases = model.entries.iter().flat_map(|entry| match &entry.body {
        Body::Phases(phases) => &phases[..],
        Body::Activities(_) => &[],
    });
    phases.chain(model.activities.iter().map(|activity| &activity.work)).any(|work| work.demand > 0.0)
}

/// Adds that operations begin at a fixed rate.
fn with_fixed_rate(told: Diagnostic, rate: Option<f64>) -> Diagnostic {
    match rate {
        Some(rate) => told.with_note(format!(
            "operations of all scenarios begin {} a second, hardly ever more or fewer, whatever is under way: a sampler that limits rates lets them begin so, or a clock, and no customers who wait. \
             Was it a sampler, the rate and all utilisations are lower bounds",
            load::short(rate)
        )),
        None => told,
    }
}

/// Says that calls come back to the entry that made them.
fn circle_warning(model: &Model, circle: &[EntryId]) -> Diagnostic {
    let names: Vec<String> =
        circle.iter().take(SHOWN).map(|entry| format!("`{}`", model.entries[entry.index()].name)).collect();
    let more = if circle.len() > SHOWN { format!(" and {} more", circle.len() - SHOWN) } else { String::new() };
    let message = format!("entries call each other in a circle: {}{more}", names.join(", "));
    Diagnostic::warning(codes::CYCLE, Place::Nowhere, message)
        .with_note("a layered model has no circles of calls, so that solvers refuse it")
        .with_hint("`--merge none` keeps the entries of different places in a scenario apart")
}

/// Whether a setting says how many threads a task has.
fn has_threads(configuration: &Configuration, task: &str) -> bool {
    configuration.defaults.threads.or(configuration.tasks.get(task).and_then(|own| own.threads)).is_some()
}

/// Says that pools of threads were taken to be without limit, where no setting says so.
fn threads_note(built: &Assembled, configuration: &Configuration) -> Option<Diagnostic> {
    let assumed = |(task, origin): &(&Task, &TaskOrigin)| {
        let settings = configuration.tasks.get(&*origin.identifier);
        let is_set = settings.is_some_and(|settings| settings.threads.is_some() || settings.scheduling.is_some());
        !origin.customer && !is_set && task.multiplicity == Multiplicity::Infinite
    };
    let count = built.model.tasks.iter().zip(&built.origins.tasks).filter(assumed).count();
    if configuration.defaults.threads.is_some() || count == 0 {
        return None;
    }
    let tasks = if count == 1 { "one task gets".to_owned() } else { format!("{count} tasks get") };
    let message = format!("{tasks} as many threads as needed, since traces do not show pool sizes");
    Some(
        Diagnostic::new(Severity::Note, codes::THREADS_ASSUMED, Place::Nowhere, message)
            .with_hint("set `threads` under `[task.NAME]`, or under `[defaults]` for all"),
    )
}

/// Notes entries whose work is unknown: no caller waits for them, and they send no message that would show its end.
fn unseen_work(built: &Assembled) -> Option<Diagnostic> {
    if !built.origins.entries.iter().any(|origin| origin.sources.contains(&DemandSource::Exclusive)) {
        return None;
    }
    let unseen = |origin: &EntryOrigin| {
        origin.interaction == Interaction::Asynchronous && origin.sources.iter().all(|own| *own == DemandSource::None)
    };
    let entries = built.model.entries.iter().zip(&built.origins.entries);
    let names: Vec<&str> = entries.filter(|(_, origin)| unseen(origin)).map(|(entry, _)| &*entry.name).collect();
    let first = names.first()?;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    let they = if names.len() == 1 { "it has" } else { "they have" };
    let message = format!("the work of {}{more} is not known: {they} no demand", shown.join(", "));
    Some(
        Diagnostic::warning(codes::UNSEEN_WORK, Place::Nowhere, message)
            .with_note("no caller waits for a reply, and no message shows when the work ends")
            .with_hint(format!("give the demand: `{} = \"5 ms\"` under `[demand.entry]`", load::toml_key(first))),
    )
}

/// Says which consumers serve more in larger batches.
fn in_batches(built: &Assembled) -> Vec<Diagnostic> {
    let entries = built.model.entries.iter().zip(&built.origins.entries);
    let told = |(entry, origin): (&crate::lqn::Entry, &EntryOrigin)| {
        let costs = origin.batches?;
        let [batch, message, mean, least] =
            [costs.batch, costs.message, costs.of_message(costs.mean), costs.of_message(costs.most as f64)]
                .map(milliseconds);
        let message = format!(
            "`{}` takes messages in batches of {} on the mean: {batch} a batch, and {message} a message",
            entry.name,
            load::short((costs.mean * 10.0).round() / 10.0)
        );
        Some(
            Diagnostic::new(Severity::Note, codes::BATCHES, Place::Nowhere, message)
                .with_note(format!(
                    "a message takes {mean} in these batches, and {least} in the largest one, of {}: under more load batches are larger, so that it is busy all the time long before it is overloaded",
                    costs.most
                ))
                .with_note(format!(
                    "its headroom is that with the largest batch, {} times that of today's batches; larger ones were not seen",
                    load::short((100.0 / costs.least()).round() / 100.0)
                )),
        )
    };
    entries.filter_map(told).take(SHOWN).collect()
}

/// Warns of entries whose own time may hold waits for a service that records no spans, since they record no calls.
fn unseen_waits(built: &Assembled, sub: &SubModel) -> Option<Diagnostic> {
    let entries = built.model.entries.iter().zip(&built.origins.entries);
    let waits: Vec<(&str, f64)> = entries
        .map(|(entry, origin)| (entry, sub.entry(origin.total)))
        .filter(|(_, total)| 2 * total.may_wait > total.invocations)
        .map(|(entry, total)| (&*entry.name, total.own_time() / total.invocations as f64))
        .collect();
    if waits.is_empty() {
        return None;
    }
    let message = if waits.len() == 1 {
        "the own time of an entry may hold waits for a service that records no spans".to_owned()
    } else {
        format!("the own time of {} entries may hold waits for a service that records no spans", waits.len())
    };
    let mut finding = Diagnostic::warning(codes::UNSEEN_WAITS, Place::Nowhere, message);
    for (entry, own) in waits.iter().take(SHOWN) {
        finding =
            finding.with_note(format!("`{entry}`: {} an invocation, which is its demand at most", milliseconds(*own)));
    }
    if waits.len() > SHOWN {
        finding = finding.with_note(format!("and {} more", waits.len() - SHOWN));
    }
    Some(
        finding
            .with_note("the parents of some spans were never recorded, and neither were calls of these services: how much of this time is work is not known, and intervals begin at 0")
            .with_hint("see to the exporter of the service that is missing, or measure utilisation and give it by `--utilisation`"),
    )
}

/// Says which invocations were taken to be waited for, against what their spans show.
fn outvoted(built: &Assembled, sub: &SubModel) -> Vec<Diagnostic> {
    let entries = built.model.entries.iter().zip(&built.origins.entries);
    let few = entries.map(|(entry, origin)| (entry, sub.entry(origin.total)));
    few.filter(|(_, total)| total.outvoted > 0)
        .map(|(entry, total)| {
            let (few, all) = (total.outvoted, total.invocations);
            let message =
                format!("{few} of {all} invocations of `{}` begin after their caller has gone on", entry.name);
            Diagnostic::new(Severity::Note, codes::OUTVOTED, Place::Nowhere, message)
                .with_note("callers wait for all others, so that these count as calls that wait, too")
        })
        .collect()
}

/// How many entries are named.
const SHOWN: usize = 5;

/// A server of customers who do not think is busy all the time, by what traces tell of its work up to this: what is beyond is wrong with that.
const SATURATED: f64 = 1.1;

/// What tells the load of a scenario.
struct Evidence {
    /// The configuration.
    configured: Option<Load>,
    /// Customers that were seen to ask.
    seen: Option<Load>,
    /// The rate at which operations began, where nobody was seen to ask.
    rate: Option<f64>,
}

impl Evidence {
    fn of(customer: &Customer, recording: &Recording) -> Self {
        let total = &customer.scenario_total;
        let seen = load::observed_customers(total, recording);
        let rate = if seen.is_none() { recording.rate(total) } else { None };
        Self { configured: customer.load, seen, rate }
    }

    /// The rate where nothing but it tells the load.
    fn rate_alone(&self) -> Option<f64> {
        self.rate.filter(|_| self.configured.is_none())
    }

    /// The rate of arrivals from outside.
    fn open(&self) -> Option<f64> {
        match self.configured {
            Some(Load::Open { rate }) => Some(rate),
            Some(Load::Closed { .. }) => None,
            None => self.rate,
        }
    }
}

/// The load of each scenario. What was observed is used whether the model can sustain it or not: a model that lacks servers is to say so.
fn choose_loads(
    parts: &Parts<'_>,
    configuration: &Configuration,
    (traced, known): (&Traced, &population::Found),
    demands: &DemandValues,
    clones: &mut Clones,
    findings: &mut Vec<Diagnostic>,
) -> Loads {
    let recording = Recording::of(parts.sub);
    let evidence: Vec<Evidence> = parts.customers.iter().map(|own| Evidence::of(own, &recording)).collect();
    let observing = evidence.iter().any(|own| own.rate_alone().is_some());
    let trial = observing.then(|| {
        let alone = vec![(Load::ALONE, LoadReason::Assumed); parts.customers.len()];
        Assembly::build(parts, configuration, traced, demands, &alone, clones).model
    });
    let overload = |rates: Vec<Option<f64>>| {
        // Customers come first in the model.
        let rates = rates.into_iter().enumerate().filter_map(|(number, rate)| Some((EntryId::from(number), rate?)));
        stability::check(trial.as_ref()?, &rates.collect::<Vec<_>>()).err()
    };
    let mut overloaded = overload(evidence.iter().map(Evidence::open).collect());
    let totals = parts.customers.iter().map(|customer| &customer.scenario_total);
    let rates: Vec<_> = totals.zip(evidence.iter().map(Evidence::rate_alone)).collect();
    let mut found = population::customers(&rates, known);
    let totals = parts.customers.iter().map(|customer| &customer.scenario_total);
    let fixed = chosen::at_fixed_rate(totals);
    if fixed.is_some() {
        found.fill(None);
    }
    // Customers wait where a server is busy all the time, and make it no busier: what is more than chance is none of theirs.
    if overloaded.as_ref().is_some_and(|own| own.utilization > SATURATED) {
        found.fill(None);
    } else if overloaded.is_some() {
        let others = evidence.iter().zip(&found).map(|(own, found)| own.open().filter(|_| found.is_none()));
        overloaded = overload(others.collect());
    }
    let mut loads = Loads::with_capacity(evidence.len());
    for ((customer, own), found) in parts.customers.iter().zip(evidence).zip(found) {
        let (name, total) = (&customer.scenario, &customer.scenario_total);
        if own.rate_alone().is_some() {
            findings.extend(load::recordings_warning(name, total, &recording));
        }
        let (load, reason, told) = match (own, found, &overloaded) {
            (Evidence { configured: Some(load), .. }, _, _) => (load, LoadReason::Configured, None),
            (Evidence { rate: Some(rate), .. }, Some(found), _) => {
                (found.load, LoadReason::Observed, Some(population::note(name, &found, rate, total)))
            }
            (Evidence { rate: Some(rate), .. }, None, overloaded) => {
                let element = overloaded.as_ref().and_then(|own| Some((own.element.as_deref()?, own.utilization)));
                let told = match element {
                    // Of a circle of calls nothing is known; one finding says so for all scenarios.
                    None => with_fixed_rate(load::observed_note(name, rate, total, &recording), fixed),
                    Some(overload) => load::overload_warning(name, rate, overload, total),
                };
                (Load::Open { rate }, LoadReason::Observed, Some(told))
            }
            (Evidence { seen: Some(load), .. }, _, _) => {
                (load, LoadReason::Observed, Some(load::customers_note(name, load, total, &recording)))
            }
            _ => {
                let load = load::assumed(total);
                (load, LoadReason::Assumed, Some(load::assumed_note(name, load, total)))
            }
        };
        findings.extend(told);
        loads.push((load, reason));
    }
    loads
}
