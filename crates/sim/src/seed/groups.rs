//! The groups of a random run, and what goes wrong with their members.

use std::collections::BTreeSet;

use highwater_protocol::client::group::{Assignor, MemberConfig};
use highwater_types::{Millis, TopicName, TopicPartition};

use crate::client::ClientId;
use crate::random::Random;
use crate::world::World;
use crate::world::clients::MemberLoad;
use crate::world::clients::member::{Habits, MemberVersions};

/// The first of the members' ids.
const FIRST_MEMBER: u32 = 100;
/// Members that live at a time, at the most.
const MEMBERS_MAX: usize = 5;

/// The groups of a run; without any, nothing happens here.
#[derive(Debug)]
pub(super) struct Groups {
    /// Each with what its members agree on.
    groups: Vec<(String, Vec<Assignor>)>,
    topics: Vec<TopicName>,
    next_member: u32,
    next_instance: u32,
}

impl Groups {
    /// Most runs have a group or two.
    pub(super) fn begin(
        world: &mut World,
        plan: &mut Random,
        partitions: &[TopicPartition],
    ) -> Self {
        let topics: BTreeSet<TopicName> = partitions.iter().map(|it| it.topic.clone()).collect();
        let mut groups = Self {
            groups: Vec::new(),
            topics: topics.into_iter().collect(),
            next_member: FIRST_MEMBER,
            next_instance: 0,
        };
        let count = *plan.pick(&[0, 1, 1, 2]);
        for number in 0..count {
            let assignors = match plan.below(3) {
                0 => vec![Assignor::Range],
                1 => vec![Assignor::CooperativeSticky],
                _ => vec![Assignor::Range, Assignor::CooperativeSticky],
            };
            groups.groups.push((format!("g{number}"), assignors));
            for _ in 0..plan.between(1, 3) {
                groups.join(world, plan, number);
            }
        }
        groups
    }

    /// Something goes wrong with a member, or somebody comes or goes; whether it did.
    pub(super) fn one_fault(&mut self, world: &mut World, plan: &mut Random) -> bool {
        if self.groups.is_empty() {
            return false;
        }
        let paused: Vec<ClientId> = members(world, MemberLoad::is_paused);
        for id in paused {
            if plan.percent(60) {
                world.tell(format!("member {}: continues", id.0));
                world.continue_member(id);
            }
        }
        if plan.percent(50) {
            return false;
        }
        let number = usize::try_from(plan.below(self.groups.len() as u64)).unwrap_or(0);
        let awake = members(world, |load| !load.is_paused() && !load.is_out());
        if awake.is_empty() || (awake.len() < MEMBERS_MAX && plan.percent(30)) {
            self.join(world, plan, number);
            return true;
        }
        let id = *plan.pick(&awake);
        match plan.below(4) {
            0 => self.kill(world, plan, id),
            1 => world.leave_group(id),
            2 => world.cut_client(id),
            _ => {
                world.tell(format!("member {}: paused", id.0));
                world.pause_member(id);
            }
        }
        true
    }

    /// Nobody stands still any more.
    pub(super) fn go_on(&self, world: &mut World) {
        for id in members(world, MemberLoad::is_paused) {
            world.tell(format!("member {}: continues", id.0));
            world.continue_member(id);
        }
    }

    fn join(&mut self, world: &mut World, plan: &mut Random, number: usize) {
        let Some((group, assignors)) = self.groups.get(number) else {
            return;
        };
        let mut config = MemberConfig::new(group);
        config.assignors.clone_from(assignors);
        config.session_timeout = Millis::new(plan.between(6000, 12_000));
        config.heartbeat_interval = Millis::new(plan.between(300, 3000));
        config.max_poll_interval = Millis::new(300_000);
        if plan.percent(25) {
            config.instance_id = Some(format!("i{}", self.next_instance));
            self.next_instance += 1;
        }
        let count = usize::try_from(plan.between(1, self.topics.len() as u64)).unwrap_or(1);
        let topics: Vec<TopicName> = self.topics.iter().take(count).cloned().collect();
        self.add(world, plan, config, &topics);
    }

    fn add(
        &mut self,
        world: &mut World,
        plan: &mut Random,
        config: MemberConfig,
        topics: &[TopicName],
    ) {
        let versions = if config.instance_id.is_some() {
            *plan.pick(&[MemberVersions::NEWEST, MemberVersions::STATIC])
        } else {
            *plan.pick(&[
                MemberVersions::NEWEST,
                MemberVersions::NEWEST,
                MemberVersions::STATIC,
                MemberVersions::OLD,
            ])
        };
        let commits = Millis::new(plan.between(50, 1500));
        let polls = Millis::new(plan.between(20, 300));
        let load = MemberLoad::new(config, versions, Some(Habits::new(commits, polls)));
        let id = ClientId(self.next_member);
        self.next_member += 1;
        world.add_member(id, load, topics);
    }

    /// A process dies; often another one takes its place, with its instance id if it has one.
    fn kill(&mut self, world: &mut World, plan: &mut Random, id: ClientId) {
        let Some(load) = world.member(id) else {
            return;
        };
        let (config, topics) = (load.config.clone(), load.topics.iter().cloned());
        let topics: Vec<TopicName> = topics.collect();
        world.tell(format!("member {}: killed", id.0));
        world.kill_member(id);
        if plan.percent(60) {
            world.run_for(Millis::new(plan.between(0, 3000)));
            self.add(world, plan, config, &topics);
        }
    }
}

fn members(world: &World, wanted: impl Fn(&MemberLoad) -> bool) -> Vec<ClientId> {
    let members = world.members().filter(|(_, load)| wanted(load));
    members.map(|(id, _)| id).collect()
}
