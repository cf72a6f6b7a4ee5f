//! Generated from `crates/protocol/schemas/coordinator/group-StreamsGroupTopology.txt` by `cargo xtask codegen`; not edited by hand.

use serde_json::Value;

use crate::stored::json::{Object, ToJson};
use crate::wire::{DecodeError, EncodeError, Message, Reader, Wire, Writer};

/// A value of a coordinator's log, type 23; versions 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsGroupTopologyValue {
    /// `int32`, versions 0+.
    pub epoch: i32,
    /// `[]Subtopology`, versions 0+.
    pub subtopologies: Vec<Subtopology>,
}

impl Wire for StreamsGroupTopologyValue {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            epoch: r.read()?,
            subtopologies: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.epoch.write(w)?;
        self.subtopologies.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for StreamsGroupTopologyValue {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("epoch", &self.epoch, v);
        it.put("subtopologies", &self.subtopologies, v);
        it.into()
    }
}

/// Part of [`StreamsGroupTopologyValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicConfig {
    /// `string`, versions 0+.
    pub key: String,
    /// `string`, versions 0+.
    pub value: String,
}

impl Wire for TopicConfig {
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

impl ToJson for TopicConfig {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("key", &self.key, v);
        it.put("value", &self.value, v);
        it.into()
    }
}

/// Part of [`StreamsGroupTopologyValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicInfo {
    /// `string`, versions 0+.
    pub name: String,
    /// `int32`, versions 0+.
    pub partitions: i32,
    /// `int16`, versions 0+.
    pub replication_factor: i16,
    /// `[]TopicConfig`, versions 0+.
    pub topic_configs: Vec<TopicConfig>,
}

impl Wire for TopicInfo {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            name: r.read()?,
            partitions: r.read()?,
            replication_factor: r.read()?,
            topic_configs: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.name.write(w)?;
        self.partitions.write(w)?;
        self.replication_factor.write(w)?;
        self.topic_configs.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for TopicInfo {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("name", &self.name, v);
        it.put("partitions", &self.partitions, v);
        it.put("replicationFactor", &self.replication_factor, v);
        it.put("topicConfigs", &self.topic_configs, v);
        it.into()
    }
}

/// Part of [`StreamsGroupTopologyValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subtopology {
    /// `string`, versions 0+.
    pub subtopology_id: String,
    /// `[]string`, versions 0+.
    pub source_topics: Vec<String>,
    /// `[]string`, versions 0+.
    pub source_topic_regex: Vec<String>,
    /// `[]TopicInfo`, versions 0+.
    pub state_changelog_topics: Vec<TopicInfo>,
    /// `[]string`, versions 0+.
    pub repartition_sink_topics: Vec<String>,
    /// `[]TopicInfo`, versions 0+.
    pub repartition_source_topics: Vec<TopicInfo>,
    /// `[]CopartitionGroup`, versions 0+.
    pub copartition_groups: Vec<CopartitionGroup>,
}

impl Wire for Subtopology {
    const SIZE_MIN: usize = 8;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            subtopology_id: r.read()?,
            source_topics: r.read()?,
            source_topic_regex: r.read()?,
            state_changelog_topics: r.read()?,
            repartition_sink_topics: r.read()?,
            repartition_source_topics: r.read()?,
            copartition_groups: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.subtopology_id.write(w)?;
        self.source_topics.write(w)?;
        self.source_topic_regex.write(w)?;
        self.state_changelog_topics.write(w)?;
        self.repartition_sink_topics.write(w)?;
        self.repartition_source_topics.write(w)?;
        self.copartition_groups.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for Subtopology {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("subtopologyId", &self.subtopology_id, v);
        it.put("sourceTopics", &self.source_topics, v);
        it.put("sourceTopicRegex", &self.source_topic_regex, v);
        it.put("stateChangelogTopics", &self.state_changelog_topics, v);
        it.put("repartitionSinkTopics", &self.repartition_sink_topics, v);
        it.put(
            "repartitionSourceTopics",
            &self.repartition_source_topics,
            v,
        );
        it.put("copartitionGroups", &self.copartition_groups, v);
        it.into()
    }
}

/// Part of [`StreamsGroupTopologyValue`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopartitionGroup {
    /// `[]int16`, versions 0+.
    pub source_topics: Vec<i16>,
    /// `[]int16`, versions 0+.
    pub source_topic_regex: Vec<i16>,
    /// `[]int16`, versions 0+.
    pub repartition_source_topics: Vec<i16>,
}

impl Wire for CopartitionGroup {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let it = Self {
            source_topics: r.read()?,
            source_topic_regex: r.read()?,
            repartition_source_topics: r.read()?,
        };
        r.skip_tags()?;
        Ok(it)
    }

    fn write(&self, w: &mut Writer) -> Result<(), EncodeError> {
        self.source_topics.write(w)?;
        self.source_topic_regex.write(w)?;
        self.repartition_source_topics.write(w)?;
        w.no_tags();
        Ok(())
    }
}

impl ToJson for CopartitionGroup {
    fn to_json(&self, v: i16) -> Value {
        let mut it = Object::default();
        it.put("sourceTopics", &self.source_topics, v);
        it.put("sourceTopicRegex", &self.source_topic_regex, v);
        it.put(
            "repartitionSourceTopics",
            &self.repartition_source_topics,
            v,
        );
        it.into()
    }
}

impl Message for StreamsGroupTopologyValue {
    const NAME: &'static str = "StreamsGroupTopologyValue";
    const VERSIONS: (i16, i16) = (0, 0);
    const FLEXIBLE_SINCE: i16 = 0;
}
