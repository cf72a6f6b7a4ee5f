//! Sticky dealing: what a member has it keeps, as far as the shares stay even.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use highwater_types::{TopicName, TopicPartition};

use super::assignor::{Assignments, GroupMemberView, TopicCounts, partition, subscribers};

/// Deals evenly with as few moves as can be, then holds back what another member still reads: it
/// learns from its own assignment that it must give it up, and rejoins when it has (KIP-429).
pub(super) fn assign_cooperatively(
    counts: &TopicCounts,
    members: &[&GroupMemberView],
) -> Assignments {
    let mut deal = Deal::new(counts, members);
    deal.keep_what_is_owned();
    deal.deal_out_the_rest(counts);
    deal.even_out();
    deal.hold_back_what_moves();
    deal.finish()
}

/// A deal in the making. Members are positions in `members`.
struct Deal<'a> {
    members: &'a [&'a GroupMemberView],
    /// Who wants each topic.
    wanted: BTreeMap<&'a TopicName, Vec<usize>>,
    counts: &'a TopicCounts,
    /// What each member gets.
    ///
    /// Invariant: no partition is with two members.
    hands: Vec<Hand<'a>>,
    /// Whose each partition was, as far as that is beyond doubt.
    owners: BTreeMap<TopicPartition, usize>,
}

#[derive(Default)]
struct Hand<'a> {
    /// Never an empty set.
    topics: BTreeMap<&'a TopicName, BTreeSet<i32>>,
    size: usize,
}

impl<'a> Hand<'a> {
    fn add(&mut self, topic: &'a TopicName, number: i32) {
        if self.topics.entry(topic).or_default().insert(number) {
            self.size += 1;
        }
    }

    fn remove(&mut self, topic: &TopicName, number: i32) {
        if let Some(numbers) = self.topics.get_mut(topic) {
            if numbers.remove(&number) {
                self.size -= 1;
            }
            if numbers.is_empty() {
                self.topics.remove(topic);
            }
        }
    }
}

