//! Services whose clocks are ahead of the one here, as spans show that had not ended when they came.

use std::collections::BTreeMap;

use crate::assemble::Nanos;
use crate::offenders::service_name;

/// Clocks that are ahead by less do no harm, nanoseconds.
const LITTLE: Nanos = 1_000_000_000;
/// What was seen so long ago tells nothing of now, nanoseconds.
const OLD: Nanos = 300 * 1_000_000_000;
/// How many services are named.
const MOST: usize = 32;

/// By service: by how much its clock is ahead at least, nanoseconds, and when that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ahead(BTreeMap<String, (Nanos, Nanos)>);

impl Ahead {
    /// A span ends then by its own clock, and came now.
    pub fn look(&mut self, resource: &[u8], end: Nanos, now: Nanos) {
        let by = end.saturating_sub(now);
        if by < LITTLE {
            return;
        }
        let service = service_name(resource);
        self.0.retain(|_, (_, seen)| seen.saturating_add(OLD) > now);
        if self.0.len() >= MOST && !self.0.contains_key(&service) {
            return;
        }
        // Whole seconds: the page changes only where a clock is further ahead.
        let by = by - by % LITTLE;
        let own = self.0.entry(service).or_insert((by, now));
        if by > own.0 || own.1.saturating_add(OLD / 2) < now {
            *own = (by.max(own.0), now);
        }
    }

    /// Those that were seen lately: how many seconds each is ahead at least, the furthest first.
    pub fn lately(&self, now: Nanos) -> Vec<(&str, u64)> {
        let lately = self.0.iter().filter(|(_, (_, seen))| seen.saturating_add(OLD) > now);
        let mut found: Vec<(&str, u64)> = lately.map(|(service, (by, _))| (&**service, by / LITTLE)).collect();
        found.sort_by_key(|(_, seconds)| std::cmp::Reverse(*seconds));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{Ahead, MOST, OLD};
    use crate::spans::put_field;

    const SECOND: u64 = 1_000_000_000;
    const NOW: u64 = 1_700_000_000 * SECOND;

    fn resource(service: &str) -> Vec<u8> {
        let (mut value, mut pair, mut resource) = (Vec::new(), Vec::new(), Vec::new());
        put_field(&mut value, 1, service.as_bytes());
        put_field(&mut pair, 1, b"service.name");
        put_field(&mut pair, 2, &value);
        put_field(&mut resource, 1, &pair);
        resource
    }

    #[test]
    fn services_whose_spans_had_not_ended_are_told_for_a_while() {
        let mut ahead = Ahead::default();
        ahead.look(&resource("cart"), NOW + 90 * SECOND, NOW);
        ahead.look(&resource("cart"), NOW + 31 * SECOND, NOW + SECOND);
        ahead.look(&resource("shop"), NOW + 125 * SECOND, NOW);
        // What a sender holds back for a while, or a clock that is nearly right, is no fault.
        ahead.look(&resource("stock"), NOW + SECOND / 2, NOW);
        ahead.look(&resource("users"), NOW - SECOND, NOW);
        assert_eq!(ahead.lately(NOW), [("shop", 125), ("cart", 90)]);
        assert_eq!(ahead.lately(NOW + OLD), []);
        // It stays while it is seen, and nobody fills the memory.
        ahead.look(&resource("shop"), NOW + 400 * SECOND, NOW + 290 * SECOND);
        assert_eq!(ahead.lately(NOW + OLD), [("shop", 125)]);
        for number in 0..2 * MOST {
            ahead.look(&resource(&format!("s{number}")), NOW + 600 * SECOND, NOW + OLD);
        }
        assert_eq!(ahead.lately(NOW + OLD).len(), MOST);
    }
}
