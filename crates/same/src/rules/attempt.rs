//! Templates tried one by one, where a message is studied.

use std::sync::Arc;

use crate::explain::{Bound, Firing, Is, Stop, Try, Why};
use crate::forest::Forest;
use crate::rules::Rules;
use crate::rules::scope::{Path, Sort};
use crate::rules::steps::{Operand, REGISTERS, Register, Registers, Step, Steps, Trigger};
use dyelog_trace::TaskId;

/// A template for explanations.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Described<'r> {
    /// Its name.
    pub name: &'r str,
    /// Its place in the order of trial, where the author gave one.
    pub order: Option<i64>,
    /// Its file.
    pub file: &'r str,
    /// The line of its name there.
    pub line: usize,
    /// The event that it is asked at, as it is written.
    pub event: &'r str,
    /// Whether it is asked at messages.
    pub is_at_message: bool,
    /// Whether it records interactions.
    pub records: bool,
    /// What it asserts, records and retires: the keyword, and what follows it.
    pub done: &'r [(&'static str, String)],
}

impl Rules {
    /// A template by its number.
    pub fn described(&self, number: u16) -> Option<Described<'_>> {
        let template = self.templates.get(usize::from(number))?;
        let text = &template.text;
        Some(Described {
            name: &template.name,
            order: (template.order != i64::MAX).then_some(template.order),
            file: &text.file,
            line: text.line,
            event: &text.event,
            is_at_message: template.trigger == Trigger::Message,
            records: !template.records.is_empty(),
            done: &text.done,
        })
    }

    /// Tries the templates for a message, where one is studied.
    pub(crate) fn study_message(&self, forest: &mut Forest, from: u32, to: TaskId, name: &str) {
        self.study(forest, Trigger::Message, [u64::from(from), u64::from(to.0)], name);
    }

    /// Tries the templates that an event could be for, where a message is studied.
    pub(super) fn study(&self, forest: &mut Forest, trigger: Trigger, about: [u64; 2], name: &str) {
        let Some(mut watch) = forest.watch.take() else { return };
        watch.pending.clear();
        watch.had_arc = watch.has_arc(forest);
        let is_event = watch.is_now && trigger == Trigger::Message;
        let all =
            self.by_event[trigger as usize].iter().filter(|number| watch.only.is_none_or(|only| only == **number));
        let all: Vec<u16> = if is_event || watch.is_begun(forest) { all.copied().collect() } else { Vec::new() };
        for number in all {
            let template = &self.templates[usize::from(number)];
            let (passed, registers, stop) = self.attempt(template, forest, about, name);
            let role = if is_event { None } else { role(template, passed, &registers, forest, watch.node.0) };
            if is_event || role.is_some() {
                watch.keep(Try {
                    template: number,
                    role,
                    passed,
                    steps: template.matching.len(),
                    stop,
                    bound: bound(template, passed, &registers, forest, None),
                    at: watch.current,
                    committed: false,
                    taken_by: None,
                });
            }
        }
        forest.watch = Some(watch);
    }

    /// Notes that a template is carried out, before it changes anything.
    pub(super) fn fires(&self, forest: &mut Forest, number: u16, registers: &Registers) {
        let Some(mut watch) = forest.watch.take() else { return };
        let template = &self.templates[usize::from(number)];
        let bound = bound(template, template.matching.len(), registers, forest, template.asserts);
        let given = &template.text.variables[..template.text.given.min(template.text.variables.len())];
        let event = given.iter().filter_map(|(_, sort, register)| is(*sort, registers[usize::from(*register)], forest));
        watch.firing =
            Some(Firing { template: number, event: event.collect(), bound, at: watch.current, explains: false });
        forest.watch = Some(watch);
    }

    /// How far a template gets.
    fn attempt(
        &self,
        template: &Steps,
        forest: &Forest,
        about: [u64; 2],
        name: &str,
    ) -> (usize, Registers, Option<Stop>) {
        let mut registers = [0; REGISTERS];
        [registers[0], registers[1]] = about;
        let steps = &template.matching;
        let Some(passed) = self.fails(steps, forest, &mut registers, name) else {
            return (steps.len(), registers, None);
        };
        let text = template.text.steps.get(passed).cloned().unwrap_or_default();
        let stop = Stop { text, why: why(template, &steps[passed], &registers, forest) };
        (passed, registers, Some(stop))
    }
}

/// Notes what that did to the message that is studied.
pub(super) fn has_fired(forest: &mut Forest) {
    let Some(mut watch) = forest.watch.take() else { return };
    let explains = watch.had_arc && !watch.has_arc(forest);
    if let Some(firing) = watch.firing.take() {
        for place in std::mem::take(&mut watch.pending) {
            let one = &mut watch.tries[place];
            if one.template == firing.template {
                one.committed = explains || one.role.is_none();
            } else if one.stop.is_none() {
                one.taken_by = Some(firing.template);
            }
        }
        if explains || watch.is_now {
            watch.firings.push(Firing { explains, ..firing });
        }
    }
    forest.watch = Some(watch);
}

