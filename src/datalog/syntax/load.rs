//! A rule file with all that it uses.

use std::collections::HashSet;
use std::sync::Arc;

use crate::datalog::ast::{Program, SourceFile};
use crate::datalog::codes;
use crate::datalog::syntax::{Item, parse_file};
use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity};

/// Files that one program may have.
pub const MAX_FILES: usize = 256;

/// Reads a rule file and, at each `use`, the file it names, as if its text stood there. Each file is read once, so that
/// files may use each other in a circle. `resolver` gives the text of a file by the name under `use`, or `None`.
///
/// # Errors
/// Everything that is wrong with any of the files.
pub fn load(name: &str, text: &str, resolver: &dyn Fn(&str) -> Option<Arc<str>>) -> Result<Program, Diagnostics> {
    let mut loading = Loading { program: Program::default(), seen: HashSet::new(), diagnostics: Vec::new() };
    // The items still to be placed, of the file and of those that use it.
    let mut open = vec![loading.read(name, text.into())];
    while let Some(items) = open.last_mut() {
        match items.next() {
            None => drop(open.pop()),
            Some(Item::Template(template)) => loading.program.templates.push(template),
            Some(Item::Rule(rule)) => loading.program.rules.push(rule),
            Some(Item::Use(used)) => {
                let file = &*used.file.value;
                if loading.seen.contains(file) {
                    continue;
                }
                let user = &loading.program.files[used.span.file as usize];
                let range = used.file.span.range();
                let place = Place::Range { file: Arc::clone(&user.name), start: range.start, end: range.end };
                if loading.program.files.len() >= MAX_FILES {
                    let message = format!("more than {MAX_FILES} rule files");
                    loading.diagnostics.push(Diagnostic::error(codes::TOO_LARGE, place, message));
                    break;
                }
                match resolver(file) {
                    Some(text) => open.push(loading.read(file, text)),
                    None => loading.no_file(file, place),
                }
            }
        }
    }
    if loading.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return Err(Diagnostics(loading.diagnostics));
    }
    Ok(loading.program)
}

struct Loading {
    program: Program,
    seen: HashSet<Arc<str>>,
    diagnostics: Vec<Diagnostic>,
}

impl Loading {
    fn read(&mut self, name: &str, text: Arc<str>) -> std::vec::IntoIter<Item> {
        let name: Arc<str> = name.into();
        let number = self.program.files.len() as u32;
        let (items, diagnostics) = parse_file(number, &name, &text);
        self.diagnostics.extend(diagnostics);
        self.seen.insert(Arc::clone(&name));
        self.program.files.push(SourceFile { name, text });
        items.into_iter()
    }

    fn no_file(&mut self, file: &str, place: Place) {
        self.seen.insert(file.into()); // report a missing file once
        self.diagnostics.push(
            Diagnostic::error(codes::NO_FILE, place, format!("no rule file `{file}`"))
                .with_note("names are looked up among the shipped files and relative to the file given"),
        );
    }
}
