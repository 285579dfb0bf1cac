//! Reports as JSON, by hand: a program that is measured should not have to build a library for it. The form is that of `dyelog-observe`.

use std::fmt::Write as _;

use crate::function::names;
use crate::observer::Identity;
use crate::observer::resources::Counters;
use crate::observer::table::{Key, Kind, Sums};
use crate::output::escaped;

/// The longest name, in characters.
const LONGEST: usize = 256;

/// The document of one interval, on one line.
pub(crate) fn report(
    identity: &Identity,
    (from, to): (i64, i64),
    used: &Counters,
    sums: &[(Key, Sums)],
    most: u32,
    lost: u64,
) -> String {
    let Identity { application, program, host, id, started, threads, interfaces, disk_operation, .. } = identity;
    let mut text = String::from(r#"{"dyelog-observations":1,"observations":[{"#);
    for (name, value) in [("application", application), ("host", host), ("program", program)] {
        let _ = write!(text, r#""{name}":{},"#, Quoted(if value.is_empty() { "(unnamed)" } else { value }));
    }
    let _ = write!(text, r#""process":{id},"started":{started},"from":{from},"to":{to},"#);
    if let Some(threads) = threads {
        let _ = write!(text, r#""threads":{threads},"#);
    }
    let _ = write!(text, r#""most_threads":{most},"lost":{lost},"resources":{{"cpu_ns":{},"#, used.cpu);
    let operations = |counted: u64, bytes: u64| counted + bytes.div_ceil(*disk_operation);
    let (reads, writes) = (operations(used.reads, used.read_bytes), operations(used.writes, used.written_bytes));
    let _ = write!(text, r#""reads":{reads},"writes":{writes},"read_bytes":{},"#, used.read_bytes);
    let _ = write!(text, r#""written_bytes":{},"received_bytes":{},"#, used.written_bytes, used.received_bytes);
    let _ = write!(text, r#""sent_bytes":{}}},"interfaces":{{"#, used.sent_bytes);
    for (number, (interface, protocols)) in interfaces.iter().enumerate() {
        let _ = write!(text, "{}{}:[", comma(number), Quoted(interface));
        for (number, protocol) in protocols.iter().enumerate() {
            let _ = write!(text, "{}{}", comma(number), Quoted(protocol));
        }
        text.push(']');
    }
    text.push_str(r#"},"inputs":["#);
    for (number, (key, sums)) in sums.iter().filter(|(key, _)| key.kind.is_input()).enumerate() {
        text.push_str(comma(number));
        row(&mut text, *key, sums, "service");
    }
    text.push_str(r#"],"outputs":["#);
    for (number, (key, sums)) in sums.iter().filter(|(key, _)| !key.kind.is_input()).enumerate() {
        text.push_str(comma(number));
        row(&mut text, *key, sums, "request");
    }
    text.push_str("]}]}");
    text
}

fn comma(number: usize) -> &'static str {
    if number == 0 { "" } else { "," }
}

fn row(text: &mut String, key: Key, sums: &Sums, kind: &str) {
    let word = match key.kind {
        Kind::Cycle => "cycle",
        Kind::Served | Kind::Called => "sync",
        Kind::ServedAsynchronously | Kind::Sent => "async",
        Kind::Forwarded => "forwarding",
        Kind::Deferred => "deferred",
    };
    let [interface, operation, protocol] = names(key.function);
    let _ = write!(text, r#"{{"interface":{},"operation":{},"#, Quoted(&interface), Quoted(&operation));
    if key.within != 0 {
        let [interface, operation, _] = names(key.within);
        let _ = write!(text, r#""within":[{},{}],"#, Quoted(&interface), Quoted(&operation));
    }
    if !protocol.is_empty() && !key.kind.is_input() {
        let _ = write!(text, r#""protocol":{},"#, Quoted(&protocol));
    }
    let Sums { count, nanoseconds, squares, .. } = sums;
    let _ =
        write!(text, r#""{kind}":"{word}","count":{count},"femtoseconds":"{}","#, u128::from(*nanoseconds) * 1_000_000);
    let _ = write!(text, r#""squares":"{squares}","responses":""#);
    for (number, (bucket, count)) in sums.buckets().enumerate() {
        let space = if number == 0 { "" } else { " " };
        let _ = write!(text, "{space}{bucket} {count}");
    }
    text.push_str("\"}");
}

/// A name as JSON has it: no longer than readers take, and without what is no text.
pub(crate) struct Quoted<'t>(pub(crate) &'t str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name: String = self.0.chars().filter(|character| !character.is_control()).take(LONGEST).collect();
        write!(f, "\"{}\"", escaped(&name))
    }
}
