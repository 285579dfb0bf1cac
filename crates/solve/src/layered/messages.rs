//! Messages that meet their sender.
//!
//! Where a message is worked on by the processor of its sender, it arrives there at the moment at which the sender goes on. Layers take
//! messages for a Poisson stream, which finds the sender no more often than chance has it. What both wait for each other beyond
//! that follows from the two alone: the slices of the sender after the call, and the first slice of the message.

use crate::layered::chains::{ChainId, ClientId, ClientKind, Decomposition, Item, NONE, StationId};
use crate::layered::outer::relative;
use crate::layered::state::Solver;
use crate::layered::submodels::station;
use crate::mva::Discipline;
use crate::numeric::by_id::ById;
use crate::prepare::plan::{ModelPlan, PlannedWork};
use dyelog_lqn::EntryId;

/// More meetings than this are left to chance: in so large a model each is a small part.
const MOST_MEETINGS: usize = 1000;

/// Visits of a chain to a station.
#[derive(Clone, Copy, Debug)]
struct Visitor {
    client: ClientId,
    chain: ChainId,
    slot: usize,
}

/// Calls that send messages to an entry which begins at the processor of the sender.
#[derive(Clone, Debug)]
pub(crate) struct Meeting {
    station: StationId,
    sender: Visitor,
    /// The sender's entry, as a position in its chain.
    position: usize,
    /// Messages in an execution of that entry.
    messages: f64,
    message: Visitor,
    delays: Delays,
}

/// All meetings of a model at single servers without priorities.
pub(crate) fn meetings(plan: &ModelPlan, decomposition: &Decomposition) -> Vec<Meeting> {
    let mut found = Vec::new();
    for (number, chain) in decomposition.chains.pairs() {
        for (position, reach) in chain.reach.iter().enumerate() {
            for item in &chain.items[reach.items.clone()] {
                let Item::Step { work, visits, slot, .. } = *item else { continue };
                if slot == NONE || plan.works[work].slice <= 0.0 {
                    continue;
                }
                let sender = Visitor { client: chain.client, chain: number, slot: slot as usize };
                let server = chain.stations[sender.slot];
                if let Some(discipline) = followed(plan, decomposition, server) {
                    let met = of_work(plan, decomposition, &plan.works[work], server, discipline);
                    found.extend(met.into_iter().map(|(message, mean, delays)| Meeting {
                        station: server,
                        sender,
                        position,
                        messages: visits * mean,
                        message,
                        delays,
                    }));
                }
                if found.len() > MOST_MEETINGS {
                    return Vec::new();
                }
            }
        }
    }
    found
}

/// The messages of a phase or activity that begin at the server of their sender: their number in an execution, and their delays.
fn of_work(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    work: &PlannedWork,
    server: StationId,
    discipline: Discipline,
) -> Vec<(Visitor, f64, Delays)> {
    let sends = || work.calls.iter().filter(|call| !call.synchronous && !call.forwarded && call.mean > 0.0);
    let here = |to: EntryId| arrival(plan, decomposition, to, server);
    let all: f64 = sends().map(|call| call.mean).sum();
    let met: f64 = sends().filter(|call| here(call.to).is_some()).map(|call| call.mean).sum();
    let fixed = work.deterministic && work.variance_of_calls == 0.0 && (met - work.own_calls()).abs() < 1e-9;
    let delays = |to: EntryId| {
        let (message, first_slice) = here(to)?;
        let run = Run {
            slice: work.slice,
            message: first_slice,
            threads: decomposition.clients[message.client].population,
            sends: if fixed {
                Sends::Fixed(met)
            } else {
                Sends::Geometric { here: met / work.slices, all: all / work.slices }
            },
        };
        Some((message, run.delays(discipline)))
    };
    sends().filter_map(|call| delays(call.to).map(|(message, delays)| (message, call.mean, delays))).collect()
}

/// The discipline of a single server without priorities.
fn followed(plan: &ModelPlan, decomposition: &Decomposition, server: StationId) -> Option<Discipline> {
    let known = station(plan, decomposition, server);
    let simple = known.servers <= 1.0 && matches!(known.discipline, Discipline::Fcfs | Discipline::Sharing);
    simple.then_some(known.discipline)
}

/// The first visit of a message to an entry, with the length of its slice, if it is one to that station.
fn arrival(plan: &ModelPlan, decomposition: &Decomposition, to: EntryId, server: StationId) -> Option<(Visitor, f64)> {
    let task = plan.entries[to.index()].task;
    let client = decomposition.threads_of[task].or(decomposition.open_classes[to.index()].0)?;
    let number = decomposition.clients[client].chains.first;
    let chain = &decomposition.chains[number];
    let reach = chain.reach.iter().find(|reach| reach.entry == to)?;
    let Item::Step { work, slot, .. } = *chain.items.get(reach.items.clone())?.first()? else { return None };
    let slice = plan.works[work].slice;
    let here = slot != NONE && slice > 0.0 && chain.stations[slot as usize] == server;
    here.then_some((Visitor { client, chain: number, slot: slot as usize }, slice))
}

