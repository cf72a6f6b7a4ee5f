use std::collections::BTreeSet;

use highwater_types::TopicId;

/// What records changed in an image, for those who must look at it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageChanges {
    /// Topics that were made, changed (partitions or configs) or deleted.
    pub topics: BTreeSet<TopicId>,
    /// Brokers or controllers came, went or changed.
    pub cluster: bool,
    /// Dynamic configs of brokers: they reach every topic that does not set its own.
    pub broker_configs: bool,
    /// Finalised feature levels.
    pub features: bool,
    /// Anything else.
    pub other: bool,
}

impl ImageChanges {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
