//! Semaphores and locks: which requests may have them, and which one gets them next.

use dyelog_lqn::model::SemaphoreRole;

use super::Engine;
use crate::simulate::probe::Probe;

impl<P: Probe> Engine<'_, P> {
    /// Whether a request of that role to an instance can be taken up at once. A lock has readers or one writer.
    #[inline]
    pub(super) fn admits(&self, role: Option<SemaphoreRole>, instance: u32) -> bool {
        let free =
            |instance: u32| self.threads[instance as usize].busy < self.program.instances[instance as usize].threads;
        let held = |other: SemaphoreRole| self.threads[self.lock(instance, other) as usize].busy > 0;
        free(instance)
            && match role {
                Some(SemaphoreRole::ReadLock) => !held(SemaphoreRole::WriteLock),
                Some(SemaphoreRole::WriteLock) => !held(SemaphoreRole::ReadLock),
                _ => true,
            }
    }

    /// Where requests of that role go, in the copy of a lock that an instance belongs to.
    pub(super) fn lock(&self, instance: u32, role: SemaphoreRole) -> u32 {
        let task = &self.program.tasks[self.program.instances[instance as usize].task as usize];
        task.of_role(Some(role), self.program.copy_of(instance))
    }

    /// All requests that wait for a lock and can have it now take it; of a reader and a writer, the first to come.
    pub(super) fn pass_lock_on(&mut self, instance: u32) {
        let roles = [SemaphoreRole::ReadLock, SemaphoreRole::WriteLock].map(|role| (role, self.lock(instance, role)));
        loop {
            let able = roles.iter().filter(|(role, instance)| self.admits(Some(*role), *instance));
            let first = able.filter_map(|(_, instance)| {
                let visit = self.threads[*instance as usize].queue.first()?;
                Some((self.visits[visit].sent, *instance))
            });
            let Some((_, instance)) = first.min_by(|one, other| one.0.total_cmp(&other.0)) else { return };
            let Some(visit) = self.threads[instance as usize].queue.pop(&self.visits) else { return };
            self.accept(visit);
        }
    }

    /// The thread that served a request is free, and what the request gives back of a lock; one that takes a lock keeps its thread.
    pub(super) fn give_back(&mut self, instance: u32, role: Option<SemaphoreRole>) {
        let taken_by = match role {
            // A semaphore or a lock is held until another request gives it back.
            Some(SemaphoreRole::Wait | SemaphoreRole::ReadLock | SemaphoreRole::WriteLock) => return,
            Some(SemaphoreRole::Signal) => Some(SemaphoreRole::Wait),
            Some(SemaphoreRole::ReadUnlock) => Some(SemaphoreRole::ReadLock),
            Some(SemaphoreRole::WriteUnlock) => Some(SemaphoreRole::WriteLock),
            None => None,
        };
        self.free(instance);
        let Some(role) = taken_by else { return };
        let held = self.lock(instance, role);
        if self.threads[held as usize].busy == 0 {
            return;
        }
        if role == SemaphoreRole::Wait {
            return self.free(held);
        }
        self.threads[held as usize].busy -= 1;
        self.pass_lock_on(held);
    }
}