impl<'a> Deal<'a> {
    fn new(counts: &'a TopicCounts, members: &'a [&'a GroupMemberView]) -> Self {
        Self {
            members,
            wanted: subscribers(counts, members),
            counts,
            hands: members.iter().map(|_| Hand::default()).collect(),
            owners: BTreeMap::new(),
        }
    }

    /// A claim counts when it is of the newest generation that anybody claims from (older ones
    /// missed a rebalance, KIP-792), when nobody else claims the same, and when the member still
    /// wants the topic.
    fn keep_what_is_owned(&mut self) {
        let claimants = self.members.iter().enumerate();
        let claimants: Vec<_> = claimants
            .filter(|(_, member)| !member.subscription.owned.is_empty())
            .map(|(at, member)| (at, generation_of(member), &member.subscription))
            .collect();
        let newest = claimants.iter().map(|(_, generation, _)| *generation).max();
        let mut twice = BTreeSet::new();
        for (at, _, subscription) in claimants
            .iter()
            .filter(|(_, generation, _)| Some(*generation) == newest)
        {
            for claimed in &subscription.owned {
                if self.owners.insert(claimed.clone(), *at).is_some() {
                    twice.insert(claimed.clone());
                }
            }
        }
        self.owners.retain(|claimed, _| !twice.contains(claimed));
        for (claimed, &at) in &self.owners {
            let known = self.counts.get_key_value(&claimed.topic);
            let Some((topic, &count)) = known else {
                continue;
            };
            let is_wanted = self.wanted.get(topic).is_some_and(|it| it.contains(&at));
            let number = claimed.partition.raw();
            if is_wanted
                && number < count
                && let Some(hand) = self.hands.get_mut(at)
            {
                hand.add(topic, number);
            }
        }
    }

    /// What nobody has goes to whoever has least; topics that few want come first.
    fn deal_out_the_rest(&mut self, counts: &'a TopicCounts) {
        let mut topics: Vec<_> = self
            .wanted
            .iter()
            .map(|(topic, by)| (by.len(), *topic))
            .collect();
        topics.sort();
        for (_, topic) in topics {
            let count = counts.get(topic).copied().unwrap_or_default();
            let held = self.hands.iter().filter_map(|hand| hand.topics.get(topic));
            let held: BTreeSet<i32> = held.flatten().copied().collect();
            let by = self.wanted.get(topic).cloned().unwrap_or_default();
            let mut by_size: BTreeSet<(usize, usize)> =
                by.iter().map(|&at| (self.size(at), at)).collect();
            for number in (0..count).filter(|number| !held.contains(number)) {
                let Some((size, at)) = by_size.pop_first() else {
                    break;
                };
                if let Some(hand) = self.hands.get_mut(at) {
                    hand.add(topic, number);
                }
                by_size.insert((size + 1, at));
            }
        }
    }

    /// Moves partitions, one chain of members at a time, until no chain leads from a member to
    /// one that has at least two less. Ends because each move makes the shares more even.
    fn even_out(&mut self) {
        loop {
            let mut sources: Vec<usize> = (0..self.hands.len()).collect();
            sources.sort_by_key(|&at| (std::cmp::Reverse(self.size(at)), at));
            let least = sources.last().map_or(0, |&at| self.size(at));
            sources.retain(|&at| self.size(at) >= least + 2);
            let chain = sources
                .into_iter()
                .find_map(|source| self.chain_from(source));
            let Some(chain) = chain else {
                return;
            };
            for (from, topic, to) in chain {
                self.move_one(from, topic, to);
            }
        }
    }

    /// The shortest chain of moves from `source` to a member with at least two less, and of those
    /// to the one that has least.
    fn chain_from(&self, source: usize) -> Option<Vec<(usize, &'a TopicName, usize)>> {
        let limit = self.size(source).checked_sub(2)?;
        let mut came_from: BTreeMap<usize, (usize, &'a TopicName)> = BTreeMap::new();
        let mut seen_topics: BTreeSet<&TopicName> = BTreeSet::new();
        let mut level = VecDeque::from([source]);
        let target = loop {
            let mut next = VecDeque::new();
            for &from in &level {
                let topics = self.hands.get(from).map(|hand| hand.topics.keys());
                for &topic in topics.into_iter().flatten() {
                    if !seen_topics.insert(topic) {
                        continue;
                    }
                    for &to in self.wanted.get(topic).into_iter().flatten() {
                        if to != source && !came_from.contains_key(&to) {
                            came_from.insert(to, (from, topic));
                            next.push_back(to);
                        }
                    }
                }
            }
            let open = next.iter().copied().filter(|&to| self.size(to) <= limit);
            if let Some(target) = open.min_by_key(|&to| (self.size(to), to)) {
                break target;
            }
            if next.is_empty() {
                return None;
            }
            level = next;
        };
        let mut chain = Vec::new();
        let mut at = target;
        while let Some(&(from, topic)) = came_from.get(&at) {
            chain.push((from, topic, at));
            at = from;
        }
        Some(chain)
    }

    /// Moves a partition of `topic`: best one that `to` had before, then one that is new to
    /// `from`, then the last one.
    fn move_one(&mut self, from: usize, topic: &'a TopicName, to: usize) {
        let numbers = self.hands.get(from).and_then(|hand| hand.topics.get(topic));
        let owner = |number: i32| self.owners.get(&partition(topic, number)).copied();
        let best = numbers
            .into_iter()
            .flatten()
            .copied()
            .max_by_key(|&number| {
                let owner = owner(number);
                (owner == Some(to), owner != Some(from), number)
            });
        let Some(number) = best else {
            return;
        };
        if let Some(hand) = self.hands.get_mut(from) {
            hand.remove(topic, number);
        }
        if let Some(hand) = self.hands.get_mut(to) {
            hand.add(topic, number);
        }
    }

    /// Takes out what a member gets that another says it reads: also by a claim that is too old
    /// to count, for that member may read on until it hears from us.
    fn hold_back_what_moves(&mut self) {
        let mut readers: BTreeMap<&TopicPartition, usize> = BTreeMap::new();
        for member in self.members {
            for owned in &member.subscription.owned {
                *readers.entry(owned).or_default() += 1;
            }
        }
        for (member, hand) in self.members.iter().zip(&mut self.hands) {
            let held: Vec<_> = hand.topics.iter().collect();
            let mut moving = Vec::new();
            for (topic, numbers) in held {
                for &number in numbers {
                    let it = partition(topic, number);
                    let reads_it = member.subscription.owned.contains(&it);
                    if !reads_it && readers.contains_key(&it) {
                        moving.push((*topic, number));
                    }
                }
            }
            for (topic, number) in moving {
                hand.remove(topic, number);
            }
        }
    }

    fn finish(self) -> Assignments {
        let ids = self.members.iter().map(|member| member.member_id.clone());
        let sets = self.hands.into_iter().map(|hand| {
            let topics = hand.topics.into_iter();
            topics
                .flat_map(|(topic, numbers)| {
                    let of_topic = numbers.into_iter();
                    of_topic.map(move |number| partition(topic, number))
                })
                .collect()
        });
        ids.zip(sets).collect()
    }

    fn size(&self, at: usize) -> usize {
        self.hands.get(at).map_or(0, |hand| hand.size)
    }
}

/// The generation of a member's claims: older subscriptions have it in their user data.
fn generation_of(member: &GroupMemberView) -> i32 {
    let of_user_data = || {
        let bytes = member.subscription.user_data.as_deref()?;
        let bytes: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        Some(i32::from_be_bytes(bytes))
    };
    let generation = member.subscription.generation.or_else(of_user_data);
    generation.unwrap_or(-1)
}
