use std::collections::BTreeMap;
use std::fmt;

use highwater_protocol::client::group::{CommittedOffset, MemberIdentity, PartitionSet};
use highwater_types::{ErrorCode, Millis, Offset, PartitionIndex, TopicName, TopicPartition};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::config::GroupConfig;
use super::coordinator::CoordinatorLink;
use super::membership::{Command, Happened, Membership};
use super::offsets::{CommitResults, CommittedOffsets};
use crate::cluster::Client;
use crate::config::duration;
use crate::consumer::{Consumer, ConsumerConfig, OffsetReset, PartitionRecords, StartAt};
use crate::error::ClientError;
use crate::offsets::PartitionName;

/// How long giving up partitions waits for their commit: whoever takes them over waits meanwhile.
const REVOKE_LIMIT: Millis = Millis::new(5_000);
/// How long closing goes on trying to commit while the group rebalances.
const CLOSE_LIMIT: Millis = Millis::new(5_000);

/// Reads topics as member of a consumer group: the partitions that the group's leader deals to
/// it, each from the group's committed offset.
///
/// [`GroupConsumer::poll`] gives what has come. What an earlier poll gave counts as processed when
/// the next one begins: only then is it committed, so that every record is processed at least once.
/// Membership lives on a task of its own, but a consumer that does not poll for
/// `max.poll.interval.ms` leaves its group. [`GroupConsumer::close`] commits and leaves; a consumer
/// that is only dropped is missed by its group until its session ends.
pub struct GroupConsumer {
    consumer: Consumer,
    config: GroupConfig,
    link: CoordinatorLink,
    membership: Membership,
    assigned: PartitionSet,
    /// Whether an assignment came since the last time that all was given up.
    has_assignment: bool,
    /// What is committed as far as is known.
    committed: BTreeMap<TopicPartition, Offset>,
    /// Partitions whose start is being looked up, each with the number of its newest look-up.
    starting: BTreeMap<TopicPartition, u64>,
    look_ups: u64,
    next_commit: Instant,
    is_committing: bool,
    found: mpsc::UnboundedReceiver<Found>,
    report: mpsc::UnboundedSender<Found>,
    /// Why the membership ended.
    ended: Option<ClientError>,
}

/// What helper tasks found out.
enum Found {
    Starts(u64, PartitionSet, Result<CommittedOffsets, ClientError>),
    Committed(Sent, Result<CommitResults, ClientError>),
}

/// A commit that was sent.
struct Sent {
    identity: MemberIdentity,
    offsets: BTreeMap<TopicPartition, CommittedOffset>,
}

impl GroupConsumer {
    /// Begins to join: partitions come with later polls.
    ///
    /// # Errors
    /// [`ClientError::Config`] for a configuration or a topic name that cannot be.
    pub fn subscribe(
        client: &Client,
        topics: &[String],
        config: GroupConfig,
        reading: ConsumerConfig,
    ) -> Result<Self, ClientError> {
        config.check()?;
        let names = topics.iter().map(|name| {
            TopicName::new(name).map_err(|why| ClientError::Config {
                key: "topic",
                value: name.clone(),
                why: why.to_string(),
            })
        });
        let names = names.collect::<Result<_, _>>()?;
        let mut member = config.member.clone();
        member.request_timeout = client.config().request_timeout;
        member.retry_backoff = client.config().retry_backoff;
        member.retry_backoff_max = client.config().retry_backoff_max;
        let membership = Membership::start(client, member);
        membership.tell(Command::Subscribe(names));
        let (report, found) = mpsc::unbounded_channel();
        Ok(Self {
            consumer: Consumer::new(client, reading),
            link: CoordinatorLink::new(&client.sibling(), &config.member.group_id),
            next_commit: Instant::now() + duration(config.auto_commit_interval),
            config,
            membership,
            assigned: PartitionSet::new(),
            has_assignment: false,
            committed: BTreeMap::new(),
            starting: BTreeMap::new(),
            look_ups: 0,
            is_committing: false,
            found,
            report,
            ended: None,
        })
    }

