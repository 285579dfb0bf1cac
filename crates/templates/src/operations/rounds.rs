//! Rounds that operations name: whether there are any of these numbers.

use crate::codes;
use crate::operations::Compiler;
use crate::plan::Position;
use dyelog_datalog::ast::{Span, Variable};

impl Compiler<'_, '_, '_> {
    /// Tells of a node of a round that no match has, or not every one: what is said of it would be left out.
    pub(super) fn check_round(&mut self, variable: &Variable, node: usize, position: Position, span: Span) {
        let Some(round) = self.pattern.round_of(node) else { return };
        let (name, x, n, min) = (&variable.name, &round.index, &round.count, i64::from(round.min));
        let of_this = self.running.as_ref().filter(|running| running.sequence == round.number);
        let (never, hint) = match position {
            Position::At(_) if variable.index.is_none() => (
                Some(format!("`{name}` is one node in each round, and no index says of which")),
                format!("write `for {x} in 1..{n} {{ … {name}[{x}] … }}`"),
            ),
            Position::At(number) if number < 1 => {
                (Some(format!("there is no round {number}")), "rounds are counted from 1".to_owned())
            }
            Position::Count(_, beyond) if beyond > 0 => (
                Some(format!("`{n}` is the last round")),
                format!("name a node outside the `repeat`, or `{name}[{n}]`"),
            ),
            Position::Running(beyond) if beyond > 0 && of_this.is_some() => (
                Some(format!("the last round, `{n}`, has none after it")),
                format!("write `for {x} in {}..{n} {{ … {name}[{x}] … }}`", beyond.saturating_add(1)),
            ),
            Position::Running(before) if of_this.is_some_and(|running| running.from.saturating_add(before) < 1) => (
                Some(format!(
                    "round 1 is the first, and `for` begins with {}",
                    of_this.map_or(1, |running| running.from)
                )),
                format!("let `for` begin with {}", before.saturating_neg().saturating_add(1)),
            ),
            Position::At(number) if number > min.max(1) => (None, format!("write `min {number}`")),
            Position::Count(_, before) if before < 0 && before.saturating_neg() >= min.max(1) => {
                (None, format!("write `min {}`", before.saturating_neg().saturating_add(1)))
            }
            _ => return,
        };
        let finding = if let Some(note) = never {
            let finding =
                self.findings.error(codes::INDEX, span, format!("this names a round of `{name}` that there is not"));
            finding.notes.push(note);
            finding
        } else {
            let message = format!("not every match has this round of `{name}`");
            let finding = self.findings.warning(codes::INDEX, span, message);
            finding.notes.push("in a match of fewer rounds the operation says nothing".to_owned());
            finding
        };
        finding.hints.push(hint);
    }
}
