//! Progress of long work, drawn on standard error while it is a terminal, and only once the work has taken a while.

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dyelog::pipeline::{Meter, Reader};
use dyelog::solve::Observer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::cli::input;

/// Work that ends sooner shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often a bar that moves by itself does.
const TICK: Duration = Duration::from_millis(200);

/// The progress of some work. Clones show the same bar; it is gone when [`Progress::done`] was called or all are dropped.
#[derive(Clone)]
pub struct Progress(Option<Arc<Bar>>);

struct Bar {
    drawn: ProgressBar,
    begun: Instant,
    shown: AtomicBool,
    operations: Arc<AtomicU64>,
}

impl Progress {
    /// Of nothing that anybody wants to see.
    pub fn hidden() -> Self {
        Self(None)
    }

    /// Of the reading of files: bytes, and the operations that came of them.
    pub fn reading(files: &[PathBuf]) -> Self {
        if !is_wanted() {
            return Self::hidden();
        }
        Self::reading_length(files.iter().map(|file| input::length(file)).sum())
    }

    /// Of the reading of so many bytes, where that is known.
    pub fn reading_length(total: Option<u64>) -> Self {
        if !is_wanted() {
            return Self::hidden();
        }
        let operations = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&operations);
        let told = move |_: &ProgressState, text: &mut dyn std::fmt::Write| {
            // A bar that cannot be written is not worth a word.
            let _ = write!(text, "{}", counter.load(Ordering::Relaxed));
        };
        let template = match total {
            Some(_) => "reading {wide_bar} {bytes} of {total_bytes}, {operations} operations, {eta} left",
            None => "{spinner} reading: {bytes}, {operations} operations, {elapsed}",
        };
        let style = ProgressStyle::with_template(template).map(|style| style.with_key("operations", told));
        Self::with(total, style.ok(), operations)
    }

    /// Of work in steps, so many where that is known.
    pub fn steps(doing: &str, total: Option<u64>) -> Self {
        if !is_wanted() {
            return Self::hidden();
        }
        let style = ProgressStyle::with_template(&match total {
            Some(_) => format!("{doing} {{wide_bar}} {{pos}} of {{len}}, {{eta}} left"),
            None => format!("{{spinner}} {doing}: {{pos}}, {{elapsed}}"),
        });
        Self::with(total, style.ok(), Arc::default())
    }

    /// Shown from the beginning and moved by itself: each step takes long.
    pub fn at_once(self) -> Self {
        if let Some(bar) = &self.0 {
            bar.shown.store(true, Ordering::Relaxed);
            bar.drawn.set_draw_target(ProgressDrawTarget::stderr());
            bar.drawn.enable_steady_tick(TICK);
        }
        self
    }

    fn with(total: Option<u64>, style: Option<ProgressStyle>, operations: Arc<AtomicU64>) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        if let Some(style) = style {
            bar.set_style(style);
        }
        Self(Some(Arc::new(Bar { drawn: bar, begun: Instant::now(), shown: AtomicBool::new(false), operations })))
    }

    /// Bytes or steps were done.
    pub fn advance(&self, by: u64) {
        let Some(bar) = &self.0 else { return };
        if !bar.shown.load(Ordering::Relaxed) && bar.begun.elapsed() >= PATIENCE {
            bar.shown.store(true, Ordering::Relaxed);
            bar.drawn.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.drawn.inc(by);
    }

    /// An operation came out.
    pub fn operation(&self) {
        if let Some(bar) = &self.0 {
            bar.operations.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An input whose bytes count.
    pub fn watch(&self, input: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        if self.0.is_none() { input } else { Box::new(Watched { input, progress: self.clone() }) }
    }

    /// Takes the bar away, before words are said.
    pub fn done(&self) {
        if let Some(bar) = &self.0 {
            bar.drawn.finish_and_clear();
        }
    }
}

impl Meter for Progress {
    fn watch(&self, input: Reader) -> Reader {
        Self::watch(self, input)
    }

    fn operation(&self) {
        Self::operation(self);
    }

    fn done(&self) {
        Self::done(self);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.drawn.finish_and_clear();
    }
}

/// The progress of a solver, in iterations.
pub struct Iterations(Progress);

impl Iterations {
    /// Of a solver that does what the words say.
    pub fn new(doing: &str) -> Self {
        Self(Progress::steps(doing, None))
    }

    /// Takes the bar away, before words are said.
    pub fn done(&self) {
        self.0.done();
    }
}

impl Observer for Iterations {
    fn iteration(&mut self, _number: u32, _residual: f64) {
        self.0.advance(1);
    }
}

fn is_wanted() -> bool {
    // Editors and logs call themselves dumb: they show every frame of a bar.
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

struct Watched {
    input: Box<dyn Read + Send>,
    progress: Progress,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.progress.advance(read as u64);
        Ok(read)
    }
}
