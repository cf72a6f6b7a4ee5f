use std::collections::{BTreeMap, BTreeSet};

use highwater_records::stored::MetadataRecord;
use highwater_records::stored::metadata::{ConfigRecord, PartitionRecord, TopicRecord};
use highwater_types::{
    DirectoryId, ErrorCode, NodeId, PartitionIndex, TopicId, TopicName, TopicNameError, Uuid,
};

use super::placement::Placement;
use super::{Controller, Decision, Refusal};
use crate::config::{ConfigEntry, TopicConfigError, check_topic_configs, describe_topic};
use crate::image::{MetadataImage, PartitionImage};
use crate::snapshot::partition_record;

/// Most partitions that one request may make, over all its topics.
pub const PARTITIONS_PER_REQUEST_MAX: usize = 10_000;

/// The topic of the metadata log, which is nobody's to make.
const CLUSTER_METADATA: &str = "__cluster_metadata";

/// Topics to make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateTopics {
    /// Each stands or falls alone.
    pub topics: Vec<CreateTopic>,
    /// Only say what would happen.
    pub validate_only: bool,
}

/// A topic to make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateTopic {
    /// Its name, as asked for.
    pub name: String,
    /// Partitions; -1 for the default, or with assignments.
    pub partitions: i32,
    /// Replicas of each; -1 for the default, or with assignments.
    pub replication_factor: i16,
    /// The replicas of each partition by number; empty to let the controller choose.
    pub assignments: Vec<(i32, Vec<NodeId>)>,
    /// Configs of its own.
    pub configs: Vec<(String, Option<String>)>,
}

/// What became of one topic.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicOutcome {
    /// Its name, as asked for.
    pub name: String,
    /// What was made, or why nothing was.
    pub result: Result<CreatedTopic, Refusal>,
}

/// A topic that was made, or would be.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatedTopic {
    /// Its id; one that nobody gets when it was only asked whether it could be made.
    pub id: TopicId,
    /// Partitions.
    pub partitions: i32,
    /// Replicas of the first partition.
    pub replication_factor: i16,
    /// Every config in force, by name.
    pub configs: Vec<ConfigEntry>,
}

impl Controller {
    /// Decides on new topics. `random` gives bytes for ids and placement.
    pub fn create_topics(
        &self,
        image: &MetadataImage,
        request: &CreateTopics,
        random: &mut dyn FnMut() -> [u8; 16],
    ) -> Decision<Vec<TopicOutcome>> {
        let mut records = Vec::new();
        let mut outcomes = Vec::with_capacity(request.topics.len());
        let mut batch = Batch::new(image, request);
        if self.wants_too_many(request, &batch.repeated) {
            return Decision::answer(all_refused(request, &too_many_partitions()));
        }
        let mut refused = BTreeSet::new();
        for topic in &request.topics {
            // What is named twice is refused in one row, as in Kafka.
            let is_repeated = batch.repeated.contains(topic.name.as_str());
            if is_repeated && !refused.insert(topic.name.as_str()) {
                continue;
            }
            let made = batch.check_name(topic).and_then(|name| {
                let made = self.create_topic(image, topic, &name, random)?;
                batch.take_partitions(made.partitions.len())?;
                batch.note_made(name);
                Ok(made)
            });
            let result = made.map(|made| {
                if !request.validate_only {
                    records.extend(made.head);
                    records.extend(made.partitions);
                }
                made.created
            });
            outcomes.push(TopicOutcome {
                name: topic.name.clone(),
                result,
            });
        }
        Decision {
            records,
            answer: outcomes,
        }
    }

    /// Whether the topics together ask for more partitions than one request may have. As in Kafka
    /// that is looked at first, whatever else is wrong with them.
    fn wants_too_many(&self, request: &CreateTopics, repeated: &BTreeSet<&str>) -> bool {
        let default = self.config.number("num.partitions");
        let default = default.expect("the key has a default");
        let once = |topic: &&CreateTopic| !repeated.contains(topic.name.as_str());
        let wanted = |topic: &CreateTopic| match topic.partitions {
            _ if !topic.assignments.is_empty() => {
                i64::try_from(topic.assignments.len()).unwrap_or(i64::MAX)
            }
            -1 => default,
            partitions => i64::from(partitions).max(0),
        };
        let topics = request.topics.iter().filter(once);
        let total = topics.map(wanted).fold(0, i64::saturating_add);
        usize::try_from(total).is_ok_and(|total| total > PARTITIONS_PER_REQUEST_MAX)
    }

