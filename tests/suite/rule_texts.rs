//! Random rule files, as what they say.

use std::sync::Arc;

use dyelog::datalog::ast::{
    Aggregate, Argument, Atom, Choice, Comparison, Condition, Damage, Ident, Index, KindPattern, MatchItem,
    NodePattern, NodeReference, Operator, Output, Quantifier, Repeat, Rule, Span, Spanned, Statement, Template, Term,
    Variable,
};
use dyelog::datalog::syntax::{Export, Item, Outputs, Use};
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::Union;

/// Pieces that texts near to rule files are made of.
pub const WORDS: [&str; 62] = [
    "template",
    "t",
    "{",
    "}",
    "order",
    "1",
    "longest",
    "match",
    "{",
    "where",
    "model",
    "expect",
    "\"x\"",
    "e1",
    "=",
    "Ac",
    "Be",
    "Fk",
    "Jn",
    "(",
    ")",
    "[",
    "]",
    "j",
    ",",
    "|",
    "+",
    "-",
    "*",
    "repeat",
    "x",
    "in",
    "1",
    "..",
    "n",
    "min",
    "for",
    ":=",
    "newEntry",
    "use",
    "include",
    "export",
    "output",
    "export p.",
    "output p(x), q.",
    ":-",
    ".",
    "!",
    "starts",
    "count",
    "max",
    "!=",
    "<",
    "_",
    "e1 = Ac [j, k, m | a, v]",
    "p(X)",
    "p(X) :- q(X).",
    "addRequest(E, S)",
    "{ name: x }",
    "template t {",
    "match {",
    "Y = count { p(Y) }",
];

/// The debug form of items, without the places that reading gives them.
pub fn without_spans(items: &[Item]) -> String {
    let text = format!("{items:?}");
    let mut parts = text.split("Span {");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('}').map_or("", |(_, rest)| rest));
    }
    plain
}

fn at<T>(value: T) -> Spanned<T> {
    Spanned { value, span: Span::default() }
}

fn ident() -> impl Strategy<Value = Ident> {
    prop_oneof![
        4 => "[a-zA-Zä][a-zA-Z0-9_']{0,3}",
        1 => "(template|match|repeat|for|count|max|order|use|export|output|_x|in|min|newEntry|Ac|starts2)",
    ]
    .prop_map(|name| at(name.into()))
}

fn text() -> impl Strategy<Value = Spanned<Arc<str>>> {
    "[ -~\n\t\r€ä\u{1}]{0,8}".prop_map(|text| at(text.into()))
}

fn doc() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        prop::collection::vec("[ -~ä]{0,11}[!-~ä]", 1..3).prop_map(|lines| lines.join("\n"))
    ]
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![4 => -3..20i64, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
}

fn variable() -> impl Strategy<Value = Variable> {
    let index = (option::of(ident()), number())
        .prop_map(|(variable, offset)| Index { variable: variable.map(|variable| variable.value), offset });
    (ident(), option::weighted(0.2, index)).prop_map(|(name, index)| Variable { name: name.value, index })
}

/// Terms as reading gives them: a variable and a number are one.
fn term() -> impl Strategy<Value = Spanned<Term>> {
    let leaf = prop_oneof![
        1 => Just(Term::Wildcard),
        2 => number().prop_map(Term::Integer),
        1 => text().prop_map(|text| Term::Symbol(text.value)),
        4 => variable().prop_map(|variable| Term::Variable(variable, 0)),
        2 => (variable(), number()).prop_map(|(variable, offset)| Term::Variable(variable, offset)),
    ];
    let operator = prop_oneof![
        Just(Operator::Add),
        Just(Operator::Subtract),
        Just(Operator::Multiply),
        Just(Operator::Divide),
        Just(Operator::Remainder),
    ];
    leaf.prop_recursive(4, 12, 2, move |inner| {
        (inner.clone(), operator.clone(), inner).prop_map(|(left, operator, right)| match (&left, operator, &right) {
            (Term::Variable(..), Operator::Add | Operator::Subtract, Term::Integer(_))
            | (Term::Integer(_), Operator::Add, Term::Variable(..)) => left,
            _ => Term::Arithmetic(Box::new(at(left)), operator, Box::new(at(right))),
        })
    })
    .prop_map(at)
}

fn atom() -> impl Strategy<Value = Atom> {
    (ident(), prop::collection::vec(term(), 0..3)).prop_map(|(relation, arguments)| Atom {
        relation,
        arguments,
        span: Span::default(),
    })
}

fn simple_condition() -> impl Strategy<Value = Spanned<Condition>> {
    let comparison = prop_oneof![
        Just(Comparison::Equal),
        Just(Comparison::NotEqual),
        Just(Comparison::Less),
        Just(Comparison::LessOrEqual),
        Just(Comparison::Greater),
        Just(Comparison::GreaterOrEqual),
    ];
    prop_oneof![
        (term(), comparison, term()).prop_map(|(left, comparison, right)| Condition::Compare(left, comparison, right)),
        (any::<bool>(), atom()).prop_map(|(negated, atom)| Condition::Atom { negated, atom }),
    ]
    .prop_map(at)
}

fn conditions() -> impl Strategy<Value = Vec<Spanned<Condition>>> {
    prop::collection::vec(simple_condition(), 0..3)
}

