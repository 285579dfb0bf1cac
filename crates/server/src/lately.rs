//! What the page at `/` shows of the last minutes: models and what is held against them.
//!
//! That takes seconds where the machine is busy. So all who ask meanwhile get the same, and where it takes long it may be a minute old.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Mutex as Turn;
use tokio::time::timeout;

use crate::answer::Answer;
use crate::observed::{self, Seen};
use crate::page::{Busy, Hour};
use crate::period::{Period, written};
use crate::service::{Service, wall_clock};
use crate::split::{Compared, Split};
use crate::store::{Interval, Store, StoreError};
use crate::web::{Failed, PATIENCE, ask, too_many};

/// How much of the past is lately, nanoseconds.
const LATELY: u64 = 300 * 1_000_000_000;
/// What takes this time is shown again while it is made anew, unless it is older than that.
const LONG: Duration = Duration::from_secs(1);
const OLD: Duration = Duration::from_secs(60);

/// What is shown of a model.
#[derive(Debug)]
pub struct Look {
    /// The busiest processors.
    pub busiest: Vec<Busy>,
    /// What saturates first, in lines.
    pub capacity: String,
    /// The model as a picture.
    pub picture: String,
}

impl Look {
    fn of(answer: &Answer) -> Result<Self, String> {
        Ok(Self { busiest: answer.busiest()?, capacity: answer.capacity()?, picture: answer.picture()? })
    }
}

/// What was made.
#[derive(Debug)]
pub struct Made {
    /// The intervals that have anything.
    pub intervals: Vec<Interval>,
    /// The model since something changed, or why it has no solution; `None` where nothing was recorded.
    pub look: Option<Result<Look, String>>,
    /// Measured against predicted responses.
    pub held: Compared,
    /// The same of whole hours.
    pub hours: Vec<Hour>,
    /// What observers reported.
    pub observed: Option<Seen>,
    /// Of when it is, nanoseconds since 1970.
    pub at: u64,
    /// When it was done, and how long it took.
    done: Instant,
    took: Duration,
}

impl Made {
    fn of(service: &Service, store: &mut Store) -> Result<Self, StoreError> {
        let (begun, now) = (Instant::now(), wall_clock());
        let lately = Period { from: now.saturating_sub(LATELY), to: now };
        let split = Split::of(store, lately)?;
        let look = split.last().map(|last| last.and_then(Look::of));
        let observed = observed::look(store, lately, service.system())?;
        let intervals = store.intervals(lately.from, lately.to)?;
        let (held, hours) = (split.held(), hours(service.lately(), store, now)?);
        let done = Instant::now();
        Ok(Self { intervals, look, held, hours, observed, at: now, done, took: done - begun })
    }

    /// Whether it is no older than the time that another one would take.
    fn is_fresh(&self) -> bool {
        self.done.elapsed() <= self.took
    }

    fn will_do(&self) -> bool {
        self.took >= LONG && self.done.elapsed() <= OLD
    }
}

/// By the begin of an hour, how many spans it had, and what was made of it for people.
type Hours = BTreeMap<u64, (u64, Compared)>;

/// What is kept of what was made.
#[derive(Debug, Default)]
pub struct Lately {
    made: Mutex<Option<Arc<Made>>>,
    hours: Mutex<Hours>,
    /// One makes it at a time.
    turn: Turn<()>,
}

