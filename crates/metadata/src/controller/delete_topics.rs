use std::collections::BTreeSet;

use highwater_records::stored::metadata::RemoveTopicRecord;
use highwater_types::{ErrorCode, TopicId};

use super::{Controller, Decision, Refusal};
use crate::image::MetadataImage;

/// Topics to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteTopics {
    /// Each stands or falls alone.
    pub topics: Vec<DeleteTopic>,
}

/// A topic to delete: by name or by id, not both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteTopic {
    /// Its name.
    pub name: Option<String>,
    /// Its id; zero when it is named.
    pub id: TopicId,
}

/// What became of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedTopic {
    /// Its name, as asked for or found.
    pub name: Option<String>,
    /// Its id, as asked for or found.
    pub id: TopicId,
    /// Whether it is gone.
    pub result: Result<(), Refusal>,
}

impl Controller {
    /// Decides on deletions.
    #[must_use]
    pub fn delete_topics(
        &self,
        image: &MetadataImage,
        request: &DeleteTopics,
    ) -> Decision<Vec<DeletedTopic>> {
        let mut records = Vec::new();
        let mut answer = Vec::with_capacity(request.topics.len());
        let mut seen = Seen::new(request);
        for topic in &request.topics {
            let found = self.find(image, topic, &mut seen);
            answer.push(match found {
                Ok((id, name)) => {
                    records.push(
                        RemoveTopicRecord {
                            topic_id: id.uuid(),
                        }
                        .into(),
                    );
                    DeletedTopic {
                        name: Some(name),
                        id,
                        result: Ok(()),
                    }
                }
                Err(why) => DeletedTopic {
                    name: topic.name.clone(),
                    id: topic.id,
                    result: Err(why),
                },
            });
        }
        Decision { records, answer }
    }

    fn find(
        &self,
        image: &MetadataImage,
        topic: &DeleteTopic,
        seen: &mut Seen<'_>,
    ) -> Result<(TopicId, String), Refusal> {
        let invalid = |text: &str| Err(Refusal::new(ErrorCode::INVALID_REQUEST, text));
        if !self.config.boolean("delete.topic.enable") {
            let refused = Refusal {
                code: ErrorCode::TOPIC_DELETION_DISABLED,
                message: None,
            };
            return Err(refused);
        }
        let found = match (&topic.name, topic.id.is_zero()) {
            (Some(_), false) => {
                return invalid("You may not specify both topic name and topic id.");
            }
            (None, true) => return invalid("Neither topic name nor id were specified."),
            (Some(name), true) if seen.repeated_names.contains(name.as_str()) => {
                return invalid("Duplicate topic name.");
            }
            (None, false) if seen.repeated_ids.contains(&topic.id) => {
                return invalid("Duplicate topic ID.");
            }
            (Some(name), true) => image.topic_by_name(name).ok_or_else(|| {
                let text = "This server does not host this topic-partition.";
                Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, text)
            }),
            (None, false) => image.topic(topic.id).ok_or_else(|| {
                let text = "This server does not host this topic ID.";
                Refusal::new(ErrorCode::UNKNOWN_TOPIC_ID, text)
            }),
        }?;
        // The same topic may be asked for once by name and once by id.
        if seen.deleted.insert(found.id) {
            Ok((found.id, found.name.to_string()))
        } else {
            invalid("The provided topic name maps to an ID that was already supplied.")
        }
    }
}

struct Seen<'a> {
    repeated_names: BTreeSet<&'a str>,
    repeated_ids: BTreeSet<TopicId>,
    deleted: BTreeSet<TopicId>,
}

impl<'a> Seen<'a> {
    fn new(request: &'a DeleteTopics) -> Self {
        let mut names = BTreeSet::new();
        let mut ids = BTreeSet::new();
        let named = request
            .topics
            .iter()
            .filter_map(|topic| topic.name.as_deref());
        let by_id = request
            .topics
            .iter()
            .map(|topic| topic.id)
            .filter(|id| !id.is_zero());
        Self {
            repeated_names: named.filter(|name| !names.insert(*name)).collect(),
            repeated_ids: by_id.filter(|id| !ids.insert(*id)).collect(),
            deleted: BTreeSet::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use highwater_types::Uuid;

    use super::*;
    use crate::controller::testing::Cluster;

    fn named(name: &str) -> DeleteTopic {
        DeleteTopic {
            name: Some(name.to_owned()),
            id: TopicId::ZERO,
        }
    }

    fn codes(cluster: &mut Cluster, topics: Vec<DeleteTopic>) -> Vec<i16> {
        let decision = cluster
            .controller
            .delete_topics(cluster.image(), &DeleteTopics { topics });
        cluster.apply(&decision.records);
        let code = |it: &DeletedTopic| it.result.as_ref().map_or_else(|why| why.code.raw(), |()| 0);
        decision.answer.iter().map(code).collect()
    }

    #[test]
    fn trap_43_topics_go_by_name_and_by_id() {
        let mut cluster = Cluster::new(1);
        cluster.create("a", &[&[1]]);
        cluster.create("b", &[&[1]]);
        let id = cluster.image().topic_by_name("b").expect("made").id;
        let by_id = DeleteTopic { name: None, id };
        let absent = DeleteTopic {
            name: None,
            id: TopicId::new(Uuid::from_u128(1 << 90)),
        };
        let asked = vec![named("a"), by_id, named("absent"), absent];
        assert_eq!(codes(&mut cluster, asked), [0, 0, 3, 100]);
        assert!(cluster.image().topics.is_empty());
    }

    #[test]
    fn what_is_asked_twice_or_not_at_all_is_refused() {
        let mut cluster = Cluster::new(1);
        cluster.create("a", &[&[1]]);
        let id = cluster.image().topic_by_name("a").expect("made").id;
        let both = DeleteTopic {
            name: Some("a".to_owned()),
            id,
        };
        let neither = DeleteTopic::default();
        let asked = vec![named("x"), named("x"), both, neither];
        assert_eq!(codes(&mut cluster, asked), [42, 42, 42, 42]);
        let by_id = DeleteTopic { name: None, id };
        assert_eq!(codes(&mut cluster, vec![named("a"), by_id]), [0, 42]);
    }

    #[test]
    fn deletion_can_be_turned_off() {
        let mut cluster = Cluster::with_config(1, "delete.topic.enable=false\n");
        cluster.create("a", &[&[1]]);
        assert_eq!(codes(&mut cluster, vec![named("a")]), [73]);
    }
}
