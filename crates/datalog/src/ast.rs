//! What a rule file says, with the byte range of every part.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::event_template::EventTemplate;
use dyelog_diagnostic::Place;

/// A byte range of a rule file, with the file's number in the program's list of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Index into [`Program::files`].
    pub file: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The byte range within the file.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// From the start of the one to the end of the other.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { file: self.file, start: self.start, end: other.end }
    }
}

/// A part with its place. Two parts are equal when what they say is, wherever they stand.
#[derive(Clone, Debug)]
pub struct Spanned<T> {
    /// The part.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// An identifier with its place.
pub type Ident = Spanned<Arc<str>>;

/// A file of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceFile {
    /// Its name as the user gave it, or `rules/tlc.dl` for a shipped one.
    pub name: Arc<str>,
    /// Its text.
    pub text: Arc<str>,
}

/// Rule files, read and put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The files, each once, in the order of first use.
    pub files: Vec<SourceFile>,
    /// Templates, in the order of the text.
    pub templates: Vec<Template>,
    /// Templates on events, in the order of the text.
    pub event_templates: Vec<EventTemplate>,
    /// Datalog rules, in the order of the text.
    pub rules: Vec<Rule>,
    /// Relations that the files answer with, in the order of the text.
    pub outputs: Vec<Output>,
    /// Relations that files show to those that use them.
    pub exports: Vec<Ident>,
    /// Which file uses which, in the order of the text.
    pub uses: Vec<UsedFile>,
    /// What is missing of it.
    pub lost: Lost,
}

impl Program {
    /// The place of a span, for findings.
    pub fn place(&self, span: Span) -> Place {
        match self.files.get(span.file as usize) {
            Some(file) => {
                Place::Range { file: Arc::clone(&file.name), start: span.start as usize, end: span.end as usize }
            }
            None => Place::Nowhere,
        }
    }

    /// The file of a span and the line there, from 1; line 0 of `rules` where it is of none.
    pub fn line(&self, span: Span) -> (Arc<str>, usize) {
        self.files.get(span.file as usize).map_or_else(
            || ("rules".into(), 0),
            |file| {
                let before = file.text.get(..span.start as usize).unwrap_or_default();
                (Arc::clone(&file.name), before.matches('\n').count() + 1)
            },
        )
    }

    /// What a span says, in one line.
    pub fn text(&self, span: Span) -> String {
        let file = self.files.get(span.file as usize);
        let text = file.and_then(|file| file.text.get(span.start as usize..span.end as usize)).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A file's use of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedFile {
    /// The file that is used, by its place in [`Program::files`]. The file that uses it is that of the span.
    pub file: u32,
    /// The file's name after `use`.
    pub span: Span,
}

/// `slow(trace, span, ms)` after `output`: a relation that a file answers with.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The relation.
    pub relation: Ident,
    /// Names of its columns, where the author gave some.
    pub columns: Option<Vec<Ident>>,
    /// The whole text.
    pub span: Span,
}

/// What could not be read of a program: what is said of the rest must not follow from that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lost {
    /// Whether a file is missing, which may define anything.
    pub files: bool,
    /// Names that items may define that could not be read.
    pub names: Vec<Arc<str>>,
}

impl Lost {
    /// Whether it may define that name.
    pub fn may_define(&self, name: &str) -> bool {
        self.files || self.names.iter().any(|lost| **lost == *name)
    }

    /// Whether anything is missing.
    pub fn anything(&self) -> bool {
        self.files || !self.names.is_empty()
    }
}

/// A template: how one kind of interaction looks, and what it means for the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Its name.
    pub name: Ident,
    /// Its doc comment, lines joined by newlines.
    pub doc: String,
    /// Its place in the order of trial; lower goes first, ties in the order of the text.
    pub order: Option<Spanned<i64>>,
    /// Whether its `repeat` takes the largest n that fits instead of the smallest.
    pub longest: bool,
    /// The nodes to match.
    pub items: Vec<MatchItem>,
    /// Conditions.
    pub conditions: Vec<Spanned<Condition>>,
    /// What to do with a match.
    pub statements: Vec<Statement>,
    /// Notes that the template expects of a test, in the text's words.
    pub expects: Vec<Spanned<Arc<str>>>,
    /// What of it could not be read.
    pub damage: Damage,
    /// The whole text.
    pub span: Span,
}

/// Sections of a template of which something could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage(u8);

impl Damage {
    /// `match`
    pub const NODES: Self = Self(1);
    /// `where`
    pub const CONDITIONS: Self = Self(2);
    /// `model`
    pub const STATEMENTS: Self = Self(4);
    /// `order`
    pub const ORDER: Self = Self(8);
    /// Anywhere.
    pub const ALL: Self = Self(15);

