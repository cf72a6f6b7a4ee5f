use std::sync::Arc;

use bytes::Bytes;

use crate::memory::{BufferPool, ConnShare, ReadBuffer, STANDARD_BYTES, Turn};

/// Bytes of a frame's length.
const LENGTH_BYTES: usize = 4;
/// A request header has at least api key, version and correlation id.
const FRAME_BYTES_MIN: usize = 8;
/// Frames beyond this are read to their exact end, so that no tail has to be copied.
const LARGE_FRAME_BYTES: usize = 16 * 1024;
/// An incomplete frame shorter than this moves to a small buffer of its own.
const SMALL_BYTES: usize = STANDARD_BYTES / 8;

/// Cuts a connection's bytes into frames.
///
/// The owner, in this order: (1) takes whole frames by [`Frames::next`] until there is none;
/// (2) calls [`Frames::prepare`] when the socket is readable, reads into the buffer once; (3) calls
/// [`Frames::filled`]. Memory follows the bytes received: a declared length reserves nothing.
#[derive(Debug)]
pub(crate) struct Frames {
    pool: Arc<BufferPool>,
    share: Arc<ConnShare>,
    frame_bytes_max: usize,
    /// Whole frames that were not taken yet, lengths included.
    whole: Bytes,
    /// The start of a frame that is not whole yet.
    partial: Option<ReadBuffer>,
    /// What is wrong with the bytes after `whole`.
    broken: Option<FrameError>,
}

/// Why a connection's bytes are no frames. The connection is closed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// B-01, B-02.
    #[error("a frame of {0} bytes, shorter than a request header")]
    TooShort(i32),
    /// B-03.
    #[error("a frame of {length} bytes is above socket.request.max.bytes{}", hint(*length))]
    TooLong {
        /// The declared length.
        length: i32,
    },
}

/// What [`Frames::prepare`] says.
#[derive(Debug)]
pub(crate) enum Prepared<'a> {
    /// Read at most `usize` bytes to the end of the buffer.
    Read(&'a mut Vec<u8>, usize),
    /// The budget is used up: wait for it.
    NoMemory,
}

impl Frames {
    /// A reader of frames up to `frame_bytes_max` bytes (`socket.request.max.bytes`).
    pub(crate) fn new(
        pool: Arc<BufferPool>,
        share: Arc<ConnShare>,
        frame_bytes_max: usize,
    ) -> Self {
        let whole = Bytes::new();
        Self {
            pool,
            share,
            frame_bytes_max,
            whole,
            partial: None,
            broken: None,
        }
    }

