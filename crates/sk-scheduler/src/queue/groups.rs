//! Pods that wait for something to happen, in groups that an event concerns alike.
//!
//! A group is a list, and each pod's entry knows its place in it, so that coming and going cost no search. A group that
//! is empty keeps its place for the pods that come back to it, as pods that fail again and again do.

use std::collections::BTreeMap;

use super::entries::Entries;
use crate::framework::plugin::{PluginId, PluginSet};
use crate::ids::{ClassId, PodId};

/// What the pods of a group have in common: their class, who rejected them, who holds them back before the queue.
pub(super) type Key = (ClassId, PluginSet, Option<PluginId>);

/// Empty groups that are kept at least, at 64 bytes and [`KEPT_PODS`] each: 320 KB.
const MIN_EMPTY: usize = 1_024;
/// An empty group keeps room for so many pods of 4 bytes.
const KEPT_PODS: usize = 64;

/// All groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    groups: Vec<Group>,
    by_key: BTreeMap<Key, u32>,
    /// Groups that have pods, and how many of them were rejected by the same plugins.
    occupied: Vec<u32>,
    by_rejectors: BTreeMap<PluginSet, u32>,
    /// Where the search for an empty group goes on.
    hand: usize,
}

#[derive(Clone, Debug)]
struct Group {
    key: Key,
    pods: Vec<PodId>,
    /// Its place among those that have pods.
    at: u32,
}

/// Where a pod is among the groups, or was when it last waited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seat {
    group: u32,
    at: u32,
}

impl Groups {
    /// Was any pod rejected by one of these plugins, or by none?
    pub(super) fn concern(&self, plugins: PluginSet) -> bool {
        self.by_rejectors.keys().any(|rejectors| rejectors.is_empty() || rejectors.intersects(plugins))
    }

    /// The groups that have pods.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &[PodId])> {
        self.occupied.iter().map(|group| &self.groups[*group as usize]).map(|group| (&group.key, group.pods.as_slice()))
    }

    pub(super) fn insert(&mut self, key: Key, pod: PodId, entries: &mut Entries) {
        let Some(entry) = entries.get_mut(pod) else { return };
        // Most pods fail as they failed before.
        let same = self.groups.get(entry.seat.group as usize).is_some_and(|group| group.key == key);
        let number = if same { entry.seat.group } else { self.number(key) };
        let group = &mut self.groups[number as usize];
        entry.seat = Seat { group: number, at: group.pods.len() as u32 };
        group.pods.push(pod);
        if group.pods.len() == 1 {
            group.at = self.occupied.len() as u32;
            self.occupied.push(number);
            *self.by_rejectors.entry(key.1).or_insert(0) += 1;
        }
    }

    pub(super) fn remove(&mut self, pod: PodId, entries: &mut Entries) {
        let Some(Seat { group: number, at }) = entries.get(pod).map(|entry| entry.seat) else { return };
        let group = &mut self.groups[number as usize];
        group.pods.swap_remove(at as usize);
        if let Some(moved) = group.pods.get(at as usize).and_then(|moved| entries.get_mut(*moved)) {
            moved.seat.at = at;
        }
        if group.pods.is_empty() {
            let (at, rejectors) = (group.at as usize, group.key.1);
            group.pods.shrink_to(KEPT_PODS);
            self.occupied.swap_remove(at);
            if let Some(groups) = self.by_rejectors.get_mut(&rejectors) {
                *groups -= 1;
                if *groups == 0 {
                    self.by_rejectors.remove(&rejectors);
                }
            }
            if let Some(moved) = self.occupied.get(at) {
                self.groups[*moved as usize].at = at as u32;
            }
        }
    }

    /// The number of the group with this key. Where more groups are empty than not, it takes the place of an empty one.
    fn number(&mut self, key: Key) -> u32 {
        if let Some(number) = self.by_key.get(&key) {
            return *number;
        }
        let empty = self.groups.len() - self.occupied.len();
        let number = if empty > MIN_EMPTY.max(self.occupied.len()) {
            while !self.groups[self.hand].pods.is_empty() {
                self.hand = (self.hand + 1) % self.groups.len();
            }
            let number = self.hand;
            self.hand = (self.hand + 1) % self.groups.len();
            self.by_key.remove(&self.groups[number].key);
            self.groups[number].key = key;
            number as u32
        } else {
            self.groups.push(Group { key, pods: Vec::new(), at: 0 });
            u32::try_from(self.groups.len() - 1).expect("there are fewer pods than that")
        };
        self.by_key.insert(key, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use sk_core::SimTime;
    use sk_core::rng::Stream;

    use super::*;
    use crate::queue::entry::Entry;

    #[test]
    fn pods_come_to_their_groups_and_go_and_empty_groups_do_not_pile_up() {
        let mut draw = Stream::new(1, "groups");
        let (mut groups, mut entries) = (Groups::default(), Entries::default());
        let mut expected: BTreeMap<PodId, Key> = BTreeMap::new();
        for number in 0..200 {
            entries.insert(PodId(number), Entry::new(ClassId(0), 0, SimTime::from_secs(0), u64::from(number)));
        }
        for _ in 0..30_000 {
            let pod = PodId(draw.below(200) as u32);
            match expected.remove(&pod) {
                Some(_) => groups.remove(pod, &mut entries),
                None => {
                    // Few classes that come back, and many that do not.
                    let class = if draw.below(2) == 0 { draw.below(5) } else { draw.below(1_000_000) };
                    let key = (ClassId(class as u32), PluginSet::EMPTY, None);
                    groups.insert(key, pod, &mut entries);
                    expected.insert(pod, key);
                }
            }
        }
        let mut by_key: BTreeMap<Key, BTreeSet<PodId>> = BTreeMap::new();
        for (pod, key) in expected {
            by_key.entry(key).or_default().insert(pod);
        }
        let found: BTreeMap<Key, BTreeSet<PodId>> =
            groups.iter().map(|(key, pods)| (*key, pods.iter().copied().collect())).collect();
        assert_eq!(found, by_key);
        let occupied: u32 = groups.by_rejectors.values().sum();
        assert_eq!(occupied as usize, by_key.len());
        assert!(groups.groups.len() <= 2 * MIN_EMPTY, "{}", groups.groups.len());
        assert_eq!(groups.by_key.len(), groups.groups.len());
    }
}
