//! The queue of events to come: a heap of four children a node, in which every timer knows its place.
//!
//! A timer has a number and is set at most once at a time, so that it can be moved or taken out without a search. Timers of the
//! same time go off in the order in which they were set.

/// A key that orders by time, then by the order of setting; the lowest bits are the timer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

/// Bits of the number of a timer.
const TIMER_BITS: u32 = 24;
/// Most timers.
pub(super) const MOST_TIMERS: usize = 1 << TIMER_BITS;
const NOWHERE: u32 = u32::MAX;
const CHILDREN: usize = 4;

impl Key {
    #[inline]
    fn new(time: f64, order: u64, timer: u32) -> Self {
        // Times are never negative, so their bits are in their order.
        Self((u128::from(time.to_bits()) << 64) | u128::from((order << TIMER_BITS) | u64::from(timer)))
    }

    #[inline]
    fn timer(self) -> usize {
        (self.0 as usize) & (MOST_TIMERS - 1)
    }

    #[inline]
    fn time(self) -> f64 {
        f64::from_bits((self.0 >> 64) as u64)
    }
}

#[inline]
fn earlier(left: Key, right: Key) -> Key {
    if right < left { right } else { left }
}

/// All timers.
#[derive(Default)]
pub(super) struct Timers {
    heap: Vec<Key>,
    places: Vec<u32>,
    order: u64,
    /// The first has gone off. Its place stays, before all others, for the next timer to be set, which mostly follows at once.
    is_vacant: bool,
}

impl Timers {
    /// With that many timers to begin with.
    pub fn new(timers: usize) -> Self {
        Self { heap: Vec::with_capacity(timers), places: vec![NOWHERE; timers], order: 0, is_vacant: false }
    }

    /// Makes room for timers up to that number.
    pub fn reach(&mut self, timers: usize) {
        if self.places.len() < timers {
            self.places.resize(timers, NOWHERE);
        }
    }

    /// Sets a timer, or sets it anew.
    #[inline]
    pub fn set(&mut self, timer: usize, time: f64) {
        self.order += 1;
        let key = Key::new(time, self.order, timer as u32);
        let place = self.places[timer];
        if place == NOWHERE && self.is_vacant {
            self.is_vacant = false;
            self.sink(0, key);
        } else if place == NOWHERE {
            self.heap.push(key);
            self.rise(self.heap.len() - 1, key);
        } else {
            let place = place as usize;
            if key < self.heap[place] {
                self.rise(place, key);
            } else {
                self.sink(place, key);
            }
        }
    }

    /// Takes a timer out.
    pub fn cancel(&mut self, timer: usize) {
        let place = self.places[timer];
        if place != NOWHERE {
            self.places[timer] = NOWHERE;
            self.remove(place as usize);
        }
    }

    /// When the timer goes off, if it is set.
    pub fn due(&self, timer: usize) -> Option<f64> {
        let place = self.places[timer];
        (place != NOWHERE).then(|| self.heap[place as usize].time())
    }

    /// The time of the next timer.
    #[inline]
    pub fn next_time(&mut self) -> Option<f64> {
        if self.is_vacant {
            self.is_vacant = false;
            self.remove(0);
        }
        self.heap.first().map(|key| key.time())
    }

    /// Takes out the next timer; its number.
    #[inline]
    pub fn pop(&mut self) -> Option<usize> {
        self.next_time()?;
        let timer = self.heap.first()?.timer();
        self.places[timer] = NOWHERE;
        self.heap[0] = Key(0);
        self.is_vacant = true;
        Some(timer)
    }

    #[inline]
    fn remove(&mut self, place: usize) {
        let last = self.heap.pop().expect("a timer that is set is in the heap");
        if place < self.heap.len() {
            if place > 0 && last < self.heap[(place - 1) / CHILDREN] {
                self.rise(place, last);
            } else {
                self.sink(place, last);
            }
        }
    }

    #[inline]
    fn rise(&mut self, mut place: usize, key: Key) {
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            let above = self.heap[parent];
            if above <= key {
                break;
            }
            self.put(place, above);
            place = parent;
        }
        self.put(place, key);
    }

    #[inline]
    fn sink(&mut self, mut place: usize, key: Key) {
        let count = self.heap.len();
        loop {
            let first = place * CHILDREN + 1;
            if first >= count {
                break;
            }
            let children = &self.heap[first..(first + CHILDREN).min(count)];
            let least = match *children {
                [a, b, c, d] => earlier(earlier(a, b), earlier(c, d)),
                _ => children[1..].iter().fold(children[0], |least, child| earlier(least, *child)),
            };
            if key <= least {
                break;
            }
            let from = self.places[least.timer()];
            self.put(place, least);
            place = from as usize;
        }
        self.put(place, key);
    }

    #[inline]
    fn put(&mut self, place: usize, key: Key) {
        self.heap[place] = key;
        self.places[key.timer()] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::random::Random;
    use super::Timers;

    #[test]
    fn timers_go_off_in_order_whatever_is_moved_and_taken_out() {
        let mut random = Random::new(5, 0);
        let mut timers = Timers::new(50);
        let mut known: BTreeMap<(u64, u64), usize> = BTreeMap::new();
        let mut order = 0;
        for _ in 0..20_000 {
            let timer = random.below(50);
            order += 1;
            match random.below(5) {
                0 | 1 => {
                    let time = random.below(20) as f64;
                    timers.set(timer, time);
                    known.retain(|_, other| *other != timer);
                    known.insert((time as u64, order), timer);
                    assert_eq!(timers.due(timer), Some(time));
                }
                2 => {
                    timers.cancel(timer);
                    known.retain(|_, other| *other != timer);
                    assert_eq!(timers.due(timer), None);
                }
                _ => {
                    assert_eq!(timers.next_time(), known.first_key_value().map(|(key, _)| key.0 as f64));
                    assert_eq!(timers.pop(), known.pop_first().map(|(_, timer)| timer));
                }
            }
        }
    }
}