/// Rates of visits, by chain and slot.
struct Presence {
    /// Visits per second.
    visits: ById<ChainId, Vec<f64>>,
    /// Mean number there.
    there: ById<ChainId, Vec<f64>>,
    /// Mean busy servers, by station.
    busy: ById<StationId, f64>,
}

impl Solver<'_> {
    /// Finds how much longer visits take where messages meet their senders; the largest relative change.
    pub(crate) fn meet_messages(&mut self) -> f64 {
        if self.meetings.is_empty() {
            return 0.0;
        }
        let presence = self.presence();
        let mut met: ById<ChainId, Vec<f64>> =
            self.decomposition.chains.iter().map(|chain| vec![0.0; chain.stations.len()]).collect();
        for meeting in &self.meetings {
            let Meeting { sender, message, .. } = *meeting;
            let cycles = self.rates.throughputs[sender.client];
            let rate = cycles * self.rates.flows[sender.chain][meeting.position] * meeting.messages;
            // Of one customer, and of its messages, a Poisson stream finds what is there on average, too.
            let population = self.decomposition.clients[sender.client].population;
            let by_chance = |visitor: Visitor| presence.there[visitor.chain][visitor.slot] / population;
            let others = (presence.busy[meeting.station] * (1.0 - 1.0 / population)).clamp(0.0, 1.0);
            let (wait, longer) = meeting.delays.beyond_chance(by_chance(sender), by_chance(message), others);
            let begins = rate * self.idle_threads(message.client);
            let mut add = |visitor: Visitor, seconds: f64| {
                let visits = presence.visits[visitor.chain][visitor.slot];
                if visits > 0.0 {
                    met[visitor.chain][visitor.slot] += begins / visits * seconds;
                }
            };
            add(sender, wait);
            add(message, longer);
        }
        let pairs = met.iter().flatten().zip(self.waits.met.iter().flatten());
        let change = pairs.map(|(new, old)| relative(*old, *new)).fold(0.0, f64::max);
        self.waits.met = met;
        change
    }

    /// The probability that a message is worked on as it comes.
    fn idle_threads(&self, client: ClientId) -> f64 {
        match self.decomposition.clients[client].kind {
            ClientKind::Threads(_) => {
                let busy = self.rates.throughputs[client] * self.busy_time(client);
                (1.0 - busy / self.decomposition.clients[client].population).clamp(0.0, 1.0)
            }
            _ => 1.0,
        }
    }

    fn presence(&self) -> Presence {
        let chains = &self.decomposition.chains;
        let zero = || chains.iter().map(|chain| vec![0.0; chain.stations.len()]).collect::<ById<ChainId, Vec<f64>>>();
        let (mut visits, mut there, mut busy) = (zero(), zero(), self.decomposition.by_station(0.0));
        for (number, chain) in chains.pairs() {
            let cycles = self.rates.throughputs[chain.client];
            let stays = self.waits.all(number);
            for (position, reach) in chain.reach.iter().enumerate() {
                let executions = cycles * self.rates.flows[number][position];
                for item in &chain.items[reach.items.clone()] {
                    let Item::Step { work, visits: each, slot, .. } = *item else { continue };
                    if slot == NONE {
                        continue;
                    }
                    let (work, slot) = (&self.plan.works[work], slot as usize);
                    let rate = executions * each * work.slices;
                    visits[number][slot] += rate;
                    there[number][slot] += rate * (stays[slot].wait + work.slice * (1.0 + stays[slot].slowdown));
                    busy[chain.stations[slot]] += rate * work.slice;
                }
            }
        }
        Presence { visits, there, busy }
    }
}

/// What a sender and its messages do to each other, where nobody else is at the server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Delays {
    /// Processor sharing: seconds that both take longer, for each message.
    Shared { sender: f64, message: f64 },
    /// First come, first served: a message waits for the sender's slice. With the first probability a slice waits for the message before
    /// the last one; with the second, a message waits for the one before it. One after the other by a single thread, they come in turn.
    InLine { slice: f64, message: f64, slice_waits: f64, message_waits: f64, in_turn: bool },
}

impl Delays {
    /// Seconds that the sender and the message take longer than a Poisson stream would have it, for each message. That stream finds so many of the
    /// sender and of its messages there, and others keep the server busy for that part of the time.
    fn beyond_chance(self, senders: f64, messages: f64, others: f64) -> (f64, f64) {
        match self {
            Self::Shared { sender, message } => {
                // Each other customer of M/M/1 with processor sharing takes 1 / (2 - U) services.
                let slowed = 1.0 / (1.0 - 0.5 * others);
                (sender * slowed / (1.0 + messages), message * slowed / (1.0 + senders))
            }
            Self::InLine { slice, message, slice_waits, message_waits, in_turn } => {
                // The busier the server, the less of its queue is a Poisson stream's. Messages in turn are fewer already: those that find the thread idle.
                let free = if in_turn { 1.0 } else { 1.0 - others };
                let before = (message_waits - messages).max(0.0) * message;
                let sender = (slice_waits - messages).max(0.0) * message;
                (free * sender, free * ((1.0 - senders).max(0.0) * slice + before))
            }
        }
    }
}

