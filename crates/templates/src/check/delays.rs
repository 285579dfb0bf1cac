//! Delays that are no delays: the time in which a visit waits for an answer.

use std::sync::Arc;

use crate::check::new_entries;
use crate::codes;
use crate::pattern::{Findings, Node, Pattern, Solved};
use crate::plan::KindTag;
use crate::planner::terms::apart;
use dyelog_datalog::ast::{Argument, Spanned, Statement, Template, Term};

/// `addDelay` of a node that another task, for which the template opens an entry, has led to: the model has that wait already, as the time
/// that the request takes.
pub(super) fn waits(template: &Template, pattern: &Pattern, findings: &mut Findings<'_>) {
    let mut entries = Vec::new();
    new_entries(&template.statements, &mut entries);
    let served = |task: &Solved| {
        let Solved::Variable((name, _), 0) = task else { return false };
        entries.iter().any(|(own, _)| matches!(&own.value, Term::Variable(variable, 0) if variable.name == *name))
    };
    for argument in delayed(&template.statements) {
        let Argument::Term(Term::Variable(variable, 0)) = &argument.value else { continue };
        let Some(node) = pattern.all().find(|node| node.name == variable.name) else { continue };
        let Some(cause) = pattern.all().find(|other| leads_to(other, node)) else { continue };
        if cause.task == node.task || !served(&cause.task) {
            continue;
        }
        let task: Arc<str> = match &cause.task {
            Solved::Variable((name, _), _) | Solved::Symbol(name) => Arc::clone(name),
            Solved::Wildcard | Solved::Integer(_) => continue,
        };
        let message = format!("the time up to `{}` is the wait for task `{task}`", node.name);
        let finding = findings.warning(codes::DELAY_OF_ANSWER, argument.span, message);
        finding.notes.push(format!(
            "`{}` of `{task}` leads to it, and the model has that time already: it is how long the request takes",
            cause.name
        ));
        finding.hints.push("remove it, or name a node of the task up to which nobody works for the visit".to_owned());
    }
}

/// Whether the node comes right after the other one: next in its thread, or the first of the thread that it forks.
fn leads_to(other: &Node, node: &Node) -> bool {
    let next = apart(&other.thread, &node.thread) == Some(0) && apart(&other.position, &node.position) == Some(1);
    let begun =
        other.kind == KindTag::Fork && node.kind == KindTag::Begin && apart(&other.target, &node.thread) == Some(0);
    next || begun
}

/// The nodes that `addDelay` names.
fn delayed(statements: &[Statement]) -> Vec<&Spanned<Argument>> {
    let mut open: Vec<&Statement> = statements.iter().collect();
    let mut found = Vec::new();
    while let Some(statement) = open.pop() {
        match statement {
            Statement::Operation { name, arguments, .. } if &*name.value == "addDelay" => {
                found.extend(arguments.get(1));
            }
            Statement::For { body, .. } => open.extend(body),
            _ => {}
        }
    }
    found
}
