//! Which visit of a service sends a message, and whether that is a reply.

use crate::sequence_model::{Act, Doing, Kind, Next};
use crate::threads::Threads;
use crate::threads::visit::{Asked, Client, Visit};
use dyelog_trace::messages::StepSink;

/// How far a request is followed that was passed on.
const MOST_HOPS: usize = 16;
/// How many times in all requests are followed for one message, but once for each visit.
const MOST_FOLLOWED: usize = 512;
/// How many scores are kept while one message is looked at.
const SCORES: usize = 32;

// The likelihoods below are ours. They rank what no count decides yet, and counts outweigh them once there are any. The laws of
// `same_load` hold what comes of them, and so does `same_lqsim::agreement_with_templates_is_measured_at_each_load` on traces of two
// applications whose threads are known.

/// Of what was never seen, what is still taken to be more likely than anything below.
const UNSEEN_WHEN_OVER: f64 = 0.001;
const UNSEEN_FOR_A_CUSTOMER: f64 = 0.0005;
/// How much less likely a reply past the caller is than one to the caller, where it was never seen.
const UNSEEN_PAST_THE_CLIENT: f64 = 0.2;
/// How sure it must be what a visit does next once it is answered, for the answer to be presumed where no message was one, and how
/// much less likely that is than to have it.
const SURE: f64 = 0.8;
const ANSWERED_UNSEEN: f64 = 0.05;
/// How much less likely an answer is that no visit waits for any more.
const NOT_WAITED_FOR: f64 = 0.2;

/// What the likelihood of a visit's next step hangs on.
#[derive(Clone, Copy, PartialEq)]
struct State {
    /// What it did.
    doing: Doing,
    /// Whether it waits.
    waits: bool,
    /// Where it would be with the answer that it waits for.
    answered: Option<Doing>,
}

/// How likely a visit does something next.
#[derive(Clone, Copy)]
struct Score {
    likelihood: f64,
    /// Whether this takes for granted that the visit had the answer that it waits for.
    answered: bool,
}

impl Score {
    fn times(self, factor: f64) -> Self {
        Self { likelihood: self.likelihood * factor, ..self }
    }
}

/// A visit of a service that waits for what another visit does.
struct Sought {
    /// The one that waits, and how many others stand between.
    found: Option<(Client, usize)>,
    /// How many were asked.
    steps: usize,
}

/// How likely visits in a state do one thing next, as far as that was asked: services that do much at once do mostly the same.
struct Scores([Option<(State, Score)>; SCORES]);

impl Scores {
    fn none() -> Self {
        Self([None; SCORES])
    }

    fn get(&mut self, state: State, score: impl FnOnce() -> Score) -> Score {
        let place = &mut self.0[state.doing.place(SCORES)];
        match place {
            Some((known, score)) if *known == state => *score,
            _ => place.insert((state, score())).1,
        }
    }
}

/// The visit that sends a message, and why.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    score: f64,
    rank: u64,
    pub visit: u32,
    /// The visit that it replies to.
    pub client: Option<Client>,
    /// Whether this takes for granted that the visit had the answer that it waits for.
    pub answered: bool,
}

impl<S: StepSink> Threads<S> {
    /// Which visit of a service waits, itself or by others, for what this visit does. The one that asked for it itself counts even when it
    /// is over. At most so many are asked.
    fn client_of(&self, visit: u32, service: u32, most: usize) -> Sought {
        let mut next = self.visits[visit as usize].client;
        for others in 0..most {
            let Some(client) = next else { return Sought { found: None, steps: others } };
            let alive = self.alive(client.at);
            if client.service == service && (alive.is_some() || others == 0) {
                return Sought { found: Some((client, others)), steps: others + 1 };
            }
            next = alive.and_then(|client| self.visits[client as usize].client);
        }
        Sought { found: None, steps: most }
    }

    /// Where a visit would be had it the answer to what it asked last, if it did nothing since and waits for that.
    pub(super) fn once_answered(&self, visit: &Visit) -> Option<Asked> {
        let asked = visit.asked.filter(|asked| asked.since == visit.since)?;
        let other = &self.visits[self.alive(asked.at)? as usize];
        (other.waiting == 0 && !other.unwaited).then_some(asked)
    }