    /// Takes in more of it.
    pub fn add(&mut self, more: Self) {
        self.0 |= more.0;
    }

    /// Whether that section has some.
    pub fn is_in(self, section: Self) -> bool {
        self.0 & section.0 != 0
    }

    /// Whether there is any.
    pub fn any(self) -> bool {
        self.0 != 0
    }
}

/// A node to match, or a sequence of them.
#[expect(clippy::large_enum_variant, reason = "a program has few of them, and most are nodes")]
#[derive(Clone, Debug, PartialEq)]
pub enum MatchItem {
    /// One node.
    Node(NodePattern),
    /// `repeat x in 1..n min 1 { … }`
    Repeat(Repeat),
    /// `{ … } or { … }`, `optional { … }`
    Choice(Choice),
}

/// Parts of a pattern of which one matches, or which may be missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Each of them, in the order in which they are tried.
    pub ways: Vec<Vec<MatchItem>>,
    /// Whether it may be missing, which is tried last.
    pub optional: bool,
    /// The whole text.
    pub span: Span,
}

impl Template {
    /// All its nodes, those of sequences and of all alternatives among them, in the order of the text.
    pub fn nodes(&self) -> Vec<&NodePattern> {
        let mut open: Vec<&MatchItem> = self.items.iter().rev().collect();
        let mut nodes = Vec::new();
        while let Some(item) = open.pop() {
            match item {
                MatchItem::Node(node) => nodes.push(node),
                MatchItem::Repeat(repeat) => nodes.extend(&repeat.nodes),
                MatchItem::Choice(choice) => open.extend(choice.ways.iter().rev().flat_map(|way| way.iter().rev())),
            }
        }
        nodes
    }
}

/// A sequence of nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// The index variable.
    pub index: Ident,
    /// The variable that holds the number of repetitions.
    pub count: Ident,
    /// The least number of repetitions; `None` where not written, which means 0.
    pub min: Option<Spanned<i64>>,
    /// The nodes of one repetition.
    pub nodes: Vec<NodePattern>,
    /// The whole text.
    pub span: Span,
}

/// `e1 = Ac [j, k, m | a, v] { name: x }`
#[derive(Clone, Debug, PartialEq)]
pub struct NodePattern {
    /// The node's name, with an index inside `repeat`.
    pub name: Ident,
    /// The index in brackets after the name.
    pub index: Option<Ident>,
    /// The type label.
    pub kind: Spanned<KindPattern>,
    /// Scenario j.
    pub scenario: Spanned<Term>,
    /// Thread k.
    pub thread: Spanned<Term>,
    /// Thread node counter m.
    pub position: Spanned<Term>,
    /// Task i.
    pub task: Spanned<Term>,
    /// Task node counter v.
    pub counter: Spanned<Term>,
    /// Attributes that must have a value.
    pub attributes: Vec<(Ident, Spanned<Term>)>,
    /// The whole text.
    pub span: Span,
}

impl NodePattern {
    /// All its terms.
    pub fn terms(&self) -> impl Iterator<Item = &Spanned<Term>> {
        let target = match &self.kind.value {
            KindPattern::Fork(target) | KindPattern::Join(target) => Some(target),
            _ => None,
        };
        [&self.scenario, &self.thread, &self.position, &self.task, &self.counter]
            .into_iter()
            .chain(target)
            .chain(self.attributes.iter().map(|(_, term)| term))
    }
}

/// The type label of a node pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum KindPattern {
    /// `Be`
    Begin,
    /// `Ac`
    Activity,
    /// `Ed`
    End,
    /// `Fk(q)`: the thread it starts.
    Fork(Spanned<Term>),
    /// `Jn(q)`: the thread it waits for.
    Join(Spanned<Term>),
    /// `_`: any.
    Any,
}

/// A variable, with an index where it stands for one of a sequence: `q`, `q[1]`, `q[x]`, `q[x+1]`, `q[n+1]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: Arc<str>,
    /// Its index.
    pub index: Option<Index>,
}

/// An index: a variable (or none) plus an offset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Index {
    /// The variable, such as `x` or `n`.
    pub variable: Option<Arc<str>>,
    /// What is added to it, or the number itself.
    pub offset: i64,
}

