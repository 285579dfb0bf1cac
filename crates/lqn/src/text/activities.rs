//! Section `A`: the activities of a task and how they follow each other.

use crate::builder::Caller;
use crate::findings::Fault;
use crate::text::entries::{call_order, histogram, named, repeated};
use crate::text::lexer::{Kind, Token};
use crate::text::sections::Reader;
use crate::{ActivityId, Call, CallKind, Fork, Histogram, Join, Precedence, TaskId, Work, codes};

const LETTERS: &str = "scfyzZMH";

/// Reads a section after its letter.
pub(super) fn section(reader: &mut Reader<'_>) -> Result<(), Fault> {
    let task = match reader.task_named() {
        Ok(task) => task,
        Err(error) => {
            // Without its task nothing in the section means anything.
            reader.cursor.findings.push(*error);
            reader.cursor.skip_section();
            return Ok(());
        }
    };
    while let Some(token) = reader.cursor.peek() {
        if reader.cursor.accept_end() {
            return Ok(());
        }
        if token.first && reader.begins_section(token) {
            break;
        }
        reader.cursor.advance();
        let outcome = match token.kind {
            Kind::Sign if token.text == ":" => {
                flow(reader, task);
                return Ok(());
            }
            Kind::Word if token.text.len() == 1 && LETTERS.contains(token.text) => record(reader, task, token),
            _ => {
                let message = format!("expected a record of an activity, `:` or -1, found `{}`", token.text);
                Err(reader.cursor.error(token, codes::SYNTAX, message))
            }
        };
        match outcome {
            Ok(()) => reader.cursor.skip_reports(),
            Err(error) => reader.cursor.recover(*error),
        }
    }
    Err(reader.cursor.unexpected("-1 at the end of the section of activities"))
}

fn record(reader: &mut Reader<'_>, task: TaskId, letter: Token<'_>) -> Result<(), Fault> {
    let name = reader.cursor.name("the name of an activity")?;
    reader.builder.here = (name.line, name.column);
    let activity = reader.builder.ensure_activity(task, name.text);
    reader.declared.insert(activity);
    match letter.text {
        "s" => set(reader, activity, "a demand", |work, value| work.demand = value),
        "c" => set(reader, activity, "a squared coefficient of variation", |work, value| work.cv2 = Some(value)),
        "Z" => set(reader, activity, "a think time", |work, value| work.think_time = value),
        "f" => {
            let value = reader.cursor.number("0 or 1")?;
            reader.builder.model.activities[activity.index()].work.call_order = call_order(reader, letter, value)?;
            list_end(reader);
            Ok(())
        }
        "y" => call(reader, activity, letter, CallKind::Synchronous),
        "z" => call(reader, activity, letter, CallKind::Asynchronous),
        letter => {
            let histogram = if letter == "H" {
                Some(histogram(reader)?)
            } else {
                let limit = reader.cursor.number("a time")?;
                list_end(reader);
                Histogram::beyond(limit)
            };
            reader.builder.model.activities[activity.index()].histograms.extend(histogram);
            Ok(())
        }
    }
}

fn set(
    reader: &mut Reader<'_>,
    activity: ActivityId,
    wanted: &str,
    set: impl FnOnce(&mut Work, f64),
) -> Result<(), Fault> {
    let value = reader.cursor.number(wanted)?;
    set(&mut reader.builder.model.activities[activity.index()].work, value);
    list_end(reader);
    Ok(())
}

/// Passes over a `-1` at the end of a record: the language has none there, but some tools write it.
fn list_end(reader: &mut Reader<'_>) {
    if reader.cursor.peek().is_some_and(|token| token.is_end() && !token.first) {
        let more = reader.cursor.peek_second().is_some_and(|next| {
            next.is_sign(":") || next.is_end() || (next.kind == Kind::Word && LETTERS.contains(next.text))
        });
        if more {
            reader.cursor.advance();
        }
    }
}

fn call(reader: &mut Reader<'_>, activity: ActivityId, letter: Token<'_>, kind: CallKind) -> Result<(), Fault> {
    let to = named(reader)?;
    let mean = reader.cursor.number("a number of calls")?;
    if !reader.builder.first_call(Caller::Activity(activity), to, kind) {
        repeated(reader, letter);
    }
    reader.builder.model.activities[activity.index()].work.calls.push(Call { to, kind, mean });
    list_end(reader);
    Ok(())
}

/// The list after `:`, up to `-1`. An error costs the statement up to the next `;`.
fn flow(reader: &mut Reader<'_>, task: TaskId) {
    loop {
        if reader.cursor.accept_end() {
            return;
        }
        if let Err(error) = statement(reader, task) {
            reader.cursor.findings.push(*error);
            while let Some(token) = reader.cursor.peek() {
                if token.is_sign(";") || (token.first && token.is_end()) {
                    break;
                }
                reader.cursor.advance();
            }
        }
        if reader.cursor.accept(";") {
            continue;
        }
        if !reader.cursor.accept_end() {
            let error = reader.cursor.unexpected("`;` or -1");
            reader.cursor.findings.push(*error);
            reader.cursor.skip_section();
        }
        return;
    }
}

