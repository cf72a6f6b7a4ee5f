//! What a node tells people.

use std::fmt;

use highwater_coordinator::GroupHappening;
use highwater_log::{Progress, RecoveryStep};
use highwater_replication::{IsrCause, IsrProposal};
use highwater_types::{EpochEntry, LeaderEpoch, NodeId, Offset, PartitionEpoch, TopicPartition};

use crate::job::LogDirNumber;

/// Something worth telling a person: what happened, to what, and why.
///
/// The server logs it at its level; the simulator writes it into the trace, so every text is a
/// function of the inputs alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    /// How loud it is.
    pub level: Level,
    /// What happened.
    pub happening: Happening,
}

/// How loud a [`JournalEntry`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A step of normal work. Only pushed when the machine was built with `trace` set: the hot
    /// paths pay nothing for it otherwise.
    Trace,
    /// Rare and normal.
    Info,
    /// Something is worse than it should be; service goes on.
    Warn,
    /// Something stopped working.
    Error,
}

/// What happened. One variant per kind of event; `Display` says it in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// A batch was appended.
    Appended {
        /// Where.
        partition: TopicPartition,
        /// First offset of the batch.
        first_offset: Offset,
        /// Exclusive end of the batch.
        end_offset: Offset,
        /// The leader epoch that it was appended in.
        epoch: LeaderEpoch,
    },
    /// A high watermark rose.
    HighWatermark {
        /// Whose.
        partition: TopicPartition,
        /// Before.
        from: Offset,
        /// After.
        to: Offset,
    },
    /// An acks=all write waits for the high watermark.
    ProduceWaits {
        /// The partition.
        partition: TopicPartition,
        /// Whether the leader's own flushed copy is enough (acks=1).
        for_own_copy: bool,
        /// Done once that, or else the high watermark, is here.
        end_offset: Offset,
    },
    /// A replica began to lead.
    Leads {
        /// The partition.
        partition: TopicPartition,
        /// In this epoch.
        epoch: LeaderEpoch,
        /// The log end offset at that moment.
        start_offset: Offset,
    },
    /// A replica no longer leads, or its partition is gone from this broker.
    LeadsNoMore {
        /// The partition.
        partition: TopicPartition,
        /// The epoch in which it led.
        epoch: LeaderEpoch,
        /// Why.
        why: &'static str,
    },
    /// A replica began to follow a leader.
    Follows {
        /// The partition.
        partition: TopicPartition,
        /// Whom.
        leader: NodeId,
        /// The epoch of that leader.
        epoch: LeaderEpoch,
    },
    /// A follower is about to cut its log, for its history and its leader's part.
    Truncated {
        /// The partition.
        partition: TopicPartition,
        /// Exclusive end of the log before.
        from: Offset,
        /// Exclusive end of the log after.
        to: Offset,
        /// The follower's history before.
        own: Vec<EpochEntry>,
        /// Where the leader's history ends.
        leader_says: String,
    },
    /// A follower is about to delete its log and to begin anew, for its leader no longer has what
    /// would follow.
    Restarted {
        /// The partition.
        partition: TopicPartition,
        /// First offset of the log before.
        log_start_offset: Offset,
        /// Exclusive end of the log before.
        log_end_offset: Offset,
        /// Where the log begins then.
        start: Offset,
    },
    /// A leader asks the controller for another ISR.
    IsrProposed {
        /// The partition.
        partition: TopicPartition,
        /// The change and its cause.
        proposal: Box<IsrProposal>,
    },
    /// The committed ISR is another one.
    IsrChanged {
        /// The partition.
        partition: TopicPartition,
        /// Before.
        from: Vec<NodeId>,
        /// After.
        to: Vec<NodeId>,
    },
    /// The controller committed another state of a replicated partition.
    PartitionCommitted {
        /// The partition.
        partition: TopicPartition,
        /// Who leads; none while nobody does.
        leader: NodeId,
        /// The leader's epoch.
        epoch: LeaderEpoch,
        /// The partition epoch.
        partition_epoch: PartitionEpoch,
        /// The ISR.
        in_sync_replicas: Vec<NodeId>,
        /// Who may lead without loss though not in sync.
        eligible_leader_replicas: Vec<NodeId>,
    },
    /// The controller made a replica the leader that may lack committed records.
    ElectedUncleanly {
        /// The partition.
        partition: TopicPartition,
        /// The new leader.
        leader: NodeId,
    },
    /// A leader was named, instead of one that follows from who is up: only in simulations.
    ElectionForced {
        /// The partition.
        partition: TopicPartition,
        /// The new leader.
        leader: NodeId,
        /// Its epoch.
        epoch: LeaderEpoch,
        /// Whether it may lack committed records.
        unclean: bool,
    },
    /// Acknowledged or readable records are gone. Always counted as an alarm.
    DataLoss {
        /// The partition.
        partition: TopicPartition,
        /// The first lost offset.
        from: Offset,
        /// Exclusive end of what had been readable.
        to: Offset,
        /// What took it.
        why: &'static str,
    },
    /// A log was opened.
    LogOpened {
        /// The partition.
        partition: TopicPartition,
        /// What was found and mended; empty for a plain open.
        report: String,
        /// How many logs of this shard are open now.
        done: u32,
        /// How many logs this shard has to open.
        total: u32,
    },
    /// A log is being recovered, which takes long. Told by whoever runs the job, now and then.
    Recovering {
        /// The partition.
        partition: TopicPartition,
        /// How far it is.
        progress: Progress,
    },
    /// A partition stopped serving; others go on.
    PartitionFailed {
        /// The partition.
        partition: TopicPartition,
        /// Why.
        why: String,
    },
    /// An append failed for a reason that may pass, such as a full disk.
    AppendFailed {
        /// The partition.
        partition: TopicPartition,
        /// Why.
        why: String,
    },
    /// A log directory went offline with all its partitions.
    DirOffline {
        /// The directory.
        dir: LogDirNumber,
        /// Its path.
        path: String,
        /// Why.
        why: String,
    },
    /// A directory of a log that the metadata does not know was set aside.
    StrayLog {
        /// The directory before.
        from: String,
        /// Its name now.
        to: String,
        /// Why it is a stray.
        why: &'static str,
    },
    /// A log's directory was renamed for deletion.
    LogDeleted {
        /// The partition.
        partition: TopicPartition,
        /// The directory's name now.
        renamed_to: String,
    },
    /// Segments were deleted by retention.
    Retained {
        /// The partition.
        partition: TopicPartition,
        /// The log start offset now.
        log_start_offset: Offset,
    },
    /// A connection was closed because of what it sent.
    RequestRefused {
        /// The api key as sent.
        api_key: i16,
        /// The version as sent.
        api_version: i16,
        /// The client id as sent, if the header could be read.
        client_id: Option<String>,
        /// Why.
        why: String,
    },
    /// The log of a coordinator was replayed: it serves from now on.
    GroupsLoaded {
        /// The coordinator's partition.
        partition: TopicPartition,
        /// How many records it had.
        records: u64,
    },
    /// The log of a coordinator cannot be replayed: its groups are not served.
    GroupsNotLoaded {
        /// The coordinator's partition.
        partition: TopicPartition,
        /// Why.
        why: String,
    },
    /// Something happened to a group.
    Group(GroupHappening),
    /// Anything else, in words.
    Text(String),
}

