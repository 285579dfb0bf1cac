//! The clocks, and which of them a probe reads.

use std::fmt;
#[cfg(not(unix))]
use std::sync::OnceLock;

/// What a probe reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The clock on the wall, once a probe: latencies and rates, no processor time.
    Wall,
    /// The processor time of the thread, once a probe. Such records have neither latencies nor rates.
    Cpu,
    /// The clock on the wall at the beginning and at the end of a probe, and the processor time in between, so that latencies are without what
    /// reading the processor time costs.
    #[default]
    Both,
}

/// The clock on the wall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WallClock {
    /// The monotonic clock of the system.
    #[default]
    System,
    /// The time stamp counter of the processor, where it is known to run evenly, else that of the system. Needs the feature `fast-clock`; without
    /// it the clock is that of the system.
    Fast,
}

/// No time.
pub(crate) const NONE: i64 = i64::MIN;

/// Bits of what is on: the clocks that are read, and which clock on the wall.
pub(crate) const WALL: u32 = 1;
pub(crate) const CPU: u32 = 2;
pub(crate) const FAST: u32 = 4;

impl Mode {
    /// The bits of the clocks, without those that the system lacks.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::Wall => WALL,
            _ if !cfg!(unix) => WALL,
            Self::Cpu => CPU,
            Self::Both => WALL | CPU,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wall => "wall",
            Self::Cpu => "cpu",
            Self::Both => "both",
        })
    }
}

/// What the clocks of one probe showed: ticks of the clock on the wall, nanoseconds of the thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) cpu: i64,
}

/// Reads the clocks that `bits` ask for.
#[inline]
pub(crate) fn stamp(bits: u32) -> Stamp {
    match bits & (WALL | CPU) {
        CPU => Stamp { begin: NONE, end: NONE, cpu: thread_time() },
        WALL => {
            let now = ticks(bits);
            Stamp { begin: now, end: now, cpu: NONE }
        }
        _ => {
            let begin = ticks(bits);
            let cpu = thread_time();
            Stamp { begin, end: ticks(bits), cpu }
        }
    }
}

#[cfg(unix)]
fn nanoseconds(clock: rustix::time::ClockId) -> i64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec)
}

/// The processor time of the calling thread, in nanoseconds.
#[cfg(unix)]
#[inline]
pub(crate) fn thread_time() -> i64 {
    nanoseconds(rustix::time::ClockId::ThreadCPUTime)
}

#[cfg(not(unix))]
pub(crate) fn thread_time() -> i64 {
    NONE
}

/// The processor time of the process, in nanoseconds; [`NONE`] where the system does not tell it.
#[cfg(unix)]
pub(crate) fn process_time() -> i64 {
    nanoseconds(rustix::time::ClockId::ProcessCPUTime)
}

#[cfg(not(unix))]
pub(crate) fn process_time() -> i64 {
    NONE
}

/// Ticks of the clock on the wall: nanoseconds, but for the fast clock, whose ticks [`Scale`] makes nanoseconds of.
#[inline]
pub(crate) fn ticks(bits: u32) -> i64 {
    #[cfg(feature = "fast-clock")]
    if bits & FAST != 0 {
        return fast().raw() as i64;
    }
    let _ = bits;
    system_ticks()
}

#[cfg(unix)]
#[inline]
fn system_ticks() -> i64 {
    nanoseconds(rustix::time::ClockId::Monotonic)
}

#[cfg(not(unix))]
fn system_ticks() -> i64 {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as i64
}

#[cfg(feature = "fast-clock")]
fn fast() -> &'static quanta::Clock {
    static CLOCK: std::sync::OnceLock<quanta::Clock> = std::sync::OnceLock::new();
    CLOCK.get_or_init(quanta::Clock::new)
}

/// From ticks to nanoseconds since 1970, so that the files of several hosts are read side by side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    bits: u32,
    ticks: i64,
    nanoseconds: i64,
}

impl Scale {
    /// The scale of a clock, taken now.
    pub(crate) fn now(bits: u32) -> Self {
        // The first reading may set the clock up, which takes time.
        ticks(bits);
        let before = ticks(bits);
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self { bits, ticks: before, nanoseconds: since.map_or(0, |time| time.as_nanos() as i64) }
    }

    /// Nanoseconds since 1970.
    pub(crate) fn nanoseconds(self, ticks: i64) -> i64 {
        let elapsed = ticks.wrapping_sub(self.ticks);
        #[cfg(feature = "fast-clock")]
        if self.bits & FAST != 0 {
            let span = fast().delta_as_nanos(0, elapsed.unsigned_abs()) as i64;
            return self.nanoseconds.wrapping_add(span * elapsed.signum());
        }
        let _ = self.bits;
        self.nanoseconds.wrapping_add(elapsed)
    }
}

/// What the header says of the clocks.
pub(crate) fn describe(bits: u32) -> &'static str {
    match (bits & (WALL | CPU), bits & FAST != 0) {
        (WALL, false) => "monotonic",
        (WALL, true) => "time stamp counter",
        (CPU, _) => "thread CPU",
        (_, false) => "monotonic, thread CPU within it",
        (_, true) => "time stamp counter, thread CPU within it",
    }
}
