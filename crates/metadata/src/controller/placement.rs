use std::collections::BTreeMap;

use highwater_types::NodeId;

use crate::image::MetadataImage;

/// Spreads the replicas of new partitions over brokers and racks.
///
/// Brokers stand in a ring, racks alternating. Each partition starts one broker further, so leaders
/// spread evenly; its other replicas follow in the ring, first from racks that have none of it yet.
/// Fenced brokers come last and never first: a new partition has a leader at once.
#[derive(Debug)]
pub(crate) struct Placement {
    /// Those that are up, racks alternating.
    ring: Vec<Spot>,
    /// Those that are registered but not up.
    others: Vec<Spot>,
    start: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Spot {
    id: NodeId,
    rack: Option<String>,
}

/// Why replicas cannot be placed. Worded as Kafka words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlacementError {
    #[error("All brokers are currently fenced.")]
    NobodyUp,
    #[error(
        "The target replication factor of {wanted} cannot be reached because only {registered} \
         broker(s) are registered."
    )]
    TooFew { wanted: i16, registered: usize },
}

impl Placement {
    /// A placement that starts at a random broker.
    pub(crate) fn new(image: &MetadataImage, random: u64) -> Self {
        let (up, down): (Vec<_>, Vec<_>) = image
            .brokers
            .values()
            .partition(|broker| image.is_active(broker.id));
        let spot = |id: NodeId, rack: &Option<String>| Spot {
            id,
            rack: rack.clone(),
        };
        let ring = alternate(up.iter().map(|it| spot(it.id, &it.rack)).collect());
        let others = down.iter().map(|it| spot(it.id, &it.rack)).collect();
        let start = usize::try_from(random % ring.len().max(1) as u64).unwrap_or(0);
        Self {
            ring,
            others,
            start,
        }
    }

    /// Whether `replicas` can be placed at all: costs the same for any number.
    pub(crate) fn check(&self, replicas: i16) -> Result<(), PlacementError> {
        let registered = self.ring.len() + self.others.len();
        if self.ring.is_empty() {
            return Err(PlacementError::NobodyUp);
        }
        if usize::try_from(replicas).is_ok_and(|wanted| wanted <= registered) {
            Ok(())
        } else {
            Err(PlacementError::TooFew {
                wanted: replicas,
                registered,
            })
        }
    }

    /// The replicas of partition `index`; `check` has passed.
    pub(crate) fn place(&self, index: usize, replicas: i16) -> Vec<NodeId> {
        let wanted = usize::try_from(replicas).expect("a checked replication factor");
        let size = self.ring.len();
        let first = (self.start + index) % size;
        // With each turn around the ring the followers shift, so that they spread too.
        let shift = index / size;
        let followers = (0..size.saturating_sub(1)).map(|at| 1 + (at + shift) % (size - 1));
        let offsets = std::iter::once(0).chain(followers);
        let order: Vec<&Spot> = offsets
            .filter_map(|offset| self.ring.get((first + offset) % size))
            .chain(&self.others)
            .collect();
        let mut chosen: Vec<&Spot> = Vec::with_capacity(wanted);
        let fresh_rack = |chosen: &[&Spot], spot: &Spot| {
            chosen
                .iter()
                .all(|it| it.rack.is_none() || it.rack != spot.rack)
        };
        for only_fresh in [true, false] {
            for spot in &order {
                let taken = chosen.contains(spot);
                let full = chosen.len() == wanted;
                if !taken && !full && (!only_fresh || fresh_rack(&chosen, spot)) {
                    chosen.push(spot);
                }
            }
        }
        chosen.into_iter().map(|spot| spot.id).collect()
    }
}

/// Takes one broker of each rack in turn.
fn alternate(spots: Vec<Spot>) -> Vec<Spot> {
    let mut racks: BTreeMap<Option<String>, std::vec::IntoIter<Spot>> = BTreeMap::new();
    let count = spots.len();
    let mut by_rack: BTreeMap<Option<String>, Vec<Spot>> = BTreeMap::new();
    for spot in spots {
        by_rack.entry(spot.rack.clone()).or_default().push(spot);
    }
    for (rack, spots) in by_rack {
        racks.insert(rack, spots.into_iter());
    }
    let mut ring = Vec::with_capacity(count);
    while ring.len() < count {
        ring.extend(racks.values_mut().filter_map(Iterator::next));
    }
    ring
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::controller::testing::Cluster;

    #[test]
    fn leaders_and_replicas_spread() {
        let cluster = Cluster::new(4);
        let placement = Placement::new(cluster.image(), 2);
        let mut leaders: BTreeMap<NodeId, u32> = BTreeMap::new();
        let mut replicas: BTreeMap<NodeId, u32> = BTreeMap::new();
        for index in 0..24 {
            let placed = placement.place(index, 3);
            let distinct: BTreeSet<_> = placed.iter().collect();
            assert_eq!(distinct.len(), 3);
            *leaders.entry(placed[0]).or_default() += 1;
            for id in placed {
                *replicas.entry(id).or_default() += 1;
            }
        }
        assert!(leaders.values().all(|count| *count == 6), "{leaders:?}");
        assert!(
            replicas.values().all(|count| (15..=21).contains(count)),
            "{replicas:?}"
        );
    }

    #[test]
    fn racks_differ_as_long_as_they_can() {
        let spot = |id, rack: &str| Spot {
            id: NodeId::new(id),
            rack: Some(rack.to_owned()),
        };
        let ring = alternate(vec![spot(1, "a"), spot(2, "a"), spot(3, "b"), spot(4, "b")]);
        let placement = Placement {
            ring,
            others: Vec::new(),
            start: 0,
        };
        for index in 0..20 {
            let placed = placement.place(index, 2);
            let in_a = placed.iter().filter(|id| id.raw() <= 2).count();
            assert_eq!(in_a, 1, "{placed:?}");
        }
        assert_eq!(placement.place(0, 4).len(), 4);
    }

    #[test]
    fn b_44_what_cannot_be_placed_is_refused_whatever_the_number() {
        let cluster = Cluster::new(2);
        let placement = Placement::new(cluster.image(), 0);
        assert_eq!(placement.check(2), Ok(()));
        let too_few = PlacementError::TooFew {
            wanted: i16::MAX,
            registered: 2,
        };
        assert_eq!(placement.check(i16::MAX), Err(too_few));
        let nobody = Placement::new(Cluster::new(0).image(), 0);
        assert_eq!(nobody.check(1), Err(PlacementError::NobodyUp));
    }
}
