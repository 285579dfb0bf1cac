//! The step of a plan that failed, in words.

use crate::diagnostic::quantity::counted;
use crate::report::explain::Described;
use crate::report::plan::{Words, kind};
use crate::tlc::explain::Study;
use crate::tlc::explain::attempt::{Attempt, Failure, PlanPart, Why};
use crate::tlc::matcher::Argument;
use crate::tlc::plan::{Expression, ExpressionPart, Field, RelationArgument, TemplatePlan, TemplateStep, Value};
use crate::trace::TaskId;

/// Why an attempt failed, in one sentence: what was needed, and what is the case.
pub(super) fn sentence(study: &Study<'_>, plan: &TemplatePlan, attempt: &Attempt, failure: &Failure) -> String {
    let saying = Saying { study, words: Words { plan, all: study.rules.plans() } };
    // Of several sequences it is said which.
    let of = plan.repetitions.get(failure.sequence).filter(|_| plan.repetitions.len() > 1).map_or_else(
        String::new,
        |repetition| {
            format!(" of `{}`", plan.slot_names.get(usize::from(repetition.nodes[0])).map_or("?", |name| name))
        },
    );
    let after = match failure.part {
        PlanPart::Tail => format!("after {}{of}, ", counted(failure.rounds, "round")),
        PlanPart::TailOfNone => format!("with no round{of}, "),
        PlanPart::Round if failure.rounds > 0 => format!("after {}{of}, ", counted(failure.rounds, "round")),
        _ => String::new(),
    };
    let step = failure.step_of(plan);
    format!("{after}{}", saying.why(attempt, step, &failure.why))
}

/// What was compared with what: the words of the plan and the values found.
pub(super) fn operands(study: &Study<'_>, plan: &TemplatePlan, failure: &Failure) -> Vec<(String, String)> {
    let saying = Saying { study, words: Words { plan, all: study.rules.plans() } };
    match (failure.step_of(plan), &failure.why) {
        (Some(step), Why::Values(left, right)) => saying.operands(step, *left, *right),
        _ => Vec::new(),
    }
}

struct Saying<'s, 'a> {
    study: &'s Study<'a>,
    words: Words<'s>,
}

impl Saying<'_, '_> {
    fn label(&self, node: crate::trace::NodeId) -> String {
        Described::new(self.study, node).label()
    }

    fn why(&self, attempt: &Attempt, step: Option<&TemplateStep>, why: &Why) -> String {
        match why {
            Why::Kind { to, node, wanted } => {
                let found = format!("`{}` is {}, not {}", self.label(*node), self.kind(*node), kind(*wanted));
                match step {
                    Some(TemplateStep::Go { edge, .. }) => {
                        format!("{} would be {}, but {found}", self.words.slot(*to), self.words.edge(*edge))
                    }
                    _ => format!("{} must be {}, but {found}", self.words.slot(*to), kind(*wanted)),
                }
            }
            Why::Nothing { to } => match step {
                Some(TemplateStep::Go { edge, .. }) => format!(
                    "{} would be {}, but there is none{}",
                    self.words.slot(*to),
                    self.words.edge(*edge),
                    self.from(attempt, *edge)
                ),
                _ => format!("{} leads nowhere", self.words.slot(*to)),
            },
            Why::Taken { to, node } => {
                format!("{} would be `{}`, which another match has", self.words.slot(*to), self.label(*node))
            }
            Why::Values(left, right) => {
                let needs = step.map_or_else(String::new, |step| self.needs(step));
                let operands = step.map_or_else(Vec::new, |step| self.operands(step, *left, *right));
                let found: Vec<String> = operands.iter().map(|(words, value)| format!("{words} = {value}")).collect();
                format!("{needs}, but {}", found.join(" and "))
            }
            Why::OneNode(node) => {
                let needs = step.map_or_else(String::new, |step| self.needs(step));
                format!("{needs}, but both are `{}`", self.label(*node))
            }
            Why::Relation(arguments) => self.relation(step, arguments),
            Why::Unnamed(node) => {
                let needs = step.map_or_else(String::new, |step| self.needs(step));
                format!("{needs}, but `{}` has none", self.label(*node))
            }
            Why::NoValue => {
                let needs = step.map_or_else(String::new, |step| self.needs(step));
                format!("{needs}, but an argument has no value there")
            }
            Why::OfRound { step: place, why, slots, .. } => {
                let inner = match step {
                    Some(TemplateStep::Round(condition) | TemplateStep::Rounds(condition)) => {
                        condition.steps.get(*place)
                    }
                    _ => None,
                };
                let attempt = Attempt { slots: slots.clone(), ..attempt.clone() };
                format!("of every round, {}", self.why(&attempt, inner, why))
            }
            Why::OfNoRound => {
                let needs = step.map_or_else(String::new, |step| self.needs(step));
                format!("{needs}, but there is none")
            }
            Why::Starts(node) => {
                let needs = step.map_or_else(String::new, |step| self.needs(step));
                format!("{needs}, but it has one at `{}`", self.label(*node))
            }
            Why::Budget => "the sequence was followed for as long as matching follows any".to_owned(),
        }
    }

