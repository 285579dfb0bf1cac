//! From a sub-model to its file.

use std::collections::BTreeMap;

use super::kept::{Kept, KeptShape};
use super::stays::StaysShape;
use super::timing;
use super::{
    ActivityShape, BatchesShape, BlockShape, BranchShape, BranchTotalShape, DeploymentShape, Document, EntryShape,
    IdsShape, MomentsShape, NumbersShape, ReplicaShape, RequestShape, RequestWord, SampledShape, ScenarioShape,
    StartsShape, UndatedShape, VERSION, Whole, WitnessShape, WorkShape,
};
use crate::batches::Batches;
use crate::deployment::{Replica, Seen};
use crate::kept_ids::KeptIds;
use crate::starts::Starts;
use crate::submodel::{
    BlockTotal, Branch, BranchTotal, EntryTotal, Moments, Position, Sampled, SubModel, Undated, WorkTotal,
};

/// Writes a sub-model; `merge` says how its entries were merged, since files of different ways do not go together.
pub fn write(sub: &SubModel, merge: &str) -> String {
    write_keeping(sub, merge, None)
}

/// The same with recordings that are kept.
pub fn write_keeping(sub: &SubModel, merge: &str, kept: Option<&Kept>) -> String {
    // Strings, numbers and lists have nothing that JSON could not hold.
    let mut text = serde_json::to_string_pretty(&document(sub, merge, kept)).unwrap_or_default();
    text.push('\n');
    text
}

pub(super) fn document(sub: &SubModel, merge: &str, kept: Option<&Kept>) -> Document {
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
            pieces: total.pieces,
            unlinked: total.unlinked,
            apart: total.apart,
            mended: total.mended,
            failures: total.failures,
            chosen: total.chosen,
            truncated: total.truncated,
            unweighed: total.unweighed,
            limit: total.limit,
            sampled: (total.sampled != Sampled::default()).then_some(SampledShape {
                operations: total.sampled.operations,
                thousandths: total.sampled.thousandths,
                squares: total.sampled.squares,
                counted: total.sampled.counted,
            }),
            first_start: total.first_start,
            last_start: total.last_start,
            last_end: total.last_end,
            ids: IdsShape::of(&total.ids),
            told_ids: IdsShape::of(&total.told_ids),
            starts: StartsShape::of(&total.starts),
            undated: (total.undated != Undated::default()).then_some(UndatedShape {
                traces: total.undated.traces,
                operations: total.undated.operations,
                nanoseconds: total.undated.nanoseconds,
            }),
            response: MomentsShape::of(&total.response),
            grain: total.grain,
            responses: total.responses.text(),
            stays: StaysShape::of(&total.stays),
            clients: total.clients,
            think: MomentsShape::of(&total.think),
        })
        .collect();
    scenarios.sort_by(|left, right| left.name.cmp(&right.name));
    let entries = order.iter().map(|index| entry_shape(sub, sub.entry(*index), &numbers)).collect();
    Document {
        version: VERSION,
        merge: merge.to_owned(),
        concurrent: sub.concurrent,
        set_aside: sub.set_aside,
        observed: sub.observed.clone(),
        instances: sub.instances.iter().map(|(task, count)| (sub.names.text(*task).to_owned(), *count)).collect(),
        deployment: DeploymentShape::of(sub),
        scenarios,
        entries,
        kept: kept.map(|kept| KeptShape::of(kept, merge)),
    }
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
        untimed_delays: entry.untimed_delays,
        response: MomentsShape::of(&entry.response),
        responses: entry.responses.text(),
        calls,
        pairs,
        stays: StaysShape::of(&entry.stays),
        visits: StaysShape::of(&entry.visits),
        way: MomentsShape::of(&entry.way),
        batches: (entry.batches != Batches::default()).then(|| BatchesShape {
            time: MomentsShape::of(&entry.batches.time),
            messages: entry.batches.messages,
            squares: entry.batches.squares,
            products: entry.batches.products.0.to_string(),
            most: entry.batches.most,
        }),
        inferred: entry.inferred,
        inferred_requests: entry.inferred_requests,
        undated: entry.undated,
        silent: entry.silent,
        may_wait: entry.may_wait,
        failures: entry.failures,
        given_up: entry.given_up,
        retries: entry.retries,
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
        pauses: MomentsShape::of(&work.pauses),
        activities,
        requests,
    }
}

impl DeploymentShape {
    fn of(sub: &SubModel) -> Option<Self> {
        let text = |name| sub.names.text(name).to_owned();
        let replica = |(replica, seen): (&Replica, &Seen)| ReplicaShape {
            task: text(replica.task),
            instance: text(replica.instance),
            machine: text(replica.machine),
            first: seen.first,
            last: seen.last,
            invocations: seen.invocations,
            cores: seen.cores,
        };
        let mut replicas: Vec<ReplicaShape> = sub.deployment.replicas().map(replica).collect();
        replicas.sort();
        (!replicas.is_empty()).then(|| Self { replicas, cut: sub.deployment.cut().map(digits) })
    }
}

impl IdsShape {
    fn of(ids: &KeptIds) -> Option<Self> {
        let numbers = ids.numbers.iter().map(|own| NumbersShape { greatest: own.greatest, sum: own.sum.to_string() });
        (ids.count > 0).then(|| Self { count: ids.count, numbers: numbers.collect() })
    }
}

impl StartsShape {
    fn of(starts: &Starts) -> Option<Self> {
        let cells: Vec<_> = starts.cells().iter().map(|cell| (cell.first, cell.last, cell.operations)).collect();
        let timed = starts.cells().iter().any(|cell| cell.response.count > 0);
        let responses = starts.cells().iter().filter(|_| timed).map(|cell| MomentsShape::of(&cell.response)).collect();
        (!cells.is_empty()).then(|| Self { shift: starts.shift(), cells, responses })
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

pub(super) fn digits(word: u64) -> String {
    format!("{word:016x}")
}

impl MomentsShape {
    pub(super) fn of(moments: &Moments) -> Self {
        let [femtoseconds, squares] = [moments.sum.0, moments.squares].map(Whole::Number);
        Self { count: moments.count, femtoseconds, squares }
    }
}
