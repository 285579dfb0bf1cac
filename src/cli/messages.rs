//! Traces opened one by one, operations or messages.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyelog::diagnostic::Diagnostics;
use dyelog::pipeline::{self, Meter};
pub use dyelog::pipeline::{First, Opened};
use dyelog::trace::OpenTrace;

use crate::cli::args::ReadingArguments;
use crate::cli::progress::Progress;
use crate::cli::{Failure, input, reduce};

fn meter(progress: &Progress) -> Arc<dyn Meter> {
    Arc::new(progress.clone())
}

/// Opens traces; operations are not read as messages.
pub fn open(files: &[PathBuf], reading: &ReadingArguments, progress: &Progress) -> Result<Opened, Failure> {
    Ok(pipeline::open(&input::inputs(files), None, &reduce::reading(reading), false, &meter(progress))?)
}

/// Opens a trace.
pub fn open_one(
    file: &Path,
    reading: &ReadingArguments,
    progress: &Progress,
) -> Result<OpenTrace<'static>, Diagnostics> {
    pipeline::open_one(&input::input(file), None, &reduce::reading(reading), &meter(progress))
}

/// Refuses corrections of clocks where these would have no meaning.
pub fn check_clocks(reading: &ReadingArguments) -> Result<(), Failure> {
    Ok(pipeline::check_clocks(&reduce::reading(reading))?)
}
