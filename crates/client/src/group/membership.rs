use std::collections::BTreeSet;
use std::time::Duration;

use highwater_protocol::client::group::{
    CallId, CallTo, GroupError, GroupMember, MemberCall, MemberConfig, MemberIdentity,
    MemberOutput, PartitionSet, TopicCounts,
};
use highwater_protocol::{Request, Response};
use highwater_types::{ErrorCode, Millis, Mono, TopicName};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::coordinator::address;
use crate::cluster::Client;
use crate::config::duration;
use crate::error::ClientError;
use crate::net::{Call, Connection};

/// How soon topics that do not exist yet are looked for again.
const MISSING_TOPICS_PAUSE: Duration = Duration::from_secs(1);

/// What a consumer wants of its membership.
#[derive(Debug)]
pub(super) enum Command {
    Subscribe(BTreeSet<TopicName>),
    Polled,
    Released,
    OffsetsRefused(MemberIdentity, ErrorCode),
    Leave(String),
}

/// What a consumer must know of its membership, in this order.
#[derive(Debug)]
pub(super) enum Happened {
    /// Give these up, commit, then say [`Command::Released`].
    Revoke(PartitionSet),
    /// Everything is lost.
    Lost,
    /// Begin to read these.
    Assigned(PartitionSet),
    /// Out, as was wanted.
    Left,
    /// Out for good.
    Failed(ClientError),
}

/// The consumer's end of a membership.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) commands: mpsc::UnboundedSender<Command>,
    pub(super) happened: mpsc::UnboundedReceiver<Happened>,
    /// Under which name a commit counts now.
    pub(super) identity: watch::Receiver<Option<MemberIdentity>>,
}

/// Runs a [`GroupMember`] on a task of its own: heartbeats go on whatever the consumer does.
struct Runner {
    member: GroupMember,
    group_id: String,
    /// Has connections of its own: a JoinGroup that waits holds up all that comes behind it.
    client: Client,
    started: Instant,
    happened: mpsc::UnboundedSender<Happened>,
    identity: watch::Sender<Option<MemberIdentity>>,
    report: mpsc::UnboundedSender<Report>,
    under_way: Option<(CallId, AbortHandle)>,
    look_at_topics: Instant,
    is_looking: bool,
    /// The newest count that was asked for; older ones do not deal.
    counting: u64,
}

/// What a helper task found out.
enum Report {
    Answered(CallId, Result<Response, ClientError>),
    Counted {
        number: u64,
        counts: TopicCounts,
        deals: bool,
    },
}

impl Membership {
    /// Starts the task. It ends when the member has left or failed, or this end is dropped.
    pub(super) fn start(client: &Client, config: MemberConfig) -> Self {
        let (commands, wanted) = mpsc::unbounded_channel();
        let (happened, events) = mpsc::unbounded_channel();
        let (report, reports) = mpsc::unbounded_channel();
        let (identity, known_as) = watch::channel(None);
        let runner = Runner {
            group_id: config.group_id.clone(),
            member: GroupMember::new(config),
            client: client.sibling(),
            started: Instant::now(),
            happened,
            identity,
            report,
            under_way: None,
            look_at_topics: Instant::now(),
            is_looking: false,
            counting: 0,
        };
        tokio::spawn(runner.run(wanted, reports));
        Self {
            commands,
            happened: events,
            identity: known_as,
        }
    }

    /// Tells the task; one that has ended is told nothing any more.
    pub(super) fn tell(&self, command: Command) {
        drop(self.commands.send(command));
    }
}

impl Runner {
    async fn run(
        mut self,
        mut wanted: mpsc::UnboundedReceiver<Command>,
        mut reports: mpsc::UnboundedReceiver<Report>,
    ) {
        let mut out = Vec::new();
        loop {
            let due = self.next_look();
            tokio::select! {
                biased;
                command = wanted.recv() => {
                    let Some(command) = command else { break };
                    self.obey(command, &mut out);
                }
                Some(report) = reports.recv() => self.take_in(report, &mut out),
                () = sleep_until(due) => {
                    let now = self.now();
                    self.member.tick(now, &mut out);
                    self.watch_topics();
                }
            }
            if self.perform(&mut out) {
                break;
            }
        }
        self.abandon();
    }

