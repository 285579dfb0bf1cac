//! Templates with alternatives and optional nodes, as the plain templates that they stand for.
//!
//! `{ … } or { … }` and `optional { … }` stand for one template for each combination, tried in the order of the text, what is optional first with
//! it and then without. All have the name and the order of the template. What a combination does not match has no meaning in it: conditions
//! and modelling operations that name something of it are left out there.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::codes;
use crate::pattern::{condition_terms, place};
use dyelog_datalog::ast::{
    Argument, Condition, MatchItem, NodePattern, Program, Span, Spanned, Statement, Template, Term, Variable,
};
use dyelog_diagnostic::{Diagnostic, Place, Severity};

/// The most combinations of one template.
pub const MOST: usize = 16;

type Names = BTreeSet<Arc<str>>;

/// The program with each template in all its combinations, and what is wrong with these.
pub fn expand(program: &Program) -> (Program, Vec<Diagnostic>) {
    let mut findings = Vec::new();
    let mut expanded = program.clone();
    expanded.templates.clear();
    for template in &program.templates {
        if template.items.iter().all(|item| !matches!(item, MatchItem::Choice(_))) {
            expanded.templates.push(template.clone());
            continue;
        }
        let Some(ways) = combinations(&template.items) else {
            let message =
                format!("template `{}` has more than {MOST} combinations of alternatives", template.name.value);
            let finding = Diagnostic::error(codes::TOO_MANY_ALTERNATIVES, place(program, template.name.span), message);
            findings.push(finding.with_hint("write several templates"));
            continue;
        };
        let all = names(&template.nodes(), &template.items);
        let variants: Vec<Template> = ways.into_iter().map(|items| variant(template, &all, items)).collect();
        between(program, template, &variants, &mut findings);
        expanded.templates.extend(variants);
    }
    (expanded, findings)
}

/// Each combination of alternatives; `None` where there are too many.
fn combinations(items: &[MatchItem]) -> Option<Vec<Vec<MatchItem>>> {
    let mut all: Vec<Vec<MatchItem>> = vec![Vec::new()];
    for item in items {
        let ways = match item {
            MatchItem::Choice(choice) => {
                let mut ways = Vec::new();
                for way in &choice.ways {
                    ways.extend(combinations(way)?);
                }
                ways.extend(choice.optional.then(Vec::new));
                ways
            }
            plain => vec![vec![plain.clone()]],
        };
        if all.len() * ways.len() > MOST {
            return None;
        }
        all = all.iter().flat_map(|before| ways.iter().map(|way| [&before[..], way].concat())).collect();
    }
    Some(all)
}

/// What nodes and sequences of a pattern name.
fn names(nodes: &[&NodePattern], items: &[MatchItem]) -> Names {
    let mut names = Names::new();
    for node in nodes {
        names.insert(Arc::clone(&node.name.value));
        for term in node.terms() {
            if let Term::Variable(variable, _) = &term.value {
                names.insert(Arc::clone(&variable.name));
            }
        }
    }
    let mut open: Vec<&MatchItem> = items.iter().collect();
    while let Some(item) = open.pop() {
        match item {
            MatchItem::Repeat(repeat) => {
                names.insert(Arc::clone(&repeat.index.value));
                names.insert(Arc::clone(&repeat.count.value));
            }
            MatchItem::Choice(choice) => open.extend(choice.ways.iter().flatten()),
            MatchItem::Node(_) => {}
        }
    }
    names
}