impl JournalEntry {
    /// An entry at [`Level::Trace`].
    #[must_use]
    pub const fn trace(happening: Happening) -> Self {
        Self {
            level: Level::Trace,
            happening,
        }
    }

    /// An entry at [`Level::Info`].
    #[must_use]
    pub const fn info(happening: Happening) -> Self {
        Self {
            level: Level::Info,
            happening,
        }
    }

    /// An entry at [`Level::Warn`].
    #[must_use]
    pub const fn warn(happening: Happening) -> Self {
        Self {
            level: Level::Warn,
            happening,
        }
    }

    /// An entry at [`Level::Error`].
    #[must_use]
    pub const fn error(happening: Happening) -> Self {
        Self {
            level: Level::Error,
            happening,
        }
    }

    /// An entry of words only.
    #[must_use]
    pub fn text(level: Level, text: impl Into<String>) -> Self {
        Self {
            level,
            happening: Happening::Text(text.into()),
        }
    }
}

impl fmt::Display for JournalEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.happening.fmt(f)
    }
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PartitionFailed { partition, why } => write!(f, "failed {partition}: {why}"),
            Self::AppendFailed { partition, why } => write!(f, "append to {partition}: {why}"),
            Self::DirOffline { path, why, .. } => {
                write!(f, "log directory {path} is offline: {why}")
            }
            Self::StrayLog { from, to, why } => write!(f, "stray {from} -> {to}: {why}"),
            Self::RequestRefused {
                api_key,
                api_version,
                client_id,
                why,
            } => write!(
                f,
                "connection closed: api {api_key} v{api_version} of client {}: {why}",
                client_id.as_deref().unwrap_or("(none)")
            ),
            Self::GroupsLoaded { partition, records } => {
                write!(f, "groups of {partition} loaded: records={records}")
            }
            Self::GroupsNotLoaded { partition, why } => {
                write!(f, "groups of {partition} are not served: {why}")
            }
            Self::Group(happening) => happening.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::PartitionCommitted { .. }
            | Self::ElectedUncleanly { .. }
            | Self::ElectionForced { .. } => self.fmt_controller(f),
            Self::LogOpened { .. }
            | Self::Recovering { .. }
            | Self::LogDeleted { .. }
            | Self::Retained { .. } => self.fmt_log(f),
            Self::Follows { .. } | Self::Truncated { .. } | Self::Restarted { .. } => {
                self.fmt_follower(f)
            }
            Self::Appended { .. }
            | Self::ProduceWaits { .. }
            | Self::HighWatermark { .. }
            | Self::Leads { .. }
            | Self::LeadsNoMore { .. }
            | Self::IsrProposed { .. }
            | Self::IsrChanged { .. }
            | Self::DataLoss { .. } => self.fmt_replica(f),
        }
    }
}

