//! The records of a monitoring log, from their text and from their binary form.

use crate::spans::ids::{SpanId, TraceId};
use crate::spans::model::Span;
use dyelog_diagnostic::names::{Name, Names};

/// One record. Times are in the unit of its log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Record {
    /// The unit of times: how many nanoseconds.
    Unit(i64),
    /// An execution of an operation, as a whole.
    Execution(Execution),
    /// What is known of a trace: its host, and where in another it begins.
    Trace { trace: i64, host: Name, parent: i64, order: i32 },
    /// Something that happens at a place in a trace.
    Event(Event),
    /// A call is received from another process.
    Received { time: i64, caller: i64, caller_order: i32, trace: i64, order: i32 },
    /// What happens to a lock.
    Monitor,
    /// A call of an operation, told by its caller, too.
    Call,
    /// Something else.
    Other,
}

/// An execution of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Execution {
    pub trace: i64,
    /// Execution order index: which of the trace's executions it is, by start.
    pub eoi: i32,
    /// Execution stack size: how deep it is nested.
    pub ess: i32,
    pub start: i64,
    pub end: i64,
    pub signature: Name,
    pub host: Name,
}

impl Execution {
    /// As a span that waits for the other executions of its trace.
    pub fn held(self) -> Span {
        Span {
            trace: TraceId(u128::from(self.trace.cast_unsigned())),
            id: SpanId(u64::from(self.eoi.cast_unsigned())),
            parent: SpanId(u64::from(self.ess.cast_unsigned())),
            start: self.start,
            end: self.end,
            name: self.signature,
            host: self.host,
            ..Span::default()
        }
    }

    /// From the span that waited.
    pub fn of_held(span: &Span) -> Self {
        Self {
            trace: (span.trace.0 as u64).cast_signed(),
            eoi: (span.id.0 as u32).cast_signed(),
            ess: (span.parent.0 as u32).cast_signed(),
            start: span.start,
            end: span.end,
            signature: span.name,
            host: span.host,
        }
    }
}

/// Something that happens in a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Event {
    pub trace: i64,
    /// Its place in the trace.
    pub order: i32,
    pub time: i64,
    pub what: What,
    /// The operation that begins or ends.
    pub signature: Name,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum What {
    Begins,
    Ends,
    Fails,
    /// Another trace begins, or a call of another process is sent.
    Forks,
    /// This trace waits for the end of another.
    Joins(i64),
}

/// The type of a field in the binary form.
#[derive(Clone, Copy, Debug)]
enum Type {
    /// A number of 4 bytes for a string of the map.
    Text,
    Int,
    Long,
    Double,
    Bool,
}

/// The records whose fields are known: the end of the class's name, and what they hold.
const CLASSES: [(&str, &[Type]); 26] = {
    use Type::{Bool, Double, Int, Long, Text};
    const OPERATION: &[Type] = &[Long, Long, Int, Text, Text];
    const FAILED: &[Type] = &[Long, Long, Int, Text, Text, Text];
    const OBJECT: &[Type] = &[Long, Long, Int, Text, Text, Int];
    const CALL: &[Type] = &[Long, Long, Int, Text, Text, Text, Text];
    const MONITOR: &[Type] = &[Long, Long, Int, Int];
    const TRACE: &[Type] = &[Long, Long, Text, Text, Long, Int];
    [
        ("KiekerMetadataRecord", &[Text, Text, Text, Int, Bool, Long, Text, Long]),
        ("OperationExecutionRecord", &[Text, Text, Long, Long, Long, Text, Int, Int]),
        ("ApplicationTraceMetadata", &[Long, Long, Text, Text, Long, Int, Text]),
        ("TraceMetadata", TRACE),
        ("BeforeOperationEvent", OPERATION),
        ("AfterOperationEvent", OPERATION),
        ("AfterOperationFailedEvent", FAILED),
        ("BeforeConstructorEvent", OPERATION),
        ("AfterConstructorEvent", OPERATION),
        ("AfterConstructorFailedEvent", FAILED),
        ("BeforeOperationObjectEvent", OBJECT),
        ("AfterOperationObjectEvent", OBJECT),
        ("CallOperationEvent", CALL),
        ("CallConstructorEvent", CALL),
        ("SplitEvent", &[Long, Long, Int]),
        ("JoinEvent", &[Long, Long, Int, Long]),
        ("BeforeSentRemoteEvent", &[Long, Long, Int, Text]),
        ("BeforeReceivedRemoteEvent", &[Long, Long, Int, Long, Int]),
        ("MonitorRequestEvent", MONITOR),
        ("MonitorEntryEvent", MONITOR),
        ("MonitorExitEvent", MONITOR),
        ("MonitorWaitEvent", MONITOR),
        ("MonitorNotifyEvent", MONITOR),
        ("MonitorNotifyAllEvent", MONITOR),
        ("CPUUtilizationRecord", &[Long, Text, Text, Double, Double, Double, Double, Double, Double, Double]),
        ("MemSwapUsageRecord", &[Long, Text, Long, Long, Long, Long, Long, Long]),
    ]
};

