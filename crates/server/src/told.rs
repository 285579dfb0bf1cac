//! Answers about periods are remembered: a question gets the same answer at once, as long as nothing changed.
//!
//! An answer goes with a digest of all that it depends on. What comes late to the period changes that, and so does what is merged, deleted or imported. The times that
//! were asked about are not in it: `from=-1h` is another period each time, and has the same answer as long as the same intervals reach into it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much is remembered, bytes.
const MOST: usize = 8 << 20;

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The form of the answer.
    pub form: String,
    /// The ends of the period, as they were written.
    pub ends: [Option<String>; 2],
}

#[derive(Debug)]
struct Kept {
    question: Question,
    state: u128,
    answer: Arc<str>,
}

impl Kept {
    fn bytes(&self) -> usize {
        let Question { form, ends } = &self.question;
        let ends: usize = ends.iter().flatten().map(String::len).sum();
        size_of::<Self>() + form.len() + ends + self.answer.len()
    }
}

/// Answers that are remembered.
#[derive(Debug, Default)]
pub struct Told {
    kept: Mutex<VecDeque<Kept>>,
    /// How many were found here, and how many were not.
    counts: [AtomicU64; 2],
}

impl Told {
    fn kept(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer of a form in a state of the store, where it is remembered, whatever times it was asked for with.
    pub fn find(&self, form: &str, state: u128) -> Option<Arc<str>> {
        let found = self.take(form, state);
        self.counts[usize::from(found.is_none())].fetch_add(1, Ordering::Relaxed);
        found
    }

    fn take(&self, form: &str, state: u128) -> Option<Arc<str>> {
        let mut kept = self.kept();
        let place = kept.iter().position(|own| own.question.form == form && own.state == state)?;
        let own = kept.remove(place)?;
        let answer = Arc::clone(&own.answer);
        kept.push_back(own);
        Some(answer)
    }

    /// How many questions were answered from what is remembered, and how many were not.
    pub fn counts(&self) -> [u64; 2] {
        self.counts.each_ref().map(|own| own.load(Ordering::Relaxed))
    }

    /// Remembers an answer. Those that were asked for longest ago are forgotten.
    pub fn keep(&self, question: Question, state: u128, answer: &Arc<str>) {
        let mut kept = self.kept();
        // What it was in an earlier state is asked for no more: of a period that moves along, each answer takes the place of the one before.
        kept.retain(|own| own.question != question);
        kept.push_back(Kept { question, state, answer: Arc::clone(answer) });
        let mut bytes: usize = kept.iter().map(Kept::bytes).sum();
        while bytes > MOST
            && let Some(gone) = kept.pop_front()
        {
            bytes -= gone.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{MOST, Question, Told};

    fn of(form: &str, from: &str) -> Question {
        Question { form: form.to_owned(), ends: [Some(from.to_owned()), None] }
    }

    #[test]
    fn an_answer_holds_in_its_state_whatever_times_are_asked_for() {
        let told = Told::default();
        let answer: Arc<str> = "an answer".into();
        told.keep(of("model", "-1h"), 7, &answer);
        assert_eq!(
            [told.find("model", 7), told.find("model", 8), told.find("solution", 7)],
            [Some(answer), None, None]
        );
        assert_eq!(told.counts(), [1, 2]);
    }

    #[test]
    fn the_oldest_make_room() {
        let told = Told::default();
        let answer: Arc<str> = "x".repeat(MOST / 3).into();
        told.keep(of("model", "1"), 7, &answer);
        told.keep(of("model", "2"), 17, &answer);
        // It was asked for later than the other.
        assert!(told.find("model", 7).is_some());
        told.keep(of("model", "3"), 27, &answer);
        assert!(told.find("model", 7).is_some() && told.find("model", 17).is_none());
        // Another state takes the place of the earlier one.
        told.keep(of("model", "1"), 8, &answer);
        assert!(told.find("model", 7).is_none() && told.find("model", 27).is_some());
        // What is too large is not kept.
        told.keep(of("model", "4"), 7, &"x".repeat(MOST).into());
        assert!(told.kept().is_empty());
    }
}
