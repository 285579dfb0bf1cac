//! Environments of one system that send to one server: production and staging record services of the same names.

use std::sync::Arc;

use dyelog::trace::protobuf::{Fields, Malformed, Value};
use dyelog::trace::spans::attributes::{Meaning, meaning};

/// Which senders are taken: those of one environment and those that name none, or all.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    wanted: Option<Arc<str>>,
    /// The last resource, and whether it is taken: spans of one come together.
    last: Option<(Box<[u8]>, bool)>,
}

impl Environment {
    /// The environment that is taken, or any.
    pub fn of(wanted: Option<Arc<str>>) -> Self {
        Self { wanted, last: None }
    }

    /// Whether spans of a resource of OTLP are taken.
    pub fn takes(&mut self, resource: &[u8]) -> bool {
        let Some(wanted) = &self.wanted else { return true };
        if let Some((last, is_taken)) = &self.last
            && **last == *resource
        {
            return *is_taken;
        }
        let mut named = Named::default();
        // What is malformed was refused before it came to the journal.
        let _ = each_text(resource, |key, text| named.offer(key, text));
        let is_taken = named.is_of(wanted);
        self.last = Some((resource.into(), is_taken));
        is_taken
    }

    /// Whether metrics with these attributes of their resource are taken.
    pub fn takes_labels(&self, labels: &[(String, String)]) -> bool {
        let Some(wanted) = &self.wanted else { return true };
        let mut named = Named::default();
        for (key, text) in labels {
            named.offer(key, text);
        }
        named.is_of(wanted)
    }
}

/// The environment that attributes name, as readers of traces take it: the attribute of the least rank tells it.
#[derive(Default)]
struct Named(Option<(u8, String)>);

impl Named {
    fn offer(&mut self, key: &str, text: &str) {
        if let Meaning::Environment(rank) = meaning(key)
            && !text.is_empty()
            && self.0.as_ref().is_none_or(|(own, _)| rank < *own)
        {
            self.0 = Some((rank, text.to_owned()));
        }
    }

    fn is_of(&self, wanted: &str) -> bool {
        self.0.as_ref().is_none_or(|(_, name)| name == wanted)
    }
}

/// Gives the attributes of a resource that are texts.
///
/// # Errors
/// When the bytes are no resource. Attributes before the fault were given.
pub fn each_text(resource: &[u8], mut take: impl FnMut(&str, &str)) -> Result<(), Malformed> {
    let mut fields = Fields::of(resource);
    while let Some((number, value)) = fields.next()? {
        let (1, Value::Bytes(pair)) = (number, value) else { continue };
        let (mut key, mut text) = (&b""[..], None);
        let mut parts = Fields::of(pair);
        while let Some((number, value)) = parts.next()? {
            match (number, value) {
                (1, Value::Bytes(own)) => key = own,
                (2, Value::Bytes(any)) => {
                    let mut any = Fields::of(any);
                    if let Some((1, Value::Bytes(own))) = any.next()? {
                        text = Some(own);
                    }
                }
                _ => {}
            }
        }
        if let Some(text) = text {
            take(&String::from_utf8_lossy(key), &String::from_utf8_lossy(text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Environment;

    #[test]
    fn the_environment_is_that_which_readers_of_traces_take() {
        let environment = Environment::of(Some("production".into()));
        let takes = |labels: &[(&str, &str)]| {
            let labels: Vec<_> = labels.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
            environment.takes_labels(&labels)
        };
        let [new, old, elastic] = ["deployment.environment.name", "deployment.environment", "service.environment"];
        assert!(takes(&[]) && takes(&[(new, "")]) && takes(&[("environment", "staging")]));
        for key in [new, old, elastic] {
            assert!(takes(&[(key, "production")]) && !takes(&[(key, "staging")]) && !takes(&[(key, "Production")]));
        }
        // The newer one of two wins, whatever their order.
        assert!(takes(&[(old, "staging"), (new, "production")]) && !takes(&[(new, "staging"), (old, "production")]));
        assert!(takes(&[(new, ""), (old, "production")]) && !takes(&[(new, ""), (elastic, "staging")]));
        assert!(Environment::default().takes_labels(&[(new.to_owned(), "staging".to_owned())]));
    }
}
