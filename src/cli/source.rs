//! A model, from a model file or made of traces, as arguments ask for it.

use std::path::{Path, PathBuf};

use dyelog::lqn::submodel::SubModel;
use dyelog::model::Configuration;
use dyelog::pipeline::{self, Keep};
pub use dyelog::pipeline::{Given, Questioned, Source, Summed, is_model, with_defaults};

use crate::cli::args::{ReadingArguments, ReduceArguments, SourceArguments};
use crate::cli::reduce::with_options;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, input, utilisation};

/// Reads a model file or makes a model of traces; shows what there is to say about it.
pub fn load(arguments: &SourceArguments, terminal: &mut Terminal) -> Result<Source, Failure> {
    load_keeping(arguments, false, terminal)
}

/// The same, and keeps each match of a template.
pub fn load_with_matches(arguments: &SourceArguments, terminal: &mut Terminal) -> Result<Source, Failure> {
    load_keeping(arguments, true, terminal)
}

fn load_keeping(arguments: &SourceArguments, matches: bool, terminal: &mut Terminal) -> Result<Source, Failure> {
    let SourceArguments { files, reading, reduce, config, utilisation } = arguments;
    input::check_stdin_once(files.iter().chain(&reduce.rules).chain(config).chain(&utilisation.files))?;
    let (inputs, config) = (input::inputs(files), config.as_deref().map(input::input));
    let utilisation = utilisation::read(utilisation)?;
    Ok(with_options(reading, reduce, matches.into(), |options| {
        options.utilisation = utilisation;
        pipeline::model(&inputs, config.as_ref(), options, terminal)
    })?)
}

/// What questions are about, each of them a model file or traces; the configuration is that of all traces.
pub fn subjects(
    sets: &[&[PathBuf]],
    arguments: &SourceArguments,
    terminal: &mut Terminal,
) -> Result<Vec<Questioned>, Failure> {
    let SourceArguments { reading, reduce, config, utilisation, .. } = arguments;
    let files = sets.iter().copied().flatten().chain(&reduce.rules).chain(config);
    input::check_stdin_once(files.chain(&utilisation.files))?;
    let utilisation = utilisation::read(utilisation)?;
    let sets: Vec<_> = sets.iter().map(|files| input::inputs(files)).collect();
    let sets: Vec<_> = sets.iter().map(Vec::as_slice).collect();
    let config = config.as_deref().map(input::input);
    Ok(with_options(reading, reduce, Keep::Nothing, |options| {
        options.utilisation = utilisation;
        pipeline::subjects(&sets, config.as_ref(), options, terminal)
    })?)
}

/// Reads what configurations are made from.
pub fn given(
    files: &[PathBuf],
    reading: &ReadingArguments,
    reduce: &ReduceArguments,
    terminal: &mut Terminal,
) -> Result<Given, Failure> {
    let inputs = input::inputs(files);
    Ok(with_options(reading, reduce, Keep::Nothing, |options| pipeline::given(&inputs, options, terminal))?)
}

/// The sub-model of traces, or of saved sub-models, with the patterns of names that a configuration has, and up to so many spans for those of
/// other files.
pub fn submodel(
    files: &[PathBuf],
    (reading, reduce): (&ReadingArguments, &ReduceArguments),
    configuration: &Configuration,
    keep_spans: usize,
    terminal: &mut Terminal,
) -> Result<Summed, Failure> {
    let inputs = input::inputs(files);
    Ok(with_options(reading, reduce, Keep::Nothing, |options| {
        options.keep_spans = Some(keep_spans);
        pipeline::submodel(&inputs, &pipeline::grouped(options, configuration)?, terminal)
    })?)
}

/// The same of what a model is made of: the steady part, with names grouped as a configuration has it.
pub fn steady_submodel(
    files: &[PathBuf],
    (reading, reduce): (&ReadingArguments, &ReduceArguments),
    configuration: &Configuration,
    terminal: &mut Terminal,
) -> Result<SubModel, Failure> {
    let inputs = input::inputs(files);
    Ok(with_options(reading, reduce, Keep::Nothing, |options| {
        pipeline::steady_submodel(&inputs, options, configuration, terminal)
    })?)
}

/// Reads a configuration; shows what there is to say about it.
pub fn configuration(
    file: Option<&Path>,
    terminal: &mut Terminal,
) -> Result<(Configuration, pipeline::Named), Failure> {
    Ok(pipeline::configuration(file.map(input::input).as_ref(), terminal)?)
}