fn statement(reader: &mut Reader<'_>, task: TaskId) -> Result<(), Fault> {
    let begin = reader.cursor.peek();
    let join = join(reader, task)?;
    let first = match &join {
        Join::Sequence(first) => Some(first),
        Join::And { activities, .. } | Join::Or(activities) => activities.first(),
    };
    if let (Some(begin), Some(first)) = (begin, first) {
        let model = &reader.builder.model;
        let (first, task) = (&model.activities[first.index()].name, &model.tasks[task.index()].name);
        let item = format!("precedence of activity `{first}` of task `{task}`");
        reader.builder.here = (begin.line, begin.column);
        reader.builder.place(item);
    }
    let fork = if reader.cursor.accept("->") { Some(fork(reader, task)?) } else { None };
    reader.builder.model.tasks[task.index()].precedences.push(Precedence { join, fork });
    Ok(())
}

/// The sign that separates a list, where one follows.
fn separator(reader: &mut Reader<'_>) -> Option<&'static str> {
    ["&", "+"].into_iter().find(|sign| reader.cursor.accept(sign))
}

fn join(reader: &mut Reader<'_>, task: TaskId) -> Result<Join, Fault> {
    let first = ending(reader, task)?;
    let mut activities = vec![first];
    let sign = separator(reader);
    if let Some(sign) = sign {
        loop {
            activities.push(ending(reader, task)?);
            if !reader.cursor.accept(sign) {
                break;
            }
        }
    }
    let quorum = if sign != Some("+") && reader.cursor.accept("(") {
        let quorum = reader.cursor.positive("the quorum")?;
        close(reader, ")")?;
        Some(quorum)
    } else {
        None
    };
    Ok(match sign {
        Some("+") => Join::Or(activities),
        None if quorum.is_none() => Join::Sequence(first),
        _ => Join::And { activities, quorum },
    })
}

/// An activity on the left side, with the entries that it answers.
fn ending(reader: &mut Reader<'_>, task: TaskId) -> Result<ActivityId, Fault> {
    let activity = activity(reader, task)?;
    if reader.cursor.accept("[") {
        loop {
            let entry = named(reader)?;
            reader.builder.model.activities[activity.index()].replies.push(entry);
            if !reader.cursor.accept(",") {
                break;
            }
        }
        close(reader, "]")?;
    }
    Ok(activity)
}

fn activity(reader: &mut Reader<'_>, task: TaskId) -> Result<ActivityId, Fault> {
    let name = reader.cursor.name("the name of an activity")?;
    reader.builder.activity(task, name.text).map_err(|error| {
        let mut error = reader.cursor.located(name, error);
        error.notes.push("an activity is declared by its record `s` before the `:`".to_owned());
        error
    })
}

fn close(reader: &mut Reader<'_>, sign: &str) -> Result<(), Fault> {
    if reader.cursor.accept(sign) { Ok(()) } else { Err(reader.cursor.unexpected(&format!("`{sign}`"))) }
}

fn fork(reader: &mut Reader<'_>, task: TaskId) -> Result<Fork, Fault> {
    if reader.cursor.accept("(") {
        return branches(reader, task);
    }
    if reader.cursor.at_number() && reader.cursor.peek_second().is_some_and(|next| next.is_sign("*")) {
        return repetition(reader, task);
    }
    let first = activity(reader, task)?;
    let mut activities = vec![first];
    while reader.cursor.accept("&") {
        activities.push(activity(reader, task)?);
    }
    Ok(if activities.len() == 1 { Fork::Sequence(first) } else { Fork::And(activities) })
}

/// `(0.3) a + (0.7) b`, after the first bracket.
fn branches(reader: &mut Reader<'_>, task: TaskId) -> Result<Fork, Fault> {
    let mut branches = Vec::new();
    loop {
        let probability = reader.cursor.number("a probability")?;
        close(reader, ")")?;
        branches.push((probability, activity(reader, task)?));
        if !reader.cursor.accept("+") {
            return Ok(Fork::Or(branches));
        }
        close(reader, "(")?;
    }
}

/// `2.5 * a, 3 * b, c`.
fn repetition(reader: &mut Reader<'_>, task: TaskId) -> Result<Fork, Fault> {
    let mut bodies = Vec::new();
    loop {
        let counted = reader.cursor.peek_second().is_some_and(|next| next.is_sign("*"));
        if !(counted && reader.cursor.at_number()) {
            return Ok(Fork::Loop { bodies, end: Some(activity(reader, task)?) });
        }
        let mean = reader.cursor.number("a number of times")?;
        close(reader, "*")?;
        bodies.push((mean, activity(reader, task)?));
        if !reader.cursor.accept(",") {
            return Ok(Fork::Loop { bodies, end: None });
        }
    }
}
