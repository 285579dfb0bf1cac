//! Bodies of requests, within limits.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use flate2::bufread::GzDecoder;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::{LARGEST, Refusal};
use crate::buffer::Buffer;

/// How many bytes of bodies are in memory together.
pub const TOGETHER: usize = 56 << 20;
/// The unit in which memory is handed out.
const UNIT: usize = 16 << 10;
/// How large a small body is, and what large ones leave to such.
const SMALL: usize = 1 << 20;
pub const FOR_SMALL: usize = 2 << 20;
/// How many bodies are unpacked at a time: each thread that does so keeps memory that no other one gets.
const UNPACKERS: usize = 2;
/// How many times as large as packed a body is taken to become, before it is seen.
const TYPICAL: usize = 32;
/// Of how many parts a packed body may be, however small they are: each takes time, and one without content adds nothing that is counted.
const PARTS: usize = 1024;
/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Memory for bodies, and turns to unpack them.
#[derive(Clone)]
pub struct Budget {
    memory: Arc<Semaphore>,
    unpackers: Arc<Semaphore>,
}

impl Default for Budget {
    fn default() -> Self {
        let of = |permits| Arc::new(Semaphore::new(permits));
        Self { memory: of(TOGETHER / UNIT), unpackers: of(UNPACKERS) }
    }
}

/// Memory that one request has.
pub struct Share {
    budget: Budget,
    held: Option<OwnedSemaphorePermit>,
    room: usize,
}

impl Share {
    /// Takes more, where there is more.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.reserve(bytes)?;
        self.room -= bytes;
        Ok(())
    }

    /// Takes what will be needed later.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), Refusal> {
        if bytes > self.room {
            let units = (bytes - self.room).div_ceil(UNIT);
            let busy = || Refusal::Busy("too many requests are in work".to_owned());
            let memory = &self.budget.memory;
            let all = units + self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            if all > SMALL / UNIT && memory.available_permits() < units + FOR_SMALL / UNIT {
                return Err(busy());
            }
            let permit = Arc::clone(memory).try_acquire_many_owned(units as u32).map_err(|_| busy())?;
            match &mut self.held {
                Some(held) => held.merge(permit),
                held => *held = Some(permit),
            }
            self.room += units * UNIT;
        }
        Ok(())
    }
}

impl Budget {
    /// Reads a body. Where it is refused, its memory is free again before the rest of it is read.
    pub async fn read(&self, mut body: Body, declared: Option<u64>) -> Result<(Bytes, Share), Refusal> {
        if declared.is_some_and(|length| length > LARGEST as u64) {
            return Err(Refusal::TooLarge);
        }
        let mut share = Share { budget: self.clone(), held: None, room: 0 };
        let bytes = timeout(PATIENCE, all(&mut body, &mut share)).await.map_err(|_| Refusal::Incomplete)??;
        Ok((bytes, share))
    }
}

async fn all(body: &mut Body, share: &mut Share) -> Result<Bytes, Refusal> {
    let mut bytes = Buffer::up_to(LARGEST);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::Incomplete)?;
        let Ok(data) = frame.into_data() else { continue };
        add(&mut bytes, &data, share)?;
    }
    Ok(bytes.freeze())
}

/// Adds a piece, where it may be and there is memory.
pub(super) fn add(bytes: &mut Buffer, piece: &[u8], share: &mut Share) -> Result<(), Refusal> {
    if bytes.len() + piece.len() > LARGEST {
        return Err(Refusal::TooLarge);
    }
    share.grow(bytes.needs(piece.len()))?;
    bytes.extend(piece).map_err(|error| Refusal::Busy(format!("there is no memory: {error}")))
}

/// Unpacks gzip.
pub async fn unpacked(packed: Bytes, mut share: Share) -> Result<(Bytes, Share), Refusal> {
    let stops = || Refusal::Busy("the server stops".to_owned());
    let turn = timeout(PATIENCE, Arc::clone(&share.budget.unpackers).acquire_owned());
    let busy = |_| Refusal::Busy("too many requests are in work".to_owned());
    let turn = turn.await.map_err(busy)?.map_err(|_| stops())?;
    let unpack = move || {
        let _turn = turn;
        // What will not fit is not begun.
        share.reserve(expected(&packed))?;
        let (mut bytes, mut chunk) = (Buffer::up_to(LARGEST), vec![0; UNIT]);
        let (mut rest, mut parts) = (&packed[..], 0);
        while parts == 0 || !rest.is_empty() {
            parts += 1;
            if parts > PARTS {
                return Err(Refusal::Malformed(format!("the body has more than {PARTS} parts")));
            }
            let mut input = GzDecoder::new(rest);
            loop {
                let read = input
                    .read(&mut chunk)
                    .map_err(|error| Refusal::Malformed(format!("the body cannot be unpacked: {error}")))?;
                if read == 0 {
                    break;
                }
                add(&mut bytes, &chunk[..read], &mut share)?;
            }
            rest = input.into_inner();
        }
        Ok((bytes.freeze(), share))
    };
    tokio::task::spawn_blocking(unpack).await.map_err(|_| stops())?
}

/// How large a gzip file says at its end that its content is: RFC 1952, §2.3.1. It may lie, and what is packed in parts has more.
fn expected(packed: &[u8]) -> usize {
    let told = packed.last_chunk().map_or(0, |end| u32::from_le_bytes(*end) as usize);
    told.min(LARGEST).min(packed.len().saturating_mul(TYPICAL))
}
