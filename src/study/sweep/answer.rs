//! The whole answer to a question: figures, with what may be wrong with them.

use crate::diagnostic::Diagnostic;
use crate::model::parameter::{Asked, Subject};
use crate::study::sweep::missed::include_misses;
use crate::study::sweep::otherwise::{hang_on_servers, include, otherwise};
use crate::study::sweep::simulated::checked;
use crate::study::sweep::{Question, Table, WrittenQuestion};

/// What a subject is before anything is set.
#[derive(Clone, Debug)]
pub struct Before {
    /// Its model; of traces, that of the load that was traced.
    traced: Asked,
    /// It with other servers that fit traces as well and all that is set, and which these servers are.
    otherwise: Option<(Subject, Vec<String>)>,
}

impl Before {
    /// Of a subject on which nothing of the question was set yet.
    pub fn of(subject: &Subject, question: &WrittenQuestion<'_>) -> Self {
        Self { traced: subject.base().clone(), otherwise: otherwise(subject, question) }
    }
}

impl Question {
    /// Asks the same of each subject, as [`Question::ask`], which has what it was before. Figures that the solver misses are simulated. Intervals hold what other servers make of
    /// figures, and what misses at the traced load do. Warnings tell what figures hang on.
    pub fn answer(
        &self,
        subjects: &[(String, Subject)],
        before: &[Before],
        told: &(dyn Fn() + Sync),
    ) -> (Table, Vec<Diagnostic>) {
        let solved = self.ask(subjects, told);
        let (mut findings, mut others) = (Vec::new(), Vec::new());
        for (number, before) in before.iter().enumerate() {
            if let Some((other, which)) = &before.otherwise {
                let table = self.ask(&[(subjects[number].0.clone(), other.clone())], &|| ());
                findings.extend(hang_on_servers(&solved, number, &table, which));
                others.push((number, table));
            }
        }
        let (mut table, unlike) = checked(self, subjects, solved.clone());
        findings.extend(unlike);
        for (number, (before, (_, subject))) in before.iter().zip(subjects).enumerate() {
            include_misses(self, (number, subject), &before.traced, &mut table);
        }
        for (number, others) in &others {
            include(&mut table, &solved, *number, others);
        }
        (table, findings)
    }
}