/// A term of a pattern, condition, rule or operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// `_`
    Wildcard,
    /// A whole number.
    Integer(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// A string in quotes: a symbol.
    Symbol(Arc<str>),
    /// A variable plus a constant; the constant is mostly 0.
    Variable(Variable, i64),
    /// Arithmetic that is not of that form, in conditions and rules.
    Arithmetic(Box<Spanned<Term>>, Operator, Box<Spanned<Term>>),
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`: between whole numbers towards zero; by zero nothing holds.
    Divide,
    /// `%`
    Remainder,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=` or `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// What holds of two values in the other order.
    #[must_use]
    pub(crate) fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    /// Whether it holds between two numbers.
    #[inline]
    #[must_use]
    pub fn holds<T: Ord + Copy>(self, left: T, right: T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

/// A condition under `where`, or a literal of a rule's body.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `w3 > w2`; between symbols only `=` and `!=`.
    Compare(Spanned<Term>, Comparison, Spanned<Term>),
    /// `reach(x, y)`, `!blocked(z)`.
    Atom {
        /// Whether it must not hold.
        negated: bool,
        /// The relation and its arguments.
        atom: Atom,
    },
    /// `!starts(template, node)`, `!starts(template, g[x])`: the template has no candidate whose glue node is that node.
    NotStarts {
        /// The template.
        template: Ident,
        /// The node: a variable, with an index where it is one of a round.
        node: Spanned<Term>,
    },
    /// `every x { cond, … }`, `some x { cond, … }`, under `where` only: all of it holds of every round of the sequence, or of
    /// one of them.
    Rounds {
        /// Of how many.
        quantifier: Quantifier,
        /// The sequence's index variable.
        index: Ident,
        /// What has to hold of a round.
        body: Vec<Spanned<Condition>>,
    },
    /// `n = count { atom, … }`, `m = max x { … }`, in rules only: over what a lower stratum holds.
    Aggregate {
        /// The variable that gets the value.
        result: Ident,
        /// Which aggregate.
        function: Aggregate,
        /// What is summed or compared; `None` for count.
        over: Option<Spanned<Term>>,
        /// What has to hold.
        body: Vec<Spanned<Condition>>,
    },
}

/// Of how many rounds of a sequence a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantifier {
    /// Of each of them, and of none at all.
    Every,
    /// Of one at least.
    Some,
}

impl Quantifier {
    /// The word that says so.
    pub fn word(self) -> &'static str {
        match self {
            Self::Every => "every",
            Self::Some => "some",
        }
    }
}

/// An aggregate over a lower stratum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aggregate {
    /// How many distinct bindings.
    Count,
    /// The sum over distinct bindings.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The sum divided by the count.
    Mean,
    /// The least value that as many percent of the bindings do not exceed: 1 to 99.
    Percentile(u8),
}

/// A relation with arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Atom {
    /// The relation.
    pub relation: Ident,
    /// Its arguments.
    pub arguments: Vec<Spanned<Term>>,
    /// The whole text.
    pub span: Span,
}

/// `head :- body.`
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its doc comment.
    pub doc: String,
    /// What holds.
    pub head: Atom,
    /// If all of this holds; empty for a fact.
    pub body: Vec<Spanned<Condition>>,
    /// The whole text.
    pub span: Span,
}

/// A statement under `model`.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `S := newEntry(R, b)`, `S[x] := newEntry(F, t[x])`
    NewEntry {
        /// The entry variable.
        entry: Spanned<Variable>,
        /// The interaction type, such as `R`.
        interaction: Ident,
        /// The task.
        task: Spanned<Term>,
        /// The whole text.
        span: Span,
    },
    /// `addRequest(E, S)`
    Operation {
        /// Its name.
        name: Ident,
        /// Its arguments.
        arguments: Vec<Spanned<Argument>>,
        /// The whole text.
        span: Span,
    },
    /// `for x in 1..n { … }`
    For {
        /// The index variable.
        index: Ident,
        /// The first value.
        from: i64,
        /// The variable that holds the last value.
        to: Ident,
        /// What is done for each.
        body: Vec<Statement>,
        /// The whole text.
        span: Span,
    },
}

/// An argument of a modelling operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// An entry, a matched node, or a value: which of them, the operation's signature and the template's names decide.
    Term(Term),
    /// A node by its label, such as `[j, k2, 2 | a, v+1]`.
    Node(Box<NodeReference>),
}

/// A node named by its label.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeReference {
    /// Scenario j.
    pub scenario: Spanned<Term>,
    /// Thread k.
    pub thread: Spanned<Term>,
    /// Thread node counter m.
    pub position: Spanned<Term>,
    /// Task i.
    pub task: Spanned<Term>,
    /// Task node counter v.
    pub counter: Spanned<Term>,
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        })
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("count"),
            Self::Sum => f.write_str("sum"),
            Self::Min => f.write_str("min"),
            Self::Max => f.write_str("max"),
            Self::Mean => f.write_str("mean"),
            Self::Percentile(percent) => write!(f, "p{percent}"),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}
