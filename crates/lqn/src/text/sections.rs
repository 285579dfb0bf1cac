//! The sections `G`, `P`, `U` and `T`, and the order of all.

use rustc_hash::FxHashSet;

use crate::builder::Builder;
use crate::findings::{Fault, Findings, fault};
use crate::scheduling::{PROCESSOR_LETTERS, TASK_LETTERS, meaning};
use crate::text::cursor::Cursor;
use crate::text::lexer::{Kind, Token, Words};
use crate::text::{activities, entries, variables};
use crate::{ActivityId, Group, Loaded, Multiplicity, Processor, ProcessorId, Scheduling, Task, TaskId, codes};
use dyelog_diagnostic::{Diagnostic, Diagnostics};

/// A reader in the middle of a text.
pub(super) struct Reader<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) builder: Builder,
    /// First activities of entries, by where they are named.
    pub(super) starts: Vec<(ActivityId, Token<'a>)>,
    /// Activities that have a record of their own.
    pub(super) declared: FxHashSet<ActivityId>,
}

pub(super) fn parse(name: &str, words: Words<'_>, findings: Findings) -> Result<Loaded, Diagnostics> {
    let (starts, declared) = (Vec::new(), FxHashSet::default());
    let mut reader = Reader { cursor: Cursor::new(words.tokens, findings), builder: Builder::new(), starts, declared };
    reader.builder.model.parameters.pragmas = words.pragmas;
    reader.file();
    reader.check_starts();
    let Reader { cursor, builder, .. } = reader;
    let mut findings = cursor.findings;
    if cursor.reports > 0 {
        let message = format!("{} wishes for reports of results were passed over", cursor.reports);
        let place = findings.file();
        findings.push(Diagnostic::new(dyelog_diagnostic::Severity::Note, codes::SKIPPED, place, message));
    }
    findings.loaded(builder.finish(name))
}

impl<'a> Reader<'a> {
    fn file(&mut self) {
        let mut is_empty = true;
        let mut missing = vec![("P", "processors"), ("T", "tasks"), ("E", "entries")];
        while let Some(token) = self.cursor.advance() {
            is_empty = false;
            missing.retain(|(letter, _)| token.kind != Kind::Word || token.text != *letter);
            let outcome = match (token.kind, token.text) {
                (Kind::Variable, _) => variables::definition(&mut self.cursor, token),
                (Kind::Word, "G") => self.general(),
                (Kind::Word, "P") => self.section("p", "processors", token, Self::processor),
                (Kind::Word, "U") => self.section("g", "groups", token, Self::group),
                (Kind::Word, "T") => self.tasks(token),
                (Kind::Word, "E") => self.section(entries::LETTERS, "entries", token, entries::record),
                (Kind::Word, "A") => activities::section(self),
                (Kind::Word, "R" | "C") => {
                    self.cursor.reports += 1;
                    self.cursor.skip_section();
                    Ok(())
                }
                (Kind::Sign, ";") => Ok(()),
                _ => Err(self.no_section(token)),
            };
            if let Err(error) = outcome {
                self.cursor.recover(*error);
            }
        }
        let file = self.cursor.findings.file();
        if is_empty {
            let error = Diagnostic::error(codes::SYNTAX, file, "there is no model in this text");
            self.cursor.findings.push(error.with_hint("a model begins with a section G, P, T or E"));
            return;
        }
        for (letter, what) in missing {
            let error = Diagnostic::error(codes::SYNTAX, file.clone(), format!("there is no section of {what}"));
            self.cursor.findings.push(error.with_hint(format!("it begins with `{letter}` and ends with `-1`")));
        }
    }

    /// Reports entries that begin with an activity of which nothing more is said.
    fn check_starts(&mut self) {
        for (activity, token) in std::mem::take(&mut self.starts) {
            if self.declared.contains(&activity) {
                continue;
            }
            let model = &self.builder.model;
            let task = &model.tasks[model.activities[activity.index()].task.index()];
            let others = task.activities.iter().filter(|&&other| other != activity);
            let message = format!("the task `{}` has no activity `{}`", task.name, token.text);
            let error = fault(codes::UNKNOWN_NAME, message)
                .with_similar(token.text, others.map(|other| &*model.activities[other.index()].name));
            let error = self.cursor.located(token, Box::new(error));
            self.cursor.findings.push(*error);
        }
    }

    fn no_section(&self, token: Token<'_>) -> Fault {
        let message = format!("expected a section (G, P, U, T, E, A, R or C), found `{}`", token.text);
        let mut error = self.cursor.error(token, codes::SYNTAX, message);
        if token.is_end() {
            error.notes.push("the section before has ended already".to_owned());
        }
        error
    }