impl Happening {
    fn fmt_controller(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PartitionCommitted {
                partition,
                leader,
                epoch,
                partition_epoch,
                in_sync_replicas,
                eligible_leader_replicas,
            } => {
                let isr = Nodes(in_sync_replicas);
                write!(
                    f,
                    "commit {partition} leader={leader} epoch={epoch} isr={isr}"
                )?;
                if !eligible_leader_replicas.is_empty() {
                    write!(f, " elr={}", Nodes(eligible_leader_replicas))?;
                }
                write!(f, " partition-epoch={partition_epoch}")
            }
            Self::ElectedUncleanly { partition, leader } => write!(
                f,
                "unclean election {partition} leader={leader}: committed records may be lost"
            ),
            Self::ElectionForced {
                partition,
                leader,
                epoch,
                unclean,
            } => {
                let how = if *unclean {
                    "forced, unclean"
                } else {
                    "forced"
                };
                write!(f, "elect {partition} leader={leader} epoch={epoch} ({how})")
            }
            _ => Ok(()),
        }
    }

    fn fmt_log(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LogOpened {
                partition,
                report,
                done,
                total,
            } => {
                write!(f, "open {partition}")?;
                // A log that is made now is none of those that the start has to open.
                if *total > 0 {
                    write!(f, " ({done} of {total})")?;
                }
                if report.is_empty() {
                    Ok(())
                } else {
                    write!(f, ": {report}")
                }
            }
            Self::Recovering {
                partition,
                progress,
            } => {
                let step = match progress.step {
                    RecoveryStep::Batches => "batches",
                    RecoveryStep::Producers => "producers",
                };
                let mib = |bytes: u64| bytes.div_ceil(1 << 20);
                let (done, total) = (mib(progress.scanned_bytes), mib(progress.total_bytes));
                write!(
                    f,
                    "recovering {partition}: {step}, {done} of {total} MiB read"
                )
            }
            Self::LogDeleted {
                partition,
                renamed_to,
            } => write!(f, "delete {partition} -> {renamed_to}"),
            Self::Retained {
                partition,
                log_start_offset,
            } => write!(f, "retain {partition} log-start={log_start_offset}"),
            _ => Ok(()),
        }
    }

    fn fmt_follower(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Follows {
                partition,
                leader,
                epoch,
            } => write!(f, "follow {partition} leader={leader} epoch={epoch}"),
            Self::Truncated {
                partition,
                from,
                to,
                own,
                leader_says,
            } => {
                write!(f, "truncate {partition} {from} -> {to}: own epochs")?;
                for entry in own {
                    write!(f, " ({}, {})", entry.epoch, entry.start_offset)?;
                }
                write!(f, ", {leader_says}")
            }
            Self::Restarted {
                partition,
                log_start_offset,
                log_end_offset,
                start,
            } => write!(
                f,
                "restart {partition} [{log_start_offset},{log_end_offset}) -> {start}: \
                 the leader's log starts there"
            ),
            _ => Ok(()),
        }
    }

    fn fmt_replica(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Appended {
                partition,
                first_offset,
                end_offset,
                epoch,
            } => write!(
                f,
                "append {partition} [{first_offset},{end_offset}) epoch={epoch}"
            ),
            Self::ProduceWaits {
                partition,
                for_own_copy,
                end_offset,
            } => {
                let what = if *for_own_copy {
                    "flushed"
                } else {
                    "high-watermark"
                };
                write!(f, "wait produce {partition} until {what}={end_offset}")
            }
            Self::HighWatermark {
                partition,
                from,
                to,
            } => write!(f, "high-watermark {partition} {from} -> {to}"),
            Self::Leads {
                partition,
                epoch,
                start_offset,
            } => write!(f, "lead {partition} epoch={epoch} start={start_offset}"),
            Self::LeadsNoMore {
                partition,
                epoch,
                why,
            } => write!(f, "lead-no-more {partition} epoch={epoch}: {why}"),
            Self::IsrProposed {
                partition,
                proposal,
            } => {
                let isr = proposal.in_sync_replicas.iter().map(|(node, _)| *node);
                let isr: Vec<_> = isr.collect();
                write!(f, "isr-wanted {partition} {}: ", Nodes(&isr))?;
                fmt_isr_cause(&proposal.cause, f)
            }
            Self::IsrChanged {
                partition,
                from,
                to,
            } => write!(f, "isr {partition} {} -> {}", Nodes(from), Nodes(to)),
            Self::DataLoss {
                partition,
                from,
                to,
                why,
            } => write!(f, "data-loss {partition} [{from},{to}): {why}"),
            _ => Ok(()),
        }
    }
}

/// Node ids as Kafka lists them.
struct Nodes<'a>(&'a [NodeId]);

impl fmt::Display for Nodes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, node) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{node}")?;
        }
        Ok(())
    }
}

/// Why an ISR is to change, with the numbers that the leader judged by.
fn fmt_isr_cause(cause: &IsrCause, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match cause {
        IsrCause::Joins {
            replica,
            log_end_offset,
            high_watermark,
        } => write!(
            f,
            "{replica} has caught up (leo={log_end_offset} hw={high_watermark})"
        ),
        IsrCause::Lag(lagging) => {
            for (at, it) in lagging.iter().enumerate() {
                let (leo, leader) = (it.log_end_offset, it.leader_log_end_offset);
                let between = if at == 0 { "" } else { "; " };
                write!(f, "{between}{} lags (leo={leo} of {leader}, ", it.replica)?;
                match it.behind_for {
                    Some(span) => write!(f, "behind for {} ms, ", span.as_u64())?,
                    None => f.write_str("never caught up in this epoch, ")?,
                }
                match it.last_fetch {
                    Some(span) => write!(f, "last fetch {} ms ago)", span.as_u64())?,
                    None => f.write_str("no fetch in this epoch)")?,
                }
            }
            Ok(())
        }
    }
}
