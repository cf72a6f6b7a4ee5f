//! Random requests, and a reload after every record that they wrote.

use std::collections::BTreeMap;

use highwater_coordinator::{GenerationId, MemberId, OffsetCommitRequest};
use highwater_types::{ErrorCode, Millis};
use proptest::prelude::*;

use crate::support::{Entry, MemLog, World, settings, simple, subscription};

#[derive(Clone, Debug)]
enum Act {
    /// By the member of the group, forwards; by nobody's member when there is none.
    Commit {
        group: u8,
        partition: u8,
    },
    /// By a member of an older generation, backwards.
    Stale {
        group: u8,
        partition: u8,
    },
    Join {
        group: u8,
    },
    Leave {
        group: u8,
    },
    DeleteOffsets {
        group: u8,
        partition: u8,
    },
    DeleteGroup {
        group: u8,
    },
    Age {
        ms: u32,
    },
    Reload,
}

fn act() -> impl Strategy<Value = Act> {
    let group = 0_u8..3;
    let partition = 0_u8..3;
    prop_oneof![
        6 => (group.clone(), partition.clone())
            .prop_map(|(group, partition)| Act::Commit { group, partition }),
        2 => (group.clone(), partition.clone())
            .prop_map(|(group, partition)| Act::Stale { group, partition }),
        2 => group.clone().prop_map(|group| Act::Join { group }),
        2 => group.clone().prop_map(|group| Act::Leave { group }),
        1 => (group.clone(), partition)
            .prop_map(|(group, partition)| Act::DeleteOffsets { group, partition }),
        1 => group.prop_map(|group| Act::DeleteGroup { group }),
        2 => (0_u32..2_000_000).prop_map(|ms| Act::Age { ms }),
        1 => Just(Act::Reload),
    ]
}

/// What a test knows without the coordinator.
#[derive(Default)]
struct Model {
    /// Highest committed offset, and when. Gone when it was deleted, or may have expired.
    committed: BTreeMap<(u8, u8), (i64, i64)>,
    members: BTreeMap<u8, (GenerationId, MemberId)>,
    old_members: BTreeMap<u8, (GenerationId, MemberId)>,
    next_offset: i64,
}

fn group_name(group: u8) -> String {
    format!("g{group}")
}

fn perform(world: &mut World, model: &mut Model, act: &Act) {
    match *act {
        Act::Commit { group, partition } => commit(world, model, group, partition),
        Act::Stale { group, partition } => {
            let Some((generation_id, member_id)) = model.old_members.get(&group).cloned() else {
                return;
            };
            let request = OffsetCommitRequest {
                generation_id,
                member_id,
                ..simple(&group_name(group), &[("orders", i32::from(partition), 0)])
            };
            let errors = world.commit_with(request);
            assert_ne!(
                errors,
                [ErrorCode::NONE],
                "a commit of an old generation is taken"
            );
        }
        Act::Join { group } => {
            let known = model.members.get(&group);
            let id = known.map_or("", |(_, id)| id.as_str()).to_owned();
            let mut request =
                World::join_request(&group_name(group), &id, subscription(&["orders"]));
            request.session_timeout = Millis::new(1_800_000);
            let joined = world.join(request);
            assert_eq!(joined.error, ErrorCode::NONE);
            world.sync(&group_name(group), &joined);
            let now = (joined.generation_id, joined.member_id);
            if let Some(old) = model.members.insert(group, now.clone())
                && old.0 != now.0
            {
                model.old_members.insert(group, old);
            }
        }
        Act::Leave { group } => {
            if let Some((generation_id, id)) = model.members.remove(&group) {
                world.leave(&group_name(group), &id);
                model.old_members.insert(group, (generation_id, id));
            }
        }
        Act::DeleteOffsets { group, partition } => {
            let of = [i32::from(partition)];
            let answer = world.delete_offsets(&group_name(group), "orders", &of);
            let rows = answer.topics.iter().flat_map(|it| &it.partitions);
            if rows.map(|it| it.error).eq([ErrorCode::NONE]) {
                model.committed.remove(&(group, partition));
            }
        }
        Act::DeleteGroup { group } => {
            if world.delete_group(&group_name(group)).error == ErrorCode::NONE {
                assert!(
                    !model.members.contains_key(&group),
                    "a live group is deleted"
                );
                model.committed.retain(|(of, _), _| *of != group);
            }
        }
        Act::Age { ms } => {
            world.age(Millis::new(u64::from(ms)));
            world.look_for_old_offsets();
            check_expiry(world, model);
        }
        Act::Reload => world.reload(),
    }
}

