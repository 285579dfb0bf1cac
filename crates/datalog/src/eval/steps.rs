//! Working off the steps of a plan.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::ast::{Aggregate, Comparison};
use crate::base::BaseRelation;
use crate::eval::evaluator::{Evaluator, Exhausted, Run};
use crate::eval::number::{Total, shifted, unshifted};
use crate::eval::plan::{Argument, Expression, GoalPlan, GoalStep};
use crate::eval::rows::NONE;
use crate::value::Value;

impl Evaluator<'_> {
    /// Works off a plan from a step on. Recursion is as deep as the rule has literals, which the checks limit.
    pub(super) fn go_on(
        &mut self,
        number: u32,
        plan: &Arc<GoalPlan>,
        step: usize,
        question: u32,
        registers: &mut Vec<Value>,
    ) -> Run<()> {
        match plan.steps.get(step) {
            None => {
                self.finish(number, plan, question, registers);
                Ok(())
            }
            Some(GoalStep::Compare(left, comparison, right)) => {
                if compare(left, *comparison, right, registers) {
                    self.go_on(number, plan, step + 1, question, registers)?;
                }
                Ok(())
            }
            Some(GoalStep::Assign(register, offset, expression)) => {
                let value = expression.value(registers).and_then(|value| unshifted(value, *offset));
                if let Some(value) = value {
                    registers[*register as usize] = value;
                    self.go_on(number, plan, step + 1, question, registers)?;
                }
                Ok(())
            }
            Some(GoalStep::Base { relation, arguments, exists }) => {
                let start = self.scratch.len();
                let width = arguments.len();
                let Some(found) = self.look_up(*relation, arguments, registers, *exists)? else { return Ok(()) };
                for row in 0..found {
                    let from = start + row * width;
                    if unify(arguments, &self.scratch[from..from + width], registers) {
                        self.go_on(number, plan, step + 1, question, registers)?;
                    }
                    if self.settled(plan, question) {
                        break;
                    }
                }
                self.scratch.truncate(start);
                Ok(())
            }
            Some(GoalStep::NoBase { relation, arguments }) => {
                let start = self.scratch.len();
                let found = self.look_up(*relation, arguments, registers, true)?;
                self.scratch.truncate(start);
                if found == Some(0) {
                    self.go_on(number, plan, step + 1, question, registers)?;
                }
                Ok(())
            }
            Some(GoalStep::Goal { goal, key, free }) => {
                let Some(asked) = self.ask(*goal, key, registers)? else { return Ok(()) };
                if !self.complete(*goal, asked) {
                    let frame = self.store.frame(number, step, question, registers);
                    self.store.wait(*goal, asked, frame);
                    if !self.store.at(*goal, asked).answers.is_empty() {
                        self.enqueue(*goal, asked);
                    }
                    return Ok(());
                }
                let mut answer = self.store.at(*goal, asked).answers.first;
                while answer != NONE {
                    self.step()?;
                    let row = &self.store.goals[*goal as usize].answers.row(answer)[1..];
                    if unify(free, row, registers) {
                        self.go_on(number, plan, step + 1, question, registers)?;
                    }
                    answer = self.store.goals[*goal as usize].next[answer as usize];
                }
                Ok(())
            }
            Some(GoalStep::NoGoal { goal, key }) => {
                let Some(asked) = self.ask(*goal, key, registers)? else { return Ok(()) };
                if !self.complete(*goal, asked) {
                    self.delay(*goal, number, step, question, registers);
                } else if self.store.at(*goal, asked).answers.is_empty() {
                    self.go_on(number, plan, step + 1, question, registers)?;
                }
                Ok(())
            }
            Some(GoalStep::Aggregate { goal, function, group, result }) => {
                let mut key = Vec::with_capacity(group.len());
                key.extend(group.iter().map(|register| registers[*register as usize]));
                let asked = self.ask_key(*goal, &key);
                if !self.complete(*goal, asked) {
                    self.delay(*goal, number, step, question, registers);
                    return Ok(());
                }
                let value = self.aggregate(*goal, asked, *function)?;
                if value.is_some_and(|value| unify_one(result, value, registers)) {
                    self.go_on(number, plan, step + 1, question, registers)?;
                }
                Ok(())
            }
        }
    }

    /// Rows of a base relation, appended to the scratch space: how many. None where a known value is no value.
    fn look_up(
        &mut self,
        relation: BaseRelation,
        arguments: &[Argument],
        registers: &[Value],
        first: bool,
    ) -> Run<Option<usize>> {
        let mut pattern = std::mem::take(&mut self.pattern);
        pattern.clear();
        for argument in arguments {
            let known = if let Argument::Known(expression) = argument { expression.value(registers) } else { None };
            if known.is_none() && matches!(argument, Argument::Known(_)) {
                self.pattern = pattern;
                return Ok(None);
            }
            pattern.push(known);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let (mut found, mut steps) = (0, self.steps);
        let (most, bytes) = (self.limits.rows.saturating_mul(4), self.limits.bytes / size_of::<Value>());
        let room = most.min(bytes);
        let picky = |argument: &Argument| match argument {
            Argument::Same(..) => true,
            Argument::Bind(_, offset) => *offset != 0,
            Argument::Any | Argument::Known(_) => false,
        };
        let mut trial = (first && arguments.iter().any(picky)).then(|| registers.to_vec());
        self.facts.lookup(relation, &pattern, &mut |row| {
            steps += 1;
            let stop = steps > self.limits.steps || scratch.len() > room;
            if stop || row.len() != arguments.len() {
                return if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            }
            if trial.as_mut().is_some_and(|trial| !unify(arguments, row, trial)) {
                return ControlFlow::Continue(());
            }
            scratch.extend_from_slice(row);
            found += 1;
            if first { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.pattern = pattern;
        let full = scratch.len() > room;
        self.scratch = scratch;
        self.steps = steps;
        self.step()?;
        match full {
            true if bytes < most => Err(Exhausted::Bytes),
            true => Err(Exhausted::Rows),
            false => Ok(Some(found)),
        }
    }

    /// The number of a question, asked now if it has not been. None where a known value is no value.
    fn ask(&mut self, goal: u32, key: &[Expression], registers: &[Value]) -> Run<Option<u32>> {
        self.step()?;
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        row.extend(key.iter().map_while(|expression| expression.value(registers)));
        let asked = (row.len() == key.len()).then(|| self.ask_key(goal, &row));
        self.row = row;
        Ok(asked)
    }

    fn ask_key(&mut self, goal: u32, key: &[Value]) -> u32 {
        let (question, new) = self.store.question(goal, key);
        if new {
            self.enqueue(goal, question);
        }
        question
    }

    /// Whether all answers to a question are known.
    fn complete(&self, goal: u32, question: u32) -> bool {
        let goal = &self.store.goals[goal as usize];
        goal.level < self.level && !goal.questions[question as usize].queued
    }

    /// Keeps a step until the level of the goal it asks is complete.
    fn delay(&mut self, goal: u32, plan: u32, step: usize, question: u32, registers: &[Value]) {
        let frame = self.store.frame(plan, step, question, registers);
        let level = self.store.goals[goal as usize].level;
        self.delayed[level as usize].push(frame);
        self.active.insert((level, true));
    }

    /// The aggregate of all answers to a question; none where there is none, or it is out of range.
    pub(super) fn aggregate(&mut self, goal: u32, question: u32, function: Aggregate) -> Run<Option<Value>> {
        let mut answer = self.store.at(goal, question).answers.first;
        let mut total = Total::new(function);
        while answer != NONE {
            self.step()?;
            let goal = &self.store.goals[goal as usize];
            // The question's number stands first: a row is never empty.
            total.add(*goal.answers.row(answer).last().expect("answers name their question"));
            answer = goal.next[answer as usize];
        }
        Ok(total.value())
    }
}

/// Puts a row's values where the arguments say; whether they agree with what is known.
pub(super) fn unify(arguments: &[Argument], row: &[Value], registers: &mut [Value]) -> bool {
    arguments.iter().zip(row).all(|(argument, value)| unify_one(argument, *value, registers))
}

pub(super) fn unify_one(argument: &Argument, value: Value, registers: &mut [Value]) -> bool {
    match argument {
        Argument::Any => true,
        Argument::Known(Expression::Register(register, 0)) => registers[*register as usize] == value,
        Argument::Known(expression) => expression.value(registers) == Some(value),
        Argument::Same(register, offset) => shifted(registers[*register as usize], *offset) == Some(value),
        Argument::Bind(register, offset) => match unshifted(value, *offset) {
            Some(value) => {
                registers[*register as usize] = value;
                true
            }
            None => false,
        },
    }
}

pub(super) fn compare(left: &Expression, comparison: Comparison, right: &Expression, registers: &[Value]) -> bool {
    let (Some(left), Some(right)) = (left.value(registers), right.value(registers)) else { return false };
    match comparison {
        Comparison::Equal => return left == right,
        Comparison::NotEqual => return left != right,
        _ => {}
    }
    left.compare_numbers(right).is_some_and(|order| comparison.holds(order, Ordering::Equal))
}
