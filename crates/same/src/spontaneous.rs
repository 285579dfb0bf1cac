//! Tasks that serve requests and make some of their own.

use dyelog_lqn::digest::Digest;
use dyelog_lqn::submodel::{Interaction, Position, RequestKind, RequestTotal, SubModel, WorkTotal};

/// Gives what the customer of a scenario does to the task that it is, because that task serves others as well: an entry of its own,
/// which the customer asks for.
pub fn give(submodel: &mut SubModel, scenario: &str, task: &str) {
    let Some(name) = submodel.names.get(scenario) else { return };
    let customer = submodel.canonical_order().into_iter().find(|&index| {
        let entry = submodel.entry(index);
        entry.interaction == Interaction::Customer && entry.task == name
    });
    let Some(customer) = customer else { return };
    let key = Digest::of(8).text(task).text(scenario).finish();
    let task = submodel.names.intern(task);
    let service = submodel.names.intern("");
    let own = submodel.ensure_entry(key, task, 1, Interaction::Rendezvous, service);
    let entry = submodel.entry_mut(customer);
    let (count, witnesses) = (entry.invocations, entry.witnesses.clone());
    let work = std::mem::take(&mut entry.work);
    let mut asks = WorkTotal { visits: count, ..WorkTotal::default() };
    asks.requests.insert((RequestKind::Synchronous, own), RequestTotal { count, squares: count });
    entry.work.insert(Position { phase: 1, ..Position::default() }, asks);
    let entry = submodel.entry_mut(own);
    entry.invocations += count;
    entry.work = work;
    for witness in &witnesses {
        entry.add_witness(witness);
    }
}
