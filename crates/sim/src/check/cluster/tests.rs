//! Each invariant is broken once by hand, and has to be missed by its name.

use std::panic::{AssertUnwindSafe, catch_unwind};

use highwater_types::{
    BrokerEpoch, LeaderEpoch, NodeId, Offset, PartitionEpoch, PartitionIndex, TopicId,
    TopicIdPartition, TopicPartition, Uuid,
};

use super::partition::{CopyChange, PartitionHistory};
use crate::check::controller::{Known, KnownBroker, KnownPartition};
use crate::check::marks::{BatchMark, value_hash};
use crate::check::replicas::{LastSeen, SeenLeader, SeenRole};
use crate::check::shape::LogNews;
use crate::check::verdict::Verdicts;

const A: NodeId = NodeId::new(1);
const B: NodeId = NodeId::new(2);
const C: NodeId = NodeId::new(3);

/// Three replicas A, B and C with a minimum ISR of two; A leads in epoch 1.
struct Bench {
    known: Known,
    partition: PartitionHistory,
    verdicts: Verdicts,
    logs: [(NodeId, Vec<BatchMark>); 3],
}

fn offset(raw: i64) -> Offset {
    Offset::new(raw)
}

fn epoch(raw: i32) -> LeaderEpoch {
    LeaderEpoch::new(raw)
}

fn id() -> TopicIdPartition {
    TopicIdPartition {
        topic_id: TopicId::new(Uuid::from_u128(1)),
        partition: PartitionIndex::new(0),
    }
}

/// A batch `[base, next)` of an epoch, whose values are `what` and the offset.
fn batch(base: i64, next: i64, of: i32, what: &str) -> BatchMark {
    let value = |at| value_hash(format!("{what}{at}").as_bytes());
    BatchMark {
        base: offset(base),
        next: offset(next),
        epoch: epoch(of),
        crc: what.bytes().map(u32::from).sum(),
        is_idempotent: true,
        values: (base..next).map(value).collect(),
        bytes: None,
    }
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self {
            known: Known::default(),
            partition: PartitionHistory::new(id(), name()),
            verdicts: Verdicts::default(),
            logs: [(A, Vec::new()), (B, Vec::new()), (C, Vec::new())],
        };
        bench.controller(A, 1, &[A, B, C], &[]);
        for node in [A, B, C] {
            let broker = KnownBroker {
                epoch: BrokerEpoch::new(7),
                is_fenced: false,
                is_shutting_down: false,
            };
            bench.known.brokers.insert(node, broker);
        }
        bench
    }

    /// All three hold `[0, 5)` of epoch 1, and A knows it.
    fn with_five() -> Self {
        let mut bench = Self::new();
        for node in [A, B, C] {
            bench.append(node, &[batch(0, 5, 1, "m")]);
        }
        bench.follows(B, A, 1, 0);
        bench.follows(C, A, 1, 0);
        bench.leads(A, 1, 5);
        assert_eq!(bench.partition.true_high_watermark(), offset(5));
        bench
    }

    fn controller(&mut self, leader: NodeId, of: i32, isr: &[NodeId], elr: &[NodeId]) {
        let known = KnownPartition {
            leader,
            leader_epoch: epoch(of),
            partition_epoch: PartitionEpoch::new(of),
            isr: isr.to_vec(),
            elr: elr.to_vec(),
            replicas: vec![A, B, C],
        };
        let before = self.known.partitions.insert(id(), known.clone());
        let Some(before) = before else {
            return;
        };
        let Self {
            known: all,
            partition,
            verdicts,
            ..
        } = self;
        partition.isr_changed(&known, &before, &all.brokers, verdicts);
        partition.settle(all, Some(&before), verdicts, &mut Vec::new());
    }

    fn log(&mut self, node: NodeId) -> &mut Vec<BatchMark> {
        let found = self.logs.iter_mut().find(|(id, _)| *id == node);
        &mut found.expect("one of the three").1
    }

    fn append(&mut self, node: NodeId, batches: &[BatchMark]) {
        self.log(node).extend_from_slice(batches);
    }

    fn leads(&mut self, node: NodeId, of: i32, high_watermark: i64) {
        self.leads_with(node, of, high_watermark, &[A, B, C], &[A, B, C]);
    }

    fn leads_with(
        &mut self,
        node: NodeId,
        of: i32,
        high_watermark: i64,
        committed: &[NodeId],
        maximal: &[NodeId],
    ) {
        let end = self.end(node);
        let own = self.log(node).iter().find(|it| it.epoch == epoch(of));
        let leader = SeenLeader {
            epoch_start_offset: own.map_or(end, |it| it.base),
            committed: committed.to_vec(),
            maximal: maximal.to_vec(),
            has_pending: committed != maximal,
        };
        self.says(node, SeenRole::Leader(leader), of, high_watermark, false);
    }

    fn end(&mut self, node: NodeId) -> Offset {
        self.log(node).last().map_or(Offset::ZERO, |it| it.next)
    }

    fn follows(&mut self, node: NodeId, leader: NodeId, of: i32, high_watermark: i64) {
        let role = SeenRole::Follower(Some(leader));
        self.says(node, role, of, high_watermark, false);
    }

    fn says(
        &mut self,
        node: NodeId,
        role: SeenRole,
        of: i32,
        high_watermark: i64,
        told_loss: bool,
    ) {
        let end = self.end(node);
        let seen = LastSeen::said(role, epoch(of), offset(high_watermark), end);
        let marks = self.log(node).clone();
        let change = CopyChange {
            node,
            life: 1,
            seen: &seen,
            news: LogNews {
                is_anew: true,
                marks,
            },
            told_loss,
            copies_again: false,
        };
        let known = self.known.partitions.get(&id()).expect("it is known");
        let (verdicts, mut out) = (&mut self.verdicts, Vec::new());
        if self
            .partition
            .copy_changed(known, change, verdicts, &mut out)
        {
            self.partition.settle(&self.known, None, verdicts, &mut out);
        }
    }

    #[track_caller]
    fn misses(mut self, invariant: &str, act: impl FnOnce(&mut Self)) {
        let said = catch_unwind(AssertUnwindSafe(|| act(&mut self)));
        let said = said.expect_err("something is wrong");
        let said = said.downcast_ref::<String>().expect("words");
        assert!(said.starts_with(invariant), "{invariant}: {said}");
    }
}

