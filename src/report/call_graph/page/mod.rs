//! Call graphs as one page of HTML: four coordinated hyperbolic trees and a flame graph (2002 §5).
//!
//! The interface definition tree (IDT), the dynamic system call graph (DSCG), the summary graph (CCSG) and, where there is a change, the graph of
//! differences (CCDG). The page needs nothing but itself. It holds columns of numbers; the script lays out and draws what is in sight alone, so that
//! a picture costs the same whatever the size of the trees.

mod dscg;
mod idt;
mod names;
mod order;
mod summary;

pub use dscg::MOST_CALLS;

use serde::Serialize;

use crate::callgraph::change::Impact;
use crate::callgraph::{Graph, Node, NodeKind, Profile};
use crate::report::call_graph::{heading, sum, whole};
use crate::report::html::table::{Cell, Table};
use crate::report::html::{head, units};
use crate::report::markup::{Markup, shortened};

use dscg::Dscg;
use idt::Idt;
use names::{Names, plain};
use summary::{Nodes, Summary};

/// What a page shows.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// What it is about, such as the name of a file of records.
    pub title: &'a str,
    /// The files that the records were read from.
    pub inputs: &'a [String],
    /// What records come to. With its single calls, at most [`MOST_CALLS`], the DSCG shows each; else it shows paths.
    pub profile: &'a Profile,
    /// The summary of the profile.
    pub graph: &'a Graph,
    /// What a change comes to, where there is one.
    pub impact: Option<&'a Impact>,
}

const STYLE: &str = concat!(include_str!("../../html/style.css"), include_str!("trees.css"));

const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("tree.js"),
    include_str!("hyperbolic.js"),
    include_str!("models.js"),
    include_str!("disk.js"),
    include_str!("flame.js"),
    include_str!("details.js"),
    include_str!("crossings.js"),
    include_str!("page.js"),
);

/// All that the script reads.
#[derive(Serialize)]
struct Data {
    wall: bool,
    groups: Vec<String>,
    nodes: Nodes,
    idt: Idt,
    dscg: Dscg,
    ccsg: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    ccdg: Option<Summary>,
    names: Vec<String>,
}

/// The page as an HTML document.
pub fn html(page: &Page<'_>) -> String {
    let mut html = Markup::new();
    html.trusted("<!DOCTYPE html>\n");
    html.open("html", &[("lang", "en")]);
    head(page.title, STYLE, &mut html);
    html.open("body", &[("class", "trees")]);
    html.element("a", &[("class", "skip"), ("href", "#content")], "Skip to the content");
    top(page, &mut html);
    html.open("main", &[("id", "content"), ("tabindex", "-1")]);
    html.open("div", &[("class", "board"), ("id", "board")]);
    for tree in trees(page.impact.is_some()) {
        panel(tree, &mut html);
    }
    html.close();
    details(&mut html);
    html.close();
    linking(&mut html);
    below(page, &mut html);
    html.open("script", &[("type", "application/json"), ("id", "data")]).trusted(&data(page)).close();
    html.open("script", &[]).trusted(SCRIPT).close();
    html.close().close();
    html.trusted("\n");
    html.finish()
}

/// What the script reads, in such a form that no name ends the element around it.
fn data(page: &Page<'_>) -> String {
    let mut names = Names::new();
    let data = Data {
        wall: page.profile.wall,
        groups: page.graph.groups.iter().map(|group| plain(group)).collect(),
        nodes: Nodes::of(page.graph, &mut names),
        idt: Idt::of(page.profile, page.graph, &mut names),
        dscg: Dscg::of(page.profile, page.graph, &mut names),
        ccsg: Summary::ccsg(page.graph),
        ccdg: page.impact.map(Summary::ccdg),
        names: names.into_texts(),
    };
    serde_json::to_string(&data).expect("columns of numbers and names have a form in JSON").replace('<', "\\u003c")
}

