//! Selects one of the feasible nodes.
//!
//! Kubernetes puts the list of feasible nodes into a binary heap (Go's container/heap, `Init` and one `Pop`) with the
//! highest total on top (`schedule_one.go`, `newSortedNodeScores`). The result is, among the highest totals, the first
//! in *pre-order* of the tree that the list forms: a node, then its left subtree, then its right. So one pass for the
//! maximum and one over the ties is enough. [`tests`] compares this with such a heap.

/// Of two places in the list with equal totals, `later` being behind `earlier`: does `later` come first?
#[inline]
pub(crate) fn precedes(later: usize, earlier: usize) -> bool {
    // From 1 on, the parent of i is i/2. Go up from the deeper one: if that meets the other, the other is above it and
    // comes first; otherwise the one further left does.
    let (later, earlier) = (later + 1, earlier + 1);
    let levels = earlier.leading_zeros() - later.leading_zeros();
    (later >> levels) < earlier
}

/// The winner's place in the list.
pub(crate) fn winner(totals: &[i64]) -> Option<usize> {
    let most = totals.iter().copied().max()?;
    let ties = totals.iter().enumerate().filter(|(_, total)| **total == most).map(|(at, _)| at);
    ties.reduce(|best, at| if precedes(at, best) { at } else { best })
}

/// How many feasible nodes end the search (`numFeasibleNodesToFind`).
pub(crate) fn nodes_to_find(nodes: usize, percentage: i32) -> usize {
    /// Below this many nodes all are looked at, and never fewer are found.
    const MIN_NODES: usize = 100;
    /// The least share.
    const MIN_PERCENTAGE: i64 = 5;
    if nodes < MIN_NODES {
        return nodes;
    }
    let all = nodes as i64;
    let percentage = match i64::from(percentage) {
        0 => (50 - all / 125).max(MIN_PERCENTAGE),
        set => set,
    };
    usize::try_from(all * percentage / 100).unwrap_or(0).max(MIN_NODES)
}

/// A stretch of a ring of `length` places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: usize,
    pub(crate) length: usize,
    pub(crate) ring: usize,
}

impl Window {
    /// As one or two ranges of places.
    pub(crate) fn ranges(self) -> [std::ops::Range<usize>; 2] {
        let end = self.start + self.length;
        [self.start..end.min(self.ring), 0..end.saturating_sub(self.ring)]
    }
}

/// The part of a word of 64 places that lies in the range.
fn masked(bits: &[u64], word: usize, range: &std::ops::Range<usize>) -> u64 {
    let from = range.start.saturating_sub(word * 64);
    let to = (range.end - word * 64).min(64);
    let below_end = if to == 64 { u64::MAX } else { (1 << to) - 1 };
    bits[word] & below_end & (u64::MAX << from)
}

/// How far from `start` the feasible place number `target` (from 0 on) is, going round the ring.
pub(crate) fn nth_feasible(bits: &[u64], ring: usize, start: usize, target: usize) -> Option<usize> {
    let mut left = target;
    for range in (Window { start, length: ring, ring }).ranges().into_iter().filter(|range| !range.is_empty()) {
        for word in range.start / 64..=(range.end - 1) / 64 {
            let mut set = masked(bits, word, &range);
            let count = set.count_ones() as usize;
            if left >= count {
                left -= count;
                continue;
            }
            for _ in 0..left {
                set &= set - 1;
            }
            let place = word * 64 + set.trailing_zeros() as usize;
            return Some(if place >= start { place - start } else { place + ring - start });
        }
    }
    None
}

