//! Goal-directed evaluation: questions, answers, and rules that wait for them.
//!
//! A question is a relation with values for some columns. Asking it for the first time starts the plans of the relation's
//! rules. A plan that needs another relation asks a question in turn and *waits*: its registers are kept and it goes on
//! with every answer, those that come later too. So recursion over data never becomes recursion on the stack, cycles end
//! by themselves, and nothing is computed that no question leads to.
//!
//! Relations have levels (components of their dependencies). Work of the lowest level goes first, so that whatever a rule
//! finds at a lower level is complete: that is what negation and aggregates need. They wait until a level has no work.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::base::BaseFacts;
use crate::codes;
use crate::eval::invention;
use crate::eval::plan::{Context, GoalPlan, GoalStep, plan};
use crate::eval::profile::{Profile, Watch};
use crate::eval::program::{CompiledRules, Relation};
use crate::eval::rows::{NONE, Rows};
use crate::eval::steps::unify;
use crate::eval::store::{Reason, Store};
use crate::eval::whole::{self, Closed};
use crate::value::Value;
use dyelog_diagnostic::quantity::bytes;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

/// How much an [`Evaluator`] may do over its life.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Questions, answers and waiting rules that are kept; each takes some 100 bytes.
    pub rows: usize,
    /// Rows looked at.
    pub steps: u64,
    /// Bytes that all of these take, and that whole relations take while they are computed; each counts by itself.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows: 20_000_000, steps: 2_000_000_000, bytes: 2_000_000_000 }
    }
}

/// The limit that was reached.
#[derive(Clone, Copy, Debug)]
pub(super) enum Exhausted {
    Rows,
    Bytes,
    Steps,
    /// A recursion makes more numbers than the facts give evidence for, at a relation of this level.
    Invented(u32),
    /// Best values get better for ever, by the rule of this number.
    Endless(u32),
    /// The caller wants no more.
    Stopped,
}

pub(super) type Run<T> = Result<T, Exhausted>;

/// Answers questions about the relations of a program over one set of facts, and remembers the answers.
pub struct Evaluator<'p> {
    pub(super) rules: &'p CompiledRules,
    pub(super) facts: &'p dyn BaseFacts,
    pub(super) limits: Limits,
    /// The program's strings as values of the facts, and back.
    pub(super) symbols: Vec<Value>,
    own: FxHashMap<Value, Value>,
    pub(super) store: Store,
    pub(super) plans: Vec<Arc<GoalPlan>>,
    /// The plans of each goal, once it has been asked.
    goal_plans: Vec<Option<Arc<[u32]>>>,
    queues: Vec<VecDeque<(u32, u32)>>,
    pub(super) delayed: Vec<Vec<u32>>,
    /// Levels with work: those with questions queued, and (`true`) those whose completion is waited for.
    pub(super) active: BTreeSet<(u32, bool)>,
    /// Everything below this level is complete, but for what is queued.
    pub(super) level: u32,
    pub(super) steps: u64,
    explaining: bool,
    /// How many rows each rule gave first, to say where rows come from.
    given: Vec<u64>,
    pub(super) scratch: Vec<Value>,
    pub(super) pattern: Vec<Option<Value>>,
    pub(super) row: Vec<Value>,
    spare: Vec<Value>,
    /// A limit that was reached: what is kept is then incomplete for good.
    failed: Option<Exhausted>,
    /// Relations that are computed whole, once they were asked.
    pub(super) closed: FxHashMap<u32, Closed>,
    /// Answers with numbers that a recursion made so far, and how many there may be of an unbounded one.
    invented: usize,
    room: usize,
    /// The level at which there were more.
    overrun: Option<u32>,
}

impl<'p> Evaluator<'p> {
    /// An evaluator that knows nothing yet, with the usual limits.
    pub fn new(rules: &'p CompiledRules, facts: &'p dyn BaseFacts) -> Self {
        Self::with_limits(rules, facts, Limits::default())
    }

