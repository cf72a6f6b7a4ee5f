use super::{Batch, BatchError, BatchHeader};

/// The batches that stand one after the other in `bytes`: a fetch answer, a segment, a snapshot.
///
/// Ends without an error at a batch that is cut, for a fetch answer may end in one;
/// [`Batches::rest`] tells. After an error it ends too: where the next batch would start is not
/// known.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
    failed: bool,
}

impl<'a> Batches<'a> {
    /// Starts at the front of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            failed: false,
        }
    }

    /// What has not been given out: empty when the last batch was whole.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let header = match BatchHeader::parse(self.rest) {
            Ok(header) => header,
            Err(BatchError::Cut { .. }) => return None,
            Err(why) => {
                self.failed = true;
                return Some(Err(why));
            }
        };
        let (bytes, rest) = self.rest.split_at_checked(header.size_bytes())?;
        self.rest = rest;
        Some(Ok(Batch::from_parts(header, bytes)))
    }
}
