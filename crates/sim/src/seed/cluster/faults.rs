//! What goes wrong in a random run of a cluster, and when it is right again.

use highwater_types::{Millis, Mono, NodeId};

use crate::random::Random;
use crate::world::{Delays, World};

/// How long something stays wrong, in milliseconds.
const WRONG_MS: (u64, u64) = (0, 7000);
/// The delays of a slow network, in microseconds.
const SLOW: (u64, u64) = (1000, 600_000);
/// Farthest that a wall clock is set, in milliseconds.
const SKEW_MS: u64 = 3_600_000;
/// Most millionths by which a wall clock runs fast or slow.
const DRIFT_PPM: u64 = 50_000;

/// What is wrong at the moment.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// In no order.
    repairs: Vec<(Mono, Repair)>,
}

/// How something becomes right again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    Start(NodeId),
    Continue(NodeId),
    Heal(NodeId, NodeId),
    Delays,
}

impl Faults {
    /// Lets time pass, and repairs what is due.
    pub(super) fn advance(&mut self, world: &mut World, span: Millis) {
        self.advance_until(world, span, |_| false);
    }

    /// Lets time pass until `done`, at most `span` long, and repairs what is due.
    pub(super) fn advance_until(
        &mut self,
        world: &mut World,
        span: Millis,
        mut done: impl FnMut(&World) -> bool,
    ) {
        let until = world.now().plus(span);
        loop {
            let due = self.repairs.iter().map(|(at, _)| *at).min();
            let next = due.map_or(until, |due| due.min(until));
            let left = next.as_micros().saturating_sub(world.now().as_micros());
            if world.run_until(Millis::new(left.div_ceil(1000)), &mut done) {
                return;
            }
            let now = world.now();
            let (due, later) = self.repairs.iter().partition(|(at, _)| *at <= now);
            let due: Vec<(Mono, Repair)> = due;
            self.repairs = later;
            for (_, repair) in due {
                repair.perform(world);
            }
            if now >= until {
                return;
            }
        }
    }

    /// Everything is right again.
    pub(super) fn repair_everything(&mut self, world: &mut World) {
        for (_, repair) in std::mem::take(&mut self.repairs) {
            repair.perform(world);
        }
        world.heal();
        world.delays = Delays::WILD;
        let ids: Vec<NodeId> = world.nodes().keys().copied().collect();
        for id in ids {
            if !world.runs(id) {
                world.start(id);
            }
        }
    }

    /// Something more goes wrong.
    pub(super) fn one_more(&mut self, world: &mut World, plan: &mut Random) {
        let ids: Vec<NodeId> = world.nodes().keys().copied().collect();
        let id = *plan.pick(&ids);
        match plan.below(16) {
            0..=2 => self.ends(world, plan, id, World::crash),
            3 => self.ends(world, plan, id, World::power_off),
            4 => self.ends(world, plan, id, World::power_off_losing_unsynced),
            5 => self.everything_ends(world, plan),
            6 => self.stops(world, plan, id),
            7 | 8 => self.pauses(world, plan, id),
            9 | 10 => self.cuts(world, plan, id),
            11 => self.isolates(world, plan, id),
            12 => {
                let clients: Vec<_> = world.clients.keys().copied().collect();
                let client = *plan.pick(&clients);
                world.cut_client(client);
            }
            13 => world.reset_links(id),
            14 => {
                world.delays.network = SLOW;
                world.tell("the network is slow");
                self.later(world, plan, Repair::Delays);
            }
            _ => clock(world, plan, id),
        }
    }

    fn later(&mut self, world: &World, plan: &mut Random, repair: Repair) {
        let span = Millis::new(plan.between(WRONG_MS.0, WRONG_MS.1));
        self.repairs.push((world.now().plus(span), repair));
    }

    /// Several die at about one time more often than chance has it.
    fn ends(
        &mut self,
        world: &mut World,
        plan: &mut Random,
        id: NodeId,
        how: impl Fn(&mut World, NodeId),
    ) {
        if !world.runs(id) {
            return;
        }
        self.repairs.retain(|(_, it)| *it != Repair::Continue(id));
        how(world, id);
        self.later(world, plan, Repair::Start(id));
    }

    fn everything_ends(&mut self, world: &mut World, plan: &mut Random) {
        let ids: Vec<NodeId> = world.nodes().keys().copied().collect();
        let power = plan.percent(50);
        for id in ids {
            if power {
                self.ends(world, plan, id, World::power_off);
            } else {
                self.ends(world, plan, id, World::crash);
            }
        }
    }

    fn stops(&mut self, world: &mut World, plan: &mut Random, id: NodeId) {
        if world.runs(id) && !world.is_paused(id) && world.is_up(id) {
            world.stop(id);
            self.later(world, plan, Repair::Start(id));
        }
    }

    fn pauses(&mut self, world: &mut World, plan: &mut Random, id: NodeId) {
        if world.runs(id) && !world.is_paused(id) {
            world.pause(id);
            self.later(world, plan, Repair::Continue(id));
        }
    }

    fn cuts(&mut self, world: &mut World, plan: &mut Random, id: NodeId) {
        let ids: Vec<NodeId> = world.nodes().keys().copied().collect();
        let other = *plan.pick(&ids);
        if other == id {
            return;
        }
        let both = plan.percent(60);
        self.cut(world, plan, id, other);
        if both {
            self.cut(world, plan, other, id);
        }
    }

    fn isolates(&mut self, world: &mut World, plan: &mut Random, id: NodeId) {
        let others: Vec<NodeId> = world.nodes().keys().copied().collect();
        for other in others.into_iter().filter(|it| *it != id) {
            self.cut(world, plan, id, other);
            self.cut(world, plan, other, id);
        }
    }

    fn cut(&mut self, world: &mut World, plan: &mut Random, from: NodeId, to: NodeId) {
        world.tell(format!("cut {from}->{to}"));
        world.cut(from, to);
        self.later(world, plan, Repair::Heal(from, to));
    }
}

impl Repair {
    fn perform(self, world: &mut World) {
        match self {
            Self::Start(id) if !world.runs(id) => world.start(id),
            Self::Continue(id) if world.is_paused(id) => world.resume(id),
            Self::Heal(from, to) => {
                world.tell(format!("heal {from}->{to}"));
                world.heal_way(from, to);
            }
            Self::Delays => {
                world.tell("the network is as always");
                world.delays = Delays::WILD;
            }
            Self::Start(_) | Self::Continue(_) => {}
        }
    }
}

fn clock(world: &mut World, plan: &mut Random, id: NodeId) {
    let signed = |amount: u64, negative: bool| {
        let amount = i64::try_from(amount).unwrap_or(0);
        if negative { -amount } else { amount }
    };
    let negative = plan.percent(50);
    if plan.percent(50) {
        world.skew(id, signed(plan.below(SKEW_MS), negative));
    } else {
        world.drift(id, signed(plan.below(DRIFT_PPM), negative));
    }
}
