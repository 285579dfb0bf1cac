//! Sub-models as files: an object with `"dyelog-submodel": 1`.
//!
//! A file holds what a [`SubModel`] holds, counts and exact sums, and never a mean, so that merging files is the same as
//! reducing all their traces at once. Sums of times are whole femtoseconds, written as strings of digits, since numbers of
//! JSON are commonly read with 53 bits. The text depends on nothing but what the sub-model means: entries stand in
//! canonical order, everything else by name or number.

mod stays;
mod timing;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::codes;
use crate::kept_ids::{KeptIds, Numbers};
use crate::saved::stays::StaysShape;
use crate::saved::timing::{CallShape, PairShape};
use crate::starts::{Starts, Stretch};
use crate::submodel::{
    BlockTotal, Branch, BranchTotal, EntryIndex, EntryKey, EntryTotal, Interaction, Moments, Position, RequestKind,
    Sampled, Seconds, SubModel, Undated, WITNESSES, Witness, WorkTotal,
};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

/// The version that is read and written.
pub const VERSION: u32 = 1;
/// The largest count that is believed: beyond it, sums of counts could leave 64 bits.
const MOST: u64 = 1 << 48;
/// The largest sum of squares that is believed.
const MOST_SQUARES: u64 = 1 << 60;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "dyelog-submodel")]
    version: u32,
    merge: String,
    concurrent: bool,
    set_aside: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    instances: BTreeMap<String, u32>,
    scenarios: Vec<ScenarioShape>,
    entries: Vec<EntryShape>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioShape {
    name: String,
    operations: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    fragments: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    headless: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    sampled: Option<SampledShape>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    ids: Option<IdsShape>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    first_start: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    last_start: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    last_end: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    starts: Option<StartsShape>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    undated: Option<UndatedShape>,
    #[serde(skip_serializing_if = "MomentsShape::is_nothing", default)]
    response: MomentsShape,
    #[serde(skip_serializing_if = "is_zero", default)]
    clients: u64,
    #[serde(skip_serializing_if = "MomentsShape::is_nothing", default)]
    think: MomentsShape,
}

/// What trace identifiers make of the numbers of samplers.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IdsShape {
    count: u64,
    numbers: Vec<NumbersShape>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NumbersShape {
    greatest: u32,
    sum: String,
}

impl IdsShape {
    fn of(ids: &KeptIds) -> Option<Self> {
        let numbers = ids.numbers.iter().map(|own| NumbersShape { greatest: own.greatest, sum: own.sum.to_string() });
        (ids.count > 0).then(|| Self { count: ids.count, numbers: numbers.collect() })
    }
}

/// How many operations those that were kept stand for.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SampledShape {
    operations: u64,
    thousandths: u64,
}

/// Traces that tell no date.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UndatedShape {
    traces: u64,
    operations: u64,
    nanoseconds: u64,
}