/// A tree of the page: its key, its short name, its full name, and what a picture of it is called.
type Panel = (&'static str, &'static str, &'static str);

fn trees(change: bool) -> Vec<Panel> {
    let mut trees = vec![
        ("idt", "IDT", "interface definition tree"),
        ("dscg", "DSCG", "dynamic system call graph"),
        ("ccsg", "CCSG", "CPU consumption summarization graph"),
    ];
    trees.extend(change.then_some(("ccdg", "CCDG", "CPU consumption delta graph")));
    trees.push(("flame", "Flame graph", "paths of calls by inclusive time"));
    trees
}

fn top(page: &Page<'_>, html: &mut Markup) {
    html.open("header", &[]);
    html.open("h1", &[]).name(page.title).close();
    let words = heading(page.profile, page.graph);
    // Behind an empty line stands a table in columns.
    let (lead, table) = words.trim_end().split_once("\n\n").unwrap_or((words.trim_end(), ""));
    html.open("p", &[("class", "lead")]).text(lead).close();
    if !table.is_empty() {
        html.element("pre", &[], table);
    }
    html.open("div", &[("class", "tools"), ("hidden", ""), ("id", "tools")]);
    html.open("label", &[]).text("Find a function ");
    html.void("input", &[("type", "search"), ("id", "search"), ("autocomplete", "off"), ("spellcheck", "false")]);
    html.close();
    html.open("output", &[("id", "found"), ("for", "search")]).close();
    html.open("ul", &[("id", "legend"), ("class", "legend"), ("aria-label", "Processor groups")]).close();
    html.close();
    html.open("noscript", &[]);
    html.element("p", &[("class", "say careful")], "The trees need scripts. The table below does not.");
    html.close().close();
}

fn panel((key, short, long): Panel, html: &mut Markup) {
    let (section, heading) = (format!("panel-{key}"), format!("heading-{key}"));
    html.open("section", &[("class", "panel"), ("id", &section), ("aria-labelledby", &heading), ("data-tree", key)]);
    html.open("div", &[("class", "bar-of-panel")]);
    html.open("h2", &[("id", &heading)]).text(short).open("small", &[]).text(long).close().close();
    html.open("span", &[("class", "buttons")]);
    html.element("button", &[("type", "button"), ("data-do", "root")], "Root");
    html.element("button", &[("type", "button"), ("data-do", "enlarge"), ("aria-pressed", "false")], "Enlarge");
    html.close().close();
    let label = format!("{short}: arrow keys move along the tree, Enter brings a node to the centre");
    html.open("div", &[("class", "stage")]);
    html.open("canvas", &[("tabindex", "0"), ("role", "application"), ("aria-label", &label)]).close();
    html.open("div", &[("class", "tip"), ("hidden", "")]).close();
    html.close().close();
}

fn details(html: &mut Markup) {
    html.open("section", &[("class", "details"), ("id", "details"), ("aria-labelledby", "heading-details")]);
    html.element("h2", &[("id", "heading-details")], "Selection");
    html.open("div", &[("id", "selection"), ("aria-live", "polite")]);
    html.element("p", &[("class", "quiet")], "Nothing is selected.");
    html.close();
    html.open("div", &[("id", "critical")]).close();
    html.open("details", &[("class", "help"), ("id", "help")]).element("summary", &[], "Mouse and keys");
    html.open("ul", &[]);
    for words in [
        "Drag a tree to move its focus. Click a node to select it and to bring it to the centre.",
        "Right-click a node, or press M, for the ways to the other trees. Keys 1 to 4 take them at once.",
        "Arrow keys: left to the parent, right to the first child, up and down among siblings. Home: the root.",
        "A slash goes to the search; Enter there goes to the next match in each tree.",
        "The size of a node and the width of its link grow with its inclusive time. A thick rim says that more lies beyond.",
    ] {
        html.element("li", &[], words);
    }
    html.close().close().close();
}

/// Where many nodes of another tree answer to one, they are chosen from here.
fn linking(html: &mut Markup) {
    html.open("dialog", &[("id", "linking"), ("aria-labelledby", "heading-linking")]);
    html.open("div", &[("class", "bar-of-panel")]);
    html.element("h2", &[("id", "heading-linking")], "Linking tree");
    html.open("span", &[("class", "buttons")]);
    html.element("button", &[("type", "button"), ("data-do", "close")], "Close");
    html.close().close();
    html.element("p", &[("id", "linking-words"), ("class", "quiet")], "");
    html.open("div", &[("class", "stage")]);
    let label = "Linking tree: processor, process, thread; Enter on a leaf goes there";
    html.open("canvas", &[("tabindex", "0"), ("role", "application"), ("aria-label", label)]).close();
    html.open("div", &[("class", "tip"), ("hidden", "")]).close();
    html.close();
    html.open("div", &[("id", "linking-list"), ("class", "choices"), ("aria-live", "polite")]).close();
    html.close();
}

/// What reads without scripts: functions by their time, damage, and where it all comes from.
fn below(page: &Page<'_>, html: &mut Markup) {
    html.open("footer", &[]);
    html.open("details", &[]).element("summary", &[], "Functions as a table");
    functions(page.graph, html);
    html.close();
    damage(page.profile, html);
    html.open("p", &[]).text(concat!("Made by dyelog ", env!("CARGO_PKG_VERSION"), " from "));
    for (place, input) in page.inputs.iter().take(20).enumerate() {
        html.text(if place > 0 { ", " } else { "" }).open("code", &[]).name(input).close();
    }
    if page.inputs.len() > 20 {
        html.text(&format!(" and {} more", page.inputs.len() - 20));
    }
    html.text(". This page is complete in itself and fetches nothing.").close().close();
}

fn functions(graph: &Graph, html: &mut Markup) {
    let headings = &["Function", ">Calls", ">Self", ">Self, share", ">Inclusive", ">Mean latency"];
    let mut table = Table::new("Functions by the time they spend themselves", headings).in_order("the first");
    let mut nodes: Vec<&Node> = graph.nodes.iter().filter(|node| node.kind != NodeKind::Main).collect();
    nodes.sort_by(|one, other| sum(&other.own).cmp(&sum(&one.own)).then_with(|| one.label().cmp(&other.label())));
    let time = |nanoseconds: f64| Cell::Quantity(units::time(nanoseconds / 1e9), nanoseconds / 1e9);
    for node in nodes {
        table.row(|| {
            let (own, latency) = (sum(&node.own) as f64, &node.statistics.latency);
            vec![
                Cell::Name(node.label()),
                Cell::Count(node.invocations),
                time(own),
                Cell::Text(units::percent(own / whole(graph))),
                time(sum(&node.inclusive_once) as f64),
                if latency.count() > 0 { time(latency.mean()) } else { Cell::Blank },
            ]
        });
    }
    table.write(html);
}

fn damage(profile: &Profile, html: &mut Markup) {
    let mut table = Table::new("Damage of the records", &["What", ">Times", "First"]);
    for damage in &profile.abnormal {
        let first = damage.first.as_ref().map_or_else(String::new, |first| {
            let file = profile.reading.files.get(first.file).map_or("", |file| file);
            format!("{}:{}, event {} of chain {}", shortened(file), first.line, first.event, first.chain)
        });
        table.row(|| vec![Cell::from(damage.kind.says()), Cell::Count(damage.count), Cell::Name(first)]);
    }
    table.write(html);
}
