//! Words for people, on standard error.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::sync::Arc;

use anstream::{AutoStream, ColorChoice};
use dyelog::diagnostic::{Code, Diagnostic, Renderer, Severity, Sources};
use dyelog::pipeline::{Input, Listener, Meter};
use dyelog::report::Look;
use dyelog::trace::ReadReport;

use crate::cli::args::{Color, OutputArguments};
use crate::cli::progress::Progress;
use crate::cli::told::Told;

/// Where words go, and what is needed to draw them.
pub struct Terminal {
    errors: Renderer,
    output: Renderer,
    /// Texts that diagnostics point into.
    pub sources: Sources,
    /// What was said, where it is kept and not shown.
    heard: Option<RefCell<String>>,
    /// What was shown already, and what is accepted.
    told: RefCell<Told>,
}

impl Terminal {
    /// The terminal on standard error.
    pub fn new(color: Color, quiet: bool) -> Self {
        let renderer = |stream: ColorChoice| Renderer {
            color: match color {
                Color::Always => true,
                Color::Never => false,
                Color::Auto => stream != ColorChoice::Never,
            },
        };
        Self {
            errors: renderer(AutoStream::choice(&std::io::stderr())),
            output: renderer(AutoStream::choice(&std::io::stdout())),
            sources: Sources::new(),
            heard: None,
            told: RefCell::new(Told::new(quiet)),
        }
    }

    /// One that keeps what it gets, without colour.
    pub fn that_listens() -> Self {
        Self { heard: Some(RefCell::default()), ..Self::new(Color::Never, false) }
    }

    /// What a terminal that listens has heard.
    pub fn heard(self) -> String {
        self.heard.map(RefCell::into_inner).unwrap_or_default()
    }

    /// Shows diagnostics, in the order of their places, and how many there are.
    pub fn report(&self, diagnostics: &[Diagnostic]) {
        let fresh = self.told.borrow_mut().fresh(diagnostics);
        self.say(&self.errors.render_all(&fresh, &self.sources));
    }

    /// Shows a remark. `--quiet` does not show it.
    pub fn remark(&self, text: &str) {
        if !self.told.borrow().quiet {
            self.say(&format!("note: {text}\n"));
        }
    }

    /// Says how many findings were not shown since the configuration accepts them.
    pub fn say_accepted(&self) {
        let accepted = self.told.borrow().accepted();
        self.say(&accepted);
    }

    /// What text for people may look like where the output goes: a file takes it whole and plain.
    pub fn look(&self, output: &OutputArguments) -> Look {
        if output.is_file() { Look::PLAIN } else { Look { width: width(), color: self.output.color } }
    }

    /// The text of diagnostics, for a report that goes to standard output.
    pub fn render(&self, diagnostics: &[Diagnostic]) -> String {
        self.output.render_all(diagnostics, &self.sources)
    }

    /// The text of a diagnostic without colour, for a report that others read, too.
    pub fn plain(&self, diagnostic: &Diagnostic) -> String {
        Renderer { color: false }.render(diagnostic, &self.sources)
    }

    /// Shows the first diagnostics of many and says how many more there are of the others.
    pub fn report_first(&self, diagnostics: &[Diagnostic], shown: usize, more: &str) {
        self.report(&diagnostics[..diagnostics.len().min(shown)]);
        if diagnostics.len() > shown {
            self.say(&format!("and {} more{more}\n", diagnostics.len() - shown));
        }
    }

    /// Shows the first findings of each code that a reader made, and says how many more there are of its kind.
    pub fn report_kinds(&self, read: &ReadReport, wanted: impl Fn(&Diagnostic) -> bool) {
        const SHOWN: u64 = 3;
        let mut seen: BTreeMap<Code, u64> = BTreeMap::new();
        let few = |finding: &&Diagnostic| {
            let times = seen.entry(finding.code).or_default();
            *times += 1;
            *times <= SHOWN
        };
        let shown: Vec<Diagnostic> =
            read.findings.iter().filter(|finding| wanted(finding)).filter(few).cloned().collect();
        self.report(&shown);
        for (code, times) in seen {
            let all = times.max(read.found(code));
            if all > SHOWN {
                self.say(&format!("and {} more of {code}\n", all - SHOWN));
            }
        }
    }

    /// Shows a text as it is.
    pub fn say(&self, text: &str) {
        if let Some(heard) = &self.heard {
            heard.borrow_mut().push_str(text);
            return;
        }
        // Where standard error is closed there is nobody to tell.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    /// Says how many operations an answer leaves out, where it does.
    pub fn say_set_aside(&self, operations: u64) {
        if operations > 0 {
            self.say(&format!("{}\n", set_aside_words(operations)));
        }
    }
}

impl Listener for Terminal {
    fn source(&mut self, file: Arc<str>, text: Arc<str>) {
        self.sources.insert(file, text);
    }

    fn findings(&mut self, findings: &[Diagnostic]) {
        self.report(findings);
    }

    fn first_findings(&mut self, findings: &[Diagnostic], shown: usize, others: &str) {
        self.report_first(findings, shown, others);
    }

    fn left_out(&mut self, read: &ReadReport) {
        self.report_kinds(read, |finding| finding.severity != Severity::Note);
    }

    fn accepted(&mut self, codes: &BTreeSet<String>) {
        self.told.borrow_mut().accept(codes);
    }

    fn words(&mut self, text: &str) {
        if !self.told.borrow().quiet {
            self.say(text);
        }
    }

    fn reading(&mut self, inputs: &[Input]) -> Arc<dyn Meter> {
        if self.told.borrow().quiet {
            return Arc::new(());
        }
        Arc::new(Progress::reading_length(inputs.iter().map(Input::length).sum()))
    }
}

/// That so many operations are damaged, and where to learn more.
pub fn set_aside_words(operations: u64) -> String {
    let (verb, s) = if operations == 1 { ("was", "") } else { ("were", "s") };
    format!("{operations} damaged operation{s} {verb} set aside; `dyelog trace check` shows why")
}

/// Tells of a defect of `dyelog` itself.
pub fn report_panic(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let message =
        payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = message.unwrap_or("no message");
    let place =
        info.location().map_or_else(String::new, |location| format!(" at {}:{}", location.file(), location.line()));
    let text = format!(
        "dyelog {} has met a defect of its own{place}: {message}\nPlease report this with the command and, if you can, its \
         input.\n",
        env!("CARGO_PKG_VERSION")
    );
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// How wide text on standard output may be: as wide as the terminal, and as it likes elsewhere.
pub fn width() -> usize {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return usize::MAX;
    }
    // An exported width is meant; else the terminal knows.
    let exported = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let known = || terminal_size::terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0));
    exported.or_else(known).filter(|columns| *columns > 0).unwrap_or(80)
}
