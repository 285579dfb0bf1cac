//! Power that fails while a real server writes: its calls of the system are recorded, and files are put together as a disk may have them at any
//! moment. What was synced is there; of what was not, any part.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use dyelog_observe::json;
use dyelog_observe::observation::{Observation, Process};
use dyelog_server::journal::Journal;
use dyelog_server::journal::medium::Folder;
use dyelog_server::store::{Store, Which};
use dyelog_server::worker::{Worker, Working};
use rusqlite::Connection;

use crate::program::Program;
use crate::support::{BEGIN, SECOND, request, trace};

/// What is recorded.
const CALLS: &str = "trace=openat,write,writev,pwrite64,sendto,fsync,fdatasync,ftruncate,unlink,unlinkat,rename";
/// A sector of a disk: it is written as a whole, or not at all.
const SECTOR: usize = 512;

/// A call that changes files or answers a client.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    /// At a place, or at the end.
    Write(String, Option<usize>, Vec<u8>),
    Cut(String, usize),
    /// A sync begins, and later has ended.
    Asked(u32, String),
    Synced(u32),
    Removed(String),
    /// A client got its answer.
    Acknowledged,
}

/// The bytes of a text in hexadecimal escapes.
fn plain(text: &str) -> Vec<u8> {
    text.split("\\x").skip(1).map(|pair| u8::from_str_radix(&pair[..2], 16).expect("it is hexadecimal")).collect()
}

/// The path of a descriptor, as `7<\x2f…>`.
fn path(descriptor: &str) -> String {
    let inner = descriptor.split_once('<').map_or("", |(_, path)| path.trim_end_matches('>'));
    String::from_utf8_lossy(&plain(inner)).into_owned()
}

/// What a recording says of files whose paths begin so.
fn events(log: &str, folder: &str) -> Vec<Event> {
    let mut events = Vec::new();
    let mut begun: BTreeMap<u32, String> = BTreeMap::new();
    for line in log.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let (Ok(thread), rest) = (thread.parse::<u32>(), rest.trim_start()) else { continue };
        let whole = if let Some(begin) = rest.strip_suffix(" <unfinished ...>") {
            if let Some(asked) = sync(begin) {
                events.push(Event::Asked(thread, asked));
            }
            begun.insert(thread, begin.to_owned());
            continue;
        } else if let Some((_, end)) = rest.split_once(" resumed>") {
            let Some(begin) = begun.remove(&thread) else { continue };
            if sync(&begin).is_some() {
                if end.trim_end().ends_with("= 0") {
                    events.push(Event::Synced(thread));
                }
                continue;
            }
            begin + end
        } else {
            rest.to_owned()
        };
        if let Some(asked) = sync(&whole) {
            events.extend([Event::Asked(thread, asked), Event::Synced(thread)]);
        } else {
            events.extend(event(&whole));
        }
    }
    let is_ours = |event: &Event| match event {
        Event::Write(path, ..) | Event::Cut(path, _) | Event::Asked(_, path) | Event::Removed(path) => {
            // SQLite makes the index of its log anew.
            path.starts_with(folder) && !path.ends_with("-shm")
        }
        Event::Synced(_) | Event::Acknowledged => true,
    };
    events.retain(is_ours);
    events
}

fn sync(call: &str) -> Option<String> {
    let inner = call.strip_prefix("fsync(").or_else(|| call.strip_prefix("fdatasync("))?;
    Some(path(inner.split(')').next()?))
}

fn event(call: &str) -> Option<Event> {
    let (name, rest) = call.split_once('(')?;
    // Results stand in a column of their own.
    let (inner, result) = rest.rsplit_once(" = ")?;
    let inner = inner.trim_end().strip_suffix(')')?;
    let result: i64 = result.split_whitespace().next()?.split('<').next()?.parse().ok()?;
    if result < 0 {
        return None;
    }
    let mut arguments = inner.splitn(2, ", ");
    let (first, others) = (arguments.next()?, arguments.next().unwrap_or(""));
    let text = |arguments: &str| plain(arguments.split('"').nth(1).unwrap_or(""));
    let last = |arguments: &str| arguments.rsplit(", ").next().and_then(|number| number.parse::<usize>().ok());
    match name {
        "write" | "sendto" | "writev" => {
            let bytes = text(others);
            if bytes.starts_with(b"HTTP/1.1 200") {
                return Some(Event::Acknowledged);
            }
            let bytes = bytes[..bytes.len().min(result as usize)].to_vec();
            Some(Event::Write(path(first), None, bytes))
        }
        "pwrite64" => Some(Event::Write(path(first), last(others), text(others)[..result as usize].to_vec())),
        "ftruncate" => Some(Event::Cut(path(first), last(others)?)),
        "unlink" => Some(Event::Removed(String::from_utf8_lossy(&text(inner)).into_owned())),
        "unlinkat" => Some(Event::Removed(String::from_utf8_lossy(&text(others)).into_owned())),
        "rename" => panic!("nothing is renamed: {call}"),
        _ => None,
    }
}

