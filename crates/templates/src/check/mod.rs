//! Lints of templates: what can be proved wrong or doubtful from the text alone.

mod body;
mod contradiction;
mod delays;
mod starts;
mod subsumption;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::subsumption::{Shape, TRIES, subsumes};
use crate::codes;
use crate::pattern::{At, Findings, Node, Pattern, Solved, condition_terms};
use crate::plan::KindTag;
use crate::rules::is_shipped;
use dyelog_datalog::ast::{
    Argument, Comparison, Condition, KindPattern, NodePattern, Program, Span, Spanned, Statement, Template, Term,
};
use dyelog_datalog::check::Bodies;
use dyelog_diagnostic::Label;

/// Lints within one template.
pub fn template(template: &Template, pattern: &Pattern, bodies: &Bodies<'_>, findings: &mut Findings<'_>) {
    if template.longest && pattern.rounds.is_empty() {
        let message = "`longest` says nothing here".to_owned();
        let finding = findings.warning(dyelog_datalog::codes::IN_VAIN, template.name.span, message);
        finding.notes.push(format!("template `{}` has no `repeat`", template.name.value));
        finding.hints.push("remove it, or write what is meant".to_owned());
    }
    used_once(template, findings);
    abandoned_threads(template, pattern, findings);
    same_task(template, pattern, findings);
    unordered(template, pattern, findings);
    delays::waits(template, pattern, findings);
    begins_elsewhere(template, pattern, findings);
    contradiction::contradictions(template, pattern, bodies, findings);
}

/// A glue node that others precede in the text: readers take the first one for it.
fn begins_elsewhere(template: &Template, pattern: &Pattern, findings: &mut Findings<'_>) {
    let glue = &pattern.nodes[pattern.glue];
    let Some(first) = patterns(template).next().filter(|first| first.name.value != glue.name) else { return };
    let first = (Arc::clone(&first.name.value), findings.place(first.name.span));
    let message = format!("matching begins at `{}`, which is not the first node of the text", glue.name);
    let finding = findings.warning(codes::GLUE_LATER, glue.span, message);
    finding.labels.push(Label { place: first.1, text: "the first one".to_owned() });
    finding.notes.push(format!(
        "the glue node is `e1`, else the first node outside `repeat`: other templates may take `{}` before the walk comes to `{}`",
        first.0, glue.name
    ));
    finding.hints.push(
        "write the node at which the interaction begins first, before any `repeat`, and call no other one `e1`"
            .to_owned(),
    );
}

/// Variables of patterns that stand nowhere else: a slip, or a wildcard in disguise. The parts of a label that a node
/// must write down (thread, counters, task) may be named for the reader, so only variables that *link* are looked at:
/// the thread of a fork or join, and threads of nodes that begin one.
fn used_once(template: &Template, findings: &mut Findings<'_>) {
    let mut uses: BTreeMap<Arc<str>, (usize, Span)> = BTreeMap::new();
    let mut count = |term: &Spanned<Term>| {
        for part in flat(term) {
            if let Term::Variable(variable, _) = &part.value {
                uses.entry(Arc::clone(&variable.name)).or_insert((0, part.span)).0 += 1;
            }
        }
    };
    for node in patterns(template) {
        for term in node.terms() {
            count(term);
        }
    }
    for condition in &template.conditions {
        condition_terms(&condition.value).into_iter().for_each(&mut count);
    }
    statement_terms(&template.statements, &mut count);
    for node in patterns(template) {
        let linking = match &node.kind.value {
            KindPattern::Fork(target) | KindPattern::Join(target) => Some(target),
            KindPattern::Begin => Some(&node.thread),
            _ => None,
        };
        if let Some(Spanned { value: Term::Variable(variable, _), span }) = linking
            && variable.index.is_none()
            && uses.get(&variable.name).is_some_and(|(times, _)| *times == 1)
            && patterns(template).count() > 1
        {
            findings
                .warning(
                    codes::USED_ONCE,
                    *span,
                    format!("`{}` is used once: it ties this node to nothing", variable.name),
                )
                .hints
                .push("use the same variable where the same thread is meant, or `_`".to_owned());
        }
    }
}