    fn obey(&mut self, command: Command, out: &mut Vec<MemberOutput>) {
        let now = self.now();
        match command {
            Command::Subscribe(topics) => self.member.subscribe(now, topics, out),
            Command::Polled => self.member.polled(now, out),
            Command::Released => self.member.released(now, out),
            Command::OffsetsRefused(identity, code) => {
                self.member
                    .handle_offsets_refused(now, &identity, code, out);
            }
            Command::Leave(reason) => self.member.leave(now, &reason, out),
        }
    }

    fn take_in(&mut self, report: Report, out: &mut Vec<MemberOutput>) {
        let now = self.now();
        match report {
            Report::Answered(id, result) => {
                self.under_way.take_if(|(under_way, _)| *under_way == id);
                match result {
                    Ok(answer) => self.member.handle_answer(now, id, answer, out),
                    Err(why) if is_final(&why) => {
                        drop(self.happened.send(Happened::Failed(why)));
                        out.push(MemberOutput::Left);
                    }
                    Err(why) => {
                        tracing::debug!(group = self.group_id, %why, "call of a group member");
                        self.member.handle_failure(now, id, out);
                    }
                }
            }
            Report::Counted { number, .. } if number != self.counting => {}
            Report::Counted { counts, deals, .. } => {
                self.is_looking = false;
                if deals {
                    self.member.handle_topics(now, &counts, out);
                } else {
                    self.member.topics_changed(now, &counts, out);
                }
                let watched = self.member.watched_topics();
                let misses = watched.iter().any(|it| !counts.contains_key(it));
                let age = duration(self.client.config().metadata_max_age);
                let pause = if misses {
                    MISSING_TOPICS_PAUSE.min(age)
                } else {
                    age
                };
                self.look_at_topics = Instant::now() + pause;
            }
        }
    }

    /// Performs what the member wants; whether that was the end of it.
    fn perform(&mut self, out: &mut Vec<MemberOutput>) -> bool {
        // Known before the consumer hears of anything that happened under it.
        let identity = self.member.identity();
        self.identity.send_if_modified(|known| {
            let is_new = *known != identity;
            *known = identity;
            is_new
        });
        let mut is_over = false;
        for output in out.drain(..) {
            let happened = match output {
                MemberOutput::Send {
                    id,
                    to,
                    call,
                    timeout,
                } => {
                    self.send(id, to, call, timeout);
                    continue;
                }
                MemberOutput::Abandon(_) => {
                    self.abandon();
                    continue;
                }
                MemberOutput::CountTopics(topics) => {
                    self.count(topics, true);
                    continue;
                }
                MemberOutput::Revoke(partitions) => Happened::Revoke(partitions),
                MemberOutput::Lost => Happened::Lost,
                MemberOutput::Assigned(partitions) => Happened::Assigned(partitions),
                MemberOutput::Left => {
                    is_over = true;
                    Happened::Left
                }
                MemberOutput::Failed(why) => {
                    is_over = true;
                    Happened::Failed(in_words(&self.group_id, why))
                }
            };
            drop(self.happened.send(happened));
        }
        is_over
    }

    fn send(&mut self, id: CallId, to: CallTo, call: MemberCall, limit: Millis) {
        let (client, report) = (self.client.clone(), self.report.clone());
        let task = tokio::spawn(async move {
            let result = match to {
                CallTo::AnyBroker => find(&client, call).await,
                CallTo::Coordinator(coordinator) => {
                    match client.connection_to(&address(&coordinator)).await {
                        Ok(connection) => call_once(&connection, call, limit).await,
                        Err(why) => Err(why),
                    }
                }
            };
            drop(report.send(Report::Answered(id, result)));
        });
        self.under_way = Some((id, task.abort_handle()));
    }

    /// Ends the call under way and its connection.
    fn abandon(&mut self) {
        if let Some((_, task)) = self.under_way.take() {
            task.abort();
            self.client = self.client.sibling();
        }
    }

    /// Lets the member see, now and then, whether its group's topics have changed.
    fn watch_topics(&mut self) {
        let watched = self.member.watched_topics();
        if !watched.is_empty() && !self.is_looking && Instant::now() >= self.look_at_topics {
            self.count(watched, false);
        }
    }

