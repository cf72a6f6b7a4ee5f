use bytes::{Buf as _, Bytes, BytesMut};

/// Bytes of a frame's length.
const LENGTH_BYTES: usize = 4;
/// Room that a read has at least, in bytes.
const READ_BYTES: usize = 16 * 1024;
/// A buffer up to this size is kept for ever, in bytes.
const KEPT_BYTES: usize = 256 * 1024;
/// So many frames that need little of a big buffer in a row, and it goes.
const SMALL_FRAMES_MAX: u32 = 1_000;

/// Cuts what a peer sends into frames, without a copy: a frame shares the memory that was read
/// into. Once all frames are dropped, that memory is used again.
///
/// The owner, in this order: (1) reads into [`AnswerReader::buffer`], behind what is there;
/// (2) takes whole frames by [`AnswerReader::next_frame`] until there is none.
#[derive(Debug)]
pub struct AnswerReader {
    buffer: BytesMut,
    frame_bytes_max: usize,
    small_frames: u32,
}

/// A frame that is longer than any answer may be, or has a negative length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer sends a frame of {length} bytes")]
pub struct FrameTooLong {
    /// The declared length.
    pub length: i32,
}

impl AnswerReader {
    /// A reader of frames up to `frame_bytes_max` bytes.
    #[must_use]
    pub fn new(frame_bytes_max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            frame_bytes_max,
            small_frames: 0,
        }
    }

    /// What to read into, with room behind what is there already: for the rest of the frame under
    /// way, whose length [`AnswerReader::next_frame`] has checked.
    pub fn buffer(&mut self) -> &mut BytesMut {
        let have = self.buffer.len();
        let rest = self
            .declared()
            .and_then(|length| usize::try_from(length).ok())
            .map_or(0, |length| (LENGTH_BYTES + length).saturating_sub(have));
        self.drop_when_oversized(have + rest);
        self.buffer.reserve(rest.max(READ_BYTES));
        &mut self.buffer
    }

    /// The next whole frame without its length.
    ///
    /// # Errors
    /// When the peer declares a length that no answer has. The connection cannot go on.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, FrameTooLong> {
        let Some(declared) = self.declared() else {
            return Ok(None);
        };
        let length = usize::try_from(declared).ok();
        let length = length.filter(|&it| it <= self.frame_bytes_max);
        let Some(length) = length else {
            return Err(FrameTooLong { length: declared });
        };
        if self.buffer.len() < LENGTH_BYTES + length {
            return Ok(None);
        }
        self.buffer.advance(LENGTH_BYTES);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    fn declared(&self) -> Option<i32> {
        let length = self.buffer.first_chunk::<LENGTH_BYTES>();
        length.map(|length| i32::from_be_bytes(*length))
    }

    /// A buffer that was made for big frames is not kept for small ones.
    fn drop_when_oversized(&mut self, wanted: usize) {
        let capacity = self.buffer.capacity();
        if capacity <= KEPT_BYTES || wanted > capacity / 4 {
            self.small_frames = 0;
            return;
        }
        self.small_frames += 1;
        if self.small_frames > SMALL_FRAMES_MAX {
            self.small_frames = 0;
            let mut smaller = BytesMut::with_capacity(wanted.max(READ_BYTES));
            smaller.extend_from_slice(&self.buffer);
            self.buffer = smaller;
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BufMut as _;

    use super::*;

    fn frame(body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).expect("short");
        [&length.to_be_bytes(), body].concat()
    }

    #[test]
    fn frames_come_whole_however_they_are_cut() {
        let bytes = [frame(b"first"), frame(b""), frame(&[7; 40_000])].concat();
        for step in [1, 3, 4_096, bytes.len()] {
            let mut reader = AnswerReader::new(1 << 20);
            let mut frames = Vec::new();
            for chunk in bytes.chunks(step) {
                reader.buffer().put_slice(chunk);
                while let Some(frame) = reader.next_frame().expect("legal") {
                    frames.push(frame);
                }
            }
            assert_eq!(frames, [&b"first"[..], b"", &[7; 40_000]], "by {step}");
        }
    }

    #[test]
    fn a_length_beyond_the_limit_reserves_nothing() {
        for length in [i32::MAX, 1_001, -1, i32::MIN] {
            let mut reader = AnswerReader::new(1_000);
            reader.buffer().put_slice(&length.to_be_bytes());
            assert_eq!(reader.next_frame(), Err(FrameTooLong { length }));
            assert!(reader.buffer.capacity() < 2 * READ_BYTES);
        }
    }

    #[test]
    fn the_memory_of_dropped_frames_is_used_again() {
        let mut reader = AnswerReader::new(1 << 20);
        let big = frame(&[1; 500_000]);
        let mut starts = Vec::new();
        for _ in 0..4 {
            for chunk in big.chunks(60_000) {
                reader.buffer().put_slice(chunk);
                if let Some(frame) = reader.next_frame().expect("legal") {
                    starts.push(frame.as_ptr());
                }
            }
        }
        assert!(starts.windows(2).skip(1).all(|it| it[0] == it[1]));
    }

    #[test]
    fn big_memory_is_not_kept_for_small_frames() {
        let mut reader = AnswerReader::new(1 << 22);
        let mut take = |body: &[u8]| {
            let bytes = frame(body);
            for chunk in bytes.chunks(1 << 16) {
                reader.buffer().put_slice(chunk);
                let _frame = reader.next_frame().expect("legal");
            }
            reader.buffer().capacity()
        };
        assert!(take(&[1; 3 << 20]) >= 2 << 20);
        let after = (0..2_000).map(|_| take(b"small")).last();
        assert!(after.is_some_and(|it| it <= KEPT_BYTES), "{after:?}");
    }
}
