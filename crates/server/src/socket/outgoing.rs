use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Buf as _, Bytes};
use highwater_disk::{DiskError, DiskFile as _, FileFile};
use highwater_node::{Piece, Region};
use rustix::net::{SendAncillaryBuffer, SendFlags};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Regions below this are read into memory and sent with their neighbours, in bytes.
const COPIED_BYTES_MAX: u64 = 16 * 1024;
/// What is probed, warmed and sent of a region at a time, in bytes.
const CHUNK_BYTES: u64 = 1024 * 1024;
/// After this many bytes other connections get their turn.
const TURN_BYTES: u64 = 2 * 1024 * 1024;
/// Short answers wait for one another up to so many bytes.
const SHORT_BYTES_MAX: u64 = 16 * 1024;
/// Runs of bytes in one system call.
const SLICES_MAX: usize = 32;

/// What waits to be sent on one connection: bytes, and regions of files that are read only now.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pieces: VecDeque<Out>,
    /// Bytes in `pieces`.
    left: u64,
    /// Bytes sent so far.
    sent: u64,
}

#[derive(Debug)]
enum Out {
    Bytes(Bytes),
    Region {
        region: Region<FileFile>,
        /// Bytes from its position on that are known to be in the page cache.
        warm: u64,
    },
}

/// How far sending came.
#[derive(Debug)]
pub(crate) enum Sent {
    /// All is sent.
    All,
    /// The socket takes no more for now.
    Blocked,
    /// Others should have their turn; there is more to send.
    Yield,
    /// These bytes have to be read from the disk first, then [`Outgoing::warmed`] is called.
    Cold(Region<FileFile>),
}

/// Why the connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The peer is gone.
    #[error("{0}")]
    Socket(#[from] io::Error),
    /// The file was cut after the answer was made (KAFKA-18723).
    #[error("a file was cut below an answer that was to be sent from it")]
    Short,
    /// The disk refused.
    #[error("{0}")]
    Disk(#[from] DiskError),
}

impl Outgoing {
    /// Adds one frame.
    pub(crate) fn push(&mut self, frame: Vec<Piece<FileFile>>) {
        for piece in frame {
            if piece.is_empty() {
                continue;
            }
            self.left += piece.len();
            self.pieces.push_back(match piece {
                Piece::Bytes(bytes) => Out::Bytes(bytes),
                Piece::Region(region) => Out::Region { region, warm: 0 },
            });
        }
    }

    /// Bytes sent since the connection began.
    pub(crate) const fn sent_bytes(&self) -> u64 {
        self.sent
    }

    /// Whether there is nothing to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether so little waits that the next answer may join it in one system call.
    pub(crate) const fn is_short(&self) -> bool {
        self.left < SHORT_BYTES_MAX
    }

    /// Sends what the socket takes, without ever waiting for socket or disk.
    pub(crate) fn send(&mut self, socket: &TcpStream) -> Result<Sent, SendError> {
        let mut turn = 0;
        while let Some(front) = self.pieces.front() {
            if turn >= TURN_BYTES {
                return Ok(Sent::Yield);
            }
            let sent = match front {
                Out::Region { region, .. } if region.len >= COPIED_BYTES_MAX => {
                    if let Some(cold) = self.cold()? {
                        return Ok(Sent::Cold(cold));
                    }
                    self.send_region(socket)
                }
                Out::Bytes(_) | Out::Region { .. } => {
                    if let Some(cold) = self.read_small_regions()? {
                        return Ok(Sent::Cold(cold));
                    }
                    self.send_bytes(socket)
                }
            };
            match sent {
                Ok(bytes) => {
                    turn += bytes;
                    self.sent += bytes;
                    self.left -= bytes;
                }
                Err(SendError::Socket(why)) if why.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Sent::Blocked);
                }
                Err(why) => return Err(why),
            }
        }
        Ok(Sent::All)
    }

    /// The front region's cold bytes were read once; they are sent without another look.
    pub(crate) fn warmed(&mut self) {
        for out in &mut self.pieces {
            if let Out::Region { region, warm } = out {
                *warm = region.len.min(CHUNK_BYTES);
                return;
            }
        }
    }

    /// Reads the small regions among the front pieces into memory, up to the first large one.
    /// Gives the first that is cold.
    fn read_small_regions(&mut self) -> Result<Option<Region<FileFile>>, SendError> {
        for at in 0..self.pieces.len().min(SLICES_MAX) {
            let Some(Out::Region { region, warm }) = self.pieces.get(at) else {
                continue;
            };
            if region.len >= COPIED_BYTES_MAX {
                break;
            }
            let Some(bytes) = read_small(region, *warm > 0)? else {
                // What comes before it can go now.
                let only = at == 0;
                return Ok(only.then(|| region.clone()));
            };
            if let Some(out) = self.pieces.get_mut(at) {
                *out = Out::Bytes(bytes);
            }
        }
        Ok(None)
    }

    /// Sends the run of bytes at the front in one call.
    fn send_bytes(&mut self, socket: &TcpStream) -> Result<u64, SendError> {
        let more = self.more_follows()?;
        let slices: Vec<IoSlice<'_>> = self
            .pieces
            .iter()
            .take(SLICES_MAX)
            .map_while(|out| match out {
                Out::Bytes(bytes) => Some(IoSlice::new(bytes)),
                Out::Region { .. } => None,
            })
            .collect();
        assert!(!slices.is_empty(), "a run of bytes is at the front");
        let flags = if more {
            SendFlags::NOSIGNAL | SendFlags::MORE
        } else {
            SendFlags::NOSIGNAL
        };
        let mut sent = socket.try_io(Interest::WRITABLE, || {
            let none = &mut SendAncillaryBuffer::default();
            Ok(rustix::net::sendmsg(socket, &slices, none, flags)?)
        })?;
        let total = sent as u64;
        while sent > 0 {
            let Some(Out::Bytes(bytes)) = self.pieces.front_mut() else {
                break;
            };
            let step = sent.min(bytes.len());
            bytes.advance(step);
            sent -= step;
            if bytes.is_empty() {
                self.pieces.pop_front();
            }
        }
        Ok(total)
    }

    /// Whether something can be sent right after the run of bytes at the front. A cold region
    /// cannot: its wait must not hold back the bytes.
    fn more_follows(&mut self) -> Result<bool, SendError> {
        let is_region = |out: &Out| matches!(out, Out::Region { .. });
        let run = self
            .pieces
            .iter()
            .position(is_region)
            .unwrap_or(self.pieces.len());
        if run >= SLICES_MAX {
            return Ok(self.pieces.len() > SLICES_MAX);
        }
        match self.pieces.get_mut(run) {
            Some(Out::Region { region, warm }) if region.len >= COPIED_BYTES_MAX => {
                probe(region, warm)?;
                Ok(*warm > 0)
            }
            Some(Out::Region { warm, .. }) => Ok(*warm > 0),
            Some(Out::Bytes(_)) | None => Ok(false),
        }
    }

    /// Looks whether the next chunk of the region at the front is in the page cache. Gives it when
    /// it is not.
    fn cold(&mut self) -> Result<Option<Region<FileFile>>, SendError> {
        let Some(Out::Region { region, warm }) = self.pieces.front_mut() else {
            return Ok(None);
        };
        probe(region, warm)?;
        let len = region.len.min(CHUNK_BYTES);
        Ok((*warm == 0).then(|| Region {
            len,
            ..region.clone()
        }))
    }

    /// Sends from the file at the front as far as it is warm.
    fn send_region(&mut self, socket: &TcpStream) -> Result<u64, SendError> {
        let Some(Out::Region { region, warm }) = self.pieces.front_mut() else {
            return Ok(0);
        };
        let count = usize::try_from(*warm).unwrap_or(usize::MAX);
        let mut position = region.position;
        let sent = socket.try_io(Interest::WRITABLE, || {
            Ok(rustix::fs::sendfile(
                socket,
                &*region.file,
                Some(&mut position),
                count,
            )?)
        })?;
        if sent == 0 {
            return Err(SendError::Short);
        }
        let sent = sent as u64;
        region.position += sent;
        region.len -= sent;
        *warm -= sent;
        if region.len == 0 {
            self.pieces.pop_front();
        }
        Ok(sent)
    }
}

