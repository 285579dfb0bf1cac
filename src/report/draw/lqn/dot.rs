//! A model in the DOT language of Graphviz.

use std::fmt::Write as _;

use crate::lqn::results::Results;
use crate::lqn::{CallKind, TaskId};
use crate::report::draw::lqn::LqnOptions;
use crate::report::draw::lqn::numbers::{activity_demand, braces, entry_demands, means, short, time};
use crate::report::draw::lqn::tasks::{Busy, busy_processor, busy_task};
use crate::report::draw::lqn::view::{Caller, View};
use crate::report::draw::text::{clip, quoted};
use crate::report::escape::escape;

/// The most characters of a name.
const NAME: usize = 60;
/// Fill colours from idle to busy, as in the SVG.
const COLOURS: [&str; 6] = ["#eef3f8", "#d3e2f0", "#b0cce4", "#fde9a9", "#f59d3d", "#9b2226"];

/// Writes what is in view.
pub(super) fn write(view: &View<'_>, results: Option<&Results>, options: &LqnOptions) -> String {
    let mut text = String::new();
    for note in view.notes() {
        let _ = writeln!(text, "// {note}");
    }
    let _ = writeln!(text, "digraph lqn {{\n  label={};", quoted(&options.title));
    text.push_str("  labelloc=t;\n  node [shape=plain, fontname=\"Helvetica\", fontsize=11];\n");
    text.push_str("  edge [fontname=\"Helvetica\", fontsize=10];\n");
    for &task in &view.tasks {
        task_node(&mut text, view, task, results, options.seconds);
    }
    for (&processor, tasks) in &view.processors {
        let element = &view.model.processors[processor.index()];
        let busy = busy_processor(view, processor, results);
        let mut label = vec![clip(&element.name, NAME), braces(element.multiplicity, element.replicas)];
        label.extend(busy.map(Busy::text));
        label.retain(|line| !line.is_empty());
        let fill = busy.and_then(Busy::class).map(|class| {
            let font = if class == 6 { ", fontcolor=white" } else { "" };
            format!(", style=filled, fillcolor=\"{}\"{font}", COLOURS[usize::from(class) - 1])
        });
        let _ = writeln!(
            text,
            "  p{} [shape=ellipse, label={}{}];",
            processor.0,
            quoted(&label.join("\n")),
            fill.unwrap_or_default()
        );
        for task in tasks {
            let _ = writeln!(text, "  t{}:task -> p{} [arrowhead=none, style=dotted];", task.0, processor.0);
        }
    }
    for requests in &view.requests {
        let to = &view.model.entries[requests.to.index()];
        let from = match requests.from {
            Caller::Entry(entry) => format!("t{}:e{}", requests.task.0, entry.0),
            Caller::Activity(activity) if view.shows_activities(requests.task) => {
                format!("t{}:a{}", requests.task.0, activity.0)
            }
            Caller::Activity(_) => format!("t{}:task", requests.task.0),
        };
        let style = match requests.kind {
            Some(CallKind::Synchronous) => "arrowhead=normal",
            Some(CallKind::Asynchronous) => "arrowhead=vee",
            None => "arrowhead=normal, style=dashed",
        };
        let label = quoted(&means(&requests.means));
        let _ = writeln!(text, "  {from} -> t{}:e{} [{style}, label={label}];", to.task.0, requests.to.0);
    }
    text.push_str("}\n");
    text
}

fn task_node(text: &mut String, view: &View<'_>, id: TaskId, results: Option<&Results>, seconds: bool) {
    let task = view.task(id);
    let source = task.scheduling.is_source();
    let busy = busy_task(view, id, results);
    let _ = write!(
        text,
        "  t{} [label=<<table border=\"0\" cellborder=\"1\" cellspacing=\"0\" cellpadding=\"5\"><tr>",
        id.0
    );
    for number in view.entries(id) {
        let entry = &view.model.entries[number.index()];
        let mut lines = vec![clip(&entry.name, NAME)];
        lines.extend(entry_demands(entry, seconds));
        lines.extend(entry.open_arrival_rate.map(|rate| format!("λ = {}", short(rate))));
        cell(text, &format!("e{}", number.0), "", &lines);
    }
    let mut lines = vec![clip(&task.name, NAME), braces(task.multiplicity, task.replicas)];
    if task.think_time > 0.0 {
        lines.push(format!("Z = {}", time(task.think_time, seconds)));
    }
    lines.extend(busy.map(Busy::text));
    lines.retain(|line| !line.is_empty());
    let colour = match busy.and_then(Busy::class) {
        Some(class) => COLOURS[usize::from(class) - 1],
        None if source => "#f6ecd8",
        None => "#e3ecf5",
    };
    cell(text, "task", &format!(" bgcolor=\"{colour}\""), &lines);
    text.push_str("</tr>");
    if view.shows_activities(id) {
        text.push_str("<tr>");
        for &number in task.activities.iter().filter(|number| number.index() < view.model.activities.len()) {
            let activity = &view.model.activities[number.index()];
            let demand = activity_demand(&activity.work, seconds);
            cell(text, &format!("a{}", number.0), " bgcolor=\"#f7f9fb\"", &[clip(&activity.name, NAME), demand]);
        }
        text.push_str("</tr>");
    }
    text.push_str("</table>>];\n");
}

fn cell(text: &mut String, port: &str, attributes: &str, lines: &[String]) {
    let _ = write!(text, "<td port=\"{port}\"{attributes}>");
    for (place, line) in lines.iter().enumerate() {
        if place > 0 {
            text.push_str("<br/>");
        }
        escape(line, text);
    }
    text.push_str("</td>");
}
