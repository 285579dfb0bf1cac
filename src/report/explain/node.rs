//! What was made of a node, as text and JSON.

use serde_json::{Value, json};

use crate::lqn::submodel::Interaction;
use crate::report::explain::Described;
use crate::report::explain::view::{match_words, role_in, traced_ms};
use crate::report::look::{Look, Tone};
use crate::report::table::Table;
use crate::tlc::driver::{EntryNumber, UNKNOWN, UNOWNED};
use crate::tlc::explain::{Bound, Caused, Done, Study, Variables, done};
use crate::trace::NodeId;
use crate::trace::toeg::NONE;

/// The names that the model has for the entries of an operation, by their numbers; [`None`] for those that are part of a customer
/// or of another model than this.
pub type EntryNames = Vec<Option<String>>;

/// What was made of a node.
pub struct NodeExplained<'s, 'a> {
    study: &'s Study<'a>,
    node: NodeId,
    entries: &'s EntryNames,
    /// The match that consumed it, with its variables and what it did.
    found: Option<(usize, Variables, Vec<Done>)>,
}

impl<'s, 'a> NodeExplained<'s, 'a> {
    /// Of a node of a study.
    pub fn new(study: &'s Study<'a>, node: NodeId, entries: &'s EntryNames) -> Self {
        let found = study.consumer(node).map(|number| {
            let made = &study.matches[number];
            let variables = Variables::of(study, made);
            let done = done(study, made, &variables);
            (number, variables, done)
        });
        Self { study, node, entries, found }
    }

    fn entry(&self, entry: EntryNumber) -> String {
        match entry {
            UNKNOWN | UNOWNED => "no entry".to_owned(),
            entry => match self.entries.get(entry as usize).and_then(Option::as_ref) {
                Some(name) => format!("E{entry} `{name}`"),
                None => format!("E{entry}"),
            },
        }
    }

    /// For people: the match, its nodes and variables, what it did, and whose the node is. A match that was `told` of before, by its
    /// number, is not told again.
    pub fn text(&self, told: &mut Vec<usize>, look: Look) -> String {
        let study = self.study;
        let node = Described::new(study, self.node);
        let mut text = format!("{}  {}\n", look.paint(Tone::Heading, &node.label()), node.place());
        if let Some(span) = node.span() {
            text.push_str(&format!("span {span}\n"));
        }
        text.push_str(&format!("{}\n", self.whose()));
        let Some((number, variables, done)) = &self.found else {
            text.push_str("no template takes it; `dyelog why-not` tells how near one came\n");
            return text;
        };
        let made = &study.matches[*number];
        let plan = study.plan(made);
        text.push_str(&format!(
            "{} of {} (order {}), match {} of {} in the operation\n\n",
            role_in(study, *number, self.node),
            look.paint(Tone::Heading, &plan.name),
            plan.order,
            number + 1,
            study.matches.len()
        ));
        if told.contains(number) {
            return format!("{}, as above\n", text.trim_end());
        }
        told.push(*number);
        let mut table =
            Table::new(&["NODE", "IS", ">TIME (ms)", ">CPU (ms)", "NAMES", "ENTRY", ">PHASE", "SPAN", "WHERE"]);
        for (name, node) in &variables.nodes {
            let shown = Described::new(study, *node);
            table.row(vec![
                name.clone(),
                shown.label(),
                shown.time(),
                traced_ms(study.toeg.event(*node).cpu),
                shown.names(),
                self.entry(study.outcome.owner[*node as usize]),
                study.outcome.phase(*node).to_string(),
                shown.span().unwrap_or_default(),
                shown.place(),
            ]);
        }
        text.push_str(&table.render(look));
        let bound: Vec<String> = variables
            .list
            .iter()
            .map(|variable| format!("{} = {}", variable.name, self.bound(variable.value)))
            .collect();
        text.push_str(&format!("where {}\n", bound.join(", ")));
        if !done.is_empty() {
            text.push('\n');
            let mut table = Table::new(&["IT DID", "WHICH MEANS"]);
            for one in done {
                let round = one.round.map(|round| format!("  (round {round})")).unwrap_or_default();
                table.row(vec![format!("{}{round}", one.text), self.caused(one.caused)]);
            }
            text.push_str(&table.render(look));
        }
        text
    }

    /// The entry and phase of the node.
    fn whose(&self) -> String {
        let owner = self.study.outcome.owner[self.node as usize];
        if owner >= UNOWNED {
            return "of no entry: its thread came here with no request that a template recognises".to_owned();
        }
        let phase = self.study.outcome.phase(self.node);
        let opened = match self.study.opener(owner) {
            Some(number) => format!(", opened by {}", match_words(self.study, number)),
            None => ", the first of the operation".to_owned(),
        };
        let task = self.study.outcome.entries[owner as usize]
            .task
            .map_or_else(|| "of the customer".to_owned(), |task| format!("of {}", self.study.names.task_label(task)));
        format!("work of {} {task}, phase {phase}{opened}", self.entry(owner))
    }

    fn bound(&self, value: Bound) -> String {
        match value {
            Bound::Thread(number) | Bound::Number(number) => number.to_string(),
            Bound::Task(task) => self.study.names.task_label(task),
            Bound::Name(name) => self.study.names.names.text(name).to_owned(),
        }
    }