    fn create_topic(
        &self,
        image: &MetadataImage,
        topic: &CreateTopic,
        name: &TopicName,
        random: &mut dyn FnMut() -> [u8; 16],
    ) -> Result<Made, Refusal> {
        if let Some((name, _)) = topic.configs.iter().find(|(_, value)| value.is_none()) {
            let why = TopicConfigError::Null(name.clone());
            return Err(Refusal::new(ErrorCode::INVALID_CONFIG, why.to_string()));
        }
        // Of a key that is named twice the last value counts, as in Kafka.
        let configs = topic.configs.iter();
        let configs: BTreeMap<&str, Option<&str>> = configs
            .map(|(name, value)| (name.as_str(), value.as_deref()))
            .collect();
        let configs = check_topic_configs(self.layers(image), configs)
            .map_err(|why| Refusal::new(ErrorCode::INVALID_CONFIG, why.to_string()))?;
        let replicas = if topic.assignments.is_empty() {
            self.placed(image, topic, random)?
        } else {
            assigned(image, topic)?
        };
        let id = TopicId::new(Uuid::from_random(random()));
        let partitions = replicas.iter().enumerate().map(|(index, replicas)| {
            let index = PartitionIndex::new(i32::try_from(index).expect("a bounded number"));
            MetadataRecord::from(new_partition(image, id, index, replicas))
        });
        let partitions: Vec<_> = partitions.collect();
        let topic_record = TopicRecord {
            name: name.to_string(),
            topic_id: id.uuid(),
        };
        let mut head: Vec<MetadataRecord> = vec![topic_record.into()];
        head.extend(configs.iter().map(|(key, value)| {
            MetadataRecord::from(ConfigRecord {
                resource_type: crate::image::ResourceKind::Topic.to_wire(),
                resource_name: name.to_string(),
                name: key.clone(),
                value: Some(value.clone()),
            })
        }));
        let factor = replicas.first().map_or(0, Vec::len);
        let created = CreatedTopic {
            id,
            partitions: i32::try_from(replicas.len()).expect("a bounded number"),
            replication_factor: i16::try_from(factor).unwrap_or(i16::MAX),
            configs: describe_topic(self.layers(image), Some(&configs)),
        };
        Ok(Made {
            head,
            partitions,
            created,
        })
    }

    /// Replicas that the controller chooses. The numbers are checked before anything is made of
    /// them.
    fn placed(
        &self,
        image: &MetadataImage,
        topic: &CreateTopic,
        random: &mut dyn FnMut() -> [u8; 16],
    ) -> Result<Vec<Vec<NodeId>>, Refusal> {
        if topic.replication_factor < -1 || topic.replication_factor == 0 {
            return Err(Refusal::new(
                ErrorCode::INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            ));
        }
        if topic.partitions < -1 || topic.partitions == 0 {
            return Err(Refusal::new(
                ErrorCode::INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            ));
        }
        let default = |name: &str| self.config.number(name).expect("the key has a default");
        let partitions = match topic.partitions {
            -1 => default("num.partitions"),
            partitions => i64::from(partitions),
        };
        let factor = match topic.replication_factor {
            -1 => i16::try_from(default("default.replication.factor")).unwrap_or(i16::MAX),
            factor => factor,
        };
        let partitions = usize::try_from(partitions).unwrap_or(usize::MAX);
        if partitions > PARTITIONS_PER_REQUEST_MAX {
            return Err(too_many_partitions());
        }
        let [a, b, c, d, e, f, g, h, ..] = random();
        let placement = Placement::new(image, u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        placement.check(factor).map_err(|why| {
            let text = format!("Unable to replicate the partition {factor} time(s): {why}");
            Refusal::new(ErrorCode::INVALID_REPLICATION_FACTOR, text)
        })?;
        Ok((0..partitions)
            .map(|index| placement.place(index, factor))
            .collect())
    }
}

/// The same refusal for each topic as it was asked for.
fn all_refused(request: &CreateTopics, why: &Refusal) -> Vec<TopicOutcome> {
    let outcome = |topic: &CreateTopic| TopicOutcome {
        name: topic.name.clone(),
        result: Err(why.clone()),
    };
    request.topics.iter().map(outcome).collect()
}

struct Made {
    head: Vec<MetadataRecord>,
    partitions: Vec<MetadataRecord>,
    created: CreatedTopic,
}

/// What the topics of one request have to do with each other.
struct Batch<'a> {
    image: &'a MetadataImage,
    repeated: BTreeSet<&'a str>,
    /// Names that are taken by what metrics make of them, built when first needed.
    collisions: Option<BTreeMap<String, TopicName>>,
    partitions: usize,
}

