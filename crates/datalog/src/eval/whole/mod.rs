//! Whole relations, from the facts upwards: level by level, each from what is new of the round before (semi-naive).
//!
//! Rows are found in an order that depends on rules and facts alone, and handed on as they are found. Kept are the rows
//! that something reads later; of those that nothing reads, only what tells whether a row is new.

mod best;
mod index;
mod pairs;
mod plan;
mod proofs;
mod run;
mod table;

use rustc_hash::FxHashSet;

use crate::base::BaseFacts;
use crate::eval::evaluator::{Limits, Run};
use crate::eval::profile::{LiteralProfile, Profile, RuleProfile, Watch};
use crate::eval::program::{CompiledRules, Literal, Relation};
use crate::eval::whole::plan::WholePlan;
use crate::eval::whole::proofs::Proofs;
use crate::eval::whole::run::{Counter, Whole};
use crate::value::Value;

pub(super) use proofs::{Premise, Proof};
pub(super) use run::Sink;
pub(super) use table::{Best, Table};

/// What an evaluation works on.
#[derive(Clone, Copy)]
pub(super) struct Input<'e> {
    pub(super) rules: &'e CompiledRules,
    pub(super) facts: &'e dyn BaseFacts,
    pub(super) symbols: &'e [Value],
    pub(super) limits: Limits,
    /// Rows that unbounded recursions may have.
    pub(super) room: usize,
    pub(super) watch: Option<&'e Watch<'e>>,
}

/// Hands on all rows of relations that rules define, and says what that cost if a watch is given.
pub(super) fn stream<'s>(input: Input<'s>, relations: &[u32], out: &'s mut Sink<'s>, profile: &mut Profile) -> Run<()> {
    let mut whole = Whole::new(input, out);
    for relation in relations {
        whole.streamed[*relation as usize] = input.rules.derived[*relation as usize].best.is_none();
    }
    let mut measured = Measured { plans: Vec::new(), costs: Vec::new() };
    let done = whole.levels(relations, &mut measured);
    profile.interrupted = done.is_err();
    profile.rules = measured.rules(&whole);
    done
}

/// A relation that was computed whole.
pub(super) struct Closed {
    pub(super) table: Table,
    /// By row, how it came about; empty where nobody asked for that.
    pub(super) proofs: Vec<Option<Proof>>,
}

/// All rows of relations of one level, ready to be looked up; with proofs if these are wanted.
pub(super) fn closed(input: Input<'_>, relations: &[u32], explaining: bool) -> Run<Vec<(u32, Closed)>> {
    let mut out = |_: u32, _: &[Value]| std::ops::ControlFlow::Continue(());
    let mut whole = Whole::new(input, &mut out);
    whole.keeping = true;
    whole.explaining = explaining;
    whole.levels(relations, &mut Measured { plans: Vec::new(), costs: Vec::new() })?;
    let mut proofs = whole.proofs.take().map(Proofs::into_rows).unwrap_or_default();
    let take = |relation: &u32| {
        let table = whole.table_of(*relation);
        let table = std::mem::replace(&mut whole.tables[table], Table::distinct(0));
        (*relation, Closed { table, proofs: proofs.remove(relation).unwrap_or_default() })
    };
    Ok(relations.iter().map(take).collect())
}

/// Plans that were worked off, with their rounds and time.
struct Measured {
    plans: Vec<WholePlan>,
    costs: Vec<(u64, u64)>,
}

