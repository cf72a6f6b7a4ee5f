//! Generated from `crates/protocol/schemas/metadata/BrokerRegistrationChangeRecord.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{NodeId, Uuid};
use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A record of the cluster metadata, type 17; versions 0-3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerRegistrationChangeRecord {
    /// `int32`, versions 0+.
    pub broker_id: NodeId,
    /// `int64`, versions 0+.
    pub broker_epoch: i64,
    /// `int8`, versions 0+, tag 0.
    pub fenced: i8,
    /// `int8`, versions 1+, tag 1.
    pub in_controlled_shutdown: i8,
    /// `[]uuid`, versions 2+, tag 2.
    pub log_dirs: Vec<Uuid>,
    /// `[]uuid`, versions 3+, tag 3, or null.
    pub cordoned_log_dirs: Option<Vec<Uuid>>,
}

impl Default for BrokerRegistrationChangeRecord {
    fn default() -> Self {
        Self {
            broker_id: NodeId::new(0),
            broker_epoch: 0,
            fenced: 0,
            in_controlled_shutdown: 0,
            log_dirs: Vec::new(),
            cordoned_log_dirs: None,
        }
    }
}

impl Wire for BrokerRegistrationChangeRecord {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            broker_id: r.read()?,
            broker_epoch: r.read()?,
            ..Self::default()
        };
        r.tags(|tag, r| {
            match tag {
                0 => it.fenced = r.read()?,
                1 if v >= 1 => it.in_controlled_shutdown = r.read()?,
                2 if v >= 2 => it.log_dirs = r.read()?,
                3 if v >= 3 => it.cordoned_log_dirs = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.broker_id.write(w)?;
        self.broker_epoch.write(w)?;
        if v < 1 {
            w.absent(self.in_controlled_shutdown == 0, "InControlledShutdown")?;
        }
        if v < 2 {
            w.absent(self.log_dirs.is_empty(), "LogDirs")?;
        }
        if v < 3 {
            w.absent(self.cordoned_log_dirs.is_none(), "CordonedLogDirs")?;
        }
        w.tags(|tags| {
            if self.fenced != 0 {
                tags.put(0, &self.fenced)?;
            }
            if v >= 1 && self.in_controlled_shutdown != 0 {
                tags.put(1, &self.in_controlled_shutdown)?;
            }
            if v >= 2 && !self.log_dirs.is_empty() {
                tags.put(2, &self.log_dirs)?;
            }
            if v >= 3 && self.cordoned_log_dirs.is_some() {
                tags.put(3, &self.cordoned_log_dirs)?;
            }
            Ok(())
        })
    }
}

impl ToJson for BrokerRegistrationChangeRecord {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("brokerId", &self.broker_id, v);
        it.put("brokerEpoch", &self.broker_epoch, v);
        if self.fenced != 0 {
            it.put("fenced", &self.fenced, v);
        }
        if v >= 1 && self.in_controlled_shutdown != 0 {
            it.put("inControlledShutdown", &self.in_controlled_shutdown, v);
        }
        if v >= 2 && !self.log_dirs.is_empty() {
            it.put("logDirs", &self.log_dirs, v);
        }
        if v >= 3 && self.cordoned_log_dirs.is_some() {
            it.put("cordonedLogDirs", &self.cordoned_log_dirs, v);
        }
        it.into()
    }
}

impl Message for BrokerRegistrationChangeRecord {
    const NAME: &'static str = "BrokerRegistrationChangeRecord";
    const VERSIONS: (i16, i16) = (0, 3);
    const FLEXIBLE_SINCE: i16 = 0;
}
