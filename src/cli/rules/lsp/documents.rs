//! The rule files that an editor has open, and those on the disk that they use.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use dyelog::authoring::language::Read;
use dyelog::authoring::{self, Checked};
use dyelog::datalog::syntax::MAX_BYTES;
use lsp_types::{Range as Between, TextDocumentContentChangeEvent, Uri};

use super::lines::Lines;

/// How much text may be open at once, in bytes.
const MOST: usize = 256 << 20;
/// How many documents may be open at once.
const MANY: usize = 10_000;

/// A document.
pub struct Document {
    pub uri: Uri,
    /// Where it lies, where it is a file.
    pub path: Option<PathBuf>,
    /// What findings call it.
    pub name: Arc<str>,
    pub text: Arc<str>,
    pub version: i32,
    pub lines: Lines,
    /// Whether it, or what it uses, has changed since it was checked.
    pub dirty: bool,
    /// The files on the disk that it used when it was checked, with when they were changed; none where there is no such file.
    used: Vec<(PathBuf, Option<SystemTime>)>,
}

/// All that are open.
#[derive(Default)]
pub struct Documents {
    open: BTreeMap<String, Document>,
}

impl Documents {
    /// Takes in a document; refuses one that is too much.
    pub fn open(&mut self, uri: Uri, version: i32, text: String) -> Result<(), String> {
        let others = self.open.values().filter(|other| other.uri != uri).map(|other| other.text.len()).sum::<usize>();
        if others + text.len() > MOST || self.open.len() >= MANY {
            return Err(format!("{} is not opened: too much is open already", uri.as_str()));
        }
        let path = path_of(&uri);
        let name = path.as_ref().map_or_else(|| uri.as_str().to_owned(), |path| path.display().to_string());
        let lines = Lines::of(&text);
        let (text, name) = (text.into(), name.into());
        let key = uri.as_str().to_owned();
        if let Some(path) = &path {
            self.touch(path);
        }
        let document = Document { path, name, text, version, lines, dirty: true, used: Vec::new(), uri };
        self.open.insert(key, document);
        Ok(())
    }

    /// Changes a document, one change after the other.
    pub fn change(
        &mut self,
        uri: &Uri,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
    ) -> Result<(), String> {
        let Some(document) = self.open.get_mut(uri.as_str()) else { return Ok(()) };
        for change in changes {
            let text = match change.range {
                None => change.text,
                Some(range) => {
                    let start = document.lines.byte(&document.text, range.start);
                    let end = document.lines.byte(&document.text, range.end).max(start);
                    format!("{}{}{}", &document.text[..start], change.text, &document.text[end..])
                }
            };
            if text.len() > MOST {
                return Err(format!("{} has grown too long", uri.as_str()));
            }
            document.lines = Lines::of(&text);
            document.text = text.into();
        }
        (document.version, document.dirty) = (version, true);
        if let Some(path) = document.path.clone() {
            self.touch(&path);
        }
        Ok(())
    }

    /// Forgets a document: what uses it reads the file again.
    pub fn close(&mut self, uri: &Uri) {
        if let Some(Document { path: Some(path), .. }) = self.open.remove(uri.as_str()) {
            self.touch(&path);
        }
    }

    /// A document by its name in the protocol.
    pub fn get(&self, uri: &Uri) -> Option<&Document> {
        self.open.get(uri.as_str())
    }

    /// Marks the documents that use a file.
    pub fn touch(&mut self, path: &Path) {
        for document in self.open.values_mut() {
            document.dirty |= document.used.iter().any(|(used, _)| used == path);
        }
    }

    /// Marks the documents that use a file which has changed on the disk.
    pub fn look(&mut self) {
        for document in self.open.values_mut() {
            document.dirty |= document.used.iter().any(|(path, stamp)| stamp_of(path) != *stamp);
        }
    }

    /// The first document that has to be checked.
    pub fn next_dirty(&self) -> Option<Uri> {
        self.open.values().find(|document| document.dirty).map(|document| document.uri.clone())
    }

