//! What rules and literals cost, as text and JSON.

use serde_json::{Value as Json, json};

use crate::datalog::ast::{Condition, Program, Rule, Spanned};
use crate::datalog::eval::{LiteralProfile, Profile, RuleProfile};
use crate::datalog::syntax::print_condition;
use crate::report::json::pretty;
use crate::report::look::Look;
use crate::report::table::Table;

/// Rules by their time, the costliest first, each with its literals in the order in which they were joined.
pub fn text(program: &Program, profile: &Profile, look: Look) -> String {
    let mut table = Table::new(&["RULE AND LITERALS", ">ROUNDS", ">TIME (ms)", ">ROWS IN", ">ROWS OUT", "NOTE"]);
    let mut rules: Vec<&RuleProfile> = profile.rules.iter().collect();
    rules.sort_by_key(|rule| (std::cmp::Reverse(rule.time), rule.rule, rule.aggregate));
    for cost in rules {
        let Some(rule) = program.rules.get(cost.rule) else { continue };
        let inside = if cost.aggregate { ", inside of an aggregate" } else { "" };
        let head = format!("{} ({}{inside})", rule.head.relation.value, place(program, rule));
        let time = format!("{:.3}", cost.time as f64 / 1e6);
        let none = String::new();
        let cells = [head, cost.rounds.to_string(), time, none.clone(), cost.rows.to_string(), none.clone()];
        table.row(cells.to_vec());
        for (number, order) in cost.orders.iter().enumerate() {
            for literal in order {
                let again = if cost.orders.len() > 1 { format!("order {}: ", number + 1) } else { none.clone() };
                let words = format!("  {again}{}", words(rule, cost, literal));
                let note = if literal.product { "cartesian product" } else { "" };
                let rows = [literal.taken, literal.given].map(|rows| rows.to_string());
                let [taken, given] = rows;
                table.row(vec![words, none.clone(), none.clone(), taken, given, note.to_owned()]);
            }
        }
    }
    let ended = if profile.interrupted { "the evaluation was stopped; figures are those until then\n" } else { "" };
    format!("{}{ended}", table.render(look))
}

/// `{"dyelog-rule-profile": 1, "interrupted", "rules": [{"relation", "place", "aggregate", "rounds", "seconds", "rows", "orders":
/// [[{"literal", "taken", "given", "product"}]]}]}`, in the order of the program.
pub fn json(program: &Program, profile: &Profile) -> String {
    let rules: Vec<Json> = profile
        .rules
        .iter()
        .filter_map(|cost| Some((cost, program.rules.get(cost.rule)?)))
        .map(|(cost, rule)| {
            let orders: Vec<Vec<Json>> = cost
                .orders
                .iter()
                .map(|order| {
                    let literal = |literal: &LiteralProfile| {
                        json!({
                            "literal": words(rule, cost, literal),
                            "taken": literal.taken,
                            "given": literal.given,
                            "product": literal.product,
                        })
                    };
                    order.iter().map(literal).collect()
                })
                .collect();
            json!({
                "relation": &*rule.head.relation.value,
                "place": place(program, rule),
                "aggregate": cost.aggregate,
                "rounds": cost.rounds,
                "seconds": cost.time as f64 / 1e9,
                "rows": cost.rows,
                "orders": orders,
            })
        })
        .collect();
    pretty(&json!({ "dyelog-rule-profile": 1, "interrupted": profile.interrupted, "rules": rules }))
}

/// File and line of a rule.
fn place(program: &Program, rule: &Rule) -> String {
    let (file, line) = program.line(rule.head.span);
    format!("{file}:{line}")
}

/// The text of a literal, or what it is where the text has none or does not say which one.
fn words(rule: &Rule, cost: &RuleProfile, literal: &LiteralProfile) -> String {
    let Some(place) = literal.literal else { return "calculation of an argument".to_owned() };
    let body: &[Spanned<Condition>] = if cost.aggregate {
        let mut aggregates = rule.body.iter().filter_map(|condition| match &condition.value {
            Condition::Aggregate { body, .. } => Some(&**body),
            _ => None,
        });
        match (aggregates.next(), aggregates.next()) {
            (Some(only), None) => only,
            _ => return format!("literal {} of an aggregate", place + 1),
        }
    } else {
        &rule.body
    };
    let written = body.get(place).map(|literal| &literal.value);
    let written = match (written, literal.within) {
        (Some(Condition::Aggregate { body, .. }), Some(within)) => body.get(within).map(|literal| &literal.value),
        _ => written,
    };
    written.map_or_else(String::new, print_condition)
}
