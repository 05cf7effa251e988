//! Which of the best-scored nodes wins: the top of a heap built exactly as Go's `container/heap` builds it.
//!
//! kube-scheduler 1.36 heapifies the feasible nodes in search order, higher score first, and pops one. Among equal
//! scores the winner is therefore decided by the heap's moves, not by chance: its random tie-break is only set when
//! extenders are configured.

/// The index of the winner; `None` for no scores.
pub(crate) fn select_host(scores: &[i64]) -> Option<usize> {
    let mut heap: Vec<usize> = (0..scores.len()).collect();
    // heap.Init; after it the top is what heap.Pop returns.
    for start in (0..heap.len() / 2).rev() {
        sift_down(&mut heap, scores, start);
    }
    heap.first().copied()
}

fn sift_down(heap: &mut [usize], scores: &[i64], mut parent: usize) {
    loop {
        let left = 2 * parent + 1;
        if left >= heap.len() {
            return;
        }
        let right = left + 1;
        let better_right = right < heap.len() && scores[heap[right]] > scores[heap[left]];
        let child = if better_right { right } else { left };
        if scores[heap[child]] <= scores[heap[parent]] {
            return;
        }
        heap.swap(parent, child);
        parent = child;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_score_wins_and_ties_go_as_gos_heap_goes() {
        assert_eq!(select_host(&[]), None);
        assert_eq!(select_host(&[5, 9, 7]), Some(1));
        assert_eq!(select_host(&[5, 5, 5]), Some(0), "no move among equals");
        // Values checked with container/heap: 3 moves up to slot 1 first, then to the top, before 2 is compared.
        assert_eq!(select_host(&[1, 1, 9, 9]), Some(3));
        assert_eq!(select_host(&[1, 9, 9]), Some(1));
    }
}
