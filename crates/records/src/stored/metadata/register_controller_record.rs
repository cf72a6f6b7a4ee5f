//! Generated from `crates/protocol/schemas/metadata/RegisterControllerRecord.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{NodeId, Uuid};
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 27; versions 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterControllerRecord {
    /// `int32`, versions 0+.
    pub controller_id: NodeId,
    /// `uuid`, versions 0+.
    pub incarnation_id: Uuid,
    /// `bool`, versions 0+.
    pub zk_migration_ready: bool,
    /// `[]ControllerEndpoint`, versions 0+.
    pub end_points: Vec<ControllerEndpoint>,
    /// `[]ControllerFeature`, versions 0+.
    pub features: Vec<ControllerFeature>,
}

impl Default for RegisterControllerRecord {
    fn default() -> Self {
        Self {
            controller_id: NodeId::new(0),
            incarnation_id: Uuid::ZERO,
            zk_migration_ready: false,
            end_points: Vec::new(),
            features: Vec::new(),
        }
    }
}

impl Wire for RegisterControllerRecord {
    const SIZE_MIN: usize = 24;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            controller_id: r.read()?,
            incarnation_id: r.read()?,
            zk_migration_ready: r.read()?,
            end_points: r.read()?,
            features: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.controller_id.write(w)?;
        self.incarnation_id.write(w)?;
        self.zk_migration_ready.write(w)?;
        self.end_points.write(w)?;
        self.features.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for RegisterControllerRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("controllerId", &self.controller_id, v);
        it.put("incarnationId", &self.incarnation_id, v);
        it.put("zkMigrationReady", &self.zk_migration_ready, v);
        it.put("endPoints", &self.end_points, v);
        it.put("features", &self.features, v);
        it.into()
    }
}

/// Part of [`RegisterControllerRecord`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerEndpoint {
    /// `string`, versions 0+.
    pub name: String,
    /// `string`, versions 0+.
    pub host: String,
    /// `uint16`, versions 0+.
    pub port: u16,
    /// `int16`, versions 0+.
    pub security_protocol: i16,
}

impl Wire for ControllerEndpoint {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            host: r.read()?,
            port: r.read()?,
            security_protocol: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.host.write(w)?;
        self.port.write(w)?;
        self.security_protocol.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ControllerEndpoint {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("name", &self.name, v);
        it.put("host", &self.host, v);
        it.put("port", &self.port, v);
        it.put("securityProtocol", &self.security_protocol, v);
        it.into()
    }
}

/// Part of [`RegisterControllerRecord`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerFeature {
    /// `string`, versions 0+.
    pub name: String,
    /// `int16`, versions 0+.
    pub min_supported_version: i16,
    /// `int16`, versions 0+.
    pub max_supported_version: i16,
}

impl Wire for ControllerFeature {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            min_supported_version: r.read()?,
            max_supported_version: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.min_supported_version.write(w)?;
        self.max_supported_version.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for ControllerFeature {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("name", &self.name, v);
        it.put("minSupportedVersion", &self.min_supported_version, v);
        it.put("maxSupportedVersion", &self.max_supported_version, v);
        it.into()
    }
}

impl Message for RegisterControllerRecord {
    const NAME: &'static str = "RegisterControllerRecord";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
