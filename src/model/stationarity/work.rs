//! Whether the work of invocations changes within a recording, as it does where another version of a service is deployed.
//!
//! Responses show that late: they hold the work of all services, and their queues. The stays of an entry ([`crate::lqn::stays`]) hold its own work, and the wait for
//! its processor. Two extremes enclose what they hold of work, however many servers there are: all of a stay, as if nothing queued, and its share of one server, as
//! if all that are there shared it. Where the load alone changes, the first grows with it and the second does not. Where both change in the same direction, and its share of some number of
//! servers as clearly as a mean response has to, it is the work. The share of as many as there are varies least.

use std::collections::BTreeMap;
use std::iter;

use super::series::{MATTERS, mean_of, of_means};
use super::{FEWEST, RARE, can_tell};
use crate::diagnostic::quantity::time;
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::stays::{self, Rank, Stay};
use crate::lqn::submodel::{EntryTotal, Interaction, SubModel};
use crate::lqn::together;
use crate::model::codes;
use crate::model::load::{Recording, recorded_at_once, short};
use crate::model::moments::{in_order, rising};

/// Cells of time in which means are compared.
const CELLS: u64 = 64;

/// A change of work that is a smaller part of all work than this tells nothing of the system.
const LITTLE: f64 = 0.02;

/// Numbers of servers whose shares are looked at.
const SERVERS: [u32; 4] = [1, 2, 4, 8];

/// The bits of an event that tell whose it is.
const WHICH: u128 = (1 << 31) - 1;

/// Shares of a stay of so many servers, seconds.
type Shares = [f64; SERVERS.len()];

/// What changes in the work of a task.
pub(super) struct Changed {
    /// The task.
    pub task: String,
    /// It in words.
    pub finding: Diagnostic,
    /// Where it changes, nanoseconds from the trace's epoch, and how long the cell of time is in which it does.
    pub borders: Vec<(i64, i64)>,
}

/// Where the work of tasks changes within a recording of that length, by the name of the task.
pub(super) fn changed(sub: &SubModel, (first, last): (i64, i64)) -> Vec<Changed> {
    let mut tasks: BTreeMap<&str, Vec<&EntryTotal>> = BTreeMap::new();
    for index in sub.canonical_order() {
        let entry = sub.entry(index);
        if entry.interaction != Interaction::Customer && entry.stays.seen() > 0 {
            tasks.entry(sub.names.text(entry.task)).or_default().push(entry);
        }
    }
    let tasks: Vec<(&str, Entries<'_>)> =
        together::each(sub.threads(), tasks, |(name, entries)| (name, worked(&entries)));
    let shares =
        |entries: &Entries<'_>| -> f64 { entries.iter().flat_map(|(_, worked)| worked).map(|own| own.shares[0]).sum() };
    let all: f64 = tasks.iter().map(|(_, entries)| shares(entries)).sum();
    let of_task = |(task, entries): &(&str, Entries<'_>)| {
        let matters = (MATTERS * shares(entries)).max(LITTLE * all);
        let mut borders = Vec::new();
        let mut found: Vec<(&EntryTotal, Found)> = Vec::new();
        for (entry, worked) in entries {
            found.extend(add_borders(worked, matters, &mut borders).map(|found| (*entry, found)));
        }
        let (entry, most) = found.iter().max_by(|left, right| left.1.makes.total_cmp(&right.1.makes))?;
        let service = sub.names.text(entry.service);
        let finding = most.finding(task, service, found.len() - 1, (first, last));
        Some(Changed { task: (*task).to_owned(), finding, borders })
    };
    tasks.iter().filter_map(of_task).collect()
}

/// The first start of what was recorded, and the last, where it was recorded at once.
pub(super) fn recorded(sub: &SubModel) -> Option<(i64, i64)> {
    let all: u64 = sub.scenarios.values().map(|total| total.operations).sum();
    let mut many = sub.scenarios.values().filter(|total| total.operations.saturating_mul(RARE) >= all).peekable();
    many.peek()?;
    let recording = Recording::of(sub);
    let is_told = sub.scenarios.values().any(|total| can_tell(total, &recording));
    if !is_told || !many.all(|total| recorded_at_once(total, &recording)) {
        return None;
    }
    let first = sub.scenarios.values().filter_map(|total| total.first_start).min()?;
    let last = sub.scenarios.values().filter_map(|total| total.last_start).max()?;
    (first < last).then_some((first, last))
}

/// A stay and what it holds of work, by both extremes.
struct Worked {
    start: i64,
    /// Whether it begins an invocation.
    begins: bool,
    /// Its length, seconds.
    whole: f64,
    /// Its shares of servers.
    shares: Shares,
}

/// Entries of a task, and what is known of the work of each in the order of time.
type Entries<'e> = Vec<(&'e EntryTotal, Vec<Worked>)>;

