use std::collections::BTreeMap;

use highwater_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use highwater_protocol::messages::delete_topics_request::DeleteTopicState;
use highwater_protocol::messages::describe_configs_request::DescribeConfigsResource;
use highwater_protocol::messages::describe_configs_response::DescribeConfigsResourceResult;
use highwater_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, DescribeClusterRequest, DescribeConfigsRequest,
    DescribeQuorumRequest, describe_quorum_request,
};
use highwater_types::{ErrorCode, NodeId, TopicId, Uuid};

use crate::cluster::Client;
use crate::error::ClientError;
use crate::metadata::{BrokerMetadata, TopicMetadata};

/// The log of which the quorum is asked.
const METADATA_TOPIC: &str = "__cluster_metadata";

/// A topic to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// `None`: the broker's `num.partitions`.
    pub partitions: Option<i32>,
    /// `None`: the broker's `default.replication.factor`.
    pub replication_factor: Option<i16>,
    /// Which brokers get which partition; empty: the controller chooses. With it, `partitions` and
    /// `replication_factor` must be `None`.
    pub assignments: Vec<Vec<NodeId>>,
    /// Configuration of the topic: key and value.
    pub configs: Vec<(String, String)>,
}

/// A topic that was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its name.
    pub name: String,
    /// Its id, from CreateTopics v7 on.
    pub id: Option<TopicId>,
    /// Its partitions, or -1 when the broker does not tell.
    pub partitions: i32,
    /// Its replicas, or -1 when the broker does not tell.
    pub replication_factor: i16,
}

/// A cluster and its brokers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterDescription {
    /// The cluster's id.
    pub cluster_id: String,
    /// The controller as clients see it.
    pub controller: Option<NodeId>,
    /// Its brokers, by id.
    pub brokers: Vec<ClusterBroker>,
}

/// A broker of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterBroker {
    /// Where it is.
    pub broker: BrokerMetadata,
    /// Registered, but may not lead; always `false` when the broker asked does not tell.
    pub is_fenced: bool,
}

/// What has a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigResource {
    /// A topic.
    Topic(String),
    /// A broker.
    Broker(NodeId),
}

impl Client {
    /// Creates topics, or only checks whether they could be. One result per topic, in order.
    ///
    /// Not tried again once the request was sent: the first try may have worked.
    ///
    /// # Errors
    /// When no broker answers.
    pub async fn create_topics(
        &self,
        topics: &[NewTopic],
        validate_only: bool,
    ) -> Result<Vec<Result<CreatedTopic, ClientError>>, ClientError> {
        let request = CreateTopicsRequest {
            topics: topics.iter().map(creatable).collect(),
            timeout_ms: self.request_timeout_ms(),
            validate_only,
        };
        let answer = self.call_any(&request).await?;
        let mut results: BTreeMap<_, _> = answer
            .topics
            .into_iter()
            .map(|result| (result.name.clone(), result))
            .collect();
        let of = |topic: &NewTopic| {
            let what = || format!("create topic {}", topic.name);
            let result = results.remove(&topic.name);
            let result = result.ok_or_else(|| unanswered(what()))?;
            ClientError::check(what, result.error_code, result.error_message)?;
            Ok(CreatedTopic {
                name: result.name,
                id: Some(result.topic_id)
                    .filter(|id| *id != Uuid::ZERO)
                    .map(TopicId::new),
                partitions: result.num_partitions,
                replication_factor: result.replication_factor,
            })
        };
        Ok(topics.iter().map(of).collect())
    }

    /// Deletes topics by name. One result per topic, in order. Not tried again once sent.
    ///
    /// # Errors
    /// When no broker answers.
    pub async fn delete_topics(
        &self,
        names: &[String],
    ) -> Result<Vec<Result<(), ClientError>>, ClientError> {
        let state = |name: &String| DeleteTopicState {
            name: Some(name.clone()),
            ..DeleteTopicState::default()
        };
        // Which field is sent depends on the version; both are set only where they may be.
        let mut request = DeleteTopicsRequest {
            topics: names.iter().map(state).collect(),
            topic_names: Vec::new(),
            timeout_ms: self.request_timeout_ms(),
        };
        let answer = match self.call_any(&request).await {
            Err(ClientError::Encode { .. }) => {
                request.topics = Vec::new();
                request.topic_names = names.to_vec();
                self.call_any(&request).await?
            }
            answer => answer?,
        };
        let mut results: BTreeMap<_, _> = answer
            .responses
            .into_iter()
            .filter_map(|result| Some((result.name.clone()?, result)))
            .collect();
        let of = |name: &String| {
            let what = || format!("delete topic {name}");
            let result = results.remove(name).ok_or_else(|| unanswered(what()))?;
            ClientError::check(what, result.error_code, result.error_message)
        };
        Ok(names.iter().map(of).collect())
    }

    /// Topics as the cluster knows them now: the named ones, or all. Asking creates none. A topic
    /// that does not exist is there with its error.
    ///
    /// # Errors
    /// When no broker answers.
    pub async fn describe_topics(
        &self,
        names: Option<&[String]>,
    ) -> Result<Vec<TopicMetadata>, ClientError> {
        let metadata = self.ask_metadata(names, false).await?;
        let topics = metadata.topics.values();
        Ok(match names {
            None => topics.cloned().collect(),
            Some(names) => topics
                .filter(|it| names.contains(&it.name))
                .cloned()
                .collect(),
        })
    }

