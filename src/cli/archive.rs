//! Files in archives, as inputs.

use std::io::{self, Read, Seek};
use std::sync::{Arc, Mutex, PoisonError};

use dyelog::pipeline::{Input, Reader};
use dyelog::trace::archive::{self, Kind, Listing, Member};
use dyelog::trace::unpacked;

/// How much tells an archive.
pub const HEAD: u64 = 512;

/// The files in an archive as inputs, in its order; `None` where what is opened is no archive, or cannot be read as one.
pub fn inputs<A: Read + Seek + Send + 'static>(
    name: &str,
    open: impl Fn() -> io::Result<A> + Send + Sync + 'static,
) -> Option<Vec<Input>> {
    let (listing, open): (Listing, Opener) = match Kind::of(&head(open().ok()?)?) {
        Some(Kind::Zip) => {
            let listing = archive::zip(&mut open().ok()?).ok()?;
            (listing, Arc::new(move |member| archive::open_zipped(open()?, member)))
        }
        Some(Kind::Tar) => streamed(open)?,
        None => {
            if Kind::of(&head(unpacked(open().ok()?).ok()?)?) != Some(Kind::Tar) {
                return None;
            }
            streamed(open)?
        }
    };
    let mut members = listing.members;
    members.retain(|member| !is_hidden(&member.name));
    let inputs = members.into_iter().map(|member| {
        let (open, shown, size) = (Arc::clone(&open), format!("{name}/{}", member.name), member.size);
        Input::opened_by(&shown, Some(size), move || open(&member)).found()
    });
    Some(inputs.collect())
}

/// Whether a file that begins so is an archive, packed as a whole or not.
pub fn is_archive(begin: &[u8]) -> bool {
    let is = |begin: &[u8]| Kind::of(&begin[..begin.len().min(HEAD as usize)]);
    let inner = || head(unpacked(begin).ok()?).and_then(|inner| is(&inner));
    is(begin).is_some() || inner() == Some(Kind::Tar)
}

type Opener = Arc<dyn Fn(&Member) -> io::Result<Reader> + Send + Sync>;

fn head(input: impl Read) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    input.take(HEAD).read_to_end(&mut head).ok()?;
    Some(head)
}

/// Whether a file or a folder that it is in is hidden, as in folders.
fn is_hidden(name: &str) -> bool {
    name.split('/').any(|part| part.starts_with('.') && part.len() > 1 || part == "__MACOSX")
}

/// A tar archive, packed as a whole or not.
fn streamed<A: Read + Send + 'static>(
    whole: impl Fn() -> io::Result<A> + Send + Sync + 'static,
) -> Option<(Listing, Opener)> {
    let listing = archive::tar(unpacked(whole().ok()?).ok()?).ok()?;
    let place: Arc<Mutex<Option<Stream>>> = Arc::default();
    let open = move |member: &Member| {
        let kept = place.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut stream = match kept {
            Some(kept) if kept.at <= member.offset => kept,
            _ => Stream { at: 0, input: unpacked(whole()?)? },
        };
        let skip = member.offset - stream.at;
        stream.at += io::copy(&mut stream.input.by_ref().take(skip), &mut io::sink())?;
        Ok(Box::new(Streamed { stream: Some(stream), left: member.size, place: Arc::clone(&place) }) as Reader)
    };
    Some((listing, Arc::new(open)))
}

/// A stream and how far it was read. Files that are read in their order take one stream, each from where the one before has left it.
struct Stream {
    at: u64,
    input: Reader,
}

/// One file of the archive.
struct Streamed {
    stream: Option<Stream>,
    left: u64,
    place: Arc<Mutex<Option<Stream>>>,
}

impl Read for Streamed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(stream) = &mut self.stream else { return Ok(0) };
        let read = stream.input.by_ref().take(self.left).read(buffer)?;
        self.left -= read as u64;
        stream.at += read as u64;
        Ok(read)
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = self.stream.take();
    }
}
