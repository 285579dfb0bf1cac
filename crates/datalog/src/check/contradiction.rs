//! Literals of a body that exclude each other.
//!
//! A body is refuted by what its comparisons, and the rows that facts have once, say together: texts that a value would have to be,
//! bounds on differences, ranges of arithmetic, and equations that no whole numbers solve. It reports only what is certain.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ast::{Aggregate, Atom, Comparison, Condition, Operator, Program, Span, Spanned, Term, Variable};
use crate::base::BaseSchema;
use crate::check::Checker;
use crate::check::differences::Bounds;
use crate::check::ranges::Range;
use crate::check::whole::Fractions;
use crate::syntax::{print_condition, print_term};

/// Comparisons of one body that are looked at together.
const COMPARED: usize = 256;
/// How often the ranges of variables are narrowed by each other.
const ROUNDS: usize = 4;

/// A comparison of a body, or one that follows from its atoms.
#[derive(Clone)]
pub(super) struct Compared<'t> {
    pub(super) left: &'t Term,
    pub(super) comparison: Comparison,
    pub(super) right: &'t Term,
    span: Span,
    /// Why it must hold, where the body does not have it.
    follows: Option<String>,
}

impl<'t> Compared<'t> {
    fn of(condition: &'t Spanned<Condition>) -> Option<Self> {
        let Condition::Compare(left, comparison, right) = &condition.value else { return None };
        let (left, right) = (&left.value, &right.value);
        Some(Self { left, comparison: *comparison, right, span: condition.span, follows: None })
    }
}

/// What the variables of a body are, by their names.
pub(super) struct Sorts<'t> {
    /// Those that are whole for sure where they are numbers.
    pub(super) whole: FxHashSet<&'t str>,
    /// Those that count, and so are never less than nought.
    pub(super) counts: FxHashSet<&'t str>,
}

/// Why a body never holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The places of its literals that cannot hold together, in the order of the text.
    pub places: Vec<Span>,
    /// The reason, in words.
    pub reason: String,
}

/// Tells which bodies over the relations of a program never hold.
pub struct Bodies<'p> {
    checker: Checker<'p>,
    fractions: Fractions,
}

impl<'p> Bodies<'p> {
    /// Bodies over the relations of a program and of a schema.
    pub fn of(program: &'p Program, schema: &'p BaseSchema) -> Self {
        let checker = Checker::new(program, schema, &[]);
        let fractions = checker.fractions();
        Self { checker, fractions }
    }

    /// Why a body never holds, if that is sure. A variable is its name; its index does not count.
    pub fn contradiction(&self, body: &[Spanned<Condition>]) -> Option<Contradiction> {
        self.checker.contradiction(body, &self.fractions)
    }

    /// A body that may hold, to ask what else may hold with it.
    pub fn holding<'b>(&self, body: &'b [Spanned<Condition>]) -> Holding<'b> {
        let (compared, sorts) = self.checker.comparisons(body, &self.fractions);
        let bounds = Bounds::of(&compared, &sorts);
        Holding { compared, sorts, bounds }
    }
}

/// A body that may hold: what its comparisons, and the rows that facts have once, say together.
pub struct Holding<'b> {
    compared: Vec<Compared<'b>>,
    sorts: Sorts<'b>,
    bounds: Bounds<'b>,
}

impl Holding<'_> {
    /// Whether the body surely never holds with these comparisons beside its own. They are about the body's variables.
    pub fn excludes<'s>(&'s self, further: &'s [Spanned<Condition>]) -> bool {
        let mut further: Vec<Compared<'s>> = further.iter().filter_map(Compared::of).collect();
        let mut bounds: Bounds<'s> = self.bounds.clone();
        bounds.add_all(&further, &self.sorts);
        further.extend(self.compared.iter().cloned());
        further.truncate(COMPARED);
        refuted(&further, &self.sorts, || bounds.is_circle()).is_some()
    }
}

