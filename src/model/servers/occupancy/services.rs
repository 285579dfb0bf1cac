//! Services of copies of one server each, as stays at what the copies share.

use std::collections::BTreeMap;

use super::{Occupancy, Seen, Whole};

impl Occupancy {
    /// What the one server of each copy serves, as stays at the machine of the copy: `machines` has its number. Services of a copy follow each other, from when the one before has ended.
    pub fn services(&self, machines: &[usize]) -> Self {
        let mut order: Vec<&Seen> = self.seen.iter().collect();
        order.sort_by_key(|stay| (stay.end, stay.start));
        let mut before: BTreeMap<usize, i64> = BTreeMap::new();
        let mut own = vec![0.0; self.whole.len()];
        let mut services = Vec::with_capacity(order.len());
        for stay in order {
            let last = before.insert(stay.station, stay.end);
            let start = last.map_or(stay.start, |last| last.max(stay.start));
            if start < stay.end {
                let station = machines.get(stay.station).copied().unwrap_or(0);
                let service = Seen { start, station, ..*stay };
                own[stay.entry] += service.length() as f64;
                services.push(service);
            }
        }
        let whole = own.into_iter().map(|own| Whole { own, longer: None }).collect();
        let stations = machines.iter().max().map_or(1, |last| last + 1);
        let mut shared = Self::arranged(&services, whole, self.telling.len(), stations);
        shared.by_ratio = shared.scale_by_ratio();
        shared
    }
}