    fn caused(&self, caused: Caused) -> String {
        // Nodes of the match by the names that the template gives them.
        let stamp = |node: NodeId| {
            let named = self.found.iter().flat_map(|(_, variables, _)| &variables.nodes);
            let name = named.clone().find(|(_, own)| *own == node).map(|(name, _)| name.clone());
            name.unwrap_or_else(|| Described::new(self.study, node).stamp())
        };
        match caused {
            Caused::Entry(entry, interaction) => {
                let kind = match interaction {
                    Interaction::Asynchronous => "asynchronous",
                    Interaction::Forwarding => "forwarding",
                    Interaction::Rendezvous | Interaction::Customer => "synchronous",
                };
                format!("opens {}, a {kind} entry", self.entry(entry)).replace("a asynchronous", "an asynchronous")
            }
            Caused::Request(from, to) => {
                let kind = match self.study.outcome.entries.get(to as usize).map(|entry| entry.interaction) {
                    Some(Interaction::Asynchronous) => "sends to",
                    Some(Interaction::Forwarding) => "forwards to",
                    _ => "calls and waits for",
                };
                format!("{} {kind} {}", self.entry(from), self.entry(to))
            }
            Caused::Activity(entry, node) => {
                format!("the activity of {} is work of {}", stamp(node), self.entry(entry))
            }
            Caused::Delay(entry, node) => {
                format!("the time up to {} passes without work of {}", stamp(node), self.entry(entry))
            }
            Caused::SecondPhase(node) => {
                let task = Described::new(self.study, node).task();
                format!("what {task} does after {} is its second phase", stamp(node))
            }
            Caused::Trigger(node, entry) => {
                format!("goes on at {} later, as work of {}", stamp(node), self.entry(entry))
            }
            Caused::Branch(entry, begin, join) => {
                let waits = join.map_or_else(String::new, |join| format!(" that {} waits for", stamp(join)));
                format!("{} begins a branch of {}{waits}", stamp(begin), self.entry(entry))
            }
            Caused::ForkedRequest(from, to, fork, join) => {
                let (from, to) = (self.entry(from), self.entry(to));
                let waits =
                    join.map_or_else(|| "nobody waits for".to_owned(), |join| format!("{} waits for", stamp(join)));
                format!("at {} {from} makes a request to {to}, which {waits}", stamp(fork))
            }
            Caused::Alternative(entry, begin, end) => {
                format!("what {} does between {} and {} is an alternative", self.entry(entry), stamp(begin), stamp(end))
            }
            Caused::Barrier(entry, node) => {
                format!("{} waits at {} for the others that have not come there", self.entry(entry), stamp(node))
            }
            Caused::Nothing => "nothing: its node is not there".to_owned(),
        }
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let study = self.study;
        let owner = study.outcome.owner[self.node as usize];
        let found = self.found.as_ref().map(|(number, variables, done)| {
            let made = &study.matches[*number];
            let plan = study.plan(made);
            let nodes = variables
                .nodes
                .iter()
                .map(|(name, node)| json!({ "name": name, "node": Described::new(study, *node).json() }));
            let bound: serde_json::Map<String, Value> = variables
                .list
                .iter()
                .map(|variable| {
                    let value = match variable.value {
                        Bound::Thread(number) | Bound::Number(number) => json!(number),
                        other => json!(self.bound(other)),
                    };
                    (variable.name.clone(), value)
                })
                .collect();
            json!({
                "template": &*plan.name,
                "order": plan.order,
                "number": number + 1,
                "role": role_in(study, *number, self.node),
                "glue": Described::new(study, made.glue).stamp(),
                "nodes": nodes.collect::<Value>(),
                "variables": bound,
                "did": done.iter().map(|one| self.done_json(one)).collect::<Value>(),
            })
        });
        json!({
            "node": Described::new(study, self.node).json(),
            "entry": (owner < UNOWNED).then(|| json!({
                "number": format!("E{owner}"),
                "name": self.entries.get(owner as usize),
                "phase": study.outcome.phase(self.node),
            })),
            "match": found,
        })
    }

    fn done_json(&self, done: &Done) -> Value {
        let stamp =
            |node: NodeId| if node == NONE { Value::Null } else { json!(Described::new(self.study, node).stamp()) };
        let entry = |entry: EntryNumber| {
            json!({
                "number": (entry < UNOWNED).then(|| format!("E{entry}")),
                "name": self.entries.get(entry as usize),
            })
        };
        let caused = match done.caused {
            Caused::Entry(number, interaction) => json!({ "entry": entry(number), "type": interaction.label() }),
            Caused::Request(from, to) => json!({ "from": entry(from), "to": entry(to) }),
            Caused::Activity(number, node) => json!({ "entry": entry(number), "activity": stamp(node) }),
            Caused::Delay(number, node) => json!({ "entry": entry(number), "delay_until": stamp(node) }),
            Caused::SecondPhase(node) => json!({ "second_phase_after": stamp(node) }),
            Caused::Trigger(node, number) => json!({ "entry": entry(number), "trigger": stamp(node) }),
            Caused::Branch(number, begin, join) => {
                json!({ "entry": entry(number), "begin": stamp(begin), "join": join.map(stamp) })
            }
            Caused::ForkedRequest(from, to, fork, join) => {
                json!({ "from": entry(from), "to": entry(to), "fork": stamp(fork), "join": join.map(stamp) })
            }
            Caused::Alternative(number, begin, end) => {
                json!({ "entry": entry(number), "after": stamp(begin), "before": stamp(end) })
            }
            Caused::Barrier(number, node) => json!({ "entry": entry(number), "at": stamp(node) }),
            Caused::Nothing => Value::Null,
        };
        json!({ "text": done.text, "round": done.round, "means": self.caused(done.caused), "caused": caused })
    }
}
