//! How the final rows of a level came about.
//!
//! While values get better, a row may rest on one that is replaced later. So proofs are looked for once all values are final,
//! from the facts upwards: a row is proved by the first rule that gives it from rows that are proved already. No row rests
//! on itself then, and each row is worked off once.
//!
//! Rows are left over to which only rows that they have replaced led: `p(X, 1) :- q(X)` may better the very row of `p` by which `q(X)` came
//! to hold. Each gets the first rule that gives it from final rows. What of these has no proof without it is marked as replaced.

use std::collections::{BTreeMap, VecDeque};
use std::mem::size_of;

use rustc_hash::FxHashMap;

use crate::eval::evaluator::Run;
use crate::eval::whole::plan::{Source, WholePlan};
use crate::eval::whole::run::{Counter, Whole};
use crate::value::Value;

/// How a row came about.
#[derive(Clone, Debug)]
pub(in crate::eval) enum Proof {
    /// It stands in the rule file: the place of the rule in the program.
    Fact(u32),
    /// A rule gave it.
    Rule {
        /// The number of the rule.
        rule: u32,
        registers: Box<[Value]>,
        /// Literals of the rule's own level.
        sources: Box<[Premise]>,
    },
}

/// A row of the rule's own level that a literal needed.
#[derive(Clone, Copy, Debug)]
pub(in crate::eval) struct Premise {
    /// The literal's place in the body.
    pub(in crate::eval) literal: usize,
    pub(in crate::eval) relation: u32,
    pub(in crate::eval) row: u32,
    /// Whether it held by a row that was replaced: in the end it rests on what it is a premise of.
    pub(in crate::eval) replaced: bool,
}

/// What is proved so far.
pub(super) struct Proofs {
    rows: FxHashMap<u32, Vec<Option<Proof>>>,
    /// Proved rows with which no rule has been worked off yet.
    open: VecDeque<(u32, u32)>,
    /// While it is looked for what gives the rows that are left over: the first way for each.
    left_over: Option<BTreeMap<(u32, u32), Proof>>,
    bytes: usize,
}

impl Proofs {
    fn has(&self, relation: u32, row: u32) -> bool {
        self.rows[&relation][row as usize].is_some()
    }

    fn add(&mut self, relation: u32, row: u32, proof: Proof) {
        if let Proof::Rule { registers, sources, .. } = &proof {
            self.bytes += size_of_val(&**registers) + size_of_val(&**sources);
        }
        let rows = self.rows.get_mut(&relation).expect("it is of the level");
        rows[row as usize] = Some(proof);
        self.open.push_back((relation, row));
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.open.capacity() * size_of::<(u32, u32)>()
    }

    fn is_complete(&self) -> bool {
        self.rows.values().flatten().all(Option::is_some)
    }

    /// By relation and row.
    pub(super) fn into_rows(self) -> FxHashMap<u32, Vec<Option<Proof>>> {
        self.rows
    }
}

impl Source {
    /// The number of its row.
    pub(super) fn row(&self, registers: &[Value]) -> u32 {
        registers[self.register as usize].as_integer().expect("row numbers are numbers") as u32
    }
}

impl Whole<'_, '_> {
    /// Proves the rows of a level, which are final.
    pub(super) fn prove(&mut self, members: &[u32]) -> Run<()> {
        let unproved = |member: &u32| (*member, vec![None; self.tables[self.table_of(*member)].len()]);
        let rows: FxHashMap<u32, Vec<Option<Proof>>> = members.iter().map(unproved).collect();
        let bytes = rows.values().map(|rows| rows.len() * size_of::<Option<Proof>>()).sum();
        self.proofs = Some(Proofs { rows, open: VecDeque::new(), left_over: None, bytes });
        let mut plans = Vec::new();
        for member in members {
            self.prove_facts(*member)?;
            for rule in &self.rules.derived[*member as usize].rules {
                let recursive = self.recursive(*member, *rule);
                let deltas = recursive.iter().copied().map(Some);
                for delta in deltas.chain(recursive.is_empty().then_some(None)) {
                    let mut plan = self.plan(*member, *rule, delta)?;
                    plan.counters = self.counters.len();
                    self.counters.resize(self.counters.len() + plan.steps.len(), Counter::default());
                    plans.push(plan);
                }
            }
        }
        for plan in plans.iter().filter(|plan| plan.delta.is_none()) {
            self.go(plan, 0, &mut vec![Value::from(0); plan.registers])?;
        }
        self.prove_from_open(&plans)?;
        self.prove_left_over(&plans)?;
        self.check()
    }