/// The template with these items in place of its own.
fn variant(template: &Template, all: &Names, items: Vec<MatchItem>) -> Template {
    let mut variant = Template { items, conditions: Vec::new(), statements: Vec::new(), ..template.clone() };
    let own = names(&variant.nodes(), &variant.items);
    let mut absent: Names = all.difference(&own).cloned().collect();
    variant.conditions.clone_from(&template.conditions);
    loop {
        let (without, with): (Vec<_>, Vec<_>) =
            variant.conditions.into_iter().partition(|condition| asks(&condition.value, &absent));
        variant.conditions = with;
        if without.is_empty() {
            break;
        }
        // What a condition bound that is left out has no value, unless another one binds it.
        let still = asked(variant.conditions.iter().filter(|condition| binds(&condition.value)));
        let lost = asked(&without).into_iter();
        absent.extend(lost.filter(|name| !own.contains(name) && !still.contains(name)));
    }
    let (mut made, mut missing) = (Names::new(), Names::new());
    entries(&template.statements, &absent, &mut made, &mut missing);
    absent.extend(missing.difference(&made).cloned());
    variant.statements = kept(&template.statements, &absent);
    let tied = |name: &Arc<str>| own.contains(name) || times(&template.conditions, name) == 1;
    let said = |name: &Arc<str>| variant.statements.iter().any(|one| names_any(one, &Names::from([Arc::clone(name)])));
    let mut conditions = variant.conditions.clone();
    for argument in conditions.iter_mut().flat_map(|condition| arguments(&mut condition.value)) {
        // What a condition that is left out tied to others is now any value.
        if let Term::Variable(variable, _) = &argument.value
            && times(&variant.conditions, &variable.name) == 1
            && !tied(&variable.name)
            && !said(&variable.name)
        {
            argument.value = Term::Wildcard;
        }
    }
    variant.conditions = conditions;
    variant
}

/// How often conditions name a variable.
fn times(conditions: &[Spanned<Condition>], name: &Arc<str>) -> usize {
    let terms = conditions.iter().flat_map(|condition| condition_terms(&condition.value));
    terms.filter(|term| matches!(&term.value, Term::Variable(variable, _) if variable.name == *name)).count()
}

/// The arguments of a condition that seeks rows of a relation.
fn arguments(condition: &mut Condition) -> &mut [Spanned<Term>] {
    match condition {
        Condition::Atom { negated: false, atom } => &mut atom.arguments,
        _ => &mut [],
    }
}

fn variable_is(variable: &Variable, names: &Names) -> bool {
    let index = variable.index.as_ref().and_then(|index| index.variable.as_ref());
    names.contains(&variable.name) || index.is_some_and(|index| names.contains(index))
}

fn term_has(term: &Term, names: &Names) -> bool {
    let mut open = vec![term];
    while let Some(term) = open.pop() {
        match term {
            Term::Variable(variable, _) if variable_is(variable, names) => return true,
            Term::Arithmetic(left, _, right) => open.extend([&left.value, &right.value]),
            _ => {}
        }
    }
    false
}

fn asks(condition: &Condition, names: &Names) -> bool {
    let rounds = matches!(condition, Condition::Rounds { index, .. } if names.contains(&index.value));
    rounds || condition_terms(condition).iter().any(|term| term_has(&term.value, names))
}

/// Whether a condition gives variables values, and does not only test them.
fn binds(condition: &Condition) -> bool {
    !matches!(condition, Condition::Compare(..) | Condition::Atom { negated: true, .. } | Condition::NotStarts { .. })
}

/// The variables of conditions.
fn asked<'c>(conditions: impl IntoIterator<Item = &'c Spanned<Condition>>) -> Names {
    let terms = conditions.into_iter().flat_map(|condition| condition_terms(&condition.value));
    let names = terms.filter_map(|term| match &term.value {
        Term::Variable(variable, _) => Some(Arc::clone(&variable.name)),
        _ => None,
    });
    names.collect()
}

/// Entries that are made, and those whose making names something of these.
fn entries(statements: &[Statement], absent: &Names, made: &mut Names, missing: &mut Names) {
    for statement in statements {
        match statement {
            Statement::NewEntry { entry, .. } => {
                let name = Arc::clone(&entry.value.name);
                if names_any(statement, absent) {
                    missing.insert(name)
                } else {
                    made.insert(name)
                };
            }
            Statement::For { to, body, .. } if absent.contains(&to.value) => {
                let (mut all, mut none) = (Names::new(), Names::new());
                entries(body, &Names::new(), &mut all, &mut none);
                missing.extend(all);
            }
            Statement::For { body, .. } => entries(body, absent, made, missing),
            Statement::Operation { .. } => {}
        }
    }
}