/// Why a step fails, by the registers before it.
fn why(template: &Steps, step: &Step, registers: &Registers, forest: &Forest) -> Why {
    let value = |register: Register| {
        let value = registers[usize::from(register)];
        is(sort(template, register), value, forest).unwrap_or(Is::Number(value))
    };
    match *step {
        Step::LookUp { function, of, task, to, .. } => {
            let task = TaskId(registers[usize::from(task)] as u32);
            let of_node = registers[usize::from(of)] as u32;
            match super::run::look_up(forest, function, of_node, task) {
                None => Why::Nothing { function: function.name(), of: value(of) },
                Some(found) => {
                    let found = is(sort(template, to), found, forest).unwrap_or(Is::Number(found));
                    Why::Other { found, wanted: value(to) }
                }
            }
        }
        Step::Path { from, to, .. } => Why::NoPath { from: value(from), to: value(to) },
        Step::Arc { parent, child, holds } => {
            Why::Arc { parent: parent.map(value), child: child.map(value), is_there: !holds }
        }
        Step::Arrived(occurrence) => Why::InTransit(value(occurrence)),
        Step::Live { occurrence, holds } => Why::Live(value(occurrence), !holds),
        Step::Waiting { occurrence, holds } => Why::Waiting(value(occurrence), !holds),
        Step::Compare { left, right, .. } => {
            let side = |side: Operand| match side {
                Operand::Register(register) => value(register),
                Operand::Number(number) => Is::Number(number),
            };
            Why::Compare(side(left), side(right))
        }
        Step::Name { .. } => Why::Named,
        Step::Walk { left, right, holds, .. } => Why::Relation(value(left), value(right), !holds),
    }
}

/// What a register holds.
fn sort(template: &Steps, register: Register) -> Sort {
    let text = &template.text;
    let known = text.variables.iter().find(|(_, _, own)| *own == register).map(|(_, sort, _)| *sort);
    let is_second = text.paths.iter().any(|path| path.second == register);
    known.unwrap_or(if is_second { Sort::Occurrence } else { Sort::Number })
}

/// A value of that sort; none of a name, which registers do not hold.
fn is(sort: Sort, value: u64, forest: &Forest) -> Option<Is> {
    match sort {
        Sort::Occurrence => Some(node(value as u32, forest)),
        Sort::Task => Some(Is::Task(TaskId(value as u32))),
        Sort::Number => Some(Is::Number(value)),
        Sort::Name => None,
    }
}

fn node(node: u32, forest: &Forest) -> Is {
    if forest.is_occurrence(node) {
        Is::Occurrence(forest.occurrence_of(node))
    } else {
        Is::InTransit(forest.task_of(node))
    }
}

/// Whether a register has its value once so many steps hold.
fn is_known(template: &Steps, passed: usize, register: Register) -> bool {
    let given = usize::from(register) < template.text.given;
    given
        || template.matching[..passed].iter().any(|step| match *step {
            Step::LookUp { to, bind: true, .. } => to == register,
            Step::Path { count, second, .. } => count == register || second == register,
            _ => false,
        })
}

/// The variables that have values once so many steps hold, with the occurrence that was begun if it was.
fn bound(
    template: &Steps,
    passed: usize,
    registers: &Registers,
    forest: &Forest,
    begun: Option<Register>,
) -> Vec<Bound> {
    let known = template.text.variables.iter().filter(|(name, _, register)| {
        **name != *"_" && (begun == Some(*register) || is_known(template, passed, *register))
    });
    let values = known.filter_map(|(name, sort, register)| {
        Some((Arc::clone(name), vec![is(*sort, registers[usize::from(*register)], forest)?]))
    });
    let paths = template.text.paths.iter().filter(|path| is_known(template, passed, path.second));
    let paths = paths.map(|path| {
        let nodes = nodes(path, registers, forest);
        (Arc::clone(&path.name), nodes.into_iter().map(|one| node(one, forest)).collect())
    });
    values.chain(paths).collect()
}

/// The nodes of a path from its beginning.
fn nodes(path: &Path, registers: &Registers, forest: &Forest) -> Vec<u32> {
    let [from, to] = [path.from, path.to].map(|end| registers[usize::from(end)] as u32);
    let mut nodes = vec![to];
    while nodes.last().is_some_and(|last| *last != from) {
        let parent = forest.parent_of(nodes[nodes.len() - 1]);
        if parent == crate::forest::NONE {
            break;
        }
        nodes.push(parent);
    }
    nodes.reverse();
    nodes
}

/// The variable that stands for a node, or its place on a path.
fn role(template: &Steps, passed: usize, registers: &Registers, forest: &Forest, node: u32) -> Option<String> {
    let is_node = |register: Register| registers[usize::from(register)] as u32 == node;
    let mut variables = template
        .text
        .variables
        .iter()
        .filter(|(_, sort, register)| *sort == Sort::Occurrence && is_known(template, passed, *register));
    if let Some((name, ..)) = variables.find(|(_, _, register)| is_node(*register)) {
        return Some(name.to_string());
    }
    let mut paths = template.text.paths.iter().filter(|path| is_known(template, passed, path.second));
    paths.find_map(|path| {
        let place = nodes(path, registers, forest).iter().position(|one| *one == node)?;
        Some(format!("{}[{}]", path.name, place + 1))
    })
}
