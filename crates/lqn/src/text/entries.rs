//! The records of section `E`.

use crate::builder::Caller;
use crate::findings::Fault;
use crate::scheduling::{ROLE_LETTERS, meaning};
use crate::text::lexer::{Kind, Token};
use crate::text::sections::Reader;
use crate::{Body, Call, CallKind, CallOrder, EntryId, Forwarding, Histogram, Work, codes};
use dyelog_diagnostic::Diagnostic;

/// Letters that lead a record: `s` demand, `y` and `z` calls, `F` forwarding, `a` open arrivals, `c` cv², `f` call order,
/// `Z` think time, `p` priority, `A` first activity, `M` and `H` limits and histograms of service times, `PVRUWX` parts in a lock.
pub(super) const LETTERS: &str = "syzFacfZpAMHPVRUWX";

/// Reads one record.
pub(super) fn record<'a>(reader: &mut Reader<'a>, letter: Token<'a>) -> Result<(), Fault> {
    match letter.text {
        "s" => phases(reader, letter, "a demand", |work, value| work.demand = value),
        "c" => phases(reader, letter, "a squared coefficient of variation", |work, value| work.cv2 = Some(value)),
        "Z" => phases(reader, letter, "a think time", |work, value| work.think_time = value),
        "f" => call_orders(reader, letter),
        "y" => calls(reader, letter, CallKind::Synchronous),
        "z" => calls(reader, letter, CallKind::Asynchronous),
        "F" => forwarding(reader, letter),
        "a" => open_arrivals(reader, letter),
        "p" => {
            let entry = named(reader)?;
            let priority = reader.cursor.integer("the priority")?;
            reader.builder.model.entries[entry.index()].priority = Some(priority);
            Ok(())
        }
        "A" => first_activity(reader),
        "M" => limits(reader, letter),
        "H" => {
            let entry = named(reader)?;
            let phase = match reader.cursor.positive("the number of a phase")? {
                phase @ 1..=3 => phase as u8,
                phase => {
                    let message = format!("there are three phases at most, this is phase {phase}");
                    return Err(reader.cursor.error(letter, codes::BAD_NUMBER, message));
                }
            };
            let histogram = histogram(reader)?;
            reader.builder.model.entries[entry.index()].histograms.push((phase, histogram));
            Ok(())
        }
        role => {
            let entry = named(reader)?;
            reader.builder.model.entries[entry.index()].semaphore = meaning(&ROLE_LETTERS, role);
            Ok(())
        }
    }
}

/// The call order that a number of the record stands for.
pub(super) fn call_order(reader: &Reader<'_>, letter: Token<'_>, value: f64) -> Result<CallOrder, Fault> {
    if value == 0.0 {
        Ok(CallOrder::Stochastic)
    } else if value == 1.0 {
        Ok(CallOrder::Deterministic)
    } else {
        let message = format!("{value} is no order of calls");
        let mut error = reader.cursor.error(letter, codes::BAD_NUMBER, message);
        error.hints.push("0 where numbers of calls are stochastic, 1 where they are exact".to_owned());
        Err(error)
    }
}

fn call_orders(reader: &mut Reader<'_>, letter: Token<'_>) -> Result<(), Fault> {
    let entry = named(reader)?;
    for (phase, value) in values(reader, letter, "0 or 1")?.into_iter().enumerate() {
        let order = call_order(reader, letter, value)?;
        match reader.builder.phase(entry, phase) {
            Some(work) => work.call_order = order,
            None => return Err(phases_of_activities(reader, letter, entry)),
        }
    }
    Ok(())
}

/// Notes that a record tells of a part of an entry.
fn place(reader: &mut Reader<'_>, letter: Token<'_>, part: &str, entry: EntryId) {
    let item = format!("{part} of entry `{}`", reader.builder.model.entries[entry.index()].name);
    reader.builder.here = (letter.line, letter.column);
    reader.builder.place(item);
}

/// The entry that is named next.
pub(super) fn named(reader: &mut Reader<'_>) -> Result<EntryId, Fault> {
    let name = reader.cursor.name("the name of an entry")?;
    reader.builder.entry(name.text).map_err(|error| reader.cursor.located(name, error))
}

/// One number a phase, up to `-1`.
fn values(reader: &mut Reader<'_>, letter: Token<'_>, wanted: &str) -> Result<Vec<f64>, Fault> {
    let values = reader.cursor.numbers(wanted)?;
    if values.len() <= 3 {
        return Ok(values);
    }
    let message = format!("there are three phases at most, this line has {}", values.len());
    Err(reader.cursor.error(letter, codes::SYNTAX, message))
}

