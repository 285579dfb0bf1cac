//! Reading by several threads: blocks of an input that mean the same each by itself, and what they hold in their order.
//!
//! One thread takes the input apart, others read what it finds, each block with names of its own; then spans, findings and names are put
//! together as if one had read them. The result does not depend on how many there are.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::spans::builder::Builder;
use crate::spans::model::Spans;
use crate::{ReadReport, Wanted};
use dyelog_diagnostic::Diagnostics;
use dyelog_diagnostic::names::{Name, Names};

/// So many blocks wait for each thread, so that none waits for the input.
const AHEAD: usize = 2;

/// Why a block was not read.
pub(super) enum Fault {
    /// It and what comes after it have to be taken apart in another way.
    Otherwise,
    /// It ends the reading.
    Fatal(Diagnostics),
}

/// Reads one block into a builder.
pub(super) type ReadBlock<B> = fn(&mut Builder<'_>, &B, strict: bool) -> Result<(), Fault>;

/// Reads all blocks. Gives back those that have to be taken apart otherwise: the first of these, and the ones behind it that were taken.
///
/// # Errors
/// The first of the input or of a block.
pub(super) fn read_in_order<B: Send>(
    builder: &mut Builder<'_>,
    strict: bool,
    mut next: impl FnMut() -> Result<Option<B>, Diagnostics>,
    read: ReadBlock<B>,
) -> Result<Vec<B>, Diagnostics> {
    let Some(first) = next()? else { return Ok(Vec::new()) };
    let second = if builder.threads > 1 { next()? } else { None };
    // A single block is no work for several.
    let several = second.is_some();
    let mut begun = [Some(first), second].into_iter().flatten();
    let mut next = || begun.next().map_or_else(&mut next, |block| Ok(Some(block)));
    if several {
        return read_by_several(builder, strict, next, read);
    }
    while let Some(block) = next()? {
        if builder.passes_on {
            match part_of(&builder.file, &builder.wanted_by(), &block, strict, read) {
                Ok(part) => part.add_to(builder),
                Err(Fault::Fatal(found)) => return Err(found),
                Err(Fault::Otherwise) => return Ok(vec![block]),
            }
            continue;
        }
        builder.count_composites();
        let (before, report) = ((builder.spans.spans.len(), builder.spans.links.len()), builder.report.clone());
        match read(builder, &block, strict) {
            Ok(()) => builder.hand_on(),
            Err(Fault::Fatal(found)) => return Err(found),
            Err(Fault::Otherwise) => {
                builder.truncate(before);
                builder.count_composites();
                builder.report = report;
                return Ok(vec![block]);
            }
        }
    }
    Ok(Vec::new())
}

/// What a block holds.
struct Part {
    names: Names,
    spans: Spans,
    report: ReadReport,
    foreign: Option<&'static str>,
}

type Done<B> = (usize, B, Result<Part, Fault>);

fn read_by_several<B: Send>(
    builder: &mut Builder<'_>,
    strict: bool,
    mut next: impl FnMut() -> Result<Option<B>, Diagnostics>,
    read: ReadBlock<B>,
) -> Result<Vec<B>, Diagnostics> {
    let (threads, file, wanted) = (builder.threads, Arc::clone(&builder.file), builder.wanted_by());
    thread::scope(|scope| {
        let (jobs, taken) = mpsc::channel::<(usize, B)>();
        let (done, results) = mpsc::channel::<Done<B>>();
        let taken = Arc::new(Mutex::new(taken));
        for _ in 0..threads {
            let (taken, done, file, wanted) =
                (Arc::clone(&taken), done.clone(), Arc::clone(&file), Arc::clone(&wanted));
            scope.spawn(move || work(&taken, &done, &file, &wanted, strict, read));
        }
        drop(done);
        collect(builder, threads, &mut next, &jobs, &results)
    })
}

/// Reads blocks as long as there are any.
fn work<B>(
    taken: &Mutex<Receiver<(usize, B)>>,
    done: &Sender<Done<B>>,
    file: &Arc<str>,
    wanted: &Arc<Wanted>,
    strict: bool,
    read: ReadBlock<B>,
) {
    loop {
        let job = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, block)) = job else { return };
        let part = part_of(file, wanted, &block, strict, read);
        if done.send((number, block, part)).is_err() {
            return;
        }
    }
}

/// Reads a block by itself.
fn part_of<B>(
    file: &Arc<str>,
    wanted: &Arc<Wanted>,
    block: &B,
    strict: bool,
    read: ReadBlock<B>,
) -> Result<Part, Fault> {
    let mut names = Names::new();
    let mut builder = Builder::of_part(file, &mut names, wanted);
    let result = read(&mut builder, block, strict);
    let (spans, report, foreign) = builder.finish_input();
    result.map(|()| Part { names, spans, report, foreign })
}

/// Hands out blocks and takes in what they hold, in their order.
fn collect<B>(
    builder: &mut Builder<'_>,
    threads: usize,
    next: &mut dyn FnMut() -> Result<Option<B>, Diagnostics>,
    jobs: &Sender<(usize, B)>,
    results: &Receiver<Done<B>>,
) -> Result<Vec<B>, Diagnostics> {
    let (mut given, mut taken, mut ended) = (0, 0, Ok(false));
    let mut waiting: BTreeMap<usize, (B, Result<Part, Fault>)> = BTreeMap::new();
    let mut otherwise = Vec::new();
    loop {
        while matches!(ended, Ok(false)) && given - taken < AHEAD * threads {
            match next() {
                Ok(Some(block)) => {
                    if jobs.send((given, block)).is_err() {
                        return Ok(otherwise);
                    }
                    given += 1;
                }
                Ok(None) => ended = Ok(true),
                Err(found) => ended = Err(found),
            }
        }
        if taken == given {
            return if otherwise.is_empty() { ended.map(|_| otherwise) } else { Ok(otherwise) };
        }
        let Ok((number, block, result)) = results.recv() else { return Ok(otherwise) };
        waiting.insert(number, (block, result));
        while let Some((block, result)) = waiting.remove(&taken) {
            taken += 1;
            match result {
                Ok(part) if otherwise.is_empty() => part.add_to(builder),
                Err(Fault::Fatal(found)) if otherwise.is_empty() => return Err(found),
                _ => {
                    otherwise.push(block);
                    ended = Ok(true);
                }
            }
        }
    }
}

impl Part {
    fn add_to(self, builder: &mut Builder<'_>) {
        let Self { mut names, mut spans, report, foreign } = self;
        builder.report.add_counted(report);
        builder.foreign = foreign.or(builder.foreign);
        if builder.passes_on {
            builder.pass_on(spans, &mut names);
            return;
        }
        let own: Vec<Name> = names.texts().map(|text| builder.names.intern(text)).collect();
        spans.rename(&own);
        builder.hand_on_read(spans);
    }
}