    /// The next whole frame without its length.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, FrameError> {
        if self.whole.is_empty() {
            return self.broken.map_or(Ok(None), Err);
        }
        let length = declared(&self.whole).and_then(|length| usize::try_from(length).ok());
        let end = LENGTH_BYTES + length.expect("`whole` holds checked frames only");
        let frame = self.whole.split_to(end).slice(LENGTH_BYTES..);
        Ok(Some(frame))
    }

    /// Whether [`Frames::next`] has something to say.
    pub(crate) fn has_next(&self) -> bool {
        !self.whole.is_empty() || self.broken.is_some()
    }

    /// Bytes received of a frame that is not whole yet.
    pub(crate) fn partial_bytes(&self) -> usize {
        self.partial
            .as_ref()
            .map_or(0, |partial| partial.as_ref().len())
    }

    /// Memory held for a frame that is not whole yet, in bytes.
    pub(crate) fn partial_held(&self) -> usize {
        self.partial.as_ref().map_or(0, ReadBuffer::capacity)
    }

    /// Gives the buffer to read into, and how much.
    pub(crate) fn prepare(&mut self) -> Prepared<'_> {
        assert!(!self.has_next(), "read while whole frames wait");
        let length = self
            .partial
            .as_ref()
            .and_then(|partial| declared(partial.as_ref()));
        let frame = length.and_then(|length| usize::try_from(length).ok());
        // The frame's end and the next frame's length, when a frame is under way.
        let end = frame.map(|frame| LENGTH_BYTES + frame + LENGTH_BYTES);
        if !self.make_room(end) {
            return Prepared::NoMemory;
        }
        let Some(buffer) = self.partial.as_mut() else {
            return Prepared::NoMemory;
        };
        let (len, capacity) = (buffer.as_ref().len(), buffer.capacity());
        let until = match end {
            Some(end) if end > LARGE_FRAME_BYTES => end.min(capacity),
            _ => capacity,
        };
        assert!(until > len, "no room to read: {len} of {until} bytes");
        Prepared::Read(buffer.bytes_mut(), until - len)
    }

    /// Looks at what was read.
    pub(crate) fn filled(&mut self) {
        let Some(mut buffer) = self.partial.take() else {
            return;
        };
        let (end, broken) = self.whole_frames(buffer.as_ref());
        self.broken = broken;
        let tail = buffer.as_ref().get(end..).unwrap_or_default();
        if end == 0 {
            if tail.is_empty() || broken.is_some() {
                return;
            }
            // An idle or slow connection must not keep a big buffer.
            let small = tail.len() < SMALL_BYTES && buffer.capacity() > 4 * SMALL_BYTES;
            self.partial = if small { self.copy_of(tail) } else { None }.or(Some(buffer));
            return;
        }
        if !tail.is_empty() && broken.is_none() {
            self.partial = self.copy_of(tail);
            if self.partial.is_none() {
                // No memory for the tail: it goes first-come on the buffer that is held already.
                self.whole = Bytes::copy_from_slice(buffer.as_ref().get(..end).unwrap_or_default());
                buffer.bytes_mut().drain(..end);
                self.partial = Some(buffer);
                return;
            }
        }
        self.whole = Bytes::from_owner(buffer).slice(..end);
    }

    /// Asks for a wake-up of the connection when the budget has room again.
    pub(crate) fn wait_for_memory(&self) {
        self.pool.memory().wait(&self.share);
    }

    /// Whether a connection waits for memory.
    pub(crate) fn is_memory_short(&self) -> bool {
        self.pool.memory().is_short()
    }

    /// Drops the buffer of an empty read.
    pub(crate) fn release_idle(&mut self) {
        if self
            .partial
            .as_ref()
            .is_some_and(|partial| partial.as_ref().is_empty())
        {
            self.partial = None;
        }
    }

    /// Makes `partial` a buffer with room for at least one byte. `end` is where the frame under
    /// way ends. Whether the budget allowed it.
    fn make_room(&mut self, end: Option<usize>) -> bool {
        let Some(partial) = self.partial.as_mut() else {
            // Nobody draws beyond the budget before it is known for how much.
            self.partial = self.pool.take_within(&self.share, STANDARD_BYTES);
            if self.partial.is_none() && self.share.used() == 0 {
                self.partial = Some(self.pool.take_few(&self.share));
            }
            if self.partial.is_none() {
                self.partial = self.pool.take(&self.share, STANDARD_BYTES, Turn::Large);
            }
            return self.partial.is_some();
        };
        let (len, capacity) = (partial.as_ref().len(), partial.capacity());
        if capacity < STANDARD_BYTES {
            let is_usual = end.is_some_and(|end| end <= STANDARD_BYTES);
            let turn = if is_usual { Turn::Usual } else { Turn::Large };
            let standard = if len < capacity {
                self.pool.take_within(&self.share, STANDARD_BYTES)
            } else {
                self.pool.take(&self.share, STANDARD_BYTES, turn)
            };
            let Some(mut standard) = standard else {
                return len < capacity;
            };
            standard.bytes_mut().extend_from_slice(partial.as_ref());
            *partial = standard;
            return true;
        }
        if len < capacity {
            return true;
        }
        // Four times what was received so far, never more than the frame needs.
        let wanted = capacity.saturating_mul(4);
        partial.grow_to(end.map_or(wanted, |end| wanted.min(end)))
    }

    fn copy_of(&self, tail: &[u8]) -> Option<ReadBuffer> {
        self.pool.copy(&self.share, tail)
    }

    /// Where the last whole frame in `bytes` ends, and what is wrong with the frame after it.
    fn whole_frames(&self, bytes: &[u8]) -> (usize, Option<FrameError>) {
        let mut end = 0;
        loop {
            let rest = bytes.get(end..).unwrap_or_default();
            let Some(length) = declared(rest) else {
                return (end, None);
            };
            let Some(frame) = usize::try_from(length)
                .ok()
                .filter(|&it| it >= FRAME_BYTES_MIN)
            else {
                return (end, Some(FrameError::TooShort(length)));
            };
            if frame > self.frame_bytes_max {
                return (end, Some(FrameError::TooLong { length }));
            }
            if rest.len() < LENGTH_BYTES + frame {
                return (end, None);
            }
            end += LENGTH_BYTES + frame;
        }
    }
}