impl Checker<'_> {
    /// Why a body never holds, if that is sure.
    pub(super) fn contradiction(&self, body: &[Spanned<Condition>], fractions: &Fractions) -> Option<Contradiction> {
        if let Some(found) = opposite_atoms(body) {
            return Some(found);
        }
        let (compared, sorts) = self.comparisons(body, fractions);
        let reason = refuted(&compared, &sorts, || Bounds::of(&compared, &sorts).is_circle())?;
        let needed = needed(compared, &sorts);
        let mut places: Vec<Span> = needed.iter().map(|one| one.span).collect();
        places.sort_unstable();
        places.dedup();
        let follows = needed.into_iter().find_map(|one| one.follows);
        Some(Contradiction { places, reason: follows.unwrap_or(reason) })
    }

    /// The comparisons of a body and those that follow from its atoms, with what its variables are.
    fn comparisons<'b>(&self, body: &'b [Spanned<Condition>], fractions: &Fractions) -> (Vec<Compared<'b>>, Sorts<'b>) {
        let mut compared = self.follows_from_atoms(body);
        compared.extend(body.iter().filter_map(Compared::of));
        compared.truncate(COMPARED);
        let counts = body.iter().filter_map(count).collect();
        (compared, Sorts { whole: self.whole_variables(body, fractions), counts })
    }

    /// Facts with one row for each value of a column: two atoms with the same value there are about one row.
    fn follows_from_atoms<'b>(&self, body: &'b [Spanned<Condition>]) -> Vec<Compared<'b>> {
        let mut rows: FxHashMap<(&str, usize, String), &'b Atom> = FxHashMap::default();
        let mut found = Vec::new();
        for condition in body {
            let Condition::Atom { negated: false, atom } = &condition.value else { continue };
            let name = &*atom.relation.value;
            let Some(base) = self.schema.get(name) else { continue };
            for key in self.schema.keys(base) {
                let Some(value) = atom.arguments.get(*key).filter(|term| !matches!(term.value, Term::Wildcard)) else {
                    continue;
                };
                let value = print_term(&value.value);
                let first = rows.entry((name, *key, value.clone())).or_insert(atom);
                if std::ptr::eq(*first, atom) {
                    continue;
                }
                for (left, right) in first.arguments.iter().zip(&atom.arguments) {
                    if matches!(left.value, Term::Wildcard) || matches!(right.value, Term::Wildcard) {
                        continue;
                    }
                    found.push(Compared {
                        left: &left.value,
                        comparison: Comparison::Equal,
                        right: &right.value,
                        span: condition.span,
                        follows: Some(format!("`{name}` has at most one row for `{value}`")),
                    });
                }
            }
        }
        found
    }
}

fn count(condition: &Spanned<Condition>) -> Option<&str> {
    match &condition.value {
        Condition::Aggregate { result, function: Aggregate::Count, .. } => Some(&result.value),
        _ => None,
    }
}

/// An atom that is both wanted and denied; `_` in what is denied is anything.
fn opposite_atoms(body: &[Spanned<Condition>]) -> Option<Contradiction> {
    let mut wanted: FxHashMap<(u32, &str), Vec<&Spanned<Condition>>> = FxHashMap::default();
    let of = |atom: &'_ Atom| atom.relation.span.file;
    for condition in body {
        if let Condition::Atom { negated: false, atom } = &condition.value {
            wanted.entry((of(atom), &atom.relation.value)).or_default().push(condition);
        }
    }
    for condition in body {
        let Condition::Atom { negated: true, atom: denied } = &condition.value else { continue };
        let covers = |atom: &Atom| {
            let mut pairs = denied.arguments.iter().zip(&atom.arguments);
            let same = denied.arguments.len() == atom.arguments.len();
            same && pairs.all(|(denied, term)| denied.value == Term::Wildcard || denied.value == term.value)
        };
        let found = wanted
            .get(&(of(denied), &*denied.relation.value))
            .into_iter()
            .flatten()
            .find(|other| matches!(&other.value, Condition::Atom { atom, .. } if covers(atom)));
        if let Some(other) = found {
            let mut places = vec![other.span, condition.span];
            places.sort_unstable();
            let (text, denied) = (print_condition(&other.value), print_condition(&condition.value));
            let reason = if denied.strip_prefix('!') == Some(&text) {
                format!("`{text}` cannot both hold and not hold")
            } else {
                format!("`{text}` and `{denied}` cannot both hold")
            };
            return Some(Contradiction { places, reason });
        }
    }
    None
}

