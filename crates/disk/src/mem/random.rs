/// Draws from a source that the caller seeds: the same source, the same disk.
pub(super) struct Draw<'a>(&'a mut dyn FnMut() -> u64);

impl<'a> Draw<'a> {
    pub(super) fn new(source: &'a mut dyn FnMut() -> u64) -> Self {
        Self(source)
    }

    /// A number below `bound`; 0 when there is none.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from((self.0)() % bound).unwrap_or(0)
    }

    pub(super) fn flip(&mut self) -> bool {
        self.below(2) == 1
    }
}

/// SplitMix64: a stream of numbers from one seed, for power cuts that are armed ahead of time.
pub(super) fn stream(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
