//! Getting a snapshot over the wire (KIP-630).

use std::io::IoSlice;
use std::path::PathBuf;
use std::sync::Arc;

use highwater_disk::{Disk, DiskFile as _, OpenMode};
use highwater_metadata::MetadataDelta;
use highwater_protocol::Response;
use highwater_protocol::messages::FetchSnapshotRequest;
use highwater_protocol::messages::fetch_snapshot_request::{
    PartitionSnapshot as AskedPartition, SnapshotId, TopicSnapshot as AskedTopic,
};
use highwater_protocol::messages::fetch_snapshot_response::{
    FetchSnapshotResponse, NodeEndpoint, PartitionSnapshot,
};
use highwater_quorum::{Address, FetchStep, LeaderTold};
use highwater_types::{LeaderEpoch, Mono, Now, OffsetAndEpoch};

use super::install::{InstallSnapshot, SnapshotLoaded};
use super::{Doing, Followed, Observer, Sent};
use crate::control::files::{snapshot_path, unfinished_snapshot_path};
use crate::machine::{Effect, PeerError, Token};

/// The largest snapshot that is taken: Kafka's leaders serve no larger ones.
const SIZE_MAX: u64 = i32::MAX as u64;

/// A snapshot on its way into a `.part` file.
#[derive(Debug)]
pub(super) struct Download<D: Disk> {
    id: OffsetAndEpoch,
    file: Arc<D::File>,
    /// What is there: the next position to ask for.
    position: u64,
    /// The request that is out.
    sent: Option<Sent>,
    /// After a failure: not before.
    not_before: Mono,
}

/// What was read of an answer.
struct Piece<'a> {
    size: u64,
    bytes: &'a [u8],
}

impl<D: Disk> Download<D> {
    pub(super) fn begin(disk: &D, id: OffsetAndEpoch) -> Result<Self, String> {
        let path = unfinished_snapshot_path(id);
        let opened = disk.open(&path, OpenMode::Create);
        let emptied = opened.and_then(|file| file.set_len(0).map(|()| file));
        let file = emptied.map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(Self {
            id,
            file,
            position: 0,
            sent: None,
            not_before: Mono::START,
        })
    }

    pub(super) fn waits_for(&self, token: Token) -> bool {
        self.sent.as_ref().is_some_and(|sent| sent.token == token)
    }

    pub(super) fn next_deadline(&self) -> Option<Mono> {
        self.sent.is_none().then_some(self.not_before)
    }
}

impl<D: Disk> Observer<D> {
    pub(super) fn send_fetch_snapshot(
        &mut self,
        now: Now,
        new_token: impl FnOnce() -> Token,
    ) -> Option<Effect<D>> {
        let target = self.state.target(now.mono)?;
        let epoch = self.state.epoch();
        let Doing::Downloading(download) = &mut self.doing else {
            return None;
        };
        if download.sent.is_some() || download.not_before > now.mono {
            return None;
        }
        let token = new_token();
        let partition = AskedPartition {
            partition: 0,
            current_leader_epoch: epoch.raw(),
            snapshot_id: SnapshotId {
                end_offset: download.id.offset.raw(),
                epoch: download.id.epoch.raw(),
            },
            position: i64::try_from(download.position).unwrap_or(i64::MAX),
            replica_directory_id: self.identity.key.directory_id.uuid(),
        };
        download.sent = Some(Sent {
            token,
            target: target.clone(),
            epoch,
        });
        let request = FetchSnapshotRequest {
            cluster_id: Some(self.identity.cluster_id.clone()),
            replica_id: self.identity.key.id,
            max_bytes: self.limits.snapshot_bytes_max,
            topics: vec![AskedTopic {
                name: "__cluster_metadata".to_owned(),
                partitions: vec![partition],
            }],
        };
        Some(self.send(now, &target, token, request.into()))
    }

    pub(super) fn snapshot_fetched(
        &mut self,
        now: Now,
        result: &Result<Response, PeerError>,
        warnings: &mut Vec<String>,
    ) -> Followed<D> {
        let Doing::Downloading(download) = &mut self.doing else {
            return Followed::Nothing;
        };
        let Some(sent) = download.sent.take() else {
            return Followed::Nothing;
        };
        let partition = match result {
            Ok(Response::FetchSnapshot(response)) => the_partition(response),
            Ok(_) => Err("another answer than was asked for".to_owned()),
            Err(why) => Err(why.to_string()),
        };
        let (told, partition) = match partition {
            Ok(found) => found,
            Err(why) => {
                // The same piece again, after a rest.
                self.complain_of_silence(now, &why, warnings);
                let until = now.mono.plus(self.state.handle_failed());
                if let Doing::Downloading(download) = &mut self.doing {
                    download.not_before = until;
                }
                return Followed::Nothing;
            }
        };
        let error = partition.error_code;
        let step = self
            .state
            .judge_leader(now.mono, &sent.target, sent.epoch, error, &told);
        let gone = match step {
            Some(FetchStep::Rest(_)) | None if error.is_error() => error.to_string(),
            Some(_) => "its leader is another now".to_owned(),
            None => match self.take_piece(partition) {
                Ok(followed) => return followed,
                Err(why) => why,
            },
        };
        // Begin anew with a fetch: it tells what to do now.
        self.complain(&format!("snapshot: {gone}"), warnings);
        self.rest(now);
        Followed::Nothing
    }

