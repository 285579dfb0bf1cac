//! Searches as text and JSON: the answer with its evidence.

use serde_json::{Value as Json, json};

use crate::diagnostic::quantity::{for_people, number, significant};
use crate::model::parameter::{Kind, Value};
use crate::report::json::{ends, pretty, value};
use crate::report::look::Look;
use crate::report::table::Table;
use crate::report::validation::between;
use crate::study::interval::Interval;
use crate::study::search::{Busy, Goal, Point, Question, Reached, Search, Trend, Verdict};
use crate::study::sweep::State;

/// The version of the JSON form.
pub const VERSION: u32 = 1;

/// The answer, how it stands to the goals, what comes beside it, what was checked, and all that was tried.
pub fn text(search: &Search, look: Look) -> String {
    let mut text = answer(search);
    if let Some(answer) = search.answer {
        let point = &search.points[answer];
        for (number, (goal, reached)) in search.goals.iter().zip(&point.evaluation.reached).enumerate() {
            let own = search.sure.as_ref().and_then(|sure| sure.intervals.get(number).copied().flatten());
            let own = own.map(|own| interval(goal, own)).unwrap_or_default();
            text.push_str(&format!("  {goal}: {}{own}\n", standing(goal, reached)));
        }
    }
    text.push_str(&sure(search));
    if let Some(beyond) = search.beyond {
        text.push_str(&beside(search, &search.points[beyond]));
    }
    text.push_str(&checked(search));
    text.push('\n');
    text.push_str(&table(search, look));
    text
}

fn goals(search: &Search) -> &'static str {
    if search.goals.len() == 1 { "the goal" } else { "all goals" }
}

fn answer(search: &Search) -> String {
    let goals = goals(search);
    let what = match search.question {
        Question::Cheapest => "choice",
        _ => "value",
    };
    match search.answer.map(|answer| &search.points[answer]) {
        Some(point) => {
            let cost = point.cost.map(|cost| format!(", at {}", number(cost))).unwrap_or_default();
            let end = if search.beyond.is_none() && search.question != Question::Cheapest {
                match (search.open, search.question) {
                    (true, Question::Largest) => "; still greater ones may meet it, too",
                    _ => "; the range ends there",
                }
            } else {
                ""
            };
            format!("{} is the {} {what} that meets {goals}{cost}{end}\n", label(search, point), search.question.name())
        }
        None => {
            let range = match (&search.points.first(), &search.points.last()) {
                (Some(first), Some(last)) if search.question != Question::Cheapest => {
                    format!(" from {} to {}", values(search, first), values(search, last))
                }
                _ => String::new(),
            };
            match search.points.len() {
                // Nothing is said of values that were not tried.
                count if !search.is_complete() => format!("none of {count} values tried{range} meets {goals}\n"),
                1 => format!("the only {what} does not meet {goals}\n"),
                _ => format!("no {what}{range} meets {goals}\n"),
            }
        }
    }
}

/// A point in words.
fn label(search: &Search, point: &Point) -> String {
    let settings = search.parameters.iter().zip(&point.values).map(|((path, kind), value)| setting(path, *kind, value));
    point.name.clone().unwrap_or_else(|| settings.collect::<Vec<_>>().join(", "))
}

/// A parameter with its value.
fn setting(path: &str, kind: Kind, value: &Value) -> String {
    let (_, unit) = for_people(kind.unit());
    format!("{path} = {}{}{unit}", shown(kind, value), if unit.is_empty() { "" } else { " " })
}

fn values(search: &Search, point: &Point) -> String {
    point.name.clone().unwrap_or_else(|| shown_values(search, point).collect::<Vec<_>>().join(", "))
}

fn shown_values<'s>(search: &'s Search, point: &'s Point) -> impl Iterator<Item = String> {
    search.parameters.iter().zip(&point.values).map(|((_, kind), value)| shown(*kind, value))
}

