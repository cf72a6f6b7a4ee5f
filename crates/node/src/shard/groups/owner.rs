//! At the owner: coordinators beside their partitions, and answers that wait to be safe.

use std::sync::Arc;

use highwater_coordinator::{Appender, Coordinator, GroupAnswer, Output, RequestId, TopicNames};
use highwater_disk::Disk;
use highwater_types::{ErrorCode, Mono, Now, Offset, TopicId, TopicIdPartition, TopicName};

use super::append::PartitionAppender;
use super::part::GroupRow;
use super::route::ImageNames;
use super::slot::{Slot, SlotState};
use super::{GroupState, Open, RowAnswer, text};
use crate::journal::Happening;
use crate::shard::partition::{OnlinePartition, Partition};
use crate::shard::{Effects, Shard};

impl<D: Disk> Shard<D> {
    /// Asks coordinators of this shard. Each row is answered exactly once, unless it is forgotten.
    pub(super) fn ask_own_coordinators(
        &mut self,
        now: Now,
        home: u16,
        asked: u64,
        rows: Vec<GroupRow>,
        out: &mut Effects<D>,
    ) {
        let mut refused = Vec::new();
        for GroupRow {
            row,
            at,
            caller,
            request,
        } in rows
        {
            if let Err(error) = self.check_coordinator(at) {
                refused.push((row, Err(error)));
                continue;
            }
            let open = Open {
                home,
                asked,
                row,
                at,
                waits: None,
            };
            let id = self.groups.open(open);
            self.with_coordinator(now, at, out, |it, topics, log, outputs| {
                it.handle(now, id, &caller, request, topics, log, outputs);
            });
        }
        if !refused.is_empty() {
            self.deliver_group_rows(home, asked, refused, out);
        }
    }

    /// Whether a coordinator serves here, or what is answered instead. While the log of a
    /// partition that leads here is still being opened, its coordinator is about to be loaded.
    fn check_coordinator(&self, at: TopicIdPartition) -> Result<(), ErrorCode> {
        if let Some(slot) = self.groups.slots.get(&at) {
            return slot.check();
        }
        let leads = self
            .image
            .partition(at)
            .is_some_and(|it| it.leader == self.node_id);
        // A large change of the metadata is applied in pieces: its partition may come later.
        let partition = self.partitions.find(at);
        let opens = partition.is_none_or(Partition::is_opening);
        if leads && opens && !self.lifecycle.is_closing() {
            return Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
        }
        Err(ErrorCode::NOT_COORDINATOR)
    }

    /// Lets a coordinator work and performs what it puts out.
    pub(super) fn with_coordinator(
        &mut self,
        now: Now,
        at: TopicIdPartition,
        out: &mut Effects<D>,
        work: impl FnOnce(&mut Coordinator, &dyn TopicNames, &mut dyn Appender, &mut Vec<Output>),
    ) {
        let Some(mut coordinator) = self.groups.take_coordinator(at) else {
            return;
        };
        let image = Arc::clone(&self.image);
        let mut outputs = std::mem::take(&mut self.groups.outputs);
        let mut log = PartitionAppender {
            shard: self,
            at,
            out,
        };
        work(
            &mut coordinator,
            &ImageNames(&image),
            &mut log,
            &mut outputs,
        );
        self.groups.give_back_coordinator(at, coordinator);
        for output in outputs.drain(..) {
            match output {
                Output::Answer { to, after, answer } => {
                    self.answer_when_safe(now, at, to, after, answer, out);
                }
                Output::Happened(happening) => {
                    let level = text::level(&happening.event);
                    self.journal(level, Happening::Group(happening), out);
                }
            }
        }
        self.groups.outputs = outputs;
    }

    /// Sends an answer once everything that it depends on is safe.
    fn answer_when_safe(
        &mut self,
        now: Now,
        at: TopicIdPartition,
        to: RequestId,
        after: Offset,
        answer: GroupAnswer,
        out: &mut Effects<D>,
    ) {
        let high_watermark = self.high_watermark_of(at);
        if high_watermark.is_some_and(|it| it >= after) {
            self.end_open(to, Ok(answer), out);
            return;
        }
        let deadline = now.mono.plus(self.groups.settings.commit_timeout);
        self.groups.wait(at, to, (after, deadline), answer);
    }

    fn high_watermark_of(&mut self, at: TopicIdPartition) -> Option<Offset> {
        self.partitions
            .online_mut(at)
            .map(|online| online.high_watermark())
    }

