//! The entries of a sub-model in two parts: the customers of scenarios, and the services.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::lqn::submodel::{EntryIndex, EntryTotal, Interaction, RequestKind, ScenarioTotal, SubModel};
use crate::model::config::{Configuration, PlacedName};
use crate::model::pools::Pool;
use crate::model::weave::Decided;
use crate::model::{Load, codes, load, profile};
use crate::names::Name;

/// The sub-model's entries as the model has them: one customer a scenario, and the rest in canonical order.
pub struct Parts<'s> {
    /// The sub-model.
    pub sub: &'s SubModel,
    /// One a scenario, by name.
    pub customers: Vec<Customer>,
    /// All other entries, in canonical order.
    pub entries: Vec<EntryIndex>,
    /// The pools of threads and connections that calls were seen to wait for, by task.
    pub pools: BTreeMap<Name, Pool>,
}

/// A scenario's customer: all its entries in one, because a reference task has one.
pub struct Customer {
    /// The scenario.
    pub scenario: Arc<str>,
    /// What was seen of it.
    pub scenario_total: ScenarioTotal,
    /// The first of the entries that were put together.
    pub first: EntryIndex,
    /// Their work.
    pub total: EntryTotal,
    /// The load that the configuration gives.
    pub load: Option<Load>,
    /// Of a usage profile, its scenarios with their parts of the operations; empty for a scenario by itself.
    pub members: Vec<(Arc<str>, f64)>,
}

impl<'s> Parts<'s> {
    /// Of a sub-model.
    pub fn new(sub: &'s SubModel) -> Self {
        let mut customers: BTreeMap<String, Customer> = BTreeMap::new();
        let mut entries = Vec::new();
        for index in sub.canonical_order() {
            let entry = sub.entry(index);
            if entry.interaction != Interaction::Customer {
                // An entry that was outvoted is left with a response and no invocation.
                if entry.invocations > 0 || entry.response.count == 0 {
                    entries.push(index);
                }
                continue;
            }
            let scenario = scenario_of(sub, entry);
            match customers.get_mut(&scenario) {
                Some(customer) => take_in(&mut customer.total, entry),
                None => {
                    let scenario_total =
                        sub.names.get(&scenario).and_then(|name| sub.scenarios.get(&name)).cloned().unwrap_or_else(
                            || ScenarioTotal { operations: entry.invocations, ..ScenarioTotal::default() },
                        );
                    let name = scenario.as_str().into();
                    let customer = Customer {
                        scenario: name,
                        scenario_total,
                        first: index,
                        total: entry.clone(),
                        load: None,
                        members: Vec::new(),
                    };
                    customers.insert(scenario, customer);
                }
            }
        }
        Self { sub, customers: customers.into_values().collect(), entries, pools: BTreeMap::new() }
    }

    /// Of a sub-model whose calls are in order.
    pub fn of_decided(decided: &'s Decided) -> Self {
        Self { pools: decided.pools.clone(), ..Self::new(&decided.sub) }
    }

    /// Puts the configuration's part into the customers: tasks that stand for them, loads, and usage profiles.
    pub fn configure(&mut self, configuration: &Configuration, findings: &mut Vec<Diagnostic>) {
        self.fold_customers(configuration, findings);
        for customer in &mut self.customers {
            let settings = configuration.scenarios.get(&*customer.scenario);
            customer.load = settings.and_then(|own| load::configured(own.rate, own.population, own.think_time));
        }
        let profiles: Vec<Customer> = configuration
            .profiles
            .iter()
            .filter_map(|(name, profile)| profile::customer(name, profile, &self.customers))
            .collect();
        let taken = |customer: &Customer| {
            configuration.profiles.values().any(|profile| profile.proportions.contains_key(&*customer.scenario))
        };
        self.customers.retain(|customer| !taken(customer));
        self.customers.extend(profiles);
    }

    /// Makes the tasks that the configuration names part of the customers that they stand for.
    fn fold_customers(&mut self, configuration: &Configuration, findings: &mut Vec<Diagnostic>) {
        let sub = self.sub;
        for customer in &mut self.customers {
            let settings = configuration.scenarios.get(&*customer.scenario);
            let Some(task) = settings.and_then(|settings| settings.customer.as_ref()) else { continue };
            let Some(name) = sub.names.get(&task.name) else { continue };
            let begun: BTreeMap<EntryIndex, u64> = customer.requests_to(sub, name);
            if begun.is_empty() {
                if sub.entries().iter().any(|entry| entry.task == name) {
                    findings.push(not_the_customer(customer, task, "operations of the scenario do not begin there"));
                }
                continue;
            }
            if begun.iter().any(|(&entry, &count)| sub.entry(entry).invocations != count) {
                findings.push(not_the_customer(customer, task, "others call it as well, with the same service"));
                continue;
            }
            for work in customer.total.work.values_mut() {
                work.requests.retain(|(_, to), _| !begun.contains_key(to));
            }
            // Where nothing else is left, its visits would only be counted twice.
            customer
                .total
                .work
                .retain(|_, work| !work.requests.is_empty() || !work.activities.is_empty() || work.exclusive.count > 0);
            for &entry in begun.keys() {
                for (position, work) in &sub.entry(entry).work {
                    customer.total.work.entry(*position).or_default().add(work);
                }
            }
            self.entries.retain(|entry| !begun.contains_key(entry));
        }
    }
}

impl Customer {
    /// How often it makes a synchronous request to each entry of a task.
    fn requests_to(&self, sub: &SubModel, task: Name) -> BTreeMap<EntryIndex, u64> {
        let mut counts = BTreeMap::new();
        for ((kind, to), request) in self.total.work.values().flat_map(|work| &work.requests) {
            if *kind == RequestKind::Synchronous && sub.entry(*to).task == task {
                *counts.entry(*to).or_default() += request.count;
            }
        }
        counts
    }
}

fn not_the_customer(customer: &Customer, task: &PlacedName, why: &str) -> Diagnostic {
    let message = format!("task `{}` cannot stand for the customer of scenario `{}`", task.name, customer.scenario);
    Diagnostic::warning(codes::NOT_THE_CUSTOMER, task.place.clone(), message)
        .with_note(format!("{why}; it stays a task of the model"))
}

/// The scenario whose customer an entry is.
pub(super) fn scenario_of(sub: &SubModel, entry: &EntryTotal) -> String {
    let named = [entry.service, entry.task].into_iter().find(|name| sub.scenarios.contains_key(name));
    match (named, entry.witnesses.first()) {
        (Some(name), _) => sub.names.text(name).to_owned(),
        (None, Some(witness)) => witness.scenario.to_string(),
        (None, None) => sub.names.text(entry.task).to_owned(),
    }
}

/// Adds the invocations of one entry to another's.
pub fn take_in(total: &mut EntryTotal, other: &EntryTotal) {
    total.invocations += other.invocations;
    for (position, work) in &other.work {
        total.work.entry(*position).or_default().add(work);
    }
    for witness in &other.witnesses {
        total.add_witness(witness);
    }
}
