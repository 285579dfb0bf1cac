//! The whole answer to a question: figures, with what may be wrong with them.

use crate::diagnostic::Diagnostic;
use crate::model::parameter::{Asked, Subject};
use crate::study::sweep::missed::include_misses;
use crate::study::sweep::otherwise::{hang_on_servers, include, otherwise};
use crate::study::sweep::simulated::checked;
use crate::study::sweep::{Point, Question, Table, WrittenQuestion};

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
        let others: Vec<Option<Table>> = before.iter().map(|own| self.otherwise(own)).collect();
        let mut findings = Vec::new();
        for (number, (before, others)) in before.iter().zip(&others).enumerate() {
            let which = before.otherwise.as_ref().map(|(_, which)| which);
            let hang = which.zip(others.as_ref());
            findings.extend(hang.and_then(|(which, others)| hang_on_servers(&solved, number, others, which)));
        }
        let (mut table, unlike) = checked(self, subjects, solved.clone());
        findings.extend(unlike);
        for (number, ((_, subject), (before, others))) in subjects.iter().zip(before.iter().zip(&others)).enumerate() {
            self.widen(&mut table, &solved, (number, subject), (before, others.as_ref()));
        }
        (table, findings)
    }

    /// The points of a subject as the solver tells them, with the same intervals.
    pub fn answer_solved(&self, subject: &Subject, before: &Before) -> Vec<Point> {
        let solved = self.table(vec![String::new()], self.points(0, subject, &|| ()));
        let mut table = solved.clone();
        self.widen(&mut table, &solved, (0, subject), (before, self.otherwise(before).as_ref()));
        table.points
    }

    /// The points with other servers that fit as well.
    fn otherwise(&self, before: &Before) -> Option<Table> {
        let (other, _) = before.otherwise.as_ref()?;
        Some(self.table(vec![String::new()], self.points(0, other, &|| ())))
    }

    /// Lets intervals of a subject hold what is not chance.
    fn widen(
        &self,
        table: &mut Table,
        solved: &Table,
        (number, subject): (usize, &Subject),
        (before, others): (&Before, Option<&Table>),
    ) {
        include_misses(self, (number, subject), &before.traced, table);
        if let Some(others) = others {
            include(table, solved, number, others);
        }
    }
}