    /// Answers a request, unless nobody waits for it.
    fn end_open(&mut self, id: RequestId, answer: RowAnswer, out: &mut Effects<D>) {
        if let Some(open) = self.groups.close(id) {
            let rows = vec![(open.row, answer)];
            self.deliver_group_rows(open.home, open.asked, rows, out);
        }
    }

    /// Leadership is lost: what the coordinator knew is dropped at the end of the step, also if
    /// leadership is regained in it.
    pub(crate) fn groups_lead_no_more(&mut self, at: TopicIdPartition) {
        if let Some(slot) = self.groups.slots.get_mut(&at) {
            slot.lost = true;
        }
    }

    /// Looks at the changed partitions of `__consumer_offsets`: coordinators begin and end, and
    /// answers become safe.
    pub(crate) fn groups_partitions_changed(
        &mut self,
        now: Now,
        changed: &[TopicIdPartition],
        out: &mut Effects<D>,
    ) {
        let Some(topic_id) = self.groups.topic.map(|it| it.id) else {
            if self.groups.slots.is_empty() {
                return;
            }
            changed.iter().for_each(|at| self.unload_if_lost(*at, out));
            return;
        };
        for at in changed {
            self.unload_if_lost(*at, out);
            if at.topic_id == topic_id
                && !self.groups.slots.contains_key(at)
                && self.leads_open_log(*at)
            {
                self.begin_load(now, *at, out);
            }
            self.answer_what_is_safe(*at, out);
        }
    }

    fn leads_open_log(&mut self, at: TopicIdPartition) -> bool {
        let online = self.partitions.online_mut(at);
        online.is_some_and(|OnlinePartition { replica, .. }| replica.is_leader())
    }

    fn unload_if_lost(&mut self, at: TopicIdPartition, out: &mut Effects<D>) {
        let leads = self.leads_open_log(at);
        let Some(slot) = self.groups.slots.get(&at) else {
            return;
        };
        if leads && !slot.lost {
            return;
        }
        let Some(slot) = self.groups.remove_slot(at) else {
            return;
        };
        for id in slot.open {
            self.end_open(id, Err(ErrorCode::NOT_COORDINATOR), out);
        }
    }

    fn answer_what_is_safe(&mut self, at: TopicIdPartition, out: &mut Effects<D>) {
        let Some(high_watermark) = self.high_watermark_of(at) else {
            return;
        };
        while let Some((id, answer)) = self.groups.next_safe(at, high_watermark) {
            self.end_open(id, Ok(answer), out);
        }
    }

    /// Coordinators do what is due; answers that have waited too long are given up, with the code
    /// that Kafka gives to a write that its replicas do not confirm in time.
    pub(crate) fn groups_tick(&mut self, now: Now, out: &mut Effects<D>) {
        for id in self.groups.take_late(now.mono) {
            self.end_open(id, Err(ErrorCode::COORDINATOR_NOT_AVAILABLE), out);
        }
        for at in self.groups.take_ticks(now.mono) {
            if self.groups.is_loading(at) {
                self.load_on(now, at, out);
                continue;
            }
            self.with_coordinator(now, at, out, |it, _, log, outputs| {
                it.tick(now, log, outputs);
            });
        }
    }

    /// Nobody waits for a request of `home` any more.
    pub(super) fn forget_asked(&mut self, home: u16, asked: u64) {
        let of_asked = |(id, open): (&RequestId, &Open)| {
            (open.home == home && open.asked == asked).then_some(*id)
        };
        let gone: Vec<_> = self.groups.open.iter().filter_map(of_asked).collect();
        for id in gone {
            let Some(open) = self.groups.close(id) else {
                continue;
            };
            if let Some(coordinator) = self.groups.coordinator_mut(open.at) {
                coordinator.forget(id);
            }
            self.groups.note_tick(open.at);
        }
    }

    /// Topics are gone, and so are the offsets of groups in them.
    pub(crate) fn groups_topics_deleted(
        &mut self,
        now: Now,
        topics: &[(TopicId, TopicName)],
        out: &mut Effects<D>,
    ) {
        if topics.is_empty() {
            return;
        }
        let slots: Vec<_> = self.groups.slots.keys().copied().collect();
        for at in slots {
            if let Some(Slot {
                state: SlotState::Loading(loading),
                ..
            }) = self.groups.slots.get_mut(&at)
            {
                loading.deleted.extend_from_slice(topics);
            }
            self.with_coordinator(now, at, out, |it, _, log, outputs| {
                it.topics_deleted(now, topics, log, outputs);
            });
        }
    }
}

