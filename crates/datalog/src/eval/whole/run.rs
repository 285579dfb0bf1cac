//! Working off plans: nested loops over rows found by their known columns.

use std::mem::size_of;
use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ast::Aggregate;
use crate::base::{BaseFacts, BaseRelation};
use crate::eval::evaluator::{Exhausted, Limits, Run};
use crate::eval::number::{Total, unshifted};
use crate::eval::plan::{Argument, Expression};
use crate::eval::profile::Watch;
use crate::eval::program::{CompiledRules, Term};
use crate::eval::rows::{NONE, Rows};
use crate::eval::steps::{compare, unify, unify_one};
use crate::eval::whole::Input;
use crate::eval::whole::plan::{Cells, WholePlan, WholeStep};
use crate::eval::whole::proofs::Proofs;
use crate::eval::whole::table::{Added, Table};
use crate::value::Value;

/// Where rows of relations that are wanted go.
pub(in crate::eval) type Sink<'s> = dyn FnMut(u32, &[Value]) -> ControlFlow<()> + 's;

/// An aggregate of a complete relation by group.
pub(super) struct Totals {
    groups: Rows,
    values: Vec<Option<Value>>,
    /// Of a group without rows.
    empty: Option<Value>,
    /// How the rows of a group are found that is asked for first, where the braces alone do not say which groups there are;
    /// and the group's registers.
    asked: Option<(Arc<WholePlan>, Vec<u32>)>,
    function: Aggregate,
}

/// How often a step was come to, and how many rows went on from it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter {
    pub(super) taken: u64,
    pub(super) given: u64,
}

/// The computation of whole relations.
pub(in crate::eval) struct Whole<'e, 's> {
    pub(super) rules: &'e CompiledRules,
    pub(super) facts: &'e dyn BaseFacts,
    pub(super) symbols: &'e [Value],
    pub(super) limits: Limits,
    room: usize,
    pub(super) steps: u64,
    pub(super) tables: Vec<Table>,
    /// The table of each relation that is needed.
    pub(super) derived: Vec<Option<usize>>,
    bases: FxHashMap<(BaseRelation, Vec<Option<Value>>), usize>,
    totals: Vec<Totals>,
    totals_of: FxHashMap<(u32, Aggregate), usize>,
    /// Whether the rows of what is asked for are looked up afterwards.
    pub(super) keeping: bool,
    /// Whether they are asked how they came about.
    pub(super) explaining: bool,
    /// Relations whose rows go out as they are found.
    pub(super) streamed: Vec<bool>,
    pub(super) out: &'s mut Sink<'s>,
    /// The rows that are new: from the first number to before the second.
    pub(super) window: (u32, u32),
    pub(super) counters: Vec<Counter>,
    /// By rule, how often arithmetic had no value.
    pub(super) without_value: Vec<u64>,
    /// Rows whose best value rests on another row's: both with their relations.
    pub(super) edges: Vec<[(u32, u32); 2]>,
    /// Whether the rows above are collected, or those whose value got better.
    pub(super) settling: bool,
    pub(super) better: Vec<(u32, u32)>,
    /// While rows that are known are proved: what is found.
    pub(super) proofs: Option<Proofs>,
    /// Rows since the limits were looked at.
    unchecked: u32,
    /// How many tables are of levels that are done, and how many bytes these took when the limits were looked at.
    pub(super) settled: usize,
    settled_bytes: usize,
    row: Vec<Value>,
    scratch: Vec<Value>,
    /// The rows of a group that was asked for.
    group: Rows,
    pub(super) watch: Option<&'e Watch<'e>>,
}

/// Rows that may be looked at or added before the limits are looked at again.
const UNCHECKED: u32 = 4096;

/// So many tables are all looked at whenever a level is done.
const LOOKED_AT: usize = 1000;

