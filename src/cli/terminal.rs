//! Words for people, on standard error.

use std::io::Write;
use std::panic::PanicHookInfo;

use anstream::{AutoStream, ColorChoice};
use dyelog::diagnostic::{Diagnostic, Renderer, Severity, Sources};

use crate::cli::args::Color;

/// Where words go, and what is needed to draw them.
pub struct Terminal {
    renderer: Renderer,
    /// Texts that diagnostics point into.
    pub sources: Sources,
}

impl Terminal {
    /// The terminal on standard error.
    pub fn new(color: Color) -> Self {
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => AutoStream::choice(&std::io::stderr()) != ColorChoice::Never,
        };
        Self { renderer: Renderer { color }, sources: Sources::new() }
    }

    /// Shows diagnostics and, where there is more than one error, how many.
    pub fn report(&self, diagnostics: &[Diagnostic]) {
        let mut text = String::new();
        for diagnostic in diagnostics {
            text.push_str(&self.renderer.render(diagnostic, &self.sources));
        }
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
        if errors > 1 {
            text.push_str(&format!("{errors} errors\n"));
        }
        self.say(&text);
    }

    /// Shows a text as it is.
    pub fn say(&self, text: &str) {
        // Where standard error is closed there is nobody to tell.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

/// Tells of a defect of `dyelog` itself.
pub fn report_panic(info: &PanicHookInfo<'_>) {
    let message = info.payload_as_str().unwrap_or("no message");
    let place =
        info.location().map_or_else(String::new, |location| format!(" at {}:{}", location.file(), location.line()));
    let text = format!(
        "dyelog {} has met a defect of its own{place}: {message}\nPlease report this with the command and, if you can, its \
         input.\n",
        env!("CARGO_PKG_VERSION")
    );
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