impl Whole<'_, '_> {
    /// Computes relations and all they need.
    fn levels(&mut self, relations: &[u32], measured: &mut Measured) -> Run<()> {
        let rules = self.rules;
        let last = self.needed(relations);
        let mut asked = vec![false; rules.derived.len()];
        for relation in relations {
            asked[*relation as usize] = true;
        }
        let mut levels: Vec<Vec<u32>> = vec![Vec::new(); rules.levels as usize];
        for relation in (0..rules.derived.len() as u32).filter(|relation| last[*relation as usize].is_some()) {
            levels[rules.derived[relation as usize].level as usize].push(relation);
        }
        let mut ends: Vec<Vec<u32>> = vec![Vec::new(); rules.levels as usize];
        for (relation, last) in (0..).zip(&last) {
            ends[last.unwrap_or_default() as usize].extend(last.map(|_| relation));
        }
        for (level, members) in levels.iter().enumerate().filter(|(_, members)| !members.is_empty()) {
            self.settled = self.tables.len();
            for relation in members {
                let derived = &rules.derived[*relation as usize];
                let mut table = match derived.best {
                    Some(best) => Table::best(derived.arity, best),
                    None if self.explaining && asked[*relation as usize] => Table::numbered(derived.arity),
                    None if derived.once && !self.keeping => Table::passing(derived.arity),
                    None => Table::distinct(derived.arity),
                };
                let nonlinear = |rule: &u32| self.recursive(*relation, *rule).len() > 1;
                let read = last[*relation as usize].is_some_and(|last| last > level as u32);
                table.keep = (self.keeping && asked[*relation as usize])
                    || read
                    || members.iter().any(|other| rules.derived[*other as usize].rules.iter().any(nonlinear));
                self.tables.push(table);
                self.derived[*relation as usize] = Some(self.tables.len() - 1);
            }
            self.level(members, measured)?;
            if self.explaining && members.iter().any(|member| asked[*member as usize]) {
                self.prove(members)?;
            }
            for relation in members.iter().filter(|relation| asked[**relation as usize]) {
                self.emit_best(*relation)?;
            }
            // What nothing above reads goes.
            for relation in &ends[level] {
                let is_kept = self.keeping && asked[*relation as usize];
                if let Some(table) = self.derived[*relation as usize].filter(|_| !is_kept) {
                    self.tables[table] = Table::distinct(rules.derived[*relation as usize].arity);
                }
            }
        }
        Ok(())
    }

    /// For each relation that is needed: the last level that reads it.
    fn needed(&self, relations: &[u32]) -> Vec<Option<u32>> {
        let rules = self.rules;
        let mut last: Vec<Option<u32>> = vec![None; rules.derived.len()];
        let mut open: Vec<u32> = relations.to_vec();
        for relation in relations {
            last[*relation as usize] = Some(rules.derived[*relation as usize].level);
        }
        while let Some(relation) = open.pop() {
            let level = rules.derived[relation as usize].level;
            for rule in &rules.derived[relation as usize].rules {
                for needed in self.reads(*rule) {
                    let last = &mut last[needed as usize];
                    if last.is_none() {
                        open.push(needed);
                    }
                    *last = Some(last.map_or(level, |last| last.max(level)));
                }
            }
        }
        last
    }

    /// The relations whose tables a rule reads. What is found group by group has none: its rule is worked off within.
    fn reads(&self, rule: u32) -> Vec<u32> {
        let rules = self.rules;
        let needed = |rule: u32| rules.rules[rule as usize].body.iter().filter_map(Literal::derived);
        let (grouped, mut read): (Vec<u32>, Vec<u32>) =
            needed(rule).partition(|relation| rules.derived[*relation as usize].grouped);
        read.extend(
            grouped.iter().flat_map(|relation| &rules.derived[*relation as usize].rules).copied().flat_map(needed),
        );
        read
    }

    /// The literals of a rule that need what the rule's own level finds.
    fn recursive(&self, head: u32, rule: u32) -> Vec<usize> {
        let derived = &self.rules.derived;
        let level = derived[head as usize].level;
        let body = self.rules.rules[rule as usize].body.iter().enumerate();
        body.filter(|(_, literal)| {
            matches!(literal, Literal::Holds(Relation::Derived(other), _) if derived[*other as usize].level == level)
        })
        .map(|(place, _)| place)
        .collect()
    }

    fn level(&mut self, members: &[u32], measured: &mut Measured) -> Run<()> {
        let rules = self.rules;
        let first = measured.plans.len();
        for relation in members {
            for rule in &rules.derived[*relation as usize].rules {
                let recursive = self.recursive(*relation, *rule);
                let deltas = recursive.iter().copied().map(Some);
                for delta in deltas.chain(recursive.is_empty().then_some(None)) {
                    let mut plan = self.plan(*relation, *rule, delta)?;
                    plan.counters = self.counters.len();
                    self.counters.resize(self.counters.len() + plan.steps.len(), Counter::default());
                    measured.plans.push(plan);
                    measured.costs.push((0, 0));
                }
            }
        }
        for relation in members {
            self.given(*relation)?;
        }
        let (recursive, once): (Vec<usize>, Vec<usize>) =
            (first..measured.plans.len()).partition(|number| measured.plans[*number].delta.is_some());
        for number in once {
            self.work_off(measured, number)?;
        }
        let mut done: Vec<usize> = vec![0; members.len()];
        loop {
            let ends: Vec<usize> = members.iter().map(|member| self.tables[self.table_of(*member)].len()).collect();
            if recursive.is_empty() || ends == done {
                break;
            }
            for number in &recursive {
                let delta = measured.plans[*number].delta;
                let place = members.iter().position(|member| Some(*member) == delta).expect("a member of the level");
                if done[place] < ends[place] {
                    self.window = (done[place] as u32, ends[place] as u32);
                    self.work_off(measured, *number)?;
                }
            }
            for (member, end) in members.iter().zip(&ends) {
                let table = self.table_of(*member);
                self.tables[table].drop_before(*end);
            }
            done = ends;
        }
        self.check_level()?;
        if members.iter().any(|member| rules.derived[*member as usize].best.is_some()) {
            self.settle(members, &measured.plans[first..])?;
        }
        Ok(())
    }