    /// The cluster's id and brokers.
    ///
    /// # Errors
    /// When no broker answers, or with the broker's error.
    pub async fn describe_cluster(&self) -> Result<ClusterDescription, ClientError> {
        let request = DescribeClusterRequest {
            include_fenced_brokers: true,
            ..DescribeClusterRequest::default()
        };
        let mut answer = self.call_any(&request).await;
        if matches!(answer, Err(ClientError::Encode { .. })) {
            answer = self.call_any(&DescribeClusterRequest::default()).await;
        }
        let answer = match answer {
            Err(ClientError::Unsupported { .. }) => return self.cluster_of_metadata().await,
            answer => answer?,
        };
        ClientError::check(
            || "describe cluster".to_owned(),
            answer.error_code,
            answer.error_message,
        )?;
        let mut brokers: Vec<_> = answer
            .brokers
            .into_iter()
            .map(|it| ClusterBroker {
                broker: BrokerMetadata {
                    id: it.broker_id,
                    host: it.host,
                    port: it.port,
                    rack: it.rack,
                },
                is_fenced: it.is_fenced,
            })
            .collect();
        brokers.sort_by_key(|broker| broker.broker.id);
        Ok(ClusterDescription {
            cluster_id: answer.cluster_id,
            controller: Some(answer.controller_id).filter(|id| id.is_some()),
            brokers,
        })
    }

    /// The leader of the metadata quorum: the active controller, which need not be a broker. `None`
    /// when no broker knows one.
    ///
    /// # Errors
    /// When no broker answers, or with the broker's error.
    pub async fn quorum_leader(&self) -> Result<Option<NodeId>, ClientError> {
        let partition = describe_quorum_request::PartitionData { partition_index: 0 };
        let request = DescribeQuorumRequest {
            topics: vec![describe_quorum_request::TopicData {
                topic_name: METADATA_TOPIC.to_owned(),
                partitions: vec![partition],
            }],
        };
        let answer = self.call_any(&request).await?;
        let what = || "describe the quorum".to_owned();
        ClientError::check(what, answer.error_code, answer.error_message)?;
        let mut partitions = answer.topics.into_iter().flat_map(|it| it.partitions);
        let Some(partition) = partitions.next() else {
            return Ok(None);
        };
        ClientError::check(what, partition.error_code, partition.error_message)?;
        Ok(Some(partition.leader_id).filter(|id| id.is_some()))
    }

    async fn cluster_of_metadata(&self) -> Result<ClusterDescription, ClientError> {
        let metadata = self.refresh(Some(&[])).await?;
        let brokers = metadata.brokers.values().cloned();
        let brokers = brokers.map(|broker| ClusterBroker {
            broker,
            is_fenced: false,
        });
        Ok(ClusterDescription {
            cluster_id: metadata.cluster_id.clone().unwrap_or_default(),
            controller: metadata.controller,
            brokers: brokers.collect(),
        })
    }

    /// The configuration of a topic or broker: each key with value, source and synonyms as the
    /// broker tells them.
    ///
    /// # Errors
    /// When no broker answers, or with the broker's error.
    pub async fn describe_configs(
        &self,
        resource: &ConfigResource,
    ) -> Result<Vec<DescribeConfigsResourceResult>, ClientError> {
        let (resource_type, resource_name) = match resource {
            ConfigResource::Topic(name) => (2, name.clone()),
            ConfigResource::Broker(id) => (4, id.to_string()),
        };
        let what = || match resource {
            ConfigResource::Topic(name) => format!("configuration of topic {name}"),
            ConfigResource::Broker(id) => format!("configuration of broker {id}"),
        };
        let request = DescribeConfigsRequest {
            resources: vec![DescribeConfigsResource {
                resource_type,
                resource_name,
                configuration_keys: None,
            }],
            include_synonyms: true,
            ..DescribeConfigsRequest::default()
        };
        let answer = match resource {
            ConfigResource::Topic(_) => self.call_any(&request).await?,
            // A broker's own values are known to that broker only.
            ConfigResource::Broker(id) => self.call_node(*id, &request).await?,
        };
        let result = answer
            .results
            .into_iter()
            .next()
            .ok_or_else(|| unanswered(what()))?;
        ClientError::check(what, result.error_code, result.error_message)?;
        Ok(result.configs)
    }

    fn request_timeout_ms(&self) -> i32 {
        i32::try_from(self.config().request_timeout.as_u64()).unwrap_or(i32::MAX)
    }
}

fn creatable(topic: &NewTopic) -> CreatableTopic {
    let assignments = topic
        .assignments
        .iter()
        .zip(0..)
        .map(|(brokers, partition_index)| CreatableReplicaAssignment {
            partition_index,
            broker_ids: brokers.clone(),
        });
    let configs = topic
        .configs
        .iter()
        .map(|(name, value)| CreatableTopicConfig {
            name: name.clone(),
            value: Some(value.clone()),
        });
    CreatableTopic {
        name: topic.name.clone(),
        num_partitions: topic.partitions.unwrap_or(-1),
        replication_factor: topic.replication_factor.unwrap_or(-1),
        assignments: assignments.collect(),
        configs: configs.collect(),
    }
}

fn unanswered(what: String) -> ClientError {
    let message = Some("the broker's answer does not mention it".to_owned());
    ClientError::refused(what, ErrorCode::UNKNOWN_SERVER_ERROR, message)
}