/// Threads that a match brings in, other than the glue node's, and that nothing goes on with: their later nodes would
/// never be processed.
fn abandoned_threads(template: &Template, pattern: &Pattern, findings: &mut Findings<'_>) {
    let glue = &pattern.nodes[pattern.glue].thread;
    let mut triggered: Vec<Term> = Vec::new();
    trigger_threads(&template.statements, &mut triggered);
    let all = || pattern.all();
    let mut reported: Vec<&Solved> = Vec::new();
    for node in all() {
        let begins_thread = node.kind == KindTag::Begin;
        let thread = &node.thread;
        if !begins_thread || thread == glue || reported.contains(&thread) {
            continue;
        }
        let ends = all().any(|other| other.kind == KindTag::End && other.thread == *thread);
        let goes_on = triggered.iter().any(|term| names_thread(term, thread));
        if !ends && !goes_on {
            reported.push(thread);
            findings
                .warning(
                    codes::ABANDONED_THREAD,
                    node.span,
                    format!("nothing goes on with the thread that node `{}` begins", node.name),
                )
                .hints
                .push("add `addTrigger([…, its thread, 2 | …], …)`, or match its `Ed`".to_owned());
        }
    }
}

fn names_thread(term: &Term, thread: &Solved) -> bool {
    let (Term::Variable(variable, 0), Solved::Variable((name, at), 0)) = (term, thread) else { return false };
    if variable.name != *name {
        return false;
    }
    let offset = variable.index.as_ref().map(|index| (index.variable.is_some(), index.offset));
    match at {
        At::Scalar => offset.is_none(),
        At::Here | At::Last => matches!(offset, Some((true, 0))),
        At::Next | At::After => matches!(offset, Some((true, 1))),
        At::First => offset == Some((false, 1)),
        At::Across(_, own) => offset == Some((true, *own)),
        At::Further(_) | At::Nth(_) | At::FromLast(_) => false,
    }
}

/// A new entry's task that may be the requester's: nothing says that the tasks differ, so that a task's own sequence of
/// events matches as a call to itself.
fn same_task(template: &Template, pattern: &Pattern, findings: &mut Findings<'_>) {
    let glue = &pattern.nodes[pattern.glue];
    let mut made: Vec<(&Spanned<Term>, &str)> = Vec::new();
    new_entries(&template.statements, &mut made);
    for (task, interaction) in made {
        let Term::Variable(variable, 0) = &task.value else { continue };
        let Solved::Variable((glue_task, At::Scalar), 0) = &glue.task else { continue };
        // An asynchronous message to oneself is one; waiting for oneself is not.
        if interaction != "R" || variable.index.is_some() || variable.name == *glue_task {
            continue;
        }
        let differ = template.conditions.iter().any(|condition| match &condition.value {
            Condition::Compare(left, Comparison::NotEqual, right) => {
                let is = |term: &Spanned<Term>, name: &Arc<str>| {
                    matches!(&term.value, Term::Variable(other, 0) if other.name == *name && other.index.is_none())
                };
                (is(left, &variable.name) && is(right, glue_task)) || (is(right, &variable.name) && is(left, glue_task))
            }
            _ => false,
        });
        if !differ {
            findings
                .warning(
                    codes::SAME_TASK,
                    template.name.span,
                    format!("`{}` and `{glue_task}` may be the same task", variable.name),
                )
                .hints
                .push(format!("add `where {{ {glue_task} != {} }}`", variable.name));
        }
    }
}

/// Nodes of one task whose counters nothing relates: the reply may be the request itself, or come before it.
fn unordered(template: &Template, pattern: &Pattern, findings: &mut Findings<'_>) {
    let compared: Vec<Vec<Arc<str>>> = template
        .conditions
        .iter()
        .map(|condition| {
            let terms = condition_terms(&condition.value).into_iter();
            let names = terms.filter_map(|term| match &term.value {
                Term::Variable(variable, _) => Some(Arc::clone(&variable.name)),
                _ => None,
            });
            names.collect()
        })
        .collect();
    let related = |left: &Node, right: &Node| {
        let (Solved::Variable((from, _), _), Solved::Variable((to, _), _)) = (&left.counter, &right.counter) else {
            return true;
        };
        // Through others, as in `w < y, y < z`.
        let mut reached = vec![from];
        let mut at = 0;
        while let Some(&name) = reached.get(at) {
            at += 1;
            for names in compared.iter().filter(|names| names.contains(name)) {
                let new: Vec<&Arc<str>> = names.iter().filter(|other| !reached.contains(other)).collect();
                reached.extend(new);
            }
        }
        reached.contains(&to)
    };
    for (place, right) in pattern.nodes.iter().enumerate() {
        let earlier = pattern.nodes[..place].iter().find(|left| {
            left.task == right.task
                && left.task != Solved::Wildcard
                && !chained(pattern, left, right)
                && !related(left, right)
        });
        if let Some(left) = earlier {
            findings
                .warning(
                    codes::UNORDERED,
                    right.span,
                    format!("nothing says that `{}` comes after `{}` in their task", right.name, left.name),
                )
                .hints
                .push("compare their task node counters under `where`".to_owned());
        }
    }
}

