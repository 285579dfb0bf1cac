//! What stands above each template: how often it matches in the traces that lie beside its file.
//!
//! Traces take time to read, so another thread counts, and an editor gets its answer when it is there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use dyelog::authoring::has_event_templates;
use dyelog::diagnostic::quantity::counted;
use dyelog::pipeline::{Input, Keep, Listener, Options, reduce};
use dyelog::same;
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
    let is_on_events = has_event_templates(&job.file);
    let traces = traces(&job.folder, is_on_events);
    let (short, long): (Vec<_>, Vec<_>) = traces.into_iter().partition(|(_, length)| *length <= LONGEST);
    let find = |name: &str| job.used.iter().find(|(file, _)| **file == *name).map(|(_, text)| Arc::clone(text));
    let file = std::slice::from_ref(&job.file);
    let rules = if is_on_events {
        same::rules::load(file, &find).rules.map(|rules| Counting::Events(Arc::new(rules)))
    } else {
        Rules::with_user_files(file, &find).ok().map(|rules| Counting::Nodes(Box::new(rules)))
    };
    let (Some(rules), false) = (rules, short.is_empty() && long.is_empty()) else { return Vec::new() };
    let mut matches: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    let (mut read, mut unusable) = (0u64, 0u64);
    for (path, _) in &short {
        match count(path, &rules, &mut matches) {
            Some(true) => read += 1,
            Some(false) => {}
            None => unusable += 1,
        }
    }
    let mut left_out = Vec::new();
    if unusable > 0 {
        left_out.push(format!("{unusable} that cannot be used"));
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

/// The rules whose matches are counted.
enum Counting {
    /// Templates of nodes, for traces with a dye.
    Nodes(Box<Rules>),
    /// Templates on events, for messages.
    Events(Arc<same::Rules>),
}

/// Counts the matches in a trace; whether it is one that the rules are for. `None` where it cannot be used.
fn count(path: &Path, rules: &Counting, matches: &mut BTreeMap<Arc<str>, u64>) -> Option<bool> {
    let input = Input::new(&path.display().to_string(), fs::read(path).ok()?);
    let mut options = Options::default();
    match rules {
        Counting::Nodes(rules) => {
            let load = |_: &mut dyn Listener| Ok((**rules).clone());
            options.keep_matches = Keep::Rows;
            options.rules = Some(&load);
            let reduced = reduce(&[input], None, &options, &mut Vec::new()).ok()?;
            for row in &reduced.reduction.matches {
                *matches.entry(Arc::clone(&row.template)).or_default() += 1;
            }
            Some(reduced.interactions.is_none())
        }
        Counting::Events(rules) => {
            let load = |_: &mut dyn Listener| Ok(Arc::clone(rules));
            options.event_rules = Some(&load);
            let Ok(reduced) = reduce(&[input], None, &options, &mut Vec::new()) else {
                // Tables and texts are traces where their content is.
                return if stem(path).is_some_and(|(_, table)| table) { Some(false) } else { None };
            };
            let Some(found) = reduced.interactions else { return Some(false) };
            for one in found.templates {
                *matches.entry(one.name).or_default() += one.times;
            }
            Some(true)
        }
    }
}

/// The files of a folder that are traces by their names, with their lengths; with tables and texts where messages are wanted.
fn traces(folder: &Path, tables: bool) -> Vec<(PathBuf, u64)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(PathBuf, u64)> = entries
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok().filter(fs::Metadata::is_file)?.len())))
        .filter(|(path, _)| stem(path).is_some_and(|(_, table)| tables || !table))
        .collect();
    found.sort();
    found
}
