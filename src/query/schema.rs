//! The relations that queries may ask: their names, columns and units.

use std::sync::LazyLock;

use crate::datalog::base::{BaseRelation, BaseSchema, Type};
use crate::datalog::syntax;
use crate::tlc::facts;

/// An operation: one execution of a scenario.
pub const OPERATION: Type = Type::Entity("an operation");
/// A span.
pub const SPAN: Type = Type::Entity("a span");
/// An event of a span.
pub const EVENT: Type = Type::Entity("an event");
/// A match of a template.
pub const MATCH: Type = Type::Entity("a match");
/// A message.
pub const MESSAGE: Type = Type::Entity("a message");
/// An interaction of tasks.
pub const INTERACTION: Type = Type::Entity("an interaction");
/// An entry of an operation's sub-model.
pub const ENTRY: Type = Type::Entity("an entry");

/// A relation of facts.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// Its name.
    pub name: &'static str,
    /// Its columns: names and types.
    pub columns: &'static [(&'static str, Type)],
    /// What a row says, with units.
    pub meaning: &'static str,
}

macro_rules! relations {
    ($($variant:ident $name:literal ($($column:literal: $kind:expr),*) $meaning:literal;)*) => {
        /// A relation of this room's own; the others are those of the graph.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Own { $($variant),* }

        /// This room's own relations, in the order of [`Own`].
        const OWN: &[(Own, Described)] = &[$((Own::$variant, Described {
            name: $name,
            columns: &[$(($column, $kind)),*],
            meaning: $meaning,
        })),*];
    };
}