    /// The partitions that this member reads now, or begins to read.
    #[must_use]
    pub const fn assignment(&self) -> &PartitionSet {
        &self.assigned
    }

    /// Whether the group has dealt and this member has all that it was dealt.
    #[must_use]
    pub const fn has_assignment(&self) -> bool {
        self.has_assignment
    }

    /// As [`Consumer::position`].
    #[must_use]
    pub fn position(&self, partition: &PartitionName) -> Option<Offset> {
        self.consumer.position(partition)
    }

    /// Goes on at `offset`: what was given out from there on was not processed.
    pub fn seek(&mut self, partition: &PartitionName, offset: Offset) {
        self.consumer.seek(partition, StartAt::Offset(offset));
    }

    /// Waits up to `max_wait` for records, and meanwhile takes part in the group. Everything that
    /// earlier polls gave counts as processed.
    ///
    /// # Errors
    /// As [`Consumer::poll`]; [`ClientError::NoCommittedOffset`] with `auto.offset.reset=none`;
    /// and why the member is out of its group, from then on with every poll.
    pub async fn poll(&mut self, max_wait: Millis) -> Result<Vec<PartitionRecords>, ClientError> {
        self.membership.tell(Command::Polled);
        self.commit_when_due();
        let deadline = Instant::now() + duration(max_wait);
        loop {
            if let Some(why) = &self.ended {
                return Err(why.clone());
            }
            let now = Instant::now();
            let left = deadline.saturating_duration_since(now).as_millis();
            let left = Millis::new(u64::try_from(left).unwrap_or(u64::MAX));
            tokio::select! {
                biased;
                happened = self.membership.happened.recv() => self.happened(happened).await,
                Some(found) = self.found.recv() => self.take_in(found)?,
                records = self.consumer.poll(left) => {
                    let records = records?;
                    if !records.is_empty() || Instant::now() >= deadline {
                        return Ok(records);
                    }
                }
            }
        }
    }

    /// Commits the positions now, and waits for it.
    ///
    /// # Errors
    /// Why it was refused, as a whole or for the first partition that was.
    pub async fn commit(&mut self) -> Result<(), ClientError> {
        let limit = self.link.client().config().default_api_timeout;
        let positions = self.positions();
        self.commit_now(positions, limit).await
    }

    /// Commits if that is wanted, and leaves the group; a static member only stops.
    ///
    /// # Errors
    /// Why the last positions could not be committed. The member is out all the same.
    pub async fn close(mut self) -> Result<(), ClientError> {
        let committed = if self.config.enable_auto_commit && self.ended.is_none() {
            self.commit_at_last().await
        } else {
            Ok(())
        };
        self.consumer_stops();
        self.membership
            .tell(Command::Leave("the consumer is closed".to_owned()));
        let limit = duration(self.link.client().config().request_timeout);
        let gone = async {
            while let Some(happened) = self.membership.happened.recv().await {
                if matches!(happened, Happened::Left | Happened::Failed(_)) {
                    break;
                }
            }
        };
        // Who cannot say goodbye is missed when its session ends.
        drop(timeout(limit, gone).await);
        committed
    }

    async fn happened(&mut self, happened: Option<Happened>) {
        match happened {
            Some(Happened::Revoke(partitions)) => self.give_up(&partitions).await,
            Some(Happened::Lost) => {
                self.consumer_stops();
                self.committed.clear();
            }
            Some(Happened::Assigned(partitions)) => {
                self.has_assignment = true;
                self.begin(partitions);
            }
            Some(Happened::Failed(why)) => {
                self.consumer_stops();
                self.ended = Some(why);
            }
            Some(Happened::Left) | None => {
                self.consumer_stops();
                self.ended.get_or_insert_with(|| {
                    let what = format!("group {}", self.link.group_id());
                    ClientError::refused(what, ErrorCode::UNKNOWN_MEMBER_ID, None)
                });
            }
        }
    }

