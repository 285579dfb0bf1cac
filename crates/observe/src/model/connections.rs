//! Connections: which operation of which process a call goes to, and how often calls are made (§5.1, steps 4 and 5).

use std::collections::{BTreeMap, BTreeSet};

use dyelog_lqn::model::{Call, CallKind, EntryId, Forwarding, Scheduling, Task};

use crate::codes;
use crate::model::Draft;
use crate::model::devices::add_delay;
use crate::model::entities::{Added, Entity};
use crate::model::regularity::Links;
use crate::observation::{Input, Operation, Output, Request, Service, Times};

/// Requests beyond those of observed clients, as a part of all, that are load of others; and how many standard errors they must be.
const UNOBSERVED: f64 = 0.02;
const ERRORS: f64 = 3.0;

/// Entities and how they are connected.
pub(super) struct Connections<'e, 'p> {
    entities: &'e [Entity<'p>],
    added: &'e [Added],
    /// Entities by protocol sequence and by interface.
    at: BTreeMap<&'e str, BTreeSet<usize>>,
    exporting: BTreeMap<&'e str, BTreeSet<usize>>,
}

/// Where calls go, each place with its part of them.
type Targets = Vec<(EntryId, f64)>;

impl<'e, 'p> Connections<'e, 'p> {
    pub(super) fn of(entities: &'e [Entity<'p>], added: &'e [Added]) -> Self {
        let mut at: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        let mut exporting: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for (number, entity) in entities.iter().enumerate().filter(|(_, entity)| !entity.is_client) {
            for (interface, protocols) in &entity.total.interfaces {
                exporting.entry(interface).or_default().insert(number);
                for protocol in protocols {
                    at.entry(protocol).or_default().insert(number);
                }
            }
            for operation in &entity.operations {
                exporting.entry(&operation.interface).or_default().insert(number);
            }
        }
        Self { entities, added, at, exporting }
    }

    /// Adds all calls, then the load of clients that nothing observes. Gives what made the calls that go to one place.
    pub(super) fn add(&self, draft: &mut Draft) -> Links<'e> {
        let mut links = Links::new();
        let mut received: BTreeMap<EntryId, f64> = BTreeMap::new();
        let mut delays: BTreeMap<Operation, (EntryId, f64, f64)> = BTreeMap::new();
        let mut simplified: BTreeSet<String> = BTreeSet::new();
        for (entity, added) in self.entities.iter().zip(self.added) {
            for (output, times) in &entity.total.outputs {
                let (caller, completions) = match entity.caller(output) {
                    Some(operation) => (added.entries[operation], entity.completions(operation)),
                    None => match added.background {
                        Some((_, entry)) => (entry, entity.background_calls()),
                        None => continue,
                    },
                };
                let count = times.moments.count as f64;
                if count <= 0.0 || completions <= 0.0 {
                    if count > 0.0 {
                        let from = draft.name(caller);
                        simplified.insert(format!(
                            "{count} calls of `{from}` to `{}` are left out: it never ended",
                            output.operation
                        ));
                    }
                    continue;
                }
                let targets = self.targets(output, &mut simplified);
                let targets = if targets.is_empty() { delay(draft, output, times, &mut delays) } else { targets };
                if output.request == Request::Deferred {
                    let from = draft.name(caller);
                    simplified.insert(format!(
                        "`{from}` waits for `{}` at once, though it goes on meanwhile",
                        output.operation
                    ));
                }
                for (to, part) in targets {
                    let own = links.entry((caller, to)).or_default();
                    if part == 1.0 && output.request != Request::Asynchronous {
                        own.push(output);
                    }
                    *received.entry(to).or_default() += count * part;
                    let forwards = is_forwarding(entity, output) && output.request == Request::Asynchronous;
                    call(draft, caller, to, output.request, forwards, (count * part, completions));
                }
            }
        }
        for message in simplified {
            draft.warn(codes::SIMPLIFIED, message);
        }
        for (operation, (entry, seconds, count)) in delays {
            let mean = if count > 0.0 { seconds / count } else { 0.0 };
            draft.work(entry).think_time = mean;
            let name = draft.name(entry);
            draft.source(&name, "think time", mean, format!("mean response of {count} calls, as callers saw it"));
            let message = format!("nothing observes the server of `{operation}`: it is a delay");
            draft
                .warn(codes::UNOBSERVED_SERVER, message)
                .hints
                .push("its queue is in none of the answers; instrument it".to_owned());
        }
        self.add_unobserved_clients(draft, &received);
        links
    }

    /// The entries that a call goes to.
    fn targets(&self, output: &Output, simplified: &mut BTreeSet<String>) -> Targets {
        let offers = |number: &usize| -> Option<EntryId> {
            let place = self.entities[*number].operations.binary_search(&output.operation).ok()?;
            Some(self.added[*number].entries[place])
        };
        let of = |numbers: Option<&BTreeSet<usize>>| -> Vec<(usize, EntryId)> {
            numbers.into_iter().flatten().filter_map(|number| Some((*number, offers(number)?))).collect()
        };
        let connected = of(self.at.get(&*output.protocol).filter(|_| !output.protocol.is_empty()));
        let found = if connected.is_empty() { of(self.exporting.get(&*output.operation.interface)) } else { connected };
        if let [(_, only)] = found[..] {
            return vec![(only, 1.0)];
        }
        if !found.is_empty() {
            let message = format!(
                "which of {} processes calls of `{}` go to is not known: they are shared by how much each served",
                found.len(),
                output.operation
            );
            simplified.insert(message);
        }
        let served = |number: usize| self.entities[number].total.completions(&output.operation) as f64;
        let all: f64 = found.iter().map(|(number, _)| served(*number)).sum();
        let even = 1.0 / found.len().max(1) as f64;
        found.iter().map(|(number, entry)| (*entry, if all > 0.0 { served(*number) / all } else { even })).collect()
    }

    /// What servers did for others than those that are observed arrives from outside (untraced clients).
    fn add_unobserved_clients(&self, draft: &mut Draft, received: &BTreeMap<EntryId, f64>) {
        for (entity, added) in self.entities.iter().zip(self.added).filter(|(entity, _)| !entity.is_client) {
            for (number, operation) in entity.operations.iter().enumerate() {
                let entry = added.entries[number];
                let completions = entity.completions(number);
                let more = completions - received.get(&entry).copied().unwrap_or(0.0);
                if more <= (ERRORS * completions.sqrt()).max(UNOBSERVED * completions).min(completions - 0.5) {
                    continue;
                }
                let rate = more / entity.total.seconds();
                draft.model.entries[entry.index()].open_arrival_rate = Some(rate);
                let name = draft.name(entry);
                draft.source(
                    &name,
                    "open arrivals",
                    rate,
                    format!("{more} of {completions} requests came of no process that reports"),
                );
                // Several may serve the same.
                let message = format!(
                    "clients that nothing observes call `{operation}` of `{}` {rate:.3} times a second: open arrivals",
                    entity.name
                );
                draft.warn(codes::UNOBSERVED_CLIENTS, message);
            }
        }
    }
}