fn name() -> TopicPartition {
    TopicPartition::parse("orders-0").expect("a partition")
}

#[test]
fn a_clean_change_of_leaders_is_right() {
    let mut bench = Bench::with_five();
    bench.controller(B, 2, &[B, C], &[]);
    bench.append(B, &[batch(5, 6, 2, "n")]);
    bench.leads_with(B, 2, 5, &[B, C], &[B, C]);
    bench.append(C, &[batch(5, 6, 2, "n")]);
    bench.follows(C, B, 2, 5);
    bench.leads_with(B, 2, 6, &[B, C], &[B, C]);
    bench.follows(A, B, 2, 5);
    bench.append(A, &[batch(5, 6, 2, "n")]);
    bench.follows(A, B, 2, 6);
    bench.leads_with(B, 2, 6, &[B, C], &[B, C, A]);
    bench.controller(B, 2, &[A, B, C], &[]);
    let values = [b"m4".to_vec()];
    bench
        .partition
        .acknowledged(B, offset(4), &values, &mut bench.verdicts);
    let read = [(offset(5), b"n5".to_vec())];
    bench
        .partition
        .was_read(A, offset(6), &read, &mut bench.verdicts);
    assert_eq!(bench.partition.true_high_watermark(), offset(6));
}

#[test]
fn i_01_another_record_below_the_high_watermark_is_missed() {
    let mut bench = Bench::with_five();
    bench.controller(A, 1, &[A, B], &[]);
    bench.misses("I-01", |bench| {
        *bench.log(C) = vec![batch(0, 3, 1, "m"), batch(3, 5, 1, "x")];
        bench.verdicts.expect("I-02");
        bench.verdicts.expect("I-16");
        bench.follows(C, A, 1, 5);
    });
}

#[test]
fn i_02_two_records_at_an_offset_of_one_epoch_are_missed() {
    Bench::with_five().misses("I-02", |bench| {
        bench.append(A, &[batch(5, 6, 1, "m")]);
        bench.leads(A, 1, 5);
        bench.append(B, &[batch(5, 6, 1, "x")]);
        bench.follows(B, A, 1, 5);
    });
}

#[test]
fn i_02_a_difference_below_a_record_in_common_is_missed() {
    let mut bench = Bench::with_five();
    bench.append(A, &[batch(5, 6, 1, "m"), batch(6, 7, 2, "m")]);
    bench.append(B, &[batch(5, 6, 0, "x"), batch(6, 7, 2, "m")]);
    bench.leads(A, 1, 5);
    bench.misses("I-02", |bench| bench.follows(B, A, 1, 5));
}

