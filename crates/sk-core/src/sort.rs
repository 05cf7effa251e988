//! Go's `sort.Slice`, for places where Kubernetes' answer depends on it.
//!
//! That sort is not stable: what it does with equals is neither their old order nor chance, but a consequence of the
//! algorithm (pattern-defeating quicksort, Go 1.19 and later). And some of Kubernetes' comparisons are no orders at
//! all: of two pods that have not started, each counts as the older one. So the same steps are taken here.

/// Ranges up to this length are sorted by insertion.
const INSERTION: usize = 12;
/// Ranges from this length on have a pivot of nine and are worth mending when they are nearly sorted.
const LONG: usize = 50;
/// Ranges from this length on have a pivot of three, and can be mixed.
const SHORT: usize = 8;
/// So many places out of order are mended in a range that looks sorted.
const MENDED: usize = 5;
/// So many exchanges while a pivot is chosen mean that the range is in reverse.
const ALL_EXCHANGED: usize = 12;

/// Sorts as Go does. `less` need not be an order; whatever it says, the sort ends.
pub fn sort_slice<T>(list: &mut [T], less: impl FnMut(&T, &T) -> bool) {
    let bad_pivots = usize::BITS - list.len().leading_zeros();
    let len = list.len();
    Sort { list, less }.quick(0, len, bad_pivots);
}

/// What a choice of pivot says about its range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looks {
    Sorted,
    Mixed,
    Reversed,
}

struct Sort<'a, T, F> {
    list: &'a mut [T],
    less: F,
}

