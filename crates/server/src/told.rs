//! Answers about periods are remembered: a question that is repeated gets the same answer at once, as long as nothing changed.
//!
//! An answer goes with a digest of all that it depends on. What comes late to the period changes that, and so does what is merged, deleted or imported.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::period::Period;

/// How much is remembered, bytes.
const MOST: usize = 8 << 20;

/// What was asked: the form of the answer, and the period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The form.
    pub form: String,
    /// The period.
    pub period: Period,
}

#[derive(Debug)]
struct Kept {
    question: Question,
    state: u128,
    answer: Arc<str>,
}

impl Kept {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.question.form.len() + self.answer.len()
    }
}

/// Answers that are remembered.
#[derive(Debug, Default)]
pub struct Told(Mutex<VecDeque<Kept>>);

impl Told {
    fn kept(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a question in a state of the store, where it is remembered.
    pub fn find(&self, question: &Question, state: u128) -> Option<Arc<str>> {
        let mut kept = self.kept();
        let place = kept.iter().position(|own| own.question == *question && own.state == state)?;
        let own = kept.remove(place)?;
        let answer = Arc::clone(&own.answer);
        kept.push_back(own);
        Some(answer)
    }

    /// Remembers an answer. Those that were asked for longest ago are forgotten.
    pub fn keep(&self, question: Question, state: u128, answer: &Arc<str>) {
        let mut kept = self.kept();
        // What it was in an earlier state is asked for no more.
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
    use crate::period::Period;

    #[test]
    fn an_answer_holds_in_its_state_and_the_oldest_make_room() {
        let told = Told::default();
        let of = |form: &str, to| Question { form: form.to_owned(), period: Period { from: 0, to } };
        let answer: Arc<str> = "x".repeat(MOST / 3).into();
        told.keep(of("model", 1), 7, &answer);
        assert_eq!(told.find(&of("model", 1), 7), Some(Arc::clone(&answer)));
        for (question, state) in [(of("model", 1), 8), (of("model", 2), 7), (of("solution", 1), 7)] {
            assert_eq!(told.find(&question, state), None, "{question:?}");
        }
        told.keep(of("model", 2), 7, &answer);
        // It was asked for later than the other.
        assert!(told.find(&of("model", 1), 7).is_some());
        told.keep(of("model", 3), 7, &answer);
        assert!(told.find(&of("model", 1), 7).is_some() && told.find(&of("model", 2), 7).is_none());
        // Another state takes the place of the earlier one.
        told.keep(of("model", 1), 8, &answer);
        assert!(told.find(&of("model", 1), 7).is_none() && told.find(&of("model", 3), 7).is_some());
        // What is too large is not kept.
        told.keep(of("model", 4), 7, &"x".repeat(MOST).into());
        assert!(told.kept().is_empty());
    }
}
