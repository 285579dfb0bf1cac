//! The observer's thread: it sleeps, measures and reports.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[cfg(unix)]
use crate::observer::proxy::Proxies;
use crate::observer::resources::{self, Counters};
use crate::observer::table::Shared;
use crate::observer::transport::{Transport, TransportError};
use crate::observer::{Identity, Summary, json};

/// Bytes of reports that wait to be sent; beyond that the oldest are given up.
const MOST_BYTES: usize = 8 << 20;
/// How long is waited after a failure: twice as long each time, up to this.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

pub(crate) struct Reporter {
    shared: Arc<Shared>,
    identity: Identity,
    transport: Box<dyn Transport>,
    interval: Duration,
    patience: Duration,
    waiting: VecDeque<String>,
    bytes: usize,
    pause: Duration,
    /// Before that nothing is sent.
    not_before: Option<Instant>,
    lost: u64,
    #[cfg(unix)]
    proxies: Option<Proxies>,
    summary: Summary,
}

impl Reporter {
    pub(crate) fn new(
        shared: Arc<Shared>,
        identity: Identity,
        transport: Box<dyn Transport>,
        interval: Duration,
        patience: Duration,
    ) -> Self {
        Self {
            shared,
            #[cfg(unix)]
            proxies: identity.proxies.then(Proxies::now),
            identity,
            transport,
            interval,
            patience,
            waiting: VecDeque::new(),
            bytes: 0,
            pause: FIRST_PAUSE,
            not_before: None,
            lost: 0,
            summary: Summary::default(),
        }
    }

    /// Sleeps, measures and reports until it is stopped.
    pub(crate) fn run(&mut self) -> Summary {
        // Intervals meet, however the clock of the wall is set meanwhile.
        let (begin, wall) = (Instant::now(), resources::now());
        let mut from = wall;
        let mut before = Counters::now();
        let mut next = begin + self.interval;
        loop {
            let stop = self.shared.stop.load(Ordering::Acquire);
            let now = Instant::now();
            if now >= next || stop {
                let to = wall.saturating_add(begin.elapsed().as_nanos() as i64).max(from + 1);
                let counters = Counters::now();
                self.measure(from, to, &counters.since(&before));
                (from, before) = (to, counters);
                // An interval that was slept through is a part of the one that was just reported.
                while next <= now {
                    next += self.interval;
                }
            }
            if stop {
                self.send_all();
                return std::mem::take(&mut self.summary);
            }
            self.send();
            let until = match self.not_before.filter(|_| !self.waiting.is_empty()) {
                Some(retry) => next.min(retry),
                None => next,
            };
            std::thread::park_timeout(until.saturating_duration_since(Instant::now()));
        }
    }

    /// Adds the report of an interval to those that wait.
    fn measure(&mut self, from: i64, to: i64, used: &Counters) {
        let (sums, most) = self.shared.take();
        let lost = self.shared.lost.load(Ordering::Relaxed);
        let report = json::report(&self.identity, (from, to), used, &sums, most, lost - self.lost);
        self.lost = lost;
        self.summary.lost = lost;
        self.keep(report);
        #[cfg(unix)]
        if let Some(report) = self.proxies.as_mut().and_then(|proxies| proxies.report(&self.identity, (from, to))) {
            self.keep(report);
        }
    }

    /// Lets a report wait to be sent.
    fn keep(&mut self, report: String) {
        self.bytes += report.len();
        self.waiting.push_back(report);
        while self.bytes > MOST_BYTES && self.waiting.len() > 1 {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        if let Some(report) = self.waiting.pop_front() {
            self.bytes -= report.len();
            self.summary.dropped += 1;
        }
    }

    /// Sends what waits, unless it failed a moment ago.
    fn send(&mut self) {
        if self.not_before.is_some_and(|not_before| Instant::now() < not_before) {
            return;
        }
        while let Some(report) = self.waiting.front() {
            match self.transport.put(report) {
                Ok(()) => {
                    self.summary.sent += 1;
                    (self.pause, self.not_before) = (FIRST_PAUSE, None);
                }
                Err(TransportError::Refused(why)) => {
                    self.summary.refused += 1;
                    self.summary.error = Some(why);
                }
                Err(TransportError::Unavailable { why, after }) => {
                    self.summary.error = Some(why);
                    self.not_before = Some(Instant::now() + after.unwrap_or(self.pause).min(LONGEST_PAUSE));
                    self.pause = (2 * self.pause).min(LONGEST_PAUSE);
                    return;
                }
            }
            let sent = self.waiting.pop_front();
            self.bytes -= sent.map_or(0, |report| report.len());
        }
    }

    /// Sends what waits, for as long as there is patience, and gives up the rest.
    fn send_all(&mut self) {
        let end = Instant::now() + self.patience;
        self.not_before = None;
        loop {
            self.send();
            let now = Instant::now();
            if self.waiting.is_empty() || now >= end {
                break;
            }
            let retry = self.not_before.unwrap_or(now).min(end);
            std::thread::sleep(retry.saturating_duration_since(now));
        }
        while !self.waiting.is_empty() {
            self.give_up();
        }
    }
}