impl<'e, 's> Whole<'e, 's> {
    pub(super) fn new(input: Input<'e>, out: &'s mut Sink<'s>) -> Self {
        let Input { rules, facts, symbols, limits, room, watch } = input;
        let relations = rules.derived.len();
        Self {
            rules,
            facts,
            symbols,
            limits,
            room,
            steps: 0,
            tables: Vec::new(),
            derived: vec![None; relations],
            bases: FxHashMap::default(),
            totals: Vec::new(),
            totals_of: FxHashMap::default(),
            keeping: false,
            explaining: false,
            streamed: vec![false; relations],
            out,
            window: (0, 0),
            counters: Vec::new(),
            without_value: vec![0; rules.rules.len()],
            edges: Vec::new(),
            settling: false,
            better: Vec::new(),
            proofs: None,
            unchecked: 0,
            settled: 0,
            settled_bytes: 0,
            row: Vec::new(),
            scratch: Vec::new(),
            group: Rows::new(0),
            watch,
        }
    }

    /// The table of a relation that is needed.
    pub(super) fn table_of(&self, relation: u32) -> usize {
        self.derived[relation as usize].expect("what rules need was made ready before them")
    }

    /// Works off a plan from a step on. Recursion is as deep as the rule has literals, which the checks limit.
    pub(super) fn go(&mut self, plan: &WholePlan, at: usize, registers: &mut [Value]) -> Run<()> {
        let Some(step) = plan.steps.get(at) else { return self.finish(plan, registers) };
        self.counters[plan.counters + at].taken += 1;
        match step {
            WholeStep::Delta { table, cells, row } => {
                let (from, to) = self.window;
                for number in from..to {
                    self.visit(plan, at, *table, number, cells, *row, registers)?;
                }
                Ok(())
            }
            WholeStep::Scan { table, cells, row, exists } => {
                for number in 0..self.tables[*table].len() as u32 {
                    if self.visit(plan, at, *table, number, cells, *row, registers)? && *exists {
                        break;
                    }
                }
                Ok(())
            }
            WholeStep::Probe { table, index, key, cells, row, exists } => {
                let mut number = self.first(*table, *index, key, registers);
                while number != NONE {
                    if self.visit(plan, at, *table, number, cells, *row, registers)? && *exists {
                        break;
                    }
                    number = self.tables[*table].indexed(*index).next(number);
                }
                Ok(())
            }
            WholeStep::Has { table, row, holds } => {
                self.step()?;
                let mut wanted = std::mem::take(&mut self.row);
                wanted.clear();
                wanted.extend(row.iter().map_while(|expression| expression.value(registers)));
                let complete = wanted.len() == row.len();
                let found = complete && self.tables[*table].contains(&wanted);
                self.row = wanted;
                if complete && found == *holds { self.pass(plan, at, registers) } else { Ok(()) }
            }
            WholeStep::Without { table, index, key } => {
                self.step()?;
                let known = key.iter().all(|expression| expression.value(registers).is_some());
                if known && self.first(*table, *index, key, registers) == NONE {
                    return self.pass(plan, at, registers);
                }
                Ok(())
            }
            WholeStep::Ask { relation, arguments, exists, holds } => {
                self.ask(plan, at, (*relation, arguments), *exists, *holds, registers)
            }
            WholeStep::Compare(left, comparison, right) => {
                if compare(left, *comparison, right, registers) {
                    self.pass(plan, at, registers)
                } else {
                    self.lose(plan, [left, right], registers);
                    Ok(())
                }
            }
            WholeStep::Assign(register, offset, expression) => {
                let value = expression.value(registers).and_then(|value| unshifted(value, *offset));
                let Some(value) = value else {
                    self.lose(plan, [expression], registers);
                    return Ok(());
                };
                registers[*register as usize] = value;
                self.pass(plan, at, registers)
            }
            WholeStep::Total { totals, group, result } => {
                self.step()?;
                let number = *totals;
                let totals = &self.totals[number];
                let key = group.iter().map(|register| registers[*register as usize]);
                self.row.clear();
                self.row.extend(key);
                let value = match (totals.groups.find(&self.row), &totals.asked) {
                    (Some(number), _) => totals.values[number as usize],
                    (None, None) => totals.empty,
                    (None, Some(_)) => self.total_of(number)?,
                };
                if value.is_some_and(|value| unify_one(result, value, registers)) {
                    return self.pass(plan, at, registers);
                }
                Ok(())
            }
        }
    }

