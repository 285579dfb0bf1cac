//! Where rows of an answer go: kept for a table or the largest, or written as they come.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::query::{self, Cell, Question, Rows};
use dyelog::report::answers::{self, Kept, Row};
use dyelog::report::parquet::Parquet;
use dyelog::trace::quality::QualityReport;

use crate::cli::args::OutputArguments;
use crate::cli::output::Output;
use crate::cli::query::{Arguments, Format};
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes};

/// Where rows go.
pub(super) struct Answer<'q> {
    question: &'q Question,
    format: Format,
    columns: Vec<Vec<String>>,
    /// By relation, where there is a folder; else one.
    outputs: Vec<Output>,
    names: Vec<PathBuf>,
    /// By relation, where the form is Parquet.
    tables: Vec<Parquet>,
    kept: Kept,
    failure: Option<Failure>,
}

/// Refuses a folder for answers that cannot be made, before any work is done for it: one in a folder that is not there, or one that is called as a file is.
pub(super) fn check_folder(folder: &Path) -> Result<(), Failure> {
    if folder.is_dir() {
        return Ok(());
    }
    let place = Place::File { file: folder.display().to_string().into() };
    let ending = folder.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    if Format::value_variants().iter().any(|form| ending.as_deref() == Some(form.ending())) {
        let message = "`-o` names a folder, which gets a file for each relation, and this is the name of a file";
        return Err(Diagnostic::error(codes::ARGUMENTS, place, message)
            .with_hint("name it without an ending; one relation goes into a file by `--format csv > FILE`")
            .into());
    }
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
    if folder.exists() || above.is_some_and(|above| !above.is_dir()) {
        let why = if folder.exists() { "it is a file" } else { "the folder that it would lie in is not there" };
        return Err(Diagnostic::error(codes::UNWRITABLE, place, format!("the folder cannot be made: {why}")).into());
    }
    Ok(())
}

impl<'q> Answer<'q> {
    pub(super) fn new(question: &'q Question, arguments: &Arguments, kept: Kept) -> Result<Self, Failure> {
        let columns: Vec<Vec<String>> =
            question.asked.iter().map(|asked| answers::columns(asked, question.scope)).collect();
        let format = arguments.format;
        if format == Format::Csv && question.asked.len() > 1 && arguments.output.is_none() {
            let names: Vec<&str> = question.asked.iter().map(|asked| &*asked.name).collect();
            let message = format!("{} relations do not go into one table", names.len());
            return Err(Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message)
                .with_note(format!("they are {}", names.join(", ")))
                .with_hint(
                    "`--relation NAME` shows one, `-o DIR` writes a file for each, `--format json` takes them all",
                )
                .into());
        }
        if format == Format::Parquet && arguments.output.is_none() {
            return Err(Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, "Parquet goes into files")
                .with_hint("`-o DIR` writes a file for each relation")
                .into());
        }
        let tables = match format {
            Format::Parquet => question.asked.iter().map(|asked| answers::parquet(asked, question.scope)).collect(),
            _ => Vec::new(),
        };
        let (outputs, names) = (Vec::new(), Vec::new());
        let mut answer = Self { question, format, columns, outputs, names, tables, kept, failure: None };
        if let Some(folder) = &arguments.output {
            if !folder.is_dir() {
                std::fs::create_dir(folder).map_err(|error| {
                    let place = Place::File { file: folder.display().to_string().into() };
                    Diagnostic::error(codes::UNWRITABLE, place, format!("the folder cannot be made: {error}"))
                })?;
            }
            for asked in &question.asked {
                answer.names.push(folder.join(format!("{}.{}", asked.name, format.ending())));
            }
            for name in &answer.names {
                answer.outputs.push(Output::open(&OutputArguments { output: Some(name.clone()) })?);
            }
        } else {
            answer.outputs.push(Output::open(&OutputArguments { output: None })?);
        }
        if format == Format::Csv {
            for place in 0..question.asked.len() {
                let Self { outputs, columns, .. } = &mut answer;
                outputs[place].attempt(|out| answers::csv_header(out, &columns[place]))?;
            }
        }
        Ok(answer)
    }

    /// Whether all rows are kept until the last one has come.
    pub(super) fn keeps_all(&self) -> bool {
        !self.kept.keeps_some() && self.keeps()
    }

    fn keeps(&self) -> bool {
        self.kept.keeps_some() || matches!(self.format, Format::Text | Format::Json)
    }

    fn write(&mut self, relation: usize, key: Option<(&str, &str)>, cells: &[Cell<'_>]) -> Result<(), Failure> {
        let Self { outputs, columns, question, format, tables, .. } = self;
        let place = if outputs.len() > 1 { relation } else { 0 };
        let name = &question.asked[relation].name;
        outputs[place].attempt(|out: &mut dyn Write| match format {
            Format::Jsonl => answers::json_line(out, name, &columns[relation], key, cells),
            Format::Parquet => tables[relation].row(out, answers::with_key(key, cells)),
            _ => answers::csv(out, key, cells),
        })
    }

    pub(super) fn finish(
        mut self,
        told: &query::Told,
        quality: &QualityReport,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let asked = &self.question.asked;
        let rows = self.kept.take_rows(self.question);
        let scope = self.question.scope;
        match self.format {
            Format::Csv | Format::Jsonl | Format::Parquet => {
                for (relation, rows) in rows.iter().enumerate() {
                    for row in rows {
                        let key = row.operation.as_ref().map(|(scenario, run)| (&**scenario, &**run));
                        self.write(relation, key, &row.cells)?;
                    }
                }
            }
            Format::Json if self.names.is_empty() => {
                self.outputs[0].attempt(|out| answers::json(out, asked, scope, &rows, told, quality))?;
            }
            Format::Json => {
                for (place, output) in self.outputs.iter_mut().enumerate() {
                    let (asked, rows) = (&asked[place..=place], &rows[place..=place]);
                    output.attempt(|out| answers::json(out, asked, scope, rows, told, quality))?;
                }
            }
            Format::Text => {
                let look = terminal.look(&OutputArguments { output: self.names.first().cloned() });
                for (place, asked) in asked.iter().enumerate() {
                    let table = answers::text(asked, scope, &rows[place], look);
                    let several = self.names.is_empty() && self.question.asked.len() > 1;
                    let gap = if several && place > 0 { "\n" } else { "" };
                    let heading = if several { format!("{gap}{}\n", asked.name) } else { String::new() };
                    let output = if self.names.is_empty() { 0 } else { place };
                    self.outputs[output].text(&format!("{heading}{table}"))?;
                }
            }
        }
        for (table, output) in self.tables.iter_mut().zip(&mut self.outputs) {
            output.attempt(|out| table.finish(out))?;
        }
        self.outputs.into_iter().try_for_each(Output::finish)
    }
}

impl Rows for Answer<'_> {
    fn row(&mut self, relation: usize, operation: Option<(&str, &str)>, cells: &[Cell<'_>]) -> ControlFlow<()> {
        if self.keeps() {
            let place = self.kept.place(&self.question.asked[relation], self.question.scope);
            if self.kept.take(relation, place, Row::of(operation, cells)) {
                return ControlFlow::Continue(());
            }
            self.failure = Some(query::answer::too_long(self.kept.most()).into());
            return ControlFlow::Break(());
        }
        match self.write(relation, operation, cells) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }
}
