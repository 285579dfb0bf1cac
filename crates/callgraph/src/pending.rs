//! Records that wait, column by column: what they all have apart from what some have, so that few bytes are touched and moved.

use crate::abnormal::Spot;
use crate::record::{ChainId, Probe, Reading, Record, SiteId};

/// What every record has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) chain: ChainId,
    pub(crate) event: u32,
    site: SiteId,
    line: u32,
    file: u16,
    pub(crate) probe: Probe,
    flags: u8,
}

impl Head {
    /// Where the record stands.
    pub(crate) fn spot(&self) -> Spot {
        Spot { chain: self.chain, event: self.event, file: self.file, line: self.line }
    }
}

/// Values by place. Behind the last one that is there, all are [`None`]'s stand-in.
#[derive(Debug)]
struct Column<T> {
    values: Vec<T>,
    none: T,
}

impl<T: Copy + PartialEq> Column<T> {
    fn new(none: T) -> Self {
        Self { values: Vec::new(), none }
    }

    #[inline]
    fn put(&mut self, place: usize, value: T, room: usize) {
        if value == self.none && self.values.len() <= place {
            return;
        }
        reserve(&mut self.values, room);
        if self.values.len() < place {
            self.values.resize(place, self.none);
        }
        self.values.push(value);
    }

    #[inline]
    fn at(&self, place: usize) -> T {
        self.values.get(place).copied().unwrap_or(self.none)
    }
}

/// Records by place.
#[derive(Debug)]
pub(crate) struct Pending {
    heads: Vec<Head>,
    wall: Column<Reading>,
    cpu: Column<Reading>,
    children: Column<ChainId>,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            heads: Vec::new(),
            wall: Column::new(Reading::NONE),
            cpu: Column::new(Reading::NONE),
            children: Column::new(ChainId::NONE),
        }
    }
}

impl Pending {
    /// Adds a record. There is room for so many from the first one on.
    #[inline]
    pub(crate) fn push(&mut self, record: &Record, room: usize) {
        let Record { chain, event, site, child, wall, cpu, line, file, probe, flags } = *record;
        let place = self.heads.len();
        reserve(&mut self.heads, room);
        self.heads.push(Head { chain, event, site, line, file, probe, flags });
        self.wall.put(place, wall, room);
        self.cpu.put(place, cpu, room);
        self.children.put(place, child, room);
    }

    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn heads(&self) -> &[Head] {
        &self.heads
    }

    #[inline]
    pub(crate) fn head(&self, place: u32) -> &Head {
        &self.heads[place as usize]
    }

    #[inline]
    pub(crate) fn record(&self, place: u32) -> Record {
        let Head { chain, event, site, line, file, probe, flags } = *self.head(place);
        let place = place as usize;
        let (wall, cpu, child) = (self.wall.at(place), self.cpu.at(place), self.children.at(place));
        Record { chain, event, site, child, wall, cpu, line, file, probe, flags }
    }

    /// Whether some record has a processor time.
    pub(crate) fn have_cpu(&self) -> bool {
        self.cpu.values.iter().any(|cpu| cpu.is_some())
    }

    /// Drops all records but those in these places.
    pub(crate) fn keep(&mut self, places: &[u32]) {
        let mut kept = vec![false; if places.is_empty() { 0 } else { self.len() }];
        for place in places {
            kept[*place as usize] = true;
        }
        retain(&mut self.heads, &kept);
        retain(&mut self.wall.values, &kept);
        retain(&mut self.cpu.values, &kept);
        retain(&mut self.children.values, &kept);
    }
}

/// Makes room for as many as ever wait: growing step by step would copy them each time. Pages that are not used cost nothing.
#[inline]
fn reserve<T>(values: &mut Vec<T>, room: usize) {
    if values.capacity() == 0 {
        values.reserve_exact(room);
    }
}

fn retain<T>(values: &mut Vec<T>, kept: &[bool]) {
    if kept.is_empty() {
        values.clear();
    } else {
        let mut kept = kept.iter();
        values.retain(|_| *kept.next().expect("as many marks as records"));
    }
}
