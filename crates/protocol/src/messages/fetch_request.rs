//! Generated from `crates/protocol/schemas/api/01-Fetch.txt` by `cargo xtask codegen`; not edited by hand.

use highwater_types::{NodeId, Uuid};

use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A request of API 1; versions 4-18.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// `string`, versions 12+, tag 0, or null.
    pub cluster_id: Option<String>,
    /// `int32`, versions 0-14.
    pub replica_id: NodeId,
    /// `ReplicaState`, versions 15+, tag 1.
    pub replica_state: ReplicaState,
    /// `int32`, versions 0+.
    pub max_wait_ms: i32,
    /// `int32`, versions 0+.
    pub min_bytes: i32,
    /// `int32`, versions 3+.
    pub max_bytes: i32,
    /// `int8`, versions 4+.
    pub isolation_level: i8,
    /// `int32`, versions 7+.
    pub session_id: i32,
    /// `int32`, versions 7+.
    pub session_epoch: i32,
    /// `[]FetchTopic`, versions 0+.
    pub topics: Vec<FetchTopic>,
    /// `[]ForgottenTopic`, versions 7+.
    pub forgotten_topics_data: Vec<ForgottenTopic>,
    /// `string`, versions 11+.
    pub rack_id: String,
}

impl Default for FetchRequest {
    fn default() -> Self {
        Self {
            cluster_id: None,
            replica_id: NodeId::NONE,
            replica_state: ReplicaState::default(),
            max_wait_ms: 0,
            min_bytes: 0,
            max_bytes: i32::MAX,
            isolation_level: 0,
            session_id: 0,
            session_epoch: -1,
            topics: Vec::new(),
            forgotten_topics_data: Vec::new(),
            rack_id: String::new(),
        }
    }
}