impl Lately {
    fn made(&self) -> MutexGuard<'_, Option<Arc<Made>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hours(&self) -> MutexGuard<'_, Hours> {
        self.hours.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All performance data was deleted.
    pub fn forget(&self) {
        *self.made() = None;
        self.hours().clear();
    }
}

/// What there is to show now.
pub async fn look(service: &Arc<Service>) -> Result<Arc<Made>, Failed> {
    let kept = service.lately().made().clone();
    match kept {
        Some(made) if made.is_fresh() => Ok(made),
        Some(made) if made.will_do() => {
            if service.lately().turn.try_lock().is_ok() {
                let service = Arc::clone(service);
                tokio::spawn(async move { anew(&service).await.is_ok() });
            }
            Ok(made)
        }
        _ => anew(service).await,
    }
}

/// Makes it anew, unless another one did while this waited.
async fn anew(service: &Arc<Service>) -> Result<Arc<Made>, Failed> {
    let _turn = timeout(PATIENCE, service.lately().turn.lock()).await.map_err(|_| too_many())?;
    if let Some(made) = service.lately().made().clone().filter(|made| made.is_fresh()) {
        return Ok(made);
    }
    let own = Arc::clone(service);
    let make = move |store: &mut Store| {
        let made = Arc::new(Made::of(&own, store)?);
        // It is there for the next one, too, where who asked has gone away.
        *own.lately().made() = Some(Arc::clone(&made));
        Ok(made)
    };
    ask(service, make).await
}

/// Measured against predicted responses of the last whole hours that have anything.
fn hours(kept: &Lately, store: &mut Store, now: u64) -> Result<Vec<Hour>, StoreError> {
    const HOUR: u64 = 3600 * 1_000_000_000;
    const SHOWN: u64 = 4;
    let mut hours = Vec::new();
    for start in (1..=SHOWN).map(|ago| (now / HOUR).saturating_sub(ago) * HOUR) {
        let intervals = store.intervals(start, start + HOUR)?;
        if intervals.is_empty() {
            continue;
        }
        let spans = intervals.iter().map(|interval| interval.spans).sum::<u64>();
        // What came late makes it another one.
        let known = kept.hours().get(&start).filter(|(own, _)| *own == spans).map(|(_, held)| held.clone());
        let held = match known {
            Some(held) => held,
            None => Split::of(store, Period { from: start, to: start + HOUR })?.held(),
        };
        let mut cache = kept.hours();
        cache.retain(|own, _| *own + (SHOWN + 1) * HOUR > now);
        cache.insert(start, (spans, held.clone()));
        hours.push((written(start), held));
    }
    Ok(hours)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::{Made, look};
    use crate::service::Service;
    use crate::split::Compared;
    use crate::worker::Working;

    /// What took so many seconds and was done so many seconds ago.
    fn made(took: u64, ago: u64) -> Arc<Made> {
        let [took, ago] = [took, ago].map(Duration::from_secs);
        let (held, hours) = (Compared::default(), Vec::new());
        let done = Instant::now().checked_sub(ago).expect("clocks are not as young");
        Arc::new(Made { intervals: Vec::new(), look: None, held, hours, observed: None, at: 0, done, took })
    }

    #[test]
    fn what_takes_long_is_shown_while_it_is_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let service = Service::start(&folder.path().join("store.db"), Working::default()).expect("it starts");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            // What was made, whether it is shown, and whether it is made anew.
            for (took, ago, is_shown, is_made) in
                [(9, 5, true, false), (2, 10, true, true), (2, 90, false, true), (0, 2, false, true)]
            {
                let before = made(took, ago);
                *service.lately().made() = Some(Arc::clone(&before));
                let Ok(shown) = look(&service).await else { panic!("it is made") };
                assert_eq!(Arc::ptr_eq(&shown, &before), is_shown, "{took} s, {ago} s ago");
                let begun = Instant::now();
                let is_kept = || service.lately().made().as_ref().is_some_and(|kept| Arc::ptr_eq(kept, &before));
                while is_kept() && begun.elapsed() < Duration::from_secs(if is_made { 20 } else { 1 }) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                assert_eq!(!is_kept(), is_made, "{took} s, {ago} s ago");
            }
            // What was deleted is shown no longer.
            let before = made(9, 5);
            *service.lately().made() = Some(Arc::clone(&before));
            service.initialise().await.expect("it is deleted");
            assert!(look(&service).await.is_ok_and(|shown| !Arc::ptr_eq(&shown, &before)));
        });
        service.stop();
    }
}
