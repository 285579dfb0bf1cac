//! Who brought how much lately. When more comes than can be worked through, those that brought more than others wait.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// After how long half as much counts.
const HALF: Duration = Duration::from_secs(10);
/// Who brought less lately brings nothing, bytes.
const LITTLE: f64 = 1024.0;

/// Who brings something: a connection.
#[derive(Debug)]
pub struct Peer(Mutex<Brought>);

#[derive(Clone, Copy, Debug)]
struct Brought {
    bytes: f64,
    at: Instant,
    is_known: bool,
}

impl Peer {
    /// One that brought nothing yet.
    pub fn new(now: Instant) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Brought { bytes: 0.0, at: now, is_known: false })))
    }

    fn brought(&self) -> MutexGuard<'_, Brought> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Brought {
    fn until(&self, now: Instant) -> f64 {
        let halves = now.saturating_duration_since(self.at).as_secs_f64() / HALF.as_secs_f64();
        self.bytes * (-halves).exp2()
    }
}

/// All that bring something.
#[derive(Clone, Debug, Default)]
pub struct Peers(Arc<Mutex<Vec<Weak<Peer>>>>);

impl Peers {
    fn all(&self) -> MutexGuard<'_, Vec<Weak<Peer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One brought so many bytes, which were taken.
    pub fn brought(&self, peer: &Arc<Peer>, bytes: usize, now: Instant) {
        let mut own = peer.brought();
        let (was_known, bytes) = (own.is_known, own.until(now) + bytes as f64);
        *own = Brought { bytes, at: now, is_known: true };
        drop(own);
        if !was_known {
            self.all().push(Arc::downgrade(peer));
        }
    }

    /// Whether one brought no more lately than the others on the mean.
    pub fn has_turn(&self, peer: &Peer, now: Instant) -> bool {
        let mut all = self.all();
        all.retain(|own| own.strong_count() > 0);
        let lately = all.iter().filter_map(|own| Some(own.upgrade()?.brought().until(now)));
        let bringing: Vec<f64> = lately.filter(|bytes| *bytes >= LITTLE).collect();
        let mean = bringing.iter().sum::<f64>() / bringing.len().max(1) as f64;
        peer.brought().until(now) <= mean.max(LITTLE)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Peer, Peers};

    #[test]
    fn those_that_bring_more_than_others_wait() {
        let (peers, mut now) = (Peers::default(), Instant::now());
        let all: Vec<_> = [16 << 20, 16 << 20, 175 << 10, 175 << 10].map(|size| (Peer::new(now), size)).into();
        // One byte of a hundred is left for these that send small bodies as often as they may.
        let mut taken = [0; 4];
        for _ in 0..60_000 {
            now += Duration::from_millis(1);
            for ((peer, size), taken) in all.iter().zip(&mut taken) {
                if peers.has_turn(peer, now) {
                    peers.brought(peer, *size, now);
                    *taken += size;
                }
            }
        }
        let (least, most) = (taken.iter().min().expect("four"), taken.iter().max().expect("four"));
        assert!(*most < 2 * *least, "{taken:?}");
        // Who comes anew need not wait, and those that went count no longer.
        assert!(peers.has_turn(&Peer::new(now), now));
        let (last, size) = all[0].clone();
        peers.brought(&last, 100 * size, now);
        assert!(!peers.has_turn(&last, now));
        drop(all);
        assert!(peers.has_turn(&last, now));
    }
}