fn commit(world: &mut World, model: &mut Model, group: u8, partition: u8) {
    model.next_offset += 1;
    let offset = model.next_offset;
    let request = simple(
        &group_name(group),
        &[("orders", i32::from(partition), offset)],
    );
    let request = match model.members.get(&group).cloned() {
        Some((generation_id, member_id)) => OffsetCommitRequest {
            generation_id,
            member_id,
            ..request
        },
        None => request,
    };
    assert_eq!(world.commit_with(request), [ErrorCode::NONE]);
    let at = world.now.wall.raw();
    model.committed.insert((group, partition), (offset, at));
}

/// Only what is old enough, and of a group without members, may be gone.
fn check_expiry(world: &mut World, model: &mut Model) {
    let retention = i64::try_from(settings().offsets_retention.as_u64()).unwrap();
    let now = world.now.wall.raw();
    let mut gone = Vec::new();
    for ((group, partition), (offset, at)) in &model.committed {
        let fetched = world.fetch(&group_name(*group), "orders", i32::from(*partition));
        if fetched == -1 {
            assert!(!model.members.contains_key(group), "of a live group");
            assert!(now - at >= retention, "committed {} ms ago", now - at);
            gone.push((*group, *partition));
        } else {
            assert_eq!(fetched, *offset);
        }
    }
    for key in gone {
        model.committed.remove(&key);
    }
}

/// At every prefix of the log a reload gives the offset that was committed last in it, and that
/// only ever rises until it is deleted. Read from the records' bytes alone.
fn check_prefixes(world: &World) {
    let mut expected: BTreeMap<Vec<u8>, Option<i64>> = BTreeMap::new();
    for (count, entry) in (1..).zip(&world.log.entries) {
        let Entry::Record { key, value, .. } = entry else {
            panic!("no transactions here");
        };
        if key[1] == 1 {
            let offset = value.as_ref().map(|value| {
                let bytes = value[2..10].iter();
                bytes.fold(0, |sum, byte| sum << 8 | i64::from(*byte))
            });
            if let (Some(Some(old)), Some(new)) = (expected.get(key.as_ref()), offset) {
                assert!(*old < new, "moved back: {old} -> {new}");
            }
            expected.insert(key.to_vec(), offset);
        }
        let prefix = MemLog {
            entries: world.log.entries[..count].to_vec(),
            ..MemLog::default()
        };
        let mut prefix = World::with(world.settings.clone(), prefix);
        for (key, offset) in &expected {
            // The key: type, length and group "gN", topic, partition.
            let group = String::from_utf8(key[4..6].to_vec()).unwrap();
            let partition = i32::from(key[key.len() - 1]);
            let fetched = prefix.fetch(&group, "orders", partition);
            assert_eq!(fetched, offset.unwrap_or(-1), "{count} records");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn i_24_offsets_survive_reloads_and_never_move_back(
        acts in proptest::collection::vec(act(), 1..40),
    ) {
        let mut world = World::new();
        let mut model = Model::default();
        for act in &acts {
            perform(&mut world, &mut model, act);
        }
        for ((group, partition), (offset, _)) in &model.committed {
            let fetched = world.fetch(&group_name(*group), "orders", i32::from(*partition));
            assert_eq!(fetched, *offset);
        }
        check_prefixes(&world);
    }
}
