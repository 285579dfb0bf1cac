//! What the process used of physical resources so far, by the counters of the system.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::clock;

/// Bytes of the network that the program counted.
static RECEIVED: AtomicU64 = AtomicU64::new(0);
static SENT: AtomicU64 = AtomicU64::new(0);

/// Counts bytes that the process received from the network and sent there: systems do not count them by process.
pub fn count_network(received: u64, sent: u64) {
    RECEIVED.fetch_add(received, Ordering::Relaxed);
    SENT.fetch_add(sent, Ordering::Relaxed);
}

/// Operations of devices that the program counted.
static READS: AtomicU64 = AtomicU64::new(0);
static WRITES: AtomicU64 = AtomicU64::new(0);

/// Counts operations of devices that the system does not see, such as those of a remote store. They come to those that follow from bytes.
pub fn count_disk(reads: u64, writes: u64) {
    READS.fetch_add(reads, Ordering::Relaxed);
    WRITES.fetch_add(writes, Ordering::Relaxed);
}

/// Counters since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) cpu: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}

impl Counters {
    /// As they are now, without the processor time of this thread: the observer's, which no operation asks for. What the system does not tell is zero.
    pub(crate) fn now() -> Self {
        let cpu = u64::try_from(clock::process_time().saturating_sub(clock::thread_time())).unwrap_or(0);
        let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        Self {
            cpu,
            reads: READS.load(Ordering::Relaxed),
            writes: WRITES.load(Ordering::Relaxed),
            read_bytes: field(&io, "read_bytes"),
            written_bytes: field(&io, "write_bytes"),
            received_bytes: RECEIVED.load(Ordering::Relaxed),
            sent_bytes: SENT.load(Ordering::Relaxed),
        }
    }

    /// What was used since then.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            reads: self.reads.saturating_sub(before.reads),
            writes: self.writes.saturating_sub(before.writes),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            received_bytes: self.received_bytes.saturating_sub(before.received_bytes),
            sent_bytes: self.sent_bytes.saturating_sub(before.sent_bytes),
        }
    }
}

pub(crate) fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

/// Nanoseconds since 1970.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64)
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields_are_found_by_their_whole_names() {
        let text = "rchar: 5\nread_bytes: 4096\nwrite_bytes: 12\ncancelled_write_bytes: 7\n";
        assert_eq!(["read_bytes", "write_bytes", "bytes"].map(|name| field(text, name)), [4096, 12, 0]);
    }
}
