//! The sticky assignor: examples, and what holds for every group.

use std::collections::{BTreeMap, BTreeSet};

use highwater_types::{TopicName, TopicPartition};
use proptest::prelude::*;

use super::assignor::partition;
use super::test_support::{counts, member, partition_set, topic};
use super::{Assignments, Assignor, GroupMemberView, PartitionSet, TopicCounts};

fn owning(id: &str, topics: &str, owned: &str, generation: i32) -> GroupMemberView {
    let mut member = member(id, topics);
    member.subscription.owned = partition_set(owned);
    member.subscription.generation = Some(generation);
    member
}

fn assign(topics: &TopicCounts, members: &[GroupMemberView]) -> Assignments {
    Assignor::CooperativeSticky.assign(topics, members)
}

fn sets(expected: &[(&str, &str)]) -> Assignments {
    let sets = expected.iter();
    sets.map(|(id, set)| ((*id).to_owned(), partition_set(set)))
        .collect()
}

#[test]
fn the_first_deal_is_even_over_topics() {
    let members = [member("m1", "a b"), member("m2", "a b")];
    let dealt = assign(&counts("a:3 b:3"), &members);
    assert_eq!(dealt, sets(&[("m1", "a-0 a-2 b-1"), ("m2", "a-1 b-0 b-2")]));
}

#[test]
fn a_newcomer_gets_what_was_given_up_in_the_round_before() {
    let newcomer = member("m2", "a");
    let before = owning("m1", "a", "a-0 a-1 a-2 a-3", 1);
    let dealt = assign(&counts("a:4"), &[before, newcomer.clone()]);
    assert_eq!(dealt, sets(&[("m1", "a-0 a-1"), ("m2", "")]));
    let after = owning("m1", "a", "a-0 a-1", 2);
    let dealt = assign(&counts("a:4"), &[after, newcomer]);
    assert_eq!(dealt, sets(&[("m1", "a-0 a-1"), ("m2", "a-2 a-3")]));
}

#[test]
fn a_claim_from_an_older_generation_does_not_count() {
    let members = [
        owning("m1", "a", "a-0 a-1", 3),
        owning("m2", "a", "a-1 a-2", 2),
    ];
    let dealt = assign(&counts("a:4"), &members);
    assert_eq!(dealt, sets(&[("m1", "a-0 a-1"), ("m2", "a-2 a-3")]));
}

#[test]
fn what_an_old_claim_may_still_read_is_not_given_to_a_third() {
    let members = [
        owning("m1", "a", "a-0", 3),
        owning("m2", "a", "a-1 a-2", 2),
        member("m3", "a"),
    ];
    let dealt = assign(&counts("a:3"), &members);
    let taken: BTreeSet<_> = dealt["m3"].iter().cloned().collect();
    assert!(taken.is_disjoint(&partition_set("a-1 a-2")), "{dealt:?}");
}

#[test]
fn two_claims_of_one_generation_are_none() {
    let members = [owning("m1", "a", "a-0", 3), owning("m2", "a", "a-0", 3)];
    let dealt = assign(&counts("a:2"), &members);
    let all: Vec<_> = dealt.values().flatten().collect();
    let distinct: BTreeSet<_> = all.iter().collect();
    assert_eq!(all.len(), distinct.len(), "{dealt:?}");
}

#[test]
fn the_generation_in_the_user_data_of_an_old_subscription_counts() {
    let mut old = owning("m1", "a", "a-0 a-1", 0);
    old.subscription.generation = None;
    old.subscription.user_data = Some(bytes::Bytes::from_static(&[0, 0, 0, 9]));
    let dealt = assign(&counts("a:4"), &[old, owning("m2", "a", "a-0 a-1", 8)]);
    assert_eq!(dealt["m1"], partition_set("a-0 a-1"), "{dealt:?}");
}

#[test]
fn a_chain_of_moves_is_found() {
    // m1 may only take from x, m3 only from y; m2 is between them.
    let members = [
        owning("m1", "x", "x-0 x-1 x-2", 1),
        owning("m2", "x y", "y-0", 1),
        owning("m3", "y", "", 1),
    ];
    let rounds = settle(&counts("x:3 y:1"), &members);
    let sizes: Vec<usize> = rounds.values().map(BTreeSet::len).collect();
    assert_eq!(sizes, [2, 1, 1], "{rounds:?}");
}

/// Plays rounds as cooperative members do, until nothing moves any more.
fn settle(topics: &TopicCounts, members: &[GroupMemberView]) -> Assignments {
    let mut members = members.to_vec();
    for generation in 10..14 {
        let dealt = assign(topics, &members);
        let mut moved = false;
        for member in &mut members {
            let assigned = &dealt[&member.member_id];
            moved |= *assigned != member.subscription.owned;
            member.subscription.owned = assigned.clone();
            member.subscription.generation = Some(generation);
        }
        if !moved {
            return dealt;
        }
    }
    panic!("it does not settle: {members:?}");
}

