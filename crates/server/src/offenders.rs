//! Names of operations, capped by service, and names of services: one that makes each request an operation of its own would fill every model with them, and so would a sender with a
//! name for each process.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use dyelog::lqn::digest::Digest;
use dyelog::trace::spans::Grouping;

use crate::deployment::each_text;
use crate::spans::put_field;

/// Operations that a service may have.
pub const MOST: usize = 1000;
/// What all others are called.
pub const OTHERS: &str = "(other operations)";
/// Names that are remembered as they came, before they are looked at again.
const REMEMBERED: usize = 1 << 16;
/// Services that are told apart.
pub const SERVICES: usize = 2000;
/// Resources whose service is remembered.
const RESOURCES: usize = 10_000;
/// The longest name that is shown, in characters.
const SHOWN: usize = 100;

/// Names by service.
#[derive(Debug, Default)]
pub struct Offenders {
    /// By the digest of a resource, which service it is.
    services: HashMap<u64, usize>,
    /// The last one.
    last: Option<(Arc<[u8]>, usize)>,
    /// By name.
    numbers: HashMap<String, usize>,
    /// Names of each service that count: digests of what they are grouped to.
    groups: Vec<HashSet<u64>>,
    /// Digests of service and name, of names that count.
    known: HashSet<u64>,
    /// Spans of each service whose names did not count, and the last such name.
    offending: BTreeMap<String, (u64, String)>,
    /// Spans of services beyond those, and the name of the last one.
    others: Option<(u64, String)>,
}

impl Offenders {
    /// Whether a span's name counts; not, where its service has too many.
    pub fn admits(&mut self, resource: &Arc<[u8]>, name: &[u8], grouping: &Grouping) -> bool {
        let service = self.service(resource);
        let digest = Digest::of(1).word(service as u64).bytes(name).short();
        if self.known.contains(&digest) {
            return true;
        }
        let text = String::from_utf8_lossy(name);
        let group = Digest::of(2).text(&grouping.name(&text)).short();
        let groups = &mut self.groups[service];
        let counts = groups.contains(&group) || groups.len() < MOST && groups.insert(group);
        if counts {
            if self.known.len() >= REMEMBERED {
                self.known.clear();
            }
            self.known.insert(digest);
        } else {
            let own = self.offending.entry(service_name(resource)).or_default();
            *own = (own.0 + 1, text.chars().take(SHOWN).collect());
        }
        counts
    }

    /// Whether a resource's service is one of the first [`SERVICES`]. All others as one service would call themselves, in circles that no model has.
    pub fn tells_apart(&mut self, resource: &Arc<[u8]>) -> bool {
        let is_one = self.service(resource) < SERVICES;
        if !is_one {
            let name = service_name(resource).chars().take(SHOWN).collect();
            self.others = Some((self.others.as_ref().map_or(0, |others| others.0) + 1, name));
        }
        is_one
    }

    /// Spans of services beyond [`SERVICES`]: how many, and the name of the last service.
    pub fn others(&self) -> Option<&(u64, String)> {
        self.others.as_ref()
    }

    /// The services with too many names: of how many spans, and the last one.
    pub fn offending(&self) -> &BTreeMap<String, (u64, String)> {
        &self.offending
    }

    fn service(&mut self, resource: &Arc<[u8]>) -> usize {
        // Spans of one resource come together.
        if let Some((last, number)) = &self.last
            && Arc::ptr_eq(last, resource)
        {
            return *number;
        }
        let number = self.numbered(Digest::of(3).bytes(resource).short(), resource);
        self.last = Some((Arc::clone(resource), number));
        number
    }

    fn numbered(&mut self, digest: u64, resource: &[u8]) -> usize {
        if let Some(number) = self.services.get(&digest) {
            return *number;
        }
        let name = service_name(resource);
        let next = self.numbers.len();
        let number = match self.numbers.get(&name) {
            Some(number) => *number,
            // All that are not told apart have one number.
            None if next >= SERVICES => SERVICES,
            None => *self.numbers.entry(name).or_insert(next),
        };
        if number >= self.groups.len() {
            self.groups.resize_with(number + 1, HashSet::new);
        }
        // Resources differ by instance, and come and go.
        if self.services.len() >= RESOURCES {
            self.services.clear();
        }
        self.services.insert(digest, number);
        number
    }
}

/// The bytes of a span that is called otherwise: of a field that comes twice the last one counts.
pub fn renamed(span: &[u8]) -> Vec<u8> {
    let mut bytes = span.to_vec();
    put_field(&mut bytes, 5, OTHERS.as_bytes());
    bytes
}

/// The name of a resource's service.
pub fn service_name(resource: &[u8]) -> String {
    let mut found = None;
    let _ = each_text(resource, |key, text| {
        if key == "service.name" && found.is_none() {
            found = Some(text.to_owned());
        }
    });
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dyelog::trace::spans::Grouping;

    use super::{MOST, Offenders, SERVICES, put_field};

    /// The bytes of a resource that has nothing but the name of its service.
    fn resource_of(service: &str) -> Arc<[u8]> {
        let (mut value, mut attribute, mut resource) = (Vec::new(), Vec::new(), Vec::new());
        put_field(&mut value, 1, service.as_bytes());
        put_field(&mut attribute, 1, b"service.name");
        put_field(&mut attribute, 2, &value);
        put_field(&mut resource, 1, &attribute);
        resource.into()
    }

    #[test]
    fn so_many_services_are_told_apart() {
        let mut offenders = Offenders::default();
        let mut taken = |number: usize| offenders.tells_apart(&resource_of(&format!("s{number}")));
        assert!((0..SERVICES).all(&mut taken));
        assert!(!(SERVICES..3 * SERVICES).any(&mut taken));
        assert!(taken(7));
        assert_eq!(offenders.others(), Some(&(2 * SERVICES as u64, format!("s{}", 3 * SERVICES - 1))));
    }

    #[test]
    fn what_is_grouped_anyway_is_no_offence() {
        let mut offenders = Offenders::default();
        let resource: Arc<[u8]> = (&b""[..]).into();
        let mut admits = |name: String| offenders.admits(&resource, name.as_bytes(), &Grouping::default());
        assert!((0..5000).all(|number| admits(format!("GET /user/{number}"))));
        let word = |number: usize| format!("job {}", "x".repeat(number % 40) + &"y".repeat(number / 40));
        assert!((1..MOST).all(|number| admits(word(number))));
        assert!(!admits(word(MOST + 1)) && admits(word(7)) && admits("GET /user/5001".to_owned()));
        assert_eq!(offenders.offending()[""].0, 1);
    }
}
