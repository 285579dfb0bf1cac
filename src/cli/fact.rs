//! Facts on the command line: `slow("7f3a91c2d0e4b856", 12)`, with `_` for what is open.

use std::path::{Path, PathBuf};

use dyelog::pipeline::{AskedFact, parse_fact};

use crate::cli::Failure;
use crate::cli::args::ReadingArguments;
use crate::cli::query::{self, Over, Traces};
use crate::cli::terminal::Terminal;

/// Whether a file is one of rules, by its name.
pub fn is_rule_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "dl")
}

/// Reads the rules and opens the traces, whose sort decides what rules can ask.
pub fn open<'a>(
    file: &PathBuf,
    fact: Option<&str>,
    traces: &'a [PathBuf],
    reading: &'a ReadingArguments,
    over: &Over,
    terminal: &mut Terminal,
) -> Result<(AskedFact, Traces<'a>), Failure> {
    let fact = fact.map(parse_fact).transpose()?;
    let (loaded, _) = query::program(Some(file), &[], terminal)?;
    let (opened, scope) = Traces::open(traces, reading, over)?;
    Ok((AskedFact::new(loaded.program, loaded.diagnostics, fact, scope)?, opened))
}