/// Cells of time, each with its first start, its last, and how many there are.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartsShape {
    shift: u32,
    cells: Vec<(i64, i64, u64)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryShape {
    key: String,
    task: String,
    instance: u32,
    interaction: String,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    service: String,
    invocations: u64,
    work: Vec<WorkShape>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    blocks: Vec<BlockShape>,
    #[serde(skip_serializing_if = "is_zero", default)]
    moved_waits: u64,
    #[serde(skip_serializing_if = "MomentsShape::is_nothing", default)]
    response: MomentsShape,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    calls: Vec<CallShape>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pairs: Vec<PairShape>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    stays: Option<StaysShape>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    witnesses: Vec<WitnessShape>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkShape {
    stage: u32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    branch: Option<BranchShape>,
    phase: u8,
    visits: u64,
    #[serde(skip_serializing_if = "MomentsShape::is_nothing", default)]
    exclusive: MomentsShape,
    #[serde(skip_serializing_if = "MomentsShape::is_nothing", default)]
    network: MomentsShape,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    activities: Vec<ActivityShape>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    requests: Vec<RequestShape>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BranchShape {
    block: String,
    branch: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockShape {
    key: String,
    stage: u32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    branch: Option<BranchShape>,
    phase: u8,
    times: u64,
    branches: Vec<BranchTotalShape>,
    #[serde(skip_serializing_if = "MomentsShape::is_nothing", default)]
    response: MomentsShape,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BranchTotalShape {
    content: String,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    own: bool,
    awaited: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActivityShape {
    #[serde(skip_serializing_if = "String::is_empty", default)]
    name: String,
    count: u64,
    #[serde(skip_serializing_if = "MomentsShape::is_nothing", default)]
    cpu: MomentsShape,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestShape {
    kind: RequestWord,
    to: u32,
    count: u64,
    squares: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RequestWord {
    Sync,
    Async,
    Forward,
}

impl RequestWord {
    fn of(kind: RequestKind) -> Self {
        match kind {
            RequestKind::Synchronous => Self::Sync,
            RequestKind::Asynchronous => Self::Async,
            RequestKind::Forward => Self::Forward,
        }
    }

    fn kind(self) -> RequestKind {
        match self {
            Self::Sync => RequestKind::Synchronous,
            Self::Async => RequestKind::Asynchronous,
            Self::Forward => RequestKind::Forward,
        }
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MomentsShape {
    count: u64,
    femtoseconds: String,
    squares: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WitnessShape {
    scenario: String,
    run: String,
    thread: u32,
    index: u32,
    file: String,
    item: String,
}

impl StartsShape {
    fn of(starts: &Starts) -> Option<Self> {
        let cells: Vec<_> = starts.cells().iter().map(|cell| (cell.first, cell.last, cell.operations)).collect();
        (!cells.is_empty()).then(|| Self { shift: starts.shift(), cells })
    }
}

impl BranchShape {
    fn of(branch: Branch) -> Self {
        Self { block: digits(branch.block), branch: branch.branch }
    }
}

impl BlockShape {
    fn of(key: u64, block: &BlockTotal) -> Self {
        let branch = |branch: &BranchTotal| BranchTotalShape {
            content: digits(branch.content),
            own: branch.own,
            awaited: branch.awaited,
        };
        Self {
            key: digits(key),
            stage: block.at.stage,
            branch: block.at.branch.map(BranchShape::of),
            phase: block.at.phase,
            times: block.times,
            branches: block.branches.iter().map(branch).collect(),
            response: MomentsShape::of(&block.response),
        }
    }
}

fn digits(word: u64) -> String {
    format!("{word:016x}")
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl MomentsShape {
    fn is_nothing(&self) -> bool {
        self.count == 0
    }

    fn of(moments: &Moments) -> Self {
        let (femtoseconds, squares) = (moments.sum.0.to_string(), moments.squares.to_string());
        Self { count: moments.count, femtoseconds, squares }
    }
}

/// Writes a sub-model; `merge` says how its entries were told apart, since files of different ways do not go together.
pub fn write(sub: &SubModel, merge: &str) -> String {
    let order = sub.canonical_order();
    let mut numbers = vec![0_u32; order.len()];
    for (number, index) in order.iter().enumerate() {
        numbers[index.index()] = number as u32;
    }
    let mut scenarios: Vec<ScenarioShape> = sub
        .scenarios
        .iter()
        .map(|(name, total)| ScenarioShape {
            name: sub.names.text(*name).to_owned(),
            operations: total.operations,
            fragments: total.fragments,
            headless: total.headless,
            sampled: (total.sampled != Sampled::default()).then_some(SampledShape {
                operations: total.sampled.operations,
                thousandths: total.sampled.thousandths,
            }),
            first_start: total.first_start,
            last_start: total.last_start,
            last_end: total.last_end,
            ids: IdsShape::of(&total.ids),
            starts: StartsShape::of(&total.starts),
            undated: (total.undated != Undated::default()).then_some(UndatedShape {
                traces: total.undated.traces,
                operations: total.undated.operations,
                nanoseconds: total.undated.nanoseconds,
            }),
            response: MomentsShape::of(&total.response),
            clients: total.clients,
            think: MomentsShape::of(&total.think),
        })
        .collect();
    scenarios.sort_by(|left, right| left.name.cmp(&right.name));
    let entries = order.iter().map(|index| entry_shape(sub, sub.entry(*index), &numbers)).collect();
    let document = Document {
        version: VERSION,
        merge: merge.to_owned(),
        concurrent: sub.concurrent,
        set_aside: sub.set_aside,
        instances: sub.instances.iter().map(|(task, count)| (sub.names.text(*task).to_owned(), *count)).collect(),
        scenarios,
        entries,
    };
    // Strings, numbers and lists have nothing that JSON could not hold.
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn entry_shape(sub: &SubModel, entry: &EntryTotal, numbers: &[u32]) -> EntryShape {
    let positions: BTreeMap<Position, &WorkTotal> = entry.work.iter().map(|(at, work)| (*at, work)).collect();
    let blocks: BTreeMap<u64, &BlockTotal> = entry.blocks.iter().map(|(key, block)| (*key, block)).collect();
    let (calls, pairs) = timing::shapes(sub, entry, numbers);
    EntryShape {
        key: format!("{:032x}", entry.key.0),
        task: sub.names.text(entry.task).to_owned(),
        instance: entry.instance,
        interaction: entry.interaction.label().to_owned(),
        service: sub.names.text(entry.service).to_owned(),
        invocations: entry.invocations,
        work: positions.into_iter().map(|(at, work)| work_shape(sub, at, work, numbers)).collect(),
        blocks: blocks.into_iter().map(|(key, block)| BlockShape::of(key, block)).collect(),
        moved_waits: entry.moved_waits,
        response: MomentsShape::of(&entry.response),
        calls,
        pairs,
        stays: StaysShape::of(&entry.stays),
        witnesses: entry
            .witnesses
            .iter()
            .map(|witness| WitnessShape {
                scenario: witness.scenario.to_string(),
                run: witness.run.to_string(),
                thread: witness.thread,
                index: witness.index,
                file: witness.file.to_string(),
                item: witness.item.to_string(),
            })
            .collect(),
    }
}

fn work_shape(sub: &SubModel, at: Position, work: &WorkTotal, numbers: &[u32]) -> WorkShape {
    let mut activities: Vec<ActivityShape> = work
        .activities
        .iter()
        .map(|(name, total)| ActivityShape {
            name: sub.names.text(*name).to_owned(),
            count: total.count,
            cpu: MomentsShape::of(&total.cpu),
        })
        .collect();
    activities.sort_by(|left, right| left.name.cmp(&right.name));
    let mut requests: Vec<RequestShape> = work
        .requests
        .iter()
        .map(|((kind, to), total)| RequestShape {
            kind: RequestWord::of(*kind),
            to: numbers[to.index()],
            count: total.count,
            squares: total.squares,
        })
        .collect();
    requests.sort_by_key(|request| (request.kind, request.to));
    WorkShape {
        stage: at.stage,
        branch: at.branch.map(BranchShape::of),
        phase: at.phase,
        visits: work.visits,
        exclusive: MomentsShape::of(&work.exclusive),
        network: MomentsShape::of(&work.network),
        activities,
        requests,
    }
}

/// Whether a text that begins so is meant to be a saved sub-model.
pub fn is_saved(head: &str) -> bool {
    let head = head.trim_start_matches('\u{feff}').trim_start();
    head.starts_with('{') && head[1..].trim_start().starts_with("\"dyelog-submodel\"")
}

/// Reads a sub-model; gives with it how its entries were told apart.
///
/// # Errors
/// The first place at which the text is no JSON of that shape, or everything in it that cannot be.
pub fn parse(name: &Arc<str>, text: &str) -> Result<(SubModel, String), Diagnostics> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document: Document = serde_json::from_str(text).map_err(|error| misshapen(name, text, &error))?;
    if document.version != VERSION {
        return Err(other_version(name, &document.version.to_string()).into());
    }
    let mut reader = Reader { file: name, findings: Vec::new() };
    let sub = reader.document(&document);
    if reader.findings.is_empty() { Ok((sub, document.merge)) } else { Err(Diagnostics(reader.findings)) }
}

fn misshapen(name: &Arc<str>, text: &str, error: &serde_json::Error) -> Diagnostics {
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

fn other_version(name: &Arc<str>, version: &str) -> Diagnostic {
    let message = format!("this is version {version} of the form; version {VERSION} can be read");
    let place = Place::Item { file: Arc::clone(name), item: "dyelog-submodel".to_owned() };
    Diagnostic::error(codes::UNKNOWN_VERSION, place, message)
}

struct Reader<'n> {
    file: &'n Arc<str>,
    findings: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn wrong(&mut self, item: &str, message: String) {
        const SHOWN: usize = 100;
        if self.findings.len() < SHOWN {
            let place = Place::Item { file: Arc::clone(self.file), item: item.to_owned() };
            self.findings.push(Diagnostic::error(codes::BAD_NUMBER, place, message));
        }
    }

    fn count(&mut self, value: u64, most: u64, item: &str) -> u64 {
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

    fn moments(&mut self, shape: &MomentsShape, item: &str) -> Moments {
        if shape.is_nothing() {
            return Moments::default();
        }
        let mut whole = |text: &str| {
            let number: Option<i128> = text.parse().ok();
            if number.is_none() {
                self.wrong(item, format!("`{text}` is no whole number"));
            }
            number.unwrap_or_default()
        };
        let (sum, squares) = (Seconds(whole(&shape.femtoseconds)), whole(&shape.squares));
        Moments { count: self.count(shape.count, MOST, item), sum, squares }
    }

    fn starts(&mut self, shape: &StartsShape, item: &str) -> Starts {
        let mut cells = Vec::with_capacity(shape.cells.len());
        for &(first, last, operations) in &shape.cells {
            cells.push(Stretch { first, last, operations: self.count(operations, MOST, item) });
        }
        Starts::of_cells(shape.shift, cells).unwrap_or_else(|| {
            self.wrong(item, "`starts` are not in the order of time, or not in cells of one length".to_owned());
            Starts::default()
        })
    }

    fn document(&mut self, document: &Document) -> SubModel {
        let mut sub = SubModel::new();
        sub.concurrent = document.concurrent;
        sub.set_aside = self.count(document.set_aside, MOST, "set_aside");
        for (number, shape) in document.scenarios.iter().enumerate() {
            let item = format!("scenarios[{number}]");
            let name = sub.names.intern(&shape.name);
            if sub.scenarios.contains_key(&name) {
                self.wrong(&item, format!("scenario `{}` is there twice", shape.name));
            }
            let operations = self.count(shape.operations, MOST, &item);
            let fragments = self.count(shape.fragments, operations, &item);
            let headless = self.count(shape.headless, fragments, &item);
            let sampled = shape.sampled.as_ref().map(|own| Sampled {
                operations: self.count(own.operations, operations, &item),
                thousandths: self.count(own.thousandths, MOST, &item),
            });
            let response = self.moments(&shape.response, &item);
            let (clients, think) = (self.count(shape.clients, MOST, &item), self.moments(&shape.think, &item));
            let starts = shape.starts.as_ref().map(|starts| self.starts(starts, &item)).unwrap_or_default();
            let undated = shape.undated.as_ref().map(|shape| Undated {
                traces: self.count(shape.traces, MOST, &item),
                operations: self.count(shape.operations, MOST, &item),
                nanoseconds: shape.nanoseconds,
            });
            let ids = shape.ids.as_ref().map(|own| self.ids(own, operations, &item));
            let total = sub.scenarios.entry(name).or_default();
            total.ids = ids.unwrap_or_default();
            total.undated = undated.unwrap_or_default();
            (total.operations, total.fragments, total.headless) = (operations, fragments, headless);
            total.sampled = sampled.unwrap_or_default();
            total.starts = starts;
            (total.first_start, total.last_start, total.last_end) =
                (shape.first_start, shape.last_start, shape.last_end);
            (total.response, total.clients, total.think) = (response, clients, think);
        }
        for (task, count) in &document.instances {
            let task = sub.names.intern(task);
            sub.instances.insert(task, *count);
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
        let stays = shape.stays.as_ref().map(|stays| self.stays(stays, &item)).unwrap_or_default();
        let entry = sub.entry_mut(index);
        (entry.response, entry.stays) = (response, stays);
        entry.invocations = self.count(shape.invocations, MOST, &item);
        entry.moved_waits = self.count(shape.moved_waits, MOST, &item);
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
        let mut known: FxHashSet<u64> = FxHashSet::default();
        for key in entry.blocks.keys() {
            let mut path = vec![*key];
            while let Some(branch) = path.last().and_then(|key| entry.blocks.get(key)).and_then(|block| block.at.branch)
            {
                if !has_branch(entry, branch) || path.len() > entry.blocks.len() {
                    self.wrong(item, format!("block {} lies on no strand of the entry", digits(*key)));
                    break;
                }
                if known.contains(&branch.block) {
                    break;
                }
                path.push(branch.block);
            }
            known.extend(path);
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

fn has_branch(entry: &EntryTotal, branch: Branch) -> bool {
    entry.blocks.get(&branch.block).is_some_and(|block| (branch.branch as usize) < block.branches.len())
}

fn hex(text: &str, digits: usize) -> Option<u128> {
    let sound = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if sound { u128::from_str_radix(text, 16).ok() } else { None }
}