impl<'a> Batch<'a> {
    fn new(image: &'a MetadataImage, request: &'a CreateTopics) -> Self {
        let mut seen = BTreeSet::new();
        let names = request.topics.iter().map(|topic| topic.name.as_str());
        let repeated = names.filter(|name| !seen.insert(*name)).collect();
        Self {
            image,
            repeated,
            collisions: None,
            partitions: 0,
        }
    }

    fn check_name(&mut self, topic: &CreateTopic) -> Result<TopicName, Refusal> {
        let text = topic.name.as_str();
        if self.repeated.contains(text) {
            let why = "Duplicate topic name.";
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, why));
        }
        if text == CLUSTER_METADATA {
            let why = format!("Creation of internal topic {CLUSTER_METADATA} is prohibited.");
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, why));
        }
        let name = TopicName::new(text).map_err(|why| {
            let why = format!("Topic name is invalid: {}", name_fault(text, why));
            Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why)
        })?;
        if self.image.topic_by_name(text).is_some() {
            let why = format!("Topic '{text}' already exists.");
            return Err(Refusal::new(ErrorCode::TOPIC_ALREADY_EXISTS, why));
        }
        if let Some(other) = self.collision(&name) {
            let why = format!("Topic '{text}' collides with existing topic: {other}");
            return Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why));
        }
        Ok(name)
    }

    /// A topic whose name differs only by `.` and `_`: metrics could not tell them apart.
    fn collision(&mut self, name: &TopicName) -> Option<TopicName> {
        if !name.as_str().contains(['.', '_']) {
            return None;
        }
        let existing = self.collisions.get_or_insert_with(|| {
            let names = self.image.topic_ids.keys();
            let names = names.filter(|name| name.as_str().contains(['.', '_']));
            names.map(|name| (folded(name), name.clone())).collect()
        });
        existing.get(&folded(name)).cloned()
    }

    /// A topic that is made counts for those after it.
    fn note_made(&mut self, name: TopicName) {
        if let Some(collisions) = &mut self.collisions {
            collisions.insert(folded(&name), name);
        }
    }

    fn take_partitions(&mut self, count: usize) -> Result<(), Refusal> {
        if self.partitions + count > PARTITIONS_PER_REQUEST_MAX {
            return Err(too_many_partitions());
        }
        self.partitions += count;
        Ok(())
    }
}

/// A name as metrics have it.
fn folded(name: &TopicName) -> String {
    name.as_str().replace('.', "_")
}

fn too_many_partitions() -> Refusal {
    let text = "Excessively large number of partitions per request.";
    Refusal::new(ErrorCode::POLICY_VIOLATION, text)
}

/// As Kafka says it.
fn name_fault(name: &str, why: TopicNameError) -> String {
    match why {
        TopicNameError::Empty => "the empty string is not allowed".to_owned(),
        TopicNameError::Dots => format!("'{name}' is not allowed"),
        TopicNameError::TooLong => format!(
            "the length of '{}...' is longer than the max allowed length {}",
            name.chars().take(32).collect::<String>(),
            TopicName::BYTES_MAX
        ),
        TopicNameError::Character => format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' \
             and '-'"
        ),
    }
}

