//! A test that is run again whenever a file changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use super::{Arguments, find};
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, input};

/// How long files are left alone between two looks at them.
const PAUSE: Duration = Duration::from_millis(250);

/// When files were changed, and how long they are.
type Seen = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// Runs a test, and again after each change of what it reads. It ends with the program, or where nobody reads its output any more.
pub fn watch(arguments: &Arguments, terminal: &mut Terminal, mut run: impl FnMut(&mut Terminal) -> Outcome) -> Outcome {
    loop {
        // What changes while the test runs is seen after it.
        let seen = look(arguments);
        match run(terminal) {
            Ok(_) => {}
            Err(Failure::Input(findings)) => terminal.report(&findings),
            Err(Failure::Closed) => return Err(Failure::Closed),
        }
        terminal.remark("the test runs again when a file changes; Ctrl-C ends it");
        let changed = changed(&seen, arguments);
        terminal.remark(&format!("`{}` has changed", input::shown(&changed)));
    }
}

/// Waits for a change; gives the first path that differs, once nothing changes any more.
fn changed(seen: &Seen, arguments: &Arguments) -> PathBuf {
    let mut last = seen.clone();
    loop {
        thread::sleep(PAUSE);
        let now = look(arguments);
        if now == last
            && let Some(path) = first_difference(seen, &now)
        {
            return path;
        }
        last = now;
    }
}

fn first_difference(before: &Seen, now: &Seen) -> Option<PathBuf> {
    let all = before.keys().chain(now.keys());
    all.filter(|path| before.get(*path) != now.get(*path)).min().cloned()
}

/// The files that a test may read: of its folders those whose names say so, and what lies beside rule files that are named. What the test
/// itself writes there changes nothing, whatever its name.
fn look(arguments: &Arguments) -> Seen {
    let beside = arguments.reduce.rules.iter().map(|file| find::folder_of(file));
    let folders = [&*arguments.folder].into_iter().chain(arguments.snapshots.as_deref());
    let all = folders.flat_map(|folder| find::tree(folder).unwrap_or_default());
    let mut paths: Vec<PathBuf> = all.filter(|path| find::is_read(path)).collect();
    paths.extend(
        beside.filter_map(|folder| fs::read_dir(folder).ok()).flat_map(files_of).filter(|path| find::is_read(path)),
    );
    paths.extend(arguments.config.clone());
    // A file that is not there yet has no name but the one given.
    let whole = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Some(written) = arguments.output.output.as_deref().map(whole) {
        paths.retain(|path| whole(path) != written);
    }
    let seen = |path: PathBuf| {
        let stamp = stamp(&path);
        (path, stamp)
    };
    paths.into_iter().map(seen).collect()
}

fn files_of(folder: fs::ReadDir) -> impl Iterator<Item = PathBuf> {
    folder.flatten().map(|entry| entry.path()).filter(|path| path.is_file())
}

fn stamp(path: &Path) -> (Option<SystemTime>, u64) {
    fs::metadata(path).map_or((None, 0), |metadata| (metadata.modified().ok(), metadata.len()))
}
