use std::collections::BTreeMap;

use crate::api::ApiKey;
use crate::messages::ApiVersionsResponse;

/// What a peer offers, as its answer to ApiVersions says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerVersions {
    ranges: BTreeMap<i16, (i16, i16)>,
}

impl PeerVersions {
    /// Takes the ranges out of an answer.
    #[must_use]
    pub fn new(answer: &ApiVersionsResponse) -> Self {
        let range = |it: &crate::messages::api_versions_response::ApiVersion| {
            (it.api_key, (it.min_version, it.max_version))
        };
        Self {
            ranges: answer.api_keys.iter().map(range).collect(),
        }
    }

    /// The peer's range for an API, both ends inclusive.
    #[must_use]
    pub fn range(&self, api_key: ApiKey) -> Option<(i16, i16)> {
        self.ranges.get(&api_key.raw()).copied()
    }

    /// The highest version that both sides speak.
    #[must_use]
    pub fn highest_common(&self, api_key: ApiKey) -> Option<i16> {
        self.highest_common_up_to(api_key, i16::MAX)
    }

    /// The highest version up to `max` that both sides speak.
    #[must_use]
    pub fn highest_common_up_to(&self, api_key: ApiKey, max: i16) -> Option<i16> {
        let (our_min, our_max) = api_key.versions();
        let (peer_min, peer_max) = self.range(api_key)?;
        let highest = our_max.min(peer_max).min(max);
        (highest >= our_min.max(peer_min)).then_some(highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::api_versions_response::ApiVersion;

    fn peer(min: i16, max: i16) -> PeerVersions {
        let metadata = ApiVersion {
            api_key: 3,
            min_version: min,
            max_version: max,
        };
        PeerVersions::new(&ApiVersionsResponse {
            api_keys: vec![metadata],
            ..ApiVersionsResponse::default()
        })
    }

    #[test]
    fn the_highest_common_version() {
        let common = |min, max| peer(min, max).highest_common(ApiKey::Metadata);
        assert_eq!(common(0, 9), Some(9));
        assert_eq!(common(5, 99), Some(13));
        assert_eq!(common(14, 20), None);
        assert_eq!(common(9, 3), None);
        assert_eq!(
            peer(4, 9).highest_common_up_to(ApiKey::Metadata, 6),
            Some(6)
        );
        assert_eq!(peer(4, 9).highest_common_up_to(ApiKey::Metadata, 3), None);
        assert_eq!(peer(0, 9).highest_common(ApiKey::Fetch), None);
    }
}