impl GroupState {
    fn open(&mut self, open: Open) -> RequestId {
        self.open_count += 1;
        let id = RequestId(self.open_count);
        if let Some(slot) = self.slots.get_mut(&open.at) {
            slot.open.insert(id);
        }
        self.open.insert(id, open);
        id
    }

    /// Lets an answer wait for the high watermark; nothing happens when nobody wants it.
    fn wait(
        &mut self,
        at: TopicIdPartition,
        id: RequestId,
        waits: (Offset, Mono),
        answer: GroupAnswer,
    ) {
        let (Some(open), Some(slot)) = (self.open.get_mut(&id), self.slots.get_mut(&at)) else {
            return;
        };
        let before = open.waits.replace(waits);
        assert_eq!(before, None, "{id:?} is answered twice");
        let (after, deadline) = waits;
        slot.waiting.insert((after, id), answer);
        self.waits.insert((deadline, id));
        slot.assert_invariants();
    }

    /// Takes a request out, and its answer if one waits.
    fn close(&mut self, id: RequestId) -> Option<Open> {
        let open = self.open.remove(&id)?;
        let slot = self.slots.get_mut(&open.at);
        if let Some((after, deadline)) = open.waits {
            self.waits.remove(&(deadline, id));
            if let Some(slot) = slot {
                slot.open.remove(&id);
                slot.waiting.remove(&(after, id));
            }
        } else if let Some(slot) = slot {
            slot.open.remove(&id);
        }
        Some(open)
    }

    /// The next answer of a partition that is safe below `high_watermark`.
    fn next_safe(
        &mut self,
        at: TopicIdPartition,
        high_watermark: Offset,
    ) -> Option<(RequestId, GroupAnswer)> {
        let slot = self.slots.get_mut(&at)?;
        let first = slot.waiting.first_entry()?;
        let (after, id) = *first.key();
        (after <= high_watermark).then(|| (id, first.remove()))
    }

    fn take_late(&mut self, now: Mono) -> Vec<RequestId> {
        let is_late = |(due, _): &&(Mono, RequestId)| *due <= now;
        let late = self.waits.iter().take_while(is_late);
        late.map(|(_, id)| *id).collect()
    }

    fn take_ticks(&mut self, now: Mono) -> Vec<TopicIdPartition> {
        let is_due = |(due, _): &&(Mono, TopicIdPartition)| *due <= now;
        let due = self.ticks.iter().take_while(is_due);
        let due: Vec<_> = due.map(|(_, at)| *at).collect();
        due.iter().for_each(|at| self.set_tick(*at, None));
        due
    }

    fn is_loading(&self, at: TopicIdPartition) -> bool {
        let slot = self.slots.get(&at);
        slot.is_some_and(|it| matches!(it.state, SlotState::Loading(_)))
    }

    fn coordinator_mut(&mut self, at: TopicIdPartition) -> Option<&mut Coordinator> {
        match &mut self.slots.get_mut(&at)?.state {
            SlotState::Active(coordinator) => coordinator.as_deref_mut(),
            SlotState::Loading(_) | SlotState::Failed => None,
        }
    }

    fn take_coordinator(&mut self, at: TopicIdPartition) -> Option<Box<Coordinator>> {
        match &mut self.slots.get_mut(&at)?.state {
            SlotState::Active(coordinator) => coordinator.take(),
            SlotState::Loading(_) | SlotState::Failed => None,
        }
    }

    fn give_back_coordinator(&mut self, at: TopicIdPartition, coordinator: Box<Coordinator>) {
        if let Some(slot) = self.slots.get_mut(&at) {
            assert!(
                matches!(slot.state, SlotState::Active(None)),
                "somebody else took the place of a coordinator that worked"
            );
            slot.state = SlotState::Active(Some(coordinator));
        }
        self.note_tick(at);
    }

    /// Notes when the coordinator of a partition wants its next tick.
    pub(super) fn note_tick(&mut self, at: TopicIdPartition) {
        let due = self.coordinator_mut(at).and_then(|it| it.next_deadline());
        self.set_tick(at, due);
    }

    pub(super) fn set_tick(&mut self, at: TopicIdPartition, due: Option<Mono>) {
        let Some(slot) = self.slots.get_mut(&at) else {
            return;
        };
        let before = std::mem::replace(&mut slot.tick_at, due);
        if before == due {
            return;
        }
        if let Some(before) = before {
            self.ticks.remove(&(before, at));
        }
        if let Some(due) = due {
            self.ticks.insert((due, at));
        }
    }

    fn remove_slot(&mut self, at: TopicIdPartition) -> Option<Slot> {
        self.set_tick(at, None);
        self.slots.remove(&at)
    }
}
