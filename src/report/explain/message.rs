//! What templates on events made of a message, and why one of them did not take it, as text and JSON.

use serde_json::{Map, Value, json};

use crate::diagnostic::quantity::{counted, number};
use crate::report::interactions::occurrence;
use crate::report::json::pretty;
use crate::report::look::{Look, Tone};
use crate::report::table::Table;
use crate::same::explain::{Aside, Bound, Firing, Is, MessageStudy, Part, Stop, Try, Why};
use crate::same::{RecordKind, Rules};
use crate::trace::TraceNames;

/// How many templates that came near are shown of a message that is part of no interaction.
const NEAREST: usize = 3;

/// A message that was studied, with what its numbers stand for.
#[derive(Clone, Copy, Debug)]
pub struct MessageExplained<'a> {
    /// What was made of it.
    pub study: &'a MessageStudy,
    /// The templates.
    pub rules: &'a Rules,
    /// The names of tasks.
    pub names: &'a TraceNames,
}

impl MessageExplained<'_> {
    /// For people: the interactions that the message is part of, the templates that were carried out at it, and those that were tried
    /// before.
    pub fn text(&self, look: Look) -> String {
        let mut text = self.heading(look);
        if let Some(aside) = self.aside() {
            text.push_str(&format!("{aside}\n"));
        }
        for part in &self.study.parts {
            text.push_str(&format!("{}\n", self.part(part)));
        }
        if self.study.parts.is_empty() && self.study.number != 0 {
            text.push_str("no interaction has it\n");
        }
        if !self.study.firings.is_empty() {
            let mut table = Table::new(&["TEMPLATE", ">ORDER", "EVENT", "WITH", "IT DID", "AT", "RULE"]);
            for firing in &self.study.firings {
                table.row(self.firing(firing).to_vec());
            }
            text.push('\n');
            text.push_str(&table.render(look));
        }
        let nearest = self.nearest();
        if !nearest.is_empty() {
            text.push('\n');
            for one in nearest {
                text.push_str(&format!("{} {}\n", look.paint(Tone::Caution, "not"), self.line(one)));
            }
        }
        text
    }

    /// The same for programs, as one of the `messages` of `{"dyelog-explanation": 1, "messages": […]}`.
    pub fn json(&self) -> Value {
        let study = self.study;
        let parts = study.parts.iter().map(|part| {
            let record = &part.record;
            json!({
                "kind": record.kind.word(),
                "client": occurrence(record.client, self.names),
                "server": occurrence(record.server, self.names),
                "via": record.via.iter().map(|one| occurrence(*one, self.names)).collect::<Vec<_>>(),
                "role": role(part),
                "messages": part.lines.iter().map(|(file, line)| place(file, *line)).collect::<Vec<_>>(),
                "template": record.template.as_deref(),
                "cut_off": record.cut_off,
            })
        });
        let did = study.firings.iter().map(|firing| {
            let described = self.rules.described(firing.template);
            json!({
                "template": self.template(firing.template),
                "order": described.and_then(|template| template.order),
                "event": self.event(firing),
                "variables": self.variables(&firing.bound),
                "did": self.did(firing).iter().map(|(how, what)| json!({ "section": how, "text": what })).collect::<Value>(),
                "at": self.at(firing.at),
                "explains": firing.explains,
                "rule": described.map(|template| place(template.file, template.line as u32)),
            })
        });
        json!({
            "message": self.message(),
            "aside": self.aside(),
            "interactions": parts.collect::<Value>(),
            "did": did.collect::<Value>(),
            "tries": study.tries.iter().map(|one| self.try_json(one)).collect::<Value>(),
        })
    }

    /// For people: whether a template takes the message, else for each role the step that fails and why.
    pub fn why_not(&self, template: u16, look: Look) -> String {
        let study = self.study;
        let mut text = self.heading(look);
        let name = self.template(template);
        let taken = study.tries.iter().find(|one| one.committed);
        let by =
            study.firings.iter().find(|firing| firing.at == study.number).map(|firing| self.order(firing.template));
        let verdict = match (taken, by, self.aside()) {
            (Some(one), ..) => format!("{name} does take it, {}", self.role(one)),
            (None, _, Some(aside)) => format!("{name} does not take it: {aside}"),
            (None, Some(by), None) => format!("{name} does not take it; {by} does"),
            (None, None, None) => format!("{name} does not take it, and no other template does"),
        };
        text.push_str(&format!("{verdict}\n"));
        for part in &study.parts {
            text.push_str(&format!("{}\n", self.part(part)));
        }
        if study.tries.is_empty() && study.number != 0 {
            text.push_str("its event never concerned the message, or the occurrence that the message began\n");
        }
        for one in study.tries.iter().filter(|one| taken.is_none() || one.committed) {
            let steps = format!("{}: {} of {}", self.role(one), one.passed, counted(one.steps as u64, "step"));
            text.push_str(&format!("\n{}\n", look.paint(Tone::Heading, &steps)));
            let mut table = Table::new(&["VARIABLE", "IS"]);
            for (name, is) in &one.bound {
                table.row(vec![name.to_string(), self.values(is)]);
            }
            text.push_str(&table.render(look));
            if let Some(reason) = self.reason(one) {
                text.push_str(&format!("{}: {reason}\n", look.paint(Tone::Caution, "stops")));
            }
        }
        text
    }

    /// One JSON document, ending in a newline: `{"dyelog-why-not": 1, "answers": [{"template", "message", "matches", "taken_by", "aside", "tries":
    /// [{"template", "role", "at", "passed", "steps", "variables", "step", "stops", "matches", "taken_by"}]}]}`.
    pub fn why_not_json(&self, template: u16) -> String {
        let study = self.study;
        let taken_by = study.firings.iter().find(|firing| firing.at == study.number);
        let answer = json!({
            "template": self.template(template),
            "message": self.message(),
            "matches": study.tries.iter().any(|one| one.committed),
            "taken_by": taken_by.map(|firing| self.template(firing.template)),
            "aside": self.aside(),
            "tries": study.tries.iter().map(|one| self.try_json(one)).collect::<Value>(),
        });
        pretty(&json!({ "dyelog-why-not": 1, "answers": [answer] }))
    }

    /// The tries that say most: of the templates that came before the one for the message; of a message in no interaction, of those that
    /// would record it.
    fn nearest(&self) -> Vec<&Try> {
        let study = self.study;
        let tries = study.tries.iter().filter(|one| !one.committed);
        if !study.parts.is_empty() {
            let chosen = study.firings.first().map(|firing| firing.template);
            let before = |one: &&Try| one.role.is_none() && chosen.is_none_or(|chosen| one.template < chosen);
            return tries.filter(before).collect();
        }
        let records = |one: &&Try| self.rules.described(one.template).is_some_and(|template| template.records);
        let mut nearest: Vec<&Try> = tries.filter(records).collect();
        nearest.sort_by_key(|one| one.steps - one.passed);
        nearest.truncate(NEAREST);
        nearest
    }

    fn heading(&self, look: Look) -> String {
        let study = self.study;
        let label = self.label().map_or_else(String::new, |label| format!("  `{label}`"));
        let heading = look.paint(Tone::Heading, &format!("{} -> {}", self.is(study.from), self.receiver()));
        let mut text = format!("{heading}{label}  {}:{}\n", study.file, study.line);
        let time = |word: &str, time: Option<f64>| time.map(|time| format!("{word} at {} s", number(time)));
        let sent = study.sent.filter(|sent| study.received != Some(*sent));
        let times = [time("sent", sent), time("received", study.received)];
        let times: Vec<String> = times.into_iter().flatten().collect();
        if !times.is_empty() {
            text.push_str(&format!("{}\n", times.join(", ")));
        }
        text
    }

    fn label(&self) -> Option<&str> {
        let label = self.study.label;
        let text = if label.is_some() { self.names.names.text(label) } else { "" };
        (!text.is_empty()).then_some(text)
    }

    /// The occurrence that the message began, or the task that received it.
    fn receiver(&self) -> String {
        match (self.study.begun, self.study.to) {
            (Some(begun), _) => occurrence(begun, self.names),
            (None, Some(task)) => self.names.task_label(task),
            (None, None) => "an unknown task".to_owned(),
        }
    }

    fn message(&self) -> Value {
        let study = self.study;
        json!({
            "from": self.is(study.from),
            "to": study.to.map(|task| self.names.task_label(task)),
            "begins": study.begun.map(|begun| occurrence(begun, self.names)),
            "name": self.label(),
            "sent": study.sent,
            "received": study.received,
            "number": (study.number != 0).then_some(study.number),
            "place": place(&study.file, study.line),
        })
    }

    fn aside(&self) -> Option<&'static str> {
        Some(match self.study.aside? {
            Aside::Stray => "it replies to a request that is lost (T156), so it changes nothing",
            Aside::Request => "it closes a cycle as a reply does, but messages of its kind are requests (T156)",
            Aside::Explained => "a template recorded it before it arrived",
            Aside::Unmatched => "no template matches it (T157)",
            Aside::Lost => "it was sent and never received",
            _ => return None,
        })
    }

    /// `the reply of forward A.1 -> E.1 via B.1: lines 3, 7, 8`
    fn part(&self, part: &Part) -> String {
        let record = &part.record;
        let via: Vec<String> = record.via.iter().map(|one| occurrence(*one, self.names)).collect();
        let via = if via.is_empty() { String::new() } else { format!(" via {}", via.join(", ")) };
        let ends = [record.client, record.server].map(|end| occurrence(end, self.names));
        let lines: Vec<String> = part.lines.iter().map(|(_, line)| line.to_string()).collect();
        let found = match &record.template {
            Some(template) => format!("found by {template}"),
            None if record.cut_off => "as the trace ends before a reply".to_owned(),
            None => "found by no template".to_owned(),
        };
        let word = if lines.len() == 1 { "line" } else { "lines" };
        let [client, server] = ends;
        let kind = record.kind.word();
        format!("{} of {kind} {client} -> {server}{via} ({word} {}), {found}", role(part), lines.join(", "))
    }

    fn template(&self, number: u16) -> &str {
        self.rules.described(number).map_or("?", |template| template.name)
    }

    /// `sync (order 1)`
    fn order(&self, number: u16) -> String {
        let order = self.rules.described(number).and_then(|template| template.order);
        let order = order.map_or_else(|| "no order".to_owned(), |order| format!("order {order}"));
        format!("{} ({order})", self.template(number))
    }

    /// `message(E.1, A)`
    fn event(&self, firing: &Firing) -> String {
        let written = self.rules.described(firing.template).map_or("", |template| template.event);
        let name = written.split_once('(').map_or(written, |(name, _)| name);
        let about: Vec<String> = firing.event.iter().map(|is| self.is(*is)).collect();
        format!("{name}({})", about.join(", "))
    }

    fn did(&self, firing: &Firing) -> &[(&'static str, String)] {
        self.rules.described(firing.template).map_or(&[], |template| template.done)
    }

    fn firing(&self, firing: &Firing) -> [String; 7] {
        let described = self.rules.described(firing.template);
        let order = described.and_then(|template| template.order).map(|order| order.to_string()).unwrap_or_default();
        let with: Vec<String> = firing.bound.iter().map(|bound| self.bound(bound)).collect();
        let did: Vec<String> = self.did(firing).iter().map(|(how, what)| format!("{how} {what}")).collect();
        let at = self.study.line_of(firing.at).map_or_else(String::new, |(_, line)| format!("line {line}"));
        let rule = described.map_or_else(String::new, |template| format!("{}:{}", template.file, template.line));
        let template = self.template(firing.template).to_owned();
        [template, order, self.event(firing), with.join(", "), did.join("; "), at, rule]
    }

    fn bound(&self, (name, is): &Bound) -> String {
        format!("{name} = {}", self.values(is))
    }

    fn values(&self, is: &[Is]) -> String {
        is.iter().map(|is| self.is(*is)).collect::<Vec<_>>().join(" > ")
    }

    fn variables(&self, bound: &[Bound]) -> Map<String, Value> {
        let value = |is: &[Is]| match is {
            [Is::Number(number)] => json!(number),
            [one] => json!(self.is(*one)),
            several => several.iter().map(|is| self.is(*is)).collect(),
        };
        bound.iter().map(|(name, is)| (name.to_string(), value(is))).collect()
    }

    fn is(&self, is: Is) -> String {
        match is {
            Is::Occurrence(one) => occurrence(one, self.names),
            Is::InTransit(task) => format!("a message of {} in transit", self.names.task_label(task)),
            Is::Task(task) => self.names.task_label(task),
            Is::Number(number) => number.to_string(),
        }
    }

    /// `as the message that arrives`, `with its occurrence as X, at line 7`
    fn role(&self, one: &Try) -> String {
        match &one.role {
            None => "as the message that arrives".to_owned(),
            Some(role) => {
                let at = self.study.line_of(one.at).map_or_else(String::new, |(_, line)| format!(", at line {line}"));
                format!("with its occurrence as {role}{at}")
            }
        }
    }

    /// `sync (order 1), as the message that arrives, 1 of 5 steps: …`
    fn line(&self, one: &Try) -> String {
        let reason = self.reason(one).map_or_else(String::new, |reason| format!(": {reason}"));
        let steps = counted(one.steps as u64, "step");
        format!("{}, {}, {} of {steps}{reason}", self.order(one.template), self.role(one), one.passed)
    }

    fn reason(&self, one: &Try) -> Option<String> {
        match (&one.stop, one.taken_by) {
            (Some(stop), _) => Some(self.stop(stop)),
            (None, Some(by)) if !one.committed => Some(format!("{} matches, too, and is tried first", self.order(by))),
            _ => None,
        }
    }

    /// ``` `W = live(B)` fails, as C has no live occurrence ```
    fn stop(&self, stop: &Stop) -> String {
        let is = |value: &Is| self.is(*value);
        let not = |holds: bool| if holds { "" } else { " not" };
        let why = match &stop.why {
            Why::Nothing { function: "live", of } => format!("{} has no live occurrence", is(of)),
            Why::Nothing { function: "parent", of } => format!("no arc leads to {}", is(of)),
            Why::Nothing { function: "next", of } => {
                format!("no arc is left beside the one to {}, from the same sender", is(of))
            }
            Why::Nothing { of, .. } => format!("no such arc is left from {}", is(of)),
            Why::Other { found, wanted } => format!("it is {}, not {}", is(found), is(wanted)),
            Why::NoPath { from, to } => format!("no arcs lead from {} to {}", is(from), is(to)),
            Why::Arc { parent, child, is_there } => {
                let from = parent.as_ref().map_or_else(String::new, |parent| format!(" from {}", is(parent)));
                let to = child.as_ref().map_or_else(String::new, |child| format!(" to {}", is(child)));
                format!("{} arc is left{from}{to}", if *is_there { "an" } else { "no" })
            }
            Why::InTransit(one) => format!("{} has not arrived", is(one)),
            Why::Live(one, holds) => format!("{} is{} live", is(one), not(*holds)),
            Why::Waiting(one, true) => format!("the sender of the message to {} may wait for the reply", is(one)),
            Why::Waiting(one, false) => format!("the sender of the message to {} does not wait for a reply", is(one)),
            Why::Compare(left, right) => format!("the values are {} and {}", is(left), is(right)),
            Why::Named => match self.label() {
                Some(label) => format!("the message is `{label}`"),
                None => "the message has no name".to_owned(),
            },
            Why::Relation(left, right, holds) => {
                format!("it does{} hold of {} and {}", not(*holds), is(left), is(right))
            }
            _ => "it does not hold".to_owned(),
        };
        format!("`{}` fails: {why}", stop.text)
    }

    fn try_json(&self, one: &Try) -> Value {
        json!({
            "template": self.template(one.template),
            "role": one.role,
            "at": self.at(one.at),
            "passed": one.passed,
            "steps": one.steps,
            "variables": self.variables(&one.bound),
            "step": one.stop.as_ref().map(|stop| &stop.text),
            "stops": self.reason(one),
            "matches": one.committed,
            "taken_by": one.taken_by.map(|by| self.template(by)),
        })
    }

    fn at(&self, number: u32) -> Value {
        self.study.line_of(number).map_or(Value::Null, |(file, line)| place(file, *line))
    }
}

fn place(file: &str, line: u32) -> Value {
    json!({ "file": file, "line": line })
}

/// What a message is in an interaction.
fn role(part: &Part) -> &'static str {
    match part.place {
        0 if part.record.kind == RecordKind::Async => "the message",
        0 => "the request",
        last if last + 1 == part.record.messages.len() => "the reply",
        _ => "a message that passes the request on",
    }
}
