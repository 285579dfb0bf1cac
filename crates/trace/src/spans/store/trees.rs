//! Batches of spans with their parents, and trees of them, held in memory or on disk as the spans were.

use std::io;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::Extent;
use crate::retained::{Kept, part};
use crate::spans::assemble::{Forest, Linked, NOBODY, Tree};
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::model::Spans;
use crate::spans::store::spool::{Merge, Spool};
use crate::spans::store::{Spill, record};

/// Batches that are gone through several times.
#[derive(Default)]
pub(in crate::spans) struct Batches {
    held: Vec<Linked>,
    spool: Option<(Spool, Spill)>,
}

fn cut_off() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

fn spool_in<'s>(spool: &'s mut Option<(Spool, Spill)>, spill: &Spill) -> io::Result<&'s mut Spool> {
    Ok(match spool {
        Some((spool, _)) => spool,
        None => &mut spool.insert((Spool::new(&spill.scratch)?, spill.clone())).0,
    })
}

impl Batches {
    /// Adds a batch; on disk where the spans came from there.
    pub fn add(&mut self, linked: Linked, spill: Option<&Spill>) -> io::Result<()> {
        let Some(spill) = spill else {
            self.held.push(linked);
            return Ok(());
        };
        let Linked { spans, parent, sorted, moved } = &linked;
        let mut position = vec![NOBODY; spans.spans.len()];
        for (at, place) in sorted.iter().enumerate() {
            position[*place as usize] = at as u32;
        }
        spool_in(&mut self.spool, spill)?.run(|out| {
            let mut bytes = Vec::new();
            for &place in sorted {
                bytes.clear();
                let above = parent[place as usize];
                let above = if above == NOBODY { NOBODY } else { position[above as usize] };
                bytes.extend(above.to_le_bytes());
                bytes.extend(moved.get(&place).copied().unwrap_or(0).to_le_bytes());
                record::write(spans, place, &mut bytes);
                out(&bytes)?;
            }
            Ok(())
        })
    }

    /// Shows all batches to a function, in their order. `shared` is what they share.
    pub fn each(&mut self, shared: &Spans, mut show: impl FnMut(&mut Linked)) -> io::Result<()> {
        self.held.iter_mut().for_each(&mut show);
        let Some((spool, _)) = &mut self.spool else { return Ok(()) };
        (0..spool.runs()).try_for_each(|run| read_batch(spool, run, shared).map(|mut batch| show(&mut batch)))
    }

    /// Changes all batches, in their order.
    pub fn change(self, shared: &Spans, mut change: impl FnMut(&mut Linked)) -> io::Result<Self> {
        let mut changed = Self::default();
        self.give(shared, |mut linked, spill| {
            change(&mut linked);
            changed.add(linked, spill)
        })?;
        Ok(changed)
    }

    /// Gives all batches away, in their order.
    pub fn give(
        self,
        shared: &Spans,
        mut take: impl FnMut(Linked, Option<&Spill>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.held.into_iter().try_for_each(|batch| take(batch, None))?;
        let Some((mut spool, spill)) = self.spool else { return Ok(()) };
        (0..spool.runs()).try_for_each(|run| take(read_batch(&mut spool, run, shared)?, Some(&spill)))
    }
}

fn read_batch(spool: &mut Spool, run: usize, shared: &Spans) -> io::Result<Linked> {
    let mut linked = Linked { spans: shared.like(), ..Linked::default() };
    let mut reader = spool.reader(run);
    loop {
        let mut bytes = spool.next(&mut reader)?;
        if bytes.is_empty() {
            return Ok(linked);
        }
        let place = linked.spans.spans.len() as u32;
        linked.sorted.push(place);
        linked.parent.push(part(&mut bytes).map(u32::from_le_bytes).ok_or_else(cut_off)?);
        let shift = part(&mut bytes).map(i64::from_le_bytes).ok_or_else(cut_off)?;
        if shift != 0 {
            linked.moved.insert(place, shift);
        }
        record::read(&mut bytes, &mut linked.spans).ok_or_else(cut_off)?;
    }
}

/// What trees are in order of: when their first span starts, its trace, itself, its kind.
type Key = (i64, TraceId, SpanId, u8);

/// How long the key of a tree's record is, in bytes.
const KEY: usize = 33;

fn key_of(bytes: &[u8]) -> Key {
    let mut bytes = bytes;
    let mut read = || {
        let start = i64::from_le_bytes(part(&mut bytes)?);
        let trace = TraceId(u128::from_le_bytes(part(&mut bytes)?));
        let id = SpanId(u64::from_le_bytes(part(&mut bytes)?));
        Some((start, trace, id, part::<1>(&mut bytes)?[0]))
    };
    read().unwrap_or_default()
}

/// All trees, in the order in which operations come out.
#[derive(Default)]
pub(in crate::spans) struct Trees {
    held: Option<Forest>,
    spool: Option<(Spool, Spill)>,
}

impl Trees {
    /// Adds the trees of a batch; on disk where the spans came from there.
    pub fn add(&mut self, forest: Forest, spill: Option<&Spill>) -> io::Result<()> {
        let Some(spill) = spill else {
            self.held = Some(forest);
            return Ok(());
        };
        spool_in(&mut self.spool, spill)?.run(|out| {
            let mut bytes = Vec::new();
            let mut position: FxHashMap<u32, u32> = FxHashMap::default();
            for tree in &forest.trees {
                bytes.clear();
                position.clear();
                write_tree(&forest, tree, &mut position, &mut bytes);
                out(&bytes)?;
            }
            Ok(())
        })
    }

