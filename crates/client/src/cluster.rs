use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use highwater_protocol::messages::MetadataRequest;
use highwater_protocol::messages::metadata_request::MetadataRequestTopic;
use highwater_types::{ErrorCode, LeaderEpoch, Millis, NodeId, PartitionIndex};
use tokio::time::{Instant, sleep};

use crate::config::{ClientConfig, duration};
use crate::error::ClientError;
use crate::metadata::{Metadata, TopicMetadata};
use crate::net::{Call, Connection};

/// The way to a cluster: its brokers, its metadata, and connections that are made when needed.
/// Cheap to clone.
///
/// Clones share everything. [`Client::sibling`] shares the metadata but has connections of its
/// own, for a broker serves one request of a connection at a time: a fetch that waits for data
/// must not hold up anything else.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    links: Arc<Links>,
}

struct Shared {
    config: ClientConfig,
    metadata: Mutex<Known>,
    /// Held while metadata is asked for, so that many who need it ask once.
    refreshing: tokio::sync::Mutex<()>,
    /// The connections for metadata.
    links: Arc<Links>,
}

#[derive(Default)]
struct Known {
    metadata: Arc<Metadata>,
    /// Grows with each answer.
    revision: u64,
    refreshed: BTreeMap<String, Instant>,
}

/// Connections by `HOST:PORT`.
#[derive(Default)]
struct Links {
    by_address: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Option<Connection>>>>>,
}

/// A partition's leader, and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) node: NodeId,
    pub(crate) epoch: LeaderEpoch,
}

impl Client {
    /// Connects to the first bootstrap address that answers and asks it for the brokers.
    ///
    /// # Errors
    /// [`ClientError::NoBroker`] with the reason of each address, or [`ClientError::Config`].
    pub async fn connect(config: ClientConfig) -> Result<Self, ClientError> {
        if config.bootstrap_servers.is_empty() {
            return Err(ClientError::Config {
                key: "bootstrap.servers",
                value: String::new(),
                why: "at least one HOST:PORT is needed".to_owned(),
            });
        }
        let links = Arc::new(Links::default());
        let shared = Arc::new(Shared {
            config,
            metadata: Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
            links: links.clone(),
        });
        let client = Self { shared, links };
        client.refresh(Some(&[])).await?;
        Ok(client)
    }

