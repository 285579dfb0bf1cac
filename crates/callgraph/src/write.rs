//! Summaries in forms that other programs read: JSON, CSV, XML; folded stacks and pprof of the calls merged by path.

use std::fmt::Write as _;

use crate::context::Key;
use crate::critical::CriticalPaths;
use crate::graph::{Graph, Node, children};
use crate::jsonl::quoted;
use crate::profile::Profile;
use dyelog_wire::unsigned;

/// The deepest stack that is written; what lies deeper is one frame, `(deeper)`. No viewer shows more.
pub const DEEPEST: usize = 512;

fn list<T: ToString>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    format!("[{}]", values.join(","))
}

/// A summary as JSON: groups, nodes, links and damage. Times are nanoseconds; vectors have a coordinate for each group. `self_each` is the mean of what single
/// invocations spend themselves over all groups, with half of its 95 % interval; `null` with fewer than two of them.
///
/// With critical paths there is `critical_path` as well: `{"operations", "untimed", "length", "nodes": [{"id", "time", "transit"}], "longest": {"chain",
/// "stretches": [{"id", "begin", "end", "transit"}]}}`.
pub fn json(profile: &Profile, graph: &Graph, critical: Option<&CriticalPaths>) -> String {
    let mut out = String::from("{\"dyelog-profile\":1,\"measure\":");
    out.push_str(if profile.wall { "\"wall\"" } else { "\"cpu\"" });
    let _ = write!(out, ",\"operations\":{},\"cancelled\":{},\"groups\":[", profile.operations, profile.cancelled);
    for (place, group) in graph.groups.iter().enumerate() {
        out.push_str(if place > 0 { "," } else { "" });
        quoted(group, &mut out);
    }
    let unattributed = profile.unattributed.iter().map(|time| time.map_or("null".to_owned(), |time| time.to_string()));
    let _ = write!(out, "],\"unattributed\":{},", list(&unattributed.collect::<Vec<_>>()));
    let _ = write!(out, "\"probes\":{},\"nodes\":[", list(&profile.probes));
    for (id, node) in graph.nodes.iter().enumerate() {
        out.push_str(if id > 0 { ",\n" } else { "\n" });
        json_node(id, node, &mut out);
    }
    out.push_str("\n],\"links\":[");
    for (place, arc) in graph.arcs.iter().enumerate() {
        out.push_str(if place > 0 { ",\n" } else { "\n" });
        let _ = write!(
            out,
            "{{\"from\":{},\"to\":{},\"count\":{},\"primary\":{}}}",
            arc.from, arc.to, arc.count, arc.primary
        );
    }
    out.push_str("\n],\"abnormal\":");
    abnormal(profile, &mut out);
    if let Some(paths) = critical {
        critical_paths(profile, graph, paths, &mut out);
    }
    out.push_str("}\n");
    out
}

fn critical_paths(profile: &Profile, graph: &Graph, paths: &CriticalPaths, out: &mut String) {
    let CriticalPaths { operations, untimed, length, .. } = paths;
    let _ = write!(
        out,
        ",\"critical_path\":{{\"operations\":{operations},\"untimed\":{untimed},\"length\":{length},\"nodes\":["
    );
    for (place, (id, time)) in paths.by_node(graph).into_iter().enumerate() {
        out.push_str(if place > 0 { ",\n" } else { "\n" });
        let _ = write!(out, "{{\"id\":{id},\"time\":{},\"transit\":{}}}", time.own, time.transit);
    }
    out.push_str("\n],\"longest\":{\"chain\":");
    let calls = profile.calls.as_ref().map_or(&[][..], |calls| calls.calls());
    let chain = paths.longest.first().map(|stretch| calls[stretch.call].chain);
    quoted(chain.map_or("", |chain| profile.tables().chain_text(chain)), out);
    out.push_str(",\"stretches\":[");
    for (place, stretch) in paths.longest.iter().enumerate() {
        out.push_str(if place > 0 { ",\n" } else { "\n" });
        let id = graph.node_of(calls[stretch.call].key).unwrap_or_default();
        let (begin, end, transit) = (stretch.begin, stretch.end, stretch.transit);
        let _ = write!(out, "{{\"id\":{id},\"begin\":{begin},\"end\":{end},\"transit\":{transit}}}");
    }
    out.push_str("\n]}}");
}

