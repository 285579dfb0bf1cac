//! Literals of a body that exclude each other.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::ast::{Aggregate, Atom, Comparison, Condition, Operator, Span, Spanned, Term, Variable};
use crate::check::Checker;
use crate::check::ranges::Range;
use crate::check::whole::Fractions;
use crate::syntax::{print_condition, print_term};

/// A variable or, without a name, nought; and the number added to it.
type Linear<'t> = (Option<&'t str>, i64);

/// Comparisons of one body that are looked at together.
const COMPARED: usize = 64;
/// Sides that differ of which it is looked into whether they must be equal.
const UNEQUAL: usize = 16;
/// How often the ranges of variables are narrowed by each other.
const ROUNDS: usize = 4;

/// A comparison of a body, or one that follows from its atoms.
struct Compared<'t> {
    left: &'t Term,
    comparison: Comparison,
    right: &'t Term,
    span: Span,
    /// Why it must hold, where the body does not have it.
    follows: Option<String>,
}

static NOUGHT: Term = Term::Integer(0);

impl<'p> Checker<'p> {
    /// The places of literals that cannot hold together, with the reason. Only what is sure is told.
    pub(super) fn contradiction(
        &self,
        body: &'p [Spanned<Condition>],
        fractions: &Fractions,
    ) -> Option<(Vec<Span>, String)> {
        if let Some(found) = opposite_atoms(body) {
            return Some(found);
        }
        let mut compared = self.follows_from_atoms(body);
        compared.extend(body.iter().filter_map(|condition| match &condition.value {
            Condition::Compare(left, comparison, right) => {
                let (left, right) = (&left.value, &right.value);
                Some(Compared { left, comparison: *comparison, right, span: condition.span, follows: None })
            }
            _ => None,
        }));
        compared.truncate(COMPARED);
        let whole = self.whole_variables(body, fractions);
        let counts: HashSet<&str> = body.iter().filter_map(count).collect();
        let none = |spans| (spans, "no value of its variables makes it true".to_owned());
        let together = |spans| (spans, "no numbers make its comparisons true together".to_owned());
        let (spans, reason) = (alone_among(&compared).map(none))
            .or_else(|| texts(&compared))
            .or_else(|| circle_among(&compared, &counts).map(together))
            .or_else(|| out_of_range(&compared, &whole, &counts).map(together))
            .or_else(|| no_whole_numbers(&compared, &whole).map(none))?;
        let follows = compared.iter().filter(|one| spans.contains(&one.span)).find_map(|one| one.follows.clone());
        Some((spans, follows.unwrap_or(reason)))
    }