/// Whether a statement by itself names one of these.
fn names_any(statement: &Statement, names: &Names) -> bool {
    match statement {
        Statement::NewEntry { entry, task, .. } => variable_is(&entry.value, names) || term_has(&task.value, names),
        Statement::Operation { arguments, .. } => arguments.iter().any(|argument| match &argument.value {
            Argument::Term(term) => term_has(term, names),
            Argument::Node(label) => {
                let terms = [&label.scenario, &label.thread, &label.position, &label.task, &label.counter];
                terms.into_iter().any(|term| term_has(&term.value, names))
            }
        }),
        Statement::For { to, .. } => names.contains(&to.value),
    }
}

/// The statements that name none of these.
fn kept(statements: &[Statement], absent: &Names) -> Vec<Statement> {
    let good = statements.iter().filter(|statement| !names_any(statement, absent));
    let kept = good.map(|statement| match statement {
        Statement::For { index, from, to, body, span } => {
            let (index, to, body) = (index.clone(), to.clone(), kept(body, absent));
            Statement::For { index, from: *from, to, body, span: *span }
        }
        plain => plain.clone(),
    });
    kept.collect()
}

/// Where each statement stands that does something by itself.
fn places(statements: &[Statement]) -> Vec<Span> {
    let mut open: Vec<&Statement> = statements.iter().rev().collect();
    let mut found = Vec::new();
    while let Some(statement) = open.pop() {
        match statement {
            Statement::NewEntry { span, .. } | Statement::Operation { span, .. } => found.push(*span),
            Statement::For { body, .. } => open.extend(body.iter().rev()),
        }
    }
    found
}

/// Tells of conditions and statements that are in none of the combinations.
fn between(program: &Program, template: &Template, variants: &[Template], findings: &mut Vec<Diagnostic>) {
    let spans = |one: &Template| -> Vec<Span> {
        let conditions = one.conditions.iter().map(|condition| condition.span);
        conditions.chain(places(&one.statements)).collect()
    };
    let kept: Vec<Span> = variants.iter().flat_map(spans).collect();
    for span in spans(template).into_iter().filter(|span| !kept.contains(span)) {
        let message = "no combination of alternatives has all that this names";
        findings.push(
            Diagnostic::error(codes::BETWEEN_ALTERNATIVES, place(program, span), message)
                .with_note("where a part does not match, what names something of it is left out")
                .with_hint("give nodes of the alternatives the same name where both are meant"),
        );
    }
}

/// What is said of all combinations that have the text at hand, and the errors of any.
pub fn agreed(program: &Program, variants: &[Template], told: Vec<Vec<Diagnostic>>) -> Vec<Diagnostic> {
    if variants.len() == 1 {
        return told.into_iter().flatten().collect();
    }
    let places: Vec<Vec<Place>> = variants.iter().map(|variant| text(program, variant)).collect();
    let anywhere = |finding: &Diagnostic| places.iter().flatten().any(|part| lies_in(&finding.place, part));
    let agree = |finding: &Diagnostic| {
        told.iter().zip(&places).all(|(list, own)| {
            let has = own.iter().any(|part| lies_in(&finding.place, part)) || !anywhere(finding);
            !has || list.iter().any(|other| other.code == finding.code && other.place == finding.place)
        })
    };
    let is_error = |finding: &Diagnostic| finding.severity == Severity::Error && finding.code != codes::NEVER;
    let mut all: Vec<Diagnostic> = Vec::new();
    for finding in told.iter().flatten().filter(|finding| is_error(finding) || agree(finding)) {
        if all.iter().all(|other| (other.code, &other.place) != (finding.code, &finding.place)) {
            all.push(finding.clone());
        }
    }
    all
}

/// Where the nodes, conditions and statements of a template stand.
fn text(program: &Program, template: &Template) -> Vec<Place> {
    let nodes = template.nodes().into_iter().map(|node| node.span);
    let conditions = template.conditions.iter().map(|condition: &Spanned<Condition>| condition.span);
    nodes.chain(conditions).chain(places(&template.statements)).map(|span| place(program, span)).collect()
}

fn lies_in(inner: &Place, outer: &Place) -> bool {
    match (inner, outer) {
        (Place::Range { file, start, end }, Place::Range { file: other, start: from, end: to }) => {
            file == other && start >= from && end <= to
        }
        _ => false,
    }
}
