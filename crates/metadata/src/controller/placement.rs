use std::collections::BTreeMap;

use highwater_types::NodeId;

use crate::image::{BrokerImage, MetadataImage};

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
        let candidates = image.brokers.values().filter(|broker| !is_cordoned(broker));
        let (up, down): (Vec<_>, Vec<_>) =
            candidates.partition(|broker| image.is_active(broker.id));
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

/// Whether every directory of a broker is cordoned: it gets no new replicas (KIP-1066).
fn is_cordoned(broker: &BrokerImage) -> bool {
    let cordoned = broker.cordoned.as_deref().unwrap_or_default();
    let all = broker.directories.iter().all(|it| cordoned.contains(it));
    all && !broker.directories.is_empty()
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

    use proptest::prelude::*;

    use super::*;
    use crate::controller::testing::{Cluster, directory};

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

    #[test]
    fn who_has_only_cordoned_directories_gets_no_replica() {
        let mut cluster = Cluster::new(3);
        cluster.beat(2, |it| it.cordoned_directories = Some(vec![directory(2)]));
        let placement = Placement::new(cluster.image(), 0);
        assert!(placement.check(3).is_err());
        for index in 0..6 {
            assert!(!placement.place(index, 2).contains(&NodeId::new(2)));
        }
    }

    /// What a placement promises, whatever the cluster.
    fn check_promises(brokers: &[(Option<u8>, bool)], factor: usize, start: u64) {
        let mut cluster = Cluster::new(0);
        for (id, (rack, up)) in (1..).zip(brokers) {
            let registration = crate::controller::Registration {
                rack: rack.map(|it| format!("rack-{it}")),
                ..cluster.registration(id)
            };
            let epoch = cluster.register(&registration);
            if *up {
                cluster.unfence(id, epoch);
            }
        }
        let image = cluster.image();
        let placement = Placement::new(image, start);
        let ups = brokers.iter().filter(|(_, up)| *up).count();
        let factor = i16::try_from(factor).expect("a few");
        placement.check(factor).expect("enough brokers");
        let mut leaders: BTreeMap<NodeId, usize> = BTreeMap::new();
        let rack = |id: &NodeId| image.broker(*id).expect("registered").rack.clone();
        let racks: BTreeSet<_> = image.brokers.keys().map(rack).collect();
        let wanted = usize::try_from(factor).expect("positive");
        for index in 0..ups * 3 {
            let placed = placement.place(index, factor);
            let distinct: BTreeSet<_> = placed.iter().collect();
            assert_eq!(
                (placed.len(), distinct.len()),
                (wanted, wanted),
                "{placed:?}"
            );
            assert!(
                image.is_active(placed[0]),
                "who is fenced does not lead: {placed:?}"
            );
            let used: BTreeSet<_> = placed.iter().map(rack).collect();
            if racks.iter().all(Option::is_some) {
                assert_eq!(
                    used.len(),
                    racks.len().min(wanted),
                    "{placed:?} in {brokers:?}"
                );
            } else if racks.iter().all(Option::is_none) {
                let fenced = placed.iter().filter(|id| !image.is_active(**id)).count();
                assert_eq!(fenced, wanted.saturating_sub(ups), "fenced ones come last");
            }
            *leaders.entry(placed[0]).or_default() += 1;
        }
        assert!(leaders.values().all(|count| *count == 3), "{leaders:?}");
    }

    proptest! {
        #[test]
        fn leaders_are_even_racks_alternate_and_fenced_brokers_come_last(
            racked in any::<bool>(),
            brokers in proptest::collection::vec((0..3_u8, any::<bool>()), 1..7),
            factor in 1..7_usize,
            start in any::<u64>(),
        ) {
            let mut brokers: Vec<_> = brokers
                .into_iter()
                .map(|(rack, up)| (racked.then_some(rack), up))
                .collect();
            // Somebody is up.
            brokers[0].1 = true;
            check_promises(&brokers, factor.min(brokers.len()), start);
        }
    }
}