    fn work_off(&mut self, measured: &mut Measured, number: usize) -> Run<()> {
        let plan = &measured.plans[number];
        let start = self.watch.map(|watch| (watch.clock)());
        let mut registers = vec![Value::from(0); plan.registers];
        let done = self.go(plan, 0, &mut registers);
        let cost = &mut measured.costs[number];
        cost.0 += 1;
        if let (Some(start), Some(watch)) = (start, self.watch) {
            cost.1 += (watch.clock)().saturating_sub(start);
        }
        done
    }

    /// Rows with best values go out once these are final.
    fn emit_best(&mut self, relation: u32) -> Run<()> {
        let table = self.table_of(relation);
        if self.rules.derived[relation as usize].best.is_none() {
            return Ok(());
        }
        self.streamed[relation as usize] = true;
        for row in 0..self.tables[table].len() as u32 {
            let row: Vec<Value> =
                (0..self.tables[table].width()).map(|column| self.tables[table].cell(row, column)).collect();
            self.emit(relation, &row)?;
        }
        Ok(())
    }

    /// A row of the rule file with the facts' symbols.
    fn own_row(&self, row: &[Value]) -> Vec<Value> {
        row.iter().map(|value| value.as_own().map_or(*value, |own| self.symbols[own as usize])).collect()
    }

    /// The rows of a relation that stand in the rule file.
    fn given(&mut self, relation: u32) -> Run<()> {
        let table = self.table_of(relation);
        for (row, _) in &self.rules.derived[relation as usize].facts.rows {
            self.step()?;
            let row = self.own_row(row);
            if let table::Added::New(_) = self.tables[table].insert(&row) {
                self.emit(relation, &row)?;
            }
        }
        Ok(())
    }
}

impl Measured {
    /// By rule. Orders of one rule follow each other.
    fn rules(&self, whole: &Whole<'_, '_>) -> Vec<RuleProfile> {
        let mut found: Vec<(u32, RuleProfile)> = Vec::new();
        let of = |number: u32, aggregate: bool| {
            let rule = whole.rules.rules[number as usize].source as usize;
            let without_value = whole.without_value[number as usize];
            (number, RuleProfile { rule, aggregate, without_value, ..RuleProfile::default() })
        };
        for (plan, (rounds, time)) in self.plans.iter().zip(&self.costs) {
            let rule = &whole.rules.rules[plan.rule as usize];
            let counters = &whole.counters[plan.counters..plan.counters + plan.steps.len()];
            let literals = plan.order.iter().zip(counters).zip(&plan.products).map(|((literal, counter), product)| {
                let origin = rule.origins.get(*literal).filter(|origin| origin.written);
                let literal = origin.map(|origin| origin.condition as usize);
                let within = origin.and_then(|origin| origin.within).map(|within| within as usize);
                LiteralProfile { literal, within, taken: counter.taken, given: counter.given, product: *product }
            });
            if found.last().is_none_or(|(last, _)| *last != plan.rule) {
                let aggregate = whole.rules.derived[plan.head as usize].aggregate;
                found.push(of(plan.rule, aggregate));
            }
            let (_, profile) = found.last_mut().expect("one was pushed just now");
            profile.rounds += rounds;
            profile.time += time;
            profile.rows += counters.last().map_or(*rounds, |counter| counter.given);
            profile.orders.push(literals.collect());
        }
        // What is worked off within other rules has a line where there is something to say of it.
        let listed: FxHashSet<u32> = found.iter().map(|(number, _)| *number).collect();
        let lost = (0..).zip(&whole.without_value).filter(|(number, lost)| **lost > 0 && !listed.contains(number));
        found.extend(lost.map(|(number, _)| of(number, true)));
        found.sort_by_key(|(_, profile)| (profile.rule, profile.aggregate));
        found.into_iter().map(|(_, profile)| profile).collect()
    }
}
