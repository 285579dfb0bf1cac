//! Causal chains and how their names travel.
//!
//! A chain is a UUID and a path: `c.5` is the chain of the function that event 5 of `c` called. So a callee needs nothing but the name, and
//! nothing has to come back with the response.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest name of a chain in bytes. A call that is nested so deeply that its name were longer begins a chain without a caller.
pub const LONGEST_NAME: usize = 512;

/// A chain that this process writes events of.
#[derive(Debug)]
pub(crate) struct Chain {
    /// Its number in this process.
    pub(crate) number: u64,
    id: u128,
    path: Box<str>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Chain {
    /// A chain of its own, with a new UUID.
    pub(crate) fn root() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { number, id: uuid(number), path: Box::default() }
    }

    /// The chain that a caller named.
    pub(crate) fn of(carrier: Carrier) -> Self {
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed), id: carrier.id, path: carrier.path }
    }

    /// The chain of the function that an event calls; none if its name were too long.
    pub(crate) fn below(&self, event: u32) -> Option<Carrier> {
        let path = format!("{}.{event}", self.path);
        (path.len() + 32 <= LONGEST_NAME).then(|| Carrier { id: self.id, path: path.into_boxed_str() })
    }

    /// The carrier of this very chain.
    pub(crate) fn carrier(&self) -> Carrier {
        Carrier { id: self.id, path: self.path.clone() }
    }

    /// Appends the name.
    pub(crate) fn name(&self, out: &mut Vec<u8>) {
        for place in (0..16).rev() {
            let byte = (self.id >> (place * 8)) as u8;
            out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
        }
        out.extend_from_slice(self.path.as_bytes());
    }
}

/// A UUID: random of the process, then one after another, mixed. All 128 bits are random, as they are in identifiers of traces: who takes a sample of
/// them by their range must find the whole range filled, and the marks of version 4 leave a part of it empty.
fn uuid(number: u64) -> u128 {
    static SEED: OnceLock<[u64; 2]> = OnceLock::new();
    let [high, low] = *SEED.get_or_init(|| {
        use std::hash::{BuildHasher, RandomState};
        let when = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let state = RandomState::new();
        [0, 1].map(|half| state.hash_one((half, when, std::process::id())))
    });
    // Both halves are one-to-one in the number, so two chains of a process never share one.
    u128::from(mix(high.wrapping_add(number))) << 64 | u128::from(mix(low ^ number))
}

/// SplitMix64's finaliser.
fn mix(mut value: u64) -> u64 {
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// What travels with a call: the name of the chain that the callee goes on with.
///
/// As text it is 32 hexadecimal digits and a path, such as `…e1.5.3`, at most [`LONGEST_NAME`] bytes; so it fits into a header of HTTP or a field of any
/// message (2003 §2: the function-transportable log).
///
/// ```
/// use dyelog_probe::Carrier;
///
/// let carrier: Carrier = "0123456789abcdef0123456789abcdef.5".parse()?;
/// assert_eq!(carrier.to_string(), "0123456789abcdef0123456789abcdef.5");
/// assert!("no chain".parse::<Carrier>().is_err());
/// # Ok::<(), dyelog_probe::NotACarrier>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Carrier {
    id: u128,
    path: Box<str>,
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}{}", self.id, self.path)
    }
}

/// The text is no name of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotACarrier;

impl fmt::Display for NotACarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is no name of a causal chain: 32 hexadecimal digits, then numbers, each after a dot")
    }
}

impl std::error::Error for NotACarrier {}

impl FromStr for Carrier {
    type Err = NotACarrier;

    fn from_str(text: &str) -> Result<Self, NotACarrier> {
        let sound = text.len() <= LONGEST_NAME && text.is_char_boundary(32.min(text.len()));
        let (id, path) = text.split_at_checked(32).filter(|_| sound).ok_or(NotACarrier)?;
        let digits = id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let id = u128::from_str_radix(id, 16).ok().filter(|_| digits).ok_or(NotACarrier)?;
        let event = |step: &str| {
            step.bytes().all(|byte| byte.is_ascii_digit()) && !step.starts_with('0') && step.parse::<u32>().is_ok()
        };
        match path.strip_prefix('.') {
            None if path.is_empty() => {}
            Some(steps) if steps.split('.').all(event) => {}
            _ => return Err(NotACarrier),
        }
        Ok(Self { id, path: path.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::{Carrier, Chain, LONGEST_NAME};

    #[test]
    fn what_is_no_name_is_refused() {
        let id = "0123456789abcdef0123456789abcdef";
        for bad in ["", "1.2", "é", &"x".repeat(32), &format!("{id}5"), &format!("{id}."), &format!("{id}.1..2")] {
            assert!(bad.parse::<Carrier>().is_err(), "{bad}");
        }
        for bad in [".0", ".4294967296", ".+1", ".-1", ".1é"] {
            assert!(format!("{id}{bad}").parse::<Carrier>().is_err(), "{bad}");
        }
        assert!(format!("{id}{}", ".1".repeat(LONGEST_NAME)).parse::<Carrier>().is_err());
        assert!("+123456789abcdef0123456789abcdef0".parse::<Carrier>().is_err());
        assert!(format!("{id}.1.4294967295").parse::<Carrier>().is_ok());
    }

    #[test]
    fn chains_have_names_of_their_own_and_come_back_as_text() {
        let (one, other) = (Chain::root(), Chain::root());
        assert_ne!(one.carrier(), other.carrier());
        let below = one.below(7).expect("it is short");
        assert_eq!(below.to_string().parse(), Ok(below.clone()));
        let mut name = Vec::new();
        Chain::of(below.clone()).name(&mut name);
        assert_eq!(name, below.to_string().into_bytes());
        let mut deep = one;
        while let Some(carrier) = deep.below(1_000_000) {
            deep = Chain::of(carrier);
        }
        assert!(deep.carrier().to_string().len() <= LONGEST_NAME);
    }
}
