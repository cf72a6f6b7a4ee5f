use highwater_types::Offset;

/// One replica of one partition.
#[derive(Debug)]
pub struct Replica {
    high_watermark: Offset,
}

impl Replica {
    /// Exclusive end of what is on every member of the maximal ISR.
    #[must_use]
    pub const fn high_watermark(&self) -> Offset {
        self.high_watermark
    }
}
