//! Generated from `crates/protocol/schemas/coordinator/group-StreamsGroupMetadata.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 17; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsGroupMetadataValue {
    /// `int32`, versions 0+.
    pub epoch: i32,
    /// `int64`, versions 0+.
    pub metadata_hash: i64,
    /// `int32`, versions 0+, tag 0.
    pub validated_topology_epoch: i32,
    /// `[]LastAssignmentConfig`, versions 0+, tag 1, or null.
    pub last_assignment_configs: Option<Vec<LastAssignmentConfig>>,
    /// `int32`, versions 0+, tag 2.
    pub stored_description_topology_epoch: i32,
    /// `int32`, versions 0+, tag 3.
    pub failed_description_topology_epoch: i32,
}

impl Default for StreamsGroupMetadataValue {
    fn default() -> Self {
        Self {
            epoch: 0,
            metadata_hash: 0,
            validated_topology_epoch: -1,
            last_assignment_configs: None,
            stored_description_topology_epoch: -1,
            failed_description_topology_epoch: -1,
        }
    }
}

impl Wire for StreamsGroupMetadataValue {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut it = Self {
            epoch: r.read()?,
            metadata_hash: r.read()?,
            ..Self::default()
        };
        r.tags(|tag, r| {
            match tag {
                0 => it.validated_topology_epoch = r.read()?,
                1 => it.last_assignment_configs = r.read()?,
                2 => it.stored_description_topology_epoch = r.read()?,
                3 => it.failed_description_topology_epoch = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.epoch.write(w)?;
        self.metadata_hash.write(w)?;
        w.tags(|tags| {
            if self.validated_topology_epoch != -1 {
                tags.put(0, &self.validated_topology_epoch)?;
            }
            if self.last_assignment_configs.is_some() {
                tags.put(1, &self.last_assignment_configs)?;
            }
            if self.stored_description_topology_epoch != -1 {
                tags.put(2, &self.stored_description_topology_epoch)?;
            }
            if self.failed_description_topology_epoch != -1 {
                tags.put(3, &self.failed_description_topology_epoch)?;
            }
            Ok(())
        })
    }
}

impl ToJson for StreamsGroupMetadataValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("epoch", &self.epoch, v);
        it.put("metadataHash", &self.metadata_hash, v);
        if self.validated_topology_epoch != -1 {
            it.put("validatedTopologyEpoch", &self.validated_topology_epoch, v);
        }
        if self.last_assignment_configs.is_some() {
            it.put("lastAssignmentConfigs", &self.last_assignment_configs, v);
        }
        if self.stored_description_topology_epoch != -1 {
            it.put(
                "storedDescriptionTopologyEpoch",
                &self.stored_description_topology_epoch,
                v,
            );
        }
        if self.failed_description_topology_epoch != -1 {
            it.put(
                "failedDescriptionTopologyEpoch",
                &self.failed_description_topology_epoch,
                v,
            );
        }
        it.into()
    }
}

/// Part of [`StreamsGroupMetadataValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastAssignmentConfig {
    /// `string`, versions 0+.
    pub key: String,
    /// `string`, versions 0+.
    pub value: String,
}

impl Wire for LastAssignmentConfig {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            key: r.read()?,
            value: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.key.write(w)?;
        self.value.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for LastAssignmentConfig {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("key", &self.key, v);
        it.put("value", &self.value, v);
        it.into()
    }
}

impl Message for StreamsGroupMetadataValue {
    const NAME: &'static str = "StreamsGroupMetadataValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
