use highwater_metadata::MetadataImage;
use highwater_metadata::image::{KRAFT_VERSION, supported_features};
use highwater_protocol::ListenerKind;
use highwater_protocol::messages::{
    api_versions_request::ApiVersionsRequest,
    api_versions_response::{
        ApiVersion, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
    },
};
use highwater_types::{ErrorCode, NodeId};

/// What an ApiVersions answer is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiVersionsContext<'a> {
    /// The kind of listener that was asked.
    pub(crate) listener: ListenerKind,
    /// This node.
    pub(crate) node_id: NodeId,
    /// The cluster's id.
    pub(crate) cluster_id: &'a str,
    /// The level of `kraft.version`, which lies in a control record and not in the image: 0 with a
    /// static quorum.
    pub(crate) kraft_version: i16,
    /// Where the finalised features are read from.
    pub(crate) image: &'a MetadataImage,
}

/// Answers ApiVersions at a version that is served. Unknown versions never come this far.
///
/// A client that names itself badly gets INVALID_REQUEST (KIP-511). One that expects another
/// cluster or node gets REBOOTSTRAP_REQUIRED (KIP-1242): its view of the cluster is wrong. One that
/// names only one of the two gets INVALID_REQUEST.
pub(crate) fn api_versions(
    cx: &ApiVersionsContext<'_>,
    version: i16,
    request: &ApiVersionsRequest,
) -> ApiVersionsResponse {
    let refused = |error_code| ApiVersionsResponse {
        error_code,
        ..Default::default()
    };
    let named_well = is_software_name(&request.client_software_name)
        && is_software_name(&request.client_software_version);
    if version >= 3 && !named_well {
        return refused(ErrorCode::INVALID_REQUEST);
    }
    if version >= 5 && request.cluster_id.is_some() != request.node_id.is_some() {
        return refused(ErrorCode::INVALID_REQUEST);
    }
    let other_cluster = request
        .cluster_id
        .as_deref()
        .is_some_and(|id| id != cx.cluster_id);
    let other_node = request.node_id.is_some() && request.node_id != cx.node_id;
    if version >= 5 && (other_cluster || other_node) {
        return refused(ErrorCode::REBOOTSTRAP_REQUIRED);
    }
    ApiVersionsResponse {
        error_code: ErrorCode::NONE,
        api_keys: api_keys(cx.listener),
        throttle_time_ms: 0,
        supported_features: supported(version),
        finalized_features_epoch: cx.image.end.offset.raw() - 1,
        finalized_features: finalized(cx),
        zk_migration_ready: false,
    }
}

fn api_keys(listener: ListenerKind) -> Vec<ApiVersion> {
    highwater_protocol::supported_versions(listener)
        .iter()
        .map(|it| ApiVersion {
            api_key: it.api_key.raw(),
            min_version: it.min,
            max_version: it.max,
        })
        .collect()
}

/// Features whose lowest level is zero are left out below v4: old clients refuse them
/// (KAFKA-17011).
fn supported(version: i16) -> Vec<SupportedFeatureKey> {
    supported_features()
        .iter()
        .filter(|it| version >= 4 || it.min > 0)
        .map(|it| SupportedFeatureKey {
            name: it.name.to_owned(),
            min_version: it.min,
            max_version: it.max,
        })
        .collect()
}

fn finalized(cx: &ApiVersionsContext<'_>) -> Vec<FinalizedFeatureKey> {
    let kraft = (KRAFT_VERSION, cx.kraft_version);
    let levels = cx
        .image
        .features
        .levels
        .iter()
        .map(|(name, level)| (name.as_str(), *level));
    levels
        .chain([kraft])
        .filter(|(_, level)| *level > 0)
        .map(|(name, level)| FinalizedFeatureKey {
            name: name.to_owned(),
            max_version_level: level,
            min_version_level: level,
        })
        .collect()
}

/// Letters, digits, `-` and `.`, beginning and ending with a letter or digit.
fn is_software_name(text: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
}
