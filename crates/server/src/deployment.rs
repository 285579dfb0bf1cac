//! Deployments of one system that send to one server: production and staging record services of the same names, and so do namespaces of a cluster.
//!
//! A sub-model has one task for a service of one name. So those of one deployment may be [taken](Selection); where several are, the server [remembers](Seen) when it saw
//! which, and models of a period say so.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::lqn::digest::Digest;
use dyelog::trace::codes::DEPLOYMENTS;
use dyelog::trace::protobuf::{Fields, Malformed, Value};
use dyelog::trace::spans::attributes::{Meaning, meaning};
use dyelog::trace::spans::{Deployment, DeploymentSide as Side};

use crate::store::LEVELS;

/// Which senders are taken: those of one environment, of one namespace, and those that name none; or all.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    wanted: Deployment,
    /// The last resource, and whether it is taken: spans of one come together.
    last: Option<(Box<[u8]>, bool)>,
}

impl Selection {
    /// The deployment that is taken, or any.
    pub fn of(wanted: Deployment) -> Self {
        Self { wanted, last: None }
    }

    /// Whether spans and metrics of a resource of OTLP are taken.
    pub fn takes(&mut self, resource: &[u8]) -> bool {
        if self.wanted.is_any() {
            return true;
        }
        if let Some((last, is_taken)) = &self.last
            && **last == *resource
        {
            return *is_taken;
        }
        let is_taken = Named::of_resource(resource).is_of(&self.wanted);
        self.last = Some((resource.into(), is_taken));
        is_taken
    }
}

/// What attributes name, as readers of traces take it: the attribute of the least rank tells it.
#[derive(Default)]
struct Named {
    /// By side.
    names: [Option<(u8, String)>; Side::ALL.len()],
    service: String,
}

impl Named {
    fn of_resource(resource: &[u8]) -> Self {
        let mut named = Self::default();
        // What is malformed was refused before it came to the journal.
        let _ = each_text(resource, |key, text| named.offer(key, text));
        named
    }

    fn offer(&mut self, key: &str, text: &str) {
        let (side, rank) = match meaning(key) {
            Meaning::Environment(rank) => (Side::Environment, rank),
            Meaning::Namespace(rank) => (Side::Namespace, rank),
            _ => {
                if key == "service.name" && self.service.is_empty() {
                    text.clone_into(&mut self.service);
                }
                return;
            }
        };
        let own = &mut self.names[side as usize];
        if !text.is_empty() && own.as_ref().is_none_or(|(own, _)| rank < *own) {
            *own = Some((rank, text.to_owned()));
        }
    }

    fn is_of(&self, Deployment { environment, namespace }: &Deployment) -> bool {
        let wanted = [environment.as_deref(), namespace.as_deref()];
        let fits = |(own, wanted): (&Option<(u8, String)>, Option<&str>)| match (own, wanted) {
            (Some((_, own)), Some(wanted)) => own == wanted,
            _ => true,
        };
        self.names.iter().zip(wanted).all(fits)
    }
}

/// A service in a deployment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deployed {
    /// What the name is of.
    pub side: Side,
    /// The service.
    pub service: String,
    /// The environment or the namespace.
    pub name: String,
}

/// Times of the shortest intervals, as pairs of begin and end, nanoseconds since 1970; in order and apart.
pub type Times = Vec<(u64, u64)>;

/// The most services in deployments, and intervals of these, in memory. Others go without, so that hostile names take no more memory.
const MOST: usize = 4096;
/// The longest name, in bytes.
const LONGEST: usize = 256;

/// Which services were seen in which deployments, and when.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Digests of resources and intervals that were looked at.
    known: HashSet<u64>,
    /// The begins of intervals.
    found: BTreeMap<Deployed, BTreeSet<u64>>,
    count: usize,
}

