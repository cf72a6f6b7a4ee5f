//! Generated from `crates/protocol/schemas/api/63-BrokerHeartbeat.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{NodeId, Uuid};

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 63; versions 0-2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerHeartbeatRequest {
    /// `int32`, versions 0+.
    pub broker_id: NodeId,
    /// `int64`, versions 0+.
    pub broker_epoch: i64,
    /// `int64`, versions 0+.
    pub current_metadata_offset: i64,
    /// `bool`, versions 0+.
    pub want_fence: bool,
    /// `bool`, versions 0+.
    pub want_shut_down: bool,
    /// `[]uuid`, versions 1+, tag 0.
    pub offline_log_dirs: Vec<Uuid>,
    /// `[]uuid`, versions 2+, tag 1, or null.
    pub cordoned_log_dirs: Option<Vec<Uuid>>,
}

impl Default for BrokerHeartbeatRequest {
    fn default() -> Self {
        Self {
            broker_id: NodeId::new(0),
            broker_epoch: -1,
            current_metadata_offset: 0,
            want_fence: false,
            want_shut_down: false,
            offline_log_dirs: Vec::new(),
            cordoned_log_dirs: None,
        }
    }
}

impl Wire for BrokerHeartbeatRequest {
    const SIZE_MIN: usize = 23;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            broker_id: r.read()?,
            broker_epoch: r.read()?,
            current_metadata_offset: r.read()?,
            want_fence: r.read()?,
            want_shut_down: r.read()?,
            ..Self::default()
        };
        r.tags(|tag, r| {
            match tag {
                0 if v >= 1 => it.offline_log_dirs = r.read()?,
                1 if v >= 2 => it.cordoned_log_dirs = r.read()?,
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
        self.current_metadata_offset.write(w)?;
        self.want_fence.write(w)?;
        self.want_shut_down.write(w)?;
        if v < 1 {
            w.absent(self.offline_log_dirs.is_empty(), "OfflineLogDirs")?;
        }
        if v < 2 {
            w.absent(self.cordoned_log_dirs.is_none(), "CordonedLogDirs")?;
        }
        w.tags(|tags| {
            if v >= 1 && !self.offline_log_dirs.is_empty() {
                tags.put(0, &self.offline_log_dirs)?;
            }
            if v >= 2 && self.cordoned_log_dirs.is_some() {
                tags.put(1, &self.cordoned_log_dirs)?;
            }
            Ok(())
        })
    }
}

impl Message for BrokerHeartbeatRequest {
    const NAME: &'static str = "BrokerHeartbeatRequest";
    const VERSIONS: (i16, i16) = (0, 2);
    const FLEXIBLE_SINCE: i16 = 0;
}
