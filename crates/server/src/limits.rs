use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// Counts connections against `max.connections` and `max.connections.per.ip`.
#[derive(Debug)]
pub(crate) struct ConnectionLimits {
    connections_max: usize,
    per_ip_max: usize,
    counts: Mutex<Counts>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Counts {
    total: usize,
    per_ip: BTreeMap<IpAddr, usize>,
}

/// One counted connection; dropped when it is closed.
#[derive(Debug)]
pub(crate) struct Counted {
    limits: Arc<ConnectionLimits>,
    ip: IpAddr,
}

impl ConnectionLimits {
    /// Limits of at least one connection each.
    pub(crate) fn new(connections_max: usize, per_ip_max: usize) -> Arc<Self> {
        Arc::new(Self {
            connections_max: connections_max.max(1),
            per_ip_max: per_ip_max.max(1),
            counts: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// Waits until there is room for one more connection, as Kafka does: the others wait in the
    /// backlog.
    pub(crate) async fn room(&self) {
        loop {
            let freed = self.freed.notified();
            if self
                .counts
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .total
                < self.connections_max
            {
                return;
            }
            freed.await;
        }
    }

    /// Counts a connection from `ip`; `None` when there are too many from there.
    pub(crate) fn count(self: &Arc<Self>, ip: IpAddr) -> Option<Counted> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let from_ip = counts.per_ip.entry(ip).or_default();
        if *from_ip >= self.per_ip_max {
            return None;
        }
        *from_ip += 1;
        counts.total += 1;
        Some(Counted {
            limits: Arc::clone(self),
            ip,
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self
            .limits
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        counts.total -= 1;
        if let Some(from_ip) = counts.per_ip.get_mut(&self.ip) {
            *from_ip -= 1;
            if *from_ip == 0 {
                counts.per_ip.remove(&self.ip);
            }
        }
        drop(counts);
        self.limits.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn connections_are_limited_in_all_and_per_address() {
        let limits = ConnectionLimits::new(3, 2);
        let ip = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let first = limits.count(ip(1)).expect("room");
        let _second = limits.count(ip(1)).expect("room");
        assert!(limits.count(ip(1)).is_none(), "two from one address");
        let _third = limits.count(ip(2)).expect("room");
        assert!(
            tokio::time::timeout(Duration::from_millis(20), limits.room())
                .await
                .is_err()
        );
        drop(first);
        tokio::time::timeout(Duration::from_secs(5), limits.room())
            .await
            .expect("room again");
        assert!(limits.count(ip(1)).is_some());
    }
}
