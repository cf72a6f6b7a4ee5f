//! Generated from `crates/protocol/schemas/api/32-DescribeConfigs.txt` by `cargo xtask codegen`; not edited by hand.

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 32; versions 1-4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeConfigsRequest {
    /// `[]DescribeConfigsResource`, versions 0+.
    pub resources: Vec<DescribeConfigsResource>,
    /// `bool`, versions 1+.
    pub include_synonyms: bool,
    /// `bool`, versions 3+.
    pub include_documentation: bool,
}

impl Wire for DescribeConfigsRequest {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            resources: r.read()?,
            include_synonyms: r.read()?,
            ..Self::default()
        };
        if v >= 3 {
            it.include_documentation = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.resources.write(w)?;
        self.include_synonyms.write(w)?;
        if v >= 3 {
            self.include_documentation.write(w)?;
        } else {
            w.absent(!self.include_documentation, "IncludeDocumentation")?;
        }
        w.no_tags();
        Ok(())
    }
}

/// Part of [`DescribeConfigsRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeConfigsResource {
    /// `int8`, versions 0+.
    pub resource_type: i8,
    /// `string`, versions 0+.
    pub resource_name: String,
    /// `[]string`, versions 0+, or null.
    pub configuration_keys: Option<Vec<String>>,
}

impl Default for DescribeConfigsResource {
    fn default() -> Self {
        Self {
            resource_type: 0,
            resource_name: String::new(),
            configuration_keys: Some(Vec::new()),
        }
    }
}

impl Wire for DescribeConfigsResource {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            resource_type: r.read()?,
            resource_name: r.read()?,
            configuration_keys: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.resource_type.write(w)?;
        self.resource_name.write(w)?;
        self.configuration_keys.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for DescribeConfigsRequest {
    const NAME: &'static str = "DescribeConfigsRequest";
    const VERSIONS: (i16, i16) = (1, 4);
    const FLEXIBLE_SINCE: i16 = 4;
}
