//! The servers of a host, as they were found, and their description.

use crate::diagnostic::quantity::{milliseconds, percent};
use crate::lqn::Multiplicity;
use crate::model::load;
use crate::model::servers::discipline::Discipline;
use crate::model::servers::fit::Fit;
use crate::model::servers::machine::Machine;
use crate::model::servers::occupancy::Occupancy;
use crate::model::servers::{may_wait, quotas};

/// The servers of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct Host {
    /// How many, those of all copies together; of a delay, as many as were at work together.
    pub servers: u32,
    /// Whether nothing queues there: work takes as long beside others as alone.
    pub is_delay: bool,
    /// In which order they serve.
    pub discipline: Discipline,
    /// How many copies there are, each of whose servers were found apart from the others.
    pub copies: u32,
    /// How many copies the servers are those of, where that is known.
    pub replicas: Option<u32>,
    /// The fewest that fit a copy, and the most where that can be told; of those that were found.
    pub range: Option<(u32, Option<u32>)>,
    /// How many cores each copy has by resources or metrics, where fewer servers explain stays much better.
    pub bound: Option<u32>,
    /// How many invocations were at work together at most.
    pub most: usize,
    /// How many servers were busy on average, per server.
    pub utilization: f64,
    /// How many servers were measured to be busy, where they were.
    pub measured: Option<f64>,
    /// Whether invocations wait for something that was not traced, by how long others made them last.
    pub waits: bool,
    /// So many servers of each copy, of which so many are busy, would fit as well, if invocations waited for something that was not traced.
    pub or_waits: Option<(u32, f64)>,
    /// So many servers of each copy would fit nearly as well, if invocations waited for nothing else.
    pub or_works: Option<u32>,
    /// How many servers were busy by the times of spans alone.
    pub alone: f64,
    /// The constant latency of each call to a peer that records no spans, seconds, where it was found.
    pub latency: Option<f64>,
    /// How many cores each copy may use on the mean: a quota that was found, or a limit that was told and is no whole number of servers, or less than work uses at once.
    pub quota: Option<f64>,
    /// Whether work uses more servers at once than that: it stands still once it has used them, until the next period.
    pub is_throttled: bool,
    /// The machines that copies of one server share, where they have fewer cores than copies work at once.
    pub machine: Option<Machine>,
    /// Whether stays tell that it does.
    pub stands_still: bool,
}

/// Processors that are less busy decide no answer, however many servers they have (ours).
const IDLE: f64 = 0.3;

impl Host {
    /// Another number of servers of each copy that fits about as well, where answers may hang on it; what it means in words.
    pub fn otherwise(&self) -> Option<(Multiplicity, String)> {
        let (_, most) = self.range?;
        if self.is_delay || self.utilization < IDLE {
            return None;
        }
        let taken = self.servers / self.copies.max(1);
        match (most, self.or_waits) {
            (None, _) => Some((Multiplicity::Infinite, "any number".to_owned())),
            (Some(most), _) if most > taken => Some((Multiplicity::Finite(most), most.to_string())),
            (Some(_), _) if self.waits => {
                let words =
                    |servers: u32| format!("{servers} that work all of the time, as copies behind one address may");
                self.or_works.map(|servers| (Multiplicity::Finite(servers), words(servers)))
            }
            (Some(_), waits) => {
                let words =
                    |servers: u32| format!("{servers}, with waits within spans for something that was not traced");
                waits.map(|(servers, _)| (Multiplicity::Finite(servers), words(servers)))
            }
        }
    }

    /// One where nothing queues.
    pub(super) fn delay(fit: &Fit, occupancy: &Occupancy, there: f64) -> Self {
        Self {
            servers: fit.servers.saturating_mul(occupancy.stations as u32),
            is_delay: true,
            discipline: Discipline::Sharing,
            copies: occupancy.stations as u32,
            replicas: None,
            range: Some(fit.range),
            bound: None,
            most: occupancy.most,
            utilization: 0.0,
            measured: None,
            waits: false,
            or_waits: None,
            or_works: None,
            alone: there,
            latency: None,
            quota: None,
            is_throttled: false,
            machine: None,
            stands_still: false,
        }
    }

    /// How many servers there are, how busy they are, and what else fits.
    pub fn described(&self) -> String {
        let servers = self.servers / self.copies.max(1);
        let (least, most) = self.range.unwrap_or((servers, Some(servers)));
        if self.is_delay {
            return format!(
                "a delay: of up to {} at work together none took longer for it; {least} or more servers would fit as well",
                self.most
            );
        }
        let others = match most {
            Some(most) if least == most => String::new(),
            Some(most) => format!("; {least} to {most} fit"),
            None if self.most <= 1 => "; no two invocations worked together, so that more would fit as well".to_owned(),
            None if may_wait((least, most)) => {
                format!(
                    "; {least} or more fit: nobody waits there, so that the time may be a wait for something that was not traced"
                )
            }
            None => format!("; {least} or more fit: at this load too few wait to tell them apart"),
        };
        let copies = if self.copies > 1 { format!("{} copies of ", self.copies) } else { String::new() };
        let others = if self.waits {
            let work = self.utilization * f64::from(self.servers) / self.alone.max(f64::MIN_POSITIVE);
            format!(
                "{}; invocations work in {} of their time, without queueing, and wait in the rest for something that was not traced",
                if self.range.is_none() { " (as given)" } else { "" },
                percent(work)
            ) + &self.or_works.map_or_else(String::new, |servers| {
                format!("; or {servers} work all of it, as copies behind one address may")
            })
        } else {
            others
        };
        let others = match self.bound {
            Some(cores) => format!(
                "{others}; {cores} cores are told, and others there slow work as if no more than {servers} were used: threads, a lock or an event loop may be why"
            ),
            None => others,
        };
        // Where more servers would fit as well, too little is known to tell waits from them.
        let others = match self.or_waits.filter(|_| most.is_some()) {
            Some((servers, busy)) => format!(
                "{others}; or {servers}, busy {}, where invocations wait for something that was not traced",
                percent(busy / f64::from(servers))
            ),
            None => others,
        };
        let others = match quotas::described(self) {
            Some(words) => others + &words,
            None => others,
        };
        let others = match self.machine {
            Some(Machine { cores, count, part, is_open: false }) => {
                let machines = if count == 1 { "one machine".to_owned() } else { format!("{count} machines") };
                format!(
                    "{others}; they share {machines} of {cores} cores: work has a core in {} of the time that it is served",
                    percent(part)
                )
            }
            Some(Machine { cores, is_open: true, .. }) => {
                format!("{others}; they share a machine, of which {cores} or more cores fit")
            }
            None => others,
        };
        let others = match self.latency {
            Some(seconds) => format!(
                "{others}; beside that, each call has a constant latency of {}, as of a network",
                milliseconds(seconds)
            ),
            None => others,
        };
        let order = match self.discipline {
            Discipline::Sharing => String::new(),
            other => format!("; {}", other.name()),
        };
        format!("{copies}{servers}, busy {} %{order}{others}", load::short((self.utilization * 1000.0).round() / 10.0))
    }
}