    /// `G "comment" convergence limit [print interval] [under-relaxation] -1`.
    fn general(&mut self) -> Result<(), Fault> {
        let comment = match self.cursor.peek() {
            Some(token) if token.kind == Kind::Quoted => token.text,
            _ => return Err(self.cursor.unexpected("the model's comment in quotation marks")),
        };
        self.cursor.advance();
        let parameters = &mut self.builder.model.parameters;
        comment.clone_into(&mut self.builder.model.comment);
        if self.cursor.at_number() {
            parameters.convergence = self.cursor.number("the convergence bound")?;
        }
        if self.cursor.at_number() {
            parameters.iteration_limit = self.cursor.count("the iteration limit")?;
        }
        // Two optional numbers differ by their look: the interval is whole, the coefficient has a point.
        if self.cursor.peek().is_some_and(|token| !token.text.contains(['.', 'e', 'E'])) && self.cursor.at_number() {
            parameters.print_interval = Some(self.cursor.count("the print interval")?);
        }
        if self.cursor.at_number() {
            parameters.underrelaxation = Some(self.cursor.number("the under-relaxation coefficient")?);
        }
        self.cursor.skip_reports();
        if self.cursor.accept_end() { Ok(()) } else { Err(self.cursor.unexpected("-1 at the end of section G")) }
    }

    /// The records of a section, each led by one of the letters, up to `-1`. An error costs its line.
    pub(super) fn section(
        &mut self,
        letters: &str,
        what: &str,
        start: Token<'a>,
        record: fn(&mut Self, Token<'a>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if self.cursor.at_number() {
            // The number of records, which nobody keeps up to date.
            self.cursor.count(&format!("the number of {what}"))?;
        }
        loop {
            let Some(token) = self.cursor.peek() else {
                let mut error = self.cursor.unexpected(&format!("-1 at the end of the section of {what}"));
                error.labels.push(dyelog_diagnostic::Label {
                    place: self.cursor.at(start),
                    text: "the section begins here".to_owned(),
                });
                return Err(error);
            };
            if self.cursor.accept_end() {
                return Ok(());
            }
            let known = token.kind == Kind::Word && token.text.len() == 1 && letters.contains(token.text);
            if !known && token.first && self.begins_section(token) {
                let message = format!("the section of {what} is not ended by -1");
                let error = self.cursor.error(token, codes::SYNTAX, message);
                self.cursor.findings.push(*error);
                return Ok(());
            }
            self.cursor.advance();
            let outcome = if known {
                record(self, token)
            } else {
                let wanted: Vec<String> = letters.chars().map(|letter| format!("`{letter}`")).collect();
                let message = format!("expected one of {} or -1, found `{}`", wanted.join(", "), token.text);
                Err(self.cursor.error(token, codes::SYNTAX, message))
            };
            match outcome {
                Ok(()) => self.cursor.skip_reports(),
                Err(error) => self.cursor.recover(*error),
            }
        }
    }

    /// Whether a line looks like the head of a section.
    pub(super) fn begins_section(&self, token: Token<'_>) -> bool {
        let number_follows =
            self.cursor.peek_second().is_some_and(|next| matches!(next.kind, Kind::Number(_)) && !next.is_end());
        token.kind == Kind::Word && matches!(token.text, "P" | "U" | "T" | "E" | "R" | "C") && number_follows
    }

    /// `p name letter [quantum] [m n|i] [r replicas] [R speed]`.
    fn processor(&mut self, _: Token<'a>) -> Result<(), Fault> {
        let name = self.cursor.name("the processor's name")?;
        let letter = self.cursor.name("its scheduling")?;
        let Some(scheduling) = meaning(&PROCESSOR_LETTERS, letter.text) else {
            // It exists all the same: else every mention of it would be an error.
            self.builder.here = (name.line, name.column);
            let _ = self.builder.add_processor(Processor::new(name.text, Scheduling::Fcfs));
            let message = format!("`{}` is no scheduling of a processor", letter.text);
            let mut error = self.cursor.error(letter, codes::SYNTAX, message);
            error.hints.push("f, h, p, i, r, s or c".to_owned());
            return Err(error);
        };
        let mut processor = Processor::new(name.text, scheduling);
        if matches!(scheduling, Scheduling::ProcessorSharing | Scheduling::CompletelyFair) && self.cursor.at_number() {
            processor.quantum = Some(self.cursor.number("the quantum")?);
        }
        loop {
            match self.flag("mirR") {
                Some("m") => processor.multiplicity = self.servers()?,
                Some("i") => processor.multiplicity = Multiplicity::Infinite,
                Some("r") => processor.replicas = self.cursor.positive("the number of replicas")?,
                Some(_) => processor.speed = self.cursor.number("the speed")?,
                None => break,
            }
        }
        self.builder.here = (name.line, name.column);
        self.builder.add_processor(processor).map(drop).map_err(|error| self.cursor.located(name, error))
    }

