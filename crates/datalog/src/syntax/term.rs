//! Terms, atoms and conditions.

use std::sync::Arc;

use crate::ast::{Aggregate, Atom, Comparison, Condition, Index, Operator, Quantifier, Span, Spanned, Term, Variable};
use crate::codes;
use crate::syntax::cursor::{Cursor, MAX_NESTING, Parsed};
use crate::syntax::lexer::TokenKind;
use dyelog_diagnostic::Diagnostic;

/// Where a condition stands: that decides what it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// Under `where` of a template.
    Where,
    /// Within the braces of `every` or `some`.
    Rounds,
    /// In the body of a rule.
    Body,
    /// Within the braces of an aggregate.
    Aggregate,
}

impl Setting {
    /// Whether it is within the `where` of a template.
    fn is_where(self) -> bool {
        matches!(self, Self::Where | Self::Rounds)
    }

    /// The braces around it, in words.
    fn words(self) -> &'static str {
        match self {
            Self::Where => "`where`",
            Self::Rounds => "`every` or `some`",
            Self::Body | Self::Aggregate => "the aggregate",
        }
    }
}

/// A term and how deep its tree is.
struct Deep {
    term: Spanned<Term>,
    depth: usize,
}

impl Cursor<'_> {
    /// A term, with arithmetic.
    pub(super) fn term(&mut self) -> Parsed<Spanned<Term>> {
        Ok(self.sum(0)?.term)
    }

    fn sum(&mut self, nesting: usize) -> Parsed<Deep> {
        let mut left = self.product(nesting)?;
        while let Some(operator) =
            self.operator(&[(TokenKind::Plus, Operator::Add), (TokenKind::Minus, Operator::Subtract)])
        {
            let right = self.product(nesting)?;
            left = self.combine(left, operator, right)?;
        }
        Ok(left)
    }

    fn product(&mut self, nesting: usize) -> Parsed<Deep> {
        let mut left = self.primary(nesting)?;
        while let Some(operator) = self.operator(&[
            (TokenKind::Star, Operator::Multiply),
            (TokenKind::Slash, Operator::Divide),
            (TokenKind::Percent, Operator::Remainder),
        ]) {
            let right = self.primary(nesting)?;
            left = self.combine(left, operator, right)?;
        }
        Ok(left)
    }

    fn operator(&mut self, choices: &[(TokenKind, Operator)]) -> Option<Operator> {
        let (_, operator) = *choices.iter().find(|(kind, _)| self.is(*kind))?;
        self.bump();
        Some(operator)
    }

    fn combine(&mut self, left: Deep, operator: Operator, right: Deep) -> Parsed<Deep> {
        let span = left.term.span.to(right.term.span);
        let depth = left.depth.max(right.depth) + 1;
        if depth > MAX_NESTING {
            return Err(self.too_deep(span, "arithmetic"));
        }
        let value = combined(left.term, operator, right.term);
        Ok(Deep { term: Spanned { value, span }, depth })
    }

    pub(super) fn too_deep(&mut self, span: Span, what: &str) -> super::cursor::Reported {
        self.error(codes::NESTING, span, format!("{what} nested more than {MAX_NESTING} deep"), |d| {
            d.with_hint("give a part a name of its own, in a rule or a variable")
        })
    }

    fn primary(&mut self, nesting: usize) -> Parsed<Deep> {
        let start = self.here();
        let flat = |value, span| Ok(Deep { term: Spanned { value, span }, depth: 0 });
        match self.peek(0) {
            Some(TokenKind::Underscore) => {
                let span = self.bump();
                flat(Term::Wildcard, span)
            }
            Some(TokenKind::Number) => {
                let (value, span) = self.integer(false)?;
                flat(Term::Integer(value), span)
            }
            Some(TokenKind::Float) => {
                let (value, span) = self.float(false)?;
                flat(Term::Float(value), span)
            }
            Some(TokenKind::Minus) if self.peek(1) == Some(TokenKind::Float) => {
                self.bump();
                let (value, span) = self.float(true)?;
                flat(Term::Float(value), start.to(span))
            }
            Some(TokenKind::Minus) if self.peek(1) == Some(TokenKind::Number) => {
                self.bump();
                let (value, span) = self.integer(true)?;
                flat(Term::Integer(value), start.to(span))
            }
            Some(TokenKind::Minus) => {
                self.bump();
                if nesting >= MAX_NESTING {
                    return Err(self.too_deep(start, "arithmetic"));
                }
                let right = self.primary(nesting + 1)?;
                let zero = Deep { term: Spanned { value: Term::Integer(0), span: start }, depth: 0 };
                self.combine(zero, Operator::Subtract, right)
            }
            Some(TokenKind::Text) => {
                let span = self.bump();
                let value = self.unescape(span)?;
                flat(Term::Symbol(value), span)
            }
            Some(TokenKind::OpenRound) => {
                let open = self.bump();
                if nesting >= MAX_NESTING {
                    return Err(self.too_deep(open, "arithmetic"));
                }
                let inner = self.sum(nesting + 1)?;
                self.expect(TokenKind::CloseRound, "`)`")?;
                Ok(inner)
            }
            Some(TokenKind::Word) => {
                let variable = self.variable()?;
                flat(Term::Variable(variable.value, 0), variable.span)
            }
            _ => Err(self.unexpected("a term")),
        }
    }

    /// A variable with its index, if it has one.
    pub(super) fn variable(&mut self) -> Parsed<Spanned<Variable>> {
        let name = self.ident("a variable")?;
        let mut span = name.span;
        let mut index = None;
        if self.take(TokenKind::OpenSquare).is_some() {
            index = Some(self.index()?);
            span = span.to(self.expect(TokenKind::CloseSquare, "`]` after the index")?);
        }
        Ok(Spanned { value: Variable { name: name.value, index }, span })
    }

    /// `1`, `x`, `x+1`, `n-2`
    pub(super) fn index(&mut self) -> Parsed<Index> {
        let negative = self.is(TokenKind::Minus) && self.peek(1) == Some(TokenKind::Number);
        if negative || self.is(TokenKind::Number) {
            if negative {
                self.bump();
            }
            let (offset, _) = self.integer(negative)?;
            return Ok(Index { variable: None, offset });
        }
        let variable = self.ident("an index, such as `1`, `x` or `x+1`")?;
        let mut offset = 0;
        if self.is(TokenKind::Plus) || self.is(TokenKind::Minus) {
            let negative = self.is(TokenKind::Minus);
            self.bump();
            (offset, _) = self.integer(negative)?;
        }
        Ok(Index { variable: Some(variable.value), offset })
    }

    /// A whole number, whose sign has been read already.
    pub(super) fn integer(&mut self, negative: bool) -> Parsed<(i64, Span)> {
        let span = self.expect(TokenKind::Number, "a whole number")?;
        self.unit(span)?;
        let digits = self.slice(span);
        let value = digits.parse::<i128>().ok().map(|value| if negative { -value } else { value });
        match value.and_then(|value| i64::try_from(value).ok()) {
            Some(value) => Ok((value, span)),
            None => Err(self.error(codes::NUMBER, span, "number out of range", |d| {
                d.with_note(format!("whole numbers lie between {} and {}", i64::MIN, i64::MAX))
            })),
        }
    }

    /// Letters right after a number, such as a unit of time.
    fn unit(&mut self, number: Span) -> Parsed<()> {
        if !self.is(TokenKind::Word) || self.here().start != number.end {
            return Ok(());
        }
        let unit = self.bump();
        let (digits, letters) = (self.slice(number), self.slice(unit));
        let shift = TIMES.iter().find(|(name, _)| *name == letters).map(|(_, nanoseconds)| *nanoseconds);
        let value = shift.zip(digits.parse::<f64>().ok()).map(|(nanoseconds, value)| value * nanoseconds);
        Err(self.error(codes::NUMBER, number.to(unit), format!("`{digits}{letters}` is no number"), |d| {
            let d = d.with_note("numbers have no unit");
            match value {
                Some(value) => d.with_hint(format!("times and durations are in nanoseconds: write `{value}`")),
                None if letters.chars().all(|c| c == '_' || c.is_ascii_digit()) => {
                    d.with_hint(format!("write `{digits}{}`", letters.replace('_', "")))
                }
                None => d.with_hint(format!("write `{digits}`, or `\"{digits}{letters}\"` for a symbol")),
            }
        }))
    }

    /// A number with a fraction or an exponent, whose sign has been read already.
    fn float(&mut self, negative: bool) -> Parsed<(f64, Span)> {
        let span = self.expect(TokenKind::Float, "a number")?;
        self.unit(span)?;
        match self.slice(span).parse::<f64>() {
            Ok(0.0) if has_digits(self.slice(span)) => {
                Err(self.error(codes::NUMBER, span, "number out of range", |d| {
                    d.with_note("of numbers other than 0 the least is 4.95e-324")
                }))
            }
            Ok(value) if value.is_finite() => Ok((if negative { -value } else { value }, span)),
            _ => Err(self.error(codes::NUMBER, span, "number out of range", |d| {
                d.with_note("numbers with an exponent lie between -1.79e308 and 1.79e308")
            })),
        }
    }

    /// A string in quotes.
    pub(super) fn text_value(&mut self, what: &str) -> Parsed<Spanned<Arc<str>>> {
        let span = self.expect(TokenKind::Text, what)?;
        Ok(Spanned { value: self.unescape(span)?, span })
    }

    fn unescape(&mut self, span: Span) -> Parsed<Arc<str>> {
        let quoted = self.slice(span);
        let inner = &quoted[1..quoted.len() - 1];
        let mut text = String::with_capacity(inner.len());
        let mut chars = inner.char_indices();
        while let Some((at, c)) = chars.next() {
            if c != '\\' {
                text.push(c);
                continue;
            }
            let next = chars.next().map_or('\\', |(_, c)| c);
            match next {
                '"' | '\\' => text.push(next),
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                _ => {
                    let start = span.start + 1 + at as u32;
                    let escape = Span { file: span.file, start, end: start + 1 + next.len_utf8() as u32 };
                    return Err(self.error(codes::ESCAPE, escape, format!("unknown escape `\\{next}`"), |d| {
                        d.with_note("the escapes are `\\\"`, `\\\\`, `\\n`, `\\t` and `\\r`")
                            .with_hint("write `\\\\` for a backslash")
                    }));
                }
            }
        }
        Ok(text.into())
    }

    /// `reach(x, y+1)`
    pub(super) fn atom(&mut self) -> Parsed<Atom> {
        let relation = self.ident("a relation")?;
        let open = self.expect(TokenKind::OpenRound, "`(`")?;
        let mut arguments = Vec::new();
        let close = loop {
            if let Some(close) = self.take(TokenKind::CloseRound) {
                break close;
            }
            if self.at_end() || self.at_item() {
                return Err(self.unclosed(open, "the arguments"));
            }
            let aggregate = self.word(0).is_some_and(is_aggregate);
            arguments.push(self.term()?);
            if aggregate && !self.is(TokenKind::CloseRound) && !self.is(TokenKind::Comma) {
                return Err(self.aggregate_in_an_atom());
            }
            if !self.is(TokenKind::CloseRound) && !self.at_end() {
                self.expect(TokenKind::Comma, "`,` or `)`")?;
            }
        };
        let span = relation.span.to(close);
        Ok(Atom { relation, arguments, span })
    }

    /// `q(V, count S)`, `q(V, sum(D))`: as SQL and others write aggregates.
    fn aggregate_in_an_atom(&mut self) -> super::cursor::Reported {
        self.unexpected_with("`,` or `)`", said_of_aggregates)
    }

    /// One condition.
    pub(super) fn condition(&mut self, setting: Setting) -> Parsed<Spanned<Condition>> {
        let start = self.here();
        let not = self.peek(1) == Some(TokenKind::Word) && self.slip_of_word(&["not"], "!");
        let value = if not || self.take(TokenKind::Not).is_some() {
            if self.looks_like(&[TokenKind::Word]) && self.peek(1) != Some(TokenKind::OpenRound) {
                return Err(self.negated_comparison(start));
            }
            if self.word(0) == Some("starts") && self.peek(1) == Some(TokenKind::OpenRound) {
                self.not_starts(start, setting)?
            } else {
                Condition::Atom { negated: true, atom: self.atom()? }
            }
        } else if self.looks_like(&[TokenKind::Word, TokenKind::OpenRound]) {
            Condition::Atom { negated: false, atom: self.atom()? }
        } else if self.looks_like(&[TokenKind::OpenRound, TokenKind::Word, TokenKind::OpenRound]) {
            return Err(self.error(codes::UNEXPECTED, start, "brackets around conditions", |d| {
                d.with_note("conditions are a list, and all of it has to hold")
                    .with_hint("leave the brackets out; what may hold instead is a second rule of the same head")
            }));
        } else if let Some(quantifier) = self.quantifier_ahead() {
            self.rounds(quantifier, setting)?
        } else if let Some(function) = self.aggregate_ahead() {
            self.aggregate(function, setting)?
        } else if let Some(length) = self.unknown_aggregate_ahead() {
            return Err(self.unknown_aggregate(length));
        } else {
            self.comparison()?
        };
        Ok(Spanned { value, span: start.to(self.before()) })
    }

    /// `!a = b`
    fn negated_comparison(&mut self, start: Span) -> super::cursor::Reported {
        let span = start.to(self.here());
        self.error(codes::UNEXPECTED, span, "expected a relation after `!`", |d| {
            d.with_note("a relation is negated by `!`, a comparison by its opposite")
                .with_hint("write `a != b` where `a` and `b` are to differ")
        })
    }

    fn comparison(&mut self) -> Parsed<Condition> {
        use TokenKind::{Define, Equal, Greater, Less};
        let left = self.term()?;
        let slips: [(&[TokenKind], &str, Comparison); 4] = [
            (&[Define], "=", Comparison::Equal),
            (&[Less, Greater], "!=", Comparison::NotEqual),
            (&[Equal, Less], "<=", Comparison::LessOrEqual),
            (&[Equal, Greater], ">=", Comparison::GreaterOrEqual),
        ];
        for (signs, instead, comparison) in slips {
            if self.slip(signs, instead) {
                return Ok(Condition::Compare(left, comparison, self.term()?));
            }
        }
        if self.slip_of_word(&["is"], "=") {
            return Ok(Condition::Compare(left, Comparison::Equal, self.term()?));
        }
        let comparison = match self.peek(0) {
            Some(TokenKind::Equal) => Comparison::Equal,
            Some(TokenKind::NotEqual) => Comparison::NotEqual,
            Some(TokenKind::Less) => Comparison::Less,
            Some(TokenKind::LessOrEqual) => Comparison::LessOrEqual,
            Some(TokenKind::Greater) => Comparison::Greater,
            Some(TokenKind::GreaterOrEqual) => Comparison::GreaterOrEqual,
            other => {
                let opens = other == Some(TokenKind::OpenCurly);
                let of = matches!(&left.value, Term::Variable(variable, 0) if is_aggregate(&variable.name));
                return Err(self.unexpected_with("a comparison: `=`, `!=`, `<`, `<=`, `>` or `>=`", |d| {
                    if opens && of { said_of_aggregates(d) } else { d }
                }));
            }
        };
        self.bump();
        let right = self.term()?;
        // `3 = count {`, `X = 1 + sum D {`: an aggregate stands alone, behind `=`.
        let opens = self.is(TokenKind::OpenCurly) || self.looks_like(&[TokenKind::Word, TokenKind::OpenCurly]);
        if opens && is_aggregate(self.slice(self.before())) {
            return Err(self.unexpected_with("`,` or the end of the rule", said_of_aggregates));
        }
        Ok(Condition::Compare(left, comparison, right))
    }

    fn not_starts(&mut self, start: Span, setting: Setting) -> Parsed<Condition> {
        self.bump();
        self.bump();
        let template = self.ident("the name of a template")?;
        self.expect(TokenKind::Comma, "`,`")?;
        let node = self.term()?;
        if !matches!(node.value, Term::Variable(_, 0)) {
            return Err(self.error(codes::MISPLACED, node.span, "no node", |d| {
                d.with_note(
                    "`!starts` asks of a node of the template, `e1` or `g[x]`, whether another template starts there",
                )
            }));
        }
        self.expect(TokenKind::CloseRound, "`)`")?;
        if !setting.is_where() {
            let span = start.to(self.before());
            return Err(self.error(codes::MISPLACED, span, "`starts` in a rule", |d| {
                d.with_note("rules know relations; whether a template starts at a node can be asked under `where` only")
            }));
        }
        Ok(Condition::NotStarts { template, node })
    }

    /// `every x {`, `some x {`: which of them begins here.
    fn quantifier_ahead(&self) -> Option<Quantifier> {
        if !self.looks_like(&[TokenKind::Word, TokenKind::Word, TokenKind::OpenCurly]) {
            return None;
        }
        match self.word(0) {
            Some("every") => Some(Quantifier::Every),
            Some("some") => Some(Quantifier::Some),
            _ => None,
        }
    }

    fn rounds(&mut self, quantifier: Quantifier, setting: Setting) -> Parsed<Condition> {
        let word = self.bump();
        let index = self.ident("the index variable of `repeat`")?;
        let open = self.expect(TokenKind::OpenCurly, "`{`")?;
        if setting != Setting::Where {
            let name = quantifier.word();
            let (message, note) = if setting == Setting::Rounds {
                (
                    format!("`{name}` within `every` or `some`"),
                    "a condition over rounds speaks of one round, and of the next one",
                )
            } else {
                (
                    format!("`{name}` in a rule"),
                    "rounds belong to the `repeat` of a template, and are asked about under its `where`",
                )
            };
            let _ = self.error(codes::MISPLACED, word.to(index.span), message, |d| d.with_note(note));
            self.skip_braces();
            return Err(super::cursor::Reported);
        }
        let faults = self.faults;
        let body = self.conditions_in_braces(open, Setting::Rounds);
        if body.is_empty() && self.faults == faults {
            let span = word.to(self.before());
            return Err(self.error(codes::UNEXPECTED, span, "no condition within the braces", |d| {
                d.with_hint("write what has to hold of a round, such as `every x { good(g[x]) }`")
            }));
        }
        Ok(Condition::Rounds { quantifier, index, body })
    }

    /// `n = count {`, `m = max x {`: the function, where an aggregate begins here.
    fn aggregate_ahead(&self) -> Option<Aggregate> {
        if !self.looks_like(&[TokenKind::Word, TokenKind::Equal, TokenKind::Word]) {
            return None;
        }
        let function = match self.word(2)? {
            "count" => Aggregate::Count,
            "sum" => Aggregate::Sum,
            "min" => Aggregate::Min,
            "max" => Aggregate::Max,
            "mean" => Aggregate::Mean,
            word => Aggregate::Percentile(percentile(word)?),
        };
        // A variable may be called `max` as well: then an operator or the end of the condition follows.
        let begins = [
            TokenKind::OpenCurly,
            TokenKind::Word,
            TokenKind::Number,
            TokenKind::Float,
            TokenKind::Text,
            TokenKind::OpenRound,
            TokenKind::Underscore,
        ];
        begins.contains(&self.peek(3)?).then_some(function)
    }

    /// `x = avg d {`, `x = p99.9 d {`: how many tokens what stands for a function has, where it is none. No comparison goes on
    /// like that.
    fn unknown_aggregate_ahead(&self) -> Option<usize> {
        if !self.looks_like(&[TokenKind::Word, TokenKind::Equal, TokenKind::Word]) {
            return None;
        }
        let fraction = self.peek(3) == Some(TokenKind::Dot) && self.peek(4) == Some(TokenKind::Number);
        let length = if fraction { 3 } else { 1 };
        let next = 2 + length;
        let opens = self.peek(next) == Some(TokenKind::OpenCurly)
            || (self.peek(next) == Some(TokenKind::Word) && self.peek(next + 1) == Some(TokenKind::OpenCurly));
        opens.then_some(length)
    }

    fn unknown_aggregate(&mut self, length: usize) -> super::cursor::Reported {
        self.bump();
        self.bump();
        let first = self.bump();
        let span = (1..length).fold(first, |span, _| span.to(self.bump()));
        let (name, word) = (self.slice(span), self.slice(first));
        let reported = self.error(codes::UNEXPECTED, span, format!("no aggregate is called `{name}`"), |d| {
            let d = d.with_note(
                "there are `count`, `sum`, `min`, `max`, `mean` and the percentiles `p1` to `p99`, in whole percent",
            );
            match ALIASES.iter().find(|(alias, _)| name.eq_ignore_ascii_case(alias)) {
                Some((_, known)) => d.with_hint(format!("write `{known}`")),
                None if length > 1 => d.with_hint(format!("write `{word}`")),
                None => d.with_similar(name, ["count", "sum", "min", "max", "mean", "p50", "p90", "p95", "p99"]),
            }
        });
        self.skip_until(|cursor| cursor.is(TokenKind::OpenCurly));
        self.take(TokenKind::OpenCurly);
        self.skip_braces();
        reported
    }

    fn aggregate(&mut self, function: Aggregate, setting: Setting) -> Parsed<Condition> {
        let result = self.ident("a variable")?;
        self.bump();
        let word = self.bump();
        let over = if self.is(TokenKind::OpenCurly) { None } else { Some(self.term()?) };
        let open = self.expect(TokenKind::OpenCurly, "`{`")?;
        if setting != Setting::Body {
            let inside = setting == Setting::Aggregate;
            let message = if inside { "aggregate within an aggregate" } else { "aggregate under `where`" };
            let _ = self.error(codes::MISPLACED, result.span.to(word), message, |d| {
                d.with_note("an aggregate ranges over relations, in the body of a rule")
                    .with_hint("give it a rule of its own and use that rule's relation here")
            });
            self.skip_braces();
            return Err(super::cursor::Reported);
        }
        let body = self.conditions_in_braces(open, Setting::Aggregate);
        let place = word;
        match (function, &over) {
            (Aggregate::Count, Some(over)) => {
                Err(self.error(codes::MISPLACED, over.span, "`count` takes nothing before its `{`", |d| {
                    d.with_note("it counts the distinct bindings of the variables within its braces")
                }))
            }
            (function, None) if function != Aggregate::Count => {
                let name = self.slice(place);
                Err(self.error(codes::UNEXPECTED, place, format!("`{name}` needs a term before its `{{`"), |d| {
                    d.with_hint(format!("write `{name} x {{ … }}` for the values of x"))
                }))
            }
            _ => Ok(Condition::Aggregate { result, function, over, body }),
        }
    }

    /// Skips to the brace that closes one already opened, and over it.
    fn skip_braces(&mut self) {
        self.skip_until(|cursor| cursor.is(TokenKind::CloseCurly));
        self.take(TokenKind::CloseCurly);
    }

    /// Conditions separated by commas up to the closing brace, which is taken too. Recovers at commas.
    pub(super) fn conditions_in_braces(&mut self, open: Span, setting: Setting) -> Vec<Spanned<Condition>> {
        let mut conditions = Vec::new();
        loop {
            if self.take(TokenKind::CloseCurly).is_some() {
                return conditions;
            }
            if self.at_end() || self.at_item() || self.after_conditions(setting) {
                self.unclosed(open, setting.words());
                return conditions;
            }
            let read = self.condition(setting).and_then(|condition| {
                conditions.push(condition);
                if self.is(TokenKind::CloseCurly) { Ok(()) } else { self.comma_between_conditions(setting) }
            });
            if read.is_err() {
                self.skip_until(|cursor| {
                    cursor.is(TokenKind::Comma) || cursor.is(TokenKind::CloseCurly) || cursor.after_conditions(setting)
                });
                self.take(TokenKind::Comma);
            }
        }
    }

    /// Whether what begins here can only follow a closing brace, which then is missing.
    fn after_conditions(&self, setting: Setting) -> bool {
        if setting.is_where() { self.at_section() } else { self.is(TokenKind::Dot) }
    }

    fn comma_between_conditions(&mut self, setting: Setting) -> Parsed<()> {
        if self.at_end() || self.at_item() || self.after_conditions(setting) {
            return Ok(()); // reported as the missing brace that it is
        }
        if self.slip_of_word(&["and"], ",") {
            return Ok(());
        }
        self.expect(TokenKind::Comma, "`,` or `}`").map(drop)
    }
}

