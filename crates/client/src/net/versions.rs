use std::collections::BTreeMap;

use highwater_protocol::ApiKey;
use highwater_protocol::messages::ApiVersionsResponse;

use crate::error::ClientError;

/// What a peer offers, as it said in its ApiVersions answer. Every request is sent at the highest
/// version that both sides know; nothing is ever sent blindly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    ranges: BTreeMap<i16, (i16, i16)>,
}

impl Versions {
    pub(crate) fn of(answer: &ApiVersionsResponse) -> Self {
        let ranges = answer.api_keys.iter();
        Self {
            ranges: ranges
                .map(|it| (it.api_key, (it.min_version, it.max_version)))
                .collect(),
        }
    }

    /// The versions of `api` that the peer offers, both inclusive.
    #[must_use]
    pub fn offered(&self, api: ApiKey) -> Option<(i16, i16)> {
        self.ranges.get(&api.raw()).copied()
    }

    /// The version of `api` to use with `peer`.
    ///
    /// # Errors
    /// [`ClientError::Unsupported`] when there is none that both sides know.
    pub fn pick(&self, api: ApiKey, peer: &str) -> Result<i16, ClientError> {
        let ours = api.versions();
        let offered = self.offered(api);
        let common = offered.and_then(|theirs| highest_common(ours, theirs));
        common.ok_or_else(|| ClientError::Unsupported {
            peer: peer.to_owned(),
            api,
            theirs: match offered {
                Some((min, max)) => format!("{min}-{max}"),
                None => "not at all".to_owned(),
            },
            ours,
        })
    }
}

/// The highest version in both ranges, ends inclusive.
pub(crate) fn highest_common(ours: (i16, i16), theirs: (i16, i16)) -> Option<i16> {
    let highest = ours.1.min(theirs.1);
    (highest >= ours.0 && highest >= theirs.0).then_some(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_common_version_is_picked() {
        assert_eq!(highest_common((3, 13), (0, 9)), Some(9));
        assert_eq!(highest_common((3, 13), (13, 20)), Some(13));
        assert_eq!(highest_common((3, 13), (0, 2)), None);
        assert_eq!(highest_common((3, 13), (14, 20)), None);
        assert_eq!(
            highest_common((3, 13), (9, 5)),
            None,
            "a range that is none"
        );
    }

    #[test]
    fn c_10_an_api_that_the_peer_lacks_is_never_sent() {
        let error = Versions::default().pick(ApiKey::Fetch, "a:1").unwrap_err();
        assert!(
            error.to_string().contains("a:1 offers Fetch not at all"),
            "{error}"
        );
    }
}