    fn count(&mut self, topics: BTreeSet<TopicName>, deals: bool) {
        self.is_looking = true;
        self.counting += 1;
        let number = self.counting;
        let (client, report) = (self.client.clone(), self.report.clone());
        tokio::spawn(async move {
            let counts = count_partitions(&client, &topics).await;
            let counted = Report::Counted {
                number,
                counts,
                deals,
            };
            drop(report.send(counted));
        });
    }

    fn next_look(&self) -> Instant {
        let idle = Instant::now() + Duration::from_secs(60);
        let member = self.member.next_deadline().map_or(idle, |at| {
            self.started + Duration::from_micros(at.as_micros())
        });
        let watches = !self.is_looking && !self.member.watched_topics().is_empty();
        let topics = if watches { self.look_at_topics } else { idle };
        member.min(topics).min(idle)
    }

    fn now(&self) -> Mono {
        let micros = self.started.elapsed().as_micros();
        Mono::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

async fn find(client: &Client, call: MemberCall) -> Result<Response, ClientError> {
    let MemberCall::FindCoordinator { group_id } = call else {
        return Err(unexpected());
    };
    let ask =
        |version| highwater_protocol::client::group::find_coordinator(group_id.clone(), version);
    client.call_any_at(ask).await.map(Response::FindCoordinator)
}

async fn call_once(
    connection: &Connection,
    call: MemberCall,
    limit: Millis,
) -> Result<Response, ClientError> {
    let version = connection.version(call.api())?;
    match call.request(version) {
        Request::JoinGroup(it) => typed(connection, it, limit).await,
        Request::SyncGroup(it) => typed(connection, it, limit).await,
        Request::Heartbeat(it) => typed(connection, it, limit).await,
        Request::LeaveGroup(it) => typed(connection, it, limit).await,
        _ => Err(unexpected()),
    }
}

async fn typed<C: Call>(
    connection: &Connection,
    request: C,
    limit: Millis,
) -> Result<Response, ClientError>
where
    C::Answer: Into<Response>,
{
    connection.call(request, limit).await.map(Into::into)
}

fn unexpected() -> ClientError {
    let what = "a call that no group member makes";
    ClientError::refused(what, ErrorCode::INVALID_REQUEST, None)
}

/// Partitions of the topics that exist. Asked for until the cluster answers, for no deal can be
/// made without; topics that exist are counted also while some partition has no leader.
async fn count_partitions(client: &Client, topics: &BTreeSet<TopicName>) -> TopicCounts {
    let names: Vec<String> = topics.iter().map(ToString::to_string).collect();
    if names.is_empty() {
        return TopicCounts::new();
    }
    let limit = client.config().default_api_timeout;
    let asked = client.retry(limit, || client.refresh(Some(&names))).await;
    if let Err(why) = asked {
        tracing::warn!(%why, "the partitions of the group's topics are taken as last known");
    }
    let metadata = client.metadata();
    let count = |name: &TopicName| {
        let topic = metadata.topics.get(name.as_str())?;
        let count = i32::try_from(topic.partitions.len()).ok()?;
        (count > 0).then(|| (name.clone(), count))
    };
    topics.iter().filter_map(count).collect()
}

/// Whether trying again would never help.
fn is_final(why: &ClientError) -> bool {
    matches!(
        why,
        ClientError::Unsupported { .. } | ClientError::Encode { .. }
    )
}

fn in_words(group_id: &str, why: GroupError) -> ClientError {
    let (code, message) = match why {
        GroupError::Refused { what, code } => (code, Some(format!("cannot {what}"))),
        GroupError::Fenced { .. } => (ErrorCode::FENCED_INSTANCE_ID, Some(why.to_string())),
        GroupError::Protocol { .. } => {
            let code = ErrorCode::INCONSISTENT_GROUP_PROTOCOL;
            (code, Some(why.to_string()))
        }
        GroupError::Assignment(_) => (ErrorCode::UNKNOWN_SERVER_ERROR, Some(why.to_string())),
    };
    ClientError::refused(format!("group {group_id}"), code, message)
}
