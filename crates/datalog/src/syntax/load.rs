//! A rule file with all that it uses.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{Lost, Program, SourceFile, UsedFile};
use crate::codes;
use crate::syntax::{Item, ReadFile, read_file};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place, Severity};

/// Files that one program may have.
pub const MAX_FILES: usize = 256;

/// Reads a rule file and, at each `use`, the file it names, as if its text stood there. Each file is read once, so that
/// files may use each other in a circle. `resolver` gives the text of a file by the name under `use`, or `None`.
///
/// # Errors
/// Everything that is wrong with any of the files.
pub fn load(name: &str, text: &str, resolver: &dyn Fn(&str) -> Option<Arc<str>>) -> Result<Program, Diagnostics> {
    let loaded = read(name, text, resolver);
    if loaded.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return Err(Diagnostics(loaded.diagnostics));
    }
    Ok(loaded.program)
}

/// Rule files as far as they can be read, with all that is wrong with the rest.
#[derive(Debug, Default)]
pub struct Loaded {
    /// What was read; it tells what was lost.
    pub program: Program,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
}

/// As [`load`], and gives what could be read whatever is wrong with the rest, so that it can be checked.
pub fn read(name: &str, text: &str, resolver: &dyn Fn(&str) -> Option<Arc<str>>) -> Loaded {
    read_beside(name, text, resolver, &[])
}

/// As [`read`], where `shipped` are names that may be meant where a file is not there.
pub fn read_beside(name: &str, text: &str, resolver: &dyn Fn(&str) -> Option<Arc<str>>, shipped: &[&str]) -> Loaded {
    let mut loading = Loading { loaded: Loaded::default(), seen: HashMap::new() };
    // The items still to be placed, of the file and of those that use it.
    let mut open = vec![loading.read(name, text.into())];
    while let Some(items) = open.last_mut() {
        match items.next() {
            None => drop(open.pop()),
            Some(Item::Template(template)) => loading.loaded.program.templates.push(template),
            Some(Item::EventTemplate(template)) => loading.loaded.program.event_templates.push(template),
            Some(Item::Rule(rule)) => loading.loaded.program.rules.push(rule),
            Some(Item::Export(export)) => loading.loaded.program.exports.extend(export.relations),
            Some(Item::Output(outputs)) => loading.loaded.program.outputs.extend(outputs.relations),
            Some(Item::Use(used)) => {
                let file = &*used.file.value;
                if let Some(known) = loading.seen.get(file) {
                    let link = known.map(|file| UsedFile { file, span: used.file.span });
                    loading.loaded.program.uses.extend(link);
                    continue;
                }
                let user = &loading.loaded.program.files[used.span.file as usize];
                let range = used.file.span.range();
                let place = Place::Range { file: Arc::clone(&user.name), start: range.start, end: range.end };
                if loading.loaded.program.files.len() >= MAX_FILES {
                    let message = format!("more than {MAX_FILES} rule files");
                    loading.loaded.diagnostics.push(Diagnostic::error(codes::TOO_LARGE, place, message));
                    loading.lost().files = true;
                    break;
                }
                match resolver(file) {
                    Some(text) => {
                        let number = loading.loaded.program.files.len() as u32;
                        loading.loaded.program.uses.push(UsedFile { file: number, span: used.file.span });
                        open.push(loading.read(file, text));
                    }
                    None => loading.no_file(file, place, shipped),
                }
            }
        }
    }
    loading.loaded
}

struct Loading {
    loaded: Loaded,
    /// The numbers of files by their names; none where there is no such file.
    seen: HashMap<Arc<str>, Option<u32>>,
}

impl Loading {
    fn read(&mut self, name: &str, text: Arc<str>) -> std::vec::IntoIter<Item> {
        let name: Arc<str> = name.into();
        let number = self.loaded.program.files.len() as u32;
        let ReadFile { items, diagnostics, lost } = read_file(number, &name, &text);
        self.loaded.diagnostics.extend(diagnostics);
        self.lost().names.extend(lost);
        self.seen.insert(Arc::clone(&name), Some(number));
        self.loaded.program.files.push(SourceFile { name, text });
        items.into_iter()
    }

    fn lost(&mut self) -> &mut Lost {
        &mut self.loaded.program.lost
    }

    fn no_file(&mut self, file: &str, place: Place, shipped: &[&str]) {
        self.seen.insert(file.into(), None); // report a missing file once
        self.lost().files = true;
        let finding = Diagnostic::error(codes::NO_FILE, place, format!("no rule file `{file}`"));
        let whole = format!("{file}.dl");
        let finding = if shipped.contains(&whole.as_str()) {
            finding.with_hint(format!("write `{whole}`"))
        } else {
            finding.with_similar(file, shipped.iter().copied())
        };
        self.loaded
            .diagnostics
            .push(finding.with_note("names are looked up among the shipped files and relative to the file given"));
    }
}
