//! Proportional scaling: while several ReplicaSets have pods, each gets its share of a new size, so that scaling does
//! not speed up a rollout (`sync.go`, `scale`, 1.36).

use std::cmp::Reverse;

use super::annotations::{self, MAX_REPLICAS};
use super::rollout::{Rollout, Set};

impl Rollout<'_> {
    /// The Deployment's size differs from the one in its ReplicaSets' annotations.
    pub(super) fn is_being_scaled(&self) -> bool {
        let mut active = self.sets().filter(|set| set.replicas > 0);
        active.any(|set| {
            let told = annotations::number(&set.annotations, &annotations::DESIRED_REPLICAS);
            told.is_some_and(|told| told != self.wanted())
        })
    }

    /// Follows the size that is wanted.
    pub(super) fn scale(&mut self) {
        let wanted = self.wanted();
        let active = self.sets().filter(|set| set.replicas > 0).count();
        if active <= 1 {
            let newest = self.newest.iter_mut().chain(self.old.iter_mut().rev());
            let mut candidates: Vec<_> = newest.collect();
            let place = candidates.iter().position(|set| set.replicas > 0).unwrap_or(0);
            let sizes = self.sizes;
            if let Some(set) = candidates.get_mut(place).filter(|set| set.replicas != wanted) {
                set.resize(wanted, sizes);
            }
        } else if self.newest.as_ref().is_some_and(|set| self.is_saturated(set)) {
            let sizes = self.sizes;
            self.old.iter_mut().filter(|set| set.replicas > 0).for_each(|set| set.resize(0, sizes));
        } else if self.is_rolling() {
            self.scale_in_proportion();
        }
    }

    fn is_saturated(&self, set: &Set<'_>) -> bool {
        let told = annotations::number(&set.annotations, &annotations::DESIRED_REPLICAS);
        set.replicas == self.wanted() && told == Some(self.wanted()) && set.available() == self.wanted()
    }

    fn scale_in_proportion(&mut self) {
        let (wanted, sizes, reported) = (self.wanted(), self.sizes, self.deployment.status.replicas);
        let allowed = if wanted > 0 { sizes.max } else { 0 };
        let to_add = allowed.saturating_sub(self.total());
        let mut active: Vec<&mut Set<'_>> =
            self.old.iter_mut().chain(&mut self.newest).filter(|set| set.replicas > 0).collect();
        // The largest first; of equal ones the newest grows and the oldest shrinks first.
        active.sort_by_key(|set| (set.age(), set.name().clone()));
        if to_add > 0 {
            active.reverse();
        }
        active.sort_by_key(|set| Reverse(set.replicas));
        let mut added = 0_i32;
        let mut targets = Vec::new();
        for set in &active {
            let share = share(set, wanted, sizes.max, reported);
            let left = to_add - added;
            let change = match to_add {
                0 => 0,
                _ if left == 0 => 0,
                1.. => share.min(left),
                _ => share.max(left),
            };
            added += change;
            targets.push(set.replicas + change);
        }
        if let Some(first) = targets.first_mut().filter(|_| to_add != 0) {
            *first = (*first + to_add - added).max(0);
        }
        for (set, target) in active.into_iter().zip(targets) {
            set.resize(target, sizes);
        }
    }
}

/// By how much a set's share of the whole changes (`getReplicaSetFraction`).
fn share(set: &Set<'_>, wanted: i32, max: i32, reported: i32) -> i32 {
    if wanted == 0 {
        return -set.replicas;
    }
    let before = annotations::number(&set.annotations, &MAX_REPLICAS).filter(|before| *before > 0).unwrap_or(reported);
    if before == 0 {
        return 0;
    }
    let (whole, before) = (i64::from(set.replicas) * i64::from(max), i64::from(before));
    // Rounded half up: all of these are positive.
    let size = (2 * whole + before) / (2 * before);
    i32::try_from(size).unwrap_or(i32::MAX).saturating_sub(set.replicas)
}
