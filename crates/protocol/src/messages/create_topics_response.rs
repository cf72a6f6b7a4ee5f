//! Generated from `crates/protocol/schemas/api/19-CreateTopics.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{ErrorCode, Uuid};

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 19; versions 2-7.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateTopicsResponse {
    /// `int32`, versions 2+.
    pub throttle_time_ms: i32,
    /// `[]CreatableTopicResult`, versions 0+.
    pub topics: Vec<CreatableTopicResult>,
}

impl Wire for CreateTopicsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            throttle_time_ms: r.read()?,
            topics: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.throttle_time_ms.write(w)?;
        self.topics.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`CreateTopicsResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatableTopicResult {
    /// `string`, versions 0+.
    pub name: String,
    /// `uuid`, versions 7+.
    pub topic_id: Uuid,
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `string`, versions 1+, or null.
    pub error_message: Option<String>,
    /// `int16`, versions 5+, tag 0.
    pub topic_config_error_code: ErrorCode,
    /// `int32`, versions 5+.
    pub num_partitions: i32,
    /// `int16`, versions 5+.
    pub replication_factor: i16,
    /// `[]CreatableTopicConfigs`, versions 5+, or null.
    pub configs: Option<Vec<CreatableTopicConfigs>>,
}

impl Default for CreatableTopicResult {
    fn default() -> Self {
        Self {
            name: String::new(),
            topic_id: Uuid::ZERO,
            error_code: ErrorCode::NONE,
            error_message: Some(String::new()),
            topic_config_error_code: ErrorCode::NONE,
            num_partitions: -1,
            replication_factor: -1,
            configs: Some(Vec::new()),
        }
    }
}

impl Wire for CreatableTopicResult {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            name: r.read()?,
            ..Self::default()
        };
        if v >= 7 {
            it.topic_id = r.read()?;
        }
        it.error_code = r.read()?;
        it.error_message = r.read()?;
        if v >= 5 {
            it.num_partitions = r.read()?;
            it.replication_factor = r.read()?;
            it.configs = r.read()?;
        }
        r.tags(|tag, r| {
            match tag {
                0 => it.topic_config_error_code = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.name.write(w)?;
        if v >= 7 {
            self.topic_id.write(w)?;
        }
        self.error_code.write(w)?;
        self.error_message.write(w)?;
        if v >= 5 {
            self.num_partitions.write(w)?;
            self.replication_factor.write(w)?;
            self.configs.write(w)?;
        }
        w.tags(|tags| {
            if self.topic_config_error_code != ErrorCode::NONE {
                tags.put(0, &self.topic_config_error_code)?;
            }
            Ok(())
        })
    }
}

/// Part of [`CreateTopicsResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatableTopicConfigs {
    /// `string`, versions 5+.
    pub name: String,
    /// `string`, versions 5+, or null.
    pub value: Option<String>,
    /// `bool`, versions 5+.
    pub read_only: bool,
    /// `int8`, versions 5+.
    pub config_source: i8,
    /// `bool`, versions 5+.
    pub is_sensitive: bool,
}

impl Default for CreatableTopicConfigs {
    fn default() -> Self {
        Self {
            name: String::new(),
            value: Some(String::new()),
            read_only: false,
            config_source: -1,
            is_sensitive: false,
        }
    }
}

impl Wire for CreatableTopicConfigs {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            value: r.read()?,
            read_only: r.read()?,
            config_source: r.read()?,
            is_sensitive: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.value.write(w)?;
        self.read_only.write(w)?;
        self.config_source.write(w)?;
        self.is_sensitive.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for CreateTopicsResponse {
    const NAME: &'static str = "CreateTopicsResponse";
    const VERSIONS: (i16, i16) = (2, 7);
    const FLEXIBLE_SINCE: i16 = 5;
}
