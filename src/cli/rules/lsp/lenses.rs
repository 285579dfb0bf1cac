//! What stands above each template: how often it matches in the traces that lie beside its file.
//!
//! Traces take time to read, so another thread counts, and an editor gets its answer when it is there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use dyelog::diagnostic::quantity::counted;
use dyelog::pipeline::{Input, Keep, Options, reduce};
use dyelog::tlc::Rules;
use lsp_server::{ErrorCode, RequestId, Response};
use lsp_types::{CodeLens, Command, Range as Between, Uri};

use super::Client;
use crate::cli::rule_files::Text;
use crate::cli::test::find::stem;

/// Traces that are longer, in bytes, are not read for this.
const LONGEST: u64 = 8 << 20;

/// What is counted for one document.
pub struct Job {
    pub id: RequestId,
    pub uri: Uri,
    pub folder: PathBuf,
    /// The document.
    pub file: Text,
    /// The files that it uses.
    pub used: Vec<Text>,
    /// Its templates, and where their names stand.
    pub templates: Vec<(Arc<str>, Between)>,
}

/// Begins a thread that counts, and answers the client.
pub fn start(client: Client) -> Sender<Job> {
    let (sender, receiver) = channel();
    thread::spawn(move || work(&receiver, &client));
    sender
}

fn work(jobs: &Receiver<Job>, client: &Client) {
    while let Ok(first) = jobs.recv() {
        // Of several questions about one document the last one counts.
        let mut waiting = vec![first];
        waiting.extend(jobs.try_iter());
        while !waiting.is_empty() {
            let job = waiting.remove(0);
            if waiting.iter().any(|later| later.uri == job.uri) {
                let message = "the document was asked about again".to_owned();
                client.respond(Response::new_err(job.id, ErrorCode::ContentModified as i32, message));
                continue;
            }
            client.respond(Response::new_ok(job.id.clone(), lenses(&job)));
            waiting.extend(jobs.try_iter());
        }
    }
}

fn lenses(job: &Job) -> Vec<CodeLens> {
    let traces = traces(&job.folder);
    let (short, long): (Vec<_>, Vec<_>) = traces.into_iter().partition(|(_, length)| *length <= LONGEST);
    let find = |name: &str| job.used.iter().find(|(file, _)| **file == *name).map(|(_, text)| Arc::clone(text));
    let rules = Rules::with_user_files(std::slice::from_ref(&job.file), &find);
    let (Ok(rules), false) = (rules, short.is_empty() && long.is_empty()) else { return Vec::new() };
    let mut matches: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    let mut read = 0u64;
    for (path, _) in &short {
        if count(path, &rules, &mut matches) {
            read += 1;
        }
    }
    let mut left_out = Vec::new();
    if read < short.len() as u64 {
        left_out.push(format!("{} that cannot be used", short.len() as u64 - read));
    }
    if !long.is_empty() {
        left_out.push(format!("{} of more than {} MiB", long.len(), LONGEST >> 20));
    }
    let without = if left_out.is_empty() { String::new() } else { format!(", without {}", left_out.join(" and ")) };
    let lens = |(name, range): &(Arc<str>, Between)| {
        let times = matches.get(name).copied().unwrap_or(0);
        let found = if times == 1 { "1 match".to_owned() } else { format!("{times} matches") };
        let title = format!("{found} in {}{without}", counted(read, "trace"));
        CodeLens {
            range: *range,
            command: Some(Command { title, command: String::new(), arguments: None }),
            data: None,
        }
    };
    job.templates.iter().map(lens).collect()
}

/// Counts the matches in a trace; whether it can be used.
fn count(path: &Path, rules: &Rules, matches: &mut BTreeMap<Arc<str>, u64>) -> bool {
    let Ok(bytes) = fs::read(path) else { return false };
    let load = |_: &mut dyn dyelog::pipeline::Listener| Ok(rules.clone());
    let mut options = Options::default();
    options.keep_matches = Keep::Rows;
    options.rules = Some(&load);
    let input = Input::new(&path.display().to_string(), bytes);
    let Ok(reduced) = reduce(&[input], None, &options, &mut Vec::new()) else { return false };
    for row in &reduced.reduction.matches {
        *matches.entry(Arc::clone(&row.template)).or_default() += 1;
    }
    true
}

/// The files of a folder that are traces by their names, with their lengths.
fn traces(folder: &Path) -> Vec<(PathBuf, u64)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(PathBuf, u64)> = entries
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok().filter(fs::Metadata::is_file)?.len())))
        .filter(|(path, _)| stem(path).is_some_and(|(_, table)| !table))
        .collect();
    found.sort();
    found
}
