//! Which instances of tasks were seen, when, and on which machines.
//!
//! An identifier of an instance may be new for each start of a process, or for each request. So times are kept: instances that were there
//! together are replicas, those that follow each other are one that was started again. Of very many no more than [`MOST`] are kept, those
//! whose digests are least, which are the same however parts merge.

use rustc_hash::FxBuildHasher;

use crate::digest::Digest;
use dyelog_diagnostic::names::{Name, Names};

/// The most instances that are kept.
pub const MOST: usize = 1024;

/// The digests of instances are a kind of their own.
const DIGEST: u64 = 0x5e_91;

type Map<K, V> = indexmap::IndexMap<K, V, FxBuildHasher>;

/// An instance of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    /// The task.
    pub task: Name,
    /// What tells it from other instances of the task.
    pub instance: Name,
    /// The machine that it runs on; [`Name::NONE`] where not told.
    pub machine: Name,
}

/// What was seen of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The first begin of an invocation, nanoseconds from the trace's epoch.
    pub first: i64,
    /// The last.
    pub last: i64,
    /// How many invocations.
    pub invocations: u64,
    /// How many cores it may use at most, in thousandths; 0 where not told.
    pub cores: u32,
}

impl Seen {
    fn merge(&mut self, other: &Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.invocations = self.invocations.saturating_add(other.invocations);
        self.cores = self.cores.max(other.cores);
    }
}

/// All instances that were seen.
#[derive(Clone, Debug, Default)]
pub struct Deployment {
    replicas: Map<Replica, (u64, Seen)>,
    /// The least digest of those that were left out.
    cut: Option<u64>,
}

impl Deployment {
    /// Those that are kept, in no order that means anything.
    pub fn replicas(&self) -> impl Iterator<Item = (&Replica, &Seen)> {
        self.replicas.iter().map(|(replica, (_, seen))| (replica, seen))
    }

    /// Those that are kept, each with the number by which stays name it.
    pub fn sites(&self) -> impl Iterator<Item = (&Replica, &Seen, u32)> {
        self.replicas.iter().map(|(replica, (digest, seen))| (replica, seen, site(*digest)))
    }

    /// Whether there were more than are kept.
    pub fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// The least digest of those that were left out.
    pub(crate) fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// Leaves out those with that digest or a greater one.
    pub(crate) fn cut_at(&mut self, cut: u64) {
        self.cut = Some(self.cut.map_or(cut, |own| own.min(cut)));
        let least = self.cut;
        self.replicas.retain(|_, (digest, _)| least.is_none_or(|cut| *digest < cut));
    }

    /// Takes in what was seen of an instance; gives a number that tells it from others of its task.
    pub fn see(&mut self, names: &Names, replica: Replica, seen: &Seen) -> u32 {
        if let Some((digest, own)) = self.replicas.get_mut(&replica) {
            own.merge(seen);
            return site(*digest);
        }
        let text = |name: Name| names.text(name);
        let digest = digest(text(replica.task), text(replica.instance), text(replica.machine));
        if self.cut.is_none_or(|cut| digest < cut) {
            self.replicas.insert(replica, (digest, *seen));
            if self.replicas.len() > MOST
                && let Some(greatest) = self.replicas.values().map(|(digest, _)| *digest).max()
            {
                self.cut_at(greatest);
            }
        }
        site(digest)
    }

    /// Takes in all that the other has, whose names are these.
    pub(crate) fn merge(&mut self, other: &Self, own_names: &Names, names: &[Name]) {
        if let Some(cut) = other.cut {
            self.cut_at(cut);
        }
        let own = |name: Name| if name.is_some() { names[name.index()] } else { name };
        for (replica, seen) in other.replicas() {
            let replica =
                Replica { task: own(replica.task), instance: own(replica.instance), machine: own(replica.machine) };
            self.see(own_names, replica, seen);
        }
    }
}

/// A number that tells an instance from others, as [`Deployment::see`] gives it.
pub fn site_of(task: &str, instance: &str, machine: &str) -> u32 {
    site(digest(task, instance, machine))
}

fn digest(task: &str, instance: &str, machine: &str) -> u64 {
    Digest::of(DIGEST).text(task).text(instance).text(machine).short()
}

/// A number other than 0, which stands for an instance that nobody tells.
fn site(digest: u64) -> u32 {
    (digest as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::{Deployment, MOST, Replica, Seen};
    use dyelog_diagnostic::names::{Name, Names};

    fn of(names: &mut Names, numbers: impl Iterator<Item = usize>) -> Deployment {
        let mut all = Deployment::default();
        for number in numbers {
            let instance = names.intern(&format!("instance {number}"));
            let replica = Replica { task: names.intern("web"), instance, machine: Name::NONE };
            let seen = Seen { first: number as i64, last: number as i64 + 5, invocations: 1, cores: 0 };
            all.see(names, replica, &seen);
        }
        all
    }

    #[test]
    fn of_very_many_instances_the_same_are_kept_however_parts_merge() {
        let mut names = Names::new();
        let mut whole: Vec<_> =
            of(&mut names, 0..3 * MOST).replicas().map(|(own, seen)| (own.instance, *seen)).collect();
        let (left, right) = (of(&mut names, 0..MOST + 7), of(&mut names, MOST + 7..3 * MOST));
        let same: Vec<Name> = (0..names.len()).map(|number| Name(number as u32)).collect();
        for (mut one, other) in [(left.clone(), right.clone()), (right, left)] {
            one.merge(&other, &names, &same);
            let mut sum: Vec<_> = one.replicas().map(|(own, seen)| (own.instance, *seen)).collect();
            whole.sort_by_key(|(name, _)| *name);
            sum.sort_by_key(|(name, _)| *name);
            assert_eq!(sum.len(), MOST);
            assert_eq!(sum, whole);
            assert!(one.is_cut());
        }
    }
}