    /// Stops reading `partitions` and commits how far they were read.
    async fn give_up(&mut self, partitions: &PartitionSet) {
        tracing::debug!(?partitions, "partitions are given up");
        let mut positions = self.positions();
        positions.retain(|it, _| partitions.contains(it));
        for it in partitions {
            self.consumer.unassign(&name_of(it));
            self.assigned.remove(it);
        }
        self.has_assignment = false;
        if self.config.enable_auto_commit
            && let Err(why) = self.commit_now(positions, REVOKE_LIMIT).await
        {
            tracing::warn!(%why, "what was read last is read again by others");
        }
        for it in partitions {
            self.committed.remove(it);
        }
        self.membership.tell(Command::Released);
    }

    fn consumer_stops(&mut self) {
        for it in std::mem::take(&mut self.assigned) {
            self.consumer.unassign(&name_of(&it));
        }
        self.has_assignment = false;
    }

    /// Looks up where the group stands in `partitions`; they are read once that is known.
    fn begin(&mut self, partitions: PartitionSet) {
        tracing::debug!(?partitions, "partitions are assigned");
        if partitions.is_empty() {
            return;
        }
        self.assigned.extend(partitions.iter().cloned());
        self.look_ups += 1;
        let number = self.look_ups;
        let of_number = partitions.iter().map(|it| (it.clone(), number));
        self.starting.extend(of_number);
        let (link, report) = (self.link.clone(), self.report.clone());
        let limit = link.client().config().default_api_timeout;
        tokio::spawn(async move {
            let fetched = link.fetch_offsets(Some(&partitions), true, limit).await;
            drop(report.send(Found::Starts(number, partitions, fetched)));
        });
    }

    fn take_in(&mut self, found: Found) -> Result<(), ClientError> {
        match found {
            Found::Starts(number, mut partitions, result) => {
                // One that was given up and came back is looked up anew.
                partitions.retain(|it| {
                    let newest = self.starting.get(it) == Some(&number);
                    newest && self.assigned.contains(it)
                });
                self.starting.retain(|it, _| !partitions.contains(it));
                match result {
                    Ok(committed) => {
                        let mut result = Ok(());
                        for it in &partitions {
                            let started = self.start(it, committed.get(it).cloned().flatten());
                            result = result.and(started);
                        }
                        result
                    }
                    Err(why) => {
                        // They are ours and must be read: asked again, told meanwhile.
                        self.begin(partitions);
                        Err(why)
                    }
                }
            }
            Found::Committed(sent, result) => {
                self.is_committing = false;
                if let Err(why) = self.committed(&sent, result) {
                    tracing::warn!(%why, "positions were not committed");
                }
                Ok(())
            }
        }
    }

    fn start(
        &mut self,
        partition: &TopicPartition,
        committed: Option<CommittedOffset>,
    ) -> Result<(), ClientError> {
        let name = name_of(partition);
        let Some(committed) = committed else {
            let start = match self.consumer.config.auto_offset_reset {
                OffsetReset::Earliest => StartAt::Earliest,
                OffsetReset::Latest => StartAt::Latest,
                OffsetReset::None => {
                    self.consumer.unassign(&name);
                    return Err(ClientError::NoCommittedOffset {
                        group: self.link.group_id().to_owned(),
                        partition: partition.to_string(),
                    });
                }
            };
            self.consumer.track(name, start);
            return Ok(());
        };
        self.committed.insert(partition.clone(), committed.offset);
        self.consumer
            .track_from(name, committed.offset, committed.leader_epoch);
        Ok(())
    }

    /// Where it stands in what it reads, as far as positions are known.
    fn positions(&self) -> BTreeMap<TopicPartition, CommittedOffset> {
        let position = |it: &TopicPartition| {
            let (offset, leader_epoch) = self.consumer.position_and_epoch(&name_of(it))?;
            let position = CommittedOffset {
                offset,
                leader_epoch,
                metadata: String::new(),
            };
            Some((it.clone(), position))
        };
        self.assigned.iter().filter_map(position).collect()
    }