    /// The key letter that is next, if it is one of those.
    fn flag(&mut self, letters: &str) -> Option<&'a str> {
        let token = self.cursor.peek()?;
        let found = token.kind == Kind::Word && token.text.len() == 1 && letters.contains(token.text);
        found.then(|| {
            self.cursor.advance();
            token.text
        })
    }

    /// `g name share [c] processor`.
    fn group(&mut self, _: Token<'a>) -> Result<(), Fault> {
        let name = self.cursor.name("the group's name")?;
        let share = self.cursor.number("the group's share")?;
        // A processor may be called `c` as well.
        let cap = self.cursor.peek().is_some_and(|token| token.is_word("c"))
            && self.cursor.peek_second().is_some_and(|token| {
                matches!(token.kind, Kind::Word | Kind::Quoted) && !(token.first && token.is_word("g"))
            });
        if cap {
            self.cursor.advance();
        }
        let processor = self.processor_named()?;
        let group = Group { name: name.text.into(), processor, share, cap };
        self.builder.here = (name.line, name.column);
        self.builder.add_group(group).map(drop).map_err(|error| self.cursor.located(name, error))
    }

    fn processor_named(&mut self) -> Result<ProcessorId, Fault> {
        let name = self.cursor.name("the name of a processor")?;
        self.builder.processor(name.text).map_err(|error| self.cursor.located(name, error))
    }

    /// Section `T`; fan-in and fan-out may name tasks that come later.
    fn tasks(&mut self, start: Token<'a>) -> Result<(), Fault> {
        self.section("tIO", "tasks", start, Self::task)
    }

    fn task(&mut self, letter: Token<'a>) -> Result<(), Fault> {
        if letter.text == "t" { self.plain_task() } else { self.fan(letter) }
    }

    /// `I from to n` or `O from to n`.
    fn fan(&mut self, letter: Token<'a>) -> Result<(), Fault> {
        let from = self.task_named()?;
        let to = self.task_named()?;
        let number = self.cursor.count("the number of replicas")?;
        if letter.text == "I" {
            self.builder.model.tasks[to.index()].fan_in.push((from, number));
        } else {
            self.builder.model.tasks[from.index()].fan_out.push((to, number));
        }
        Ok(())
    }

    pub(super) fn task_named(&mut self) -> Result<TaskId, Fault> {
        let name = self.cursor.name("the name of a task")?;
        self.builder.task(name.text).map_err(|error| self.cursor.located(name, error))
    }

    /// `t name letter entries… -1 processor [priority] [z think] [q length] [m n|i] [r replicas] [g group]`.
    fn plain_task(&mut self) -> Result<(), Fault> {
        let name = self.cursor.name("the task's name")?;
        let letter = self.cursor.name("its scheduling")?;
        let scheduling = meaning(&TASK_LETTERS, letter.text);
        let mut names = Vec::new();
        while !self.cursor.accept_end() {
            // Without its -1 the list would swallow the tasks that follow.
            if self.cursor.peek().is_some_and(|token| token.first && token.is_word("t")) {
                return Err(self.cursor.unexpected("-1 after the task's entries"));
            }
            names.push(self.cursor.name("the name of an entry or -1")?);
        }
        let processor = self.processor_named();
        // The entries exist, whatever else is wrong with the task: else every mention of them would be an error.
        let mut task = Task::new(
            name.text,
            processor.as_ref().copied().unwrap_or(ProcessorId(0)),
            scheduling.unwrap_or(Scheduling::Fcfs),
        );
        let options = match &processor {
            Ok(_) => self.task_options(&mut task),
            Err(_) => Ok(()),
        };
        self.builder.here = (name.line, name.column);
        let id = match self.builder.add_task(task) {
            Ok(id) => id,
            Err(error) => {
                let error = self.cursor.located(name, error);
                self.cursor.findings.push(*error);
                self.builder.task(name.text)?
            }
        };
        for entry in names {
            self.builder.here = (entry.line, entry.column);
            if let Err(error) = self.builder.add_entry(id, entry.text) {
                let error = self.cursor.located(entry, error);
                self.cursor.findings.push(*error);
            }
        }
        if scheduling.is_none() {
            let message = format!("`{}` is no scheduling of a task", letter.text);
            let mut error = self.cursor.error(letter, codes::SYNTAX, message);
            error.hints.push("r, n, f, h, p, i or b".to_owned());
            self.cursor.findings.push(*error);
        }
        processor?;
        options
    }

    /// What follows `m`: a number, or `i` for no limit, which may also stand without the `m`.
    fn servers(&mut self) -> Result<Multiplicity, Fault> {
        if self.cursor.peek().is_some_and(|token| token.is_word("i")) {
            self.cursor.name("i")?;
            return Ok(Multiplicity::Infinite);
        }
        Ok(Multiplicity::Finite(self.cursor.positive("the multiplicity")?))
    }

    fn task_options(&mut self, task: &mut Task) -> Result<(), Fault> {
        if self.cursor.at_number() {
            task.priority = self.cursor.integer("the priority")?;
        }
        loop {
            match self.flag("zqmirg") {
                Some("z") => task.think_time = self.cursor.number("the think time")?,
                Some("q") => task.queue_length = Some(self.cursor.count("the length of the queue")?),
                Some("m") => task.multiplicity = self.servers()?,
                Some("i") => task.multiplicity = Multiplicity::Infinite,
                Some("r") => task.replicas = self.cursor.positive("the number of replicas")?,
                Some(_) => {
                    let name = self.cursor.name("the name of a group")?;
                    let group = self.builder.group(name.text).map_err(|error| self.cursor.located(name, error))?;
                    task.group = Some(group);
                }
                None => return Ok(()),
            }
        }
    }
}