impl Wire for FetchRequest {
    const SIZE_MIN: usize = 21;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self::default();
        if v <= 14 {
            it.replica_id = r.read()?;
        }
        it.max_wait_ms = r.read()?;
        it.min_bytes = r.read()?;
        it.max_bytes = r.read()?;
        it.isolation_level = r.read()?;
        if v >= 7 {
            it.session_id = r.read()?;
            it.session_epoch = r.read()?;
        }
        it.topics = r.read()?;
        if v >= 7 {
            it.forgotten_topics_data = r.read()?;
        }
        if v >= 11 {
            it.rack_id = r.read()?;
        }
        r.tags(|tag, r| {
            match tag {
                0 => it.cluster_id = r.read()?,
                1 if v >= 15 => it.replica_state = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v <= 14 {
            self.replica_id.write(w)?;
        } else {
            w.absent(self.replica_id == NodeId::NONE, "ReplicaId")?;
        }
        self.max_wait_ms.write(w)?;
        self.min_bytes.write(w)?;
        self.max_bytes.write(w)?;
        self.isolation_level.write(w)?;
        if v >= 7 {
            self.session_id.write(w)?;
            self.session_epoch.write(w)?;
        }
        self.topics.write(w)?;
        if v >= 7 {
            self.forgotten_topics_data.write(w)?;
        } else {
            w.absent(self.forgotten_topics_data.is_empty(), "ForgottenTopicsData")?;
        }
        if v >= 11 {
            self.rack_id.write(w)?;
        }
        if v < 15 {
            w.absent(
                self.replica_state == ReplicaState::default(),
                "ReplicaState",
            )?;
        }
        w.tags(|tags| {
            if self.cluster_id.is_some() {
                tags.put(0, &self.cluster_id)?;
            }
            if v >= 15 && self.replica_state != ReplicaState::default() {
                tags.put(1, &self.replica_state)?;
            }
            Ok(())
        })
    }
}

/// Part of [`FetchRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaState {
    /// `int32`, versions 15+.
    pub replica_id: NodeId,
    /// `int64`, versions 15+.
    pub replica_epoch: i64,
}

impl Default for ReplicaState {
    fn default() -> Self {
        Self {
            replica_id: NodeId::NONE,
            replica_epoch: -1,
        }
    }
}

impl Wire for ReplicaState {
    const SIZE_MIN: usize = 13;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            replica_id: r.read()?,
            replica_epoch: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.replica_id.write(w)?;
        self.replica_epoch.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`FetchRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchTopic {
    /// `string`, versions 0-12.
    pub topic: String,
    /// `uuid`, versions 13+.
    pub topic_id: Uuid,
    /// `[]FetchPartition`, versions 0+.
    pub partitions: Vec<FetchPartition>,
}

impl Wire for FetchTopic {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self::default();
        if v <= 12 {
            it.topic = r.read()?;
        }
        if v >= 13 {
            it.topic_id = r.read()?;
        }
        it.partitions = r.read()?;
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v <= 12 {
            self.topic.write(w)?;
        }
        if v >= 13 {
            self.topic_id.write(w)?;
        }
        self.partitions.write(w)?;
        w.no_tags();
        Ok(())
    }
}

/// Part of [`FetchRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchPartition {
    /// `int32`, versions 0+.
    pub partition: i32,
    /// `int32`, versions 9+.
    pub current_leader_epoch: i32,
    /// `int64`, versions 0+.
    pub fetch_offset: i64,
    /// `int32`, versions 12+.
    pub last_fetched_epoch: i32,
    /// `int64`, versions 5+.
    pub log_start_offset: i64,
    /// `int32`, versions 0+.
    pub partition_max_bytes: i32,
    /// `uuid`, versions 17+, tag 0.
    pub replica_directory_id: Uuid,
    /// `int64`, versions 18+, tag 1.
    pub high_watermark: i64,
}

impl Default for FetchPartition {
    fn default() -> Self {
        Self {
            partition: 0,
            current_leader_epoch: -1,
            fetch_offset: 0,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes: 0,
            replica_directory_id: Uuid::ZERO,
            high_watermark: i64::MAX,
        }
    }
}

impl Wire for FetchPartition {
    const SIZE_MIN: usize = 16;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self {
            partition: r.read()?,
            ..Self::default()
        };
        if v >= 9 {
            it.current_leader_epoch = r.read()?;
        }
        it.fetch_offset = r.read()?;
        if v >= 12 {
            it.last_fetched_epoch = r.read()?;
        }
        if v >= 5 {
            it.log_start_offset = r.read()?;
        }
        it.partition_max_bytes = r.read()?;
        r.tags(|tag, r| {
            match tag {
                0 if v >= 17 => it.replica_directory_id = r.read()?,
                1 if v >= 18 => it.high_watermark = r.read()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        self.partition.write(w)?;
        if v >= 9 {
            self.current_leader_epoch.write(w)?;
        }
        self.fetch_offset.write(w)?;
        if v >= 12 {
            self.last_fetched_epoch.write(w)?;
        } else {
            w.absent(self.last_fetched_epoch == -1, "LastFetchedEpoch")?;
        }
        if v >= 5 {
            self.log_start_offset.write(w)?;
        }
        self.partition_max_bytes.write(w)?;
        w.tags(|tags| {
            if v >= 17 && self.replica_directory_id != Uuid::ZERO {
                tags.put(0, &self.replica_directory_id)?;
            }
            if v >= 18 && self.high_watermark != i64::MAX {
                tags.put(1, &self.high_watermark)?;
            }
            Ok(())
        })
    }
}

/// Part of [`FetchRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForgottenTopic {
    /// `string`, versions 7-12.
    pub topic: String,
    /// `uuid`, versions 13+.
    pub topic_id: Uuid,
    /// `[]int32`, versions 7+.
    pub partitions: Vec<i32>,
}

impl Wire for ForgottenTopic {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let v = r.version();
        let mut it = Self::default();
        if v <= 12 {
            it.topic = r.read()?;
        }
        if v >= 13 {
            it.topic_id = r.read()?;
        }
        it.partitions = r.read()?;
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        let v = w.version();
        if v <= 12 {
            self.topic.write(w)?;
        }
        if v >= 13 {
            self.topic_id.write(w)?;
        }
        self.partitions.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl Message for FetchRequest {
    const NAME: &'static str = "FetchRequest";
    const VERSIONS: (i16, i16) = (4, 18);
    const FLEXIBLE_SINCE: i16 = 12;
}
