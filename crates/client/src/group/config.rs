use highwater_protocol::client::group::{Assignor, MemberConfig};
use highwater_types::Millis;

use crate::error::ClientError;
use crate::setting::{refused, switch, wire_millis};

/// How a consumer works as member of a group. Fields are named after Kafka's keys and have
/// Kafka's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// Everything about the membership.
    pub member: MemberConfig,
    /// `enable.auto.commit`: whether positions are committed now and then, when partitions are
    /// given up, and at the end.
    pub enable_auto_commit: bool,
    /// `auto.commit.interval.ms`.
    pub auto_commit_interval: Millis,
}

impl GroupConfig {
    /// Kafka's defaults for a member of `group_id`.
    #[must_use]
    pub fn new(group_id: &str) -> Self {
        Self {
            member: MemberConfig::new(group_id),
            enable_auto_commit: true,
            auto_commit_interval: Millis::new(5_000),
        }
    }

    /// Sets one of Kafka's keys; `false` for a key that is not a group member's.
    ///
    /// # Errors
    /// [`ClientError::Config`] for a value that cannot be meant.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, ClientError> {
        match key {
            "group.id" => value.clone_into(&mut self.member.group_id),
            "group.instance.id" => self.member.instance_id = Some(value.to_owned()),
            "session.timeout.ms" => {
                self.member.session_timeout = wire_millis("session.timeout.ms", value)?;
            }
            "heartbeat.interval.ms" => {
                self.member.heartbeat_interval = wire_millis("heartbeat.interval.ms", value)?;
            }
            "max.poll.interval.ms" => {
                self.member.max_poll_interval = wire_millis("max.poll.interval.ms", value)?;
            }
            "client.rack" => self.member.rack = Some(value.to_owned()),
            "partition.assignment.strategy" => self.member.assignors = assignors(value)?,
            "enable.auto.commit" => {
                self.enable_auto_commit = switch("enable.auto.commit", value)?;
            }
            "auto.commit.interval.ms" => {
                self.auto_commit_interval = wire_millis("auto.commit.interval.ms", value)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks what only the keys together show.
    ///
    /// # Errors
    /// [`ClientError::Config`] for an empty group id, an instance id that is empty, and heartbeats
    /// that come no more often than sessions end.
    pub fn check(&self) -> Result<(), ClientError> {
        let member = &self.member;
        if member.group_id.is_empty() {
            return Err(refused("group.id", "", "a group has a name"));
        }
        if member.instance_id.as_deref() == Some("") {
            let why = "a static member has a name; leave the key out for a dynamic one";
            return Err(refused("group.instance.id", "", why));
        }
        if member.heartbeat_interval >= member.session_timeout {
            let value = member.heartbeat_interval.as_u64().to_string();
            let why = "it must be lower than session.timeout.ms, best a third of it";
            return Err(refused("heartbeat.interval.ms", &value, why));
        }
        Ok(())
    }
}

fn assignors(value: &str) -> Result<Vec<Assignor>, ClientError> {
    let names = value.split(',').map(str::trim).filter(|it| !it.is_empty());
    let list: Option<Vec<Assignor>> = names.map(Assignor::from_name).collect();
    list.filter(|list| !list.is_empty()).ok_or_else(|| {
        let why = "range and cooperative-sticky are known, one or both, separated by a comma";
        refused("partition.assignment.strategy", value, why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_set_by_kafkas_names() {
        let mut config = GroupConfig::new("g");
        assert_eq!(config.set("session.timeout.ms", "10000"), Ok(true));
        assert_eq!(config.set("enable.auto.commit", "false"), Ok(true));
        assert_eq!(config.set("acks", "1"), Ok(false));
        let sticky = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";
        assert_eq!(
            config.set("partition.assignment.strategy", sticky),
            Ok(true)
        );
        assert_eq!(config.member.assignors, [Assignor::CooperativeSticky]);
        assert!(
            config
                .set("partition.assignment.strategy", "roundrobin")
                .is_err()
        );
        assert!(config.set("session.timeout.ms", "-1").is_err());
        assert_eq!(config.check(), Ok(()));
        assert_eq!(config.set("heartbeat.interval.ms", "10000"), Ok(true));
        assert!(config.check().is_err());
    }
}
