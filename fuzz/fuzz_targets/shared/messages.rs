//! What holds of every trace of messages, whatever its format.

use dyelog::same::{Options, Same};
use dyelog::trace::messages::{read_all, source};
use dyelog::trace::{Format, TraceNames};

/// Whatever can be read gives messages that SAME explains, each at most once; what cannot be read gives a reason.
pub fn explained_or_refused(data: &[u8], format: Format) {
    let mut names = TraceNames::new();
    let mut same = Same::new(Options { records: true, ..Options::default() }, vec!["fuzz".into()]);
    let read = source("fuzz", data, format, false)
        .and_then(|source| read_all(source.into_iter().collect(), &mut names, &mut same));
    match read {
        Ok(_) => {
            let analysis = same.finish(&names);
            let explained: u64 = analysis.records.iter().map(|record| record.via.len() as u64 + if record.end.is_none() { 1 } else { 2 }).sum();
            assert!(explained <= analysis.messages);
        }
        Err(reasons) => assert!(!reasons.0.is_empty()),
    }
}