    /// Writes what came. The last piece makes the snapshot whole.
    fn take_piece(&mut self, partition: &PartitionSnapshot) -> Result<Followed<D>, String> {
        let Doing::Downloading(download) = &mut self.doing else {
            return Ok(Followed::Nothing);
        };
        let piece = piece(download.id, download.position, partition)?;
        let bufs = [IoSlice::new(piece.bytes)];
        let written = download.file.write_at(download.position, &bufs);
        written.map_err(|why| format!("it cannot be written: {why}"))?;
        download.position += piece.bytes.len() as u64;
        self.complained = false;
        if download.position < piece.size {
            return Ok(Followed::Nothing);
        }
        let install = InstallSnapshot {
            disk: self.log.disk().clone(),
            id: download.id,
        };
        self.doing = Doing::Installing;
        Ok(Followed::Downloaded(install))
    }

    /// The job is done: the log goes on behind the snapshot. Returns the metadata of the snapshot
    /// and the files that go, those of older snapshots among them.
    pub(in crate::control) fn take_over(
        &mut self,
        now: Now,
        loaded: SnapshotLoaded,
        warnings: &mut Vec<String>,
    ) -> Result<Option<TakenOver<D>>, String> {
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(why) => {
                self.complain(&format!("snapshot: {why}"), warnings);
                self.rest(now);
                return Ok(None);
            }
        };
        let id = loaded.file.id;
        let cut = self
            .log
            .log_mut()
            .truncate_fully_and_start_at(now, id.offset);
        let files = cut.map_err(|why| format!("the metadata log cannot be cut: {why}"))?;
        let older = std::mem::take(&mut self.log.snapshots).into_iter();
        let older = older.filter(|file| file.id != id);
        let older = older.map(|file| snapshot_path(file.id)).collect();
        self.log.snapshots.push(loaded.file);
        self.log.bytes_since_snapshot = 0;
        self.log.take_control(&loaded.control);
        self.voters_changed();
        self.state.handle_high_watermark(id.offset, id.offset);
        self.doing = Doing::Resting(now.mono);
        Ok(Some(TakenOver {
            metadata: loaded.metadata,
            files,
            older,
        }))
    }
}

/// What a snapshot that was taken over leaves to do.
#[derive(Debug)]
pub(in crate::control) struct TakenOver<D: Disk> {
    /// The metadata of the snapshot.
    pub(in crate::control) metadata: MetadataDelta,
    /// Segments of the log.
    pub(in crate::control) files: highwater_log::RemovedFiles<D>,
    /// Older snapshots.
    pub(in crate::control) older: Vec<PathBuf>,
}

fn the_partition(
    response: &FetchSnapshotResponse,
) -> Result<(LeaderTold, &PartitionSnapshot), String> {
    if response.error_code.is_error() {
        return Err(format!("the controller answered {}", response.error_code));
    }
    let [topic] = response.topics.as_slice() else {
        return Err("the answer is not about one topic".to_owned());
    };
    let [partition] = topic.partitions.as_slice() else {
        return Err("the answer is not about one partition".to_owned());
    };
    let told = &partition.current_leader;
    let id = Some(told.leader_id).filter(|id| id.is_some());
    let endpoint = |it: &&NodeEndpoint| Some(it.node_id) == id;
    let address = response.node_endpoints.iter().find(endpoint);
    let told = LeaderTold {
        epoch: LeaderEpoch::new(told.leader_epoch),
        id,
        address: address.map(|it| Address {
            host: it.host.clone(),
            port: it.port,
        }),
    };
    Ok((told, partition))
}

fn piece(
    id: OffsetAndEpoch,
    position: u64,
    partition: &PartitionSnapshot,
) -> Result<Piece<'_>, String> {
    let told = &partition.snapshot_id;
    if (told.end_offset, told.epoch) != (id.offset.raw(), id.epoch.raw()) {
        return Err("it is another one than was asked for".to_owned());
    }
    if u64::try_from(partition.position) != Ok(position) {
        return Err(format!(
            "a piece at {} came, not the one at {position}",
            partition.position
        ));
    }
    let size = u64::try_from(partition.size).unwrap_or(0);
    let bytes: &[u8] = &partition.unaligned_records;
    let end = position + bytes.len() as u64;
    if size > SIZE_MAX || end > size || bytes.is_empty() {
        return Err(format!(
            "{} bytes at {position} of {size} make no sense",
            bytes.len()
        ));
    }
    Ok(Piece { size, bytes })
}