fn json_node(id: usize, node: &Node, out: &mut String) {
    let _ = write!(out, "{{\"id\":{id},\"kind\":\"{}\"", node.kind.name());
    for (key, value) in [("interface", &node.interface), ("function", &node.function), ("object", &node.object)] {
        let _ = write!(out, ",\"{key}\":");
        quoted(value, out);
    }
    let _ = write!(
        out,
        ",\"invocations\":{},\"self\":{},\"descendent\":{},\"inclusive_once\":{},\"self_each\":",
        node.invocations,
        list(&node.own),
        list(&node.descendent),
        list(&node.inclusive_once)
    );
    let own = &node.statistics.time;
    match own.half_width() {
        Some(half_width) => {
            let _ = write!(out, "{{\"mean\":{},\"half_width\":{half_width}}}", own.mean());
        }
        None => out.push_str("null"),
    }
    out.push_str(",\"latency\":");
    let latency = &node.statistics.latency;
    match (latency.min(), latency.max()) {
        (Some(min), Some(max)) => {
            let _ = write!(
                out,
                "{{\"count\":{},\"mean\":{},\"deviation\":{},\"min\":{min},\"max\":{max}}}}}",
                latency.count(),
                latency.mean(),
                latency.deviation()
            );
        }
        _ => out.push_str("null}"),
    }
}

/// The damage as a JSON list: kind, how often, and where first.
fn abnormal(profile: &Profile, out: &mut String) {
    out.push('[');
    for (place, damage) in profile.abnormal.iter().enumerate() {
        out.push_str(if place > 0 { "," } else { "" });
        let _ = write!(out, "{{\"kind\":\"{}\",\"count\":{},\"first\":", damage.kind.name(), damage.count);
        match &damage.first {
            Some(first) => {
                out.push_str("{\"file\":");
                quoted(profile.reading.files.get(first.file).map_or("", |file| file), out);
                let _ = write!(out, ",\"line\":{},\"chain\":", first.line);
                quoted(&first.chain, out);
                let _ = write!(out, ",\"event\":{}}}}}", first.event);
            }
            None => out.push_str("null}"),
        }
    }
    for (place, (reason, count)) in profile.reading.odd.iter().enumerate() {
        out.push_str(if place + profile.abnormal.len() > 0 { ",{\"kind\":" } else { "{\"kind\":" });
        quoted(reason, out);
        let _ = write!(out, ",\"count\":{count},\"first\":null}}");
    }
    out.push(']');
}

/// A summary as CSV: a row for each node and group. What nothing accounts for stands in the rows of the Global Virtual Main.
pub fn csv(profile: &Profile, graph: &Graph) -> String {
    let columns =
        "id,kind,interface,function,object,invocations,group,self,descendent,inclusive_once,unattributed,probes";
    let mut out = format!("{columns}\n");
    let cell = |text: &str| {
        if text.contains(['"', ',', '\n', '\r']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    };
    for (id, node) in graph.nodes.iter().enumerate() {
        let of_main = |time: Option<i64>| time.filter(|_| id == 0).map_or_else(String::new, |time| time.to_string());
        for (place, group) in graph.groups.iter().enumerate() {
            let _ = writeln!(
                out,
                "{id},{},{},{},{},{},{},{},{},{},{},{}",
                node.kind.name(),
                cell(&node.interface),
                cell(&node.function),
                cell(&node.object),
                node.invocations,
                cell(group),
                node.own[place],
                node.descendent[place],
                node.inclusive_once[place],
                of_main(profile.unattributed[place]),
                of_main(profile.unattributed[place].and(Some(profile.probes[place])))
            );
        }
    }
    out
}

/// A summary as XML: groups with what nothing accounts for, the tree of primary links, then the secondary ones (2002 §3.3).
pub fn xml(profile: &Profile, graph: &Graph) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ccsg version=\"1\" unit=\"ns\">\n");
    for ((group, unattributed), probes) in graph.groups.iter().zip(&profile.unattributed).zip(&profile.probes) {
        let told = |time: i64| format!(" unattributed=\"{time}\" probes=\"{probes}\"");
        let unattributed = unattributed.map_or_else(String::new, told);
        let _ = writeln!(out, "<group name=\"{}\"{unattributed}/>", escaped(group));
    }
    let mut tree: Vec<Vec<(usize, u64)>> = vec![Vec::new(); graph.nodes.len()];
    for arc in graph.arcs.iter().rev().filter(|arc| arc.primary) {
        tree[arc.from].push((arc.to, arc.count));
    }
    // An entry without a count closes its node.
    let mut open: Vec<(usize, Option<u64>)> = vec![(0, Some(1))];
    while let Some((id, count)) = open.pop() {
        let Some(count) = count else {
            out.push_str("</node>\n");
            continue;
        };
        xml_node(id, count, &graph.nodes[id], &mut out);
        open.push((id, None));
        open.extend(tree[id].iter().map(|(to, count)| (*to, Some(*count))));
    }
    for arc in graph.arcs.iter().filter(|arc| !arc.primary) {
        let _ = writeln!(out, "<secondary from=\"{}\" to=\"{}\" count=\"{}\"/>", arc.from, arc.to, arc.count);
    }
    out.push_str("</ccsg>\n");
    out
}

