//! Terms under `model`: indices, and where their values come from.

use std::sync::Arc;

use crate::codes;
use crate::operations::{Compiler, Parameter};
use crate::pattern::{At, Key, Node, Solved};
use crate::plan::{Field, ModelValue, Position, Slot, Value};
use dyelog_datalog::ast::{Index, Span, Spanned, Term};

/// The most that an index adds to its variable, or takes away. What a template makes is kept by position: one far off would take memory.
const FARTHEST: u64 = 1024;

impl Compiler<'_, '_, '_> {
    /// Which of a sequence an index names.
    pub(super) fn position(&mut self, index: Option<&Index>, span: Span) -> Option<Position> {
        match index {
            None => Some(Position::At(0)),
            Some(Index { offset, .. }) if offset.unsigned_abs() > FARTHEST => {
                let message = format!("an index adds or takes away at most {FARTHEST} here");
                self.findings.error(codes::INDEX, span, message);
                None
            }
            Some(Index { variable: None, offset }) => Some(Position::At(*offset)),
            Some(Index { variable: Some(name), offset })
                if self.running.as_ref().is_some_and(|running| running.index == *name) =>
            {
                Some(Position::Running(*offset))
            }
            Some(Index { variable: Some(name), offset }) => {
                if let Some(sequence) = self.scope.with_count(name) {
                    return Some(Position::Count(sequence as u8, *offset));
                }
                self.findings.error(codes::INDEX, span, format!("`{name}` is no index here"));
                None
            }
        }
    }

    /// A term as the pattern's nodes write it, for comparison with theirs. The running index stands for the round's.
    pub(super) fn solved(&mut self, term: &Spanned<Term>) -> Option<Solved> {
        match &term.value {
            Term::Wildcard => Some(Solved::Wildcard),
            Term::Integer(value) => Some(Solved::Integer(*value)),
            Term::Symbol(name) => Some(Solved::Symbol(Arc::clone(name))),
            Term::Variable(variable, offset) => {
                let name = Arc::clone(&variable.name);
                let own = self.scope.sequence_of(&name);
                let running = self.running.as_ref().map(|running| running.sequence);
                let at = match self.position(variable.index.as_ref(), term.span)? {
                    Position::At(0) if variable.index.is_none() => At::Scalar,
                    Position::At(1) => At::First,
                    Position::Running(offset) if own.is_some() && own < running => {
                        At::Across(running.unwrap_or(0) as u8, offset)
                    }
                    Position::Running(0) if own.is_none() || own == running => At::Here,
                    Position::Running(1) if own.is_none() || own == running => At::Next,
                    Position::Count(of, 0) if own.is_none_or(|own| own == usize::from(of)) => At::Last,
                    Position::Count(of, 1) if own.is_none_or(|own| own == usize::from(of)) => At::After,
                    _ => {
                        self.findings
                            .error(
                                codes::INDEX,
                                term.span,
                                format!("this index of `{}` is out of range", variable.name),
                            )
                            .notes
                            .push("the nodes of the sequence bind its variables from 1 to n".to_owned());
                        return None;
                    }
                };
                Some(Solved::Variable((name, at), *offset))
            }
            Term::Float(_) | Term::Arithmetic(..) => {
                self.findings.error(
                    codes::NOT_LINEAR,
                    term.span,
                    "only a variable plus or minus a constant can stand here",
                );
                None
            }
        }
    }

    pub(super) fn model_value(&mut self, term: &Spanned<Term>) -> Option<ModelValue> {
        let (name, at, offset) = match self.solved(term)? {
            Solved::Integer(value) => return Some(ModelValue::Fixed(Value::Integer(value))),
            Solved::Variable((name, at), offset) => (name, at, offset),
            Solved::Wildcard | Solved::Symbol(_) => {
                self.findings.error(codes::UNBOUND, term.span, "a variable that a node binds is needed here");
                return None;
            }
        };
        let fixed = |site: &Value| match site {
            Value::Field(slot, field, own) => Some(ModelValue::Fixed(Value::Field(*slot, *field, own + offset))),
            _ => None,
        };
        let round = |position| {
            let key = if matches!(at, At::Next | At::After) { At::Next } else { At::Here };
            let (node, field, own) = self.route.round_sites.get(&(Arc::clone(&name), key)).copied()?;
            Some(ModelValue::Round { node, position, field, offset: own + offset })
        };
        let sequence = self.scope.sequence_of(&name).unwrap_or(0) as u8;
        let here = |at| self.route.sites.get(&(Arc::clone(&name), at)).and_then(fixed);
        // Where there is no round, only nodes outside have what comes before and after the rounds.
        let outside = self.outside(&(Arc::clone(&name), at));
        let value = match at {
            At::Scalar => here(At::Scalar),
            At::After => outside
                .and_then(|site| fixed(&site))
                .or_else(|| here(At::After))
                .or_else(|| round(Position::Count(sequence, 0))),
            At::First if outside.is_some() => outside.and_then(|site| fixed(&site)),
            At::Here | At::Next => round(Position::Running(0)),
            At::Across(_, offset) => round(Position::Running(offset)),
            At::First => round(Position::At(1)),
            At::Last => round(Position::Count(sequence, 0)),
            At::Further(_) | At::Nth(_) | At::FromLast(_) => None,
        };
        if value.is_none() {
            let names = self.route.sites.keys().map(|(name, _)| &**name);
            self.findings.unbound(&name, term.span, self.pattern, names);
        }
        value
    }

    /// The field of a node outside the sequences that is that variable.
    fn outside(&self, key: &Key) -> Option<Value> {
        let of = |(node, slot): (&Node, &Slot)| {
            node.terms().find_map(|(field, term)| match term {
                Solved::Variable(own, offset) if own == key => Some(Value::Field(*slot, field, offset.checked_neg()?)),
                _ => None,
            })
        };
        self.pattern.nodes.iter().zip(&self.route.slots).find_map(of)
    }

    /// A value of the type that an operation takes.
    pub(super) fn typed_value(&mut self, term: &Spanned<Term>, parameter: Parameter) -> Option<ModelValue> {
        let value = self.model_value(term)?;
        let fits = |field: Field| match parameter {
            Parameter::Thread => matches!(field, Field::Thread | Field::Target),
            Parameter::Position => field == Field::Position,
            Parameter::Task => field == Field::Task,
            Parameter::Counter => field == Field::Counter,
            Parameter::Entry | Parameter::Node | Parameter::Label => true,
        };
        let named = |field: Field| match field {
            Field::Thread | Field::Target => "a thread",
            Field::Position => "a thread node counter",
            Field::Task | Field::TaskName => "a task",
            Field::Counter => "a task node counter",
            Field::Activity => "the name of an activity",
            Field::Service => "the name of a service",
            Field::Node => "a node",
        };
        let (field, offset) = match value {
            ModelValue::Fixed(Value::Field(_, field, _)) | ModelValue::Round { field, .. } => {
                (field, if let Term::Variable(_, offset) = &term.value { *offset } else { 0 })
            }
            ModelValue::Fixed(_) if parameter != Parameter::Task => return Some(value),
            ModelValue::Fixed(_) => {
                let message = format!("{} is expected here, and this is a number", parameter.describe());
                self.findings.error(codes::ARGUMENT_TYPE, term.span, message);
                return None;
            }
        };
        let Term::Variable(variable, _) = &term.value else { return Some(value) };
        let nodes = self.pattern.all();
        let same = |solved: &Solved| matches!(solved, Solved::Variable((name, _), _) if *name == variable.name);
        let mut fields = nodes.flat_map(Node::terms).filter(|(_, solved)| same(solved)).map(|(field, _)| field);
        if !fits(field) && !fields.any(fits) {
            let message =
                format!("{} is expected here, and `{}` is {}", parameter.describe(), variable.name, named(field));
            self.findings.error(codes::ARGUMENT_TYPE, term.span, message);
            return None;
        }
        if offset != 0 && matches!(parameter, Parameter::Thread | Parameter::Task) {
            let message = format!("{} is expected here, and not one plus a number", parameter.describe());
            self.findings.error(codes::ARGUMENT_TYPE, term.span, message);
            return None;
        }
        Some(value)
    }
}
