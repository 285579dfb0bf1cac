//! Entries whose invocations last: open sockets, streams, long polls. They wait for something that no span shows, beside others that work.
//!
//! Taken for work, one of them keeps a server busy for as long as it lasts, and the model has no steady state, or predicts queues that no trace shows. So an entry whose
//! invocations last very much longer than all others is taken to wait in two cases: where they last for a large part of all that was recorded, so that nobody can tell how many are
//! there on average; and where the other work at the host tells of fewer servers than these would keep busy.

use std::collections::BTreeMap;

use crate::diagnostic::quantity::time;
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::submodel::{EntryIndex, EntryTotal, Interaction};
use crate::model::demand::is_measured;
use crate::model::parts::Parts;
use crate::model::{codes, load};

/// How many times as long as others they last. Our own choice: between jobs and requests lie one to two orders of magnitude, between connections and requests three or more.
const LONGER: f64 = 100.0;

/// They last no less, seconds: of shorter ones enough are seen to tell.
const LEAST: f64 = 1.0;

/// The part of all that was recorded from which on one is too long for its number to be known.
const OF_ALL: f64 = 0.1;

/// The fewest invocations of others that tell what usual ones are.
const ENOUGH: u64 = 100;

/// How unlikely it is that an entry only waits, as minus the logarithm of a weight: one of twenty that may.
pub const RARE: f64 = 2.996;

/// How an invocation lasts on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lasting {
    /// How long, seconds.
    pub length: f64,
    /// How long that is as a part of all that was recorded.
    part: f64,
    /// How many are there on average.
    pub present: f64,
}

impl Lasting {
    /// Whether it lasts too long for its number to be known.
    pub fn is_too_long(&self) -> bool {
        self.part >= OF_ALL
    }
}

/// Entries whose invocations last very much longer than all others, of a recording of so many seconds.
pub fn candidates(parts: &Parts<'_>, seconds: f64) -> BTreeMap<EntryIndex, Lasting> {
    let works = |entry: &&EntryTotal| entry.interaction != Interaction::Customer && !is_measured(entry);
    let lasting = |entry: &EntryTotal| {
        let length = entry.own_time() / entry.invocations.max(1) as f64;
        Lasting { length, part: length / seconds, present: entry.own_time() / seconds }
    };
    let all = || parts.entries.iter().map(|index| (*index, parts.sub.entry(*index))).filter(|(_, entry)| works(entry));
    // What others last on average is that of the shorter half of all invocations and more, whatever the longest do.
    let mut lengths: Vec<(f64, u64)> = all().map(|(_, entry)| (lasting(entry).length, entry.invocations)).collect();
    lengths.sort_unstable_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
    let half = lengths.iter().map(|(_, count)| count).sum::<u64>() / 2;
    let (mut count, mut sum) = (0, 0.0);
    for (length, own) in lengths {
        (count, sum) = (count + own, sum + length * own as f64);
        if count > half {
            break;
        }
    }
    if count < ENOUGH {
        return BTreeMap::new();
    }
    let least = (LONGER * sum / count as f64).max(LEAST);
    all().map(|(index, entry)| (index, lasting(entry))).filter(|(_, own)| own.length >= least).collect()
}

/// Says which entries are taken to wait.
pub fn findings(parts: &Parts<'_>, lasting: &BTreeMap<EntryIndex, Lasting>) -> Vec<Diagnostic> {
    let finding = |(index, own): (&EntryIndex, &Lasting)| {
        let entry = parts.sub.entry(*index);
        let (task, service) = (parts.sub.names.text(entry.task), parts.sub.names.text(entry.service));
        let message = format!(
            "an invocation of `{service}` at `{task}` lasts {} on average: taken as waiting, not as processor time",
            time(own.length)
        );
        Diagnostic::warning(codes::LASTING, Place::Nowhere, message)
            .with_note(format!(
                "{} seen; as processor time, {} servers would be busy with that all the time",
                if entry.invocations == 1 { "one was".to_owned() } else { format!("{} were", entry.invocations) },
                load::short(own.present)
            ))
            .with_hint(format!(
                "if it is work, give the demand: `{} = \"…\"` under `[demand.entry]`",
                load::toml_key(service)
            ))
    };
    lasting.iter().map(finding).collect()
}
