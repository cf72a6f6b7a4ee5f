use highwater_types::{Now, Offset};

use crate::answer::GroupAnswer;
use crate::appender::{AppendRefused, Appender, NewRecord};
use crate::group::Group;
use crate::happening::{GroupEvent, GroupHappening};
use crate::ids::{GroupId, MemberId, RequestId};
use crate::output::Output;
use crate::random::Random;
use crate::record::Record;
use crate::settings::GroupSettings;
use crate::timers::Timers;
use crate::waiters::Waiters;

/// What one call of the coordinator has at hand, beside the group that it is about.
pub(crate) struct Step<'a> {
    pub(crate) now: Now,
    pub(crate) settings: &'a GroupSettings,
    pub(crate) random: &'a mut Random,
    pub(crate) timers: &'a mut Timers,
    pub(crate) waiters: &'a mut Waiters,
    pub(crate) log: &'a mut dyn Appender,
    pub(crate) out: &'a mut Vec<Output>,
    /// Why the last append of this step was refused, if it was.
    pub(crate) refused: Option<AppendRefused>,
}

impl Step<'_> {
    /// The only way to the log: appends the records as one batch, and replays each into `group` at
    /// its offset. Gives the exclusive end offset. When it is refused nothing has changed.
    pub(crate) fn commit(
        &mut self,
        group: &mut Group,
        records: &[Record],
    ) -> Result<Offset, AppendRefused> {
        assert!(!records.is_empty(), "an append without records");
        let end = self.append(&group.id, records);
        self.refused = end.err();
        let end = end?;
        let count = i64::try_from(records.len()).expect("a batch has fewer records than i64::MAX");
        let first = end.plus(-count);
        for (at, record) in (0..count).zip(records) {
            group.replay(record, first.plus(at).next());
        }
        Ok(end)
    }

    fn append(&mut self, group: &GroupId, records: &[Record]) -> Result<Offset, AppendRefused> {
        let encode = |it: &Record| it.encode(group).ok_or(AppendRefused::TooLarge);
        let encoded: Result<Vec<NewRecord>, AppendRefused> = records.iter().map(encode).collect();
        self.log.append(self.now, &encoded?)
    }

    /// The member is alive: its session begins anew.
    pub(crate) fn heard_from(&mut self, group: &Group, member_id: &MemberId) {
        group.touch(self, member_id);
    }

    pub(crate) fn answer(&mut self, to: RequestId, after: Offset, answer: GroupAnswer) {
        self.out.push(Output::Answer { to, after, answer });
    }

    /// Tells the journal, and keeps it for describe answers.
    pub(crate) fn happened(&mut self, group: &mut Group, event: GroupEvent) {
        group.past.push(self.now.wall, event.clone());
        self.journal(group, event);
    }

    /// Tells the journal only.
    pub(crate) fn journal(&mut self, group: &Group, event: GroupEvent) {
        self.out.push(Output::Happened(GroupHappening {
            group_id: group.id.clone(),
            event,
        }));
    }
}
