//! Processors: which requests are served, which ones wait, and which one comes next.
//!
//! Every slice is a request of its own: a strand that goes on to its next slice, phase or activity lines up again. Shared processors have no queue (`sharing`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::engine::Engine;
use super::pool::Queue;
use super::probe::Probe;
use super::program::{Discipline, Station};
use super::sharing::Sharing;

/// A number with its rank: the highest first, then the first that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ranked(i64, Reverse<u64>, u32);

impl Ranked {
    pub fn new(rank: i64, order: u64, number: u32) -> Self {
        Self(rank, Reverse(order), number)
    }

    pub fn number(self) -> u32 {
        self.2
    }
}

/// A processor at work.
pub(super) struct Running {
    discipline: Discipline,
    servers: u32,
    busy: u32,
    queue: Queue,
    /// The waiting jobs, by rank.
    ranked: BinaryHeap<Ranked>,
    /// The waiting jobs, in no order.
    loose: Vec<u32>,
    /// The jobs in service that may lose their server.
    served: Vec<u32>,
    /// Of a shared processor.
    pub(super) sharing: Sharing,
    order: u64,
}

impl Running {
    pub fn new(station: &Station) -> Self {
        Self {
            discipline: station.discipline,
            servers: station.servers,
            busy: 0,
            queue: Queue::default(),
            ranked: BinaryHeap::new(),
            loose: Vec::new(),
            served: Vec::new(),
            sharing: Sharing::new(station),
            order: 0,
        }
    }
}

impl<P: Probe> Engine<'_, P> {
    /// A strand asks its processor for a slice.
    #[inline]
    pub(super) fn serve(&mut self, strand: u32, demand: f64) {
        let found = &self.strands[strand];
        let instance = self.visits[found.visit].instance;
        let number = self.program.instances[instance as usize].station as usize;
        let station = &mut self.stations[number];
        if station.discipline == Discipline::Delay {
            self.timers.set(self.first_strand + strand as usize, self.now + demand);
        } else if station.discipline == Discipline::Sharing {
            let share = self.program.instances[instance as usize].share;
            self.share(number, share, strand, demand);
        } else if station.busy < station.servers {
            station.busy += 1;
            self.give_server(number, strand, demand);
        } else {
            self.wait(number, strand, demand);
        }
    }

    #[inline]
    fn give_server(&mut self, number: usize, strand: u32, demand: f64) {
        self.strands[strand].holds = true;
        if self.stations[number].discipline == Discipline::Preemptive {
            self.stations[number].served.push(strand);
        }
        self.timers.set(self.first_strand + strand as usize, self.now + demand);
    }

    fn rank(&self, strand: u32) -> i64 {
        let instance = self.visits[self.strands[strand].visit].instance;
        i64::from(self.program.instances[instance as usize].priority)
    }

    /// All servers are taken.
    fn wait(&mut self, number: usize, strand: u32, demand: f64) {
        self.strands[strand].rest = demand;
        let rank = self.rank(strand);
        match self.stations[number].discipline {
            Discipline::HeadOfLine => self.line_up(number, strand, rank),
            Discipline::Preemptive => {
                // Of those in service, the last one of the lowest rank is pre-empted.
                let served = self.stations[number].served.iter().enumerate();
                let least = served.min_by_key(|(place, other)| (self.rank(**other), Reverse(*place)));
                match least.map(|(place, other)| (place, *other)) {
                    Some((place, other)) if self.rank(other) < rank => {
                        let timer = self.first_strand + other as usize;
                        let rest = self.timers.due(timer).map_or(0.0, |due| due - self.now);
                        self.timers.cancel(timer);
                        self.stations[number].served.remove(place);
                        self.strands[other].rest = rest;
                        self.strands[other].holds = false;
                        let own = self.rank(other);
                        self.line_up_first(number, other, own);
                        self.give_server(number, strand, demand);
                    }
                    _ => self.line_up(number, strand, rank),
                }
            }
            Discipline::Random => self.stations[number].loose.push(strand),
            _ => self.stations[number].queue.push(&mut self.strands, strand),
        }
    }

    fn line_up(&mut self, number: usize, strand: u32, rank: i64) {
        let station = &mut self.stations[number];
        station.order += 1;
        station.ranked.push(Ranked::new(rank, (1 << 62) + station.order, strand));
    }

    /// Before all others of the rank.
    fn line_up_first(&mut self, number: usize, strand: u32, rank: i64) {
        let station = &mut self.stations[number];
        station.order += 1;
        station.ranked.push(Ranked::new(rank, (1 << 62) - station.order, strand));
    }

    /// A strand that may have a server gives it to the next.
    #[inline]
    pub(super) fn release(&mut self, strand: u32) {
        if !self.strands[strand].holds {
            return;
        }
        self.strands[strand].holds = false;
        let instance = self.visits[self.strands[strand].visit].instance;
        let number = self.program.instances[instance as usize].station as usize;
        let station = &mut self.stations[number];
        let next = match station.discipline {
            Discipline::Random if !station.loose.is_empty() => {
                let place = self.random.below(station.loose.len());
                Some(station.loose.swap_remove(place))
            }
            Discipline::HeadOfLine => station.ranked.pop().map(Ranked::number),
            Discipline::Preemptive => {
                station.served.retain(|other| *other != strand);
                station.ranked.pop().map(Ranked::number)
            }
            _ => station.queue.pop(&self.strands),
        };
        match next {
            None => station.busy -= 1,
            Some(next) => {
                let rest = self.strands[next].rest;
                self.give_server(number, next, rest);
            }
        }
    }
}