    /// The same with other limits.
    pub fn with_limits(rules: &'p CompiledRules, facts: &'p dyn BaseFacts, limits: Limits) -> Self {
        let text = rules.symbols.iter().enumerate();
        let symbols: Vec<Value> =
            text.map(|(number, text)| facts.symbol(text).unwrap_or(Value::own(number as u32))).collect();
        let own = symbols.iter().enumerate().map(|(number, value)| (*value, Value::own(number as u32))).collect();
        Self {
            rules,
            facts,
            limits,
            symbols,
            own,
            store: Store::default(),
            plans: Vec::new(),
            goal_plans: Vec::new(),
            queues: vec![VecDeque::new(); rules.levels as usize],
            delayed: vec![Vec::new(); rules.levels as usize],
            active: BTreeSet::new(),
            level: 0,
            steps: 0,
            explaining: false,
            given: vec![0; rules.rules.len()],
            scratch: Vec::new(),
            pattern: Vec::new(),
            row: Vec::new(),
            spare: Vec::new(),
            failed: None,
            closed: FxHashMap::default(),
            invented: 0,
            overrun: None,
            room: invention::room(rules, facts),
        }
    }

    /// Keeps for each answer how it came about, for [`Evaluator::explain`]. Call it before the first question.
    #[must_use]
    pub fn with_explanations(mut self) -> Self {
        self.explaining = true;
        self
    }

    pub(super) fn explains(&self) -> bool {
        self.explaining
    }

    /// The text of a string that only the rule file knows: what the facts' table has no symbol for.
    pub fn own_text(&self, value: Value) -> Option<&str> {
        self.rules.symbols.get_index(value.as_own()? as usize).map(|text| &**text)
    }

    /// A symbol of the rule file or the facts.
    pub fn symbol(&self, text: &str) -> Option<Value> {
        self.facts.symbol(text).or_else(|| self.symbols.get(self.rules.symbols.get_index_of(text)?).copied())
    }

    /// Whether a row holds.
    ///
    /// # Errors
    /// When a limit is reached.
    pub fn holds(&mut self, relation: Relation, row: &[Value]) -> Result<bool, Diagnostics> {
        let pattern: Vec<Option<Value>> = row.iter().copied().map(Some).collect();
        self.any(relation, &pattern)
    }

    /// Whether any row agrees with the pattern.
    ///
    /// # Errors
    /// When a limit is reached.
    pub fn any(&mut self, relation: Relation, pattern: &[Option<Value>]) -> Result<bool, Diagnostics> {
        if pattern.len() != self.rules.arity(relation) {
            return Ok(false);
        }
        match relation {
            Relation::Base(base) => {
                let mut found = false;
                self.facts.lookup(base, pattern, &mut |_| {
                    found = true;
                    ControlFlow::Break(())
                });
                Ok(found)
            }
            Relation::Derived(number) => {
                let (goal, question) = self.solve(number, pattern, true)?;
                Ok(!self.store.at(goal, question).answers.is_empty())
            }
        }
    }