impl Seen {
    /// A span of a resource begins then.
    pub fn look(&mut self, resource: &[u8], start: u64) {
        let interval = start - start % LEVELS[0].length;
        let digest = Digest::of(4).word(interval).bytes(resource).short();
        if self.count >= MOST || !self.known.insert(digest) {
            return;
        }
        let Named { names, service } = Named::of_resource(resource);
        for (side, named) in Side::ALL.into_iter().zip(names) {
            let Some((_, name)) = named.filter(|(_, name)| name.len().max(service.len()) <= LONGEST) else { continue };
            let own = Deployed { side, service: service.clone(), name };
            self.count += usize::from(self.found.entry(own).or_default().insert(interval));
        }
        if self.known.len() > MOST {
            self.known.clear();
        }
    }

    /// All of them, with the times at which they were seen.
    pub fn iter(&self) -> impl Iterator<Item = (&Deployed, Times)> {
        let times = |begins: &BTreeSet<u64>| {
            let mut times = Times::new();
            for begin in begins {
                join(&mut times, (*begin, begin.saturating_add(LEVELS[0].length)));
            }
            times
        };
        self.found.iter().map(move |(own, begins)| (own, times(begins)))
    }

    /// All of that is in the store.
    pub fn stored(&mut self) {
        self.found.clear();
        self.count = 0;
        if self.known.len() > MOST / 2 {
            self.known.clear();
        }
    }
}

/// A service that is not seen for so long was there all the same, nanoseconds.
pub const PAUSE: u64 = LEVELS[2].length;

/// Adds a time that begins no earlier than the others.
pub fn join(times: &mut Times, (begin, end): (u64, u64)) {
    match times.last_mut() {
        Some(last) if begin <= last.1.saturating_add(PAUSE) => last.1 = last.1.max(end),
        _ => times.push((begin, end)),
    }
}

/// How many services, or deployments, are named.
const SHOWN: usize = 4;

/// Which services of a period are of several deployments.
pub fn findings(deployed: &BTreeSet<Deployed>) -> Vec<Diagnostic> {
    let told = |side: Side| {
        let mut services: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for own in deployed.iter().filter(|own| own.side == side) {
            services.entry(&own.service).or_default().insert(&own.name);
        }
        services.retain(|_, names| names.len() > 1);
        let names: BTreeSet<&str> = services.values().flatten().copied().collect();
        if names.is_empty() {
            return None;
        }
        let word = side.word();
        let message = format!("services of {} {word}s are one in the model each", names.len());
        let finding = Diagnostic::warning(DEPLOYMENTS, Place::Nowhere, message)
            .with_note(format!("{word}s: {}", listed(names.into_iter())))
            .with_note(format!("such services: {}", listed(services.into_keys())))
            .with_hint(format!(
                "`--{word} NAME` of the server takes the spans of one, from its start on: start a server for each"
            ));
        Some(finding)
    };
    Side::ALL.into_iter().filter_map(told).collect()
}

fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.take(SHOWN).map(|name| format!("`{}`", name.escape_debug()));
    shown.chain((more > 0).then(|| format!("{more} more"))).collect::<Vec<_>>().join(", ")
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
    use dyelog::trace::spans::Deployment;

    use super::{LONGEST, MOST, PAUSE, Seen, Selection, findings};
    use crate::spans::put_field;
    use crate::store::LEVELS;

    const LENGTH: u64 = LEVELS[0].length;

    fn resource(attributes: &[(&str, &str)]) -> Vec<u8> {
        let mut resource = Vec::new();
        for (key, text) in attributes {
            let (mut value, mut pair) = (Vec::new(), Vec::new());
            put_field(&mut value, 1, text.as_bytes());
            put_field(&mut pair, 1, key.as_bytes());
            put_field(&mut pair, 2, &value);
            put_field(&mut resource, 1, &pair);
        }
        resource
    }

    #[test]
    fn the_environment_is_that_which_readers_of_traces_take() {
        let wanted = Deployment { environment: Some("production".into()), namespace: None };
        let taken = Selection::of(wanted);
        let takes = |labels: &[(&str, &str)]| taken.clone().takes(&resource(labels));
        let [new, old, elastic] = ["deployment.environment.name", "deployment.environment", "service.environment"];
        assert!(takes(&[]) && takes(&[(new, "")]) && takes(&[("environment", "staging")]));
        for key in [new, old, elastic] {
            assert!(takes(&[(key, "production")]) && !takes(&[(key, "staging")]) && !takes(&[(key, "Production")]));
        }
        // The newer one of two wins, whatever their order.
        assert!(takes(&[(old, "staging"), (new, "production")]) && !takes(&[(new, "staging"), (old, "production")]));
        assert!(takes(&[(new, ""), (old, "production")]) && !takes(&[(new, ""), (elastic, "staging")]));
        assert!(Selection::default().takes(&resource(&[(new, "staging")])));
    }

    #[test]
    fn an_environment_and_a_namespace_are_both_meant() {
        let mut taken =
            Selection::of(Deployment { environment: Some("production".into()), namespace: Some("shop".into()) });
        let (environment, namespace) = ("deployment.environment.name", "service.namespace");
        for (own, is_taken) in [
            (vec![(environment, "production"), (namespace, "shop")], true),
            (vec![(namespace, "shop")], true),
            (vec![(environment, "production"), (namespace, "bank")], false),
            (vec![(environment, "staging"), (namespace, "shop")], false),
            (vec![(namespace, "shop"), ("k8s.namespace.name", "bank")], true),
        ] {
            assert_eq!(taken.takes(&resource(&own)), is_taken, "{own:?}");
        }
    }

    #[test]
    fn services_of_several_deployments_are_told() {
        let mut seen = Seen::default();
        let of = |service: &str, environment: &str, namespace: &str| {
            let key = "deployment.environment";
            resource(&[("service.name", service), (key, environment), ("service.namespace", namespace)])
        };
        // Each service is in one namespace: nothing is mixed there.
        for (service, environment, namespace) in
            [("stock", "production", "a"), ("prices", "production", "b"), ("prices", "staging", "b")]
        {
            seen.look(&of(service, environment, namespace), 7 * LENGTH + 1);
        }
        seen.look(&of("stock", "production", "a"), 8 * LENGTH);
        seen.look(&of("stock", "production", "a"), 9 * LENGTH + PAUSE);
        seen.look(&of("stock", "production", "a"), 11 * LENGTH + 2 * PAUSE);
        seen.look(&resource(&[("service.name", "shop")]), 0);
        let times: Vec<_> = seen.iter().map(|(own, times)| (format!("{} {}", own.service, own.name), times)).collect();
        let short = vec![(7 * LENGTH, 8 * LENGTH)];
        let long = vec![(7 * LENGTH, 10 * LENGTH + PAUSE), (11 * LENGTH + 2 * PAUSE, 12 * LENGTH + 2 * PAUSE)];
        let expected = [
            ("prices production", &short),
            ("prices staging", &short),
            ("stock production", &long),
            ("prices b", &short),
            ("stock a", &long),
        ];
        assert_eq!(times, expected.map(|(name, times)| (name.to_owned(), times.clone())));
        let found = findings(&seen.iter().map(|(own, _)| own.clone()).collect());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].message, "services of 2 environments are one in the model each");
        assert_eq!(found[0].notes, ["environments: `production`, `staging`", "such services: `prices`"]);
        seen.stored();
        assert_eq!(seen.iter().count(), 0);
    }

    #[test]
    fn hostile_names_take_little_memory() {
        let mut seen = Seen::default();
        seen.look(&resource(&[("deployment.environment", &"x".repeat(LONGEST + 1))]), 0);
        assert_eq!(seen.iter().count(), 0);
        for number in 0..3 * MOST as u64 {
            seen.look(&resource(&[("deployment.environment", &number.to_string())]), number * LENGTH);
        }
        assert_eq!(seen.iter().count(), MOST);
        assert!(seen.known.len() <= MOST + 1);
        let found = findings(&seen.iter().map(|(own, _)| own.clone()).collect());
        assert!(found[0].notes[0].ends_with("`100`, 4092 more"), "{found:?}");
        // What is malformed says nothing.
        seen.stored();
        seen.look(&[0x0a, 0xff], u64::MAX);
        assert_eq!(seen.iter().count(), 0);
    }
}
