//! Generated from `crates/protocol/schemas/api/62-BrokerRegistration.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{NodeId, Uuid};

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 62; versions 0-4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerRegistrationRequest {
    /// `int32`, versions 0+.
    pub broker_id: NodeId,
    /// `string`, versions 0+.
    pub cluster_id: String,
    /// `uuid`, versions 0+.
    pub incarnation_id: Uuid,
    /// `[]Listener`, versions 0+.
    pub listeners: Vec<Listener>,
    /// `[]Feature`, versions 0+.
    pub features: Vec<Feature>,
    /// `string`, versions 0+, or null.
    pub rack: Option<String>,
    /// `bool`, versions 1+.
    pub is_migrating_zk_broker: bool,
    /// `[]uuid`, versions 2+.
    pub log_dirs: Vec<Uuid>,
    /// `int64`, versions 3+.
    pub previous_broker_epoch: i64,
}

impl Default for BrokerRegistrationRequest {
    fn default() -> Self {
        Self {
            broker_id: NodeId::new(0),
            cluster_id: String::new(),
            incarnation_id: Uuid::ZERO,
            listeners: Vec::new(),
            features: Vec::new(),
            rack: Some(String::new()),
            is_migrating_zk_broker: false,
            log_dirs: Vec::new(),
            previous_broker_epoch: -1,
        }
    }
}

impl Wire for BrokerRegistrationRequest {
    const SIZE_MIN: usize = 25;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            broker_id: r.read()?,
            cluster_id: r.read()?,
            incarnation_id: r.read()?,
            listeners: r.read()?,
            features: r.read()?,
            rack: r.read()?,
            ..Self::default()
        };
        if v >= 1 {
            it.is_migrating_zk_broker = r.read()?;
        }
        if v >= 2 {
            it.log_dirs = r.read()?;
        }
        if v >= 3 {
            it.previous_broker_epoch = r.read()?;
        }
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.broker_id.write(w)?;
        self.cluster_id.write(w)?;
        self.incarnation_id.write(w)?;
        self.listeners.write(w)?;
        self.features.write(w)?;
        self.rack.write(w)?;
        if v >= 1 {
            self.is_migrating_zk_broker.write(w)?;
        } else {
            w.absent(!self.is_migrating_zk_broker, "IsMigratingZkBroker")?;
        }
        if v >= 2 {
            self.log_dirs.write(w)?;
        }
        if v >= 3 {
            self.previous_broker_epoch.write(w)?;
        }
        w.no_tags();
        Ok(())
    }
}

/// Part of [`BrokerRegistrationRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listener {
    /// `string`, versions 0+.
    pub name: String,
    /// `string`, versions 0+.
    pub host: String,
    /// `uint16`, versions 0+.
    pub port: u16,
    /// `int16`, versions 0+.
    pub security_protocol: i16,
}

impl Wire for Listener {
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

/// Part of [`BrokerRegistrationRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feature {
    /// `string`, versions 0+.
    pub name: String,
    /// `int16`, versions 0+.
    pub min_supported_version: i16,
    /// `int16`, versions 0+.
    pub max_supported_version: i16,
}

impl Wire for Feature {
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

impl Message for BrokerRegistrationRequest {
    const NAME: &'static str = "BrokerRegistrationRequest";
    const VERSIONS: (i16, i16) = (0, 4);
    const FLEXIBLE_SINCE: i16 = 0;
}
