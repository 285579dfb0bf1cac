//! Templates that ask by `!starts` for a template that asks for them in turn: no order could decide them.

use std::sync::Arc;

use crate::codes;
use crate::pattern::Findings;
use dyelog_datalog::ast::{Condition, Ident, Program, Template};

/// Tells of templates that lead back to themselves, each circle once.
pub fn circles(program: &Program, findings: &mut Findings<'_>) {
    let asked: Vec<Vec<(usize, &Ident)>> = program.templates.iter().map(|template| asks(program, template)).collect();
    let mut told = vec![false; asked.len()];
    let mut circular = false;
    for start in 0..asked.len() {
        if told[start] {
            continue;
        }
        let Some(way) = way_back(start, &asked) else { continue };
        circular = true;
        let names: Vec<String> = way.iter().map(|(at, _)| format!("`{}`", program.templates[*at].name.value)).collect();
        let name = Arc::clone(&program.templates[start].name.value);
        let finding = findings.error(codes::STARTS, way[0].1.span, format!("`{name}` asks whether it starts itself"));
        if names.len() > 1 {
            finding.notes.push(format!("by way of {}", names[..names.len() - 1].join(", ")));
        }
        finding.hints.push("let one of them say what it needs by nodes and relations".to_owned());
        for (at, _) in way {
            told[at] = true;
        }
    }
    if !circular {
        too_deep(program, &asked, findings);
    }
}

/// How many templates may ask for each other in turn.
const DEEPEST: usize = 64;

/// Tells of templates that ask by way of too many others. No template asks for itself.
fn too_deep(program: &Program, asked: &[Vec<(usize, &Ident)>], findings: &mut Findings<'_>) {
    let mut askers: Vec<Vec<usize>> = vec![Vec::new(); asked.len()];
    for (asker, of) in asked.iter().enumerate() {
        for (place, _) in of {
            askers[*place].push(asker);
        }
    }
    // From templates that ask for none upwards.
    let mut left: Vec<usize> = asked.iter().map(Vec::len).collect();
    let mut ready: Vec<usize> = (0..asked.len()).filter(|template| left[*template] == 0).collect();
    let mut depth = vec![0; asked.len()];
    while let Some(template) = ready.pop() {
        for asker in &askers[template] {
            depth[*asker] = depth[*asker].max(depth[template] + 1);
            left[*asker] -= 1;
            if left[*asker] == 0 {
                ready.push(*asker);
            }
        }
    }
    for (template, place) in asked.iter().enumerate().filter(|(template, _)| depth[*template] == DEEPEST + 1) {
        let Some((_, place)) = place.iter().find(|(other, _)| depth[*other] == DEEPEST) else { continue };
        let name = &program.templates[template].name.value;
        let finding = findings.error(codes::STARTS, place.span, format!("`{name}` asks by way of too many templates"));
        finding.notes.push(format!("at most {DEEPEST} templates may ask for each other in turn"));
        finding.hints.push("let one of them say what it needs by nodes and relations".to_owned());
    }
}

/// The templates that a template asks for, and where.
fn asks<'p>(program: &'p Program, template: &'p Template) -> Vec<(usize, &'p Ident)> {
    let mut open: Vec<_> = template.conditions.iter().collect();
    let mut found = Vec::new();
    while let Some(condition) = open.pop() {
        match &condition.value {
            Condition::NotStarts { template, .. } => {
                let all = program.templates.iter().enumerate().filter(|(_, other)| other.name.value == template.value);
                found.extend(all.map(|(place, _)| (place, template)));
            }
            Condition::Rounds { body, .. } => open.extend(body),
            _ => {}
        }
    }
    found
}

/// The shortest way from a template back to itself: the templates that are asked for on it, itself last.
fn way_back<'p>(start: usize, asked: &[Vec<(usize, &'p Ident)>]) -> Option<Vec<(usize, &'p Ident)>> {
    let mut before: Vec<Option<(usize, &'p Ident)>> = vec![None; asked.len()];
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for (next, place) in &asked[at] {
            if before[*next].is_some() {
                continue;
            }
            before[*next] = Some((at, place));
            if *next == start {
                let mut way = Vec::new();
                let mut here = start;
                while let Some((from, place)) = before[here] {
                    way.push((here, place));
                    here = from;
                    if here == start {
                        break;
                    }
                }
                way.reverse();
                return Some(way);
            }
            queue.push_back(*next);
        }
    }
    None
}
