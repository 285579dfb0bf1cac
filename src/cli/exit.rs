//! Exit codes.

use std::process::ExitCode;

/// How a run of `dyelog` ended; scripts may rely on the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Done; warnings may have been shown. A reader of the output that went away early counts as done, too.
    Ok = 0,
    /// Done, and a check found something: a damaged operation under `trace check`, an error in a file under `rules check`,
    /// anything that differs under `test`, `diff` and `rules fmt --check`, no value that meets the goals under `search`, a
    /// prediction that is off under `validate`, or nothing to compare. The language server gives it where its client leaves without
    /// a goodbye, as the protocol has it.
    Finding = 1,
    /// The arguments or an input cannot be used; the reasons are on standard error. Nothing was written under `-o`.
    Input = 2,
    /// A solver stopped before it met its bound. What it has is written, and marked as not converged. Or a consumer of asynchronous
    /// messages gets more than it serves: a line says by how much, and the results are written. Or the model under
    /// `impact` has no solution: the processor time of the answer is written.
    NotConverged = 3,
    /// A defect of `dyelog` itself.
    Bug = 70,
    /// `rules profile` was interrupted (Ctrl-C), and wrote what it had measured.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