    /// Counts a row from which nothing follows since arithmetic on it has no value.
    #[inline]
    fn lose<const N: usize>(&mut self, plan: &WholePlan, expressions: [&Expression; N], registers: &[Value]) {
        if expressions.iter().any(|expression| !expression.is_plain() && expression.fails(registers)) {
            self.without_value[plan.rule as usize] += 1;
        }
    }

    #[inline]
    fn pass(&mut self, plan: &WholePlan, at: usize, registers: &mut [Value]) -> Run<()> {
        self.counters[plan.counters + at].given += 1;
        self.go(plan, at + 1, registers)
    }

    /// Goes on with a row, if it agrees with what is known; whether it does.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the parts of a step, which the caller has taken apart already")]
    fn visit(
        &mut self,
        plan: &WholePlan,
        at: usize,
        table: usize,
        number: u32,
        cells: &Cells,
        row: Option<u32>,
        registers: &mut [Value],
    ) -> Run<bool> {
        self.step()?;
        for (column, argument) in cells {
            let value = self.tables[table].cell(number, *column);
            if !unify_one(argument, value, registers) {
                return Ok(false);
            }
        }
        if let Some(register) = row {
            registers[register as usize] = Value::from(number);
        }
        self.pass(plan, at, registers)?;
        Ok(true)
    }

    /// The first row with this key, or [`NONE`].
    #[inline]
    fn first(&mut self, table: usize, index: usize, key: &[Expression], registers: &[Value]) -> u32 {
        let index = self.tables[table].indexed(index);
        if let [only] = key {
            return only.value(registers).map_or(NONE, |value| index.first(&[value]));
        }
        self.row.clear();
        self.row.extend(key.iter().map_while(|expression| expression.value(registers)));
        if self.row.len() == key.len() { index.first(&self.row) } else { NONE }
    }

