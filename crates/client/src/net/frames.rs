use std::io::{self, IoSlice};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Memory for an answer grows with the data that comes, by this much at a time.
const GROW_BYTES: usize = 256 * 1024;

/// Reads length-prefixed frames.
pub(super) struct FrameReader<R> {
    stream: R,
    buffer: BytesMut,
    frame_bytes_max: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(super) fn new(stream: R, frame_bytes_max: usize) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            frame_bytes_max,
        }
    }

    /// The next frame without its length; `None` at a clean end.
    pub(super) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if !self.fill(4).await? {
            return Ok(None);
        }
        let length = self.buffer.get_i32();
        let length = usize::try_from(length)
            .ok()
            .filter(|&it| it <= self.frame_bytes_max);
        let Some(length) = length else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "sent a frame of impossible length; is this port Kafka's, and without TLS?",
            ));
        };
        if length > 0 && !self.fill(length).await? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    /// Reads until `count` bytes are there; `false` when the stream ends before the first.
    async fn fill(&mut self, count: usize) -> io::Result<bool> {
        while self.buffer.len() < count {
            let missing = count - self.buffer.len();
            self.buffer.reserve(missing.clamp(4096, GROW_BYTES));
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                if self.buffer.is_empty() {
                    return Ok(false);
                }
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(true)
    }
}

/// Writes all of `pieces`, in order, in as few calls as the system allows.
pub(super) async fn write_pieces(
    stream: &mut (impl AsyncWrite + Unpin),
    mut pieces: Vec<Bytes>,
) -> io::Result<()> {
    pieces.retain(|piece| !piece.is_empty());
    pieces.reverse();
    while let Some(first) = pieces.last() {
        let mut count = if pieces.len() == 1 {
            stream.write(first).await?
        } else {
            let slices: Vec<_> = pieces
                .iter()
                .rev()
                .take(64)
                .map(|piece| IoSlice::new(piece))
                .collect();
            stream.write_vectored(&slices).await?
        };
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while let Some(piece) = pieces.last_mut() {
            let step = piece.len().min(count);
            piece.advance(step);
            count -= step;
            if !piece.is_empty() {
                break;
            }
            pieces.pop();
        }
    }
    stream.flush().await
}
