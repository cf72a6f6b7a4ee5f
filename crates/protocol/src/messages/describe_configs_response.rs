//! Generated from `crates/protocol/schemas/api/32-DescribeConfigs.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::ErrorCode;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// An answer of API 32; versions 1-4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeConfigsResponse {
    /// `int32`, versions 0+.
    pub throttle_time_ms: i32,
    /// `[]DescribeConfigsResult`, versions 0+.
    pub results: Vec<DescribeConfigsResult>,
}

impl Wire for DescribeConfigsResponse {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            throttle_time_ms: r.read()?,
            results: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.throttle_time_ms.write(w)?;
        self.results.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`DescribeConfigsResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeConfigsResult {
    /// `int16`, versions 0+.
    pub error_code: ErrorCode,
    /// `string`, versions 0+, or null.
    pub error_message: Option<String>,
    /// `int8`, versions 0+.
    pub resource_type: i8,
    /// `string`, versions 0+.
    pub resource_name: String,
    /// `[]DescribeConfigsResourceResult`, versions 0+.
    pub configs: Vec<DescribeConfigsResourceResult>,
}

impl Default for DescribeConfigsResult {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            error_message: Some(String::new()),
            resource_type: 0,
            resource_name: String::new(),
            configs: Vec::new(),
        }
    }
}

impl Wire for DescribeConfigsResult {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            error_code: r.read()?,
            error_message: r.read()?,
            resource_type: r.read()?,
            resource_name: r.read()?,
            configs: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.error_code.write(w)?;
        self.error_message.write(w)?;
        self.resource_type.write(w)?;
        self.resource_name.write(w)?;
        self.configs.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`DescribeConfigsResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeConfigsResourceResult {
    /// `string`, versions 0+.
    pub name: String,
    /// `string`, versions 0+, or null.
    pub value: Option<String>,
    /// `bool`, versions 0+.
    pub read_only: bool,
    /// `int8`, versions 1+.
    pub config_source: i8,
    /// `bool`, versions 0+.
    pub is_sensitive: bool,
    /// `[]DescribeConfigsSynonym`, versions 1+.
    pub synonyms: Vec<DescribeConfigsSynonym>,
    /// `int8`, versions 3+.
    pub config_type: i8,
    /// `string`, versions 3+, or null.
    pub documentation: Option<String>,
}

impl Default for DescribeConfigsResourceResult {
    fn default() -> Self {
        Self {
            name: String::new(),
            value: Some(String::new()),
            read_only: false,
            config_source: -1,
            is_sensitive: false,
            synonyms: Vec::new(),
            config_type: 0,
            documentation: Some(String::new()),
        }
    }
}

impl Wire for DescribeConfigsResourceResult {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            name: r.read()?,
            value: r.read()?,
            read_only: r.read()?,
            config_source: r.read()?,
            is_sensitive: r.read()?,
            synonyms: r.read()?,
            ..Self::default()
        };
        if v >= 3 {
            it.config_type = r.read()?;
            it.documentation = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.name.write(w)?;
        self.value.write(w)?;
        self.read_only.write(w)?;
        self.config_source.write(w)?;
        self.is_sensitive.write(w)?;
        self.synonyms.write(w)?;
        if v >= 3 {
            self.config_type.write(w)?;
            self.documentation.write(w)?;
        }
        w.no_tags();
        Ok(())
    }
}

/// Part of [`DescribeConfigsResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeConfigsSynonym {
    /// `string`, versions 1+.
    pub name: String,
    /// `string`, versions 1+, or null.
    pub value: Option<String>,
    /// `int8`, versions 1+.
    pub source: i8,
}

impl Default for DescribeConfigsSynonym {
    fn default() -> Self {
        Self {
            name: String::new(),
            value: Some(String::new()),
            source: 0,
        }
    }
}

impl Wire for DescribeConfigsSynonym {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            value: r.read()?,
            source: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.value.write(w)?;
        self.source.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for DescribeConfigsResponse {
    const NAME: &'static str = "DescribeConfigsResponse";
    const VERSIONS: (i16, i16) = (1, 4);
    const FLEXIBLE_SINCE: i16 = 4;
}
