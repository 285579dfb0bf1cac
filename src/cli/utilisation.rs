//! `--utilisation`: files of metrics.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use dyelog::model::utilisation::Metrics;
use dyelog::pipeline::{self, ValueUnit};

use crate::cli::{Failure, input};

/// Measured utilisation.
#[derive(Clone, Debug, Default, Args)]
pub struct UtilisationArguments {
    /// How busy processors were while the traces were recorded, how many cores they have, and how many requests were served: CSV, Prometheus text or query result, OTLP metrics; may be repeated
    #[arg(id = "utilisation_files", long = "utilisation", visible_aliases = ["utilization", "metrics"], value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// What values are where a file does not tell
    #[arg(
        id = "utilisation_unit",
        long = "utilisation-unit",
        visible_alias = "utilization-unit",
        value_enum,
        value_name = "UNIT"
    )]
    pub unit: Option<UnitName>,
}

/// What values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitName {
    /// A part of all cores, 0 to 1.
    Ratio,
    /// A part of all cores, 0 to 100.
    Percent,
    /// Busy cores.
    Cores,
    /// Thousandths of busy cores.
    Millicores,
    /// Processor time since some begin, a counter.
    Seconds,
}

impl From<UnitName> for ValueUnit {
    fn from(name: UnitName) -> Self {
        match name {
            UnitName::Ratio => Self::Ratio,
            UnitName::Percent => Self::Percent,
            UnitName::Cores => Self::Cores,
            UnitName::Millicores => Self::Millicores,
            UnitName::Seconds => Self::Seconds,
        }
    }
}

/// Reads the files.
pub fn read(arguments: &UtilisationArguments) -> Result<Metrics, Failure> {
    Ok(pipeline::read_utilisation(&input::inputs(&arguments.files), arguments.unit.map(ValueUnit::from))?)
}