    /// Gives out the trees, each in the forest in which it is, with what is kept of its spans; the function says whether it wants more.
    pub fn give(
        self,
        shared: Spans,
        mut take: impl FnMut(&Forest, &Tree, Option<&Arc<Kept>>) -> bool,
    ) -> io::Result<()> {
        if let Some(mut forest) = self.held {
            let kept = forest.spans.kept.take().map(|kept| Arc::new(*kept));
            let _ = forest.trees.iter().all(|tree| take(&forest, tree, kept.as_ref()));
        }
        let Some((spool, _)) = self.spool else { return Ok(()) };
        let mut merge = Merge::new(spool, key_of)?;
        let mut forest = Forest { spans: shared, ..Forest::default() };
        let like = forest.spans.kept.take();
        while let Some(bytes) = merge.next()? {
            forest.spans.kept = like.as_ref().map(|kept| Box::new(kept.like()));
            let tree = read_tree(&bytes[KEY..], &mut forest).ok_or_else(cut_off)?;
            let kept = forest.spans.kept.take().map(|kept| Arc::new(*kept));
            if !take(&forest, &tree, kept.as_ref()) {
                break;
            }
        }
        Ok(())
    }
}

fn write_tree(forest: &Forest, tree: &Tree, position: &mut FxHashMap<u32, u32>, bytes: &mut Vec<u8>) {
    let order = &forest.order[tree.first..tree.end];
    let root = &forest.spans.spans[order[0] as usize];
    bytes.extend(root.start.to_le_bytes());
    bytes.extend(root.trace.0.to_le_bytes());
    bytes.extend(root.id.0.to_le_bytes());
    bytes.push(root.kind as u8);
    bytes.extend(tree.number.to_le_bytes());
    bytes.push(tree.extent as u8);
    for (at, &place) in order.iter().enumerate() {
        position.insert(place, at as u32);
        let above = position.get(&forest.parent[place as usize]).copied().filter(|_| at > 0);
        bytes.extend(above.unwrap_or(NOBODY).to_le_bytes());
        bytes.extend(forest.moved.get(&place).copied().unwrap_or(0).to_le_bytes());
        record::write(&forest.spans, place, bytes);
    }
}

/// Reads a tree as the only one of a forest; `None` where it is cut off.
fn read_tree(mut bytes: &[u8], forest: &mut Forest) -> Option<Tree> {
    let bytes = &mut bytes;
    let number = u32::from_le_bytes(part(bytes)?);
    let [extent] = part::<1>(bytes)?;
    let extent = Extent::ALL.into_iter().find(|known| *known as u8 == extent)?;
    let Forest { spans, parent, moved, order, .. } = forest;
    for indices in [&mut *order, &mut *parent] {
        indices.clear();
    }
    moved.clear();
    spans.spans.clear();
    spans.links.clear();
    while !bytes.is_empty() {
        let place = order.len() as u32;
        order.push(place);
        parent.push(u32::from_le_bytes(part(bytes)?));
        let shift = i64::from_le_bytes(part(bytes)?);
        if shift != 0 {
            moved.insert(place, shift);
        }
        record::read(bytes, spans)?;
    }
    Some(Tree { first: 0, end: order.len(), number, extent })
}
