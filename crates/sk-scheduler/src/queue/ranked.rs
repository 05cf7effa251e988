//! A priority queue of pods that is cheap where pods arrive in order, as they mostly do: keys begin with times.
//!
//! A pod whose key is the greatest so far is appended to a sorted list; any other goes into a heap. The first pod is the lesser of
//! the two fronts. A pod that leaves from the middle stays as a left-over until it comes to the front: each insertion has a
//! stamp, and the queue's entry of a pod has the stamp that counts. Left-overs are swept out when they outnumber the pods.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::ids::PodId;

/// Left-overs are swept out when there are more of them than pods, and at least so many: 48 bytes each, 3 KB.
const MIN_LEFT_OVER: usize = 64;

/// The number of an insertion; no two are alike.
pub(super) type Stamp = u64;

/// Pods by a key. The first of them is always one that is there.
#[derive(Clone, Debug)]
pub(super) struct Ranked<K> {
    run: VecDeque<(K, PodId, Stamp)>,
    heap: BinaryHeap<Reverse<(K, PodId, Stamp)>>,
    /// How many pods are there.
    live: usize,
}

impl<K: Ord> Default for Ranked<K> {
    fn default() -> Self {
        Self { run: VecDeque::new(), heap: BinaryHeap::new(), live: 0 }
    }
}

impl<K: Ord + Copy> Ranked<K> {
    pub(super) fn len(&self) -> usize {
        self.live
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub(super) fn insert(&mut self, key: K, pod: PodId, stamp: Stamp) {
        self.live += 1;
        let item = (key, pod, stamp);
        match self.run.back() {
            Some(last) if item < *last => self.heap.push(Reverse(item)),
            Some(_) | None => self.run.push_back(item),
        }
    }

    /// The first pod and its key.
    pub(super) fn first(&self) -> Option<(K, PodId)> {
        let (key, pod, _) = match (self.run.front(), self.heap.peek()) {
            (Some(one), Some(Reverse(other))) => one.min(other),
            (Some(one), None) => one,
            (None, other) => &other?.0,
        };
        Some((*key, *pod))
    }

    /// One pod has left; `is_there` says whether the insertion of a pod with this stamp still counts.
    pub(super) fn leave(&mut self, is_there: impl Fn(PodId, Stamp) -> bool) {
        self.live -= 1;
        while self.run.front().is_some_and(|(_, pod, stamp)| !is_there(*pod, *stamp)) {
            self.run.pop_front();
        }
        while self.heap.peek().is_some_and(|Reverse((_, pod, stamp))| !is_there(*pod, *stamp)) {
            self.heap.pop();
        }
        if self.run.len() + self.heap.len() > 2 * self.live + MIN_LEFT_OVER {
            self.run.retain(|(_, pod, stamp)| is_there(*pod, *stamp));
            self.heap.retain(|Reverse((_, pod, stamp))| is_there(*pod, *stamp));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use sk_core::rng::Stream;

    use super::*;

    #[test]
    fn any_order_of_coming_and_going_leaves_the_first_that_is_there() {
        let mut draw = Stream::new(1, "ranked");
        let (mut ranked, mut there) = (Ranked::default(), BTreeMap::new());
        for stamp in 0..20_000 {
            let (key, pod) = (draw.below(50), PodId(draw.below(300) as u32));
            match there.remove(&pod) {
                Some(_) => ranked.leave(|pod, stamp| there.get(&pod).is_some_and(|(_, known)| *known == stamp)),
                None => {
                    there.insert(pod, (key, stamp));
                    ranked.insert(key, pod, stamp);
                }
            }
            assert_eq!(ranked.first(), there.iter().map(|(pod, (key, _))| (*key, *pod)).min());
            assert_eq!(ranked.len(), there.len());
            assert!(ranked.run.len() + ranked.heap.len() <= 2 * (there.len() + 1) + MIN_LEFT_OVER);
        }
    }

    #[test]
    fn left_overs_behind_a_pod_that_stays_are_swept_out() {
        let mut ranked = Ranked::default();
        ranked.insert(0_u64, PodId(0), 0);
        for stamp in 1..1_000 {
            // Always under the same key: only the stamp tells this coming from the one before.
            ranked.insert(7, PodId(1), stamp);
            ranked.leave(|pod, _| pod == PodId(0));
        }
        assert_eq!(ranked.first(), Some((0, PodId(0))));
        assert!(ranked.run.len() + ranked.heap.len() <= MIN_LEFT_OVER + 3);
    }
}