fn xml_node(id: usize, count: u64, node: &Node, out: &mut String) {
    let vector = |values: &[i128]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let _ = writeln!(
        out,
        "<node id=\"{id}\" kind=\"{}\" interface=\"{}\" function=\"{}\" object=\"{}\" invocations=\"{}\" count=\"{count}\" self=\"{}\" \
         descendent=\"{}\" inclusive_once=\"{}\">",
        node.kind.name(),
        escaped(&node.interface),
        escaped(&node.function),
        escaped(&node.object),
        node.invocations,
        vector(&node.own),
        vector(&node.descendent),
        vector(&node.inclusive_once)
    );
}

/// Text as an attribute of XML; characters that XML cannot have become `�`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => {
                let _ = write!(out, "&#{};", character as u32);
            }
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
    out
}

/// A stack with what was spent at its end, by group, in nanoseconds.
struct Stack {
    frames: Vec<Option<Key>>,
    group: Option<usize>,
    time: i64,
    count: u64,
}

/// Calls each stack that something was spent in; one that is deeper than [`DEEPEST`] ends in a frame without a key.
fn stacks(profile: &Profile, mut each: impl FnMut(&Stack)) {
    let contexts = &profile.contexts;
    let (first, next) = children(contexts);
    let mut stack = Stack { frames: Vec::new(), group: None, time: 0, count: 0 };
    let (mut node, mut depth) = (0usize, 0usize);
    // What lies too deep, summed by group until the walk is back up.
    let mut deeper: Vec<(i64, u64)> = vec![(0, 0); profile.groups.len()];
    loop {
        if node != 0 {
            depth += 1;
            let (time, count) = (contexts.time(node), contexts.count(node));
            if depth <= DEEPEST {
                stack.frames.push(Some(contexts.key(node)));
                (stack.group, stack.time, stack.count) = (contexts.group(node), time, count);
                if stack.time > 0 {
                    each(&stack);
                }
            } else if let Some(group) = contexts.group(node) {
                deeper[group] = (deeper[group].0 + time, deeper[group].1 + count);
            }
        }
        if first[node] != u32::MAX {
            node = first[node] as usize;
            continue;
        }
        loop {
            if node == 0 {
                return;
            }
            if depth == DEEPEST {
                stack.frames.push(None);
                for (group, sum) in deeper.iter_mut().enumerate().filter(|(_, sum)| sum.0 > 0) {
                    (stack.group, stack.time, stack.count) = (Some(group), sum.0, sum.1);
                    each(&stack);
                    *sum = (0, 0);
                }
                stack.frames.pop();
            }
            if depth <= DEEPEST {
                stack.frames.pop();
            }
            depth -= 1;
            if next[node] != u32::MAX {
                node = next[node] as usize;
                break;
            }
            node = contexts.parent(node).unwrap_or(0);
        }
    }
}