/// Replicas that the asker chose.
fn assigned(image: &MetadataImage, topic: &CreateTopic) -> Result<Vec<Vec<NodeId>>, Refusal> {
    let request = |text: &str| Refusal::new(ErrorCode::INVALID_REQUEST, text);
    if topic.replication_factor != -1 {
        return Err(request(
            "A manual partition assignment was specified, but replication factor was not set to \
             -1.",
        ));
    }
    if topic.partitions != -1 {
        return Err(request(
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ));
    }
    let invalid = |text: String| Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, text);
    if topic.assignments.len() > PARTITIONS_PER_REQUEST_MAX {
        return Err(invalid(
            "The manual partition assignment is too long.".to_owned(),
        ));
    }
    let mut by_index: BTreeMap<i32, &Vec<NodeId>> = BTreeMap::new();
    let mut factor = None;
    for (index, replicas) in &topic.assignments {
        if by_index.insert(*index, replicas).is_some() {
            return Err(invalid(format!(
                "Found multiple manual partition assignments for partition {index}"
            )));
        }
        check_assignment(image, *index, replicas, &mut factor).map_err(invalid)?;
    }
    if !by_index
        .keys()
        .copied()
        .eq(0..by_index.len().try_into().unwrap_or(i32::MAX))
    {
        return Err(invalid(
            "partitions should be a consecutive 0-based integer sequence".to_owned(),
        ));
    }
    Ok(by_index.into_values().cloned().collect())
}

fn check_assignment(
    image: &MetadataImage,
    index: i32,
    replicas: &[NodeId],
    factor: &mut Option<usize>,
) -> Result<(), String> {
    const HEAD: &str = "The manual partition assignment includes";
    if replicas.is_empty() {
        return Err(format!("{HEAD} an empty replica list."));
    }
    // A broker appears once at most, so a longer list than there are brokers ends early.
    let mut seen = BTreeSet::new();
    for id in replicas {
        if image.broker(*id).is_none() {
            return Err(format!(
                "{HEAD} broker {id}, but no such broker is registered."
            ));
        }
        if !seen.insert(*id) {
            return Err(format!("{HEAD} the broker {id} more than once."));
        }
    }
    let before = *factor.get_or_insert(replicas.len());
    if before != replicas.len() {
        return Err(format!(
            "{HEAD} a partition with {} replica(s), but this is not consistent with previous \
             partitions, which have {before} replica(s).",
            replicas.len()
        ));
    }
    if !replicas.iter().any(|id| image.is_active(*id)) {
        return Err(format!(
            "All brokers specified in the manual partition assignment for partition {index} are \
             fenced or in controlled shutdown."
        ));
    }
    Ok(())
}

fn new_partition(
    image: &MetadataImage,
    topic_id: TopicId,
    index: PartitionIndex,
    replicas: &[NodeId],
) -> PartitionRecord {
    let isr: Vec<NodeId> = replicas
        .iter()
        .copied()
        .filter(|id| image.is_active(*id))
        .collect();
    let partition = PartitionImage {
        assigned_replicas: replicas.to_vec(),
        directories: replicas.iter().map(|id| directory(image, *id)).collect(),
        leader: isr.first().copied().unwrap_or(NodeId::NONE),
        in_sync_replicas: isr,
        leader_epoch: highwater_types::LeaderEpoch::ZERO,
        partition_epoch: highwater_types::PartitionEpoch::ZERO,
        ..PartitionImage::default()
    };
    partition_record(topic_id.uuid(), index, &partition)
}