    /// How likely it is that a visit does this next, and whether that takes for granted that it had the answer that it waits for: where
    /// it never did this before the answer, and nearly always does after it.
    fn score(&self, visit: &Visit, next: &Next, scores: &mut Scores) -> Score {
        let answered = self.once_answered(visit).map(|asked| asked.then);
        scores.get(State { doing: visit.doing, waits: visit.waiting > 0, answered }, || {
            if let Some(then) = answered
                && next.was_seen(then)
                && !next.was_seen(visit.doing)
            {
                let answered = self.sequences.likely(then, next, false, |_| 0.0);
                if answered > SURE * next.share {
                    return Score { likelihood: answered * ANSWERED_UNSEEN, answered: true };
                }
            }
            Score { likelihood: self.score_as_it_seems(visit, next), answered: false }
        })
    }

    fn score_as_it_seems(&self, visit: &Visit, next: &Next) -> f64 {
        let waits = visit.waiting > 0;
        let typical = !visit.over && !waits;
        // Nothing of the kind was seen. These only say what comes first: who is free and of whom nothing is known, who waits, who is
        // free and always did something else, who is done; and replies before requests.
        let prior = |known: bool| match (visit.over, waits, next.act) {
            (true, ..) => UNSEEN_WHEN_OVER,
            (_, false, Act::Replies) if !known => 0.6,
            (_, false, _) if !known => 0.5,
            (_, true, Act::Replies) => 0.005,
            (_, false, Act::Replies) => 0.0045,
            (_, true, _) => 0.004,
            (_, false, _) => 0.002,
        };
        self.sequences.likely(visit.doing, next, typical, prior)
    }

    /// Which visit of a service sends a message to another service.
    pub(super) fn choose(&mut self, from: u32, to: u32, kind: Kind) -> Option<Choice> {
        let (choice, steps) = self.weigh(from, to, kind);
        self.steps += steps as u64;
        choice
    }

    /// The choice, and how many steps it took.
    fn weigh(&self, from: u32, to: u32, kind: Kind) -> (Option<Choice>, usize) {
        let service = &self.services[from as usize];
        let [replies, asks] = [Act::Replies, Act::Asks].map(|act| self.sequences.step(kind, act));
        let mut best: Option<Choice> = None;
        let mut consider = |Score { likelihood: score, answered }: Score, number: u32, client: Option<Client>| {
            let visit = &self.visits[number as usize];
            // First come, first served; but who serves what nobody waits for may be done with it long since.
            let rank =
                if self.sequences.is_answered(visit.doing.serves) { u64::MAX - visit.since } else { visit.since };
            if best.is_none_or(|best| (score, rank) > (best.score, best.rank)) {
                best = Some(Choice { score, rank, visit: number, client, answered });
            }
        };
        let (mut as_replies, mut as_asks) = (Scores::none(), Scores::none());
        // Where there are many visits, none is followed far.
        let hops = (MOST_FOLLOWED / service.open.len().max(1)).clamp(1, MOST_HOPS);
        let mut steps = service.open.len() + service.over.len();
        for &number in &service.open {
            let visit = &self.visits[number as usize];
            let sought = self.client_of(number, to, hops);
            steps += sought.steps;
            if let Some((client, others)) = sought.found {
                let past = others > 0 && !replies.was_seen(visit.doing);
                let score = self.score(visit, &replies, &mut as_replies);
                let score = if visit.unwaited { score.times(NOT_WAITED_FOR) } else { score };
                let score = if past { score.times(UNSEEN_PAST_THE_CLIENT) } else { score };
                consider(score, number, Some(client));
            }
            consider(self.score(visit, &asks, &mut as_asks), number, None);
        }
        // What was answered may go on in a second phase.
        for &number in &service.over {
            let visit = &self.visits[number as usize];
            if best.is_none() || asks.was_seen(visit.doing) {
                let score = self.score_as_it_seems(visit, &asks);
                if best.is_none_or(|best| score > best.score) {
                    best = Some(Choice { score, rank: 0, visit: number, client: None, answered: false });
                }
            }
        }
        // Such a request may be one that nobody asked for.
        let customer = self.sequences.by_customers(kind).unwrap_or(UNSEEN_FOR_A_CUSTOMER);
        (best.filter(|best| best.score >= customer * asks.share), steps)
    }
}