/// Reads a cold region into the page cache. Blocks: only for job threads.
pub(crate) fn warm(region: &Region<FileFile>) {
    let mut position = region.position;
    let end = region.position + region.len;
    let mut buffer = vec![0; 128 * 1024];
    while position < end {
        // An error or the end of the file shows again when the region is sent.
        match region.file.read_at(position, &mut buffer) {
            Ok(read) if read > 0 => position += read as u64,
            Ok(_) | Err(_) => return,
        }
    }
}

/// Finds out how much of a region is warm, unless that is known.
fn probe(region: &Region<FileFile>, warm: &mut u64) -> Result<(), DiskError> {
    if *warm == 0 && is_warm(region)? {
        *warm = region.len.min(CHUNK_BYTES);
    }
    Ok(())
}

/// Whether the next chunk of a region is in the page cache, by its first and its last byte: pages
/// come in and leave in the order in which they were used, so that both ends speak for what lies
/// between them. A region that ends early counts as warm: sending it will tell.
fn is_warm(region: &Region<FileFile>) -> Result<bool, DiskError> {
    let last = region.position + region.len.clamp(1, CHUNK_BYTES) - 1;
    for at in [region.position, last] {
        if region.file.read_at_now(at, &mut [0])?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The bytes of a small region; `None` when they are cold. `may_wait`: it was warmed just now, so
/// a second miss is taken as it comes.
fn read_small(region: &Region<FileFile>, may_wait: bool) -> Result<Option<Bytes>, SendError> {
    let len = usize::try_from(region.len).map_err(|_| SendError::Short)?;
    let mut buffer = vec![0; len];
    let mut filled = 0;
    while filled < len {
        let rest = buffer.get_mut(filled..).unwrap_or_default();
        let at = region.position + filled as u64;
        let read = if may_wait {
            Some(region.file.read_at(at, rest)?)
        } else {
            region.file.read_at_now(at, rest)?
        };
        match read {
            None => return Ok(None),
            Some(0) => return Err(SendError::Short),
            Some(read) => filled += read,
        }
    }
    Ok(Some(buffer.into()))
}