/// Why comparisons never hold together. Whether their bounds exclude each other is asked only where constants and texts do not.
fn refuted(compared: &[Compared<'_>], sorts: &Sorts<'_>, is_circle: impl FnOnce() -> bool) -> Option<String> {
    let none = || "no value of its variables makes it true".to_owned();
    let together = || "no numbers make its comparisons true together".to_owned();
    let by_itself = compared.iter().any(|one| alone(one.left, one.comparison, one.right));
    by_itself
        .then(none)
        .or_else(|| texts(compared))
        .or_else(|| is_circle().then(together))
        .or_else(|| out_of_range(compared, sorts).then(together))
        .or_else(|| no_whole_numbers(compared, &sorts.whole).then(none))
}

/// Of comparisons that never hold together, some of which each is needed for that.
fn needed<'t>(mut compared: Vec<Compared<'t>>, sorts: &Sorts<'_>) -> Vec<Compared<'t>> {
    let mut place = 0;
    while place < compared.len() {
        let one = compared.remove(place);
        if refuted(&compared, sorts, || Bounds::of(&compared, sorts).is_circle()).is_none() {
            compared.insert(place, one);
            place += 1;
        }
    }
    compared
}

/// Whether a comparison of constants, or of a variable with itself, never holds.
fn alone(left: &Term, comparison: Comparison, right: &Term) -> bool {
    match (left, right) {
        (Term::Integer(left), Term::Integer(right)) => !comparison.holds(*left, *right),
        (Term::Symbol(left), Term::Symbol(right)) => match comparison {
            Comparison::Equal => left != right,
            Comparison::NotEqual => left == right,
            _ => false, // an error of types
        },
        (Term::Variable(one, less), Term::Variable(other, more)) if one == other => !comparison.holds(*less, *more),
        _ => false,
    }
}

/// Values that would have to be two texts, or one that they are not.
fn texts(compared: &[Compared<'_>]) -> Option<String> {
    let mut equal = Equal::default();
    for one in compared.iter().filter(|one| one.comparison == Comparison::Equal) {
        if let (Term::Variable(left, 0), Term::Variable(right, 0)) = (one.left, one.right) {
            equal.unite(&left.name, &right.name);
        }
    }
    let mut known: FxHashMap<&str, &str> = FxHashMap::default();
    for one in compared.iter().filter(|one| one.comparison == Comparison::Equal) {
        let Some((name, text)) = with_text(one) else { continue };
        let other = *known.entry(equal.first(name)).or_insert(text);
        if other != text {
            return Some(format!("`{name}` cannot be both \"{other}\" and \"{text}\""));
        }
    }
    for one in compared.iter().filter(|one| one.comparison == Comparison::NotEqual) {
        if let Some((name, text)) = with_text(one)
            && known.get(equal.first(name)) == Some(&text)
        {
            return Some(format!("`{name}` cannot both be \"{text}\" and differ from it"));
        }
        if let (Term::Variable(left, 0), Term::Variable(right, 0)) = (one.left, one.right)
            && let (Some(text), Some(other)) = (known.get(equal.first(&left.name)), known.get(equal.first(&right.name)))
            && text == other
        {
            return Some(format!("`{}` and `{}` cannot both be \"{text}\" and differ", left.name, right.name));
        }
    }
    None
}

/// A variable beside the text that it is, or is not.
fn with_text<'t>(one: &Compared<'t>) -> Option<(&'t str, &'t str)> {
    match (one.left, one.right) {
        (Term::Variable(variable, 0), Term::Symbol(text)) | (Term::Symbol(text), Term::Variable(variable, 0)) => {
            Some((&variable.name, text))
        }
        _ => None,
    }
}

/// Variables that are equal to each other.
#[derive(Default)]
struct Equal<'t>(FxHashMap<&'t str, &'t str>);

impl<'t> Equal<'t> {
    /// The one that stands for all that are equal to it.
    fn first<'n>(&self, name: &'n str) -> &'n str
    where
        't: 'n,
    {
        let mut first: &'n str = name;
        while let Some(next) = self.0.get(first) {
            first = next;
        }
        first
    }

    fn unite(&mut self, one: &'t str, other: &'t str) {
        let (one, other) = (self.first(one), self.first(other));
        if one != other {
            self.0.insert(other, one);
        }
    }
}