fn declared(bytes: &[u8]) -> Option<i32> {
    bytes
        .first_chunk::<LENGTH_BYTES>()
        .map(|length| i32::from_be_bytes(*length))
}

/// What a senseless length looks like when it is read as text or as a TLS record.
const fn hint(length: i32) -> &'static str {
    match length.to_be_bytes() {
        [0x16, 0x03, ..] => ": likely a TLS client on a plaintext listener",
        [b'G', b'E', b'T', b' ']
        | [b'P', b'O', b'S', b'T']
        | [b'P', b'U', b'T', b' ']
        | [b'H', b'E', b'A', b'D']
        | [b'O', b'P', b'T', b'I']
        | [b'D', b'E', b'L', b'E']
        | [b'C', b'O', b'N', b'N']
        | [b'P', b'R', b'I', b' '] => ": likely an HTTP client",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::InboundMemory;

    fn frames(limit: u64) -> Frames {
        let pool = BufferPool::new(InboundMemory::new(limit), 1 << 20);
        Frames::new(pool, Arc::default(), 104_857_600)
    }

    /// Feeds `bytes` in reads of at most `step` bytes; gives the frames.
    fn feed(frames: &mut Frames, mut bytes: &[u8], step: usize) -> Vec<Bytes> {
        let mut got = Vec::new();
        while !bytes.is_empty() {
            let Prepared::Read(buffer, room) = frames.prepare() else {
                panic!("no memory")
            };
            let (now, later) = bytes.split_at(room.min(step).min(bytes.len()));
            buffer.extend_from_slice(now);
            bytes = later;
            frames.filled();
            while let Some(frame) = frames.next().expect("good frames") {
                got.push(frame);
            }
        }
        got
    }

    fn frame(len: usize) -> Vec<u8> {
        let length = u32::try_from(len).expect("small").to_be_bytes();
        length
            .into_iter()
            .chain((0_u8..251).cycle().take(len))
            .collect()
    }

    #[test]
    fn frames_come_out_whole_whatever_the_reads() {
        let lens = [8, 20, 70_000, 9, 300_000, 16_384, 8];
        let bytes: Vec<u8> = lens.iter().flat_map(|&len| frame(len)).collect();
        for step in [1, 3, 4, 5, 1000, 65_536, usize::MAX] {
            let mut frames = frames(64 << 20);
            let got = feed(&mut frames, &bytes, step);
            assert_eq!(
                got.iter().map(Bytes::len).collect::<Vec<_>>(),
                lens,
                "step {step}"
            );
            assert!(
                got.iter()
                    .zip(lens)
                    .all(|(got, len)| got[..] == frame(len)[4..])
            );
            drop(got);
            assert_eq!(
                frames.pool.memory().used(),
                0,
                "an idle connection holds no buffer"
            );
        }
    }

    #[test]
    fn b_01_b_02_b_03_bad_lengths_close() {
        for (bytes, says) in [
            (&(-1i32).to_be_bytes(), "shorter"),
            (&i32::MIN.to_be_bytes(), "shorter"),
            (&0i32.to_be_bytes(), "shorter"),
            (&7i32.to_be_bytes(), "shorter"),
            (&104_857_601i32.to_be_bytes(), "socket.request.max.bytes"),
            (&[0x16, 3, 1, 0], "likely a TLS client"),
            (b"GET ", "likely an HTTP client"),
        ] {
            let mut frames = frames(1 << 20);
            let Prepared::Read(buffer, _) = frames.prepare() else {
                panic!("no memory")
            };
            buffer.extend_from_slice(&frame(8));
            buffer.extend_from_slice(bytes);
            frames.filled();
            assert_eq!(
                frames.next().expect("the good frame").map(|it| it.len()),
                Some(8)
            );
            let error = frames.next().expect_err("closes").to_string();
            assert!(error.contains(says), "{error}");
            assert!(frames.pool.memory().used() <= STANDARD_BYTES as u64);
        }
    }

    #[test]
    fn b_05_a_declared_length_reserves_nothing() {
        let mut frames = frames(128 << 20);
        let declared = 100_000_000u32.to_be_bytes();
        feed(&mut frames, &declared, usize::MAX);
        feed(&mut frames, b"x", usize::MAX);
        assert!(
            frames.pool.memory().used() <= 64,
            "{}",
            frames.pool.memory().used()
        );
        feed(&mut frames, &vec![0; 1_000_000], usize::MAX);
        assert!(
            frames.pool.memory().used() <= 4_400_000,
            "{}",
            frames.pool.memory().used()
        );
    }

    #[test]
    fn large_frames_are_read_to_their_end() {
        let mut frames = frames(64 << 20);
        let bytes: Vec<u8> = (0..4).flat_map(|_| frame(65_700)).collect();
        let Prepared::Read(buffer, room) = frames.prepare() else {
            panic!("no memory")
        };
        buffer.extend_from_slice(&bytes[..room]);
        frames.filled();
        while frames.next().expect("good").is_some() {}
        let Prepared::Read(buffer, more) = frames.prepare() else {
            panic!("no memory")
        };
        buffer.extend_from_slice(&bytes[room..room + more]);
        frames.filled();
        assert_eq!(
            frames.next().expect("good").map(|it| it.len()),
            Some(65_700)
        );
        assert_eq!(
            frames.partial_bytes(),
            4,
            "only the next length was read ahead"
        );
    }

    #[test]
    fn re_01_small_requests_are_read_without_memory() {
        let mut frames = frames(10);
        let other = Arc::default();
        let _large = frames
            .pool
            .take(&other, 1 << 20, Turn::Large)
            .expect("the overdraft");
        let usual = frames
            .pool
            .take(&other, STANDARD_BYTES, Turn::Usual)
            .expect("its turn");
        for len in [100, 3000, 4000] {
            assert_eq!(feed(&mut frames, &frame(len), 700).len(), 1);
        }
        let both = (1 << 20) + usual.capacity() as u64;
        assert_eq!(frames.pool.memory().used(), both);
        let large = frame(100_000);
        let Prepared::Read(buffer, room) = frames.prepare() else {
            panic!("no memory")
        };
        buffer.extend_from_slice(&large[..room]);
        frames.filled();
        assert!(
            matches!(frames.prepare(), Prepared::NoMemory),
            "this one has to wait"
        );
    }

    #[test]
    fn without_memory_reads_pause_once_a_few_bytes_are_read() {
        let mut frames = frames(10);
        let other = Arc::default();
        let turns = [Turn::Usual, Turn::Large];
        let over = turns.map(|turn| frames.pool.take(&other, 64, turn));
        assert!(over.iter().all(Option::is_some), "both are taken");
        let bytes = frame(5_000);
        let Prepared::Read(buffer, room) = frames.prepare() else {
            panic!("a few bytes are always there")
        };
        buffer.extend_from_slice(&bytes[..room]);
        frames.filled();
        assert!(matches!(frames.prepare(), Prepared::NoMemory));
        drop(over);
        assert!(matches!(frames.prepare(), Prepared::Read(..)));
    }

    #[test]
    fn re_01_only_frames_known_to_be_usual_take_their_turn() {
        let mut both = [5_000, 500_000].map(|len| (frames(10), frame(len)));
        for (frames, bytes) in &mut both {
            let other = Arc::default();
            let _large = frames.pool.take(&other, 64, Turn::Large);
            let Prepared::Read(buffer, room) = frames.prepare() else {
                panic!("a few bytes are always there")
            };
            buffer.extend_from_slice(&bytes[..room]);
            frames.filled();
            let may_go_on = matches!(frames.prepare(), Prepared::Read(..));
            assert_eq!(may_go_on, bytes.len() < STANDARD_BYTES);
        }
    }
}
