use std::collections::BTreeMap;

use crate::image::FeatureRange;

/// Feature that rules which metadata records are written.
pub const METADATA_VERSION: &str = "metadata.version";
/// Feature that rules whether the voters are in the metadata log; lives in a control record.
pub const KRAFT_VERSION: &str = "kraft.version";
/// Feature of the consumer group protocol (KIP-848).
pub const GROUP_VERSION: &str = "group.version";
/// Feature of share groups (KIP-932).
pub const SHARE_VERSION: &str = "share.version";
/// Feature of streams groups (KIP-1071).
pub const STREAMS_VERSION: &str = "streams.version";
/// Feature of the transaction protocol (KIP-890).
pub const TRANSACTION_VERSION: &str = "transaction.version";
/// Feature of eligible leader replicas (KIP-966).
pub const ELIGIBLE_LEADER_REPLICAS_VERSION: &str = "eligible.leader.replicas.version";

/// The levels that a node of this build announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedFeature {
    /// The feature's name.
    pub name: &'static str,
    /// Lowest level (inclusive).
    pub min: i16,
    /// Highest level (inclusive).
    pub max: i16,
    /// The level that `format` finalises; zero is not written.
    pub formatted: i16,
}

/// What this build announces: the ranges of Kafka 4.4. Levels that `format` leaves at zero are
/// not built yet; a directory where they are finalised higher opens all the same.
#[must_use]
pub const fn supported_features() -> &'static [SupportedFeature] {
    const fn feature(name: &'static str, min: i16, max: i16, formatted: i16) -> SupportedFeature {
        SupportedFeature {
            name,
            min,
            max,
            formatted,
        }
    }
    const ALL: &[SupportedFeature] = &[
        feature(METADATA_VERSION, 7, 33, 33),
        feature(ELIGIBLE_LEADER_REPLICAS_VERSION, 0, 1, 1),
        feature(GROUP_VERSION, 0, 1, 0),
        feature(SHARE_VERSION, 0, 2, 0),
        feature(STREAMS_VERSION, 0, 1, 0),
        feature(TRANSACTION_VERSION, 0, 2, 0),
        feature(KRAFT_VERSION, 0, 1, 1),
    ];
    ALL
}

/// The range this build announces for a feature, if it knows it.
#[must_use]
pub fn feature_range(name: &str) -> Option<FeatureRange> {
    supported_features()
        .iter()
        .find(|it| it.name == name)
        .map(|it| FeatureRange {
            name: it.name.to_owned(),
            min: it.min,
            max: it.max,
        })
}

/// Finalised levels by feature. kraft.version is not among them: it lives in a control record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureLevels {
    /// Level by name; a feature at zero is absent.
    pub levels: BTreeMap<String, i16>,
}

impl FeatureLevels {
    /// The finalised level, zero when it was never finalised.
    #[must_use]
    pub fn level(&self, name: &str) -> i16 {
        self.levels.get(name).copied().unwrap_or(0)
    }
}