    /// A client that shares the metadata, with connections of its own.
    #[must_use]
    pub fn sibling(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            links: Arc::default(),
        }
    }

    /// How this client was configured.
    #[must_use]
    pub fn config(&self) -> &ClientConfig {
        &self.shared.config
    }

    /// What is known now, without asking.
    #[must_use]
    pub fn metadata(&self) -> Arc<Metadata> {
        self.known(|known| known.metadata.clone())
    }

    /// Asks for metadata of `topics`, or of all with `None`, and gives what is known then.
    ///
    /// # Errors
    /// [`ClientError::NoBroker`] when no broker answers. Errors of single topics are in the
    /// metadata.
    pub async fn refresh(&self, topics: Option<&[String]>) -> Result<Arc<Metadata>, ClientError> {
        self.ask_metadata(topics, self.config().allow_auto_create_topics)
            .await
    }

    pub(crate) async fn ask_metadata(
        &self,
        topics: Option<&[String]>,
        allow_auto_topic_creation: bool,
    ) -> Result<Arc<Metadata>, ClientError> {
        let before = self.known(|known| known.revision);
        let _one_at_a_time = self.shared.refreshing.lock().await;
        let covered = self.known(|known| {
            let topics = topics.unwrap_or_default();
            let has_all = topics
                .iter()
                .all(|topic| known.metadata.topics.contains_key(topic));
            known.revision > before && !topics.is_empty() && has_all
        });
        if covered {
            return Ok(self.metadata());
        }
        let names = topics.map(|names| {
            let topic = |name: &String| MetadataRequestTopic {
                name: Some(name.clone()),
                ..MetadataRequestTopic::default()
            };
            names.iter().map(topic).collect()
        });
        let request = MetadataRequest {
            topics: names,
            allow_auto_topic_creation,
            ..MetadataRequest::default()
        };
        let answer = self.metadata_links().call_any(&request).await?;
        ClientError::check(|| "metadata".to_owned(), answer.error_code, None)?;
        let now = Instant::now();
        Ok(self.known(|known| {
            let mut metadata = Metadata::clone(&known.metadata);
            metadata.merge(answer, topics);
            known.revision += 1;
            match topics {
                Some(names) => {
                    known
                        .refreshed
                        .extend(names.iter().map(|name| (name.clone(), now)));
                }
                None => {
                    let names = metadata.topics.keys().cloned();
                    known.refreshed = names.map(|name| (name, now)).collect();
                }
            }
            known.metadata = Arc::new(metadata);
            known.metadata.clone()
        }))
    }

    /// A topic whose partitions are known, asked for anew when it was never or too long ago.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the topic's error, after trying for `limit` while that is
    /// one that passes: a topic that is just being created shows up late.
    pub async fn topic(&self, name: &str, limit: Millis) -> Result<TopicMetadata, ClientError> {
        if let Some(topic) = self.fresh_topic(name) {
            return Ok(topic);
        }
        let names = [name.to_owned()];
        self.retry(limit, || async {
            let metadata = self.refresh(Some(&names)).await?;
            let topic = metadata.topics.get(name);
            let topic = topic.ok_or_else(|| ClientError::Unknown {
                what: format!("topic {name}"),
            });
            let topic = topic?;
            ClientError::check(|| format!("topic {name}"), topic.error, None)?;
            if topic.partitions.is_empty() {
                let code = ErrorCode::LEADER_NOT_AVAILABLE;
                return Err(ClientError::refused(format!("topic {name}"), code, None));
            }
            Ok(topic.clone())
        })
        .await
    }

    fn fresh_topic(&self, name: &str) -> Option<TopicMetadata> {
        self.known(|known| {
            let age = known.refreshed.get(name)?.elapsed();
            let topic = known.metadata.topics.get(name)?;
            let usable = !topic.error.is_error() && !topic.partitions.is_empty();
            (usable && age < duration(self.config().metadata_max_age)).then(|| topic.clone())
        })
    }

    /// The leader of a partition as far as is known, without asking.
    pub(crate) fn known_leader(&self, topic: &str, index: PartitionIndex) -> Option<Leader> {
        let metadata = self.metadata();
        let partition = metadata.partition(topic, index)?;
        let node = partition
            .leader
            .filter(|node| metadata.brokers.contains_key(node))?;
        Some(Leader {
            node,
            epoch: partition.leader_epoch,
        })
    }

    /// Takes over a leader that a broker named in passing (KIP-951).
    pub(crate) fn note_leader(
        &self,
        topic: &str,
        index: PartitionIndex,
        leader: NodeId,
        epoch: LeaderEpoch,
    ) -> bool {
        self.known(|known| {
            let mut metadata = Metadata::clone(&known.metadata);
            let news = metadata.note_leader(topic, index, leader, epoch);
            if news {
                known.metadata = Arc::new(metadata);
            }
            news
        })
    }

    /// A connection to `node`, made if there is none.
    ///
    /// # Errors
    /// [`ClientError::Unknown`] for a node that the metadata does not name, else as
    /// [`Connection::open`].
    pub async fn connection(&self, node: NodeId) -> Result<Connection, ClientError> {
        let metadata = self.metadata();
        let Some(broker) = metadata.brokers.get(&node) else {
            return Err(ClientError::Unknown {
                what: format!("broker {node}"),
            });
        };
        self.connection_to(&broker.address()).await
    }

    /// A connection to `HOST:PORT`, made if there is none.
    pub(crate) async fn connection_to(&self, address: &str) -> Result<Connection, ClientError> {
        let slot = {
            let mut links = self
                .links
                .by_address
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            links.entry(address.to_owned()).or_default().clone()
        };
        let mut slot = slot.lock().await;
        match &*slot {
            Some(connection) if !connection.is_closed() => Ok(connection.clone()),
            _ => {
                let connection = Connection::open(address, self.config()).await?;
                *slot = Some(connection.clone());
                Ok(connection)
            }
        }
    }

    /// Calls whichever broker answers: those that are known, then the bootstrap addresses.
    pub(crate) async fn call_any<C: Call>(&self, request: &C) -> Result<C::Answer, ClientError> {
        self.call_any_at(|_| request.clone()).await
    }

    /// The same, with the request as the version has it at which it is sent.
    pub(crate) async fn call_any_at<C: Call>(
        &self,
        request: impl Fn(i16) -> C,
    ) -> Result<C::Answer, ClientError> {
        let metadata = self.metadata();
        let mut addresses: Vec<_> = metadata
            .brokers
            .values()
            .map(|broker| broker.address())
            .collect();
        for server in &self.config().bootstrap_servers {
            if !addresses.contains(server) {
                addresses.push(server.clone());
            }
        }
        let mut tried = Vec::new();
        for address in addresses {
            let limit = self.config().request_timeout;
            let result = match self.connection_to(&address).await {
                Ok(connection) => match connection.version(C::API) {
                    Ok(version) => connection.call(request(version), limit).await,
                    Err(why) => Err(why),
                },
                Err(why) => Err(why),
            };
            match result {
                Ok(answer) => return Ok(answer),
                Err(why @ (ClientError::Unsupported { .. } | ClientError::Encode { .. })) => {
                    return Err(why);
                }
                Err(why) => tried.push(why.to_string()),
            }
        }
        Err(ClientError::NoBroker {
            tried: tried.join("; "),
        })
    }

    /// Calls `node`.
    pub(crate) async fn call_node<C: Call>(
        &self,
        node: NodeId,
        request: &C,
    ) -> Result<C::Answer, ClientError> {
        self.connection(node)
            .await?
            .call(request.clone(), self.config().request_timeout)
            .await
    }

    /// Runs `attempt` until it succeeds, fails for good, or `limit` is over.
    pub(crate) async fn retry<T, F>(
        &self,
        limit: Millis,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let deadline = Instant::now() + duration(limit);
        let mut failures = 0;
        loop {
            let why = match attempt().await {
                Ok(value) => return Ok(value),
                Err(why) => why,
            };
            failures += 1;
            let pause: Duration = duration(self.config().backoff(failures));
            if !why.is_retriable() || Instant::now() + pause > deadline {
                return Err(why);
            }
            tracing::debug!(%why, failures, "trying again");
            sleep(pause).await;
        }
    }

    fn metadata_links(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            links: self.shared.links.clone(),
        }
    }

    fn known<T>(&self, look: impl FnOnce(&mut Known) -> T) -> T {
        look(
            &mut self
                .shared
                .metadata
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("bootstrap_servers", &self.config().bootstrap_servers)
            .finish_non_exhaustive()
    }
}
