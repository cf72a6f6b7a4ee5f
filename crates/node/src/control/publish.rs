//! From committed records to what the shards act on.

use std::sync::Arc;

use highwater_disk::Disk;
use highwater_log::Synced;
use highwater_protocol::ListenerKind;
use highwater_records::stored::MetadataRecord;
use highwater_types::{NodeId, Now, Offset};

use super::leader::{PendingBatch, answer};
use super::role::QuorumRole;
use super::{Control, Effects};
use crate::machine::{Effect, MachineId, Peer};
use crate::part::{Changed, ImageUpdate, Part};

impl<D: Disk> Control<D> {
    /// A flush of the metadata log ended. What a leader has flushed is committed.
    pub(super) fn synced(&mut self, now: Now, synced: Synced<D>, out: &mut Effects<D>) {
        let batches = match &mut self.role {
            QuorumRole::Leader(leader) => leader.synced(now, synced),
            QuorumRole::Observer(observer) => {
                let flushed = observer.log.log_mut().synced(synced);
                flushed.map(|_| Vec::new()).map_err(|why| why.to_string())
            }
            QuorumRole::Closed => Ok(Vec::new()),
        };
        match batches {
            Ok(batches) => self.committed(now, batches, out),
            Err(why) => self.fail(format!("the metadata log cannot be flushed: {why}"), out),
        }
    }

    /// Batches are committed: they become visible, and those who waited are answered.
    fn committed(&mut self, now: Now, batches: Vec<PendingBatch>, out: &mut Effects<D>) {
        let any = !batches.is_empty();
        let mut answers = Vec::new();
        for batch in batches {
            for record in &batch.records {
                self.committed
                    .replay(record)
                    .expect("a record that fitted the latest image");
                if !matches!(record, MetadataRecord::NoOp(_)) {
                    self.snapshots.note_change();
                }
            }
            self.committed.set_end(batch.end);
            self.journal_partitions(&batch.records, out);
            answers.extend(batch.answers);
        }
        if any {
            self.register_as_controller(now, out);
            self.lifecycle_controller_known(now, out);
            self.publish(now, out);
        }
        for (ticket, body) in answers {
            out.push(answer(ticket, body));
        }
    }

    /// Gives the shards what is committed, at batch and transaction boundaries only. The first
    /// image waits for this life's registration: an older one could let a shard lead in an epoch
    /// of the life before (KAFKA-18106).
    pub(super) fn publish(&mut self, now: Now, out: &mut Effects<D>) {
        let is_broker = self.config.roles.broker;
        if is_broker && !self.published && !self.has_applied_registration() {
            return;
        }
        let Some((image, changes)) = self.committed.take() else {
            return;
        };
        self.image = Arc::new(image);
        let first = !std::mem::replace(&mut self.published, true);
        let everything = first || std::mem::take(&mut self.reloaded);
        if everything || !changes.is_empty() {
            let changed = if everything || changes.broker_configs || changes.features {
                Changed::Everything
            } else {
                Changed::Topics(Arc::new(changes.topics))
            };
            self.tell_shards(out, |control| {
                Part::Image(ImageUpdate {
                    image: Arc::clone(&control.image),
                    changed: changed.clone(),
                })
            });
        }
        self.lifecycle_published(now, out);
    }

    /// Tells the shards who the active controller is, when that is news.
    pub(super) fn tell_controller(&mut self, now: Now, out: &mut Effects<D>) {
        let controller = Some(self.to_controller()).filter(|it| !it.host.is_empty());
        if controller == self.told_controller {
            return;
        }
        self.told_controller = controller;
        self.tell_shards(out, |control| {
            Part::Controller(control.told_controller.clone())
        });
        if self.role.observer().is_some() && self.told_controller.is_some() {
            self.lifecycle_controller_known(now, out);
        }
    }

    /// Tells the shards the level of kraft.version, when that is news.
    pub(super) fn tell_kraft_version(&mut self, out: &mut Effects<D>) {
        let level = self.role.log().map(|log| log.kraft_version);
        if let Some(level) = level.filter(|level| *level != self.told_kraft_version) {
            self.told_kraft_version = level;
            self.tell_shards(out, |_| Part::KraftVersion(level));
        }
    }

    fn tell_shards(&self, out: &mut Effects<D>, part: impl Fn(&Self) -> Part<D>) {
        for shard in 0..self.config.shards() {
            out.push(Effect::Part {
                to: MachineId::Shard(shard),
                part: part(self),
            });
        }
    }

    /// The active controller; a peer that nobody reaches while it is not known.
    pub(super) fn to_controller(&self) -> Peer {
        let listener = ListenerKind::Controller;
        let peer = |id, host: &str, port| Peer {
            id,
            host: host.into(),
            port,
            listener,
        };
        match &self.role {
            QuorumRole::Leader(_) => {
                let endpoints = crate::format::controller_endpoints(&self.config);
                let own = endpoints.first();
                own.map(|it| peer(self.config.node_id, &it.host, it.port))
            }
            QuorumRole::Observer(observer) => observer.state.leader().and_then(|leader| {
                let address = leader.address.as_ref()?;
                Some(peer(leader.id, &address.host, address.port))
            }),
            QuorumRole::Closed => self.told_controller.clone(),
        }
        .unwrap_or_else(|| Peer::unknown(NodeId::NONE, listener))
    }

    /// The last metadata offset that this broker acts on: what the shards were given, or, before
    /// they were given anything, what is committed.
    pub(super) fn applied_offset(&self) -> Offset {
        let end = if self.published {
            self.image.end
        } else {
            self.committed.image().end
        };
        end.offset.plus(-1)
    }
}
