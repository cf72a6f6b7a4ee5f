//! Generated from `crates/protocol/schemas/api/18-ApiVersions.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::ErrorCode;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 18; versions 0-5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiVersionsResponse {
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `[]ApiVersion`, versions 0+.
    pub api_keys: Vec<ApiVersion>,
    /// `int32`, versions 1+.
    pub throttle_time_ms: i32,
    /// `[]SupportedFeatureKey`, versions 3+, tag 0.
    pub supported_features: Vec<SupportedFeatureKey>,
    /// `int64`, versions 3+, tag 1.
    pub finalized_features_epoch: i64,
    /// `[]FinalizedFeatureKey`, versions 3+, tag 2.
    pub finalized_features: Vec<FinalizedFeatureKey>,
    /// `bool`, versions 3+, tag 3.
    pub zk_migration_ready: bool,
}

impl Default for ApiVersionsResponse {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            api_keys: Vec::new(),
            throttle_time_ms: 0,
            supported_features: Vec::new(),
            finalized_features_epoch: -1,
            finalized_features: Vec::new(),
            zk_migration_ready: false,
        }
    }
}

impl Wire for ApiVersionsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            error_code: r.read()?,
            api_keys: r.read()?,
            ..Self::default()
        };
        if v >= 1 {
            it.throttle_time_ms = r.read()?;
        }
        r.tags(|tag, r| {
            match tag {
                0 => it.supported_features = r.read()?,
                1 => it.finalized_features_epoch = r.read()?,
                2 => it.finalized_features = r.read()?,
                3 => it.zk_migration_ready = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.error_code.write(w)?;
        self.api_keys.write(w)?;
        if v >= 1 {
            self.throttle_time_ms.write(w)?;
        }
        w.tags(|tags| {
            if !self.supported_features.is_empty() {
                tags.put(0, &self.supported_features)?;
            }
            if self.finalized_features_epoch != -1 {
                tags.put(1, &self.finalized_features_epoch)?;
            }
            if !self.finalized_features.is_empty() {
                tags.put(2, &self.finalized_features)?;
            }
            if self.zk_migration_ready {
                tags.put(3, &self.zk_migration_ready)?;
            }
            Ok(())
        })
    }
}

/// Part of [`ApiVersionsResponse`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiVersion {
    /// `int16`, versions 0+.
    pub api_key: i16,
    /// `int16`, versions 0+.
    pub min_version: i16,
    /// `int16`, versions 0+.
    pub max_version: i16,
}

impl Wire for ApiVersion {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            api_key: r.read()?,
            min_version: r.read()?,
            max_version: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.api_key.write(w)?;
        self.min_version.write(w)?;
        self.max_version.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`ApiVersionsResponse`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SupportedFeatureKey {
    /// `string`, versions 3+.
    pub name: String,
    /// `int16`, versions 3+.
    pub min_version: i16,
    /// `int16`, versions 3+.
    pub max_version: i16,
}

impl Wire for SupportedFeatureKey {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            min_version: r.read()?,
            max_version: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.min_version.write(w)?;
        self.max_version.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`ApiVersionsResponse`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FinalizedFeatureKey {
    /// `string`, versions 3+.
    pub name: String,
    /// `int16`, versions 3+.
    pub max_version_level: i16,
    /// `int16`, versions 3+.
    pub min_version_level: i16,
}

impl Wire for FinalizedFeatureKey {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            max_version_level: r.read()?,
            min_version_level: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.max_version_level.write(w)?;
        self.min_version_level.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for ApiVersionsResponse {
    const NAME: &'static str = "ApiVersionsResponse";
    const VERSIONS: (i16, i16) = (0, 5);
    const FLEXIBLE_SINCE: i16 = 3;
}
