//! Rule files of the user, with what they use.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyelog::authoring::{self, Checked};
use dyelog::datalog::allow;
use dyelog::datalog::ast::Program;
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place, Sources};
pub use dyelog::pipeline::about_the_users;
use dyelog::query::standard;
use dyelog::same::{self, rules::Loaded};
use dyelog::tlc::Rules;
use dyelog::tlc::rules::{SHIPPED, shipped_text};

use crate::cli::{codes, input};

/// Files of rules that others use, read from where those lie.
pub struct Beside<'f> {
    folders: Vec<&'f Path>,
    read: RefCell<Vec<(Arc<str>, Arc<str>)>>,
}

impl<'f> Beside<'f> {
    /// In the folders of these files, in that order.
    pub fn of<P: AsRef<Path> + ?Sized + 'f>(files: impl IntoIterator<Item = &'f P>) -> Self {
        let folders = files.into_iter().filter_map(|file| file.as_ref().parent()).collect();
        Self { folders, read: RefCell::default() }
    }

    /// The text of a file by the name that follows `use`.
    pub fn text(&self, name: &str) -> Option<Arc<str>> {
        let mut texts = self.folders.iter().filter_map(|folder| std::fs::read_to_string(folder.join(name)).ok());
        let text: Arc<str> = texts.next()?.into();
        self.read.borrow_mut().push((name.into(), Arc::clone(&text)));
        Some(text)
    }

    /// What was read, with the names that it was read by.
    pub fn read(self) -> Vec<(Arc<str>, Arc<str>)> {
        self.read.into_inner()
    }
}

/// Loads rule files; the shipped ones stand behind them. All texts that findings may point into go to the sources.
pub fn load(files: &[PathBuf], sources: &mut Sources) -> Result<Rules, Diagnostics> {
    load_telling(files, &mut |file, text| sources.insert(file, text))
}

/// The same, reporting the texts to a listener.
pub fn load_telling(files: &[PathBuf], source: &mut dyn FnMut(Arc<str>, Arc<str>)) -> Result<Rules, Diagnostics> {
    load_texts(&texts(files)?, files, source)
}

/// Loads rule files whose texts have been read; files that they use lie beside them. All texts go to the listener.
pub fn load_texts(
    texts: &[Text],
    files: &[PathBuf],
    source: &mut dyn FnMut(Arc<str>, Arc<str>),
) -> Result<Rules, Diagnostics> {
    tell(texts, source);
    let beside = Beside::of(files);
    // A folder that happens to hold a file of the same name must not change what the shipped files mean.
    let resolve = |name: &str| if shipped_text(name).is_some() { None } else { beside.text(name) };
    let rules = Rules::with_user_files(texts, &resolve);
    beside.read().into_iter().for_each(|(name, text)| source(name, text));
    rules
}

/// Loads templates on events, which take the place of the shipped ones. All texts that findings may point into go to the listener.
pub fn load_events(
    files: &[PathBuf],
    source: &mut dyn FnMut(Arc<str>, Arc<str>),
) -> Result<Arc<same::Rules>, Diagnostics> {
    let texts = texts(files)?;
    tell(&texts, source);
    let beside = Beside::of(files);
    let Loaded { program, rules, findings } = same::rules::load(&texts, &|name| beside.text(name));
    beside.read().into_iter().for_each(|(name, text)| source(name, text));
    let place = files.first().map_or(Place::Nowhere, |file| Place::File { file: input::shown(file) });
    match rules {
        Some(_) if program.event_templates.is_empty() => {
            let finding = Diagnostic::error(codes::ARGUMENTS, place, "there is no template on messages in these rules");
            Err(finding
                .with_note("the traces are of messages, which templates on events are for")
                .with_hint("begin with `use \"same.dl\"`, which has those that are shipped")
                .into())
        }
        Some(rules) => Ok(Arc::new(rules)),
        None => Err(Diagnostics(findings)),
    }
}

/// A file by the name that findings show, and what it says.
pub type Text = (Arc<str>, Arc<str>);

/// The text of a rule file. Those that are shipped but not loaded by default go by the names under which `use` finds them.
pub fn text(file: &Path) -> Result<Text, Diagnostic> {
    let name = file.to_string_lossy();
    let shipped = || shipped_text(&name).or_else(|| same::rules::shipped_text(&name)).or_else(|| standard::text(&name));
    let text = input::text(file).map(Arc::from).or_else(|finding| shipped().ok_or(finding))?;
    Ok((input::shown(file), text))
}

/// The texts of rule files.
pub fn texts(files: &[PathBuf]) -> Result<Vec<Text>, Diagnostics> {
    Diagnostics::gather(files.iter().map(|file| text(file)))
}

/// Gives the texts of the shipped files and of these to a listener.
fn tell(texts: &[Text], source: &mut dyn FnMut(Arc<str>, Arc<str>)) {
    for (name, text) in SHIPPED {
        source(name.into(), text.into());
        source(format!("rules/{name}").into(), text.into());
    }
    for name in ["same.dl", same::rules::SHIPPED_NAME] {
        source(name.into(), same::rules::SHIPPED.into());
    }
    for (name, text) in texts {
        source(Arc::clone(name), Arc::clone(text));
    }
}

/// Checks rule files as they are loaded together. All texts that findings may point into go to the sources.
pub fn check(files: &[PathBuf], sources: &mut Sources) -> Result<Checked, Diagnostics> {
    for (name, text) in standard::FILES {
        sources.insert(name.into(), text.into());
    }
    let texts = texts(files)?;
    tell(&texts, &mut |file, text| sources.insert(file, text));
    let beside = Beside::of(files);
    let checked = authoring::check(&texts, &|name| beside.text(name));
    beside.read().into_iter().for_each(|(name, text)| sources.insert(name, text));
    Ok(checked)
}

/// Findings about the rules of a program without what its comments allow.
pub fn not_allowed(program: &Program, findings: &[Diagnostic]) -> Vec<Diagnostic> {
    allow::without_allowed(program.files.iter().map(|file| (&file.name, &file.text)), findings.to_vec())
}