/// The winning place of a window over kept scores: `scores` holds −1 where the bit of `feasible` is not set.
pub(crate) fn winner_in_window(feasible: &[u64], scores: &[i32], window: Window) -> Option<usize> {
    let most_of = |range: std::ops::Range<usize>| scores[range].iter().copied().max().unwrap_or(-1);
    let most = window.ranges().into_iter().map(most_of).max()?;
    if most < 0 {
        return None;
    }
    let mut best: Option<(usize, usize)> = None;
    let mut before = 0;
    for range in window.ranges().into_iter().filter(|range| !range.is_empty()) {
        for word in range.start / 64..=(range.end - 1) / 64 {
            let set = masked(feasible, word, &range);
            let part = &scores[range.start.max(word * 64)..range.end.min(word * 64 + 64)];
            // Without a branch per score, so that it is a few vector instructions.
            if part.iter().fold(false, |any, score| any | (*score == most)) {
                for (offset, score) in part.iter().enumerate() {
                    if *score != most {
                        continue;
                    }
                    let place = range.start.max(word * 64) + offset;
                    let index = before + (set & ((1 << (place % 64)) - 1)).count_ones() as usize;
                    if best.is_none_or(|(_, known)| precedes(index, known)) {
                        best = Some((place, index));
                    }
                }
            }
            before += set.count_ones() as usize;
        }
    }
    best.map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// container/heap's `Init`; after it the first is what `Pop` returns.
    fn by_heap(totals: &[i64]) -> Option<usize> {
        let mut heap: Vec<usize> = (0..totals.len()).collect();
        for start in (0..heap.len() / 2).rev() {
            let mut parent = start;
            loop {
                let left = 2 * parent + 1;
                let Some(child) = (left < heap.len()).then(|| {
                    let right_wins = left + 1 < heap.len() && totals[heap[left + 1]] > totals[heap[left]];
                    if right_wins { left + 1 } else { left }
                }) else {
                    break;
                };
                if totals[heap[child]] <= totals[heap[parent]] {
                    break;
                }
                heap.swap(parent, child);
                parent = child;
            }
        }
        heap.first().copied()
    }

    proptest! {
        #[test]
        fn the_winner_is_the_one_that_gos_heap_pops(totals in prop::collection::vec(0_i64..4, 0..300)) {
            prop_assert_eq!(winner(&totals), by_heap(&totals));
        }

        #[test]
        fn a_window_over_kept_scores_gives_the_same_winner_as_a_list(
            scores in prop::collection::vec(-1_i32..4, 1..300),
            start in 0_usize..300,
            wanted in 1_usize..300,
        ) {
            let ring = scores.len();
            let start = start % ring;
            let mut bits = vec![0_u64; ring.div_ceil(64)];
            scores.iter().enumerate().filter(|(_, s)| **s >= 0).for_each(|(at, _)| bits[at / 64] |= 1 << (at % 64));
            let places: Vec<usize> = (0..ring).map(|offset| (start + offset) % ring).filter(|at| scores[*at] >= 0).collect();
            for (number, place) in places.iter().enumerate() {
                let offset = nth_feasible(&bits, ring, start, number).unwrap();
                prop_assert_eq!((start + offset) % ring, *place);
            }
            prop_assert_eq!(nth_feasible(&bits, ring, start, places.len()), None);
            let length = nth_feasible(&bits, ring, start, wanted).unwrap_or(ring);
            let list: Vec<usize> = places.into_iter().take(wanted).collect();
            let totals: Vec<i64> = list.iter().map(|at| i64::from(scores[*at])).collect();
            let expected = winner(&totals).map(|at| list[at]);
            prop_assert_eq!(winner_in_window(&bits, &scores, Window { start, length, ring }), expected);
        }
    }

    #[test]
    fn as_many_nodes_are_looked_for_as_kubernetes_looks_for() {
        let cases = [
            (50, 0, 50),
            (99, 10, 99),
            (100, 0, 100),
            (1000, 0, 420),
            (5000, 0, 500),
            (6000, 0, 300),
            (1000, 100, 1000),
            (1000, 1, 100),
        ];
        for (nodes, percentage, expected) in cases {
            assert_eq!(nodes_to_find(nodes, percentage), expected, "{nodes} nodes, {percentage} %");
        }
    }
}
