/**
 * Rule files of dyelog, for editors: templates, Datalog rules, and comments for tools.
 *
 * The words of the language are reserved nowhere, as in the language itself: each can be a name elsewhere.
 */

/// <reference types="tree-sitter-cli/dsl" />

const list = (item) => optional(seq(item, repeat(seq(",", item)), optional(",")));

module.exports = grammar({
  name: "dyelog",

  extras: ($) => [/\s|\uFEFF/, $.comment, $.doc_comment, $.directive],

  word: ($) => $.name,

  // A brace after a node may begin its attributes or an alternative.
  conflicts: ($) => [[$.aggregate, $._term], [$.node]],

  rules: {
    file: ($) => repeat(choice($.template, $.use, $.export, $.output, $.rule)),

    use: ($) => prec.right(seq(choice("use", "include"), field("file", $.string), optional("."))),
    export: ($) => seq("export", list(field("relation", $.name)), "."),
    output: ($) => seq("output", list($.answer), "."),
    answer: ($) => seq(field("relation", $.name), optional(seq("(", list(field("column", $.name)), ")"))),

    template: ($) => seq("template", field("name", $.name), "{", repeat($._section), "}"),
    _section: ($) => choice($.order, $.longest, $.expect, $.match, $.where, $.model, $.on, $.assert, $.retire),
    order: ($) => seq("order", optional("-"), $.number),
    longest: (_) => "longest",
    expect: ($) => seq("expect", $.string),
    match: ($) => seq("match", "{", repeat(choice($._item, $.lookup, $.path)), "}"),
    _item: ($) => choice($.node, $.repeat, $.maybe, $.alternatives),
    maybe: ($) => seq("optional", $.part_of_match),
    alternatives: ($) => seq($.part_of_match, repeat1(seq("or", $.part_of_match))),
    part_of_match: ($) => seq("{", repeat1($._item), "}"),
    on: ($) => seq("on", field("event", $.name), "(", list(choice($.name, $.wildcard)), ")"),
    assert: ($) => seq("assert", "{", repeat(choice($.lookup, $.atom)), "}"),
    retire: ($) => seq("retire", "{", repeat(choice($.atom, $.part)), "}"),
    lookup: ($) => seq(field("name", $.name), "=", $.atom),
    path: ($) =>
      seq("path", field("name", $.name), "[", $.number, "..", $.name, "]", "from", $.name, "to", $.name),
    part: ($) => seq(field("name", $.name), "[", $.index, "..", $.index, "]"),
    where: ($) => seq("where", "{", list($._condition), "}"),
    model: ($) => seq("model", "{", repeat($._statement), "}"),

    node: ($) =>
      seq(
        field("name", $.name),
        optional(seq("[", field("index", $.name), "]")),
        "=",
        $.kind,
        $.label,
        optional($.attributes),
      ),
    kind: ($) => choice("Be", "Ac", "Ed", seq(choice("Fk", "Jn"), "(", $._term, ")"), $.wildcard),
    label: ($) => seq("[", $._term, ",", $._term, ",", $._term, "|", $._term, ",", $._term, "]"),
    attributes: ($) => seq("{", repeat(seq(field("attribute", $.name), ":", $._term, optional(","))), "}"),
    repeat: ($) => seq("repeat", $._range, optional(seq("min", $.number)), "{", repeat(choice($.node, $.repeat)), "}"),
    _range: ($) => seq(field("index", $.name), "in", optional("-"), $.number, "..", field("count", $.name)),

    _statement: ($) => choice($.new_entry, $.operation, $.for),
    new_entry: ($) =>
      seq(field("entry", $.variable), ":=", "newEntry", "(", field("type", $.name), ",", $._term, ")"),
    operation: ($) => seq(field("operation", $.name), "(", list(choice($._term, $.label)), ")"),
    for: ($) => seq("for", $._range, "{", repeat($._statement), "}"),

    rule: ($) => seq(field("head", $.atom), optional(seq(":-", list($._condition))), "."),

    _condition: ($) => choice($.comparison, $.negation, $.starts, $.atom, $.quantifier, $.aggregate),
    comparison: ($) => seq($._term, choice("=", "==", "!=", "<", "<=", ">", ">="), $._term),
    negation: ($) => seq("!", choice($.atom, $.starts)),
    starts: ($) => prec(1, seq("starts", "(", field("template", $.name), ",", $._term, ")")),
    quantifier: ($) => seq(choice("every", "some"), field("index", $.name), "{", list($._condition), "}"),
    aggregate: ($) =>
      seq(
        field("result", $.variable),
        "=",
        choice("count", seq(field("function", $.function), $._term)),
        "{",
        list($._condition),
        "}",
      ),
    function: (_) => choice("sum", "min", "max", "mean", token(prec(1, /p[1-9][0-9]?/))),
    atom: ($) => seq(field("relation", $.name), "(", list($._term), ")"),

    _term: ($) => choice($.wildcard, $.number, $.float, $.string, $.variable, $.arithmetic, $.negative, $.parenthesized),
    arithmetic: ($) =>
      choice(
        prec.left(1, seq($._term, choice("+", "-"), $._term)),
        prec.left(2, seq($._term, choice("*", "/", "%"), $._term)),
      ),
    negative: ($) => prec(3, seq("-", $._term)),
    parenthesized: ($) => seq("(", $._term, ")"),
    variable: ($) => prec.right(seq($.name, optional(seq("[", $.index, "]")))),
    index: ($) =>
      choice(seq(optional("-"), $.number), seq($.name, optional(seq(choice("+", "-"), $.number)))),

    name: (_) => /[\p{L}_][\p{L}\p{N}_']*/,
    wildcard: (_) => token(prec(1, "_")),
    number: (_) => /[0-9]+/,
    float: (_) => token(prec(1, /[0-9]+(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)/)),
    string: (_) => /"([^"\\\n]|\\[^\n])*"/,

    // Comments for tools, `//@ allow R070: …` with the lines of a trace, `//| …`; then `///`, and all others.
    directive: (_) => token(prec(3, /\/\/[@|][^\n]*/)),
    doc_comment: (_) => token(prec(2, /\/\/\/([^\/\n][^\n]*)?/)),
    comment: (_) => token(prec(1, /\/\/[^\n]*/)),
  },
});
