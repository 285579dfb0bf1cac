//! What a journal is written on: a folder, or memory that a test can crash.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Holds segments.
pub trait Medium: Clone + Send + 'static {
    /// A segment that is open.
    type Handle: Handle;

    /// Where the segments begin, in order.
    fn segments(&self) -> io::Result<Vec<u64>>;
    /// Opens a segment; makes an empty one where there is none.
    fn open(&self, start: u64) -> io::Result<Self::Handle>;
    /// Removes a segment.
    fn remove(&self, start: u64) -> io::Result<()>;
    /// The disk that segments lie on; `None` where nobody can tell.
    fn disk(&self) -> Option<Disk>;
}

/// A disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its size.
    pub size: u64,
    /// What is free of it for programs of this user.
    pub free: u64,
}

/// A segment that is open.
pub trait Handle: Send {
    /// Its length in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Reads at a place as many bytes as there are and fit; tells how many.
    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Writes at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Cuts it to a length.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Returns when all that was written is on disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// A folder of files.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A folder, which is made where it is not there.
    ///
    /// # Errors
    /// When it can be neither found nor made.
    pub fn new(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            make(path)?;
            // What is acknowledged must not go with the name of the folder when the power fails.
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            sync_folder(parent.unwrap_or(Path::new(".")))?;
        }
        Ok(Self(path.to_owned()))
    }

    fn file(&self, start: u64) -> PathBuf {
        self.0.join(format!("{start:020}.journal"))
    }
}

/// Makes a folder that nobody else may look into: requests are there as they came.
fn make(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Makes names of files last.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

impl Medium for Folder {
    type Handle = File;

    fn segments(&self) -> io::Result<Vec<u64>> {
        let mut starts = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let name = entry?.file_name();
            let start = name.to_str().and_then(|name| name.strip_suffix(".journal"));
            starts.extend(start.and_then(|text| text.parse::<u64>().ok()));
        }
        starts.sort_unstable();
        Ok(starts)
    }

    fn open(&self, start: u64) -> io::Result<File> {
        let path = self.file(start);
        let new = !path.exists();
        let file = OpenOptions::new().read(true).append(true).create(true).open(&path)?;
        if new && let Err(error) = sync_folder(&self.0) {
            // One that is there the next time counts as one whose name is on disk.
            fs::remove_file(&path)?;
            return Err(error);
        }
        Ok(file)
    }

    fn remove(&self, start: u64) -> io::Result<()> {
        fs::remove_file(self.file(start))
    }

    #[cfg(unix)]
    fn disk(&self) -> Option<Disk> {
        let told = rustix::fs::statvfs(&self.0).ok().filter(|told| told.f_blocks > 0)?;
        let bytes = |blocks: u64| blocks.saturating_mul(told.f_frsize);
        Some(Disk { size: bytes(told.f_blocks), free: bytes(told.f_bavail) })
    }

    #[cfg(not(unix))]
    fn disk(&self) -> Option<Disk> {
        None
    }
}

impl Handle for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.seek(SeekFrom::Start(at))?;
        let mut read = 0;
        while read < into.len() {
            match Read::read(self, &mut into[read..]) {
                Ok(0) => break,
                Ok(some) => read += some,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Memory in place of a disk. What was not synced is lost when it crashes.
#[derive(Clone, Default, Debug)]
pub struct Memory(Arc<Mutex<State>>);

#[derive(Clone, Default, Debug)]
struct State {
    segments: BTreeMap<u64, Segment>,
    /// How many more bytes fit, where that is limited.
    room: Option<usize>,
    /// The size of the disk that it stands for, where that is known.
    size: Option<u64>,
}

#[derive(Clone, Default, Debug)]
struct Segment {
    bytes: Vec<u8>,
    synced: usize,
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loses what was not synced.
    pub fn crash(&self) {
        self.state().segments.values_mut().for_each(|segment| segment.bytes.truncate(segment.synced));
    }

    /// Loses power: of what was not synced so many bytes of each segment are there, the last `garbled` of them others than were written.
    pub fn cut_power(&self, kept: usize, garbled: usize) {
        for segment in self.state().segments.values_mut() {
            let length = segment.bytes.len().min(segment.synced + kept);
            segment.bytes.truncate(length);
            let spoilt = garbled.min(length - segment.synced);
            segment.bytes[length - spoilt..].iter_mut().for_each(|byte| *byte ^= 0x5a);
            segment.synced = length;
        }
    }

    /// Another memory with the same content.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.state().clone())))
    }

    /// Cuts a segment to a length.
    pub fn cut(&self, start: u64, length: u64) {
        if let Some(segment) = self.state().segments.get_mut(&start) {
            segment.bytes.truncate(length as usize);
            segment.synced = segment.synced.min(length as usize);
        }
    }

    /// Damages a byte of a segment.
    pub fn flip(&self, start: u64, at: usize) {
        if let Some(segment) = self.state().segments.get_mut(&start) {
            segment.bytes[at] ^= 1;
        }
    }

    /// Stands for a disk of so many bytes.
    pub fn of_size(size: u64) -> Self {
        let memory = Self::default();
        memory.state().size = Some(size);
        memory
    }

    /// Has no room for more than so many bytes.
    pub fn fill_up_after(&self, room: usize) {
        self.state().room = Some(room);
    }
}

impl Medium for Memory {
    type Handle = MemoryHandle;

    fn segments(&self) -> io::Result<Vec<u64>> {
        Ok(self.state().segments.keys().copied().collect())
    }

    fn open(&self, start: u64) -> io::Result<MemoryHandle> {
        self.state().segments.entry(start).or_default();
        Ok(MemoryHandle { memory: self.clone(), start })
    }

    fn remove(&self, start: u64) -> io::Result<()> {
        self.state().segments.remove(&start);
        Ok(())
    }

    fn disk(&self) -> Option<Disk> {
        let state = self.state();
        let taken: usize = state.segments.values().map(|segment| segment.bytes.len()).sum();
        state.size.map(|size| Disk { size, free: size.saturating_sub(taken as u64) })
    }
}

/// A segment in memory.
#[derive(Debug)]
pub struct MemoryHandle {
    memory: Memory,
    start: u64,
}

impl MemoryHandle {
    fn with<T>(&self, act: impl FnOnce(&mut Segment, &mut Option<usize>) -> io::Result<T>) -> io::Result<T> {
        let state = &mut *self.memory.state();
        match state.segments.get_mut(&self.start) {
            Some(segment) => act(segment, &mut state.room),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Handle for MemoryHandle {
    fn length(&self) -> io::Result<u64> {
        self.with(|segment, _| Ok(segment.bytes.len() as u64))
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.with(|segment, _| {
            let some = segment.bytes.get(at as usize..).unwrap_or_default();
            let count = some.len().min(into.len());
            into[..count].copy_from_slice(&some[..count]);
            Ok(count)
        })
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.with(|segment, room| {
            let fits = room.map_or(bytes.len(), |room| room.min(bytes.len()));
            segment.bytes.extend(&bytes[..fits]);
            if let Some(room) = room {
                *room -= fits;
            }
            if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        })
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.with(|segment, _| {
            segment.bytes.truncate(length as usize);
            Ok(())
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.with(|segment, _| {
            segment.synced = segment.bytes.len();
            Ok(())
        })
    }
}
