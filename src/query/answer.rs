//! Answers: rows of the relations that are asked for, as operations come.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::datalog::base::Type;
use crate::datalog::eval::{Evaluator, Limits, Profile, Relation, Watch};
use crate::datalog::value::Value;
use crate::diagnostic::{Diagnostic, Diagnostics, Place, quantity};
use crate::query::codes;
use crate::query::facts::{Questioned, TraceFacts};
use crate::query::messages::Exchanges;
use crate::query::question::{Asked, Question, Scope};
use crate::query::search::Search;
use crate::tlc::Rules;
use crate::trace::{Operation, Sink, SpanTree, Toeg, TraceNames, Wanted};

/// Rows of one relation, of an operation or of the trace, that are kept to be sorted. A longer answer is given out as rows are found, so that
/// it needs no memory for them; that order depends on facts, and on rules and their order, alone. A caller that keeps all rows anyway takes
/// them [in order](Answering::in_order).
pub const SORTED: usize = 1 << 20;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'c> {
    /// A whole number.
    Whole(i64),
    /// Another number.
    Float(f64),
    /// A text, or the name of a thing that facts are about: the identifier of a span, the thread and counter of a node.
    Text(Cow<'c, str>),
}

/// Takes the rows of an answer.
pub trait Rows {
    /// Takes a row of the relation of that place in [`Question::asked`], with scenario and run where the scope is an operation;
    /// `Break` ends the answer early.
    fn row(&mut self, relation: usize, operation: Option<(&str, &str)>, cells: &[Cell<'_>]) -> ControlFlow<()>;
}

/// What there is to say about an answer.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// How many operations were asked about.
    pub operations: u64,
    /// How many of them have spans that were put back, where the question looks at spans.
    pub restored: u64,
    /// How many messages were asked about, where the trace tells of these.
    pub messages: u64,
    /// How many rows each relation has.
    pub rows: Vec<u64>,
    /// Constants that the trace does not have, and relations without a row.
    pub findings: Vec<Diagnostic>,
    /// What rules and literals cost, where that was watched.
    pub profile: Profile,
}

/// Answers a question about the operations of a reader; they must be well formed.
pub struct Answering<'q> {
    question: &'q Question,
    rules: &'q Rules,
    rows: &'q mut dyn Rows,
    spans: Option<SpanTree>,
    /// Of the whole trace, where that is the scope.
    kept: Vec<Questioned>,
    search: Search<'q>,
    told: Told,
    failure: Option<Diagnostics>,
    closed: bool,
    watch: Option<&'q Watch<'q>>,
    work: Option<&'q mut Work<'q>>,
    limits: Limits,
    in_order: bool,
    saw_spans: bool,
    /// By rule, how often arithmetic had no value.
    without_value: BTreeMap<usize, u64>,
}

/// What is done with facts in place of answering; they come with scenario and run where the scope is an operation. `Break` ends it.
pub type Work<'w> = dyn FnMut(&TraceFacts<'_>, Option<(&str, &str)>) -> Result<ControlFlow<()>, Diagnostics> + 'w;

impl<'q> Answering<'q> {
    /// Answers by a question; templates match by the rules.
    pub fn new(question: &'q Question, rules: &'q Rules, rows: &'q mut dyn Rows) -> Self {
        let told = Told { rows: vec![0; question.asked.len()], ..Told::default() };
        Self {
            question,
            rules,
            rows,
            spans: None,
            kept: Vec::new(),
            search: Search::new(&question.constants),
            told,
            failure: None,
            closed: false,
            watch: None,
            work: None,
            limits: Limits::default(),
            in_order: false,
            saw_spans: false,
            without_value: BTreeMap::new(),
        }
    }

    /// Rows come in order however many they are: they are kept until all are found, as far as the limits allow.
    #[must_use]
    pub fn in_order(mut self, in_order: bool) -> Self {
        self.in_order = in_order;
        self
    }

