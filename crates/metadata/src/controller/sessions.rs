use std::collections::{BTreeMap, VecDeque};

use highwater_types::{BrokerEpoch, Millis, Mono, NodeId, Offset, Uuid};

use crate::image::MetadataImage;

/// When each broker was last heard of, and how far it had read the metadata.
#[derive(Clone, Debug, Default)]
pub struct BrokerSessions {
    sessions: BTreeMap<NodeId, Session>,
    /// Lives that others took the place of, the newest last.
    replaced: BTreeMap<NodeId, VecDeque<Uuid>>,
}

/// Lives of one broker that are remembered once they are over.
const REPLACED_MAX: usize = 16;

#[derive(Clone, Debug)]
struct Session {
    epoch: BrokerEpoch,
    last_contact: Mono,
    /// The last metadata offset that the broker had applied; below zero until it says.
    metadata_offset: Offset,
    /// Set when the broker began to leave: the offset that the others must have applied before it
    /// may go.
    leaves_at: Option<Offset>,
}

impl BrokerSessions {
    /// A new controller begins: whoever is registered and not fenced gets a whole session from
    /// `now` on, for nobody knows when it was last heard of.
    pub fn begin(&mut self, image: &MetadataImage, now: Mono) {
        self.sessions.clear();
        for broker in image.brokers.values().filter(|broker| !broker.fenced) {
            self.touch(broker.id, broker.epoch, now, Offset::NONE);
        }
    }

    /// A broker registered or sent a heartbeat.
    pub fn touch(&mut self, id: NodeId, epoch: BrokerEpoch, now: Mono, metadata_offset: Offset) {
        let known = self
            .sessions
            .get(&id)
            .filter(|session| session.epoch == epoch);
        let leaves_at = known.and_then(|session| session.leaves_at);
        let session = Session {
            epoch,
            last_contact: now,
            metadata_offset,
            leaves_at,
        };
        self.sessions.insert(id, session);
    }

    /// Another life of a broker takes the place of `incarnation`.
    pub(crate) fn replace(&mut self, id: NodeId, incarnation: Uuid) {
        let replaced = self.replaced.entry(id).or_default();
        replaced.push_back(incarnation);
        if replaced.len() > REPLACED_MAX {
            replaced.pop_front();
        }
    }

    /// Whether a life of a broker is known to be over: what it sent comes late.
    pub(crate) fn is_replaced(&self, id: NodeId, incarnation: Uuid) -> bool {
        let replaced = self.replaced.get(&id);
        replaced.is_some_and(|it| it.contains(&incarnation))
    }

    /// Gives everybody `span` more: nobody could be heard meanwhile. Nobody becomes one who was
    /// heard of later than `now`.
    pub fn extend(&mut self, span: Millis, now: Mono) {
        for session in self.sessions.values_mut() {
            let contact = session.last_contact.plus(span).min(now);
            session.last_contact = session.last_contact.max(contact);
        }
    }

    /// A broker begins to leave: it may go once all others have applied `offset`.
    pub(crate) fn leave(&mut self, id: NodeId, offset: Offset) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.leaves_at = Some(offset);
        }
    }

    /// When the leaving broker may go; zero when this controller did not see it begin to leave.
    pub(crate) fn leaves_at(&self, id: NodeId) -> Offset {
        self.sessions
            .get(&id)
            .and_then(|session| session.leaves_at)
            .unwrap_or(Offset::ZERO)
    }

    /// Whether a broker was heard of within `timeout`.
    #[must_use]
    pub fn is_live(&self, id: NodeId, epoch: BrokerEpoch, now: Mono, timeout: Millis) -> bool {
        self.sessions.get(&id).is_some_and(|session| {
            session.epoch == epoch && session.last_contact.plus(timeout) > now
        })
    }

    /// The unfenced broker that has been silent for longest, if it was so for `timeout`: the next
    /// to be fenced. One at a time, for each fence decides on the state that the one before left
    /// (KAFKA-13173).
    #[must_use]
    pub fn expired(&self, image: &MetadataImage, now: Mono, timeout: Millis) -> Option<NodeId> {
        self.oldest(image)
            .filter(|(at, _)| at.plus(timeout) <= now)
            .map(|(_, id)| id)
    }

    /// When the next session ends, if any broker is unfenced.
    #[must_use]
    pub fn next_expiry(&self, image: &MetadataImage, timeout: Millis) -> Option<Mono> {
        self.oldest(image).map(|(at, _)| at.plus(timeout))
    }

    fn oldest(&self, image: &MetadataImage) -> Option<(Mono, NodeId)> {
        let unfenced = image.brokers.values().filter(|broker| !broker.fenced);
        let contact = |id: NodeId| {
            self.sessions
                .get(&id)
                .map_or(Mono::START, |session| session.last_contact)
        };
        unfenced.map(|broker| (contact(broker.id), broker.id)).min()
    }

    /// The lowest metadata offset that an active broker has applied; the highest offset of all
    /// when there is none.
    pub(crate) fn lowest_active_offset(&self, image: &MetadataImage) -> Offset {
        let active = image.brokers.keys().filter(|id| image.is_active(**id));
        let offset = |id: &NodeId| {
            self.sessions
                .get(id)
                .map_or(Offset::NONE, |session| session.metadata_offset)
        };
        active.map(offset).min().unwrap_or(Offset::MAX)
    }
}
