use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_records::stored::metadata::RemoveTopicRecord;
use highwater_types::{ErrorCode, TopicId};

use super::{Controller, Decision, Refusal};
use crate::image::{MetadataImage, TopicImage};

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
        let twice = AskedTwice::new(image, request);
        let mut refused = BTreeSet::new();
        for topic in &request.topics {
            let mut row = DeletedTopic {
                name: topic.name.clone(),
                id: topic.id,
                result: Ok(()),
            };
            match self.find(image, topic, &twice) {
                Ok(found) => {
                    (row.name, row.id) = (Some(found.name.to_string()), found.id);
                    if twice.both_ways.contains(&found.id) {
                        row.result = Err(asked_twice());
                    } else {
                        let topic_id = found.id.uuid();
                        records.push(RemoveTopicRecord { topic_id }.into());
                    }
                }
                Err(why) => row.result = Err(why),
            }
            // What is asked for twice is refused in one row, as in Kafka.
            let is_first =
                row.result != Err(asked_twice()) || refused.insert((row.name.clone(), row.id));
            if is_first {
                answer.push(row);
            }
        }
        Decision { records, answer }
    }

    fn find<'a>(
        &self,
        image: &'a MetadataImage,
        topic: &DeleteTopic,
        twice: &AskedTwice<'_>,
    ) -> Result<&'a Arc<TopicImage>, Refusal> {
        let invalid = |text: &str| Err(Refusal::new(ErrorCode::INVALID_REQUEST, text));
        if !self.config.boolean("delete.topic.enable") {
            return Err(Refusal {
                code: ErrorCode::TOPIC_DELETION_DISABLED,
                message: None,
            });
        }
        match (&topic.name, topic.id.is_zero()) {
            (Some(_), false) => invalid("You may not specify both topic name and topic id."),
            (None, true) => invalid("Neither topic name nor id were specified."),
            (Some(name), true) if twice.names.contains(name.as_str()) => Err(asked_twice()),
            (None, false) if twice.ids.contains(&topic.id) => Err(asked_twice()),
            (Some(name), true) => image.topic_by_name(name).ok_or_else(|| {
                let text = "This server does not host this topic-partition.";
                Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, text)
            }),
            (None, false) => image.topic(topic.id).ok_or_else(|| {
                let text = "This server does not host this topic ID.";
                Refusal::new(ErrorCode::UNKNOWN_TOPIC_ID, text)
            }),
        }
    }
}

fn asked_twice() -> Refusal {
    let text = "The topic is asked for more than once.";
    Refusal::new(ErrorCode::INVALID_REQUEST, text)
}

/// What a request asks for more than once: none of it is deleted.
struct AskedTwice<'a> {
    names: BTreeSet<&'a str>,
    ids: BTreeSet<TopicId>,
    /// Once by name and once by id.
    both_ways: BTreeSet<TopicId>,
}

impl<'a> AskedTwice<'a> {
    fn new(image: &MetadataImage, request: &'a DeleteTopics) -> Self {
        let (mut seen_names, mut seen_ids) = (BTreeSet::new(), BTreeSet::new());
        let (mut names, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for topic in &request.topics {
            match (topic.name.as_deref(), topic.id.is_zero()) {
                (Some(name), true) if !seen_names.insert(name) => {
                    names.insert(name);
                }
                (None, false) if !seen_ids.insert(topic.id) => {
                    ids.insert(topic.id);
                }
                _ => {}
            }
        }
        let by_name = seen_names.iter().filter(|name| !names.contains(*name));
        let by_name = by_name.filter_map(|name| image.topic_by_name(name));
        let both_ways = by_name
            .map(|topic| topic.id)
            .filter(|id| seen_ids.contains(id));
        Self {
            both_ways: both_ways.collect(),
            names,
            ids,
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
        assert_eq!(codes(&mut cluster, asked), [42, 42, 42], "one row for x");
        let by_id = DeleteTopic { name: None, id };
        let twice = vec![by_id.clone(), by_id.clone()];
        assert_eq!(codes(&mut cluster, twice), [42]);
        assert_eq!(codes(&mut cluster, vec![named("a"), by_id]), [42]);
        assert!(
            cluster.image().topic_by_name("a").is_some(),
            "nothing of it is deleted"
        );
    }

    #[test]
    fn deletion_can_be_turned_off() {
        let mut cluster = Cluster::with_config(1, "delete.topic.enable=false\n");
        cluster.create("a", &[&[1]]);
        assert_eq!(codes(&mut cluster, vec![named("a")]), [73]);
    }
}
