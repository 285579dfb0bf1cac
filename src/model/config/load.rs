//! The load of a scenario or a profile: its keys, which are the same for both.

use crate::diagnostic::{Diagnostic, Place};
use crate::model::codes;
use crate::model::config::reader::{Item, Key, Reader};

/// Names of the keys.
pub(super) const KEYS: [&str; 3] = ["population", "think_time", "rate"];

/// A load as far as it was read.
#[derive(Default)]
pub(super) struct LoadKeys {
    pub(super) population: Option<u32>,
    pub(super) think_time: Option<f64>,
    pub(super) rate: Option<f64>,
    rate_place: Option<Place>,
}

impl LoadKeys {
    /// Takes in a key if it is one of [`KEYS`]; tells whether it was.
    pub(super) fn take(&mut self, reader: &mut Reader<'_>, key: &Key<'_>, item: &Item<'_>) -> bool {
        match key.get_ref().as_ref() {
            "population" => self.population = reader.count(item, "`population`"),
            "think_time" => self.think_time = reader.seconds(item, "`think_time`"),
            "rate" => {
                self.rate = reader.rate(item, "`rate`");
                self.rate_place = Some(reader.place(key.span()));
            }
            _ => return false,
        }
        true
    }

    /// Reports a load that is both open and closed.
    pub(super) fn check(&mut self, reader: &mut Reader<'_>, whose: &str) {
        let closed = self.population.is_some() || self.think_time.is_some();
        let Some(place) = self.rate_place.take().filter(|_| closed) else { return };
        let message = format!("{whose} has both a rate and a population or think time");
        reader.findings.push(
            Diagnostic::error(codes::CONTRADICTION, place, message)
                .with_note("a load is open, with an arrival rate, or closed, with a population and a think time")
                .with_hint("leave one of them out"),
        );
    }
}
