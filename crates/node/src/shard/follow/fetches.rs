use std::sync::Arc;

use highwater_disk::Disk;
use highwater_metadata::MetadataImage;
use highwater_metadata::image::BrokerImage;
use highwater_protocol::ListenerKind;
use highwater_protocol::client::ReplicaFetch;
use highwater_types::{BrokerEpoch, NodeId, Now};

use super::fetcher::{FetcherId, InFlight, Lane};
use crate::machine::{Effect, Peer};
use crate::shard::{Effects, Shard};

impl<D: Disk> Shard<D> {
    /// Sends the next fetch of each fetcher that has something to ask.
    pub(crate) fn send_fetches(&mut self, now: Now, out: &mut Effects<D>) {
        if !std::mem::take(&mut self.follow.is_stirred) {
            return;
        }
        let fetchers = self.follow.fetchers.iter();
        let ready = fetchers.filter(|(_, fetcher)| fetcher.is_ready());
        let ready: Vec<FetcherId> = ready.map(|(at, _)| *at).collect();
        for at in ready {
            self.send_fetch(now, at, out);
        }
        self.drop_idle_fetchers();
    }

    fn send_fetch(&mut self, now: Now, at: FetcherId, out: &mut Effects<D>) {
        // Only under the registration of this life: that of a former one may be in an ISR with
        // records that were lost since (KIP-903).
        let Some(own) = self.image.broker(self.node_id) else {
            return;
        };
        let broker_epoch = own.epoch;
        let leader_epoch = self.registration(at.leader);
        let peer = self.peer_of(at.leader);
        let token = self.new_token();
        let settings = &self.follow.settings;
        let wait_max = at.lane.wait_max(settings.wait_max).as_u64();
        let fetch = ReplicaFetch {
            replica: self.node_id,
            broker_epoch,
            max_wait_ms: i32::try_from(wait_max).unwrap_or(i32::MAX),
            min_bytes: settings.bytes_min,
            max_bytes: settings.answer_bytes_max,
        };
        let deadline = now.mono.plus(settings.timeout);
        let Some(fetcher) = self.follow.fetchers.get_mut(&at) else {
            return;
        };
        let request = fetcher.session.next_request(fetch);
        fetcher.in_flight = Some(InFlight {
            token,
            peer: peer.clone(),
            leader_epoch,
        });
        self.follow.asked.insert(token, at);
        out.push(Effect::Send {
            peer,
            channel: at.lane.channel(),
            token,
            request: request.into(),
            deadline,
        });
    }

    /// Forgets fetchers without partitions. The joining lane of a leader that is still followed
    /// keeps its session, for it comes and goes.
    fn drop_idle_fetchers(&mut self) {
        let is_idle = |at: &FetcherId| {
            let fetcher = self.follow.fetchers.get(at);
            fetcher.is_none_or(|it| it.session.is_empty() && it.in_flight.is_none())
        };
        let at = |leader, lane| FetcherId { leader, lane };
        let is_followed = |leader| {
            [Lane::Ordinary, Lane::Flushed]
                .iter()
                .any(|lane| !is_idle(&at(leader, *lane)))
        };
        let idle = self.follow.fetchers.keys().filter(|it| {
            let stays = it.lane == Lane::Joining && is_followed(it.leader);
            is_idle(it) && !stays
        });
        let idle: Vec<FetcherId> = idle.copied().collect();
        for at in idle {
            let fetcher = self.follow.fetchers.get(&at);
            if fetcher.is_some_and(|it| it.flushing.is_empty()) {
                self.follow.fetchers.remove(&at);
            }
        }
    }

    /// The metadata has other brokers. A fetch to a leader that is elsewhere now, or was started
    /// anew, is not waited for any longer.
    pub(crate) fn follow_brokers_changed(&mut self, before: &MetadataImage) {
        if Arc::ptr_eq(&before.brokers, &self.image.brokers) {
            return;
        }
        self.follow.is_stirred = true;
        let ids: Vec<FetcherId> = self.follow.fetchers.keys().copied().collect();
        for at in ids {
            let (peer, leader_epoch) = (self.peer_of(at.leader), self.registration(at.leader));
            let Some(fetcher) = self.follow.fetchers.get_mut(&at) else {
                continue;
            };
            let is_outdated =
                |it: &mut InFlight| it.peer != peer || it.leader_epoch != leader_epoch;
            if let Some(outdated) = fetcher.in_flight.take_if(is_outdated) {
                self.follow.asked.remove(&outdated.token);
                fetcher.session.handle_failure();
                fetcher.resume();
            }
        }
    }

    fn registration(&self, broker: NodeId) -> BrokerEpoch {
        self.image
            .broker(broker)
            .map_or(BrokerEpoch::NONE, |it| it.epoch)
    }

    /// Where a leader is reached by other brokers.
    pub(super) fn peer_of(&self, leader: NodeId) -> Peer {
        let kind = ListenerKind::Broker;
        let own = self.image.broker(self.node_id);
        let first = |broker: &Arc<BrokerImage>| broker.endpoints.first().map(|it| it.name.clone());
        let name = self.follow.settings.listener.clone();
        let name = name.or_else(|| own.and_then(first));
        let endpoint = self.image.broker(leader).zip(name);
        let endpoint = endpoint.as_ref().and_then(|(it, name)| it.endpoint(name));
        endpoint.map_or_else(
            || Peer::unknown(leader, kind),
            |it| Peer {
                id: leader,
                host: it.host.as_str().into(),
                port: it.port,
                listener: kind,
            },
        )
    }
}
