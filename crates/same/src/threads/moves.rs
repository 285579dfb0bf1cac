//! What messages do to visits: these begin, wait, resume and end.

use std::cmp::Reverse;

use crate::sequence_model::{Act, Kind, SequenceModel};
use crate::threads::Threads;
use crate::threads::choice::Choice;
use crate::threads::visit::{Asked, At, Client, Transit, Visit};
use dyelog_diagnostic::names::Name;
use dyelog_trace::TaskId;
use dyelog_trace::messages::StepSink;

/// How many visits of a service are candidates, and how many customers may wait.
const MOST_VISITS: usize = 256;
const MOST_CUSTOMERS: usize = 1 << 16;
/// How many visits of a service that are over may expect replies.
const MOST_EXPECTING: usize = 64;

impl<S: StepSink> Threads<S> {
    /// A message leaves.
    pub(super) fn send(&mut self, from: u32, to: u32, label: Name, line: u32) -> Transit {
        let kind = self.sequences.kind(from, to, label);
        let choice = self.choose(from, to, kind);
        if let Some(at_once) = &mut self.at_once {
            let open = if choice.is_some() { self.services[from as usize].open.len().max(1) } else { 0 };
            at_once.insert(line, open as u32);
        }
        let Some(Choice { visit, client, answered, .. }) = choice else {
            self.sequences.ask(kind, true);
            let customer = self.customer(from);
            self.visits[customer as usize].waiting = 1;
            return Transit::Request { from: self.as_client(customer), kind };
        };
        if answered {
            self.presume_answered(visit);
        }
        let now = self.tick();
        let own = &mut self.visits[visit as usize];
        let act = if client.is_some() { Act::Replies } else { Act::Asks };
        let thread = own.thread;
        self.sequences.learn(&mut own.doing, SequenceModel::last(kind, act));
        own.since = now;
        let Some(client) = client else {
            own.waiting += 1;
            self.sequences.ask(kind, false);
            return Transit::Request { from: self.as_client(visit), kind };
        };
        self.sequences.reply(kind);
        // All that the request was passed on by are done with it.
        let mut done = visit;
        let (serves, awaited) = loop {
            let Visit { doing, client: next, unwaited, .. } = self.visits[done as usize];
            self.sequences.answer(doing.serves);
            self.over(done);
            match next {
                Some(next) if next.at != client.at => done = next.at.visit,
                _ => break (doing.serves, !unwaited),
            }
        };
        Transit::Reply { client, thread, serves, awaited }
    }

    /// A visit goes on as if it had been answered, though no message was taken for the answer. None may ever come: the task that it asked
    /// must not get those of others from then on, one after the other.
    fn presume_answered(&mut self, visit: u32) {
        let own = &self.visits[visit as usize];
        let Some(asked) = self.once_answered(own) else { return };
        let own = &mut self.visits[visit as usize];
        own.doing = asked.then;
        own.waiting = own.waiting.saturating_sub(1);
        self.visits[asked.at.visit as usize].unwaited = true;
    }

    /// A visit is over; its thread is free.
    fn over(&mut self, visit: u32) {
        let own = &mut self.visits[visit as usize];
        own.over = true;
        let service = &mut self.services[own.service as usize];
        if let Some(place) = service.open.iter().position(|open| *open == visit) {
            service.open.remove(place);
        }
        service.over.push_back(visit);
    }

    /// A thread that begins work of its own.
    fn customer(&mut self, service: u32) -> u32 {
        if self.customers.len() >= MOST_CUSTOMERS
            && let Some(oldest) = self.customers.pop_front()
            && self.alive(oldest).is_some()
        {
            self.end_customer(oldest.visit);
        }
        let thread = match self.services[service as usize].idle.pop() {
            Some(Reverse(thread)) => TaskId(thread),
            None => self.new_thread(service),
        };
        let kind = self.sequences.kind(u32::MAX, service, Name::NONE);
        let visit = self.begin(service, thread, None, kind);
        self.customers.push_back(self.at(visit));
        visit
    }

    fn end_customer(&mut self, visit: u32) {
        let own = &mut self.visits[visit as usize];
        own.over = true;
        let Visit { thread, service, .. } = *own;
        self.services[service as usize].idle.push(Reverse(thread.0));
        self.free.push(visit);
    }

    /// Takes a visit of a service that is over, whose thread goes on to something else. One to which a reply may still come is left as
    /// long as there are few of them: the reply would be taken for a request to whatever the thread does by then.
    fn free_thread(&mut self, service: u32) -> Option<u32> {
        let over = &mut self.services[service as usize].over;
        let waits = |visit: &u32| self.visits[*visit as usize].waiting > 0;
        let place = over.iter().position(|visit| !waits(visit)).or((over.len() >= MOST_EXPECTING).then_some(0))?;
        over.remove(place)
    }

    /// A request arrives; gives the thread that serves it.
    fn accept(&mut self, service: u32, client: Client, kind: Kind) -> TaskId {
        self.services[service as usize].serves = true;
        let own = &mut self.services[service as usize];
        let given_up = if own.open.len() >= MOST_VISITS { own.open.front().copied() } else { None };
        if let Some(oldest) = given_up {
            if let Some(client) = self.visits[oldest as usize].client.and_then(|client| self.alive(client.at)) {
                self.answered(client);
            }
            self.over(oldest);
        }
        let thread = match self.free_thread(service) {
            Some(over) => {
                self.free.push(over);
                let over = &mut self.visits[over as usize];
                self.sequences.learn(&mut over.doing, SequenceModel::last(0, Act::Ends));
                over.thread
            }
            None => self.new_thread(service),
        };
        let visit = self.begin(service, thread, Some(client), kind);
        let asked = self.at(visit);
        if let Some(client) = self.alive(client.at) {
            let Visit { doing, since, .. } = self.visits[client as usize];
            if doing.last == SequenceModel::last(kind, Act::Asks) {
                let then = self.sequences.then(doing, SequenceModel::last(kind, Act::Resumes));
                self.visits[client as usize].asked = Some(Asked { at: asked, since, then });
            }
        }
        self.services[service as usize].open.push_back(visit);
        thread
    }

    /// A visit waits for one answer less.
    pub(super) fn answered(&mut self, visit: u32) {
        let own = &mut self.visits[visit as usize];
        own.waiting = own.waiting.saturating_sub(1);
        if own.client.is_none() && own.waiting == 0 {
            self.end_customer(visit);
        }
    }

    /// A reply arrives.
    fn resume(&mut self, client: At, serves: Kind) {
        let now = self.tick();
        let own = &mut self.visits[client.visit as usize];
        if own.born == client.born && own.over {
            own.waiting = own.waiting.saturating_sub(1);
        } else if let Some(client) = self.alive(client) {
            let own = &mut self.visits[client as usize];
            self.sequences.learn(&mut own.doing, SequenceModel::last(serves, Act::Resumes));
            own.since = now;
            self.answered(client);
        }
    }

    /// The threads at both ends of a message that arrives.
    pub(super) fn arrive(&mut self, transit: Transit, to: u32) -> Option<(TaskId, TaskId)> {
        match transit {
            Transit::Request { from, kind } => Some((from.thread, self.accept(to, from, kind))),
            Transit::Reply { client, thread, serves, awaited } => {
                if awaited {
                    self.resume(client.at, serves);
                }
                Some((thread, client.thread))
            }
            Transit::None | Transit::Open => None,
        }
    }
}
