//! The recorder: turns probes on, writes what they leave, tells what was lost.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::buffer::{COLLOCATED, Probe, Shared};
use crate::chain::Chain;
use crate::clock::{self, FAST, Mode, Scale, WallClock};
use crate::output::{Form, Header, Output, Process};
use crate::start::StartError;
use crate::state::{self, Context, Sink, Start};

/// How often records are written. A process that is killed loses what came after: at most 100 ms, or a chunk of 64 KiB a thread.
const PERIOD: Duration = Duration::from_millis(50);

/// How a recorder is set up; see [`Recorder::of`].
pub struct Setup {
    process: Process,
    mode: Mode,
    clock: WallClock,
    outputs: Vec<(Form, Target)>,
}

enum Target {
    File(PathBuf),
    Sink(Box<dyn Write + Send>),
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("process", &self.process).field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Setup {
    /// The processor, as records name it: the host name, if nothing is said. Times of the wall compare within one.
    #[must_use]
    pub fn processor(mut self, name: impl Into<String>) -> Self {
        self.process.processor = name.into();
        self
    }

    /// What probes read: [`Mode::Both`], if nothing is said.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Which clock on the wall probes read.
    #[must_use]
    pub fn clock(mut self, clock: WallClock) -> Self {
        self.clock = clock;
        self
    }

    /// Writes records to a file, which is overwritten. Several outputs are possible.
    #[must_use]
    pub fn file(mut self, form: Form, path: impl AsRef<Path>) -> Self {
        self.outputs.push((form, Target::File(path.as_ref().to_owned())));
        self
    }

    /// Writes records to anything else, from a thread of the recorder.
    #[must_use]
    pub fn sink(mut self, form: Form, sink: impl Write + Send + 'static) -> Self {
        self.outputs.push((form, Target::Sink(Box::new(sink))));
        self
    }

    /// Turns the probes of the process on. A file that cannot be written does not keep it from starting; [`Summary::errors`] tells.
    ///
    /// # Errors
    /// When a recorder runs already, or the system refuses a thread.
    pub fn start(self) -> Result<Recorder, StartError> {
        let Self { process, mode, clock, outputs } = self;
        let fast = cfg!(feature = "fast-clock") && clock == WallClock::Fast;
        let bits = mode.bits() | if fast { FAST } else { 0 };
        let header = Header { clock: clock::describe(bits), cost: cost(bits) };
        let scale = Scale::now(bits);
        let begun = clock::process_time();
        // The outputs are there before the first record is.
        let outputs = outputs.into_iter().map(|(form, target)| open(form, target, &process, &header, scale)).collect();
        let shared = state::turn_on(bits).ok_or(StartError::Running)?;
        let mut flusher = Flusher { shared: Arc::clone(&shared), outputs, begun };
        let run = move || {
            flusher.run();
            flusher.summary()
        };
        match std::thread::Builder::new().name("dyelog-probe".to_owned()).spawn(run) {
            Ok(thread) => {
                // It was not set before.
                let _ = shared.flusher.set(thread.thread().clone());
                Ok(Recorder { shared, thread: Some(thread) })
            }
            Err(error) => {
                state::turn_off();
                state::release();
                Err(StartError::Thread(error.to_string()))
            }
        }
    }
}

fn open(form: Form, target: Target, process: &Process, header: &Header, scale: Scale) -> Output {
    match target {
        Target::Sink(sink) => Output::new(form, "sink".to_owned(), sink, process, header, scale),
        Target::File(path) => {
            let name = path.display().to_string();
            match File::create(&path) {
                Ok(file) => Output::new(form, name, Box::new(file), process, header, scale),
                Err(error) => {
                    Output::new(form, name, Box::new(std::io::sink()), process, header, scale).broken(error.to_string())
                }
            }
        }
    }
}

/// A running recorder. The probes of the process are on until it is finished or dropped.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Summary>>,
}

impl Recorder {
    /// Sets up a recorder for a process of this name. Processes that run side by side need names of their own.
    ///
    /// ```
    /// use dyelog_probe::{Form, Mode, Recorder};
    ///
    /// let folder = std::env::temp_dir();
    /// let recorder = Recorder::of("gui").mode(Mode::Both).file(Form::Binary, folder.join("gui.calls")).start()?;
    /// // … the program …
    /// let summary = recorder.finish();
    /// assert!(summary.is_clean(), "{summary}");
    /// # Ok::<(), dyelog_probe::StartError>(())
    /// ```
    pub fn of(process: impl Into<String>) -> Setup {
        let process = Process { process: process.into(), processor: host() };
        Setup { process, mode: Mode::default(), clock: WallClock::default(), outputs: Vec::new() }
    }

    /// Turns probes off, writes all records out and tells how it went.
    pub fn finish(mut self) -> Summary {
        self.stop()
    }

