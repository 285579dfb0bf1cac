//! `dyelog explain`.

use clap::Args;
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::report::codes as texts;

use crate::cli::args::{Form, OutputArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, codes};

/// Arguments of `dyelog explain`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "what a finding means, with an example of what brings it up" => "dyelog explain R070",
    "all codes" => "dyelog explain --list",
})]
pub struct Arguments {
    /// The code of a finding, such as R070
    #[arg(value_name = "CODE", required_unless_present = "list")]
    subject: Option<String>,
    /// List all codes
    #[arg(long, conflicts_with = "subject")]
    list: bool,
    /// The form of the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Form::Text)]
    format: Form,
    #[command(flatten)]
    output: OutputArguments,
}

/// Explains a code, or lists all.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let text = match (&arguments.subject, arguments.format) {
        (None, Form::Text) => texts::list(terminal.look(&arguments.output)),
        (None, Form::Json) => texts::json(texts::all()),
        (Some(subject), form) => code(subject, form)?,
    };
    output::write(&arguments.output, &text)?;
    Ok(Exit::Ok)
}

fn code(subject: &str, form: Form) -> Result<String, Failure> {
    let Some(explanation) = texts::find(subject) else {
        let message = if texts::looks_like_code(subject) {
            format!("there is no code `{subject}`")
        } else {
            format!("`{subject}` is no code")
        };
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message)
            .with_note("a code is a letter and three digits, such as `R070`, as findings show it in brackets")
            .with_hint(match texts::near(subject) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`dyelog explain --list` shows them all".to_owned(),
            });
        return Err(finding.into());
    };
    Ok(match form {
        Form::Text => texts::text(explanation),
        Form::Json => texts::json(std::slice::from_ref(explanation)),
    })
}
