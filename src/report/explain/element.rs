//! Where an entry, its demand or a request of the model comes from, as text and JSON.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::diagnostic::Place;
use crate::diagnostic::quantity::{counted, in_ms, number};
use crate::lqn::results::Caller;
use crate::lqn::submodel::{Interaction, Position};
use crate::lqn::terms::kind;
use crate::lqn::{ActivityId, Body, EntryId, Model};
use crate::model::config::Network;
use crate::model::{DelayPart, DemandPart, DemandSource, Explained, Origins, RequestPart};
use crate::report::explain::evidence::{Seen, kind_word};
use crate::report::explain::view::{place_json, place_words};
use crate::report::json::pretty;
use crate::report::look::{Look, Tone};
use crate::report::names;

/// A model and what is known of one of its entries.
pub struct Subject<'a> {
    /// The model.
    pub model: &'a Model,
    /// Where its elements come from.
    pub origins: &'a Origins,
    /// The entry.
    pub entry: EntryId,
    /// The activity of it that is asked for, if it is one.
    pub activity: Option<ActivityId>,
    /// What its numbers were computed from.
    pub explained: &'a Explained,
    /// Line and column of places in texts that are kept.
    pub position: &'a dyn Fn(&Place) -> Option<usize>,
}

impl Subject<'_> {
    fn name(&self, entry: EntryId) -> Cow<'_, str> {
        names::entry(self.model, entry)
    }

    fn task(&self, entry: EntryId) -> Cow<'_, str> {
        names::task(self.model, self.model.entries[entry.index()].task)
    }

    fn heading(&self, look: Look) -> String {
        let name = match self.activity {
            Some(activity) => {
                format!("activity {} of entry {}", names::activity(self.model, activity), self.name(self.entry))
            }
            None => format!("entry {}", self.name(self.entry)),
        };
        let origin = &self.origins.entries[self.entry.index()];
        let what = match origin.interaction {
            Interaction::Customer => "of the customer that begins the operations",
            Interaction::Rendezvous => "called by remote procedure call or rendezvous",
            Interaction::Asynchronous => "called asynchronously",
            Interaction::Forwarding => "called by forwarding",
        };
        format!("{} of task {}, {what}\n", look.paint(Tone::Heading, &name), self.task(self.entry))
    }

    fn place(&self, place: &Place) -> String {
        match (self.position)(place) {
            Some(line) => format!("{}:{line}", place_words(place)),
            None => place_words(place),
        }
    }

    /// The demand of the model, by phase; of a graph of activities the sum.
    fn demands_in_model(&self) -> Vec<f64> {
        if let Some(activity) = self.activity {
            return vec![self.model.activities[activity.index()].work.demand];
        }
        match &self.model.entries[self.entry.index()].body {
            Body::Phases(phases) => phases.iter().map(|work| work.demand).collect(),
            Body::Activities(_) => {
                let own = self.origins.activities.iter().zip(&self.model.activities);
                vec![own.filter(|(origin, _)| origin.entry == self.entry).map(|(_, own)| own.work.demand).sum()]
            }
        }
    }

    fn demand_lines(&self) -> String {
        let demands = self.explained.demands.iter().map(|part| self.demand_line(part));
        demands.chain(self.explained.delays.iter().map(|part| self.delay_line(part))).collect()
    }

    fn where_in_entry(&self, activity: Option<ActivityId>, position: Option<Position>) -> String {
        match (activity, position) {
            (Some(activity), _) => format!("activity {}", names::activity(self.model, activity)),
            (None, Some(position)) => format!("phase {}", position.phase.clamp(1, 3)),
            (None, None) => "phase 1".to_owned(),
        }
    }

    /// Pauses, and the network latency of calls.
    fn delay_line(&self, part: &DelayPart) -> String {
        let times = counted(part.times, "invocation");
        let paused = part.pauses.sum.as_f64() / part.times.max(1) as f64;
        let at = self.where_in_entry(part.activity, Some(part.position));
        if part.pauses.count == 0 {
            return self.network_line(part);
        }
        let sum = ms(part.pauses.sum.as_f64());
        let line = format!("delay, {at}: {} = {sum} of pauses / {times}\n", ms(paused));
        let rest = DelayPart { seconds: part.seconds - paused, ..*part };
        if rest.seconds <= 1e-9 * part.seconds { line } else { line + &self.network_line(&rest) }
    }

    /// The network latency of calls.
    fn network_line(&self, part: &DelayPart) -> String {
        let (at, delay) = (self.where_in_entry(part.activity, Some(part.position)), ms(part.seconds));
        match part.network {
            Network::Traced => {
                let (sum, calls) = (ms(part.seen.sum.as_f64()), counted(part.seen.count, "call"));
                let times = counted(part.times, "invocation");
                let on_the_way = part.seen.sum.as_f64() / part.times.max(1) as f64;
                if (part.seconds - on_the_way).abs() > 1e-9 * on_the_way.max(part.seconds) {
                    let way = ms(on_the_way);
                    return format!(
                        "delay, {at}: {delay}, of which {way} are network latency; the rest is fitted to when calls began and \
                         ended in the traces\n"
                    );
                }
                format!("delay, {at}: {delay} = {sum} of network latency, measured over {calls} / {times}\n")
            }
            Network::Each(seconds) => {
                format!("delay, {at}: {delay}, for a network latency of {} per call, set by `network`\n", ms(seconds))
            }
        }
    }

    /// How a demand was computed, in one line or more.
    fn demand_line(&self, part: &DemandPart) -> String {
        let at = self.where_in_entry(part.activity, part.position);
        let demand = ms(part.seconds);
        let times = counted(part.times, "invocation");
        if let Some(place) = &part.given {
            return format!("demand, {at}: {demand}, set in {}\n", self.place(place));
        }
        match part.source {
            DemandSource::None => format!("demand, {at}: 0: no CPU time, resource function or duration is known\n"),
            DemandSource::Cpu => {
                let cpu = part.activities.iter().fold(crate::lqn::submodel::Moments::default(), |mut sum, own| {
                    sum.merge(&own.cpu);
                    sum
                });
                let (sum, events) = (ms(cpu.sum.as_f64()), counted(cpu.count, "event"));
                format!("demand, {at}: {demand} = {sum} of CPU measured on {events} / {times}\n")
            }
            DemandSource::Exclusive => {
                let own = &part.exclusive;
                let sum = ms(own.sum.as_f64());
                let scale = if own.count == part.visits || own.count == 0 {
                    String::new()
                } else {
                    format!(" x {} / {} (visits without times are taken to be like the others)", part.visits, own.count)
                };
                let share = if part.share < 1.0 {
                    format!(" x {}, the part that is processor time,", number(part.share))
                } else {
                    String::new()
                };
                format!("demand, {at}: {demand} = {sum} of exclusive time{scale}{share} / {times}\n")
            }
            DemandSource::Function => {
                let mut text = format!("demand, {at}: {demand}, by functions of the configuration / {times}\n");
                for own in &part.activities {
                    let name = if own.name.is_empty() { "without a name" } else { &own.name };
                    let function = match &own.function {
                        Some((seconds, place)) => {
                            format!("{} each, set in {}", ms(*seconds), self.place(place))
                        }
                        None => "no function: nothing".to_owned(),
                    };
                    text.push_str(&format!("  activity {name}: {} times, {function}\n", own.count));
                }
                text
            }
        }
    }

    /// How often it was executed.
    fn times(&self) -> String {
        counted(self.explained.times, if self.activity.is_some() { "execution" } else { "invocation" })
    }

    fn request_line(&self, request: &RequestPart) -> String {
        let mean = request.count as f64 / self.explained.times.max(1) as f64;
        let from = match self.activity {
            Some(activity) => names::activity(self.model, activity),
            None => self.name(self.entry),
        };
        let phases = if request.phases.keys().any(|phase| *phase > 1) {
            let parts = request.phases.iter().map(|(phase, count)| format!("{count} in phase {phase}"));
            format!("; {}", parts.collect::<Vec<_>>().join(", "))
        } else {
            String::new()
        };
        format!(
            "request {from} -> {} ({}): {} = {} / {}{phases}\n",
            self.name(request.to),
            kind_word(request.kind),
            number(mean),
            request.count,
            self.times()
        )
    }

    /// The callers of the entry in the model, how they call it, and how often on average.
    fn callers(&self) -> Vec<(Caller, &'static str, f64)> {
        let requests = self.model.requests().filter(|request| request.to == self.entry);
        requests.map(|request| (request.from, kind(request.kind), request.mean)).collect()
    }

    /// Where an entry comes from, with its invocations as evidence.
    pub fn entry_text(&self, seen: &Seen, look: Look) -> String {
        let mut text = self.heading(look);
        let total = self.explained.total.invocations;
        let from = seen.templates_words();
        text.push_str(&format!(
            "{}, in {}; opened {from}\n",
            counted(total, "invocation"),
            counted(seen.operations, "operation")
        ));
        text.push_str(&self.demand_lines());
        for request in &self.explained.requests {
            text.push_str(&self.request_line(request));
        }
        for (caller, kind, mean) in self.callers() {
            let (name, mean) = (self.name(self.entry), number(mean));
            let caller = names::caller(self.model, caller);
            text.push_str(&format!("requested by {caller} -> {name} ({kind}): {mean}\n"));
        }
        if let Some(rate) = self.model.entries[self.entry.index()].open_arrival_rate {
            text.push_str(&format!("requested from outside: {} per second\n", number(rate)));
        }
        text.push('\n');
        text.push_str(&seen.table(&["ENTRY", "ACCEPTED AT", "BY"], look));
        text
    }

    /// Where the demand of an entry comes from, with the events as evidence.
    pub fn demand_text(&self, seen: &Seen, look: Look) -> String {
        let mut text = self.heading(look);
        text.push_str(&format!("{}, in {}\n", self.times(), counted(seen.operations, "operation")));
        text.push_str(&self.demand_lines());
        if self.activity.is_some() {
            self.explained.requests.iter().for_each(|request| text.push_str(&self.request_line(request)));
        }
        let model: Vec<String> = self.demands_in_model().iter().map(|demand| ms(*demand)).collect();
        text.push_str(&format!("in the model: {}\n\n", model.join(", then ")));
        text.push_str(&seen.table(&["NODE", ">PHASE", "WHAT", ">TIME (ms)", "NAMES"], look));
        text
    }

    /// Where requests come from, with the requests as evidence.
    pub fn request_text(&self, requests: &[&RequestPart], seen: &Seen, look: Look) -> String {
        let mut text = String::new();
        for request in requests {
            text.push_str(&look.paint(Tone::Heading, &self.request_line(request)));
        }
        text.push_str(&format!(
            "in {}; recognised {}\n\n",
            counted(seen.operations, "operation"),
            seen.templates_words()
        ));
        text.push_str(&seen.table(&["MADE AT", "ACCEPTED AT", "BY"], look));
        text
    }

    /// The same as JSON: `{"dyelog-explanation": 1, "entry", "activity", "task", "type", "invocations", "demands", "delays",
    /// "requests", "evidence"}`.
    pub fn json(&self, requests: &[&RequestPart], seen: &Seen) -> String {
        let explained = self.explained;
        let demands = explained.demands.iter().map(|part| self.demand_json(part));
        let delays = explained.delays.iter().map(|part| self.delay_json(part));
        let requests = requests.iter().map(|request| {
            json!({
                "to": self.name(request.to),
                "kind": kind_word(request.kind),
                "count": request.count,
                "mean": request.count as f64 / explained.times.max(1) as f64,
                "phases": request.phases,
            })
        });
        pretty(&json!({
            "dyelog-explanation": 1,
            "entry": self.name(self.entry),
            "activity": self.activity.map(|activity| &*self.model.activities[activity.index()].name),
            "task": self.task(self.entry),
            "type": self.origins.entries[self.entry.index()].interaction.label(),
            "invocations": explained.total.invocations,
            "demands_in_model": self.demands_in_model(),
            "demands": demands.collect::<Value>(),
            "delays": delays.collect::<Value>(),
            "requests": requests.collect::<Value>(),
            "evidence": seen.json(),
        }))
    }

    fn delay_json(&self, part: &DelayPart) -> Value {
        json!({
            "phase": part.position.phase.clamp(1, 3),
            "activity": part.activity.map(|activity| &*self.model.activities[activity.index()].name),
            "seconds": part.seconds,
            "times": part.times,
            "source": if part.network == Network::Traced { "traced" } else { "configured" },
            "seen": { "count": part.seen.count, "sum": part.seen.sum.as_f64() },
            "pauses": { "count": part.pauses.count, "sum": part.pauses.sum.as_f64() },
        })
    }

    fn demand_json(&self, part: &DemandPart) -> Value {
        let place = |place: &Place| {
            let mut json = place_json(place);
            if let Some(line) = (self.position)(place) {
                json["line"] = json!(line);
            }
            json
        };
        let activities = part.activities.iter().map(|own| {
            json!({
                "name": &*own.name,
                "count": own.count,
                "cpu_events": own.cpu.count,
                "cpu": own.cpu.sum.as_f64(),
                "function": own.function.as_ref().map(|(seconds, at)| json!({ "seconds": seconds, "place": place(at) })),
            })
        });
        json!({
            "phase": part.position.map_or(1, |position| position.phase.clamp(1, 3)),
            "activity": part.activity.map(|activity| &*self.model.activities[activity.index()].name),
            "seconds": part.seconds,
            "times": part.times,
            "source": part.source,
            "set_in": part.given.as_ref().map(place),
            "visits": part.visits,
            "exclusive": { "count": part.exclusive.count, "sum": part.exclusive.sum.as_f64() },
            "activities": activities.collect::<Value>(),
        })
    }
}

/// A time given in seconds, with the digits that a reader needs to follow the sum.
fn ms(seconds: f64) -> String {
    format!("{} ms", in_ms(seconds))
}