    /// The node from which a way leads nowhere.
    fn from(&self, attempt: &Attempt, edge: crate::tlc::plan::Edge) -> String {
        use crate::tlc::plan::Edge;
        let (Edge::InThread(slot, _) | Edge::InTask(slot, _) | Edge::BeginOf(slot) | Edge::ForkOfThreadOf(slot)) = edge
        else {
            return String::new();
        };
        let node = attempt.slots.get(slot as usize).copied();
        node.filter(|node| (*node as usize) < self.study.toeg.len())
            .map_or_else(String::new, |node| format!(" from `{}`", self.label(node)))
    }

    fn kind(&self, node: crate::trace::NodeId) -> &'static str {
        self.study.toeg.event(node).kind.label()
    }

    /// `check that …` as `it needs …`.
    fn needs(&self, step: &TemplateStep) -> String {
        let words = self.words.step(step);
        let words = words.strip_prefix("check that ").or_else(|| words.strip_prefix("ask that ")).unwrap_or(&words);
        format!("it needs {words}")
    }

    fn relation(&self, step: Option<&TemplateStep>, arguments: &[Option<Argument>]) -> String {
        let Some(TemplateStep::Holds { negated, relation, arguments: written }) = step else { return String::new() };
        let values: Vec<String> = written
            .iter()
            .zip(arguments)
            .map(|(written, value)| match (written, value) {
                (RelationArgument::Integer(Value::Field(_, field, _)), Some(Argument::Integer(value))) => {
                    self.number(Some(*field), Some(*value))
                }
                (_, Some(Argument::Integer(value))) => value.to_string(),
                (_, Some(Argument::Name(name))) => self.study.names.names.text(*name).to_owned(),
                (RelationArgument::Symbol(_), _) => self.words.argument(written),
                _ => "_".to_owned(),
            })
            .collect();
        let needs = step.map_or_else(String::new, |step| self.needs(step));
        let verb = if *negated { "holds" } else { "does not hold" };
        if self.words.plan.body(relation).is_some() {
            // Which of the literals fails, and with which values, the lines after this one tell.
            return format!("{needs}, but that does not hold");
        }
        format!("{needs}, but {relation}({}) {verb}", values.join(", "))
    }

    /// Both sides of a comparison with their values; constants are not repeated.
    fn operands(&self, step: &TemplateStep, left: Option<i64>, right: Option<i64>) -> Vec<(String, String)> {
        let (words, fields): ([String; 2], [Option<Field>; 2]) = match step {
            TemplateStep::Equal(a, b) | TemplateStep::Compare(a, _, b) => {
                ([self.words.value(*a), self.words.value(*b)], [field(*a), field(*b)])
            }
            TemplateStep::CompareExpressions(a, _, b) => {
                ([self.words.expression(a), self.words.expression(b)], [single(a), single(b)])
            }
            _ => return Vec::new(),
        };
        let own = fields[0].or(fields[1]);
        words
            .into_iter()
            .zip([left, right])
            .zip([fields[0].or(own), fields[1].or(own)])
            .filter(|((words, _), _)| !words.starts_with('"') && words.parse::<i64>().is_err())
            .map(|((words, value), field)| {
                let value = self.number(field, value);
                (words, value)
            })
            .collect()
    }

    /// A number as what it stands for.
    fn number(&self, field: Option<Field>, value: Option<i64>) -> String {
        let Some(value) = value else { return "no number".to_owned() };
        let names = self.study.names;
        let small = u32::try_from(value).ok();
        match (field, small) {
            (Some(Field::Task), Some(task)) if (task as usize) < names.task_count() => names.task_label(TaskId(task)),
            (Some(Field::TaskName | Field::Activity | Field::Service), Some(name))
                if (name as usize) < names.names.len() =>
            {
                match names.names.text(crate::names::Name(name)) {
                    "" => "nothing".to_owned(),
                    text => text.to_owned(),
                }
            }
            (Some(Field::Node), Some(node)) if (node as usize) < self.study.toeg.len() => {
                Described::new(self.study, node).stamp()
            }
            (Some(Field::Target), None) => "none".to_owned(),
            _ => value.to_string(),
        }
    }
}

/// What a value is, if it is the field of a node.
fn field(value: Value) -> Option<Field> {
    match value {
        Value::Field(_, field, _) => Some(field),
        _ => None,
    }
}

fn single(expression: &Expression) -> Option<Field> {
    match expression.0[..] {
        [ExpressionPart::Value(value)] => field(value),
        _ => None,
    }
}