    /// Checks a document, as the command line checks its file.
    pub fn check(&mut self, uri: &Uri) -> Option<Checked> {
        let document = self.get(uri)?;
        let used = RefCell::default();
        let file = (Arc::clone(&document.name), Arc::clone(&document.text));
        let checked = authoring::check(&[file], &|name| self.beside(document, name, &used));
        let document = self.open.get_mut(uri.as_str())?;
        document.used = used.into_inner();
        document.dirty = false;
        Some(checked)
    }

    /// Reads a document, to answer questions about what stands in it.
    pub fn read(&self, document: &Document) -> Read {
        Read::new(&document.name, &document.text, &|name| self.beside(document, name, &RefCell::default()))
    }

    /// The positions of some bytes of a file, open or not.
    pub fn range_in(&self, path: &Path, bytes: Range<usize>) -> Option<Between> {
        let open = self.open.values().find(|other| other.path.as_deref() == Some(path));
        match open {
            Some(other) => Some(other.lines.between(&other.text, bytes)),
            None => text_of(path).map(|text| Lines::of(&text).between(&text, bytes)),
        }
    }

    /// Where a file lies that a document uses.
    pub fn path_beside(document: &Document, name: &str) -> Option<PathBuf> {
        Some(plain(&document.path.as_ref()?.parent()?.join(name)))
    }

    /// The text of a file that a document uses: as it is being written, where it is open.
    fn beside(
        &self,
        document: &Document,
        name: &str,
        used: &RefCell<Vec<(PathBuf, Option<SystemTime>)>>,
    ) -> Option<Arc<str>> {
        let path = Self::path_beside(document, name)?;
        let open = self.open.values().find(|other| other.path.as_deref() == Some(&path));
        used.borrow_mut().push((path.clone(), stamp_of(&path)));
        match open {
            Some(other) => Some(Arc::clone(&other.text)),
            None => text_of(&path),
        }
    }
}

/// The text of a rule file on the disk.
pub fn text_of(path: &Path) -> Option<Arc<str>> {
    let readable = |file: fs::Metadata| file.is_file() && file.len() <= MAX_BYTES as u64;
    if fs::metadata(path).is_ok_and(readable) { fs::read_to_string(path).ok().map(Arc::from) } else { None }
}

fn stamp_of(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// A path without `.` and `..`, as far as it names its folders.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// The path that a `file:` name stands for.
pub fn path_of(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_str().strip_prefix("file://")?;
    // A host may stand there, and means nothing.
    let path = &rest[rest.find('/')?..];
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.bytes();
    while let Some(byte) = left.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(left.next())?, digit(left.next())?);
        bytes.push((high * 16 + low) as u8);
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))?;
    // `/C:/rules` is a path of a drive.
    let drive = matches!(text.as_bytes(), [b'/', letter, b':', ..] if letter.is_ascii_alphabetic());
    Some(plain(Path::new(if drive && cfg!(windows) { &text[1..] } else { &text })))
}

/// The `file:` name of a path.
pub fn uri_of(path: &Path) -> Option<Uri> {
    let text = path.to_str()?;
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let mut uri = String::from("file://");
    if !text.starts_with('/') {
        uri.push('/');
    }
    for byte in text.bytes() {
        if kept(byte) { uri.push(char::from(byte)) } else { uri.push_str(&format!("%{byte:02X}")) }
    }
    uri.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{path_of, uri_of};
    use std::path::Path;

    #[test]
    fn names_and_paths_are_turned_into_each_other() {
        let path = Path::new("/tmp/größe 1/a#b.dl");
        let uri = uri_of(path).expect("it is text");
        assert_eq!(uri.as_str(), "file:///tmp/gr%C3%B6%C3%9Fe%201/a%23b.dl");
        assert_eq!(path_of(&uri).as_deref(), Some(path));
        for (uri, path) in [
            ("file:///a/./b/../c.dl", Some("/a/c.dl")),
            ("file://host/a.dl", Some("/a.dl")),
            ("file:///a%2", None),
            ("file:///%ff", None),
            ("untitled:Untitled-1", None),
        ] {
            let Ok(uri) = uri.parse() else { continue };
            assert_eq!(path_of(&uri).as_deref(), path.map(Path::new), "{uri:?}");
        }
    }
}
