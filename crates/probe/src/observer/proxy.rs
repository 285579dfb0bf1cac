//! Proxy observers: what processes without observers used, by the counters of the system (§5.3).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::observer::Identity;
use crate::observer::json::Quoted;

/// Processes that are looked at, at most.
const MOST: usize = 8192;

/// What a process used since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    /// When it began, ticks since the system did.
    started: u64,
    /// Processor time, ticks.
    ticks: u64,
    read_bytes: u64,
    written_bytes: u64,
}

/// All processes of the host but this one, as they were when last looked at.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    before: BTreeMap<u32, Used>,
}

impl Proxies {
    /// As processes are now.
    pub(crate) fn now() -> Self {
        Self { before: all().into_iter().map(|(id, (_, used))| (id, used)).collect() }
    }

    /// The document of what processes used since it was last asked; `None` where none used anything.
    pub(crate) fn report(&mut self, identity: &Identity, (from, to): (i64, i64)) -> Option<String> {
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        let now = all();
        let mut rows = String::new();
        for (id, (program, used)) in &now {
            let same = self.before.get(id).filter(|before| before.started == used.started);
            let before = same.copied().unwrap_or_default();
            let ticks = used.ticks.saturating_sub(before.ticks);
            let (read, written) = (
                used.read_bytes.saturating_sub(before.read_bytes),
                used.written_bytes.saturating_sub(before.written_bytes),
            );
            if *id == identity.id || ticks + read + written == 0 {
                continue;
            }
            let comma = if rows.is_empty() { "" } else { "," };
            let cpu = u128::from(ticks) * 1_000_000_000 / u128::from(per_second);
            let operations = |bytes: u64| bytes.div_ceil(identity.disk_operation);
            let _ = write!(
                rows,
                r#"{comma}{{"application":"(unmanaged)","host":{},"program":{},"process":{id},"started":{},"managed":false,"from":{from},"to":{to},"resources":{{"cpu_ns":{cpu},"reads":{},"writes":{},"read_bytes":{read},"written_bytes":{written}}}}}"#,
                Quoted(&identity.host),
                Quoted(program),
                used.started,
                operations(read),
                operations(written),
            );
        }
        self.before = now.into_iter().map(|(id, (_, used))| (id, used)).collect();
        (!rows.is_empty()).then(|| format!(r#"{{"dyelog-observations":1,"observations":[{rows}]}}"#))
    }
}

/// Processes by number, with their programs. Those that end meanwhile, or may not be looked at, are left out.
fn all() -> BTreeMap<u32, (String, Used)> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let one = |id: u32| {
        let (program, mut used) = parsed(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?;
        let io = fs::read_to_string(format!("/proc/{id}/io")).unwrap_or_default();
        used.read_bytes = crate::observer::resources::field(&io, "read_bytes");
        used.written_bytes = crate::observer::resources::field(&io, "write_bytes");
        Some((id, (program, used)))
    };
    numbers.take(MOST).filter_map(one).collect()
}

/// Program, processor time and begin of a process, from its line in `stat`; a program's name may have anything in it.
fn parsed(stat: &str) -> Option<(String, Used)> {
    let (begin, rest) = stat.rsplit_once(')')?;
    let (_, program) = begin.split_once('(')?;
    let mut fields = rest.split_ascii_whitespace();
    // The third field of the line is the first behind the name.
    let mut field = |number: usize| fields.nth(number)?.parse::<u64>().ok();
    let (user, system, started) = (field(11)?, field(0)?, field(6)?);
    let program = if program.is_empty() { "(unnamed)" } else { program };
    Some((program.to_owned(), Used { started, ticks: user.saturating_add(system), ..Used::default() }))
}

#[cfg(test)]
mod tests {
    use super::{Used, parsed};

    #[test]
    fn a_name_may_have_parentheses_in_it() {
        let stat = "7 (a) b) (c) S 1 7 7 0 -1 4194560 100 0 0 0 31 12 0 0 20 0 1 0 555 1000 50 18446744073709551615";
        let used = Used { started: 555, ticks: 43, ..Used::default() };
        assert_eq!(parsed(stat), Some(("a) b) (c".to_owned(), used)));
        assert_eq!(parsed("7 (a"), None);
    }
}
