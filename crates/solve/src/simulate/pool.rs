//! Numbered things that come and go, and queues of them.

use std::ops::{Index, IndexMut};

use super::engine::{Strand, Visit};
use super::program::NONE;

/// Things by number. A number that is given back is given out again.
#[derive(Debug)]
pub(super) struct Pool<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }
}

impl<T> Pool<T> {
    /// Puts a thing in; its number.
    #[inline]
    pub fn take(&mut self, item: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.items[number as usize] = item;
            number
        } else {
            self.items.push(item);
            (self.items.len() - 1) as u32
        }
    }

    /// Gives a number back.
    #[inline]
    pub fn give(&mut self, number: u32) {
        self.free.push(number);
    }

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }
}

impl<T> Index<u32> for Pool<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.items[number as usize]
    }
}

impl<T> IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.items[number as usize]
    }
}

/// Has room for the number of the next in a queue.
pub(super) trait Linked {
    fn next(&self) -> u32;
    fn set_next(&mut self, next: u32);
}

impl Linked for Strand {
    fn next(&self) -> u32 {
        self.next
    }

    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

impl Linked for Visit {
    fn next(&self) -> u32 {
        self.next
    }

    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

/// First in, first out, of things in a pool. A thing is in one queue at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    first: u32,
    last: u32,
    len: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Self { first: NONE, last: NONE, len: 0 }
    }
}

impl Queue {
    #[inline]
    pub fn push<T: Linked>(&mut self, pool: &mut Pool<T>, number: u32) {
        pool[number].set_next(NONE);
        if self.first == NONE {
            self.first = number;
        } else {
            pool[self.last].set_next(number);
        }
        self.last = number;
        self.len += 1;
    }

    #[inline]
    pub fn pop<T: Linked>(&mut self, pool: &Pool<T>) -> Option<u32> {
        if self.first == NONE {
            return None;
        }
        let number = self.first;
        self.first = pool[number].next();
        self.len -= 1;
        Some(number)
    }

    /// The next one, if there is one.
    pub fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    pub fn len(&self) -> usize {
        self.len
    }
}