/// A change of a file that may or may not be on disk.
#[derive(Clone)]
enum Change {
    Bytes(usize, Vec<u8>),
    Length(usize),
    Removal,
}

/// A file: what is on disk, and what was done to it since, with the length that programs see.
#[derive(Clone, Default)]
struct OnDisk {
    synced: Option<Vec<u8>>,
    since: Vec<Change>,
    length: usize,
}

impl OnDisk {
    fn change(bytes: &mut Option<Vec<u8>>, change: &Change) {
        match change {
            Change::Bytes(at, more) => {
                let own = bytes.get_or_insert_default();
                own.resize(own.len().max(at + more.len()), 0);
                own[*at..at + more.len()].copy_from_slice(more);
            }
            Change::Length(length) => bytes.get_or_insert_default().resize(*length, 0),
            Change::Removal => *bytes = None,
        }
    }

    fn sync(&mut self, count: usize) {
        for change in self.since.drain(..count.min(self.since.len())) {
            Self::change(&mut self.synced, &change);
        }
    }

    /// What may be there after the power came back.
    fn after(&self, random: &mut impl FnMut(u64) -> u64) -> Option<Vec<u8>> {
        let mut bytes = self.synced.clone();
        // Now and then nothing is left of it, or all.
        let kept = [0, 100, 50, 90][random(4) as usize];
        for change in &self.since {
            match change {
                Change::Bytes(at, more) => {
                    let mut from = 0;
                    while from < more.len() {
                        let to = ((at + from) / SECTOR * SECTOR + SECTOR - at).min(more.len());
                        if random(100) < kept {
                            Self::change(&mut bytes, &Change::Bytes(at + from, more[from..to].to_vec()));
                        }
                        from = to;
                    }
                }
                other if random(100) < kept => Self::change(&mut bytes, other),
                _ => {}
            }
        }
        bytes
    }
}

/// A disk.
#[derive(Default)]
struct Disk {
    files: BTreeMap<String, OnDisk>,
    /// By thread: the files that it syncs, and how many changes of each it does.
    asked: BTreeMap<u32, Vec<(String, usize)>>,
    acknowledged: u64,
}

impl Disk {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Write(path, at, bytes) => {
                let file = self.files.entry(path.clone()).or_default();
                let at = at.unwrap_or(file.length);
                file.length = file.length.max(at + bytes.len());
                file.since.push(Change::Bytes(at, bytes.clone()));
            }
            Event::Cut(path, length) => {
                let file = self.files.entry(path.clone()).or_default();
                file.length = *length;
                file.since.push(Change::Length(*length));
            }
            Event::Removed(path) => {
                let file = self.files.entry(path.clone()).or_default();
                file.length = 0;
                file.since.push(Change::Removal);
            }
            Event::Asked(thread, path) => {
                // A folder's sync is about names alone: what is gone is gone.
                let gone = |file: &OnDisk| file.since.iter().rposition(|change| matches!(change, Change::Removal));
                let of = |(name, file): (&String, &OnDisk)| {
                    let is_in = Path::new(name).parent() == Some(Path::new(path));
                    let count = if name == path { file.since.len() } else { gone(file).filter(|_| is_in)? + 1 };
                    Some((name.clone(), count))
                };
                self.asked.insert(*thread, self.files.iter().filter_map(of).collect());
            }
            Event::Synced(thread) => {
                for (path, changes) in self.asked.remove(thread).unwrap_or_default() {
                    self.files.get_mut(&path).expect("it was there").sync(changes);
                }
            }
            Event::Acknowledged => self.acknowledged += 1,
        }
    }
}

fn observed(number: u64) -> Observation {
    let process = Process { application: "a".into(), host: "h".into(), program: "p".into(), id: 1, started: 0 };
    let from = (BEGIN + number * SECOND).cast_signed();
    Observation::empty(process, from, from + SECOND as i64)
}