impl<T, F: FnMut(&T, &T) -> bool> Sort<'_, T, F> {
    fn less(&mut self, one: usize, other: usize) -> bool {
        (self.less)(&self.list[one], &self.list[other])
    }

    /// Sorts `from..to`; after `bad_pivots` more of them, by a heap.
    fn quick(&mut self, mut from: usize, mut to: usize, mut bad_pivots: u32) {
        let (mut is_balanced, mut is_partitioned) = (true, true);
        loop {
            let len = to - from;
            if len <= INSERTION {
                return self.insert(from, to);
            }
            if bad_pivots == 0 {
                return self.heap(from, to);
            }
            if !is_balanced {
                self.mix(from, to);
                bad_pivots -= 1;
            }
            let (mut pivot, mut looks) = self.pivot(from, to);
            if looks == Looks::Reversed {
                self.list[from..to].reverse();
                pivot = (to - 1) - (pivot - from);
                looks = Looks::Sorted;
            }
            if is_balanced && is_partitioned && looks == Looks::Sorted && self.mend(from, to) {
                return;
            }
            // Nothing here is less than what stands before the range: what equals the pivot is in its place.
            if from > 0 && !self.less(from - 1, pivot) {
                from = self.part_equals(from, to, pivot);
                continue;
            }
            let (middle, was_partitioned) = self.part(from, to, pivot);
            is_partitioned = was_partitioned;
            let (left, right) = (middle - from, to - middle);
            if left < right {
                is_balanced = left >= len / 8;
                self.quick(from, middle, bad_pivots);
                from = middle + 1;
            } else {
                is_balanced = right >= len / 8;
                self.quick(middle + 1, to, bad_pivots);
                to = middle;
            }
        }
    }

    fn insert(&mut self, from: usize, to: usize) {
        for next in from + 1..to {
            self.sink(next, from);
        }
    }

    /// Moves one towards `first` as long as it is less than the one before it.
    fn sink(&mut self, mut at: usize, first: usize) {
        while at > first && self.less(at, at - 1) {
            self.list.swap(at, at - 1);
            at -= 1;
        }
    }

    fn heap(&mut self, from: usize, to: usize) {
        let len = to - from;
        for root in (0..=(len - 1) / 2).rev() {
            self.sift(from, root, len);
        }
        for last in (0..len).rev() {
            self.list.swap(from, from + last);
            self.sift(from, 0, last);
        }
    }

    fn sift(&mut self, from: usize, mut root: usize, len: usize) {
        loop {
            let mut child = 2 * root + 1;
            if child >= len {
                return;
            }
            if child + 1 < len && self.less(from + child, from + child + 1) {
                child += 1;
            }
            if !self.less(from + root, from + child) {
                return;
            }
            self.list.swap(from + root, from + child);
            root = child;
        }
    }

    /// Exchanges three in the middle with others, by numbers that depend on the length alone.
    fn mix(&mut self, from: usize, to: usize) {
        let len = to - from;
        if len < SHORT {
            return;
        }
        let mut random = len as u64;
        let mask = (1_u64 << (u64::BITS - random.leading_zeros())) - 1;
        let middle = from + len / 4 * 2;
        for at in middle - 1..=middle + 1 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let other = (random & mask) as usize;
            self.list.swap(at, from + if other >= len { other - len } else { other });
        }
    }

    fn pivot(&mut self, from: usize, to: usize) -> (usize, Looks) {
        let len = to - from;
        let [mut one, mut two, mut three] = [1, 2, 3].map(|quarter| from + len / 4 * quarter);
        let mut exchanges = 0;
        if len >= SHORT {
            if len >= LONG {
                for at in [&mut one, &mut two, &mut three] {
                    *at = self.median([*at - 1, *at, *at + 1], &mut exchanges);
                }
            }
            two = self.median([one, two, three], &mut exchanges);
        }
        let looks = match exchanges {
            0 => Looks::Sorted,
            ALL_EXCHANGED => Looks::Reversed,
            _ => Looks::Mixed,
        };
        (two, looks)
    }

    fn median(&mut self, [mut one, mut two, mut three]: [usize; 3], exchanges: &mut usize) -> usize {
        self.order(&mut one, &mut two, exchanges);
        self.order(&mut two, &mut three, exchanges);
        self.order(&mut one, &mut two, exchanges);
        two
    }

    fn order(&mut self, one: &mut usize, other: &mut usize, exchanges: &mut usize) {
        if self.less(*other, *one) {
            std::mem::swap(one, other);
            *exchanges += 1;
        }
    }

    /// Mends a few places that are out of order; is the range sorted now?
    fn mend(&mut self, from: usize, to: usize) -> bool {
        let mut at = from + 1;
        for _ in 0..MENDED {
            while at < to && !self.less(at, at - 1) {
                at += 1;
            }
            if at == to {
                return true;
            }
            if to - from < LONG {
                return false;
            }
            self.list.swap(at, at - 1);
            if at - from >= 2 {
                // Go looks back beyond the range here.
                self.sink(at - 1, 0);
            }
            if to - at >= 2 {
                let mut next = at + 1;
                while next < to && self.less(next, next - 1) {
                    self.list.swap(next, next - 1);
                    next += 1;
                }
            }
        }
        false
    }

    /// Puts what is less than the pivot before it and the rest behind; where it is now, and was it so already?
    fn part(&mut self, from: usize, to: usize, pivot: usize) -> (usize, bool) {
        self.list.swap(from, pivot);
        let (mut low, mut high) = (from + 1, to - 1);
        let mut was_so = true;
        loop {
            while low <= high && self.less(low, from) {
                low += 1;
            }
            while low <= high && !self.less(high, from) {
                high -= 1;
            }
            if low > high {
                self.list.swap(high, from);
                return (high, was_so);
            }
            self.list.swap(low, high);
            (low, high, was_so) = (low + 1, high - 1, false);
        }
    }

    /// Puts what equals the pivot first; where the rest begins.
    fn part_equals(&mut self, from: usize, to: usize, pivot: usize) -> usize {
        self.list.swap(from, pivot);
        let (mut low, mut high) = (from + 1, to - 1);
        loop {
            while low <= high && !self.less(from, low) {
                low += 1;
            }
            while low <= high && self.less(from, high) {
                high -= 1;
            }
            if low > high {
                return low;
            }
            self.list.swap(low, high);
            (low, high) = (low + 1, high - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn lists_come_out_sorted_and_a_comparison_that_is_no_order_ends() {
        let mut draw = Stream::new(3, "sort");
        for len in 0..300_u64 {
            let mut list: Vec<u64> = (0..len).map(|_| draw.below(len)).collect();
            let mut sorted = list.clone();
            sorted.sort_unstable();
            sort_slice(&mut list, |one, other| one < other);
            assert_eq!(list, sorted);
            sort_slice(&mut list, |_, _| true);
            sort_slice(&mut list, |_, _| draw.below(2) == 0);
            list.sort_unstable();
            assert_eq!(list, sorted, "nothing is lost");
        }
    }
}