#[test]
fn i_03_a_high_watermark_above_a_member_of_the_isr_is_missed() {
    Bench::with_five().misses("I-03", |bench| {
        bench.append(A, &[batch(5, 6, 1, "m")]);
        bench.append(B, &[batch(5, 6, 1, "m")]);
        bench.follows(B, A, 1, 5);
        bench.leads_with(A, 1, 6, &[A, B], &[A, B]);
    });
}

#[test]
fn i_05_a_leader_without_a_committed_record_is_missed() {
    let mut bench = Bench::with_five();
    bench.controller(A, 1, &[A, B], &[]);
    bench.append(A, &[batch(5, 6, 1, "m")]);
    bench.append(B, &[batch(5, 6, 1, "m")]);
    bench.follows(B, A, 1, 5);
    bench.leads_with(A, 1, 6, &[A, B], &[A, B]);
    bench.misses("I-05", |bench| bench.controller(C, 2, &[C], &[]));
}

#[test]
fn i_06_a_candidate_without_a_committed_record_is_missed() {
    for elr in [&[C][..], &[]] {
        let mut bench = Bench::with_five();
        bench.controller(A, 1, &[A, B], &[]);
        bench.append(A, &[batch(5, 6, 1, "m")]);
        bench.append(B, &[batch(5, 6, 1, "m")]);
        bench.follows(B, A, 1, 5);
        bench.leads_with(A, 1, 6, &[A, B], &[A, B]);
        let isr: &[NodeId] = if elr.is_empty() { &[A, B, C] } else { &[A, B] };
        bench.misses("I-06", |bench| bench.controller(A, 1, isr, elr));
    }
}

#[test]
fn i_07_a_high_watermark_that_does_not_wait_for_who_joins_is_missed() {
    let mut bench = Bench::with_five();
    bench.controller(A, 1, &[A, B], &[]);
    bench.misses("I-07", |bench| {
        bench.append(A, &[batch(5, 6, 1, "m")]);
        bench.append(B, &[batch(5, 6, 1, "m")]);
        bench.follows(B, A, 1, 5);
        bench.leads_with(A, 1, 6, &[A, B], &[A, B, C]);
    });
}

#[test]
fn i_07_somebody_who_may_lead_and_is_not_waited_for_is_missed() {
    let mut bench = Bench::with_five();
    bench.leads_with(A, 1, 5, &[A, B, C], &[A, B, C]);
    bench.misses("I-07", |bench| {
        bench.leads_with(A, 2, 5, &[A, B], &[A, B]);
        bench.controller(A, 2, &[A, B, C], &[]);
    });
}

#[test]
fn i_08_a_follower_that_calls_more_committed_than_is_is_missed() {
    Bench::with_five().misses("I-08", |bench| {
        bench.append(B, &[batch(5, 6, 1, "m")]);
        bench.follows(B, A, 1, 6);
    });
}

#[test]
fn i_09_a_read_of_what_is_not_committed_is_missed() {
    for (claimed, at) in [(9, 5), (3, 4)] {
        Bench::with_five().misses("I-09", |bench| {
            let read = [(offset(at), format!("m{at}").into_bytes())];
            let verdicts = &mut bench.verdicts;
            bench
                .partition
                .was_read(A, offset(claimed), &read, verdicts);
        });
    }
}

#[test]
fn i_11_two_brokers_that_append_in_one_epoch_are_missed() {
    let mut bench = Bench::with_five();
    bench.append(A, &[batch(5, 6, 2, "m")]);
    bench.leads(A, 2, 5);
    bench.misses("I-11", |bench| {
        bench.append(B, &[batch(5, 6, 2, "m")]);
        bench.leads(B, 2, 5);
    });
}

#[test]
fn i_12_an_acknowledgement_of_what_is_not_committed_is_missed() {
    Bench::with_five().misses("I-12", |bench| {
        let values = [b"m4".to_vec(), b"m5".to_vec()];
        let verdicts = &mut bench.verdicts;
        bench
            .partition
            .acknowledged(A, offset(4), &values, verdicts);
    });
}

#[test]
fn i_12_an_acknowledgement_with_too_few_copies_is_missed() {
    let mut bench = Bench::new();
    bench.controller(A, 1, &[A], &[]);
    bench.append(A, &[batch(0, 5, 1, "m")]);
    bench.leads_with(A, 1, 5, &[A], &[A]);
    bench.misses("I-12", |bench| {
        let verdicts = &mut bench.verdicts;
        bench
            .partition
            .acknowledged(A, offset(4), &[b"m4".to_vec()], verdicts);
    });
}