fn shown(kind: Kind, value: &Value) -> String {
    match value {
        // With the digits that it was searched to.
        Value::Number(number) => match for_people(kind.unit()) {
            (1.0, _) => number.to_string(),
            (scale, _) => significant(scale * number, 12, -12..15),
        },
        other => other.to_string(),
    }
}

/// How a goal is met or missed.
fn standing(goal: &Goal, reached: &Reached) -> String {
    let Some(value) = reached.value else { return "there is no such figure".to_owned() };
    let width = match reached.half_width {
        Some(width) if width.is_finite() => format!(" ± {}", goal.shown(width)),
        Some(_) => " ± anything".to_owned(),
        None => String::new(),
    };
    if reached.is_level(goal) {
        return format!("{}, which no solver can tell from the bound", goal.shown_apart(value));
    }
    let percent = number((100.0 * reached.margin.abs() * 100.0).round() / 100.0);
    let margin = match reached.verdict {
        Verdict::Met => format!("{percent} % to spare"),
        Verdict::Missed => format!("missed by {percent} %"),
        Verdict::Unknown => "too close to tell".to_owned(),
    };
    format!("{}{width}, {margin}", goal.shown_apart(value))
}

/// The interval of a goal's figure; nothing where it is as good as certain.
fn interval(goal: &Goal, own: Interval) -> String {
    let shown = |value| goal.shown(value);
    if shown(own.low) == shown(own.high) {
        return String::new();
    }
    format!("; 95 % interval {}", between(own, shown))
}

/// Whether the answer is sure, and which value is.
fn sure(search: &Search) -> String {
    let Some(sure) = &search.sure else { return String::new() };
    let goals = goals(search);
    match (&sure.value, sure.is_met) {
        (_, true) => format!("95 % intervals there meet {goals}, too\n"),
        (Some(value), _) => {
            let (path, kind) = &search.parameters[0];
            let setting = setting(path, *kind, value);
            format!("{setting} is sure: there 95 % intervals meet {goals}, too\n")
        }
        (None, _) if search.question == Question::Cheapest => {
            format!("the choice may miss {goals} by chance: 95 % intervals there do not meet {}\n", pronoun(search))
        }
        (None, _) => format!("none of the values tried is sure: 95 % intervals meet {goals} nowhere\n"),
    }
}

/// What stands for goals that were named.
fn pronoun(search: &Search) -> &'static str {
    if search.goals.len() == 1 { "it" } else { "them" }
}

/// What stands beside the answer: which goals it misses, and what it is short of.
fn beside(search: &Search, point: &Point) -> String {
    let missed: Vec<String> = search
        .goals
        .iter()
        .zip(&point.evaluation.reached)
        .filter(|(_, reached)| reached.verdict != Verdict::Met)
        .map(|(goal, reached)| format!("{goal}: {}", standing(goal, reached)))
        .collect();
    let why = point.evaluation.state.reason().map_or_else(|| missed.join("; "), str::to_owned);
    let busy = point.evaluation.busiest.as_ref().map(|busy| format!("; {}", limit(busy))).unwrap_or_default();
    format!("with {}: {why}{busy}\n", values(search, point))
}

fn limit(busy: &Busy) -> String {
    let what =
        if busy.kind == "task" { format!("threads of {}", busy.name) } else { format!("{} {}", busy.kind, busy.name) };
    let percent = number(100.0 * busy.part);
    if busy.saturated { format!("{what} saturated, {percent} % busy") } else { format!("busiest: {what}, {percent} %") }
}