    /// All rows that agree with the pattern, each once: sorted, numbers by size before symbols by their place in the
    /// facts' table. Where nothing is known, the whole relation is computed anew.
    ///
    /// # Errors
    /// When a limit is reached.
    pub fn query(&mut self, relation: Relation, pattern: &[Option<Value>]) -> Result<Vec<Vec<Value>>, Diagnostics> {
        let mut rows = Vec::new();
        if pattern.len() != self.rules.arity(relation) {
            return Ok(rows);
        }
        match relation {
            Relation::Derived(_) if !self.explaining && pattern.iter().all(Option::is_none) => {
                self.stream(relation, &mut |row| {
                    rows.push(row.to_vec());
                    ControlFlow::Continue(())
                })?;
            }
            Relation::Base(base) => self.facts.lookup(base, pattern, &mut |row| {
                rows.push(row.to_vec());
                ControlFlow::Continue(())
            }),
            Relation::Derived(number) => {
                let (goal, question) = self.solve(number, pattern, false)?;
                let goal = &self.store.goals[goal as usize];
                let mut answer = goal.questions[question as usize].answers.first;
                while answer != NONE {
                    let mut free = goal.answers.row(answer)[1..].iter().copied();
                    rows.push(pattern.iter().filter_map(|known| known.or_else(|| free.next())).collect());
                    answer = goal.next[answer as usize];
                }
            }
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(rows)
    }

    /// Hands on each row of a relation once, as it is found, until `out` says `Break`. The whole relation is computed anew,
    /// and what is not read again is not kept. The order of rows depends on rules and facts alone.
    ///
    /// # Errors
    /// When a limit is reached. Rows handed on until then do hold, unless best values got better for ever.
    pub fn stream(
        &mut self,
        relation: Relation,
        out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>,
    ) -> Result<(), Diagnostics> {
        self.stream_each(&[relation], None, &mut |_, row| out(row)).map(drop)
    }

    /// The same of several relations at once, which are told apart by their place in the list. What they share is computed
    /// once. With a watch, says what it cost; without one, times are 0.
    ///
    /// # Errors
    /// When a limit is reached.
    pub fn stream_each(
        &mut self,
        relations: &[Relation],
        watch: Option<&Watch<'_>>,
        out: &mut dyn FnMut(usize, &[Value]) -> ControlFlow<()>,
    ) -> Result<Profile, Diagnostics> {
        let (profile, done) = self.profile(relations, watch, out);
        done.map(|()| profile)
    }

    /// The same, with what was measured until a limit was reached.
    pub fn profile(
        &mut self,
        relations: &[Relation],
        watch: Option<&Watch<'_>>,
        out: &mut dyn FnMut(usize, &[Value]) -> ControlFlow<()>,
    ) -> (Profile, Result<(), Diagnostics>) {
        let mut profile = Profile::default();
        for (place, relation) in relations.iter().enumerate() {
            let Relation::Base(base) = relation else { continue };
            let mut stopped = false;
            let mut seen = Rows::new(self.rules.arity(*relation));
            self.facts.lookup(*base, &vec![None; self.rules.arity(*relation)], &mut |row| {
                stopped = seen.insert(row).1 && out(place, row).is_break();
                if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if stopped {
                return (profile, Ok(()));
            }
        }
        let derived = |relation: &Relation| match relation {
            Relation::Derived(number) => Some(*number),
            Relation::Base(_) => None,
        };
        let wanted: Vec<u32> = relations.iter().filter_map(derived).collect();
        let mut places: Vec<usize> = vec![0; self.rules.derived.len()];
        for (place, relation) in relations.iter().enumerate().rev() {
            if let Some(number) = derived(relation) {
                places[number as usize] = place;
            }
        }
        let mut sink = |number: u32, row: &[Value]| out(places[number as usize], row);
        let done = whole::stream(self.input(watch), &wanted, &mut sink, &mut profile);
        let done = match done {
            Ok(()) | Err(Exhausted::Stopped) => Ok(()),
            Err(limit) => {
                let given: Vec<(usize, u64)> = profile.rules.iter().map(|rule| (rule.rule, rule.rows)).collect();
                Err(self.exhausted(limit, wanted[0], &given).into())
            }
        };
        (profile, done)
    }

    fn input<'i>(&'i self, watch: Option<&'i Watch<'i>>) -> whole::Input<'i> {
        let (rules, facts, limits) = (self.rules, self.facts, self.limits);
        whole::Input { rules, facts, symbols: &self.symbols, limits, room: self.room, watch }
    }

    /// Answers a question about a relation that is computed whole.
    fn look_up_closed(&mut self, goal: u32, question: u32) -> Run<()> {
        let found = &self.store.goals[goal as usize];
        let (relation, mask) = (found.relation, found.mask);
        let mut key = found.keys.row(question).iter();
        let arity = self.rules.derived[relation as usize].arity;
        let pattern: Vec<Option<Value>> =
            (0..arity).map(|column| if mask >> column & 1 == 1 { key.next().copied() } else { None }).collect();
        if !self.closed.contains_key(&relation) {
            let level = self.rules.derived[relation as usize].level;
            let relations = 0..self.rules.derived.len() as u32;
            let members: Vec<u32> =
                relations.filter(|other| self.rules.derived[*other as usize].level == level).collect();
            let closed = whole::closed(self.input(None), &members, self.explaining)?;
            self.closed.extend(closed);
        }
        let mut closed = self.closed.remove(&relation).expect("it is of its own level");
        for row in closed.table.matching(&pattern) {
            self.step()?;
            let free =
                (0..arity).filter(|column| pattern[*column].is_none()).map(|column| closed.table.cell(row, column));
            let answer: Vec<Value> = std::iter::once(Value::from(question)).chain(free).collect();
            self.answer(goal, question, &answer, || Reason::Closed(row));
        }
        self.closed.insert(relation, closed);
        Ok(())
    }

    /// Questions, answers and waiting rules kept so far: what [`Limits::rows`] limits.
    pub fn rows(&self) -> usize {
        self.store.rows
    }

    /// Asks a question and works until it is answered: completely, or (`first`) at all.
    pub(super) fn solve(
        &mut self,
        relation: u32,
        pattern: &[Option<Value>],
        first: bool,
    ) -> Result<(u32, u32), Diagnostics> {
        let mask = pattern.iter().enumerate().map(|(column, known)| u32::from(known.is_some()) << column).sum();
        let key: Vec<Value> = pattern.iter().copied().flatten().collect();
        let goal = goal_number(&mut self.store, self.rules, relation, mask);
        let (question, new) = self.store.question(goal, &key);
        if new {
            self.enqueue(goal, question);
        }
        if self.failed.is_none() {
            self.failed = self.work(goal, question, first).err();
        }
        match self.failed {
            None => Ok((goal, question)),
            Some(limit) => {
                let rules = self.given.iter().enumerate();
                let given: Vec<(usize, u64)> =
                    rules.map(|(number, given)| (self.rules.rules[number].source as usize, *given)).collect();
                Err(self.exhausted(limit, relation, &given).into())
            }
        }
    }

    /// `given` has how many rows each rule gave, by the rule's place in the program.
    fn exhausted(&self, limit: Exhausted, relation: u32, given: &[(usize, u64)]) -> Diagnostic {
        let name = &self.rules.derived[relation as usize].name;
        let of_rule = |source: usize| {
            let mut derived = self.rules.derived.iter().filter(|derived| !derived.aggregate);
            derived.find(|derived| {
                derived.rules.iter().any(|number| self.rules.rules[*number as usize].source as usize == source)
            })
        };
        let level = if let Exhausted::Invented(level) = limit { Some(level) } else { None };
        let invents = |source: usize| {
            let mut own = self.rules.rules.iter().filter(|rule| rule.source as usize == source);
            own.any(|rule| rule.invents) && of_rule(source).map(|derived| derived.level) == level
        };
        let concerned = |source: usize| level.is_none() || invents(source);
        // The first of those that gave most.
        let rule = given
            .iter()
            .filter(|(source, _)| concerned(*source))
            .max_by_key(|(source, given)| (*given, std::cmp::Reverse(*source)));
        let rule = rule.filter(|(_, given)| *given > 0);
        let place = rule.map(|(source, given)| (self.rules.places[*source].clone(), *given));
        let most = rule.and_then(|(source, _)| of_rule(*source)).map_or(name, |derived| &derived.name);
        let (code, message) = match limit {
            Exhausted::Rows => {
                (codes::ROW_LIMIT, format!("`{name}` needs more than {} rows to be kept", self.limits.rows))
            }
            Exhausted::Bytes => {
                let limit = bytes(self.limits.bytes);
                (codes::ROW_LIMIT, format!("`{name}` needs more than {limit} of memory"))
            }
            Exhausted::Steps => {
                (codes::STEP_LIMIT, format!("`{name}` needs more than {} rows to be looked at", self.limits.steps))
            }
            Exhausted::Invented(_) => {
                let message = format!("the recursion of `{most}` makes ever more numbers");
                let (place, given) = place.unwrap_or((Place::Nowhere, 0));
                return Diagnostic::error(codes::ROW_LIMIT, place, message)
                    .with_label(format!("this rule gave {given} rows"))
                    .with_note("no fact has these numbers, and nothing in the body ends the recursion early")
                    .with_hint("bound the number, for instance by `X < 100`, or take it from a relation");
            }
            Exhausted::Endless(rule) => {
                let place = self.rules.places[rule as usize].clone();
                return Diagnostic::error(codes::NO_BEST, place, "best values that get better for ever".to_owned())
                    .with_note("a row's value rests on itself, and each time round it gets better")
                    .with_hint("leave circles out of what it follows, or add what makes a value worse");
            }
            Exhausted::Stopped => unreachable!("nothing stops a question"),
        };
        let finding = match place {
            Some((place, given)) => {
                Diagnostic::error(code, place, message).with_label(format!("this rule gave {given} rows"))
            }
            // What rules ask for was too much already.
            None => {
                let first = self.rules.derived[relation as usize].rules.first();
                let source = first.map(|rule| self.rules.rules[*rule as usize].source as usize);
                let place = source.map_or(Place::Nowhere, |source| self.rules.places[source].clone());
                Diagnostic::error(code, place, message)
            }
        };
        finding.with_note(format!("most rows belong to `{most}`")).with_hint(
            "ask with more columns known, bind variables by a selective relation, or bound a recursion over numbers",
        )
    }

    pub(super) fn enqueue(&mut self, goal: u32, question: u32) {
        let waiting = self.store.at_mut(goal, question);
        if !waiting.queued {
            waiting.queued = true;
            let level = self.store.goals[goal as usize].level;
            self.queues[level as usize].push_back((goal, question));
            self.active.insert((level, false));
        }
    }

    fn work(&mut self, goal: u32, question: u32, first: bool) -> Run<()> {
        let until = self.store.goals[goal as usize].level;
        while let Some(&(level, delayed)) = self.active.first() {
            let answered = !self.store.at(goal, question).answers.is_empty();
            if level > until || (level == until && delayed) || (first && answered) {
                break;
            }
            if delayed {
                // Nothing is left to do at this level and below.
                self.level = level + 1;
                self.active.remove(&(level, true));
                for frame in std::mem::take(&mut self.delayed[level as usize]) {
                    self.resume(frame, None)?;
                }
            } else if let Some((goal, question)) = self.queues[level as usize].pop_front() {
                self.level = level;
                self.store.at_mut(goal, question).queued = false;
                self.serve(goal, question)?;
            } else {
                self.active.remove(&(level, false));
            }
        }
        Ok(())
    }

    /// Starts a question, and joins its answers with the plans that wait for them: old with new, new with all.
    fn serve(&mut self, goal: u32, number: u32) -> Run<()> {
        let question = *self.store.at(goal, number);
        if !question.started {
            self.store.at_mut(goal, number).started = true;
            self.start(goal, number)?;
        }
        let question = *self.store.at(goal, number);
        let (answers, waiters) = (question.answers, question.waiters);
        if answers.is_empty() || waiters.is_empty() {
            return Ok(());
        }
        let now = self.store.at_mut(goal, number);
        now.answers.done = answers.last;
        now.waiters.done = waiters.last;
        let fresh_answer = answers.open(&self.store.goals[goal as usize].next);
        let fresh_waiter = waiters.open(&self.store.next_frame);
        // Nothing new for the plans that waited before: begin with the new ones.
        let mut waiter = if fresh_answer == NONE { fresh_waiter } else { waiters.first };
        let mut answer = fresh_answer;
        while waiter != NONE {
            if waiter == fresh_waiter {
                answer = answers.first;
            }
            self.feed(goal, waiter, answer, answers.last)?;
            if waiter == waiters.last {
                break;
            }
            waiter = self.store.next_frame[waiter as usize];
        }
        Ok(())
    }

    /// Lets a frame go on with the answers from one to another.
    fn feed(&mut self, goal: u32, frame: u32, from: u32, to: u32) -> Run<()> {
        let mut answer = from;
        while answer != NONE {
            self.resume(frame, Some((goal, answer)))?;
            if answer == to {
                break;
            }
            answer = self.store.goals[goal as usize].next[answer as usize];
        }
        Ok(())
    }

    fn resume(&mut self, number: u32, answer: Option<(u32, u32)>) -> Run<()> {
        let frame = self.store.frames[number as usize];
        let plan = Arc::clone(&self.plans[frame.plan as usize]);
        if self.settled(&plan, frame.question) {
            return Ok(());
        }
        let mut registers = std::mem::take(&mut self.spare);
        registers.clear();
        registers.extend_from_slice(&self.store.registers[frame.registers..frame.registers + plan.registers]);
        self.step()?;
        let mut step = frame.step as usize;
        let mut fits = true;
        if let (Some((goal, answer)), GoalStep::Goal { free, .. }) = (answer, &plan.steps[step]) {
            let row = &self.store.goals[goal as usize].answers.row(answer)[1..];
            fits = unify(free, row, &mut registers);
            step += 1;
        }
        if fits {
            self.go_on(frame.plan, &plan, step, frame.question, &mut registers)?;
        }
        self.spare = registers;
        Ok(())
    }

    /// Whether a question can have no further answer: nothing is asked for but whether it holds, and it does.
    pub(super) fn settled(&self, plan: &GoalPlan, question: u32) -> bool {
        let goal = &self.store.goals[plan.goal as usize];
        goal.free == 0 && !goal.questions[question as usize].answers.is_empty()
    }

    pub(super) fn step(&mut self) -> Run<()> {
        self.steps += 1;
        if self.steps > self.limits.steps {
            return Err(Exhausted::Steps);
        }
        if self.store.rows > self.limits.rows {
            return Err(Exhausted::Rows);
        }
        if self.store.bytes > self.limits.bytes {
            return Err(Exhausted::Bytes);
        }
        self.overrun.map_or(Ok(()), |level| Err(Exhausted::Invented(level)))
    }

    /// The first work on a question: rows of the rule file, then the plans of the relation's rules.
    fn start(&mut self, goal: u32, question: u32) -> Run<()> {
        if self.rules.derived[self.store.goals[goal as usize].relation as usize].closed {
            return self.look_up_closed(goal, question);
        }
        self.start_facts(goal, question)?;
        let plans = self.plans_of(goal);
        let key = self.store.goals[goal as usize].keys.row(question).to_vec();
        for &number in plans.iter() {
            let plan = Arc::clone(&self.plans[number as usize]);
            if self.settled(&plan, question) {
                break;
            }
            let mut registers = vec![Value::from(0); plan.registers];
            self.step()?;
            if unify(&plan.given, &key, &mut registers) {
                self.go_on(number, &plan, 0, question, &mut registers)?;
            }
        }
        Ok(())
    }

    fn start_facts(&mut self, goal: u32, question: u32) -> Run<()> {
        let rules = self.rules;
        let found = &self.store.goals[goal as usize];
        let facts = &rules.derived[found.relation as usize].facts;
        if facts.rows.is_empty() {
            return Ok(());
        }
        let mut key = found.keys.row(question).iter();
        let mask = found.mask;
        let arity = rules.derived[found.relation as usize].arity;
        let mut pattern = Vec::with_capacity(arity);
        for column in 0..arity {
            let known = if mask >> column & 1 == 1 { key.next().copied() } else { None };
            // The rule file's rows hold the rule file's own strings.
            pattern.push(known.map(|value| self.own.get(&value).copied().unwrap_or(value)));
        }
        for number in facts.candidates(&pattern) {
            self.step()?;
            let (row, source) = &facts.rows[number as usize];
            if pattern.iter().zip(row).all(|(known, value)| known.is_none_or(|known| known == *value)) {
                let free = row.iter().zip(&pattern).filter(|(_, known)| known.is_none());
                let mut answer = vec![Value::from(question)];
                answer.extend(free.map(|(value, _)| value.as_own().map_or(*value, |own| self.symbols[own as usize])));
                let source = *source;
                self.answer(goal, question, &answer, || Reason::Fact(source));
            }
        }
        Ok(())
    }

    fn plans_of(&mut self, goal: u32) -> Arc<[u32]> {
        let place = goal as usize;
        if let Some(Some(plans)) = self.goal_plans.get(place) {
            return Arc::clone(plans);
        }
        let (relation, mask) = (self.store.goals[place].relation, self.store.goals[place].mask);
        let rules = self.rules;
        let mut numbers = Vec::new();
        for rule in &rules.derived[relation as usize].rules {
            let store = &mut self.store;
            let mut context = Context {
                facts: self.facts,
                symbols: &self.symbols,
                goal: &mut |relation, mask| goal_number(store, rules, relation, mask),
                recursive: &|other| rules.derived[other as usize].level == rules.derived[relation as usize].level,
            };
            let plan = plan(*rule, &rules.rules[*rule as usize], goal, mask, &mut context);
            numbers.push(self.plans.len() as u32);
            self.plans.push(Arc::new(plan));
        }
        self.goal_plans.resize(self.goal_plans.len().max(place + 1), None);
        let numbers: Arc<[u32]> = numbers.into();
        self.goal_plans[place] = Some(Arc::clone(&numbers));
        numbers
    }

    /// A plan's row, as an answer.
    pub(super) fn finish(&mut self, number: u32, plan: &GoalPlan, question: u32, registers: &[Value]) {
        let key = self.store.goals[plan.goal as usize].keys.row(question);
        if !plan.checks.iter().all(|(place, check)| check.value(registers) == Some(key[*place])) {
            return;
        }
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        row.push(Value::from(question));
        row.extend(plan.result.iter().map_while(|expression| expression.value(registers)));
        if row.len() == plan.result.len() + 1 {
            let new = self.answer(plan.goal, question, &row, || Reason::Plan(number, registers.into()));
            self.given[plan.rule as usize] += u64::from(new);
        }
        self.row = row;
    }

    fn answer(&mut self, goal: u32, question: u32, row: &[Value], reason: impl FnOnce() -> Reason) -> bool {
        if !self.store.answer(goal, question, row) {
            return false;
        }
        let derived = &self.rules.derived[self.store.goals[goal as usize].relation as usize];
        if let Some(share) = derived.invention.share() {
            self.invented += 1;
            self.overrun = self.overrun.or((self.invented / share > self.room).then_some(derived.level));
        }
        if self.explaining {
            self.store.reason(goal, reason());
        }
        if !self.store.at(goal, question).waiters.is_empty() {
            self.enqueue(goal, question);
        }
        true
    }
}

fn goal_number(store: &mut Store, rules: &CompiledRules, relation: u32, mask: u32) -> u32 {
    let derived = &rules.derived[relation as usize];
    store.goal(relation, mask, derived.arity, derived.level)
}
