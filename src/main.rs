//! The `dyelog` command. All it does lies in [`cli`]; all it knows lies in the library.

#![forbid(unsafe_code)]

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
