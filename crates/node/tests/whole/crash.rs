//! The power goes at every operation of a node's life, and it comes up again.

use highwater_disk::MemDisk;
use highwater_protocol::messages::CreateTopicsRequest;
use highwater_protocol::messages::create_topics_request::CreatableTopic;
use highwater_protocol::{ListenerKind, Request, Response};

use crate::host::{Host, config, file, formatted};

fn create_request(name: &str) -> Request {
    let topic = CreatableTopic {
        name: name.to_owned(),
        num_partitions: 2,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    CreateTopicsRequest {
        topics: vec![topic],
        ..CreateTopicsRequest::default()
    }
    .into()
}

/// Starts, makes a topic, stops. Returns whether the topic was acknowledged.
fn live(dirs: &[MemDisk], topic: &str) -> bool {
    let config = config("");
    let Ok(mut host) = Host::try_start(&config, dirs) else {
        return false;
    };
    if !host.try_serve(5) {
        return false;
    }
    let request = create_request(topic);
    let client = host.connect(ListenerKind::Controller);
    host.ask(client, &request, 7);
    let answer = host.answer(client, &request, 7);
    host.try_stop(20);
    match answer {
        Some(Response::CreateTopics(answer)) => !answer.topics[0].error_code.is_error(),
        _ => false,
    }
}

fn epoch(dirs: &[MemDisk]) -> i64 {
    let state = file(dirs, "__cluster_metadata-0/quorum-state").unwrap_or_default();
    let state: Option<serde_json::Value> = serde_json::from_slice(&state).ok();
    state.and_then(|it| it["leaderEpoch"].as_i64()).unwrap_or(0)
}

#[test]
fn what_was_acknowledged_survives_a_loss_of_power_at_every_operation() {
    let mut survived = 0;
    let mut lost_power = 0;
    let dirs = formatted(&config(""));
    assert!(live(&dirs, "first"));
    let before = dirs[0].ops_count();
    assert!(live(&dirs, "second"));
    let ops = dirs[0].ops_count() - before;
    for seed in [None, Some(1), Some(2)] {
        for op in 0..=ops {
            let dirs = formatted(&config(""));
            assert!(live(&dirs, "first"));
            let before = epoch(&dirs);
            let count = dirs[0].ops_count();
            dirs[0].power_off_at_op(count + op, seed);
            let acknowledged = live(&dirs, "second");
            dirs[0].power_on();
            let host = Host::serving(&config(""), &dirs);
            let image = host.control.image();
            assert!(
                image.topic_by_name("first").is_some(),
                "op {op}: an old topic is gone"
            );
            if acknowledged {
                survived += 1;
                assert!(
                    image.topic_by_name("second").is_some(),
                    "op {op}: {:?}",
                    host.events
                );
            }
            assert!(epoch(&dirs) > before, "op {op}: an epoch was used twice");
            assert!(
                image.partitions().all(|(_, _, it)| it.leader.raw() == 1),
                "op {op}"
            );
            lost_power += 1;
        }
    }
    assert!(survived > 10 && lost_power > 100, "{survived} {lost_power}");
}