    fn stop(&mut self) -> Summary {
        let Some(thread) = self.thread.take() else { return Summary::default() };
        state::turn_off();
        self.shared.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        let summary = thread.join().unwrap_or_else(|_| Summary {
            errors: vec!["the thread that writes records panicked".to_owned()],
            ..Summary::default()
        });
        state::release();
        summary
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(unix)]
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
pub(crate) fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// The thread that writes.
struct Flusher {
    shared: Arc<Shared>,
    outputs: Vec<Output>,
    /// The processor time of the process before probes were on.
    begun: i64,
}

impl Flusher {
    fn run(&mut self) {
        for output in &mut self.outputs {
            output.flush();
        }
        loop {
            let stop = self.shared.stop.load(Ordering::Acquire);
            self.flush(stop);
            if stop {
                return;
            }
            if !self.outputs.is_empty() && self.outputs.iter().all(Output::has_failed) {
                // Nobody reads what probes leave: the program goes on without them.
                state::turn_off();
            }
            std::thread::park_timeout(PERIOD);
        }
    }

    fn flush(&mut self, last: bool) {
        let mut any = false;
        let outputs = &mut self.outputs;
        self.shared.drain(last, |thread, chunk| {
            any = true;
            for output in outputs.iter_mut() {
                output.chunk(thread, chunk);
                output.write_if_full();
            }
        });
        let now = clock::process_time();
        // What this thread uses is what recording costs, and no work of the program.
        let used = (now != clock::NONE && (any || last)).then(|| (now - self.begun - clock::thread_time()).max(0));
        for output in &mut self.outputs {
            if let Some(used) = used {
                output.process_time(used);
            }
            output.flush();
        }
    }

    fn summary(self) -> Summary {
        let counts = &self.shared.counts;
        let mut summary = Summary {
            lost: counts.lost.load(Ordering::Relaxed),
            interleaved: counts.interleaved.load(Ordering::Relaxed),
            misplaced: counts.misplaced.load(Ordering::Relaxed),
            too_deep: counts.too_deep.load(Ordering::Relaxed),
            bad_carriers: counts.bad_carriers.load(Ordering::Relaxed),
            ..Summary::default()
        };
        for output in &self.outputs {
            let (written, unwritten) = output.counts();
            summary.records += written;
            summary.unwritten += unwritten;
            summary.errors.extend(output.failure());
        }
        summary
    }
}

/// What a recorder did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Records written, to all outputs together.
    pub records: u64,
    /// Records that came faster than they could be written.
    pub lost: u64,
    /// Records that an output could not take, for the reasons in `errors`.
    pub unwritten: u64,
    /// What went wrong with outputs.
    pub errors: Vec<String>,
    /// Calls of a task that began while another one of its futures was under way. Each began a chain without a caller: make
    /// [`branch`](crate::branch)es of the futures.
    pub interleaved: u64,
    /// Ends of calls on another thread or task than their starts, which are not recorded: a guard that was held over an `.await`, or outlived what lies around it.
    pub misplaced: u64,
    /// Calls that were nested too deeply to be named to their callee.
    pub too_deep: u64,
    /// Headers that should have named a chain, and did not.
    pub bad_carriers: u64,
}

impl Summary {
    /// Whether every record of every call was written.
    pub fn is_clean(&self) -> bool {
        let Self { records: _, lost, unwritten, errors, interleaved, misplaced, too_deep, bad_carriers } = self;
        errors.is_empty() && [lost, unwritten, interleaved, misplaced, too_deep, bad_carriers].iter().all(|n| **n == 0)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records", self.records)?;
        let parts = [
            (self.lost, "lost, as they came too fast"),
            (self.unwritten, "not written"),
            (self.interleaved, "calls at once in one task, without branches"),
            (self.misplaced, "ends of calls in a wrong place"),
            (self.too_deep, "calls too deep to be named"),
            (self.bad_carriers, "headers that name no chain"),
        ];
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "; {count} {what}")?;
        }
        for error in &self.errors {
            write!(f, "; {error}")?;
        }
        Ok(())
    }
}

/// Measures what a probe costs: probes into a buffer that nobody reads, the least of several rounds. Nanoseconds, by clock.
fn cost(bits: u32) -> Vec<(&'static str, u64)> {
    const ROUNDS: u32 = 8;
    const PROBES: u32 = 64;
    let shared = Arc::new(Shared::default());
    let sink = Sink { buffer: shared.register(), shared };
    let mut context = Context::new(Chain::root());
    let start = Start { probe: Probe::StubStart, end: Probe::StubEnd, function: 1, flags: COLLOCATED };
    let round = |context: &mut Context| {
        let begin = Instant::now();
        for _ in 0..PROBES {
            let event = context.event();
            sink.write(bits, context, event, &start, None);
        }
        begin.elapsed().as_nanos() as u64 / u64::from(PROBES)
    };
    let least = (0..ROUNDS).map(|_| round(&mut context)).min().unwrap_or(0);
    let clocks = [(clock::WALL, "wall"), (clock::CPU, "cpu")];
    clocks.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| (name, least)).collect()
}