fn phases(
    reader: &mut Reader<'_>,
    letter: Token<'_>,
    wanted: &str,
    mut set: impl FnMut(&mut Work, f64),
) -> Result<(), Fault> {
    let entry = named(reader)?;
    place(reader, letter, wanted.trim_start_matches("a "), entry);
    let values = values(reader, letter, wanted)?;
    for (phase, value) in values.into_iter().enumerate() {
        match reader.builder.phase(entry, phase) {
            Some(work) => set(work, value),
            None => return Err(phases_of_activities(reader, letter, entry)),
        }
    }
    Ok(())
}

fn phases_of_activities(reader: &Reader<'_>, letter: Token<'_>, entry: EntryId) -> Fault {
    let name = &reader.builder.model.entries[entry.index()].name;
    let message = format!("the entry `{name}` is made of activities and has no phases");
    reader.cursor.error(letter, codes::CONTRADICTION, message)
}

fn calls(reader: &mut Reader<'_>, letter: Token<'_>, kind: CallKind) -> Result<(), Fault> {
    let entry = named(reader)?;
    let to = named(reader)?;
    if !reader.builder.first_call(Caller::Phase(entry, 0), to, kind) {
        repeated(reader, letter);
    }
    let target = reader.builder.model.entries[to.index()].name.clone();
    place(reader, letter, &format!("number of calls to `{target}`"), entry);
    for (phase, mean) in values(reader, letter, "a number of calls")?.into_iter().enumerate() {
        match reader.builder.phase(entry, phase) {
            Some(work) => work.calls.push(Call { to, kind, mean }),
            None => return Err(phases_of_activities(reader, letter, entry)),
        }
    }
    Ok(())
}

/// Warns of a second record of the same calls.
pub(super) fn repeated(reader: &mut Reader<'_>, letter: Token<'_>) {
    let message = "these calls are given a second time; both numbers are added up";
    let warning = Diagnostic::warning(codes::REPEATED, reader.cursor.at(letter), message);
    reader.cursor.findings.push(warning);
}

fn forwarding(reader: &mut Reader<'_>, letter: Token<'_>) -> Result<(), Fault> {
    let entry = named(reader)?;
    let to = named(reader)?;
    let target = reader.builder.model.entries[to.index()].name.clone();
    place(reader, letter, &format!("probability of forwarding to `{target}`"), entry);
    let probability = reader.cursor.number("the probability")?;
    if !reader.cursor.accept_end() {
        return Err(reader.cursor.unexpected("-1"));
    }
    reader.builder.model.entries[entry.index()].forwarding.push(Forwarding { to, probability });
    Ok(())
}

/// `a entry rate`.
fn open_arrivals(reader: &mut Reader<'_>, letter: Token<'_>) -> Result<(), Fault> {
    let entry = named(reader)?;
    place(reader, letter, "rate of open arrivals", entry);
    let rate = reader.cursor.number("the rate of arrivals")?;
    reader.builder.model.entries[entry.index()].open_arrival_rate = Some(rate);
    Ok(())
}

/// `A entry activity`: the graph that starts there is described in the task's own section.
fn first_activity(reader: &mut Reader<'_>) -> Result<(), Fault> {
    let entry = named(reader)?;
    let name = reader.cursor.name("the name of an activity")?;
    let task = reader.builder.model.entries[entry.index()].task;
    reader.builder.here = (name.line, name.column);
    let activity = reader.builder.ensure_activity(task, name.text);
    reader.starts.push((activity, name));
    let body = &mut reader.builder.model.entries[entry.index()].body;
    let has_phases = matches!(body, Body::Phases(phases) if phases.iter().any(|phase| *phase != Work::default()));
    *body = Body::Activities(activity);
    if has_phases {
        return Err(phases_of_activities(reader, name, entry));
    }
    Ok(())
}

/// `M entry limit… -1`.
fn limits(reader: &mut Reader<'_>, letter: Token<'_>) -> Result<(), Fault> {
    let entry = named(reader)?;
    let limits = values(reader, letter, "a time")?;
    let found = (1..).zip(limits).filter_map(|(phase, limit)| Some((phase, Histogram::beyond(limit)?)));
    reader.builder.model.entries[entry.index()].histograms.extend(found);
    Ok(())
}

/// `min : max bins [type]`, the rest of an `H` record.
pub(super) fn histogram(reader: &mut Reader<'_>) -> Result<Histogram, Fault> {
    let from = reader.cursor.number("where the first bin begins")?;
    if !reader.cursor.accept(":") {
        return Err(reader.cursor.unexpected("`:`"));
    }
    let to = reader.cursor.number("where the last bin ends")?;
    let bins = reader.cursor.count("the number of bins")?;
    if reader.cursor.peek().is_some_and(|token| token.kind == Kind::Word && !token.first) {
        // How bins are spaced is not kept.
        reader.cursor.advance();
        reader.cursor.reports += 1;
    }
    Ok(Histogram { from, to, bins })
}