/// Whether some comparison has sides that never compare so, by the ranges of their variables.
fn out_of_range(compared: &[Compared<'_>], sorts: &Sorts<'_>) -> bool {
    let mut ranges: FxHashMap<&str, Range> = FxHashMap::default();
    let begin = |name: &str| match (sorts.counts.contains(name), sorts.whole.contains(name)) {
        (true, _) => Range::from(0),
        (_, true) => Range::WHOLE,
        _ => Range::ANY,
    };
    for _ in 0..ROUNDS {
        let mut is_narrower = false;
        for one in compared {
            let known =
                |variable: &Variable| ranges.get(&*variable.name).copied().unwrap_or_else(|| begin(&variable.name));
            if Range::of(one.left, &known).never(one.comparison, Range::of(one.right, &known)) {
                return true;
            }
            let sides = [(one.left, one.comparison, one.right), (one.right, one.comparison.flipped(), one.left)];
            let narrowed = sides.map(|(unknown, comparison, other)| match unknown {
                Term::Variable(variable, 0) => {
                    let (before, after) =
                        (known(variable), known(variable).compared(comparison, Range::of(other, &known)));
                    (before != after).then_some((&*variable.name, after))
                }
                _ => None,
            });
            is_narrower |= narrowed.iter().any(Option::is_some);
            ranges.extend(narrowed.into_iter().flatten());
        }
        if !is_narrower {
            break;
        }
    }
    false
}

/// Whether there is an equation of whole numbers that no whole numbers solve: `2 * x = 2 * y + 1`.
fn no_whole_numbers(compared: &[Compared<'_>], whole: &FxHashSet<&str>) -> bool {
    let unsolvable = |one: &Compared<'_>| {
        let mut times: BTreeMap<&str, i64> = BTreeMap::new();
        let Some(number) =
            sum(one.left, 1, &mut times).and_then(|left| left.checked_add(sum(one.right, -1, &mut times)?))
        else {
            return false;
        };
        times.retain(|_, times| *times != 0);
        let divisor = times.values().fold(0, |one, other| gcd(one, other.unsigned_abs()));
        times.keys().all(|name| whole.contains(name)) && divisor > 1 && !number.unsigned_abs().is_multiple_of(divisor)
    };
    compared.iter().filter(|one| one.comparison == Comparison::Equal).any(unsolvable)
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Adds a term so many times: its number, and its variables with how often they stand there; none where it is no such sum. No deeper than
/// the parser allows.
pub(super) fn sum<'t>(term: &'t Term, by: i64, times: &mut BTreeMap<&'t str, i64>) -> Option<i64> {
    match term {
        Term::Integer(number) => number.checked_mul(by),
        Term::Variable(variable, offset) if variable.index.is_none() => {
            let known = times.entry(&variable.name).or_default();
            *known = known.checked_add(by)?;
            offset.checked_mul(by)
        }
        Term::Arithmetic(left, operator, right) => {
            let (left, right) = (&left.value, &right.value);
            match operator {
                Operator::Add => sum(left, by, times)?.checked_add(sum(right, by, times)?),
                Operator::Subtract => sum(left, by, times)?.checked_add(sum(right, by.checked_neg()?, times)?),
                Operator::Multiply => match (left, right) {
                    (Term::Integer(number), other) | (other, Term::Integer(number)) => {
                        sum(other, by.checked_mul(*number)?, times)
                    }
                    _ => None,
                },
                Operator::Divide | Operator::Remainder => None,
            }
        }
        _ => None,
    }
}
