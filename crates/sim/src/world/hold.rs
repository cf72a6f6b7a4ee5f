//! Frames that are held back on their way to a client, to be read late.

use super::World;
use crate::client::ClientId;

impl World {
    /// From now on frames to the client stay on the way.
    pub(crate) fn hold(&mut self, client: ClientId) {
        self.holding.insert(client);
    }

    /// Everything that was held arrives now, in order; nothing is held any more.
    pub(crate) fn deliver(&mut self) {
        self.holding.clear();
        for (node, conn, pieces) in std::mem::take(&mut self.held) {
            self.frame_at_peer(node, conn, pieces);
        }
    }

    /// What was held for these clients arrives now, in order.
    pub(crate) fn deliver_to(&mut self, clients: &[ClientId]) {
        self.holding.retain(|it| !clients.contains(it));
        // What is still to be held is held again.
        for (node, conn, pieces) in std::mem::take(&mut self.held) {
            self.frame_at_peer(node, conn, pieces);
        }
    }

    pub(super) fn is_held(&self, client: ClientId) -> bool {
        self.holding.contains(&client)
    }
}
