//! Plans of templates in words: how each node is reached from what is known, and what is compared there.

use serde_json::{Value as Json, json};

use crate::datalog::ast::Quantifier;
use crate::report::json::pretty;
use crate::tlc::plan::{
    Edge, Expression, ExpressionPart, Field, KindTag, Position, Recall, RelationArgument, RoundCondition, Slot,
    TemplatePlan, TemplateStep, Value,
};

/// Plans as text for people.
pub fn text(plans: &[&TemplatePlan], all: &[TemplatePlan]) -> String {
    let mut text = String::new();
    for plan in plans {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        let words = Words { plan, all };
        text.push_str(&format!("{} (order {})\n", plan.name, plan.order));
        text.push_str(&format!("  {} is the glue node: {}\n", words.slot(0), kind(plan.glue_kind)));
        for part in words.parts() {
            if !part.title.is_empty() {
                text.push_str(&format!("  {}:\n", part.title));
            }
            let indent = if part.title.is_empty() { "  " } else { "    " };
            for step in part.steps {
                text.push_str(&format!("{indent}{}\n", words.step(step)));
            }
        }
    }
    text
}

/// The same as JSON: a list of plans, each with its steps. Steps that bind a node name it and its kind.
pub fn json(plans: &[&TemplatePlan], all: &[TemplatePlan]) -> String {
    let list: Json = plans
        .iter()
        .map(|plan| {
            let words = Words { plan, all };
            let steps: Vec<Json> = words
                .parts()
                .into_iter()
                .flat_map(|part| part.steps.iter().map(move |step| (part.name, step)))
                .map(|(part, step)| match step {
                    TemplateStep::Go { to, edge, kind: tag, consumed } => json!({
                        "part": part,
                        "node": words.slot(*to),
                        "kind": kind(*tag),
                        "consumed": consumed,
                        "access": words.edge(*edge),
                    }),
                    step => json!({ "part": part, "check": words.step(step) }),
                })
                .collect();
            json!({
                "template": &*plan.name,
                "order": plan.order,
                "glue": { "node": words.slot(0), "kind": kind(plan.glue_kind) },
                "steps": steps,
            })
        })
        .collect();
    pretty(&list)
}

pub(super) fn kind(tag: KindTag) -> &'static str {
    if tag == KindTag::Any { "any" } else { tag.label() }
}

/// Steps that are taken together.
struct PlanPart<'p> {
    name: &'static str,
    title: String,
    steps: &'p [TemplateStep],
}

/// Says what steps of a plan do.
pub(super) struct Words<'p> {
    pub(super) plan: &'p TemplatePlan,
    pub(super) all: &'p [TemplatePlan],
}

