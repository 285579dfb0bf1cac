//! What a period recorded, as commands of `dyelog` read it.

use dyelog::diagnostic::{Diagnostic, Renderer, Severity, Sources};
use dyelog::lqn::saved;
use dyelog::lqn::submodel::SubModel;
use dyelog::model::utilisation::{Series, Unit};
use serde::{Deserialize, Serialize};

use crate::aside;
use crate::deployment;
use crate::late;
use crate::metered::unknown_sampling;
use crate::period::Period;
use crate::store::{Store, StoreError};

/// A period for commands that take a sub-model and how busy processors were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The saved sub-model, its rates as metrics tell them; empty where it is packed.
    pub submodel: String,
    /// The same, packed.
    #[serde(skip)]
    pub packed: Vec<u8>,
    /// Utilisation as Prometheus text; empty where no metrics tell it.
    pub utilisation: String,
    /// That rates are lower bounds, where it is not known how traces were sampled.
    pub unknown: Option<String>,
    /// What is missing, each as a warning with its code: metrics without room, spans that were set aside, counted requests that contradict traces, work that nobody is known to have called, and services of several deployments.
    #[serde(default)]
    pub missing: Vec<String>,
}

impl Recorded {
    /// Of a period, to be read elsewhere; `None` where nothing was recorded.
    ///
    /// # Errors
    /// When the store cannot be read, or has more than can be read at once.
    pub fn of(store: &Store, period: Period) -> Result<Option<Self>, StoreError> {
        let found = Self::with_submodel(store, period)?;
        Ok(found.map(|(own, submodel, merge)| Self { submodel: saved::write(&submodel, &merge), ..own }))
    }

    /// The same, to be read by a program that came with this one: it takes a fraction of the time.
    ///
    /// # Errors
    /// As [`Recorded::of`].
    pub fn packed(store: &Store, period: Period) -> Result<Option<Self>, StoreError> {
        let found = Self::with_submodel(store, period)?;
        Ok(found.map(|(own, submodel, merge)| Self { packed: saved::pack(&submodel, &merge), ..own }))
    }

    /// The type of what is recorded with its sub-model packed, in the version that this program writes: one that does not know that version gets JSON.
    pub fn packed_type() -> String {
        format!("application/vnd.dyelog.recorded;version={}", saved::PACKED_VERSION)
    }

    /// As bytes of that type: the length of the JSON of all but the sub-model, in 8 bytes of which the least comes first; that JSON; and the sub-model.
    #[expect(clippy::missing_panics_doc, reason = "all of it is text, which JSON has words for")]
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = serde_json::to_vec(self).expect("it is text");
        [&(head.len() as u64).to_le_bytes()[..], &head, &self.packed].concat()
    }

    /// From such bytes; `None` where they are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (head, packed) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let own: Self = serde_json::from_slice(head).ok()?;
        saved::is_packed(packed).then(|| Self { packed: packed.to_vec(), ..own })
    }

    /// The sub-model as a file has it.
    pub fn content(&self) -> &[u8] {
        if self.packed.is_empty() { self.submodel.as_bytes() } else { &self.packed }
    }

    fn with_submodel(store: &Store, period: Period) -> Result<Option<(Self, SubModel, String)>, StoreError> {
        let Some((mut submodel, merge)) = store.period(period.from, period.to)? else { return Ok(None) };
        let headless = late::headless(&submodel);
        let unasked = late::leave_out_unasked(&mut submodel);
        let metered = store.metered(period.from, period.to)?;
        let (utilisation, weighed) = metered.apply(&mut submodel);
        // Where rates come from is worth a word, too.
        let doubts = weighed
            .into_iter()
            .filter(|own| own.severity == Severity::Warning || own.code == dyelog::model::codes::REQUESTS_COUNTED);
        let unknown = unknown_sampling(&submodel);
        let aside = aside::findings(&store.set_aside(period.from, period.to)?, headless);
        let deployments = deployment::findings(&store.deployed(period.from, period.to)?);
        let missing = metered.missing().into_iter().chain(deployments).chain(aside).chain(doubts).chain(unasked);
        let own = Self {
            submodel: String::new(),
            packed: Vec::new(),
            utilisation: exposed(&utilisation) + &metered.exposed_cores(),
            unknown,
            missing: missing.map(|own| told(&own)).collect(),
        };
        Ok(Some((own, submodel, merge)))
    }
}

/// A finding as commands of `dyelog` print it.
pub(crate) fn told(finding: &Diagnostic) -> String {
    Renderer { color: false }.render(finding, &Sources::default()).trim_end().to_owned()
}

/// A name as Prometheus has it.
fn plain(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// A label as Prometheus has it.
pub(crate) fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
    format!("{name}=\"{value}\",")
}

/// Utilisation as Prometheus text: each metric keeps a name of its own, so that none is added to another.
fn exposed(series: &[Series]) -> String {
    let mut text = String::new();
    for (number, own) in series.iter().enumerate() {
        let plain = plain(&own.metric);
        let name = match own.unit {
            Unit::Seconds | Unit::Cores => format!("{plain}_cpu_seconds_total"),
            Unit::Share => format!("process_cpu_utilization_{plain}_of_all"),
        };
        // The processor, and the service whose process it is of.
        let of: String =
            ["processor", "service_name"].iter().zip(&own.resources).map(|(name, own)| label(name, own)).collect();
        let of = if own.mode.is_empty() { of } else { of + &label("mode", &own.mode) };
        for (time, value) in &own.samples {
            let milliseconds = (time * 1e3).round();
            text.push_str(&format!("{name}{{{of}series=\"{number}\"}} {value} {milliseconds}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use dyelog::lqn::saved;
    use dyelog::lqn::submodel::SubModel;

    use super::Recorded;

    #[test]
    fn what_is_sent_packed_is_read_as_it_was() {
        let own = Recorded {
            submodel: String::new(),
            packed: saved::pack(&SubModel::new(), "name"),
            utilisation: "up 1 2\n".to_owned(),
            unknown: Some("not known".to_owned()),
            missing: vec!["warning".to_owned()],
        };
        let bytes = own.to_bytes();
        assert_eq!(Recorded::from_bytes(&bytes), Some(own));
        // What is cut, or says that it is longer, is none.
        for length in 0..bytes.len() - 1 {
            assert!(Recorded::from_bytes(&bytes[..length]).is_none_or(|own| own.packed.len() < bytes.len()));
        }
        assert_eq!(Recorded::from_bytes(&[[0xff; 8].as_slice(), &bytes[8..]].concat()), None);
        assert_eq!(Recorded::from_bytes(b"{\"submodel\":\"\"}"), None);
    }
}