/// A sender that sends messages between slices of its own.
struct Run {
    /// Mean length of the sender's slices, seconds.
    slice: f64,
    /// Mean length of a message's first slice, seconds.
    message: f64,
    /// How many messages can be worked on at a time.
    threads: f64,
    sends: Sends,
}

/// What follows a slice of the sender.
enum Sends {
    /// So many messages in all, each followed by a slice.
    Fixed(f64),
    /// With these probabilities a message that begins here, or any; else the sender leaves.
    Geometric { here: f64, all: f64 },
}

/// Runs are followed up to so many slices.
const MOST_SLICES: usize = 2000;
/// More messages of one sender are not at the server at a time.
const MOST_MESSAGES: usize = 100;

impl Sends {
    /// The probabilities that a message that begins here, or one that does not, follows the slice of that number.
    fn after(&self, slice: usize) -> (f64, f64) {
        match *self {
            Self::Fixed(count) => ((count - slice as f64).clamp(0.0, 1.0), 0.0),
            Self::Geometric { here, all } => (here, (all - here).max(0.0)),
        }
    }
}

impl Run {
    fn delays(&self, discipline: Discipline) -> Delays {
        if discipline == Discipline::Sharing { self.shared() } else { self.in_line() }
    }

    /// First come, first served: the sender goes on before its message is worked on, and its second slice from there waits for the message.
    fn in_line(&self) -> Delays {
        let (slice_waits, message_waits) = match self.sends {
            Sends::Fixed(count) => ((count - 1.0).max(0.0) / count, (count - 1.0).max(0.0) / count),
            Sends::Geometric { here, all } => (all, here),
        };
        let in_turn = self.threads <= 1.0;
        let message_waits = if in_turn { 0.0 } else { message_waits };
        Delays::InLine { slice: self.slice, message: self.message, slice_waits, message_waits, in_turn }
    }

    /// Processor sharing: a Markov chain of the messages that are there beside the sender's slice, slice by slice.
    fn shared(&self) -> Delays {
        let active = |there: usize| (there as f64).min(self.threads);
        // By messages there, at the begin of the slice.
        let mut begin = vec![1.0];
        let (mut sender, mut messages) = (0.0, 0.0);
        let (mut slices, mut sent) = (0.0, 0.0);
        for number in 0..MOST_SLICES {
            let weight: f64 = begin.iter().sum();
            if weight < 1e-9 {
                break;
            }
            slices += weight;
            let (here, elsewhere) = self.sends.after(number);
            let mut next = vec![0.0; (begin.len() + 1).min(MOST_MESSAGES)];
            let mut ended = 0.0;
            for there in (0..begin.len()).rev() {
                let visits = begin[there] + ended;
                let (own, others) = (1.0 / self.slice, active(there) / self.message);
                let time = visits * (active(there) + 1.0) / (own + others);
                sender += time;
                messages += time * active(there);
                ended = visits * others / (own + others);
                let done = visits - ended;
                sent += done * here;
                next[(there + 1).min(MOST_MESSAGES - 1)] += done * here;
                next[there] += done * elsewhere;
                // The sender leaves, and its messages have the server.
                let drain: f64 = (1..=there).map(active).sum();
                messages += done * (1.0 - here - elsewhere).max(0.0) * drain * self.message;
            }
            begin = next;
        }
        if sent <= 0.0 {
            return Delays::Shared { sender: 0.0, message: 0.0 };
        }
        let sender = (sender - slices * self.slice) / sent;
        Delays::Shared { sender: sender.max(0.0), message: (messages / sent - self.message).max(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Run, Sends};
    use crate::mva::Discipline;

    fn delays(sends: Sends, discipline: Discipline) -> (f64, f64) {
        let run = Run { slice: 0.04, message: 0.06, threads: f64::INFINITY, sends };
        run.delays(discipline).beyond_chance(0.0, 0.0, 0.0)
    }

    #[test]
    fn a_single_message_shares_the_server_with_one_slice() {
        let found = delays(Sends::Fixed(1.0), Discipline::Sharing);
        let together = 0.04 * 0.06 / (0.04 + 0.06);
        assert!((found.0 - together).abs() < 1e-12 && (found.1 - together).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn in_line_later_slices_and_messages_wait_for_messages() {
        let one = delays(Sends::Fixed(1.0), Discipline::Fcfs);
        assert_eq!(one, (0.0, 0.04));
        let three = delays(Sends::Fixed(3.0), Discipline::Fcfs);
        assert!((three.0 - 0.04).abs() < 1e-12 && (three.1 - 0.08).abs() < 1e-12, "{three:?}");
    }

    #[test]
    fn a_run_without_end_is_followed_for_a_while() {
        let found = delays(Sends::Geometric { here: 1.0, all: 1.0 }, Discipline::Sharing);
        assert!(found.0.is_finite() && found.1.is_finite(), "{found:?}");
    }
}