impl<'p> Words<'p> {
    fn parts(&self) -> Vec<PlanPart<'p>> {
        let plan = self.plan;
        let mut parts = vec![PlanPart { name: "head", title: String::new(), steps: &plan.head }];
        for repetition in &plan.repetitions {
            let order =
                if repetition.backward { "from the last round to the first" } else { "from the first round on" };
            let most = if repetition.longest { ", as many as there are" } else { "" };
            let title = format!("then {order}, at least {}{most}", repetition.min);
            parts.push(PlanPart { name: "round", title, steps: &repetition.steps });
            parts.push(PlanPart { name: "tail", title: "after the rounds".to_owned(), steps: &repetition.tail });
            if let Some(steps) = &repetition.tail_of_none {
                parts.push(PlanPart { name: "none", title: "where there is no round".to_owned(), steps });
            }
        }
        parts.retain(|part| part.name == "head" || !part.steps.is_empty());
        parts
    }

    pub(super) fn slot(&self, slot: Slot) -> &str {
        self.plan.slot_names.get(slot as usize).map_or("?", |name| name)
    }

    pub(super) fn step(&self, step: &TemplateStep) -> String {
        match step {
            TemplateStep::Go { to, edge, kind: tag, consumed } => {
                let only = if *consumed { "" } else { ", looked at only" };
                format!("{} is {}: {}{only}", self.slot(*to), self.edge(*edge), kind(*tag))
            }
            TemplateStep::Equal(left, right) => format!("check that {} = {}", self.value(*left), self.value(*right)),
            TemplateStep::Compare(left, comparison, right) => {
                format!("check that {} {comparison} {}", self.value(*left), self.value(*right))
            }
            TemplateStep::CompareExpressions(left, comparison, right) => {
                format!("check that {} {comparison} {}", self.expression(left), self.expression(right))
            }
            TemplateStep::Distinct(left, right) => {
                format!("check that {} and {} are two nodes", self.slot(*left), self.slot(*right))
            }
            TemplateStep::Named(slot, field) => {
                let what = if *field == Field::Service { "a service" } else { "an activity" };
                format!("check that {} has {what} name", self.slot(*slot))
            }
            TemplateStep::Holds { negated, relation, arguments } => {
                let arguments: Vec<String> = arguments.iter().map(|argument| self.argument(argument)).collect();
                let not = if *negated { "not " } else { "" };
                match self.plan.body(relation) {
                    Some(body) => format!("ask that {}", body.text),
                    None => format!("ask that {not}{relation}({})", arguments.join(", ")),
                }
            }
            TemplateStep::NotStarts(template, slot) => {
                let name = self.all.get(*template as usize).map_or("?", |plan| &*plan.name);
                format!("check that {name} has no match that starts at {}", self.slot(*slot))
            }
            TemplateStep::Round(condition) | TemplateStep::Rounds(condition) => {
                self.rounds(condition, matches!(step, TemplateStep::Rounds(_)))
            }
            TemplateStep::Seen(number) => match self.on_some_round(*number) {
                Some(condition) => format!("check that some round was found in which {}", self.all_of(condition)),
                None => "check that some round was found".to_owned(),
            },
            TemplateStep::Recall(recall) => format!("{} is that of {}", self.slot(recall.to), Self::recalled(recall)),
            TemplateStep::Apart(_) => "check that all nodes of all sequences are different ones".to_owned(),
        }
    }

    fn recalled(recall: &Recall) -> String {
        let first = if recall.backward { Position::Count(recall.sequence, 0) } else { Position::At(1) };
        match recall.round {
            round if round == first => "the round walked first".to_owned(),
            Position::At(round) => format!("round {round}"),
            Position::Running(offset) => plus("the round with this number".to_owned(), offset),
            Position::Count(_, offset) => plus("the last round".to_owned(), offset),
        }
    }

    fn rounds(&self, condition: &RoundCondition, after: bool) -> String {
        let which = match (condition.quantifier, condition.pair) {
            (Quantifier::Every, false) => "in every round",
            (Quantifier::Every, true) => "in every two rounds that follow each other",
            (Quantifier::Some, false) => "in some round",
            (Quantifier::Some, true) => "in some two rounds that follow each other",
        };
        match (condition.quantifier, after) {
            (Quantifier::Some, false) => format!("note whether {}", self.all_of(condition)),
            _ => format!("check that {which} {}", self.all_of(condition)),
        }
    }

    /// What a condition on rounds needs.
    fn all_of(&self, condition: &RoundCondition) -> String {
        let needs = condition.steps.iter().map(|step| {
            let words = self.step(step);
            let plain = words.strip_prefix("check that ").or_else(|| words.strip_prefix("ask that "));
            plain.unwrap_or(&words).to_owned()
        });
        needs.collect::<Vec<_>>().join(" and ")
    }

    /// The condition on some round of that number.
    fn on_some_round(&self, number: u8) -> Option<&RoundCondition> {
        let mut steps = self.plan.repetitions.iter().flat_map(|repetition| &repetition.steps);
        steps.find_map(|step| match step {
            TemplateStep::Round(condition)
                if condition.quantifier == Quantifier::Some && condition.number == number =>
            {
                Some(&**condition)
            }
            _ => None,
        })
    }

    pub(super) fn edge(&self, edge: Edge) -> String {
        let place = |delta: i32, line: &str, slot: Slot| match delta {
            1 => format!("the next node of {}'s {line}", self.slot(slot)),
            -1 => format!("the node before {} in its {line}", self.slot(slot)),
            delta if delta > 0 => format!("{delta} nodes after {} in its {line}", self.slot(slot)),
            delta => format!("{} nodes before {} in its {line}", -i64::from(delta), self.slot(slot)),
        };
        match edge {
            Edge::InThread(slot, delta) => place(delta, "thread", slot),
            Edge::InTask(slot, delta) => place(delta, "task", slot),
            Edge::BeginOf(slot) => format!("the first node of the thread that {} forks", self.slot(slot)),
            Edge::ForkOfThreadOf(slot) => format!("the fork of {}'s thread", self.slot(slot)),
            Edge::First(value) => format!("the first node of thread {}", self.value(value)),
            Edge::Last(value) => format!("the last node of thread {}", self.value(value)),
            Edge::Accepted(thread, position) => {
                let (thread, position) = (self.value(thread), self.value(position));
                format!("the node that accepted the visit in which node {position} of thread {thread} lies")
            }
            Edge::Fork(value) => format!("the fork of thread {}", self.value(value)),
            Edge::Join(value) => format!("the wait for thread {}", self.value(value)),
            Edge::OnTask(task, counter) => format!("node {} of task {}", self.value(counter), self.value(task)),
            Edge::At(thread, position) => {
                format!("node {} of thread {}", self.value(position), self.value(thread))
            }
        }
    }

    pub(super) fn value(&self, value: Value) -> String {
        match value {
            Value::Field(slot, Field::Node, offset) => plus(self.slot(slot).to_owned(), offset),
            Value::Field(slot, field, offset) => plus(format!("{}.{}", self.slot(slot), word(field)), offset),
            Value::Carry(number, offset) => plus(format!("carried[{number}]"), offset),
            Value::Integer(number) => number.to_string(),
            Value::Count(sequence, offset) => {
                let several = self.plan.repetitions.len() > 1;
                let first = self.plan.repetitions.get(usize::from(sequence)).and_then(|own| own.nodes.first());
                let of =
                    first.filter(|_| several).map_or_else(String::new, |first| format!(" of {}", self.slot(*first)));
                plus(format!("the number of rounds{of}"), offset)
            }
            Value::Running(offset) => plus("the number of the round".to_owned(), offset),
            Value::Symbol(number) => {
                format!("{:?}", self.plan.symbols.get(number as usize).map_or("?", |symbol| symbol))
            }
        }
    }

    pub(super) fn argument(&self, argument: &RelationArgument) -> String {
        match argument {
            RelationArgument::Integer(value) => self.value(*value),
            RelationArgument::TaskName(slot) => format!("{}.task", self.slot(*slot)),
            RelationArgument::Name(slot, field) => format!("{}.{}", self.slot(*slot), word(*field)),
            RelationArgument::Symbol(number) => self.value(Value::Symbol(*number)),
            RelationArgument::Computed(expression) => self.expression(expression),
            RelationArgument::Free => "_".to_owned(),
        }
    }

    /// From the order of a stack machine back to brackets.
    pub(super) fn expression(&self, expression: &Expression) -> String {
        let mut stack: Vec<String> = Vec::new();
        for part in &expression.0 {
            match part {
                ExpressionPart::Value(value) => stack.push(self.value(*value)),
                ExpressionPart::Apply(operator) => {
                    let (right, left) = (stack.pop().unwrap_or_default(), stack.pop().unwrap_or_default());
                    stack.push(format!("({left} {operator} {right})"));
                }
            }
        }
        stack.pop().unwrap_or_default()
    }
}

fn plus(text: String, offset: i64) -> String {
    if offset == 0 { text } else { format!("{text}{offset:+}") }
}

/// A field as the paper calls it.
fn word(field: Field) -> &'static str {
    match field {
        Field::Thread => "thread",
        Field::Position => "position",
        Field::Target => "target",
        Field::Task | Field::TaskName => "task",
        Field::Counter => "counter",
        Field::Activity => "name",
        Field::Service => "op",
        Field::Node => "node",
    }
}
