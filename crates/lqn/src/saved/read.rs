//! From a file to a sub-model, with all that cannot be.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::write::digits;
use super::{
    BatchesShape, BlockShape, BranchShape, DeploymentShape, Document, EntryShape, IdsShape, Kept, MOST, MOST_SQUARES,
    MomentsShape, StartsShape, VERSION, Whole, WorkShape,
};
use crate::batches::Batches;
use crate::codes;
use crate::deployment::{self, Replica, Seen};
use crate::kept_ids::{KeptIds, Numbers};
use crate::starts::{Starts, Stretch};
use crate::submodel::{
    BlockTotal, Branch, BranchTotal, EntryIndex, EntryKey, EntryTotal, Interaction, Moments, Position, Sampled,
    Seconds, SubModel, Undated, WITNESSES, Witness, WorkTotal,
};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

/// Reads a sub-model; gives with it how its entries were merged.
///
/// # Errors
/// The first place at which the text is no JSON of that shape, or everything in it that cannot be.
pub fn parse(name: &Arc<str>, text: &str) -> Result<(SubModel, String), Diagnostics> {
    parse_keeping(name, text).map(|(sub, merge, _)| (sub, merge))
}

/// The same with the recordings that the file keeps.
///
/// # Errors
/// As [`parse`].
pub fn parse_keeping(name: &Arc<str>, text: &str) -> Result<(SubModel, String, Option<Kept>), Diagnostics> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document: Document = serde_json::from_str(text).map_err(|error| misshapen(name, text, &error))?;
    if document.version != VERSION {
        return Err(other_version(name, &document.version.to_string()).into());
    }
    let mut reader = Reader::of(name);
    let sub = reader.document(&document);
    let kept = document.kept.as_ref().map(|kept| kept.read(&sub, &document.merge, &mut reader));
    reader.end()?;
    Ok((sub, document.merge, kept))
}

/// The sub-model of a document that keeps no recordings.
pub(super) fn of_document(mut reader: Reader<'_>, document: Document) -> Result<(SubModel, String), Diagnostics> {
    if document.version != VERSION {
        return Err(other_version(reader.file, &document.version.to_string()).into());
    }
    let sub = reader.document(&document);
    reader.end()?;
    Ok((sub, document.merge))
}

/// What is no sub-model, whatever it is.
pub(super) fn damaged(name: &Arc<str>) -> Diagnostics {
    let message = "it ends too early, or has what no sub-model has";
    Diagnostic::error(codes::SYNTAX, Place::File { file: Arc::clone(name) }, message).into()
}

pub(super) fn misshapen(name: &Arc<str>, text: &str, error: &serde_json::Error) -> Diagnostics {
    // Of another version nothing else can be said.
    let version = serde_json::from_str::<serde_json::Value>(text).ok();
    let version = version.as_ref().and_then(|value| value.get("dyelog-submodel"));
    if let Some(version) = version.filter(|version| **version != VERSION) {
        return other_version(name, &version.to_string()).into();
    }
    let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
    let place = if line > 0 {
        Place::Line { file: Arc::clone(name), line, column: u32::try_from(error.column()).unwrap_or(0) }
    } else {
        Place::File { file: Arc::clone(name) }
    };
    let message = error.to_string();
    let message = message.rfind(" at line ").map_or(message.as_str(), |end| &message[..end]);
    Diagnostic::error(codes::SYNTAX, place, message).into()
}

pub(super) fn other_version(name: &Arc<str>, version: &str) -> Diagnostic {
    let message = format!("this is version {version} of the form; version {VERSION} can be read");
    let place = Place::Item { file: Arc::clone(name), item: "dyelog-submodel".to_owned() };
    Diagnostic::error(codes::UNKNOWN_VERSION, place, message)
}

pub(super) struct Reader<'n> {
    file: &'n Arc<str>,
    findings: Vec<Diagnostic>,
}

impl<'n> Reader<'n> {
    pub(super) fn of(file: &'n Arc<str>) -> Self {
        Self { file, findings: Vec::new() }
    }