    /// Proves what follows from rows that are proved.
    fn prove_from_open(&mut self, plans: &[WholePlan]) -> Run<()> {
        while let Some((relation, row)) = self.proofs.as_mut().and_then(|proofs| proofs.open.pop_front()) {
            self.window = (row, row + 1);
            for plan in plans.iter().filter(|plan| plan.delta == Some(relation)) {
                self.go(plan, 0, &mut vec![Value::from(0); plan.registers])?;
            }
        }
        Ok(())
    }

    /// Gives rows a rule to which only rows that they have replaced led.
    fn prove_left_over(&mut self, plans: &[WholePlan]) -> Run<()> {
        match &mut self.proofs {
            Some(proofs) if !proofs.is_complete() => proofs.left_over = Some(BTreeMap::new()),
            _ => return Ok(()),
        }
        for plan in plans {
            if let Some(relation) = plan.delta {
                self.window = (0, self.tables[self.table_of(relation)].len() as u32);
            }
            self.go(plan, 0, &mut vec![Value::from(0); plan.registers])?;
        }
        let found = self.proofs.as_mut().and_then(|proofs| proofs.left_over.take()).unwrap_or_default();
        for ((relation, row), mut proof) in found {
            let Some(proofs) = &mut self.proofs else { continue };
            if proofs.has(relation, row) {
                continue;
            }
            if let Proof::Rule { sources, .. } = &mut proof {
                sources.iter_mut().for_each(|source| source.replaced = !proofs.has(source.relation, source.row));
            }
            proofs.add(relation, row, proof);
            self.prove_from_open(plans)?;
        }
        Ok(())
    }

    fn prove_facts(&mut self, relation: u32) -> Run<()> {
        let table = self.table_of(relation);
        let rules = self.rules;
        for (row, source) in &rules.derived[relation as usize].facts.rows {
            self.step()?;
            let found = self.tables[table].find(&self.own_row(row));
            if let (Some(number), Some(proofs)) = (found, &mut self.proofs)
                && !proofs.has(relation, number)
            {
                proofs.add(relation, number, Proof::Fact(*source));
            }
        }
        Ok(())
    }

    /// Takes a rule for the proof of the row that it gives: if that row is final and has none, and what it rests on has one.
    pub(super) fn prove_row(&mut self, plan: &WholePlan, row: &[Value], registers: &[Value]) {
        let Some(number) = self.tables[self.table_of(plan.head)].find(row) else { return };
        let Some(proofs) = &mut self.proofs else { return };
        let proved = |source: &Source| proofs.has(source.relation, source.row(registers));
        let known = match &proofs.left_over {
            Some(found) => found.contains_key(&(plan.head, number)),
            None => !plan.sources.iter().all(proved),
        };
        if known || proofs.has(plan.head, number) {
            return;
        }
        let named = self.rules.rules[plan.rule as usize].registers.len();
        let sources = plan.sources.iter().map(|source| Premise {
            literal: source.literal,
            relation: source.relation,
            row: source.row(registers),
            replaced: false,
        });
        let proof = Proof::Rule { rule: plan.rule, sources: sources.collect(), registers: registers[..named].into() };
        match &mut proofs.left_over {
            Some(found) => {
                found.insert((plan.head, number), proof);
            }
            None => proofs.add(plan.head, number, proof),
        }
    }
}
