//! What is known so far: goals, what was asked of each, the answers, and which plans wait for them.

use rustc_hash::FxHashMap;

use crate::eval::rows::{NONE, Rows};
use crate::value::Value;

/// A question about a relation with certain columns known, for all values of these.
#[derive(Debug)]
pub(super) struct Goal {
    pub(super) relation: u32,
    /// Bit mask of the known columns.
    pub(super) mask: u32,
    pub(super) level: u32,
    /// Columns that are asked for.
    pub(super) free: usize,
    /// The values asked about: row n belongs to `questions[n]`.
    pub(super) keys: Rows,
    pub(super) questions: Vec<Question>,
    /// The question's number, then the free columns.
    pub(super) answers: Rows,
    /// The next answer to the same question.
    pub(super) next: Vec<u32>,
    /// With explanations on: how each answer came about.
    pub(super) reasons: Vec<Reason>,
}

/// A goal for certain values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub(super) answers: Chain,
    pub(super) waiters: Chain,
    pub(super) started: bool,
    /// Whether it is in a queue.
    pub(super) queued: bool,
}

/// A list by next-pointers, and how much of it has been brought together with the other list of its question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) done: u32,
}

impl Chain {
    const EMPTY: Self = Self { first: NONE, last: NONE, done: NONE };

    pub(super) fn is_empty(self) -> bool {
        self.first == NONE
    }

    fn push(&mut self, number: u32, next: &mut [u32]) {
        match self.last {
            NONE => self.first = number,
            last => next[last as usize] = number,
        }
        self.last = number;
    }

    /// The first one that is not done yet.
    pub(super) fn open(self, next: &[u32]) -> u32 {
        match self.done {
            NONE => self.first,
            done => next[done as usize],
        }
    }
}

/// A rule's evaluation that goes on with each answer to a question, or once all answers are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The number of the plan.
    pub(super) plan: u32,
    /// The step that waits.
    pub(super) step: u32,
    /// The question that the rule answers.
    pub(super) question: u32,
    /// Where its registers begin in [`Store::registers`].
    pub(super) registers: usize,
}

/// How an answer came about.
#[derive(Clone, Debug)]
pub(super) enum Reason {
    /// It stands in the rule file: the number of the rule.
    Fact(u32),
    /// A plan gave it, with these registers.
    Plan(u32, Box<[Value]>),
    /// It is the row of this number of a relation that is computed whole.
    Closed(u32),
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) goals: Vec<Goal>,
    numbers: FxHashMap<(u32, u32), u32>,
    pub(super) frames: Vec<Frame>,
    pub(super) next_frame: Vec<u32>,
    pub(super) registers: Vec<Value>,
    /// Questions, answers and frames so far.
    pub(super) rows: usize,
    /// What they take, without what tables keep free.
    pub(super) bytes: usize,
}

/// What a row of so many values takes, with its place in a table and in a list.
fn row_bytes(values: usize) -> usize {
    values * size_of::<Value>() + 4 * size_of::<u32>()
}

impl Store {
    /// The number of the goal for a relation with these columns known.
    pub(super) fn goal(&mut self, relation: u32, mask: u32, arity: usize, level: u32) -> u32 {
        let number = self.goals.len() as u32;
        let found = *self.numbers.entry((relation, mask)).or_insert(number);
        if found == number {
            let known = mask.count_ones() as usize;
            self.goals.push(Goal {
                relation,
                mask,
                level,
                free: arity - known,
                keys: Rows::new(known),
                questions: Vec::new(),
                answers: Rows::new(1 + arity - known),
                next: Vec::new(),
                reasons: Vec::new(),
            });
        }
        found
    }

    /// The number of a question, and whether it is new.
    pub(super) fn question(&mut self, goal: u32, key: &[Value]) -> (u32, bool) {
        let goal = &mut self.goals[goal as usize];
        let (number, new) = goal.keys.insert(key);
        if new {
            let empty = Chain::EMPTY;
            goal.questions.push(Question { answers: empty, waiters: empty, started: false, queued: false });
            self.rows += 1;
            self.bytes += row_bytes(key.len()) + size_of::<Question>();
        }
        (number, new)
    }

    /// Adds an answer (the question's number, then the free columns); whether it is new.
    pub(super) fn answer(&mut self, goal: u32, question: u32, row: &[Value]) -> bool {
        let goal = &mut self.goals[goal as usize];
        let (number, new) = goal.answers.insert(row);
        if new {
            goal.next.push(NONE);
            goal.questions[question as usize].answers.push(number, &mut goal.next);
            self.rows += 1;
            self.bytes += row_bytes(row.len());
        }
        new
    }

    /// Keeps a rule's evaluation for later.
    pub(super) fn frame(&mut self, plan: u32, step: usize, question: u32, registers: &[Value]) -> u32 {
        let number = self.frames.len() as u32;
        let start = self.registers.len();
        self.registers.extend_from_slice(registers);
        self.frames.push(Frame { plan, step: step as u32, question, registers: start });
        self.next_frame.push(NONE);
        self.rows += 1;
        self.bytes += row_bytes(registers.len()) + size_of::<Frame>();
        number
    }

    /// Keeps how an answer came about.
    pub(super) fn reason(&mut self, goal: u32, reason: Reason) {
        let registers = if let Reason::Plan(_, registers) = &reason { registers.len() } else { 0 };
        self.bytes += row_bytes(registers) + size_of::<Reason>();
        self.goals[goal as usize].reasons.push(reason);
    }

    /// Lets a kept evaluation go on with each answer to a question.
    pub(super) fn wait(&mut self, goal: u32, question: u32, frame: u32) {
        self.goals[goal as usize].questions[question as usize].waiters.push(frame, &mut self.next_frame);
    }

    pub(super) fn at(&self, goal: u32, question: u32) -> &Question {
        &self.goals[goal as usize].questions[question as usize]
    }

    pub(super) fn at_mut(&mut self, goal: u32, question: u32) -> &mut Question {
        &mut self.goals[goal as usize].questions[question as usize]
    }
}