    /// With other limits than the usual ones; they hold for each evaluation.
    #[must_use]
    pub fn within(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Hands over the facts by which the question would be answered, and derives no rows.
    #[must_use]
    pub fn handing_over(mut self, work: &'q mut Work<'q>) -> Self {
        self.work = Some(work);
        self
    }

    /// Measures what rules and literals cost ([`Told::profile`]), and counts rows without giving them out. A limit that is reached
    /// ends the evaluation of an operation; what was measured until then is kept, and the profile says that it was interrupted.
    #[must_use]
    pub fn profiling(mut self, watch: &'q Watch<'q>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// All operations have come.
    ///
    /// # Errors
    /// When the evaluation of the rules gives up.
    pub fn finish(mut self, names: &TraceNames) -> Result<Told, Diagnostics> {
        if self.question.scope == Scope::Trace && self.failure.is_none() {
            let kept = std::mem::take(&mut self.kept);
            let all: Vec<&Questioned> = kept.iter().collect();
            let _ = self.answer(&all, names);
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let mut told = self.told;
        if !self.closed {
            told.findings.extend(self.search.finish());
            let lost =
                self.without_value.iter().map(|(rule, times)| without_value(&self.question.places[*rule], *times));
            told.findings.extend(lost);
            let derived = self.work.is_none();
            let empty = self.question.asked.iter().zip(&told.rows).filter(|(_, rows)| derived && **rows == 0);
            let lacks_spans = self.question.asks_spans && !self.saw_spans;
            let empty: Vec<Diagnostic> =
                empty.map(|(asked, _)| no_rows(asked, self.question.scope, lacks_spans)).collect();
            told.findings.extend(empty);
        }
        Ok(told)
    }

    /// Answers about one operation, or about several at once where the scope is the trace; [`Sink`] does so as they come.
    ///
    /// `Break` says that no more answers are wanted, or that there will be none.
    pub fn answer(&mut self, operations: &[&Questioned], names: &TraceNames) -> ControlFlow<()> {
        self.told.operations += operations.len() as u64;
        self.saw_spans |= operations.iter().any(|own| own.spans.is_some());
        let mended = |own: &&&Questioned| own.spans.as_ref().is_some_and(SpanTree::is_mended);
        self.told.restored += operations.iter().filter(mended).count() as u64;
        let facts =
            TraceFacts::new(operations.iter().copied(), names, self.rules).with_patterns(&self.question.patterns);
        let key = match (self.question.scope, operations) {
            (Scope::Operation, [only]) => {
                let operation = only.toeg.operation();
                Some((names.names.shared(operation.scenario), Arc::clone(&operation.run)))
            }
            _ => None,
        };
        let key = key.as_ref().map(|(scenario, run)| (&**scenario, &**run));
        self.answer_from(&facts, key, names)
    }

    /// Answers about messages. `Break` as for [`Answering::answer`].
    pub fn answer_messages(&mut self, exchanges: &Exchanges, names: &TraceNames) -> ControlFlow<()> {
        self.told.messages += exchanges.len() as u64;
        let facts = TraceFacts::about_messages(exchanges, names, self.rules).with_patterns(&self.question.patterns);
        self.answer_from(&facts, None, names)
    }

    fn answer_from(
        &mut self,
        facts: &TraceFacts<'_>,
        key: Option<(&str, &str)>,
        names: &TraceNames,
    ) -> ControlFlow<()> {
        self.search.look(facts, names);
        if let Some(work) = &mut self.work {
            let done = work(facts, key);
            return match (done, facts.failure()) {
                (Ok(flow), None) => {
                    self.closed |= flow.is_break();
                    flow
                }
                (Err(failure), _) | (_, Some(failure)) => {
                    self.failure = Some(failure);
                    ControlFlow::Break(())
                }
            };
        }
        let question = self.question;
        let mut evaluator = Evaluator::with_limits(&question.rules, facts, self.limits);
        if let Some(watch) = self.watch {
            let relations: Vec<Relation> = self.question.asked.iter().map(|asked| asked.relation).collect();
            let rows = &mut self.told.rows;
            let (profile, done) = evaluator.profile(&relations, Some(watch), &mut |place, _| {
                rows[place] += 1;
                ControlFlow::Continue(())
            });
            self.told.profile.merge(&profile);
            if let Err(Diagnostics(found)) = done {
                self.told.profile.interrupted = true;
                self.told.findings.extend(found);
            }
            return match facts.failure() {
                None if !self.told.profile.interrupted => ControlFlow::Continue(()),
                failure => {
                    self.failure = failure;
                    self.closed = true;
                    ControlFlow::Break(())
                }
            };
        }
        let relations: Vec<Relation> = question.asked.iter().map(|asked| asked.relation).collect();
        let mut kept = Kept::new(&relations, self.limits.bytes, self.in_order);
        let done = evaluator.stream_each(&relations, None, &mut |number, row| match kept.take(number, row) {
            Taken::Kept => ControlFlow::Continue(()),
            Taken::TooMany => {
                self.failure = Some(too_long(self.limits.bytes).into());
                ControlFlow::Break(())
            }
            Taken::Streamed => self.row(number, key, row, facts),
            Taken::Overflow(rows) => {
                rows.iter().chain([&row.to_vec()]).try_for_each(|row| self.row(number, key, row, facts))
            }
        });
        match (done, facts.failure()) {
            (Err(failure), _) | (_, Some(failure)) => self.failure = Some(failure),
            (Ok(profile), None) => {
                for rule in profile.rules.iter().filter(|rule| rule.without_value > 0) {
                    *self.without_value.entry(rule.rule).or_default() += rule.without_value;
                }
            }
        }
        if self.failure.is_some() || self.closed {
            return ControlFlow::Break(());
        }
        for (number, mut rows) in kept.rows.into_iter().enumerate() {
            sort(&mut rows, facts);
            rows.iter().try_for_each(|row| self.row(number, key, row, facts))?;
        }
        ControlFlow::Continue(())
    }

    fn row(
        &mut self,
        number: usize,
        key: Option<(&str, &str)>,
        row: &[Value],
        facts: &TraceFacts<'_>,
    ) -> ControlFlow<()> {
        let values = row.iter().zip(&self.question.asked[number].columns);
        let shared: Vec<Shown> = values.map(|(value, column)| shown(*value, column.kind, facts)).collect();
        let cells: Vec<Cell<'_>> = shared.iter().map(Shown::cell).collect();
        self.told.rows[number] += 1;
        let flow = self.rows.row(number, key, &cells);
        self.closed |= flow.is_break();
        flow
    }
}

/// Rows that wait for their order, by relation.
struct Kept {
    rows: Vec<Vec<Vec<Value>>>,
    /// Relations with too many rows to be kept.
    long: Vec<bool>,
    /// What each row takes, by relation, and how much there is left.
    bytes: Vec<usize>,
    room: usize,
    in_order: bool,
}

/// What becomes of a row.
enum Taken {
    Kept,
    /// It goes out at once.
    Streamed,
    /// Those that were kept before it go out, and then it.
    Overflow(Vec<Vec<Value>>),
    /// There is no room for the rows, and they are wanted in order.
    TooMany,
}

impl Kept {
    fn new(relations: &[Relation], room: usize, in_order: bool) -> Self {
        let count = relations.len();
        let room = if in_order { room } else { Limits::default().bytes };
        Self { rows: vec![Vec::new(); count], long: vec![false; count], bytes: vec![0; count], room, in_order }
    }

    fn take(&mut self, number: usize, row: &[Value]) -> Taken {
        if self.long[number] {
            return Taken::Streamed;
        }
        let bytes = ROW + size_of_val(row);
        let full = bytes > self.room;
        if full && self.in_order {
            return Taken::TooMany;
        }
        if full || (!self.in_order && self.rows[number].len() >= SORTED) {
            self.long[number] = true;
            self.room += self.bytes[number];
            return Taken::Overflow(std::mem::take(&mut self.rows[number]));
        }
        self.room -= bytes;
        self.bytes[number] += bytes;
        self.rows[number].push(row.to_vec());
        Taken::Kept
    }
}

/// What a row takes beside its values.
const ROW: usize = size_of::<Vec<Value>>() + 16;

/// An answer of more rows than may be kept, where they have to be.
pub fn too_long(bytes: usize) -> Diagnostic {
    let message = format!("the answer needs more than {} of memory", quantity::bytes(bytes));
    Diagnostic::error(codes::TOO_LONG, Place::Nowhere, message)
        .with_note(
            "a table and a document are kept until all rows are known, and so are the rows with the largest values",
        )
        .with_hint("`--format csv`, `jsonl` and `parquet` write rows as they come; `--max-memory` allows for more")
}

/// Texts in the order of letters, other values by size.
fn sort(rows: &mut [Vec<Value>], facts: &TraceFacts<'_>) {
    rows.sort_unstable_by(|left, right| {
        let pairs = left.iter().zip(right);
        pairs.map(|(left, right)| compare(*left, *right, facts)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
}

/// Rows from which nothing follows, since arithmetic of a rule has no value there.
fn without_value(rule: &Place, times: u64) -> Diagnostic {
    let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    Diagnostic::warning(codes::WITHOUT_VALUE, rule.clone(), format!("arithmetic of this rule had no value {times}"))
        .with_note("it divided by 0, or a result was out of range; nothing follows where that happens")
        .with_hint("a comparison that leaves such values out, such as `All > 0`, says that this is meant")
}

fn no_rows(asked: &Asked, scope: Scope, lacks_spans: bool) -> Diagnostic {
    let finding = Diagnostic::warning(codes::NO_ROWS, Place::Nowhere, format!("`{}` has no row", asked.name));
    if lacks_spans {
        return finding
            .with_note("the question is about spans, and the trace has none")
            .with_hint("traces in the native format tell of nodes: `node`, `task`, `name`, `time` and others");
    }
    finding.with_note(if scope == Scope::Messages {
        "the rules were asked about all messages, and derive none"
    } else {
        "the rules were asked about all operations, and none derives one"
    })
}

/// Numbers by size, then symbols by their texts.
fn compare(left: Value, right: Value, facts: &TraceFacts<'_>) -> Ordering {
    match (left.as_symbol(), right.as_symbol()) {
        (Some(one), Some(other)) if one != other => facts.text(one).cmp(&facts.text(other)),
        _ => left.cmp(&right),
    }
}

/// A value with what it borrows.
enum Shown {
    Whole(i64),
    Float(f64),
    Shared(Arc<str>),
    Text(String),
}

impl Shown {
    fn cell(&self) -> Cell<'_> {
        match self {
            Self::Whole(number) => Cell::Whole(*number),
            Self::Float(number) => Cell::Float(*number),
            Self::Shared(text) => Cell::Text(Cow::Borrowed(text)),
            Self::Text(text) => Cell::Text(Cow::Borrowed(text)),
        }
    }
}

fn shown(value: Value, kind: Type, facts: &TraceFacts<'_>) -> Shown {
    if let Some(symbol) = value.as_symbol() {
        return Shown::Shared(facts.text(symbol));
    }
    if let Some(number) = value.as_decimal() {
        return Shown::Float(number);
    }
    match facts.label(kind, value) {
        Some(label) => Shown::Text(label),
        None => Shown::Whole(value.as_integer().unwrap_or_default()),
    }
}

impl Sink for Answering<'_> {
    fn wanted(&self) -> Arc<Wanted> {
        Arc::clone(&self.question.wanted)
    }

    fn spans(&mut self, _: &TraceNames, spans: SpanTree) {
        self.spans = Some(spans);
    }

    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        let spans = self.spans.take();
        // The gate lets well-formed operations through only.
        let Ok(toeg) = Toeg::build(operation) else { return ControlFlow::Continue(()) };
        let questioned = Questioned { toeg, spans };
        match self.question.scope {
            Scope::Trace => {
                self.kept.push(questioned);
                ControlFlow::Continue(())
            }
            Scope::Operation | Scope::Messages => self.answer(&[&questioned], names),
        }
    }
}