fn owners(dealt: &Assignments) -> BTreeMap<TopicPartition, String> {
    let mut owners = BTreeMap::new();
    for (member, set) in dealt {
        for it in set {
            let before = owners.insert(it.clone(), member.clone());
            assert_eq!(before, None, "{it} has two owners");
        }
    }
    owners
}

/// All partitions of existing topics that somebody wants.
fn wanted(topics: &TopicCounts, members: &[GroupMemberView]) -> PartitionSet {
    let is_wanted = |name: &TopicName| {
        let mut them = members.iter();
        them.any(|it| it.subscription.topics.contains(name))
    };
    let kept = topics.iter().filter(|(name, _)| is_wanted(name));
    kept.flat_map(|(name, count)| (0..*count).map(move |number| partition(name, number)))
        .collect()
}

fn group() -> impl Strategy<Value = (TopicCounts, Vec<GroupMemberView>)> {
    let topics = prop::collection::vec(0_i32..9, 1..4);
    let one = (
        prop::collection::btree_set(0_usize..4, 0..4),
        prop::collection::btree_set((0_usize..4, 0_i32..10), 0..8),
        prop::option::of(0_i32..3),
    );
    (topics, prop::collection::vec(one, 1..7)).prop_map(|(topics, members)| {
        let name = |at: usize| topic(&format!("t{at}"));
        let topics = topics.into_iter().enumerate();
        let topics = topics.map(|(at, count)| (name(at), count)).collect();
        let members = members.into_iter().enumerate();
        let members = members.map(|(at, (wants, owns, generation))| {
            let mut it = member(&format!("m{at}"), "");
            it.subscription.topics = wants.into_iter().map(name).collect();
            let owns = owns.into_iter();
            it.subscription.owned = owns
                .map(|(at, number)| partition(&name(at), number))
                .collect();
            it.subscription.generation = generation;
            it
        });
        (topics, members.collect())
    })
}

proptest! {
    /// Whatever members claim: one owner, who wants it, and nobody else reads it.
    #[test]
    fn a_deal_never_gives_a_partition_to_two((topics, members) in group()) {
        for assignor in [Assignor::CooperativeSticky, Assignor::Range] {
            let dealt = assignor.assign(&topics, &members);
            prop_assert_eq!(dealt.len(), members.len());
            let wanted = wanted(&topics, &members);
            for (it, owner) in owners(&dealt) {
                prop_assert!(wanted.contains(&it));
                let mut them = members.iter();
                let owner = them.find(|member| member.member_id == owner).unwrap();
                prop_assert!(owner.subscription.topics.contains(&it.topic));
                let reads = owner.subscription.owned.contains(&it);
                let other_reads = members.iter().any(|other| {
                    other.member_id != owner.member_id && other.subscription.owned.contains(&it)
                });
                let is_sticky = assignor == Assignor::CooperativeSticky;
                prop_assert!(!is_sticky || reads || !other_reads, "{} moves at once", it);
            }
        }
    }

    /// It settles, with an owner for everything that is wanted, and as even as can be.
    #[test]
    fn a_group_settles_evenly((topics, members) in group()) {
        let dealt = settle(&topics, &members);
        let owned: PartitionSet = owners(&dealt).into_keys().collect();
        prop_assert_eq!(owned, wanted(&topics, &members));
        for rich in &members {
            for poor in &members {
                let could_take = dealt[&rich.member_id]
                    .iter()
                    .any(|it| poor.subscription.topics.contains(&it.topic));
                let (many, few) = (dealt[&rich.member_id].len(), dealt[&poor.member_id].len());
                prop_assert!(!could_take || many <= few + 1, "{:?}", dealt);
            }
        }
    }

    /// Who leaves moves nothing but its own, and who stays keeps what it has.
    #[test]
    fn those_who_stay_keep_what_they_have(count in 1_i32..40, size in 2_usize..8) {
        let topics = TopicCounts::from([(topic("t"), count)]);
        let ids: Vec<String> = (0..size).map(|at| format!("m{at}")).collect();
        let members: Vec<_> = ids.iter().map(|id| member(id, "t")).collect();
        let before = settle(&topics, &members);
        let mut rest = members;
        for it in &mut rest {
            it.subscription.owned = before[&it.member_id].clone();
            it.subscription.generation = Some(20);
        }
        let unchanged = assign(&topics, &rest);
        prop_assert_eq!(&unchanged, &before);
        rest.pop();
        for it in &rest {
            let after = assign(&topics, &rest);
            prop_assert!(after[&it.member_id].is_superset(&before[&it.member_id]));
        }
        // A newcomer costs exactly its share.
        rest.push(member("new", "t"));
        let after = settle(&topics, &rest);
        let (before, after) = (owners(&before), owners(&after));
        let stayed = after.iter().filter(|(it, owner)| before.get(*it) == Some(*owner)).count();
        let share = usize::try_from(count).unwrap().div_ceil(size);
        prop_assert!(stayed + share >= after.len(), "{} of {}", stayed, after.len());
    }
}
