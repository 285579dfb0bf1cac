//! Sub-models as files: an object with `"dyelog-submodel": 1`.
//!
//! A file holds what a [`SubModel`](crate::submodel::SubModel) holds, counts and exact sums, and never a mean, so that merging files is the same as
//! reducing all their traces at once. Sums of times are whole femtoseconds, written as strings of digits, since numbers of
//! JSON are commonly read with 53 bits. The text depends on nothing but what the sub-model means: entries stand in
//! canonical order, everything else by name or number.
//!
//! A file may keep the recordings that its operations are from ([`Kept`]). Those who know nothing of these take the sums as they are.

mod kept;
mod packed;
mod read;
mod sketch;
mod stays;
mod timing;
mod write;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::saved::kept::KeptShape;
use crate::saved::stays::StaysShape;
use crate::saved::timing::{CallShape, PairShape};
use crate::submodel::RequestKind;

pub use kept::{Kept, Made, Sample};
pub use packed::{VERSION as PACKED_VERSION, is_packed, pack, unpack};
pub use read::{parse, parse_keeping};
pub use write::{write, write_keeping};

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
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    observed: Vec<(i64, i64)>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    instances: BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    deployment: Option<DeploymentShape>,
    scenarios: Vec<ScenarioShape>,
    entries: Vec<EntryShape>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    kept: Option<KeptShape>,
}

/// Instances of tasks; `cut` is the least digest of those that were left out.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeploymentShape {
    replicas: Vec<ReplicaShape>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    cut: Option<String>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplicaShape {
    task: String,
    instance: String,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    machine: String,
    first: i64,
    last: i64,
    invocations: u64,
    #[serde(skip_serializing_if = "is_none_told", default)]
    cores: u32,
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
    #[serde(skip_serializing_if = "is_zero", default)]
    pieces: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    unlinked: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    apart: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    mended: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    failures: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    chosen: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    truncated: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    unweighed: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    limit: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    sampled: Option<SampledShape>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    ids: Option<IdsShape>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    told_ids: Option<IdsShape>,
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
    #[serde(skip_serializing_if = "is_one", default = "one")]
    grain: u64,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    responses: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    stays: Option<StaysShape>,
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

/// How many operations those that were kept stand for.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SampledShape {
    operations: u64,
    thousandths: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    squares: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    counted: u64,
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
    /// Response times of each cell, where operations have them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    responses: Vec<MomentsShape>,
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
    #[serde(skip_serializing_if = "is_zero", default)]
    untimed_delays: u64,
    #[serde(skip_serializing_if = "MomentsShape::is_nothing", default)]
    response: MomentsShape,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    responses: String,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    calls: Vec<CallShape>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pairs: Vec<PairShape>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    stays: Option<StaysShape>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    visits: Option<StaysShape>,
    #[serde(skip_serializing_if = "MomentsShape::is_nothing", default)]
    way: MomentsShape,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    batches: Option<BatchesShape>,
    #[serde(skip_serializing_if = "is_zero", default)]
    inferred: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    inferred_requests: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    undated: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    silent: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    may_wait: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    failures: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    given_up: u64,
    #[serde(skip_serializing_if = "is_zero", default)]
    retries: u64,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    witnesses: Vec<WitnessShape>,
}

/// Batches of messages.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchesShape {
    time: MomentsShape,
    messages: u64,
    squares: u64,
    products: String,
    most: u64,
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
    #[serde(skip_serializing_if = "MomentsShape::is_nothing", default)]
    pauses: MomentsShape,
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
    femtoseconds: Whole,
    squares: Whole,
}

/// A whole number of any size as a text of digits, or the text that stands in its place.
enum Whole {
    Number(i128),
    Text(String),
}

impl Default for Whole {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl Serialize for Whole {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.collect_str(number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Digits;

        impl Visitor<'_> for Digits {
            type Value = Whole;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<Whole, E> {
                Ok(text.parse().map_or_else(|_| Whole::Text(text.to_owned()), Whole::Number))
            }
        }

        deserializer.deserialize_str(Digits)
    }
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_none_told(cores: &u32) -> bool {
    *cores == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_one(step: &u64) -> bool {
    *step == 1
}

fn one() -> u64 {
    1
}

impl MomentsShape {
    fn is_nothing(&self) -> bool {
        self.count == 0
    }
}

/// Whether a text that begins so is meant to be a saved sub-model.
pub fn is_saved(head: &str) -> bool {
    let head = head.trim_start_matches('\u{feff}').trim_start();
    head.starts_with('{') && head[1..].trim_start().starts_with("\"dyelog-submodel\"")
}
