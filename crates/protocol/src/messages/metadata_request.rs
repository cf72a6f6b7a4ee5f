//! Generated from `crates/protocol/schemas/api/03-Metadata.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::Uuid;

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 3; versions 0-13.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataRequest {
    /// `[]MetadataRequestTopic`, versions 0+, or null in versions 1-13.
    pub topics: Option<Vec<MetadataRequestTopic>>,
    /// `bool`, versions 4+.
    pub allow_auto_topic_creation: bool,
    /// `bool`, versions 8-10.
    pub include_cluster_authorized_operations: bool,
    /// `bool`, versions 8+.
    pub include_topic_authorized_operations: bool,
}

impl Default for MetadataRequest {
    fn default() -> Self {
        Self {
            topics: Some(Vec::new()),
            allow_auto_topic_creation: true,
            include_cluster_authorized_operations: false,
            include_topic_authorized_operations: false,
        }
    }
}

impl Wire for MetadataRequest {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            topics: if v >= 1 { r.read()? } else { Some(r.read()?) },
            ..Self::default()
        };
        if v >= 4 {
            it.allow_auto_topic_creation = r.read()?;
        }
        if (8..=10).contains(&v) {
            it.include_cluster_authorized_operations = r.read()?;
        }
        if v >= 8 {
            it.include_topic_authorized_operations = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v >= 1 {
            self.topics.write(w)?;
        } else {
            w.write_some(self.topics.as_ref())?;
        }
        if v >= 4 {
            self.allow_auto_topic_creation.write(w)?;
        } else {
            w.absent(self.allow_auto_topic_creation, "AllowAutoTopicCreation")?;
        }
        if (8..=10).contains(&v) {
            self.include_cluster_authorized_operations.write(w)?;
        } else {
            w.absent(
                !self.include_cluster_authorized_operations,
                "IncludeClusterAuthorizedOperations",
            )?;
        }
        if v >= 8 {
            self.include_topic_authorized_operations.write(w)?;
        } else {
            w.absent(
                !self.include_topic_authorized_operations,
                "IncludeTopicAuthorizedOperations",
            )?;
        }
        w.no_tags();
        Ok(())
    }
}

/// Part of [`MetadataRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataRequestTopic {
    /// `uuid`, versions 10+.
    pub topic_id: Uuid,
    /// `string`, versions 0+, or null in versions 10-13.
    pub name: Option<String>,
}

impl Default for MetadataRequestTopic {
    fn default() -> Self {
        Self {
            topic_id: Uuid::ZERO,
            name: Some(String::new()),
        }
    }
}

impl Wire for MetadataRequestTopic {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self::default();
        if v >= 10 {
            it.topic_id = r.read()?;
        }
        it.name = if v >= 10 { r.read()? } else { Some(r.read()?) };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v >= 10 {
            self.topic_id.write(w)?;
        }
        if v >= 10 {
            self.name.write(w)?;
        } else {
            w.write_some(self.name.as_ref())?;
        }
        w.no_tags();
        Ok(())
    }
}

impl Message for MetadataRequest {
    const NAME: &'static str = "MetadataRequest";
    const VERSIONS: (i16, i16) = (0, 13);
    const FLEXIBLE_SINCE: i16 = 9;
}