    /// Sends a commit of what has moved, unless one is on its way or the time has not come.
    fn commit_when_due(&mut self) {
        if !self.config.enable_auto_commit
            || self.is_committing
            || Instant::now() < self.next_commit
        {
            return;
        }
        self.next_commit = Instant::now() + duration(self.config.auto_commit_interval);
        let offsets = self.news(self.positions());
        let Some(identity) = self.membership.identity.borrow().clone() else {
            return;
        };
        if offsets.is_empty() {
            return;
        }
        self.is_committing = true;
        let (link, report) = (self.link.clone(), self.report.clone());
        let limit = self.config.auto_commit_interval.max(REVOKE_LIMIT);
        tokio::spawn(async move {
            let result = link.commit_offsets(Some(&identity), &offsets, limit).await;
            let sent = Sent { identity, offsets };
            drop(report.send(Found::Committed(sent, result)));
        });
    }

    async fn commit_now(
        &mut self,
        offsets: BTreeMap<TopicPartition, CommittedOffset>,
        limit: Millis,
    ) -> Result<(), ClientError> {
        // What is on its way must not arrive after what is newer.
        while self.is_committing
            && let Some(found) = self.found.recv().await
        {
            if let Err(why) = self.take_in(found) {
                self.consumer.tell_later(why);
            }
        }
        let offsets = self.news(offsets);
        if offsets.is_empty() {
            return Ok(());
        }
        let Some(identity) = self.membership.identity.borrow().clone() else {
            let what = format!("commit of group {}", self.link.group_id());
            return Err(ClientError::refused(
                what,
                ErrorCode::UNKNOWN_MEMBER_ID,
                None,
            ));
        };
        let result = self
            .link
            .commit_offsets(Some(&identity), &offsets, limit)
            .await;
        self.committed(&Sent { identity, offsets }, result)
    }

    /// Commits before closing; once more, for a while, when the group is just rebalancing.
    async fn commit_at_last(&mut self) -> Result<(), ClientError> {
        let deadline = Instant::now() + duration(CLOSE_LIMIT);
        let pause = duration(self.link.client().config().retry_backoff);
        loop {
            let limit = self.link.client().config().request_timeout;
            let positions = self.positions();
            let result = self.commit_now(positions, limit).await;
            let passes = |why: &ClientError| why.code() == Some(ErrorCode::REBALANCE_IN_PROGRESS);
            match result {
                Err(why) if passes(&why) && Instant::now() < deadline => {}
                result => return result,
            }
            sleep(pause).await;
            while let Ok(happened) = self.membership.happened.try_recv() {
                self.happened(Some(happened)).await;
            }
        }
    }

    /// What differs from what is committed.
    fn news(
        &self,
        mut offsets: BTreeMap<TopicPartition, CommittedOffset>,
    ) -> BTreeMap<TopicPartition, CommittedOffset> {
        offsets.retain(|it, position| self.committed.get(it) != Some(&position.offset));
        offsets
    }

    /// Takes in what became of a commit.
    fn committed(
        &mut self,
        sent: &Sent,
        result: Result<CommitResults, ClientError>,
    ) -> Result<(), ClientError> {
        let mut first = None;
        for (partition, result) in result? {
            match result {
                Ok(()) => {
                    if let Some(position) = sent.offsets.get(&partition) {
                        self.committed.insert(partition, position.offset);
                    }
                }
                Err(code) => {
                    first.get_or_insert((partition, code));
                }
            }
        }
        let Some((partition, code)) = first else {
            return Ok(());
        };
        let refused = Command::OffsetsRefused(sent.identity.clone(), code);
        self.membership.tell(refused);
        let group_id = self.link.group_id();
        let what = format!("commit of group {group_id} in {partition}");
        Err(ClientError::refused(what, code, None))
    }
}

impl fmt::Debug for GroupConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupConsumer")
            .field("group_id", &self.link.group_id())
            .field("assigned", &self.assigned)
            .finish_non_exhaustive()
    }
}

fn name_of(partition: &TopicPartition) -> PartitionName {
    (
        partition.topic.to_string(),
        PartitionIndex::new(partition.partition.raw()),
    )
}