/// What the answer rests on.
fn checked(search: &Search) -> String {
    let count = search.points.len();
    if search.question == Question::Cheapest {
        return match search.answer {
            Some(_) => format!("{count} of {} choices were tried, all that are as cheap among them\n", search.among),
            None if count == 1 => "the only choice was tried\n".to_owned(),
            None => format!("all {count} choices were tried\n"),
        };
    }
    let mut text = if search.is_complete() {
        if count == 1 { "the only value was tried".to_owned() } else { format!("all {count} values were tried") }
    } else {
        let ends = match (search.points.first(), search.points.last()) {
            (Some(first), Some(last)) => format!(" from {} to {}", values(search, first), values(search, last)),
            _ => String::new(),
        };
        format!("{count} values{ends} were tried")
    };
    text.push_str(&match (search.ranges(), search.is_complete()) {
        (0 | 1, _) => String::new(),
        (ranges, true) => format!("; those that meet {} are {ranges} ranges", goals(search)),
        (ranges, false) => {
            format!("; those that meet {} are {ranges} ranges, and there may be others between them", goals(search))
        }
    });
    text.push('\n');
    text.push_str(&trends(search));
    if search.is_approximate() {
        text.push_str(
            "the layered solver is approximate here: margins below its error, often some percent, mean little; `--solver simulate` \
             tells for values near the answer\n",
        );
    }
    text
}

/// How figures go along the values tried; of goals that share one, once.
fn trends(search: &Search) -> String {
    // Of changes that the solver may have made itself nothing is said.
    let level = search.level().filter(|level| *level > 1e-3).map(|level| number(100.0 * level));
    let more = level.as_ref().map(|level| format!(" by more than {level} %")).unwrap_or_default();
    let same = level.map(|level| format!(" to within {level} %")).unwrap_or_default();
    let mut text = String::new();
    for (number, goal) in search.goals.iter().enumerate() {
        let how = match search.trend(number) {
            _ if search.goals[..number].iter().any(|other| other.figure == goal.figure) => continue,
            None => continue,
            Some(Trend::Rises) => format!("never falls{more}"),
            Some(Trend::Falls) => format!("never rises{more}"),
            Some(Trend::Stays) => format!("stays the same{same}"),
            Some(Trend::Turns) => format!("rises and falls{more}"),
        };
        text.push_str(&format!("along them {} {how}\n", goal.figure));
    }
    text
}

fn table(search: &Search, look: Look) -> String {
    let mut headings: Vec<String> = Vec::new();
    let named = search.points.iter().any(|point| point.name.is_some());
    if named {
        headings.push("CHOICE".to_owned());
    } else {
        headings.extend(search.parameters.iter().map(|(path, kind)| match for_people(kind.unit()).1 {
            "" => format!(">{path}"),
            unit => format!(">{path} ({unit})"),
        }));
    }
    headings.push(">COST".to_owned());
    for goal in &search.goals {
        let (_, unit) = for_people(goal.unit());
        headings.push(format!(">{} ({unit})", goal.figure));
    }
    headings.extend(["BUSIEST".to_owned(), "MEETS".to_owned()]);
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut drawn = Table::new(&headings);
    for (place, point) in search.points.iter().enumerate() {
        let mut cells: Vec<String> = Vec::new();
        match &point.name {
            Some(name) => cells.push(name.clone()),
            None => cells.extend(shown_values(search, point)),
        }
        cells.push(point.cost.map(number).unwrap_or_default());
        for (position, goal) in search.goals.iter().enumerate() {
            cells.push(point.evaluation.reached.get(position).map(|reached| cell(goal, reached)).unwrap_or_default());
        }
        let busiest = point.evaluation.busiest.as_ref();
        cells.push(
            busiest
                .map(|busy| {
                    let what = if busy.kind == "task" { "threads of" } else { busy.kind };
                    format!("{what} {} {} %", busy.name, number(100.0 * busy.part))
                })
                .unwrap_or_default(),
        );
        let verdict = match (&point.evaluation.state, point.verdict) {
            (State::Failed(_), _) => "FAILED",
            (_, Verdict::Met) if search.answer == Some(place) => "yes: the answer",
            (_, Verdict::Met) => "yes",
            (State::Doubtful(_) | State::Backlog(_), Verdict::Missed) => "no: no steady state",
            (_, Verdict::Missed) => "no",
            (State::Doubtful(_) | State::Backlog(_), Verdict::Unknown) => "NOT CONVERGED",
            (State::Converged, Verdict::Unknown) => "too close to tell",
        };
        cells.push(verdict.to_owned());
        drawn.row(cells);
    }
    drawn.render(look)
}

