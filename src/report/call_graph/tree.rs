//! Paths of calls as an indented tree.

use crate::callgraph::{ContextTree, Key, Profile};
use crate::diagnostic::quantity::number;
use crate::report::call_graph::{Shown, percent};

/// Deeper paths are summed up in a line: nobody reads on there, and recursion would fill the page.
const DEEPEST: usize = 24;

/// What is still to be written.
enum TreeStep {
    /// A path, at its depth.
    Path(usize, usize),
    /// So many paths at a depth that are left out, and their time with all beneath, in nanoseconds.
    Others(usize, u64, i128),
}

/// Paths from the root with their share of the whole, the greatest first. A line stands in the place of what is left out.
pub fn text(profile: &Profile, shown: Shown) -> String {
    let tree = Tree::of(&profile.contexts);
    let total = tree.inclusive[0].max(1) as f64;
    let mut text = String::from("SHARE (%)  INCLUSIVE (ms)        CALLS  PATH\n");
    let (mut lines, mut told) = (0, 0u64);
    let mut open = vec![TreeStep::Path(0, 0)];
    while let Some(step) = open.pop() {
        let (node, depth) = match step {
            TreeStep::Path(node, depth) => (node, depth),
            TreeStep::Others(depth, paths, time) => {
                told += paths;
                let noun = if paths == 1 { "path" } else { "paths" };
                let indent = "  ".repeat(depth);
                text.push_str(&row(&percent(time, total), time, "", &format!("{indent}… {paths} more {noun}")));
                continue;
            }
        };
        if lines == shown.lines {
            let left = tree.inclusive.len() as u64 - told;
            text.push_str(&format!("… and {left} more of {} paths, after {lines} lines\n", tree.inclusive.len()));
            break;
        }
        (lines, told) = (lines + 1, told + 1);
        let words = format!("{}{}", "  ".repeat(depth), name(profile, node));
        let calls = profile.contexts.count(node).to_string();
        text.push_str(&row(&percent(tree.inclusive[node], total), tree.inclusive[node], &calls, &words));
        let children = tree.children(node);
        let enough = |child: &usize| tree.inclusive[*child] as f64 >= shown.least * total;
        let kept = if depth >= DEEPEST { 0 } else { children.iter().take_while(|child| enough(child)).count() };
        let (kept, others) = children.split_at(kept);
        if !others.is_empty() {
            let paths = others.iter().map(|child| tree.paths[*child]).sum();
            open.push(TreeStep::Others(depth + 1, paths, others.iter().map(|child| tree.inclusive[*child]).sum()));
        }
        open.extend(kept.iter().rev().map(|child| TreeStep::Path(*child, depth + 1)));
    }
    text
}

fn row(share: &str, time: i128, calls: &str, words: &str) -> String {
    format!("{share:>9}  {:>14}  {calls:>11}  {words}\n", number(time as f64 / 1e6))
}

/// What runs at the end of a path, and where, if there is more than one processor group.
fn name(profile: &Profile, node: usize) -> String {
    let key = profile.contexts.key(node);
    let place = profile.contexts.group(node).filter(|_| profile.groups.len() > 1 && key != Key::MAIN);
    let on = place.map_or_else(String::new, |group| format!("  on {}", profile.groups[group]));
    format!("{}{on}", profile.label(key, true))
}

/// Sums over all that lies beneath each path, the path included.
struct Tree {
    /// Nanoseconds.
    inclusive: Vec<i128>,
    paths: Vec<u64>,
    children: Vec<Vec<u32>>,
}

impl Tree {
    fn of(contexts: &ContextTree) -> Self {
        let mut tree = Self {
            inclusive: (0..contexts.len()).map(|node| i128::from(contexts.time(node))).collect(),
            paths: vec![1; contexts.len()],
            children: vec![Vec::new(); contexts.len()],
        };
        for node in (1..contexts.len()).rev() {
            if let Some(parent) = contexts.parent(node) {
                tree.inclusive[parent] += tree.inclusive[node];
                tree.paths[parent] += tree.paths[node];
                tree.children[parent].push(node as u32);
            }
        }
        tree
    }

    /// The paths that are one step longer, those with the greatest time first.
    fn children(&self, node: usize) -> Vec<usize> {
        let mut children: Vec<usize> = self.children[node].iter().map(|child| *child as usize).collect();
        children.sort_by_key(|child| (std::cmp::Reverse(self.inclusive[*child]), *child));
        children
    }
}
