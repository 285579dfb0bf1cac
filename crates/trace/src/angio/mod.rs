//! The native trace format, `.angio`, and the same as JSON Lines.
//!
//! A line `operation SCENARIO run=RUN` opens an operation; then one node label a line, in the paper's notation (1998 paper,
//! Eq. 4.1), with optional attributes. The order of the lines of an operation is free.
//!
//! ```text
//! operation a run=1 start=1700000000000000000   # nanoseconds; optional
//! a,1,1,Be      | A,1
//! a,1,2,Ac      | A,2   name=lookup op="GET /item" t=0.0012 cpu=0.0003
//! a,1,3,Fk(a,2) | A,3
//! a,1,4,Ed      | A,4
//! a,2,1,Be      | B,1   instance=2
//! a,2,2,Ed      | B,2   instance=2
//! ```
//!
//! `#` begins a comment at the start of a line or after white space. A name that holds white space, `"`, `,`, `|`, `(`, `)` or
//! `=` is written in double quotes, with the escapes `\"`, `\\`, `\n`, `\r`, `\t` and `\u{hex}`. Times are seconds, neither
//! negative nor infinite. A byte order mark and CR LF line ends are accepted.
//!
//! A line that cannot be read is reported with its line and column, and its operation is set aside and counted: reading goes
//! on with the next one. Memory stays within one operation and one block of the file.

mod assemble;
mod grammar;
mod json;
mod losses;
mod rank;
mod recent;
mod text;
mod write;

pub use json::read_jsonl;
pub use losses::losses;
pub use text::read_text;
pub use write::{write_jsonl, write_text};

/// Whether a line opens an operation or is a label.
pub(crate) fn is_statement(line: &[u8]) -> bool {
    matches!(
        grammar::statement(line, &mut Vec::new()),
        Ok(grammar::Statement::Header(_) | grammar::Statement::Label(_))
    )
}
