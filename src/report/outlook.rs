//! What there is to know first of a solved model, as text and JSON.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::diagnostic::quantity::{number, percent, significant, time};
use crate::lqn::Model;
use crate::report::bottleneck::{element, words};
use crate::report::look::{Look, Tone};
use crate::study::outlook::Outlook;

/// What is so near to saturation is saturated.
const SAME: f64 = 0.005;

/// Sources of load that are told of before the tables.
const SHOWN: usize = 8;

/// A line each source of load, and one on what saturates first.
pub fn text(model: &Model, outlook: &Outlook, look: Look) -> String {
    let mut text = String::new();
    let mut loads: Vec<_> = outlook.loads.iter().collect();
    if loads.len() > SHOWN {
        loads.sort_by(|left, right| right.throughput.total_cmp(&left.throughput));
    }
    for load in loads.iter().take(SHOWN) {
        let response = match (load.response, load.p95) {
            (None, _) => "no steady response".to_owned(),
            (Some(mean), None) => format!("response {}", time(mean)),
            (Some(mean), Some(p95)) => format!("response {}, p95 {} (simulated)", time(mean), time(p95)),
        };
        text.push_str(&broken(&format!("{}: {response}, at {}/s", load.name, number(load.throughput)), look.width));
    }
    if loads.len() > SHOWN {
        text.push_str(&format!("and {} more, below\n", loads.len() - SHOWN));
    }
    let Some(first) = &outlook.first else {
        return text + "nothing has a limit: nothing can saturate\n";
    };
    let what = words(model, first.resource);
    let times = significant(first.factor, 2, -3..6);
    let (tone, line) = if first.factor > 1.0 + SAME {
        let line =
            format!("saturates first: {what}, {} busy now: good up to {times} times today's load", percent(first.busy));
        (Tone::of_utilization(first.busy), line)
    } else if first.factor > 1.0 - SAME {
        (Tone::Alarm, format!("saturated: {what}: more load only makes queues longer"))
    } else {
        (Tone::Alarm, format!("overloaded: {what} is asked for {} of what it has", percent(first.busy)))
    };
    for line in broken(&line, look.width).lines() {
        text.push_str(&look.paint(tone, line));
        text.push('\n');
    }
    text
}

/// A line in lines so wide, where its words allow.
pub(super) fn broken(line: &str, width: usize) -> String {
    let mut text = String::new();
    let mut used = 0;
    for word in line.split(' ') {
        let own = word.width();
        if used > 0 && used + 1 + own > width {
            text.push_str("\n  ");
            used = 2;
        } else if used > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += own;
    }
    text.push('\n');
    text
}

/// `{"loads": [{"name", "throughput", "response", "p95"}], "saturates_first": {"kind", "name", "busy", "factor"}}`, seconds and per second.
pub fn json(model: &Model, outlook: &Outlook) -> Value {
    let loads = outlook.loads.iter().map(
        |load| json!({ "name": load.name, "throughput": load.throughput, "response": load.response, "p95": load.p95 }),
    );
    let first = outlook.first.as_ref().map(|first| {
        let (kind, name) = element(model, first.resource);
        json!({ "kind": kind, "name": name, "busy": first.busy, "factor": first.factor })
    });
    json!({ "loads": loads.collect::<Value>(), "saturates_first": first })
}