#[test]
fn i_13_a_fenced_broker_in_the_isr_is_missed() {
    let mut bench = Bench::with_five();
    bench.controller(A, 1, &[A, B], &[]);
    bench
        .known
        .brokers
        .get_mut(&C)
        .expect("registered")
        .is_fenced = true;
    bench.misses("I-13", |bench| bench.controller(A, 1, &[A, B, C], &[]));
}

#[test]
fn i_13_a_member_of_the_isr_below_the_start_of_the_epoch_is_missed() {
    let mut bench = Bench::with_five();
    bench.append(A, &[batch(5, 8, 1, "m")]);
    bench.controller(A, 1, &[A], &[]);
    bench.leads_with(A, 1, 5, &[A], &[A]);
    bench.controller(A, 2, &[A], &[]);
    bench.leads_with(A, 2, 5, &[A], &[A]);
    bench.misses("I-13", |bench| bench.controller(A, 2, &[A, B], &[]));
}

#[test]
fn i_16_a_cut_of_what_is_committed_is_missed() {
    Bench::with_five().misses("I-16", |bench| {
        bench.log(B).clear();
        bench.follows(B, A, 1, 0);
    });
}

#[test]
fn i_16_a_cut_of_what_the_leader_has_is_missed() {
    let mut bench = Bench::with_five();
    for node in [A, B] {
        bench.append(node, &[batch(5, 6, 1, "m")]);
    }
    bench.leads(A, 1, 5);
    bench.follows(B, A, 1, 5);
    bench.misses("I-16", |bench| {
        bench.log(B).pop();
        bench.follows(B, A, 1, 5);
    });
}

#[test]
fn i_16_a_silent_cut_below_the_high_watermark_is_missed() {
    let mut bench = Bench::with_five();
    bench.follows(B, A, 1, 5);
    bench.partition.unclean_is_allowed();
    *bench.log(C) = vec![];
    bench.verdicts.expect("I-16");
    bench.verdicts.expect("I-06");
    bench.controller(A, 1, &[A, B], &[]);
    bench.follows(C, A, 1, 0);
    bench.controller(C, 2, &[C], &[]);
    bench.leads_with(C, 2, 0, &[C], &[C]);
    bench.verdicts = Verdicts::default();
    bench.misses("I-16", |bench| {
        bench.log(B).clear();
        bench.follows(B, C, 2, 0);
    });
}

#[test]
fn i_17_another_value_than_the_committed_one_is_missed() {
    Bench::with_five().misses("I-17", |bench| {
        let read = [(offset(4), b"x4".to_vec())];
        bench
            .partition
            .was_read(A, offset(5), &read, &mut bench.verdicts);
    });
    Bench::with_five().misses("I-17", |bench| {
        let verdicts = &mut bench.verdicts;
        bench
            .partition
            .acknowledged(A, offset(4), &[b"x4".to_vec()], verdicts);
    });
}

#[test]
fn i_25_a_record_that_is_committed_twice_is_missed() {
    Bench::with_five().misses("I-25", |bench| {
        let mut again = batch(0, 5, 1, "m");
        (again.base, again.next) = (offset(5), offset(10));
        for node in [B, C, A] {
            bench.append(node, std::slice::from_ref(&again));
        }
        bench.follows(B, A, 1, 5);
        bench.follows(C, A, 1, 5);
        bench.leads(A, 1, 10);
    });
}

#[test]
fn a_loss_of_as_many_disks_as_the_minimum_has_is_told_and_not_missed() {
    let mut bench = Bench::with_five();
    for node in [B, C] {
        bench.partition.disk_lost(node);
        bench.log(node).clear();
        bench.follows(node, A, 1, 0);
        bench.partition.registered(node);
    }
    bench.controller(B, 2, &[B], &[]);
    let told = bench.verdicts.take_news();
    assert_eq!(
        told,
        ["checker: orders-0 may lose [0,5): 2 leads in epoch 2"]
    );
}

#[test]
fn i_05_a_loss_of_fewer_disks_is_missed() {
    let mut bench = Bench::with_five();
    bench.partition.disk_lost(B);
    bench.log(B).clear();
    bench.follows(B, A, 1, 0);
    bench.partition.registered(B);
    bench.misses("I-05", |bench| bench.controller(B, 2, &[B], &[]));
}
