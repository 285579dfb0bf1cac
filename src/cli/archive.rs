//! Files in archives, as inputs.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use dyelog::pipeline::{Input, Reader};
use dyelog::trace::archive::{self, Kind, Listing, Member};
use dyelog::trace::unpacked;

/// How much tells an archive.
const HEAD: u64 = 512;

/// The files in an archive as inputs, in its order; `None` where the file is no archive, or cannot be read as one.
pub fn inputs(path: &Path) -> Option<Vec<Input>> {
    let packed = head(File::open(path).ok()?)?;
    let name = path.display().to_string();
    let (listing, open): (Listing, Opener) = match Kind::of(&packed) {
        Some(Kind::Zip) => {
            let listing = archive::zip(&mut File::open(path).ok()?).ok()?;
            let own = path.to_owned();
            (listing, Arc::new(move |member| archive::open_zipped(File::open(&own)?, member)))
        }
        Some(Kind::Tar) => streamed(path)?,
        None => {
            let inner = head(unpacked(File::open(path).ok()?).ok()?)?;
            if Kind::of(&inner) != Some(Kind::Tar) {
                return None;
            }
            streamed(path)?
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
fn streamed(path: &Path) -> Option<(Listing, Opener)> {
    let listing = archive::tar(unpacked(File::open(path).ok()?).ok()?).ok()?;
    let own = path.to_owned();
    let place: Arc<Mutex<Option<Stream>>> = Arc::default();
    let open = move |member: &Member| {
        let kept = place.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut stream = match kept {
            Some(kept) if kept.at <= member.offset => kept,
            _ => Stream { at: 0, input: unpacked(File::open(&own)?)? },
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