fn frame(profile: &Profile, key: Option<Key>, objects: bool) -> String {
    key.map_or_else(|| "(deeper)".to_owned(), |key| profile.label(key, objects))
}

/// Folded stacks: frames joined by `;`, a blank, nanoseconds. The processor group is the first frame where there are several.
pub fn folded(profile: &Profile, objects: bool) -> String {
    let mut lines: std::collections::BTreeMap<String, i64> = std::collections::BTreeMap::new();
    let clean = |text: &str| text.replace(';', ",").replace(['\n', '\r'], " ");
    stacks(profile, |stack| {
        let mut line = String::new();
        if let (Some(group), true) = (stack.group, profile.groups.len() > 1) {
            line.push_str(&clean(&profile.groups[group]));
        }
        for key in &stack.frames {
            line.push_str(if line.is_empty() { "" } else { ";" });
            line.push_str(&clean(&frame(profile, *key, objects)));
        }
        *lines.entry(line).or_default() += stack.time;
    });
    let mut out = String::new();
    for (line, time) in lines {
        let _ = writeln!(out, "{line} {time}");
    }
    out
}

/// A profile in the format of pprof, not compressed: samples with calls and nanoseconds, the processor group as the label `group`.
pub fn pprof(profile: &Profile, objects: bool) -> Vec<u8> {
    let mut strings: Vec<String> = Vec::new();
    let mut numbers = rustc_hash::FxHashMap::default();
    let mut string = |text: &str| -> u64 {
        if let Some(&number) = numbers.get(text) {
            return number;
        }
        let number = strings.len() as u64;
        strings.push(text.to_owned());
        numbers.insert(text.to_owned(), number);
        number
    };
    string("");
    let unit = string("nanoseconds");
    let (calls, count) = (string("calls"), string("count"));
    let time = string(if profile.wall { "wall" } else { "cpu" });
    let group_key = string("group");
    let mut out = Vec::new();
    for (kind, unit) in [(calls, count), (time, unit)] {
        message(1, &pair(kind, unit), &mut out);
    }
    let mut functions: rustc_hash::FxHashMap<String, u64> = rustc_hash::FxHashMap::default();
    let mut order: Vec<String> = Vec::new();
    stacks(profile, |stack| {
        let mut locations = Vec::new();
        for key in stack.frames.iter().rev() {
            let label = frame(profile, *key, objects);
            let number = *functions.entry(label.clone()).or_insert_with(|| {
                order.push(label);
                order.len() as u64
            });
            unsigned(number, &mut locations);
        }
        let mut values = Vec::new();
        unsigned(stack.count, &mut values);
        unsigned(stack.time as u64, &mut values);
        let mut sample = Vec::new();
        message(1, &locations, &mut sample);
        message(2, &values, &mut sample);
        if let Some(group) = stack.group {
            message(3, &pair(group_key, string(&profile.groups[group])), &mut sample);
        }
        message(2, &sample, &mut out);
    });
    for (place, label) in order.iter().enumerate() {
        let number = place as u64 + 1;
        let mut line = Vec::new();
        field(1, number, &mut line);
        let mut location = Vec::new();
        field(1, number, &mut location);
        message(4, &line, &mut location);
        message(4, &location, &mut out);
        let name = string(label);
        let mut function = Vec::new();
        field(1, number, &mut function);
        field(2, name, &mut function);
        field(3, name, &mut function);
        message(5, &function, &mut out);
    }
    message(11, &pair(time, unit), &mut out);
    field(12, 1, &mut out);
    field(14, time, &mut out);
    for text in &strings {
        message(6, text.as_bytes(), &mut out);
    }
    out
}

fn field(number: u64, value: u64, out: &mut Vec<u8>) {
    unsigned(number << 3, out);
    unsigned(value, out);
}

fn message(number: u64, content: &[u8], out: &mut Vec<u8>) {
    unsigned(number << 3 | 2, out);
    unsigned(content.len() as u64, out);
    out.extend_from_slice(content);
}

fn pair(first: u64, second: u64) -> Vec<u8> {
    let mut out = Vec::new();
    field(1, first, &mut out);
    field(2, second, &mut out);
    out
}