    /// Facts with one row for each value of a column: two atoms with the same value there are about one row.
    fn follows_from_atoms(&self, body: &'p [Spanned<Condition>]) -> Vec<Compared<'p>> {
        let mut rows: HashMap<(&str, usize, String), &'p Atom> = HashMap::new();
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

/// An atom that is both wanted and denied.
fn opposite_atoms(body: &[Spanned<Condition>]) -> Option<(Vec<Span>, String)> {
    let mut atoms: HashMap<(u32, String), (bool, Span)> = HashMap::new();
    for condition in body {
        let Condition::Atom { negated, atom } = &condition.value else { continue };
        let text = print_condition(&Condition::Atom { negated: false, atom: atom.clone() });
        let (other, span) = *atoms.entry((atom.relation.span.file, text.clone())).or_insert((*negated, condition.span));
        if other != *negated {
            return Some((vec![span, condition.span], format!("`{text}` cannot both hold and not hold")));
        }
    }
    None
}

fn alone_among(compared: &[Compared<'_>]) -> Option<Vec<Span>> {
    let found = compared.iter().find(|one| alone(one.left, one.comparison, one.right))?;
    Some(vec![found.span])
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

/// Variables that would have to be two texts, or one that they are not.
fn texts(compared: &[Compared<'_>]) -> Option<(Vec<Span>, String)> {
    let mut known: HashMap<&str, (&str, Span)> = HashMap::new();
    for one in compared.iter().filter(|one| one.comparison == Comparison::Equal) {
        let Some((name, text)) = with_text(one) else { continue };
        let (other, span) = *known.entry(name).or_insert((text, one.span));
        if other != text {
            return Some((vec![span, one.span], format!("`{name}` cannot be both \"{other}\" and \"{text}\"")));
        }
    }
    for one in compared.iter().filter(|one| one.comparison == Comparison::NotEqual) {
        let Some((name, text)) = with_text(one) else { continue };
        if let Some((_, span)) = known.get(name).filter(|(known, _)| *known == text) {
            let reason = format!("`{name}` cannot both be \"{text}\" and differ from it");
            return Some((vec![*span, one.span], reason));
        }
    }
    None
}

/// Comparisons that exclude each other by what lies between their sides; and two sides that must be equal and differ: then neither can
/// be less.
fn circle_among(compared: &[Compared<'_>], counts: &HashSet<&str>) -> Option<Vec<Span>> {
    // What is counted is never less than nought.
    let least: Vec<(Term, Span)> = compared
        .iter()
        .flat_map(|one| [one.left, one.right].map(|term| (term, one.span)))
        .filter_map(|(term, span)| match term {
            Term::Variable(variable, _) if counts.contains(&*variable.name) => {
                Some((Term::Variable(variable.clone(), 0), span))
            }
            _ => None,
        })
        .collect();
    let mut all: Vec<Compared<'_>> = compared.iter().map(Compared::again).collect();
    all.extend(least.iter().map(|(term, span)| Compared {
        left: term,
        comparison: Comparison::GreaterOrEqual,
        right: &NOUGHT,
        span: *span,
        follows: None,
    }));
    if let Some(spans) = circle(&all) {
        return Some(spans);
    }
    for one in compared.iter().filter(|one| one.comparison == Comparison::NotEqual).take(UNEQUAL) {
        let mut either = |comparison| {
            all.push(Compared { comparison, ..one.again() });
            let spans = circle(&all);
            all.pop();
            spans
        };
        if let (Some(mut spans), Some(others)) = (either(Comparison::Less), either(Comparison::Greater)) {
            spans.extend(others);
            spans.sort_unstable();
            spans.dedup();
            return Some(spans);
        }
    }
    None
}

impl Compared<'_> {
    fn again(&self) -> Self {
        Self { follows: None, ..*self }
    }
}

/// A comparison whose sides have no numbers that compare so, by the ranges of their variables.
fn out_of_range(compared: &[Compared<'_>], whole: &HashSet<&str>, counts: &HashSet<&str>) -> Option<Vec<Span>> {
    let mut ranges: HashMap<&str, (Range, Vec<Span>)> = HashMap::new();
    let begin = |name: &str| match (counts.contains(name), whole.contains(name)) {
        (true, _) => Range::from(0),
        (_, true) => Range::WHOLE,
        _ => Range::ANY,
    };
    for _ in 0..ROUNDS {
        for one in compared {
            let known = |variable: &Variable| {
                ranges.get(&*variable.name).map_or_else(|| begin(&variable.name), |(range, _)| *range)
            };
            let sides = [(one.left, one.comparison, one.right), (one.right, one.comparison.flipped(), one.left)];
            if Range::of(one.left, &known).never(one.comparison, Range::of(one.right, &known)) {
                let mut spans = vec![one.span];
                let mut note = |name: &std::sync::Arc<str>| {
                    spans.extend(ranges.get(&**name).into_iter().flat_map(|(_, spans)| spans.iter().copied()));
                };
                crate::check::variables(one.left, &mut note);
                crate::check::variables(one.right, &mut note);
                spans.sort_unstable();
                spans.dedup();
                return Some(spans);
            }
            let narrowed: Vec<(&str, Range)> = sides
                .into_iter()
                .filter_map(|(unknown, comparison, other)| match unknown {
                    Term::Variable(variable, 0) => {
                        Some((&*variable.name, known(variable).compared(comparison, Range::of(other, &known))))
                    }
                    _ => None,
                })
                .collect();
            for (name, range) in narrowed {
                let entry = ranges.entry(name).or_insert_with(|| (begin(name), Vec::new()));
                if entry.0 != range {
                    entry.0 = range;
                    entry.1.push(one.span);
                }
            }
        }
    }
    None
}

/// An equation of whole numbers that no whole numbers solve: `2 * x = 2 * y + 1`.
fn no_whole_numbers(compared: &[Compared<'_>], whole: &HashSet<&str>) -> Option<Vec<Span>> {
    let unsolvable = |one: &&Compared<'_>| {
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
    let found = compared.iter().filter(|one| one.comparison == Comparison::Equal).find(unsolvable)?;
    Some(vec![found.span])
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Adds a term so many times: its number, and its variables with how often they stand there; none where it is no such sum. No deeper than
/// the parser allows.
fn sum<'t>(term: &'t Term, by: i64, times: &mut BTreeMap<&'t str, i64>) -> Option<i64> {
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

/// A difference between two terms that is at most a number: `to - from <= most`, or less.
struct Difference {
    from: usize,
    to: usize,
    /// The number, and -1 where the difference is less than it.
    most: (i128, i64),
    span: Span,
}

/// Comparisons that go round in a circle downwards: `X < Y, Y < X`, `X < 3, X > 5`.
fn circle(compared: &[Compared<'_>]) -> Option<Vec<Span>> {
    let mut numbers: HashMap<Option<&str>, usize> = HashMap::from([(None, 0)]);
    let mut differences = Vec::new();
    for one in compared {
        let Some((left, right)) = difference(one.left, one.right) else { continue };
        let comparison = one.comparison;
        let mut add = |small: Linear<'_>, great: Linear<'_>, strict: i64, numbers: [usize; 2]| {
            let most = (i128::from(great.1) - i128::from(small.1), -strict);
            differences.push(Difference { from: numbers[1], to: numbers[0], most, span: one.span });
        };
        let mut number = |name| {
            let next = numbers.len();
            *numbers.entry(name).or_insert(next)
        };
        let (first, second) = (number(left.0), number(right.0));
        match comparison {
            Comparison::Equal => {
                add(left, right, 0, [first, second]);
                add(right, left, 0, [second, first]);
            }
            Comparison::NotEqual => {}
            Comparison::Less => add(left, right, 1, [first, second]),
            Comparison::LessOrEqual => add(left, right, 0, [first, second]),
            Comparison::Greater => add(right, left, 1, [second, first]),
            Comparison::GreaterOrEqual => add(right, left, 0, [second, first]),
        }
    }
    // Shortest ways from everywhere; who can still be shortened after as many rounds as there are terms is on a circle.
    let count = numbers.len();
    let mut least = vec![(0i128, 0i64); count];
    let mut by: Vec<Option<usize>> = vec![None; count];
    let mut shortened = None;
    for _ in 0..=count {
        shortened = None;
        for (place, difference) in differences.iter().enumerate() {
            let from = least[difference.from];
            let way = (from.0 + difference.most.0, from.1 + difference.most.1);
            if way < least[difference.to] {
                least[difference.to] = way;
                by[difference.to] = Some(place);
                shortened = Some(difference.to);
            }
        }
        shortened?;
    }
    let mut node = shortened?;
    for _ in 0..count {
        node = differences[by[node]?].from;
    }
    let start = node;
    let mut spans = Vec::new();
    loop {
        let difference = &differences[by[node]?];
        if !spans.contains(&difference.span) {
            spans.push(difference.span);
        }
        node = difference.from;
        if node == start {
            break;
        }
    }
    Some(spans)
}

/// Both sides of a comparison with one variable each at most, where adding and subtracting makes them so.
fn difference<'t>(left: &'t Term, right: &'t Term) -> Option<(Linear<'t>, Linear<'t>)> {
    let (mut times, mut number): (BTreeMap<&str, i32>, i64) = (BTreeMap::new(), 0);
    let mut open = vec![(left, 1), (right, -1)];
    while let Some((term, sign)) = open.pop() {
        match term {
            Term::Integer(value) => number = number.checked_add(value.checked_mul(sign)?)?,
            Term::Variable(variable, offset) if variable.index.is_none() => {
                number = number.checked_add(offset.checked_mul(sign)?)?;
                *times.entry(&variable.name).or_default() += sign as i32;
            }
            Term::Arithmetic(one, Operator::Add, other) => open.extend([(&one.value, sign), (&other.value, sign)]),
            Term::Arithmetic(one, Operator::Subtract, other) => {
                open.extend([(&one.value, sign), (&other.value, -sign)]);
            }
            _ => return None,
        }
    }
    times.retain(|_, times| *times != 0);
    let variables: Vec<(&str, i32)> = times.into_iter().collect();
    match variables[..] {
        [] => Some(((None, number), (None, 0))),
        [(one, 1)] => Some(((Some(one), number), (None, 0))),
        [(one, -1)] => Some(((None, number), (Some(one), 0))),
        [(one, 1), (other, -1)] | [(other, -1), (one, 1)] => Some(((Some(one), number), (Some(other), 0))),
        _ => None,
    }
}
