//! Loading: the log of a coordinator, replayed from its start.

use highwater_types::{Offset, ProducerId};

use crate::coordinator::Coordinator;
use crate::group::Group;
use crate::record::{Record, ReplayError, ReplayedAt};

/// One record, in log order.
pub(crate) fn replay(
    coordinator: &mut Coordinator,
    at: ReplayedAt,
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<(), ReplayError> {
    let decoded = Record::decode(key, value).map_err(|why| ReplayError {
        offset: at.offset,
        why: why.to_string(),
    })?;
    let Some((group_id, mut record)) = decoded else {
        return Ok(());
    };
    coordinator.pool.share(&mut record);
    let end = at.offset.next();
    let group = match coordinator.groups.get_mut(&group_id) {
        Some(group) => group,
        // What is not there cannot be taken away.
        None if value.is_none() => {
            coordinator.removed_end = end;
            return Ok(());
        }
        None => {
            let new = Group::new(group_id.clone());
            coordinator.groups.entry(group_id.clone()).or_insert(new)
        }
    };
    match &record {
        Record::Offset {
            topic,
            partition,
            commit: Some(commit),
        } if at.transactional => {
            let (offsets, producer_id) = (&mut group.offsets, at.producer_id);
            offsets.replay_in_transaction(producer_id, topic, *partition, commit, end);
            let groups = coordinator.open_transactions.entry(producer_id);
            groups.or_default().insert(group_id);
        }
        #[cfg(feature = "planted-bugs")]
        Record::Offset {
            topic, partition, ..
        } if highwater_types::is_planted(highwater_types::PlantedBug::OffsetMovedBackByAReload)
            && group.offsets.get(topic, *partition).is_some() => {}
        other => {
            group.replay(other, end);
            if group.has_no_record() {
                coordinator.groups.remove(&group_id);
                coordinator.removed_end = end;
            }
        }
    }
    Ok(())
}

/// The end of a transaction: what it would commit is committed, or forgotten.
pub(crate) fn replay_transaction_end(
    coordinator: &mut Coordinator,
    producer_id: ProducerId,
    committed: bool,
    end: Offset,
) {
    let Some(groups) = coordinator.open_transactions.remove(&producer_id) else {
        return;
    };
    for group_id in groups {
        let Some(group) = coordinator.groups.get_mut(&group_id) else {
            continue;
        };
        let offsets = &mut group.offsets;
        offsets.replay_transaction_end(producer_id, committed, end);
        if group.has_no_record() {
            coordinator.groups.remove(&group_id);
            coordinator.removed_end = end;
        }
    }
}