relations! {
    Operation "operation" ("operation": OPERATION, "scenario": Type::Symbol, "run": Type::Symbol)
        "operation O is the run of that name of a scenario; of spans, the run is the trace identifier";
    NodeOperation "node_operation" ("node": Type::Node, "operation": OPERATION) "node N is of operation O";
    Cpu "cpu" ("node": Type::Node, "cpu": Type::Integer) "node N took so much processor time, in nanoseconds";
    NodeSpan "node_span" ("node": Type::Node, "span": SPAN) "node N was read from span S";
    Span "span" ("span": SPAN, "service": Type::Symbol, "name": Type::Symbol)
        "span S of that name was recorded by that service";
    SpanOperation "span_operation" ("span": SPAN, "operation": OPERATION) "span S is of operation O";
    SpanId "span_id" ("span": SPAN, "id": Type::Symbol) "span S has that identifier";
    Parent "parent" ("child": SPAN, "parent": SPAN) "span C was caused by span P";
    Child "child" ("parent": SPAN, "child": SPAN, "number": Type::Integer)
        "span C is the so-manieth child of span P, from 1, by the time of the start";
    Restored "restored" ("span": SPAN)
        "span S is not in the trace, and stands in the place of a missing one: it has a place in the tree, and nothing else";
    Orphan "orphan" ("span": SPAN)
        "span S names a parent that is not in the trace; it hangs on what stands in its place, or is a root";
    Root "root" ("span": SPAN) "span S is the first of its operation";
    SpanKind "span_kind" ("span": SPAN, "kind": Type::Symbol)
        "span S is \"client\", \"server\", \"producer\", \"consumer\", \"internal\" or \"unspecified\"";
    Start "start" ("span": SPAN, "time": Type::Integer)
        "span S starts at that time, in nanoseconds since 1970; clocks that differ are corrected";
    End "end" ("span": SPAN, "time": Type::Integer) "span S ends at that time, as `start`";
    RecordedStart "recorded_start" ("span": SPAN, "time": Type::Integer)
        "span S starts at that time by its own machine's clock, as the trace tells it";
    RecordedEnd "recorded_end" ("span": SPAN, "time": Type::Integer)
        "span S ends at that time by its own machine's clock, as the trace tells it";
    Duration "duration" ("span": SPAN, "duration": Type::Integer) "span S takes so long, in nanoseconds";
    Status "status" ("span": SPAN, "status": Type::Symbol)
        "span S ended as \"ok\", \"error\" or \"unset\"; an attribute `error` that is true counts as \"error\"";
    Host "host" ("span": SPAN, "host": Type::Symbol) "span S was recorded on that machine; no row where it is not told";
    Instance "instance" ("span": SPAN, "instance": Type::Symbol)
        "span S was recorded by that instance of the service; no row where it is not told";
    Peer "peer" ("span": SPAN, "peer": Type::Symbol) "span S calls that service, as far as its attributes tell";
    SpanCpu "span_cpu" ("span": SPAN, "cpu": Type::Integer)
        "span S has so much processor time by its attributes, in nanoseconds";
    Attr "attr" ("span": SPAN, "key": Type::Symbol, "value": Type::Any)
        "span S has an attribute; numbers are numbers, also where they are written as texts; truth is \"true\" or \"false\"";
    Resource "resource" ("span": SPAN, "key": Type::Symbol, "value": Type::Any)
        "the resource (Jaeger: the process) of span S has an attribute";
    Event "event" ("event": EVENT, "span": SPAN, "name": Type::Symbol, "time": Type::Integer)
        "event E (Jaeger: log) of span S has that name and time, in nanoseconds since 1970, corrected as `start`";
    RecordedTime "recorded_time" ("event": EVENT, "time": Type::Integer)
        "event E happens at that time by its own machine's clock, as the trace tells it";
    EventAttr "event_attr" ("event": EVENT, "key": Type::Symbol, "value": Type::Any) "event E has an attribute";
    Link "link" ("span": SPAN, "trace": Type::Symbol, "id": Type::Symbol)
        "span S is linked to the span of that identifier in that trace";
    Ancestor "ancestor" ("ancestor": SPAN, "span": SPAN) "span A lies above span S in the tree, at whatever distance";
    Order "order" ("span": SPAN, "pre": Type::Integer, "post": Type::Integer)
        "span S comes so-manieth, from 1, in the tree of its operation: before and behind what it caused";
    Depth "depth" ("span": SPAN, "depth": Type::Integer) "so many spans lie above span S";
    SelfTime "self_time" ("span": SPAN, "time": Type::Integer)
        "for so long, in nanoseconds, span S ran and no child of it did";
    Union "covered" ("span": SPAN, "time": Type::Integer)
        "for so long, in nanoseconds, at least one child of span S ran within it";
    Concurrency "concurrency" ("span": SPAN, "children": Type::Integer)
        "at most so many children of span S ran at once";
    Gap "gap" ("span": SPAN, "from": Type::Integer, "to": Type::Integer)
        "between these times span S ran and no child of it did, before the first and behind the last child, too";
    Critical "critical" ("span": SPAN, "from": Type::Integer, "to": Type::Integer)
        "between these times the response of the operation waited for span S itself";
    Dominator "dominator" ("dominator": Type::Node, "node": Type::Node)
        "node D is the last node but N itself that all ways from the operation's first node to node N pass";
    Match "match" ("match": MATCH, "template": Type::Symbol)
        "match M of that template was committed; matches count from 1 in the order of commitment";
    MatchNode "match_node" ("match": MATCH, "name": Type::Symbol, "node": Type::Node)
        "match M has that node; names as in the template, with the round of a `repeat`: \"f[2]\"";
    MatchValue "match_value" ("match": MATCH, "name": Type::Symbol, "value": Type::Any)
        "match M binds a variable of its template: a thread, a counter, a task, a name";
    Entry "entry" ("entry": ENTRY, "task": Type::Symbol, "service": Type::Symbol, "interaction": Type::Symbol)
        "entry E of a task was opened, for that service (\"\" where none is named), by a request of type \"R\", \"A\" or \"F\"";
    Request "request" ("from": ENTRY, "to": ENTRY) "entry E requests entry F";
    Owner "owner" ("node": Type::Node, "entry": ENTRY) "node N is work of entry E";
    Message "message" ("message": MESSAGE, "sender": Type::Symbol, "receiver": Type::Symbol)
        "message M went from a task to another one; \"\" where no task received it and its sending does not name one";
    MessageThread "message_thread" ("message": MESSAGE, "sender": Type::Integer, "receiver": Type::Integer)
        "message M went from that thread of its sender to that of its receiver; 1 where a task has one";
    MessageName "message_name" ("message": MESSAGE, "name": Type::Symbol) "message M says that; no row where it is not told";
    MessageSent "message_sent" ("message": MESSAGE, "time": Type::Integer)
        "message M was sent at that time, in nanoseconds of the trace's own clock; where the trace tells one time of a message, at that";
    MessageReceived "message_received" ("message": MESSAGE, "time": Type::Integer)
        "message M was received at that time, as `message_sent`; no row where it never was";
    MessageKind "message_kind" ("message": MESSAGE, "kind": Type::Symbol)
        "message M is a \"request\", a \"forward\" of one, a \"reply\", \"asynchronous\" (nobody replies) or \"lost\" (nobody received it)";
    MessageReply "message_reply" ("request": MESSAGE, "reply": MESSAGE)
        "message R answers request M, by way of those that passed it on";
    MessageCause "message_cause" ("message": MESSAGE, "cause": MESSAGE)
        "message M was sent while its sender served message C; no row where it served none";
    MessagePlace "message_place" ("message": MESSAGE, "file": Type::Symbol, "line": Type::Integer)
        "the trace tells of message M there; of one that was received, of its reception";
    Interaction "interaction" ("interaction": INTERACTION, "kind": Type::Symbol, "client": Type::Symbol, "server": Type::Symbol)
        "interaction I is \"sync\", \"async\" or \"forward\"; the server is the task that replied, or received the message";
    InteractionMessage "interaction_message" ("interaction": INTERACTION, "number": Type::Integer, "message": MESSAGE)
        "interaction I has message M as its so-manieth, from 1: the request, those that passed it on, the reply";
    InteractionCutOff "interaction_cut_off" ("interaction": INTERACTION)
        "interaction I is taken for asynchronous since the trace ended before a reply";
    EntryMessage "entry_message" ("entry": ENTRY, "message": MESSAGE) "entry E was opened by message M";
    Regex "regex" ("text": Type::Symbol, "pattern": Type::Symbol)
        "the regular expression finds a place in text T, anywhere in it; the expression stands in the rule, and another literal binds T";
}

