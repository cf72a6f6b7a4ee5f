//! What happened in a run, as text, and its hash.

use std::fmt;

use highwater_types::Mono;

/// Is told each line as it happens.
type Listener = Box<dyn FnMut(&str)>;

/// The lines of a run. I-28: the same seed gives the same lines.
#[derive(Default)]
pub struct Trace {
    listener: Option<Listener>,
    lines: Vec<String>,
    /// Lines before this one were already taken by [`Trace::take_new`].
    taken: usize,
    hash: u64,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("lines", &self.lines.len())
            .finish_non_exhaustive()
    }
}

impl Trace {
    /// A trace that also tells each line at once, for runs that may not live to their end.
    pub(crate) fn told_to(listener: impl FnMut(&str) + 'static) -> Self {
        Self {
            listener: Some(Box::new(listener)),
            ..Self::default()
        }
    }

    /// Adds a line. The time counts for the hash but is not shown: a scenario reads as a story.
    pub(crate) fn push(&mut self, at: Mono, line: String) {
        if self.lines.is_empty() {
            self.hash = 0xcbf2_9ce4_8422_2325;
        }
        for byte in at.as_micros().to_be_bytes().iter().chain(line.as_bytes()) {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if let Some(listener) = &mut self.listener {
            listener(&line);
        }
        self.lines.push(line);
    }

    /// FNV-1a over all times and lines so far.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Every line so far.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The lines since the last call.
    pub(crate) fn take_new(&mut self) -> &[String] {
        let from = std::mem::replace(&mut self.taken, self.lines.len());
        self.lines.get(from..).unwrap_or_default()
    }
}