/// A broker's only directory; with several it says later where the replica is (KIP-858).
fn directory(image: &MetadataImage, id: NodeId) -> DirectoryId {
    match image.broker(id).map(|broker| broker.directories.as_slice()) {
        Some([only]) => *only,
        _ => DirectoryId::UNASSIGNED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::testing::{Cluster, ids};

    fn topic(name: &str) -> CreateTopic {
        CreateTopic {
            name: name.to_owned(),
            partitions: 1,
            replication_factor: 1,
            ..CreateTopic::default()
        }
    }

    fn refusal(cluster: &mut Cluster, topic: CreateTopic) -> (i16, String) {
        let outcomes = cluster.create_topics(vec![topic], false);
        let refused = outcomes[0].result.clone().expect_err("refused");
        (refused.code.raw(), refused.message.unwrap_or_default())
    }

    #[test]
    fn trap_19_defaults_stand_in_for_minus_one() {
        let mut cluster =
            Cluster::with_config(3, "num.partitions=5\ndefault.replication.factor=2\n");
        let asked = CreateTopic {
            partitions: -1,
            replication_factor: -1,
            ..topic("t")
        };
        let outcomes = cluster.create_topics(vec![asked], false);
        let created = outcomes[0].result.clone().expect("made");
        assert_eq!((created.partitions, created.replication_factor), (5, 2));
        let made = cluster
            .image()
            .topic_by_name("t")
            .expect("made")
            .partitions
            .clone();
        assert_eq!(made.len(), 5);
        for partition in made.values() {
            assert_eq!(partition.assigned_replicas.len(), 2);
            assert_eq!(partition.in_sync_replicas, partition.assigned_replicas);
            assert_eq!(partition.leader, partition.assigned_replicas[0]);
            assert_eq!(
                (
                    partition.leader_epoch.raw(),
                    partition.partition_epoch.raw()
                ),
                (0, 0)
            );
        }
    }

    #[test]
    fn trap_20_every_config_is_answered_and_topics_stand_alone() {
        let mut cluster = Cluster::new(1);
        let good = CreateTopic {
            configs: vec![("retention.ms".to_owned(), Some("7".to_owned()))],
            ..topic("good")
        };
        let bad = CreateTopic {
            configs: vec![("segment.bytes".to_owned(), Some("16384".to_owned()))],
            ..topic("bad")
        };
        let outcomes = cluster.create_topics(vec![bad, good.clone()], true);
        assert_eq!(
            outcomes[0].result.clone().expect_err("refused").code,
            ErrorCode::INVALID_CONFIG
        );
        let would = outcomes[1].result.clone().expect("would be made");
        assert!(!would.id.is_zero() && cluster.image().topics.is_empty());
        let outcomes = cluster.create_topics(vec![good], false);
        let created = outcomes[0].result.clone().expect("made");
        assert_eq!(created.configs.len(), 37);
        let entry = created
            .configs
            .iter()
            .find(|it| it.key.name == "retention.ms");
        let entry = entry.expect("listed");
        assert_eq!(
            (entry.value.as_deref(), entry.source.to_wire()),
            (Some("7"), 1)
        );
    }

    #[test]
    fn messages_are_kafkas() {
        let mut cluster = Cluster::new(1);
        cluster.create("a.b", &[&[1]]);
        for (asked, code, text) in [
            (topic("a.b"), 36, "Topic 'a.b' already exists."),
            (
                topic("a_b"),
                17,
                "Topic 'a_b' collides with existing topic: a.b",
            ),
            (
                topic("bad name!"),
                17,
                "Topic name is invalid: 'bad name!' contains one or more characters other than \
                 ASCII alphanumerics, '.', '_' and '-'",
            ),
            (
                topic(".."),
                17,
                "Topic name is invalid: '..' is not allowed",
            ),
            (
                CreateTopic {
                    partitions: 0,
                    ..topic("p0")
                },
                37,
                "Number of partitions was set to an invalid non-positive value.",
            ),
            (
                CreateTopic {
                    replication_factor: 0,
                    ..topic("r0")
                },
                38,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            ),
            (
                CreateTopic {
                    replication_factor: 3,
                    ..topic("r3")
                },
                38,
                "Unable to replicate the partition 3 time(s): The target replication factor of 3 \
                 cannot be reached because only 1 broker(s) are registered.",
            ),
            (
                topic("__cluster_metadata"),
                42,
                "Creation of internal topic __cluster_metadata is prohibited.",
            ),
        ] {
            assert_eq!(refusal(&mut cluster, asked), (code, text.to_owned()));
        }
    }

    #[test]
    fn names_that_repeat_or_collide_within_a_request() {
        let mut cluster = Cluster::new(1);
        let outcomes = cluster.create_topics(
            vec![topic("t"), topic("t"), topic("x.y"), topic("x_y")],
            false,
        );
        let codes: Vec<_> = outcomes
            .iter()
            .map(|it| it.result.as_ref().map_or_else(|why| why.code.raw(), |_| 0))
            .collect();
        assert_eq!(codes, [42, 0, 17], "one row for t");
    }

    #[test]
    fn b_44_numbers_too_large_are_refused_at_once() {
        let mut cluster = Cluster::new(1);
        let many = CreateTopic {
            partitions: 1_000_000_000,
            ..topic("t")
        };
        assert_eq!(
            refusal(&mut cluster, many).0,
            ErrorCode::POLICY_VIOLATION.raw()
        );
        let factor = CreateTopic {
            replication_factor: 32767,
            ..topic("t")
        };
        assert_eq!(
            refusal(&mut cluster, factor).0,
            ErrorCode::INVALID_REPLICATION_FACTOR.raw()
        );
        let manual = |assignments| CreateTopic {
            partitions: -1,
            replication_factor: -1,
            assignments,
            ..topic("t")
        };
        for assignments in [
            vec![(0, ids(&[1, 1, 1]))],
            vec![(0, ids(&[1])), (0, ids(&[1]))],
            vec![(1, ids(&[1]))],
            vec![(0, ids(&[9]))],
            vec![(0, Vec::new())],
            vec![(-1, ids(&[1]))],
        ] {
            let refused = refusal(&mut cluster, manual(assignments.clone()));
            let code = ErrorCode::INVALID_REPLICA_ASSIGNMENT.raw();
            assert_eq!(refused.0, code, "{assignments:?}");
        }
        let halves = |name| CreateTopic {
            partitions: 6000,
            ..topic(name)
        };
        // As in Kafka all of them are refused, also what would be refused for something else.
        let worse = CreateTopic {
            configs: vec![("nope".to_owned(), Some("1".to_owned()))],
            ..topic("no name!")
        };
        let outcomes = cluster.create_topics(vec![halves("a"), worse, halves("b")], false);
        for outcome in outcomes {
            let refused = outcome.result.expect_err("refused");
            assert_eq!(
                refused.code,
                ErrorCode::POLICY_VIOLATION,
                "{}",
                outcome.name
            );
        }
    }

    #[test]
    fn the_last_of_a_config_named_twice_counts() {
        let mut cluster = Cluster::new(1);
        let last = |value: &str| ("retention.ms".to_owned(), Some(value.to_owned()));
        let twice = CreateTopic {
            configs: vec![last("-7"), last("1000")],
            ..topic("twice")
        };
        let null = CreateTopic {
            configs: vec![("retention.ms".to_owned(), None), last("1000")],
            ..topic("null")
        };
        let code = refusal(&mut cluster, null).0;
        assert_eq!(
            code,
            ErrorCode::INVALID_CONFIG.raw(),
            "null is told all the same"
        );
        let outcomes = cluster.create_topics(vec![twice], false);
        assert!(outcomes[0].result.is_ok(), "{outcomes:?}");
    }

    #[test]
    fn a_manual_assignment_is_taken_as_it_is() {
        let mut cluster = Cluster::new(3);
        let asked = CreateTopic {
            partitions: -1,
            replication_factor: -1,
            assignments: vec![(1, ids(&[3, 1])), (0, ids(&[2, 3]))],
            ..topic("t")
        };
        let outcomes = cluster.create_topics(vec![asked.clone()], false);
        let created = outcomes[0].result.clone().expect("made");
        assert_eq!((created.partitions, created.replication_factor), (2, 2));
        assert_eq!(cluster.partition("t", 0).assigned_replicas, ids(&[2, 3]));
        assert_eq!(cluster.partition("t", 1).leader, NodeId::new(3));
        let both = CreateTopic {
            partitions: 2,
            name: "u".to_owned(),
            ..asked
        };
        assert_eq!(
            refusal(&mut cluster, both).0,
            ErrorCode::INVALID_REQUEST.raw()
        );
    }
}