fn body_condition() -> impl Strategy<Value = Spanned<Condition>> {
    let function = prop_oneof![
        Just((Aggregate::Count, None)),
        (prop_oneof![Just(Aggregate::Sum), Just(Aggregate::Min), Just(Aggregate::Max)], term())
            .prop_map(|(function, over)| (function, Some(over))),
    ];
    let aggregate = (ident(), function, conditions())
        .prop_map(|(result, (function, over), body)| at(Condition::Aggregate { result, function, over, body }));
    prop_oneof![3 => simple_condition(), 1 => aggregate]
}

fn where_condition() -> impl Strategy<Value = Spanned<Condition>> {
    let starts = || {
        (ident(), variable())
            .prop_map(|(template, node)| at(Condition::NotStarts { template, node: at(Term::Variable(node, 0)) }))
    };
    let one = || prop_oneof![4 => simple_condition(), 1 => starts()];
    let quantifier = prop_oneof![Just(Quantifier::Every), Just(Quantifier::Some)];
    let rounds = (quantifier, ident(), prop::collection::vec(one(), 1..3))
        .prop_map(|(quantifier, index, body)| at(Condition::Rounds { quantifier, index, body }));
    prop_oneof![5 => one(), 1 => rounds]
}

fn rule() -> impl Strategy<Value = Item> {
    (doc(), atom(), prop::collection::vec(body_condition(), 0..4))
        .prop_map(|(doc, head, body)| Item::Rule(Rule { doc, head, body, span: Span::default() }))
}

fn node() -> impl Strategy<Value = NodePattern> {
    let kind = prop_oneof![
        Just(KindPattern::Begin),
        Just(KindPattern::Activity),
        Just(KindPattern::End),
        term().prop_map(KindPattern::Fork),
        term().prop_map(KindPattern::Join),
        Just(KindPattern::Any),
    ];
    let label = (term(), term(), term(), term(), term());
    (ident(), option::of(ident()), kind, label, prop::collection::vec((ident(), term()), 0..2)).prop_map(
        |(name, index, kind, (scenario, thread, position, task, counter), attributes)| NodePattern {
            name,
            index,
            kind: at(kind),
            scenario,
            thread,
            position,
            task,
            counter,
            attributes,
            span: Span::default(),
        },
    )
}

fn match_item() -> impl Strategy<Value = MatchItem> {
    let repeat = (ident(), ident(), option::of(0..9i64), prop::collection::vec(node(), 0..3)).prop_map(
        |(index, count, min, nodes)| {
            MatchItem::Repeat(Repeat { index, count, min: min.map(at), nodes, span: Span::default() })
        },
    );
    let plain = prop_oneof![3 => node().prop_map(MatchItem::Node), 1 => repeat];
    plain.prop_recursive(2, 8, 3, |inner| {
        let way = prop::collection::vec(inner, 1..3);
        let ways = prop::collection::vec(way.clone(), 2..4).prop_map(|ways| (ways, false));
        prop_oneof![ways, way.prop_map(|way| (vec![way], true))]
            .prop_map(|(ways, optional)| MatchItem::Choice(Choice { ways, optional, span: Span::default() }))
    })
}

fn argument() -> impl Strategy<Value = Spanned<Argument>> {
    let node = (term(), term(), term(), term(), term()).prop_map(|(scenario, thread, position, task, counter)| {
        Argument::Node(Box::new(NodeReference { scenario, thread, position, task, counter }))
    });
    prop_oneof![3 => term().prop_map(|term| Argument::Term(term.value)), 1 => node].prop_map(at)
}

fn statement() -> impl Strategy<Value = Statement> {
    let span = Span::default();
    let entry = (variable(), ident(), term()).prop_map(move |(entry, interaction, task)| Statement::NewEntry {
        entry: at(entry),
        interaction,
        task,
        span,
    });
    let operation = (ident(), prop::collection::vec(argument(), 0..3))
        .prop_map(move |(name, arguments)| Statement::Operation { name, arguments, span });
    Union::new([entry.boxed(), operation.boxed()]).prop_recursive(2, 6, 3, move |inner| {
        (ident(), number(), ident(), prop::collection::vec(inner, 0..3))
            .prop_map(move |(index, from, to, body)| Statement::For { index, from, to, body, span })
    })
}

fn template() -> impl Strategy<Value = Item> {
    let head = (ident(), doc(), option::of(number()), any::<bool>(), prop::collection::vec(text(), 0..2));
    let items = prop::collection::vec(match_item(), 0..3);
    let conditions = prop::collection::vec(where_condition(), 0..3);
    let statements = prop::collection::vec(statement(), 0..4);
    (head, items, conditions, statements).prop_map(
        |((name, doc, order, longest, expects), items, conditions, statements)| {
            let (order, span) = (order.map(at), Span::default());
            Item::Template(Template {
                name,
                doc,
                order,
                longest,
                items,
                conditions,
                statements,
                expects,
                damage: Damage::default(),
                span,
            })
        },
    )
}

/// The items of a file.
pub fn items() -> impl Strategy<Value = Vec<Item>> {
    let used = text().prop_map(|file| Item::Use(Use { file, span: Span::default() }));
    let span = Span::default();
    let export =
        prop::collection::vec(ident(), 1..3).prop_map(move |relations| Item::Export(Export { relations, span }));
    let output = (ident(), option::of(prop::collection::vec(ident(), 0..3)))
        .prop_map(move |(relation, columns)| Output { relation, columns, span });
    let outputs =
        prop::collection::vec(output, 1..3).prop_map(move |relations| Item::Output(Outputs { relations, span }));
    prop::collection::vec(prop_oneof![2 => template(), 3 => rule(), 1 => used, 1 => export, 1 => outputs], 0..4)
}