/// The stays of the entries of a task in the order of time, as far as all of the task are kept.
fn worked<'e>(entries: &[&'e EntryTotal]) -> Entries<'e> {
    let before: Option<Rank> = entries.iter().filter_map(|entry| entry.stays.complete_before()).min();
    let mut stays: Vec<(usize, Stay)> = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let kept = entry.stays.in_order();
        stays.extend(stays::before(&kept, before).iter().map(|stay| (number, *stay)));
    }
    let key = |(number, stay): &(usize, Stay)| (*number, stay.length, stay.part, stay.site);
    let stays = in_order(&stays, |(_, stay)| stay.start, key);
    let shares = shares(&stays);
    let mut all: Entries<'e> = entries.iter().map(|entry| (*entry, Vec::new())).collect();
    for ((number, stay), shares) in stays.iter().zip(shares) {
        let own = Worked { start: stay.start, begins: stay.part == 0, whole: stay.length as f64 * 1e-9, shares };
        all[*number].1.push(own);
    }
    all
}

/// What each stay gets of servers that all which are at work at its site share equally.
fn shares(stays: &[(usize, Stay)]) -> Vec<Shares> {
    // A site, a time, whether one begins and which: in one number, which is compared in less time. So many stays as would not fit into it are in no memory.
    let mut events: Vec<u128> = Vec::with_capacity(2 * stays.len());
    let event = |site: u32, at: i64, begins: bool, which: usize| {
        (u128::from(site) << 96) | (u128::from(rising(at)) << 32) | (u128::from(begins) << 31) | (which as u128 & WHICH)
    };
    for (which, (_, stay)) in stays.iter().enumerate().filter(|(_, (_, stay))| stay.end() > stay.start) {
        events.extend([event(stay.site, stay.start, true, which), event(stay.site, stay.end(), false, which)]);
    }
    events.sort_unstable();
    let mut shares = vec![Shares::default(); stays.len()];
    // What one that is there all the time would have got, and how many are there.
    let (mut got, mut there) = (Shares::default(), 0_u32);
    let mut last: Option<(u32, i64)> = None;
    for event in events {
        let (begins, which) = (event & (WHICH + 1) != 0, (event & WHICH) as usize);
        let stay = &stays[which].1;
        let (site, at) = (stay.site, if begins { stay.start } else { stay.end() });
        if let Some((_, before)) = last.filter(|(own, _)| *own == site && there > 0) {
            let seconds = at.abs_diff(before) as f64 * 1e-9;
            for (got, servers) in got.iter_mut().zip(SERVERS) {
                *got += seconds * (f64::from(servers) / f64::from(there)).min(1.0);
            }
        }
        last = Some((site, at));
        if begins {
            there += 1;
            shares[which] = got;
        } else {
            there -= 1;
            shares[which] = std::array::from_fn(|place| got[place] - shares[which][place]);
        }
    }
    shares
}

/// Work that changes.
struct Found {
    /// The first start after the change.
    border: i64,
    /// The length of the cell in which it lies, nanoseconds.
    length: i64,
    /// Means of whole stays of an invocation, before and after, seconds.
    whole: (f64, f64),
    /// Means of its shares of one server.
    share: (f64, f64),
    /// By how much it changes all shares, seconds.
    makes: f64,
}

/// Adds where the work changes: first of all of it, then of what lies before and after. The first of these.
fn add_borders(worked: &[Worked], matters: f64, borders: &mut Vec<(i64, i64)>) -> Option<Found> {
    let mut first = None;
    let mut open = vec![worked];
    while let Some(part) = open.pop() {
        let Some(found) = Found::of(part, matters) else { continue };
        let at = part.partition_point(|own| own.start < found.border);
        borders.push((found.border, found.length));
        open.extend([&part[..at], &part[at..]]);
        first.get_or_insert(found);
    }
    first
}