/// Names of the columns of the graph's relations, in the order of [`facts::RELATIONS`].
const GRAPH: [&[&str]; 16] = [
    &["node"],
    &["node", "thread", "counter"],
    &["node", "task", "counter"],
    &["node", "kind"],
    &["node", "next"],
    &["node", "next"],
    &["fork", "begin"],
    &["join", "end"],
    &["cause", "effect"],
    &["node", "name"],
    &["node", "service"],
    &["node", "time"],
    &["thread", "task", "counter"],
    &["thread", "task", "counter"],
    &["thread", "counter", "visit"],
    &["thread", "counter", "accepted_on", "at"],
];

/// Relations with at most one row for each value of their first column.
const KEYED: [&str; 30] = [
    "operation",
    "node_operation",
    "time",
    "cpu",
    "node_span",
    "span",
    "span_operation",
    "span_id",
    "parent",
    "span_kind",
    "start",
    "end",
    "recorded_start",
    "recorded_end",
    "duration",
    "status",
    "host",
    "instance",
    "peer",
    "span_cpu",
    "event",
    "recorded_time",
    "order",
    "depth",
    "self_time",
    "covered",
    "concurrency",
    "match",
    "entry",
    "message",
];

/// The relations, those of the graph first: their numbers are those of the base relations.
pub fn schema() -> &'static BaseSchema {
    static SCHEMA: LazyLock<BaseSchema> = LazyLock::new(|| {
        let mut schema = facts::schema().clone();
        for (_, relation) in OWN {
            let columns: Vec<Type> = relation.columns.iter().map(|(_, kind)| *kind).collect();
            let added = schema.add(relation.name, &columns);
            if KEYED.contains(&relation.name) {
                schema.key(added, 0);
            }
        }
        for (name, columns, _) in described() {
            let relation = schema.get(name).expect("all that are described are there");
            schema.name_columns(relation, columns);
        }
        for (file, text) in super::standard::FILES {
            let exports = syntax::read(file, text, &|_| None).program.exports;
            for relation in exports {
                schema.offer(&relation.value, file);
            }
        }
        schema
    });
    &SCHEMA
}

/// All relations with the names of their columns and what a row says, those of the graph first.
pub fn described() -> impl Iterator<Item = (&'static str, Vec<&'static str>, &'static str)> {
    let graph =
        facts::RELATIONS.iter().zip(GRAPH).map(|((name, _, meaning), columns)| (*name, columns.to_vec(), *meaning));
    let own = OWN.iter().map(|(_, own)| (own.name, own.columns.iter().map(|(name, _)| *name).collect(), own.meaning));
    graph.chain(own)
}

/// The names of the columns of a relation.
pub(super) fn column_names(relation: BaseRelation) -> Vec<&'static str> {
    let place = relation.0 as usize;
    match GRAPH.get(place) {
        Some(columns) => columns.to_vec(),
        None => OWN[place - GRAPH.len()].1.columns.iter().map(|(name, _)| *name).collect(),
    }
}

/// What traces have rows of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Those that tell of operations.
    Operations,
    /// Those that tell of messages, and not of operations.
    Messages,
    /// Both.
    Both,
}

/// Whether a relation of that name tells of spans.
pub(super) fn is_of_spans(name: &str) -> bool {
    schema().get(name).is_some_and(|relation| schema().columns(relation).1.contains(&SPAN))
}

/// What traces have rows of a relation.
pub(super) fn subject(relation: BaseRelation) -> Subject {
    match own(relation) {
        Some(Own::Entry | Own::Request | Own::Regex) => Subject::Both,
        Some(
            Own::Message
            | Own::MessageThread
            | Own::MessageName
            | Own::MessageSent
            | Own::MessageReceived
            | Own::MessageKind
            | Own::MessageReply
            | Own::MessageCause
            | Own::MessagePlace
            | Own::Interaction
            | Own::InteractionMessage
            | Own::InteractionCutOff
            | Own::EntryMessage,
        ) => Subject::Messages,
        _ => Subject::Operations,
    }
}

/// What a base relation is: this room's own, or the graph's.
pub(super) fn own(relation: BaseRelation) -> Option<Own> {
    Some(OWN.get((relation.0 as usize).checked_sub(GRAPH.len())?)?.0)
}