fn said_of_aggregates(finding: Diagnostic) -> Diagnostic {
    finding
        .with_note("an aggregate is a condition of a rule's body, with what it is taken over in braces")
        .with_hint("write `q(V, N) :- r(_, V), N = count { r(X, V) }, N > 3.`")
}

/// What other languages call our aggregates.
const ALIASES: [(&str, &str); 9] = [
    ("avg", "mean"),
    ("average", "mean"),
    ("median", "p50"),
    ("minimum", "min"),
    ("least", "min"),
    ("maximum", "max"),
    ("greatest", "max"),
    ("total", "sum"),
    ("cnt", "count"),
];

/// Whether a word names an aggregate, here or in other languages.
fn is_aggregate(word: &str) -> bool {
    ["count", "sum", "min", "max", "mean"].contains(&word)
        || percentile(word).is_some()
        || ALIASES.iter().any(|(alias, _)| word.eq_ignore_ascii_case(alias))
}

/// Whether a number is written with a digit other than 0 before its exponent.
fn has_digits(number: &str) -> bool {
    number.split(['e', 'E']).next().is_some_and(|digits| digits.contains(|digit: char| ('1'..='9').contains(&digit)))
}

/// Units of time in nanoseconds.
const TIMES: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("min", 60e9), ("h", 3600e9)];

/// `p50`, `p95`: the percentage, from 1 to 99.
fn percentile(word: &str) -> Option<u8> {
    let digits = word.strip_prefix('p').filter(|digits| !digits.starts_with(['0', '+']))?;
    digits.parse().ok().filter(|percent| (1..100).contains(percent))
}

/// A variable and a number make one linear term; all else is a tree.
fn combined(left: Spanned<Term>, operator: Operator, right: Spanned<Term>) -> Term {
    let linear = match (&left.value, operator, &right.value) {
        (Term::Variable(_, offset), Operator::Subtract, Term::Integer(number)) => offset.checked_sub(*number),
        (Term::Variable(_, offset), Operator::Add, Term::Integer(number))
        | (Term::Integer(number), Operator::Add, Term::Variable(_, offset)) => offset.checked_add(*number),
        _ => None,
    };
    match (linear, left.value, right.value) {
        (Some(offset), Term::Variable(variable, _), _) | (Some(offset), _, Term::Variable(variable, _)) => {
            Term::Variable(variable, offset)
        }
        (_, value, other) => Term::Arithmetic(
            Box::new(Spanned { value, span: left.span }),
            operator,
            Box::new(Spanned { value: other, span: right.span }),
        ),
    }
}