/// Whether the operation that makes a call passes its request on.
fn is_forwarding(entity: &Entity<'_>, output: &Output) -> bool {
    let forwards = |within: &Operation| {
        let input = Input { operation: within.clone(), service: Service::Forwarding };
        entity.total.inputs.contains_key(&input)
    };
    output.within.as_ref().is_some_and(forwards)
}

/// Adds calls to those that there are, so many in so many executions of the caller.
fn call(
    draft: &mut Draft,
    from: EntryId,
    to: EntryId,
    request: Request,
    forwards: bool,
    (count, completions): (f64, f64),
) {
    let mean = count / completions;
    let element = format!("{} > {}", draft.name(from), draft.name(to));
    if forwards {
        let forwarding = &mut draft.model.entries[from.index()].forwarding;
        let left = (1.0 - forwarding.iter().map(|forwarding| forwarding.probability).sum::<f64>()).max(0.0);
        let probability = mean.min(left);
        match forwarding.iter_mut().find(|forwarding| forwarding.to == to) {
            Some(known) => known.probability += probability,
            None => forwarding.push(Forwarding { to, probability }),
        }
        return draft.source(
            &element,
            "forwarding",
            probability,
            format!("{count} requests passed on of {completions}"),
        );
    }
    let kind = if request == Request::Asynchronous { CallKind::Asynchronous } else { CallKind::Synchronous };
    let calls = &mut draft.work(from).calls;
    match calls.iter_mut().find(|call| call.to == to && call.kind == kind) {
        Some(known) => known.mean += mean,
        None => calls.push(Call { to, kind, mean }),
    }
    draft.source(&element, "calls", mean, format!("{count} calls in {completions} executions"));
}

/// An operation of a server that nothing observes: a delay without a queue.
fn delay(
    draft: &mut Draft,
    output: &Output,
    times: &Times,
    delays: &mut BTreeMap<Operation, (EntryId, f64, f64)>,
) -> Targets {
    let waited = if output.request == Request::Asynchronous {
        (0.0, 0.0)
    } else {
        (times.seconds(), times.moments.count as f64)
    };
    let known = delays.entry(output.operation.clone()).or_insert_with(|| {
        let name = format!("{}-unobserved", output.operation);
        let processor = add_delay(draft, &name);
        let task = draft.add_task(Task::new(&name, processor, Scheduling::Delay));
        (draft.add_entry(task, &[name]), 0.0, 0.0)
    });
    known.1 += waited.0;
    known.2 += waited.1;
    vec![(known.0, 1.0)]
}