/// Whether counters of one variable order two nodes, directly or through others.
fn chained(pattern: &Pattern, left: &Node, right: &Node) -> bool {
    let same = |a: &Solved, b: &Solved| matches!((a, b), (Solved::Variable(a, _), Solved::Variable(b, _)) if a == b);
    same(&left.counter, &right.counter)
        || (left.thread == right.thread && same(&left.position, &right.position))
        || pattern.nodes.iter().any(|between| {
            between.task == left.task && same(&between.counter, &left.counter) && same(&between.counter, &right.counter)
        })
}

/// Lints between templates: one order twice, and templates that can never match.
pub fn between_templates(program: &Program, findings: &mut Findings<'_>) {
    starts::circles(program, findings);
    let patterns: Vec<Option<Pattern>> =
        program.templates.iter().map(|template| Pattern::of(template, &mut Findings::new(program))).collect();
    let shapes: Vec<Shape<'_>> = program
        .templates
        .iter()
        .zip(&patterns)
        .filter(|(template, _)| !template.damage.any())
        .filter_map(|(template, pattern)| Some(Shape { template, pattern: pattern.as_ref()? }))
        .collect();
    for (place, &right) in shapes.iter().enumerate() {
        let same_order = |left: &&Shape<'_>| {
            let orders = (&left.template.order, &right.template.order);
            matches!(orders, (Some(left), Some(right)) if left.value == right.value)
                && left.template.name.value != right.template.name.value
                && may_meet(**left, right)
                && !exclude_each_other(**left, right)
        };
        if let Some(left) = shapes[..place].iter().find(same_order)
            && let (Some(left_order), Some(right_order)) = (&left.template.order, &right.template.order)
        {
            let first = findings.place(left_order.span);
            let (left, right) = (&left.template.name.value, &right.template.name.value);
            let message = format!("templates `{left}` and `{right}` have one order");
            let finding = findings.warning(codes::ORDER_AGAIN, right_order.span, message);
            finding.labels.push(Label { place: first, text: "tried before it, by the text".to_owned() });
        }
    }
    hidden(shapes, findings);
}

/// Templates that can never match: each is told of once, with the first one that hides it, in the order in which they are tried.
fn hidden(mut shapes: Vec<Shape<'_>>, findings: &mut Findings<'_>) {
    // That one without an order comes last is reported already.
    shapes.retain(|shape| shape.template.order.is_some());
    shapes.sort_by_key(|shape| shape.template.order.as_ref().map(|order| order.value));
    let mut tries = TRIES;
    for (place, &later) in shapes.iter().enumerate() {
        let hides = |earlier: &&Shape<'_>| may_meet(**earlier, later) && subsumes(**earlier, later, &mut tries);
        if let Some(earlier) = shapes[..place].iter().find(hides) {
            shadowed(earlier.template, later.template, findings);
        }
    }
}

/// Whether two templates may begin at one node.
fn may_meet(left: Shape<'_>, right: Shape<'_>) -> bool {
    let (left, right) = (left.pattern.nodes[left.pattern.glue].kind, right.pattern.nodes[right.pattern.glue].kind);
    left == right || left == KindTag::Any || right == KindTag::Any
}

/// Whether one of two templates is of a thread that a task forks for itself, and the other of one that begins on another task.
fn exclude_each_other(left: Shape<'_>, right: Shape<'_>) -> bool {
    let (left, right) = (forks_for_itself(left), forks_for_itself(right));
    left.is_some() && right.is_some() && left != right
}