    fn ask(
        &mut self,
        plan: &WholePlan,
        at: usize,
        (relation, arguments): (BaseRelation, &[Argument]),
        exists: bool,
        holds: bool,
        registers: &mut [Value],
    ) -> Run<()> {
        let mut pattern = Vec::with_capacity(arguments.len());
        for argument in arguments {
            pattern.push(match argument {
                Argument::Known(expression) => match expression.value(registers) {
                    None => return Ok(()),
                    known => known,
                },
                _ => None,
            });
        }
        let start = self.scratch.len();
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut trial = registers.to_vec();
        let mut looked_at = 0;
        let room = self.limits.bytes / size_of::<Value>();
        self.facts.lookup(relation, &pattern, &mut |row| {
            looked_at += 1;
            if row.len() == arguments.len() && unify(arguments, row, &mut trial) {
                scratch.extend_from_slice(row);
                if exists || scratch.len() > room {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        let end = scratch.len();
        self.scratch = scratch;
        self.steps += looked_at;
        self.step()?;
        if end > room {
            return Err(Exhausted::Bytes);
        }
        if !holds {
            self.scratch.truncate(start);
            return if end == start { self.pass(plan, at, registers) } else { Ok(()) };
        }
        let width = arguments.len();
        // A relation without columns has no values to keep: that it was found is all there is.
        for place in (start..end).step_by(width.max(1)) {
            let found = (0..width).all(|column| unify_one(&arguments[column], self.scratch[place + column], registers));
            if found {
                self.pass(plan, at, registers)?;
            }
        }
        self.scratch.truncate(start);
        Ok(())
    }

    fn finish(&mut self, plan: &WholePlan, registers: &[Value]) -> Run<()> {
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        row.extend(plan.result.iter().map_while(|expression| expression.value(registers)));
        let complete = row.len() == plan.result.len();
        if !complete {
            self.lose(plan, [&plan.result[row.len()]], registers);
        }
        if plan.inside && complete {
            self.group.insert(&row);
        }
        let done = if complete && !plan.inside { self.add(plan, &row, registers) } else { Ok(()) };
        self.row = row;
        done
    }

    fn add(&mut self, plan: &WholePlan, row: &[Value], registers: &[Value]) -> Run<()> {
        if self.proofs.is_some() {
            self.prove_row(plan, row, registers);
            return Ok(());
        }
        let table = self.table_of(plan.head);
        let added = self.tables[table].insert(row);
        match added {
            Added::New(_) => self.emit(plan.head, row)?,
            Added::Better(number) if self.settling => self.better.push((plan.head, number)),
            Added::Better(_) | Added::Known => {}
        }
        if !plan.sources.is_empty() && !self.settling {
            let head = (plan.head, self.tables[table].number(row).expect("it was added just now"));
            for source in &plan.sources {
                self.edges.push([(source.relation, source.row(registers)), head]);
            }
        }
        Ok(())
    }

    /// Hands a new row on, if its relation is wanted as it grows.
    #[inline]
    pub(super) fn emit(&mut self, relation: u32, row: &[Value]) -> Run<()> {
        if self.streamed[relation as usize] && (self.out)(relation, row).is_break() {
            return Err(Exhausted::Stopped);
        }
        Ok(())
    }

    /// Counts a row that is looked at.
    #[inline]
    pub(super) fn step(&mut self) -> Run<()> {
        self.steps += 1;
        self.unchecked += 1;
        if self.unchecked >= UNCHECKED { self.check() } else { Ok(()) }
    }

    /// Looks at the limits where a level is done. Of the tables below it what was known of them counts, so that many levels of few rows
    /// each take no more time than their rows.
    pub(super) fn check_level(&mut self) -> Run<()> {
        if self.tables.len() <= LOOKED_AT {
            return self.check();
        }
        let rows = self.settled_bytes + self.tables[self.settled..].iter().map(Table::bytes).sum::<usize>();
        if rows > self.limits.bytes { Err(Exhausted::Bytes) } else { Ok(()) }
    }

    /// Looks at the limits.
    pub(super) fn check(&mut self) -> Run<()> {
        self.unchecked = 0;
        if self.steps > self.limits.steps {
            return Err(Exhausted::Steps);
        }
        if self.watch.is_some_and(|watch| (watch.interrupted)()) {
            return Err(Exhausted::Stopped);
        }
        let edges = self.edges.capacity() * size_of::<[(u32, u32); 2]>();
        let proofs = self.proofs.as_ref().map_or(0, Proofs::bytes);
        let (settled, open) = self.tables.split_at(self.settled.min(self.tables.len()));
        self.settled_bytes = edges + proofs + settled.iter().map(Table::bytes).sum::<usize>();
        let rows = self.settled_bytes + open.iter().map(Table::bytes).sum::<usize>();
        let many = self.tables.iter().any(|table| table.len() >= NONE as usize - UNCHECKED as usize);
        if rows > self.limits.bytes {
            return Err(Exhausted::Bytes);
        }
        if many || rows > self.limits.rows.saturating_mul(ROW) {
            return Err(Exhausted::Rows);
        }
        self.check_inventions()
    }

    /// Looks at the rows of recursions that make numbers.
    fn check_inventions(&self) -> Run<()> {
        let mut made = 0_usize;
        for (derived, table) in self.rules.derived.iter().zip(&self.derived) {
            let Some(table) = *table else { continue };
            made = made.saturating_add(self.tables[table].len() / derived.invention.share().unwrap_or(usize::MAX));
            if made > self.room {
                return Err(Exhausted::Invented(derived.level));
            }
        }
        Ok(())
    }

    /// The table of a base relation's rows that have these constants.
    pub(super) fn base_table(&mut self, relation: BaseRelation, constants: Vec<Option<Value>>) -> Run<usize> {
        if let Some(table) = self.bases.get(&(relation, constants.clone())) {
            return Ok(*table);
        }
        let width = constants.len();
        let mut table = Table::plain(width);
        let room = self.limits.bytes.min(self.limits.rows.saturating_mul(ROW));
        let mut full = false;
        self.facts.lookup(relation, &constants, &mut |row| {
            if row.len() == width {
                table.insert(row);
            }
            full = table.len().is_multiple_of(UNCHECKED as usize) && table.bytes() > room
                || table.len() >= NONE as usize - 1;
            if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.steps += table.len() as u64;
        self.tables.push(table);
        self.bases.insert((relation, constants), self.tables.len() - 1);
        self.check()?;
        if full { Err(Exhausted::Rows) } else { Ok(self.tables.len() - 1) }
    }

    /// The aggregates of a complete relation whose first columns are the group, and whose last is the value.
    pub(super) fn totals(&mut self, relation: u32, function: Aggregate, group: usize) -> Run<usize> {
        if let Some(number) = self.totals_of.get(&(relation, function)) {
            return Ok(*number);
        }
        if self.rules.derived[relation as usize].grouped {
            return self.asked_totals(relation, function, group);
        }
        let table = self.table_of(relation);
        let (mut groups, mut all) = (Rows::new(group), Vec::new());
        let mut key = Vec::with_capacity(group);
        for row in 0..self.tables[table].len() as u32 {
            self.step()?;
            let table = &self.tables[table];
            key.clear();
            key.extend((0..group).map(|column| table.cell(row, column)));
            let (number, new) = groups.insert(&key);
            if new {
                all.push(Total::new(function));
            }
            // A count over nothing but the group has no value of its own.
            let value = table.width().checked_sub(1).map_or(Value::from(0), |last| table.cell(row, last));
            all[number as usize].add(value);
        }
        let values = all.into_iter().map(Total::value).collect();
        let empty = Total::new(function).value();
        self.totals.push(Totals { groups, values, empty, asked: None, function });
        self.totals_of.insert((relation, function), self.totals.len() - 1);
        Ok(self.totals.len() - 1)
    }
}

impl Whole<'_, '_> {
    /// The same where only the question determines the groups.
    fn asked_totals(&mut self, relation: u32, function: Aggregate, group: usize) -> Run<usize> {
        let rules = self.rules;
        let rule = rules.derived[relation as usize].rules[0];
        let registers: Vec<u32> = rules.rules[rule as usize].head[..group].iter().filter_map(Term::register).collect();
        let mut plan = self.plan_given(relation, rule, None, &registers)?;
        plan.inside = true;
        plan.counters = self.counters.len();
        self.counters.resize(self.counters.len() + plan.steps.len(), Counter::default());
        let asked = Some((Arc::new(plan), registers));
        let (groups, values, empty) = (Rows::new(group), Vec::new(), Total::new(function).value());
        self.totals.push(Totals { groups, values, empty, asked, function });
        // Plans look at tables that may be gone at another level: these totals are for one rule alone.
        Ok(self.totals.len() - 1)
    }

    /// The aggregate of the group in `row`, which is kept.
    fn total_of(&mut self, number: usize) -> Run<Option<Value>> {
        let key = self.row.clone();
        let totals = &self.totals[number];
        let (plan, group) = totals.asked.as_ref().expect("it is for groups that are asked for");
        let (plan, function) = (Arc::clone(plan), totals.function);
        let mut registers = vec![Value::from(0); plan.registers];
        for (register, value) in group.iter().zip(&key) {
            registers[*register as usize] = *value;
        }
        self.group = Rows::new(plan.result.len());
        self.go(&plan, 0, &mut registers)?;
        let mut total = Total::new(function);
        for row in 0..self.group.len() as u32 {
            total.add(self.group.row(row).last().copied().unwrap_or(Value::from(0)));
        }
        let value = total.value();
        let totals = &mut self.totals[number];
        totals.groups.insert(&key);
        totals.values.push(value);
        Ok(value)
    }
}

/// What a row of [`Limits::rows`] may take.
const ROW: usize = 100;