fn cell(goal: &Goal, reached: &Reached) -> String {
    let (scale, _) = for_people(goal.unit());
    let value = reached.value.map_or_else(|| "–".to_owned(), |value| number(scale * value));
    match reached.half_width {
        Some(width) if width.is_finite() => format!("{value} ±{}", number(scale * width)),
        _ => value,
    }
}

/// One JSON document, ending in a newline: `{"dyelog-search": 1, "question", "solver", "parameters": [{"path", "unit"}], "goals":
/// [{"figure", "relation", "bound", "unit", "trend"}], "answer": POINT or null, "beyond": POINT or null, "among", "complete", "open",
/// "changes", "approximate", "points": [POINT]}`, with POINT `{"name", "values", "cost", "meets": "yes"|"no"|"unclear", "state", "reason", "goals":
/// [{"value", "half_width", "margin", "meets"}], "busiest": {"kind", "name", "part", "saturated"}}`. Where figures have 95% intervals there is `"sure": {"intervals": [[low, high]], "meets", "value"}` as well: those
/// of the goals' figures at the answer, null where there is none, an upper end that is not known null; whether they meet the goals, too; and the value where they do, null where none is known.
pub fn json(search: &Search) -> String {
    let points: Vec<Json> = search.points.iter().map(point).collect();
    let pick = |place: Option<usize>| place.map_or(Json::Null, |place| points[place].clone());
    let parameters = search.parameters.iter().map(|(path, kind)| json!({ "path": path, "unit": kind.unit() }));
    let goals = search.goals.iter().enumerate().map(|(number, goal)| {
        json!({
            "figure": goal.figure.to_string(),
            "relation": goal.relation.sign(),
            "bound": goal.bound,
            "unit": goal.unit(),
            "trend": search.trend(number).map(Trend::name),
        })
    });
    let mut document = json!({
        "dyelog-search": VERSION,
        "question": search.question.name(),
        "solver": search.solver,
        "parameters": parameters.collect::<Json>(),
        "goals": goals.collect::<Json>(),
        "answer": pick(search.answer),
        "beyond": pick(search.beyond),
        "among": search.among,
        "complete": search.is_complete(),
        "open": search.open,
        "changes": search.changes(),
        "approximate": search.is_approximate(),
        "points": points,
    });
    if let (Some(sure), Json::Object(document)) = (&search.sure, &mut document) {
        let intervals: Json = sure.intervals.iter().copied().map(ends).collect();
        let value = sure.value.as_ref().map(value);
        document.insert("sure".into(), json!({ "intervals": intervals, "meets": sure.is_met, "value": value }));
    }
    pretty(&document)
}

fn meets(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "yes",
        Verdict::Missed => "no",
        Verdict::Unknown => "unclear",
    }
}

fn point(point: &Point) -> Json {
    let goals = point.evaluation.reached.iter().map(|reached| {
        json!({
            "value": reached.value,
            "half_width": reached.half_width.filter(|width| width.is_finite()),
            "margin": if reached.margin.is_finite() { Some(reached.margin) } else { None },
            "meets": meets(reached.verdict),
        })
    });
    let mut document = json!({
        "values": point.values.iter().map(value).collect::<Json>(),
        "meets": meets(point.verdict),
        "state": point.evaluation.state.word(),
        "goals": goals.collect::<Json>(),
    });
    if let Json::Object(document) = &mut document {
        if let Some(name) = &point.name {
            document.insert("name".into(), json!(name));
        }
        if let Some(cost) = point.cost {
            document.insert("cost".into(), json!(cost));
        }
        if let Some(reason) = point.evaluation.state.reason() {
            document.insert("reason".into(), json!(reason));
        }
        if let Some(busy) = &point.evaluation.busiest {
            document.insert(
                "busiest".into(),
                json!({ "kind": busy.kind, "name": busy.name, "part": busy.part, "saturated": busy.saturated }),
            );
        }
    }
    document
}