impl Found {
    fn of(worked: &[Worked], matters: f64) -> Option<Self> {
        let (first, last) = (worked.first()?.start, worked.last()?.start);
        let shift = (0..62).find(|shift| (last >> shift).abs_diff(first >> shift) < CELLS)?;
        let mut starts: Vec<i64> = Vec::new();
        let mut wholes: Vec<(f64, f64)> = Vec::new();
        let mut shares: [Vec<(f64, f64)>; SERVERS.len()] = Default::default();
        for own in worked {
            let is_next = starts.last().is_none_or(|last| last >> shift != own.start >> shift);
            if is_next {
                starts.push(own.start);
            }
            let count = f64::from(u8::from(own.begins));
            let values = iter::once(own.whole).chain(own.shares);
            for (cells, value) in iter::once(&mut wholes).chain(&mut shares).zip(values) {
                if is_next {
                    cells.push((0.0, 0.0));
                }
                let cell = cells.last_mut()?;
                *cell = (cell.0 + count, cell.1 + value);
            }
        }
        let (count, mean) = mean_of(&wholes).filter(|(count, _)| *count >= FEWEST as f64)?;
        let (_, mean_share) = mean_of(&shares[0])?;
        let of = |at: usize| {
            let both = |cells: &[(f64, f64)]| Some((mean_of(&cells[..at])?.1, mean_of(&cells[at..])?.1));
            let (whole, share) = (both(&wholes)?, both(&shares[0])?);
            let (longer, more) = (whole.1 - whole.0, share.1 - share.0);
            let makes = more.abs() * count;
            let differs = longer.abs() > MATTERS * mean && more.abs() > MATTERS * mean_share;
            let found = Self { border: starts[at], length: 1 << shift, whole, share, makes };
            (longer * more > 0.0 && differs && makes > matters).then_some(found)
        };
        shares.iter().find_map(|shares| of(of_means(shares)?.at))
    }

    fn finding(&self, task: &str, service: &str, others: usize, (first, last): (i64, i64)) -> Diagnostic {
        let seconds = |at: i64| at.abs_diff(first) as f64 * 1e-9;
        let (border, whole) = (seconds(self.border), seconds(last));
        let part = (border / whole * 100.0).round();
        let what = if service.is_empty() { format!("`{task}`") } else { format!("`{service}` at `{task}`") };
        let message = format!("the work of {what} is not steady within the recording");
        let finding = Diagnostic::warning(codes::NOT_STEADY, Place::Nowhere, message)
            .with_note(format!(
                "an invocation is at work for {} on the mean in the first {} s ({part} % of the time), and for {} after that",
                time(self.whole.0),
                short(border),
                time(self.whole.1)
            ))
            .with_note(format!(
                "its share of one server goes from {} to {}: it is not the load alone that changes",
                time(self.share.0),
                time(self.share.1)
            ));
        match others {
            0 => finding,
            1 => finding.with_note("so does the work of one other entry of the task"),
            _ => finding.with_note(format!("so does the work of {others} other entries of the task")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Stay, shares};

    #[test]
    fn those_that_are_there_share_one_server() {
        let stay = |start: i64, length: u64, site: u32| (0, Stay { start, length, part: 0, site });
        let second = 1_000_000_000;
        let stays =
            [stay(0, 4 * second, 0), stay(2 * second as i64, 4 * second, 0), stay(0, 3 * second, 1), stay(5, 0, 0)];
        let wanted = [3.0, 3.0, 3.0, 0.0];
        for (own, wanted) in shares(&stays).into_iter().zip(wanted) {
            assert!((own[0] - wanted).abs() < 1e-9, "{own:?} for {wanted}");
        }
        // Two servers delay no one of two.
        for (own, wanted) in shares(&stays).into_iter().zip([4.0, 4.0, 3.0, 0.0]) {
            assert!((own[1] - wanted).abs() < 1e-9, "{own:?} for {wanted}");
        }
    }
}
