//! Generated from `crates/protocol/schemas/metadata/RegisterBrokerRecord.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{NodeId, Uuid};
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 0; versions 0-4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterBrokerRecord {
    /// `int32`, versions 0+.
    pub broker_id: NodeId,
    /// `bool`, versions 2+.
    pub is_migrating_zk_broker: bool,
    /// `uuid`, versions 0+.
    pub incarnation_id: Uuid,
    /// `int64`, versions 0+.
    pub broker_epoch: i64,
    /// `[]BrokerEndpoint`, versions 0+.
    pub end_points: Vec<BrokerEndpoint>,
    /// `[]BrokerFeature`, versions 0+.
    pub features: Vec<BrokerFeature>,
    /// `string`, versions 0+, or null.
    pub rack: Option<String>,
    /// `bool`, versions 0+.
    pub fenced: bool,
    /// `bool`, versions 1+.
    pub in_controlled_shutdown: bool,
    /// `[]uuid`, versions 3+, tag 0.
    pub log_dirs: Vec<Uuid>,
    /// `[]uuid`, versions 4+, tag 1, or null.
    pub cordoned_log_dirs: Option<Vec<Uuid>>,
}

impl Default for RegisterBrokerRecord {
    fn default() -> Self {
        Self {
            broker_id: NodeId::new(0),
            is_migrating_zk_broker: false,
            incarnation_id: Uuid::ZERO,
            broker_epoch: 0,
            end_points: Vec::new(),
            features: Vec::new(),
            rack: Some(String::new()),
            fenced: true,
            in_controlled_shutdown: false,
            log_dirs: Vec::new(),
            cordoned_log_dirs: None,
        }
    }
}

impl Wire for RegisterBrokerRecord {
    const SIZE_MIN: usize = 33;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            broker_id: r.read()?,
            ..Self::default()
        };
        if v >= 2 {
            it.is_migrating_zk_broker = r.read()?;
        }
        it.incarnation_id = r.read()?;
        it.broker_epoch = r.read()?;
        it.end_points = r.read()?;
        it.features = r.read()?;
        it.rack = r.read()?;
        it.fenced = r.read()?;
        if v >= 1 {
            it.in_controlled_shutdown = r.read()?;
        }
        r.tags(|tag, r| {
            match tag {
                0 if v >= 3 => it.log_dirs = r.read()?,
                1 if v >= 4 => it.cordoned_log_dirs = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.broker_id.write(w)?;
        if v >= 2 {
            self.is_migrating_zk_broker.write(w)?;
        } else {
            w.absent(!self.is_migrating_zk_broker, "IsMigratingZkBroker")?;
        }
        self.incarnation_id.write(w)?;
        self.broker_epoch.write(w)?;
        self.end_points.write(w)?;
        self.features.write(w)?;
        self.rack.write(w)?;
        self.fenced.write(w)?;
        if v >= 1 {
            self.in_controlled_shutdown.write(w)?;
        } else {
            w.absent(!self.in_controlled_shutdown, "InControlledShutdown")?;
        }
        if v < 3 {
            w.absent(self.log_dirs.is_empty(), "LogDirs")?;
        }
        if v < 4 {
            w.absent(self.cordoned_log_dirs.is_none(), "CordonedLogDirs")?;
        }
        w.tags(|tags| {
            if v >= 3 && !self.log_dirs.is_empty() {
                tags.put(0, &self.log_dirs)?;
            }
            if v >= 4 && self.cordoned_log_dirs.is_some() {
                tags.put(1, &self.cordoned_log_dirs)?;
            }
            Ok(())
        })
    }
}

impl ToJson for RegisterBrokerRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("brokerId", &self.broker_id, v);
        if v >= 2 {
            it.put("isMigratingZkBroker", &self.is_migrating_zk_broker, v);
        }
        it.put("incarnationId", &self.incarnation_id, v);
        it.put("brokerEpoch", &self.broker_epoch, v);
        it.put("endPoints", &self.end_points, v);
        it.put("features", &self.features, v);
        it.put("rack", &self.rack, v);
        it.put("fenced", &self.fenced, v);
        if v >= 1 {
            it.put("inControlledShutdown", &self.in_controlled_shutdown, v);
        }
        if v >= 3 && !self.log_dirs.is_empty() {
            it.put("logDirs", &self.log_dirs, v);
        }
        if v >= 4 && self.cordoned_log_dirs.is_some() {
            it.put("cordonedLogDirs", &self.cordoned_log_dirs, v);
        }
        it.into()
    }
}

/// Part of [`RegisterBrokerRecord`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerEndpoint {
    /// `string`, versions 0+.
    pub name: String,
    /// `string`, versions 0+.
    pub host: String,
    /// `uint16`, versions 0+.
    pub port: u16,
    /// `int16`, versions 0+.
    pub security_protocol: i16,
}

impl Wire for BrokerEndpoint {
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

impl ToJson for BrokerEndpoint {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("name", &self.name, v);
        it.put("host", &self.host, v);
        it.put("port", &self.port, v);
        it.put("securityProtocol", &self.security_protocol, v);
        it.into()
    }
}

/// Part of [`RegisterBrokerRecord`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerFeature {
    /// `string`, versions 0+.
    pub name: String,
    /// `int16`, versions 0+.
    pub min_supported_version: i16,
    /// `int16`, versions 0+.
    pub max_supported_version: i16,
}

impl Wire for BrokerFeature {
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

impl ToJson for BrokerFeature {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("name", &self.name, v);
        it.put("minSupportedVersion", &self.min_supported_version, v);
        it.put("maxSupportedVersion", &self.max_supported_version, v);
        it.into()
    }
}

impl Message for RegisterBrokerRecord {
    const NAME: &'static str = "RegisterBrokerRecord";
    const VERSIONS: (i16, i16) = (0, 4);
    const FLEXIBLE_SINCE: i16 = 0;
}