    /// All that cannot be, where there is any.
    fn end(self) -> Result<(), Diagnostics> {
        if self.findings.is_empty() { Ok(()) } else { Err(Diagnostics(self.findings)) }
    }
}

impl Reader<'_> {
    pub(super) fn wrong(&mut self, item: &str, message: String) {
        const SHOWN: usize = 100;
        if self.findings.len() < SHOWN {
            let place = Place::Item { file: Arc::clone(self.file), item: item.to_owned() };
            self.findings.push(Diagnostic::error(codes::BAD_NUMBER, place, message));
        }
    }

    pub(super) fn count(&mut self, value: u64, most: u64, item: &str) -> u64 {
        if value > most {
            self.wrong(item, format!("{value} is more than can be counted here"));
        }
        value.min(most)
    }

    fn ids(&mut self, shape: &IdsShape, operations: u64, item: &str) -> KeptIds {
        let mut ids = KeptIds { count: self.count(shape.count, operations, item), ..KeptIds::default() };
        if shape.numbers.len() != ids.numbers.len() {
            self.wrong(item, format!("there are {} samplers, not {}", ids.numbers.len(), shape.numbers.len()));
        }
        for (own, shape) in ids.numbers.iter_mut().zip(&shape.numbers) {
            let Ok(sum) = shape.sum.parse() else {
                self.wrong(item, format!("`{}` is no whole number", shape.sum));
                continue;
            };
            *own = Numbers { greatest: shape.greatest, sum };
        }
        ids
    }

    pub(super) fn moments(&mut self, shape: &MomentsShape, item: &str) -> Moments {
        if shape.is_nothing() {
            return Moments::default();
        }
        let mut whole = |own: &Whole| match own {
            Whole::Number(number) => *number,
            Whole::Text(text) => {
                self.wrong(item, format!("`{text}` is no whole number"));
                0
            }
        };
        let (sum, squares) = (Seconds(whole(&shape.femtoseconds)), whole(&shape.squares));
        Moments { count: self.count(shape.count, MOST, item), sum, squares }
    }

    fn batches(&mut self, shape: &BatchesShape, item: &str) -> Batches {
        let products = shape.products.parse().unwrap_or_else(|_| {
            self.wrong(item, format!("`{}` is no whole number", shape.products));
            0
        });
        Batches {
            time: self.moments(&shape.time, item),
            messages: self.count(shape.messages, MOST, item),
            squares: shape.squares,
            products: Seconds(products),
            most: self.count(shape.most, shape.messages, item),
        }
    }

    fn starts(&mut self, shape: &StartsShape, item: &str) -> Starts {
        let mut cells = Vec::with_capacity(shape.cells.len());
        if !shape.responses.is_empty() && shape.responses.len() != shape.cells.len() {
            self.wrong(item, "`starts` have response times of other cells".to_owned());
        }
        for (number, &(first, last, operations)) in shape.cells.iter().enumerate() {
            let operations = self.count(operations, MOST, item);
            let response = shape.responses.get(number).map(|own| self.moments(own, item)).unwrap_or_default();
            cells.push(Stretch { first, last, operations, response });
        }
        Starts::of_cells(shape.shift, cells).unwrap_or_else(|| {
            self.wrong(item, "`starts` are not in the order of time, or not in cells of one length".to_owned());
            Starts::default()
        })
    }

    pub(super) fn document(&mut self, document: &Document) -> SubModel {
        let mut sub = SubModel::new();
        sub.concurrent = document.concurrent;
        sub.set_aside = self.count(document.set_aside, MOST, "set_aside");
        for (number, (from, to)) in document.observed.iter().enumerate().filter(|(_, (from, to))| from >= to) {
            self.wrong(&format!("observed[{number}]"), format!("it does not end after it begins: {from} to {to}"));
        }
        sub.observe(&document.observed);
        for (number, shape) in document.scenarios.iter().enumerate() {
            let item = format!("scenarios[{number}]");
            let name = sub.names.intern(&shape.name);
            if sub.scenarios.contains_key(&name) {
                self.wrong(&item, format!("scenario `{}` is there twice", shape.name));
            }
            let operations = self.count(shape.operations, MOST, &item);
            let fragments = self.count(shape.fragments, operations, &item);
            let [headless, pieces, unlinked] =
                [shape.headless, shape.pieces, shape.unlinked].map(|count| self.count(count, fragments, &item));
            let apart = self.count(shape.apart, unlinked, &item);
            let failures = self.count(shape.failures, operations, &item);
            let [chosen, truncated, unweighed] =
                [shape.chosen, shape.truncated, shape.unweighed].map(|count| self.count(count, operations, &item));
            let mended = self.count(shape.mended, MOST, &item);
            let sampled = shape.sampled.as_ref().map(|own| Sampled {
                operations: self.count(own.operations, operations, &item),
                thousandths: self.count(own.thousandths, MOST, &item),
                squares: own.squares,
                counted: self.count(own.counted, MOST, &item),
            });
            let response = self.moments(&shape.response, &item);
            let responses = self.sketch(&shape.responses, response.count, &item);
            let (clients, think) = (self.count(shape.clients, MOST, &item), self.moments(&shape.think, &item));
            let starts = shape.starts.as_ref().map(|starts| self.starts(starts, &item)).unwrap_or_default();
            let stays = self.stays(shape.stays.as_ref(), &item);
            self.count(stays.seen(), operations, &item);
            let undated = shape.undated.as_ref().map(|shape| Undated {
                traces: self.count(shape.traces, MOST, &item),
                operations: self.count(shape.operations, MOST, &item),
                nanoseconds: shape.nanoseconds,
            });
            let [ids, told_ids] =
                [&shape.ids, &shape.told_ids].map(|ids| ids.as_ref().map(|own| self.ids(own, operations, &item)));
            let total = sub.scenarios.entry(name).or_default();
            (total.ids, total.told_ids) = (ids.unwrap_or_default(), told_ids.unwrap_or_default());
            (total.pieces, total.unlinked, total.apart, total.mended) = (pieces, unlinked, apart, mended);
            total.undated = undated.unwrap_or_default();
            (total.operations, total.fragments, total.headless) = (operations, fragments, headless);
            (total.failures, total.chosen, total.truncated) = (failures, chosen, truncated);
            (total.unweighed, total.limit) = (unweighed, shape.limit);
            total.sampled = sampled.unwrap_or_default();
            (total.starts, total.stays) = (starts, stays);
            (total.first_start, total.last_start, total.last_end) =
                (shape.first_start, shape.last_start, shape.last_end);
            (total.response, total.responses, total.grain) = (response, responses, shape.grain);
            (total.clients, total.think) = (clients, think);
        }
        for (task, count) in &document.instances {
            let task = sub.names.intern(task);
            sub.instances.insert(task, *count);
        }
        if let Some(shape) = &document.deployment {
            self.deployment(&mut sub, shape);
        }
        let indices: Vec<Option<EntryIndex>> =
            document.entries.iter().enumerate().map(|(number, shape)| self.entry(&mut sub, number, shape)).collect();
        for (number, shape) in document.entries.iter().enumerate() {
            let Some(index) = indices[number] else { continue };
            for (place, block) in shape.blocks.iter().enumerate() {
                self.block(&mut sub, index, block, &format!("entries[{number}].blocks[{place}]"));
            }
            self.check_blocks(sub.entry(index), &format!("entries[{number}]"));
            let item = format!("entries[{number}]");
            self.timing(sub.entry_mut(index), (&shape.calls, &shape.pairs), &indices, &item);
            for (place, work) in shape.work.iter().enumerate() {
                self.work(&mut sub, index, work, &indices, &format!("entries[{number}].work[{place}]"));
            }
        }
        sub
    }

    fn deployment(&mut self, sub: &mut SubModel, shape: &DeploymentShape) {
        if shape.replicas.len() > deployment::MOST {
            self.wrong("deployment", format!("no more than {} instances are kept", deployment::MOST));
        }
        for (number, own) in shape.replicas.iter().take(deployment::MOST).enumerate() {
            let item = format!("deployment.replicas[{number}]");
            let [task, instance, machine] = [&own.task, &own.instance, &own.machine].map(|text| sub.names.intern(text));
            if own.first > own.last {
                self.wrong(&item, "the first invocation comes after the last".to_owned());
            }
            let invocations = self.count(own.invocations, MOST, &item);
            let seen = Seen { first: own.first, last: own.last, invocations, cores: own.cores };
            sub.deployment.see(&sub.names, Replica { task, instance, machine }, &seen);
        }
        match shape.cut.as_ref().map(|cut| hex(cut, 16)) {
            Some(Some(cut)) => sub.deployment.cut_at(cut as u64),
            Some(None) => self.wrong("deployment", "`cut` is no digest of 16 hexadecimal digits".to_owned()),
            None => {}
        }
    }

    /// An entry without its work.
    fn entry(&mut self, sub: &mut SubModel, number: usize, shape: &EntryShape) -> Option<EntryIndex> {
        let item = format!("entries[{number}]");
        let key = hex(&shape.key, 32).map(EntryKey);
        if key.is_none() {
            self.wrong(&item, format!("`{}` is no key of 32 hexadecimal digits", shape.key));
        }
        let interaction = Interaction::from_label(&shape.interaction);
        if interaction.is_none() {
            self.wrong(&item, format!("`{}` is no type of interaction; there are Cu, R, A and F", shape.interaction));
        }
        if shape.instance == 0 {
            self.wrong(&item, "instances are counted from 1".to_owned());
        }
        let (key, interaction) = (key?, interaction?);
        if sub.entry_of(key).is_some() {
            self.wrong(&item, format!("key {} is there twice", shape.key));
            return None;
        }
        let (task, service) = (sub.names.intern(&shape.task), sub.names.intern(&shape.service));
        let index = sub.ensure_entry(key, task, shape.instance, interaction, service);
        let response = self.moments(&shape.response, &item);
        let responses = self.sketch(&shape.responses, response.count, &item);
        let stays = self.stays(shape.stays.as_ref(), &item);
        let visits = self.stays(shape.visits.as_ref(), &item);
        let way = self.moments(&shape.way, &item);
        let batches = shape.batches.as_ref().map(|own| self.batches(own, &item));
        let entry = sub.entry_mut(index);
        (entry.response, entry.responses) = (response, responses);
        (entry.stays, entry.visits, entry.way) = (stays, visits, way);
        entry.batches = batches.unwrap_or_default();
        entry.invocations = self.count(shape.invocations, MOST, &item);
        entry.moved_waits = self.count(shape.moved_waits, MOST, &item);
        entry.untimed_delays = self.count(shape.untimed_delays, MOST, &item);
        [entry.inferred, entry.undated, entry.silent, entry.may_wait] =
            [shape.inferred, shape.undated, shape.silent, shape.may_wait]
                .map(|count| self.count(count, entry.invocations, &item));
        entry.inferred_requests = self.count(shape.inferred_requests, MOST, &item);
        entry.failures = self.count(shape.failures, MOST, &item);
        entry.given_up = self.count(shape.given_up, MOST, &item);
        entry.retries = self.count(shape.retries, MOST, &item);
        if shape.witnesses.len() > WITNESSES {
            self.wrong(&item, format!("an entry has at most {WITNESSES} witnesses"));
        }
        for witness in &shape.witnesses {
            entry.add_witness(&Witness {
                scenario: witness.scenario.as_str().into(),
                run: witness.run.as_str().into(),
                thread: witness.thread,
                index: witness.index,
                file: witness.file.as_str().into(),
                item: witness.item.as_str().into(),
            });
        }
        Some(index)
    }

    fn position(&mut self, stage: u32, branch: Option<&BranchShape>, phase: u8, item: &str) -> Position {
        let block = branch.map(|branch| hex(&branch.block, 16));
        if block == Some(None) || !(1..=3).contains(&phase) {
            self.wrong(item, "a block is 16 hexadecimal digits, a phase is 1, 2 or 3".to_owned());
        }
        let branch = branch.zip(block.flatten());
        let branch = branch.map(|(branch, block)| Branch { block: block as u64, branch: branch.branch });
        Position { stage, branch, phase }
    }

    fn block(&mut self, sub: &mut SubModel, index: EntryIndex, shape: &BlockShape, item: &str) {
        let at = self.position(shape.stage, shape.branch.as_ref(), shape.phase, item);
        let contents: Option<Vec<u128>> = shape.branches.iter().map(|branch| hex(&branch.content, 16)).collect();
        let (Some(key), Some(contents)) = (hex(&shape.key, 16), contents) else {
            self.wrong(item, "keys and contents are 16 hexadecimal digits".to_owned());
            return;
        };
        let times = self.count(shape.times, MOST, item);
        let mut branches = Vec::with_capacity(contents.len());
        for (branch, content) in shape.branches.iter().zip(contents) {
            let awaited = self.count(branch.awaited, MOST, item);
            branches.push(BranchTotal { content: content as u64, own: branch.own, awaited });
        }
        if branches.iter().filter(|branch| branch.own).count() > 1 {
            self.wrong(item, "a strand itself is one branch at most".to_owned());
        }
        let response = self.moments(&shape.response, item);
        if sub.entry_mut(index).blocks.insert(key as u64, BlockTotal { at, times, branches, response }).is_some() {
            self.wrong(item, format!("block {} is there twice", shape.key));
        }
    }

    /// Every block lies on the strand of the entry or of a branch, not within itself.
    fn check_blocks(&mut self, entry: &EntryTotal, item: &str) {
        for key in stray_blocks(entry) {
            self.wrong(item, format!("block {} lies on no strand of the entry", digits(key)));
        }
    }

    fn work(
        &mut self,
        sub: &mut SubModel,
        index: EntryIndex,
        shape: &WorkShape,
        entries: &[Option<EntryIndex>],
        item: &str,
    ) {
        let at = self.position(shape.stage, shape.branch.as_ref(), shape.phase, item);
        if at.branch.is_some_and(|branch| !has_branch(sub.entry(index), branch)) {
            self.wrong(item, "the entry has no such branch".to_owned());
        }
        if sub.entry(index).work.contains_key(&at) {
            self.wrong(item, "work of this position is there twice".to_owned());
        }
        let mut work = WorkTotal {
            visits: self.count(shape.visits, MOST, item),
            exclusive: self.moments(&shape.exclusive, item),
            network: self.moments(&shape.network, item),
            pauses: self.moments(&shape.pauses, item),
            ..WorkTotal::default()
        };
        for activity in &shape.activities {
            let own = work.activities.entry(sub.names.intern(&activity.name)).or_default();
            own.count = self.count(activity.count, MOST, item);
            own.cpu = self.moments(&activity.cpu, item);
        }
        for request in &shape.requests {
            let kind = request.kind.kind();
            let Some(to) = entries.get(request.to as usize).copied().flatten() else {
                self.wrong(item, format!("there is no entry {} to request", request.to));
                continue;
            };
            let own = work.requests.entry((kind, to)).or_default();
            own.count = self.count(request.count, MOST, item);
            own.squares = self.count(request.squares, MOST_SQUARES, item);
        }
        sub.entry_mut(index).work.insert(at, work);
    }
}

/// The blocks on the way to which one lies on no strand of the entry, or within itself, by that one.
pub(super) fn stray_blocks(entry: &EntryTotal) -> impl Iterator<Item = u64> {
    let mut known: FxHashSet<u64> = FxHashSet::default();
    let stray = move |first: &u64| {
        let (mut path, mut stray) = (vec![*first], None);
        while let Some(branch) = path.last().and_then(|key| entry.blocks.get(key)).and_then(|block| block.at.branch) {
            if !has_branch(entry, branch) || path.len() > entry.blocks.len() {
                stray = Some(*first);
                break;
            }
            if known.contains(&branch.block) {
                break;
            }
            path.push(branch.block);
        }
        known.extend(path);
        stray
    };
    entry.blocks.keys().filter_map(stray)
}

pub(super) fn has_branch(entry: &EntryTotal, branch: Branch) -> bool {
    entry.blocks.get(&branch.block).is_some_and(|block| (branch.branch as usize) < block.branches.len())
}

fn hex(text: &str, digits: usize) -> Option<u128> {
    let sound = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if sound { u128::from_str_radix(text, 16).ok() } else { None }
}