/// Sends traces and reports in turn; gives what the server did.
fn recorded(folder: &Path, requests: u64) -> Vec<Event> {
    let (store, log) = (folder.join("data/store.db"), folder.join("log"));
    fs::create_dir(folder.join("data")).unwrap();
    let log_text = log.display().to_string();
    let wrapper = ["strace", "-f", "-y", "-xx", "-s", "16777216", "-e", CALLS, "-o", &log_text];
    // What is sent is years old.
    let options = ["--grace", "0.2", "--limit", "1", "--retention", "36500"];
    let program = Program::start_under(&wrapper, &store, &options);
    for number in 0..requests {
        let status = if number % 2 == 0 {
            program.put(&request(&trace(number, BEGIN + number * SECOND / 10, &[2, 3]))).unwrap().status
        } else {
            let report = json::write(&[observed(number)]);
            program.ask("POST", "/services/put", &[], report.as_bytes()).unwrap().status
        };
        assert_eq!(status, 200);
        // Checkpoints lie in between.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(program.ask("POST", "/services/shutdown", &[], b"").unwrap().status, 200);
    program.wait();
    events(&fs::read_to_string(log).unwrap(), &folder.join("data").display().to_string())
}

#[test]
#[ignore = "needs strace, and takes minutes"]
fn a_thousand_power_cuts_of_a_whole_server() {
    const REQUESTS: u64 = 600;
    let folder = tempfile::tempdir().unwrap();
    let events = recorded(folder.path(), REQUESTS);
    let acknowledged = events.iter().filter(|event| **event == Event::Acknowledged).count() as u64;
    // The last one is that it stops.
    assert_eq!(acknowledged, REQUESTS + 1);
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut cuts: Vec<u64> = (0..1000).map(|_| random(events.len() as u64)).collect();
    cuts.sort_unstable();
    let mut disk = Disk::default();
    let (mut at, mut torn) = (0, 0);
    let mut stores = BTreeSet::new();
    for cut in cuts {
        for event in &events[at..cut as usize] {
            disk.apply(event);
        }
        at = cut as usize;
        let after = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        for (path, file) in &disk.files {
            torn += usize::from(!file.since.is_empty());
            if let Some(bytes) = file.after(&mut random) {
                let path = after.path().join(Path::new(path).strip_prefix(&data).unwrap());
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
        }
        stores.insert(check(after.path(), disk.acknowledged.min(REQUESTS)));
    }
    // Power failed in the middle of writes, and at many states of the store.
    assert!(torn > 100 && stores.len() > 5, "{torn} files were torn, {} states", stores.len());
}

/// Starts on what is left, and looks for all that was acknowledged; gives how many spans the store had folded.
fn check(folder: &Path, acknowledged: u64) -> u64 {
    let file = folder.join("store.db");
    let mut store = Store::open(&file).unwrap();
    let sound: String =
        Connection::open(&file).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    let folded = store.progress().unwrap().counts.folded;
    let medium = Folder::new(&folder.join("store.db.journal")).unwrap();
    let journal = Journal::open(medium.clone(), store.progress().unwrap().position).unwrap();
    let mut worker = Worker::new(Working::default(), medium, &store).unwrap();
    while worker.step(journal.end()).unwrap() {}
    worker.give_out_all();
    worker.checkpoint(&mut store).unwrap();
    let counts = worker.counts();
    assert!(counts.are_conserved(), "{counts:?}");
    // Traces and reports take turns, and a trace has five spans.
    let (traces, reports) = (acknowledged.div_ceil(2), acknowledged / 2);
    let ours = (5 * traces..=5 * (traces + 1)).contains(&counts.folded);
    assert!(ours && counts.duplicate == 0, "{acknowledged} acknowledged, {counts:?}");
    let there = store.observations(&Which::default(), i64::MIN, i64::MAX).unwrap();
    // They are old, so that some of them were merged meanwhile.
    let is_there = |number: u64| {
        let own = observed(2 * number + 1);
        there.iter().any(|merged| merged.from <= own.from && own.to <= merged.to)
    };
    let count: u64 = there.iter().map(|merged| merged.intervals).sum();
    assert!(
        (0..reports).all(is_there) && (reports..=reports + 1).contains(&count),
        "{reports} reports, {count} stored"
    );
    folded
}