/// The fields of one record, by their places.
pub(super) trait Fields {
    fn long(&self, place: usize) -> Option<i64>;
    fn text(&self, place: usize) -> Option<&str>;

    fn int(&self, place: usize) -> Option<i32> {
        self.long(place).and_then(|number| i32::try_from(number).ok())
    }
}

/// A record of a class; `None` where its fields are not those of the class.
pub(super) fn record(class: &str, fields: &impl Fields, names: &mut Names) -> Option<Record> {
    let simple = class.rsplit('.').next().unwrap_or(class);
    let mut name = |place: usize| fields.text(place).map(|text| names.intern(text.trim()));
    Some(match simple {
        "KiekerMetadataRecord" => Record::Unit(unit(fields.text(6)?)?),
        "OperationExecutionRecord" => Record::Execution(Execution {
            signature: name(0)?,
            trace: fields.long(2)?,
            start: fields.long(3)?,
            end: fields.long(4)?,
            host: name(5)?,
            eoi: fields.int(6)?,
            ess: fields.int(7)?,
        }),
        "TraceMetadata" | "ApplicationTraceMetadata" => {
            Record::Trace { trace: fields.long(0)?, host: name(3)?, parent: fields.long(4)?, order: fields.int(5)? }
        }
        "BeforeReceivedRemoteEvent" => Record::Received {
            time: fields.long(0)?,
            caller: fields.long(1)?,
            caller_order: fields.int(2)?,
            trace: fields.long(3)?,
            order: fields.int(4)?,
        },
        _ if simple.starts_with("Monitor") && simple.ends_with("Event") => Record::Monitor,
        _ if simple.starts_with("Call") => Record::Call,
        _ => {
            let operation = simple.contains("Operation") || simple.contains("Constructor");
            let what = match simple {
                "SplitEvent" | "BeforeSentRemoteEvent" => What::Forks,
                "JoinEvent" => What::Joins(fields.long(3)?),
                _ if !operation || !simple.ends_with("Event") => return Some(Record::Other),
                _ if simple.starts_with("Before") => What::Begins,
                _ if simple.starts_with("After") && simple.contains("Failed") => What::Fails,
                _ if simple.starts_with("After") => What::Ends,
                _ => return Some(Record::Other),
            };
            let named = matches!(what, What::Begins | What::Ends | What::Fails);
            Record::Event(Event {
                time: fields.long(0)?,
                trace: fields.long(1)?,
                order: fields.int(2)?,
                what,
                signature: if named { name(3)? } else { Name::NONE },
            })
        }
    })
}

/// Nanoseconds in a unit, by the name that Java has for it.
fn unit(name: &str) -> Option<i64> {
    Some(match name.trim() {
        "NANOSECONDS" => 1,
        "MICROSECONDS" => 1_000,
        "MILLISECONDS" => 1_000_000,
        "SECONDS" => 1_000_000_000,
        _ => return None,
    })
}

/// The fields of a line, behind the class and the time of logging.
pub(super) struct Line<'a>(pub Vec<&'a str>);

impl Fields for Line<'_> {
    fn long(&self, place: usize) -> Option<i64> {
        self.0.get(place)?.trim().parse().ok()
    }

    fn text(&self, place: usize) -> Option<&str> {
        self.0.get(place).copied()
    }
}

/// The fields of a binary record, behind the class and the time of logging.
pub(super) struct Binary<'a> {
    bytes: &'a [u8],
    types: &'static [Type],
    strings: &'a rustc_hash::FxHashMap<i64, String>,
}

impl<'a> Binary<'a> {
    /// The length of a record of that class, in bytes; `None` where the class is not known.
    pub fn length(class: &str) -> Option<usize> {
        Some(types(class)?.iter().map(|own| own.length()).sum())
    }

    /// A record of a class whose length is known.
    pub fn new(class: &str, bytes: &'a [u8], strings: &'a rustc_hash::FxHashMap<i64, String>) -> Option<Self> {
        Some(Self { bytes, types: types(class)?, strings })
    }
}

fn types(class: &str) -> Option<&'static [Type]> {
    let simple = class.rsplit('.').next().unwrap_or(class);
    CLASSES.iter().find(|(name, _)| *name == simple).map(|(_, types)| *types)
}

impl Type {
    fn length(self) -> usize {
        match self {
            Self::Text | Self::Int => 4,
            Self::Long | Self::Double => 8,
            Self::Bool => 1,
        }
    }
}

impl Fields for Binary<'_> {
    fn long(&self, place: usize) -> Option<i64> {
        let at: usize = self.types.get(..place)?.iter().map(|own| own.length()).sum();
        let bytes = self.bytes.get(at..)?;
        match self.types.get(place)? {
            Type::Text | Type::Int => Some(i32::from_be_bytes(*bytes.first_chunk()?).into()),
            Type::Long => Some(i64::from_be_bytes(*bytes.first_chunk()?)),
            Type::Double | Type::Bool => None,
        }
    }

    fn text(&self, place: usize) -> Option<&str> {
        self.strings.get(&self.long(place)?).map(String::as_str)
    }
}