/// Whether the thread that a template's glue node forks begins on the same task, where the template says it.
fn forks_for_itself(shape: Shape<'_>) -> Option<bool> {
    let glue = &shape.pattern.nodes[shape.pattern.glue];
    let begin = |node: &&Node| {
        node.kind == KindTag::Begin && node.thread == glue.target && matches!(node.thread, Solved::Variable(..))
    };
    let begin = shape.pattern.nodes.iter().find(begin)?;
    let (Solved::Variable((own, At::Scalar), 0), Solved::Variable((other, At::Scalar), 0)) = (&glue.task, &begin.task)
    else {
        return None;
    };
    let is = |term: &Spanned<Term>, name: &Arc<str>| matches!(&term.value, Term::Variable(variable, 0) if variable.name == *name && variable.index.is_none());
    let apart = |condition: &Condition| {
        matches!(condition, Condition::Compare(left, Comparison::NotEqual, right)
            if is(left, own) && is(right, other) || is(left, other) && is(right, own))
    };
    if own == other {
        return Some(true);
    }
    shape.template.conditions.iter().any(|condition| apart(&condition.value)).then_some(false)
}

fn shadowed(earlier: &Template, later: &Template, findings: &mut Findings<'_>) {
    let at = findings.place(earlier.name.span);
    let (first, second) = (&earlier.name.value, &later.name.value);
    if first == second {
        let message = format!("not all alternatives of `{first}` can match");
        let finding = findings.error(codes::SHADOWED, later.name.span, message);
        finding.notes.push("wherever one of them fits, one that is tried before it does".to_owned());
        finding.hints.push("put the one with more nodes or conditions first".to_owned());
        return;
    }
    let message = format!("`{second}` can never match: wherever it fits, `{first}` does, which is tried before it");
    // The author asked for what a template of their own takes from a shipped one, not for one of their own that is ignored.
    let finding = if is_shipped(findings.program(), later.name.span.file) {
        findings.warning(codes::SHADOWED, later.name.span, message)
    } else {
        findings.error(codes::SHADOWED, later.name.span, message)
    };
    finding.labels.push(Label { place: at, text: "this one".to_owned() });
    finding.hints.push(format!(
        "give `{second}` a lower `order`, or `{first}` a condition that sets them apart; a template that is meant to replace a shipped \
         one has its name"
    ));
}

fn patterns(template: &Template) -> impl Iterator<Item = &NodePattern> {
    template.nodes().into_iter()
}

fn flat(term: &Spanned<Term>) -> Vec<&Spanned<Term>> {
    let mut open = vec![term];
    let mut leaves = Vec::new();
    while let Some(term) = open.pop() {
        match &term.value {
            Term::Arithmetic(left, _, right) => open.extend([&**left, &**right]),
            _ => leaves.push(term),
        }
    }
    leaves
}

pub(super) fn statement_terms(statements: &[Statement], count: &mut dyn FnMut(&Spanned<Term>)) {
    for statement in statements {
        match statement {
            Statement::NewEntry { task, .. } => count(task),
            Statement::Operation { arguments, .. } => {
                for argument in arguments {
                    match &argument.value {
                        Argument::Term(term) => count(&Spanned { value: term.clone(), span: argument.span }),
                        Argument::Node(label) => {
                            for term in [&label.scenario, &label.thread, &label.position, &label.task, &label.counter] {
                                count(term);
                            }
                        }
                    }
                }
            }
            Statement::For { body, .. } => statement_terms(body, count),
        }
    }
}

fn trigger_threads(statements: &[Statement], threads: &mut Vec<Term>) {
    for statement in statements {
        match statement {
            Statement::Operation { name, arguments, .. } if &*name.value == "addTrigger" => {
                if let Some(Spanned { value: Argument::Node(label), .. }) = arguments.first() {
                    threads.push(label.thread.value.clone());
                }
            }
            Statement::For { body, .. } => trigger_threads(body, threads),
            _ => {}
        }
    }
}

fn new_entries<'t>(statements: &'t [Statement], made: &mut Vec<(&'t Spanned<Term>, &'t str)>) {
    for statement in statements {
        match statement {
            Statement::NewEntry { task, interaction, .. } => made.push((task, &interaction.value)),
            Statement::For { body, .. } => new_entries(body, made),
            Statement::Operation { .. } => {}
        }
    }
}
