//! Whatever happens to three nodes, once it ends their logs are the same.

use proptest::prelude::*;

use crate::cluster::Cluster;
use crate::pair::assert_same;
use crate::support::batch;

#[derive(Clone, Copy, Debug)]
enum Event {
    Produce {
        partition: i32,
        records: usize,
    },
    /// To anybody, who may lack what was committed. Told to all, or to one.
    Elect {
        partition: i32,
        leader: i32,
        told: Option<i32>,
    },
    Kill(i32),
    PowerOff(i32),
    Stop(i32),
    Hold(i32, i32),
    Release(i32, i32),
    Reset(i32, i32),
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let node = || 1..=3_i32;
    let pair = || (node(), node());
    prop_oneof![
        6 => (0..2_i32, 1..5_usize).prop_map(|(partition, records)| Event::Produce {
            partition,
            records
        }),
        3 => (0..2_i32, node(), proptest::option::of(node())).prop_map(
            |(partition, leader, told)| Event::Elect { partition, leader, told }
        ),
        1 => node().prop_map(Event::Kill),
        1 => node().prop_map(Event::PowerOff),
        1 => node().prop_map(Event::Stop),
        2 => pair().prop_map(|(from, to)| Event::Hold(from, to)),
        2 => pair().prop_map(|(from, to)| Event::Release(from, to)),
        1 => pair().prop_map(|(from, to)| Event::Reset(from, to)),
        4 => (1..700_u64).prop_map(Event::Wait),
    ]
}

/// A node is gone and comes back. Whoever leads then does so in a new epoch.
fn back(it: &mut Cluster, topic: highwater_types::TopicId, node: i32) {
    it.register(node);
    for number in 0..2 {
        if it.leader(topic, number) == node {
            it.elect_silently(topic, number, 1 + node % 3, &[1, 2, 3]);
        }
    }
    it.start(node);
    it.publish(&[topic].into());
}

fn happen(it: &mut Cluster, topic: highwater_types::TopicId, event: Event) {
    match event {
        Event::Produce { partition, records } => {
            let leader = it.leader(topic, partition);
            let values = vec!["value"; records];
            it.send_produce(leader, 1, ("t", partition), batch(&values));
        }
        Event::Elect {
            partition,
            leader,
            told,
        } => {
            it.elect_silently(topic, partition, leader, &[1, 2, 3]);
            match told {
                None => it.publish(&[topic].into()),
                Some(node) => {
                    let topics = std::sync::Arc::new([topic].into());
                    it.publish_to(node, &highwater_node::Changed::Topics(topics));
                    it.run();
                }
            }
        }
        Event::Kill(node) => {
            it.kill(node);
            back(it, topic, node);
        }
        Event::PowerOff(node) => {
            it.power_off(node);
            back(it, topic, node);
        }
        Event::Stop(node) => {
            it.stop(node);
            back(it, topic, node);
        }
        Event::Hold(from, to) => drop(it.held.insert((from, to))),
        Event::Release(from, to) => it.release(from, to),
        Event::Reset(from, to) => it.reset(from, to),
        Event::Wait(ms) => it.advance(ms),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(60)
    })]

    #[test]
    fn i_26_logs_are_the_same_in_the_end(
        events in proptest::collection::vec(event(), 1..60),
        shards in 1..3_u16,
    ) {
        let properties = "log.segment.bytes=1048576\nreplica.lag.time.max.ms=2000";
        let mut it = Cluster::new(3, shards, properties);
        let flush = [("flush.messages", "1")];
        let configs: &[(&str, &str)] = if shards == 2 { &flush } else { &[] };
        let topic = it.topic("t", 2, &[1, 2, 3], configs);
        for event in events {
            happen(&mut it, topic, event);
        }
        it.heal();
        it.advance(3_000);
        for number in 0..2 {
            let leader = it.leader(topic, number);
            it.produce(leader, ("t", number), batch(&["the last"]));
        }
        it.advance(3_000);
        assert_same(&it, &[1, 2, 3], 2);
        for number in 0..2 {
            let leader = it.leader(topic, number);
            let ends = it.offsets(leader, "t", number);
            for node in 1..=3 {
                prop_assert_eq!(it.offsets(node, "t", number), ends, "node {}", node);
            }
        }
    }
}
