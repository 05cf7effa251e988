//! Creates and deletes a Job's pods (`manageJob`).

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::Object;
use sk_apiserver::kinds::{ConditionStatus, Indexes, JobCondition};
use sk_core::SimDuration;

use super::backoff::Backoff;
use super::pods::{delete, index, is_terminating, is_tracked, ready_since, release, sort_for_removal, whole_seconds};
use super::sync::{Sync, count};
use super::{BATCH_PERIOD, Pods, creation};

/// At most this many creations or deletions in one sync (`MaxPodCreateDeletePerSync`).
const MAX_PODS_PER_SYNC: usize = 500;

impl<'a> Sync<'a> {
    /// The Job is over: its active pods go. Their finalizers fall when they are counted.
    pub(super) fn delete_active(&mut self) {
        let deletions: Vec<_> = self.active_pods.iter().map(|pod| delete(pod)).collect();
        if !deletions.is_empty() {
            self.batches.push_back(deletions);
        }
        self.gone(&self.active_pods.clone());
        if !self.satisfied {
            // There may be pods that the cache does not show yet.
            self.finished = None;
        }
    }

    /// The Job is not over: brings the number of pods nearer to what is desired. Does the suspension change?
    pub(super) fn work_on(&mut self) -> bool {
        let manages = self.satisfied && !self.object.is_deleting();
        if manages {
            self.manage();
        }
        if self.is_complete() {
            let message = "Reached expected number of succeeded pods";
            self.finished =
                Some(JobCondition::new("SuccessCriteriaMet", true, "CompletionsReached", message, self.now));
            return false;
        }
        manages && self.note_suspension()
    }

    fn note_suspension(&mut self) -> bool {
        let (suspended, now) = (self.spec.is_suspended(), self.now);
        let (reason, message) =
            if suspended { ("JobSuspended", "Job suspended") } else { ("JobResumed", "Job resumed") };
        let wanted = if suspended { ConditionStatus::True } else { ConditionStatus::False };
        let known = self.status.conditions.iter_mut().find(|condition| condition.kind == "Suspended");
        let condition = JobCondition::new("Suspended", suspended, reason, message, now);
        match known {
            Some(known) if known.status == wanted => return false,
            Some(known) => *known = condition,
            // From nothing to false is no news.
            None if !suspended => return false,
            None => self.status.conditions.push(condition),
        }
        self.status.start_time = (!suspended).then(|| whole_seconds(now));
        true
    }

    fn manage(&mut self) {
        if self.spec.is_suspended() {
            let surplus = self.removable(self.active_pods.len());
            return self.delete_surplus(&surplus);
        }
        let wanted = self.wanted();
        let mut surplus = self.removable(usize::try_from(self.active - wanted).unwrap_or(0));
        surplus.truncate(MAX_PODS_PER_SYNC);
        if !surplus.is_empty() {
            // Either deletions or creations in one sync, and deletions come first.
            return self.delete_surplus(&surplus);
        }
        let going = if self.spec.only_replaces_failed() { self.terminating } else { 0 };
        let missing = usize::try_from(wanted - going - self.active).unwrap_or(0);
        if missing > 0 {
            self.create_missing(missing.min(MAX_PODS_PER_SYNC));
        }
    }

    /// How many pods should be active.
    fn wanted(&self) -> i32 {
        let parallelism = self.spec.parallelism();
        match self.spec.completions {
            // After the first success whatever runs may end.
            None if self.succeeded > 0 => self.active,
            None => parallelism,
            Some(completions) => (completions - self.succeeded).min(parallelism).max(0),
        }
    }

    /// The active pods to delete so that `at_least` go; pods of an index that is taken or not there go in any case.
    fn removable(&self, at_least: usize) -> Pods<'a> {
        let (mut surplus, mut left) = (Vec::new(), self.active_pods.clone());
        if let Some(indexes) = &self.indexes {
            let mut by_index = BTreeMap::<Option<u32>, Pods<'a>>::new();
            for pod in left.drain(..) {
                by_index.entry(index(pod).filter(|index| *index < indexes.completions)).or_default().push(pod);
            }
            for (index, mut pods) in by_index {
                sort_for_removal(&mut pods);
                left.extend(index.and_then(|_| pods.pop()));
                surplus.extend(pods);
            }
        }
        if surplus.len() < at_least {
            sort_for_removal(&mut left);
            surplus.extend(left.into_iter().take(at_least - surplus.len()));
        }
        surplus
    }

    /// Deleted on purpose, pods need not be counted: the finalizer falls first.
    fn delete_surplus(&mut self, surplus: &Pods<'a>) {
        if surplus.is_empty() {
            return;
        }
        self.expects = Some((0, i64::from(count(surplus))));
        self.batches.push_back(surplus.iter().filter(|pod| is_tracked(pod)).map(|pod| release(pod)).collect());
        self.batches.push_back(surplus.iter().map(|pod| delete(pod)).collect());
        self.gone(surplus);
    }

    fn gone(&mut self, pods: &[&Arc<Object>]) {
        self.active -= count(pods);
        self.terminating += count(pods);
        self.ready -= count(pods.iter().filter(|pod| ready_since(pod).is_some()));
    }

    fn create_missing(&mut self, missing: usize) {
        let creations = match self.indexes.is_some() {
            true => self.creations_by_index(missing),
            false => match self.backoff.remaining(self.now) {
                SimDuration::ZERO => (0..missing).map(|_| creation::pod(self.object, self.spec)).collect(),
                wait => {
                    self.look_again(wait.max(BATCH_PERIOD));
                    Vec::new()
                }
            },
        };
        self.expects = Some((i64::from(count(&creations)), 0)).filter(|_| !creations.is_empty());
        self.active += count(&creations);
        creation::slow_start(creations, &mut self.batches);
    }

    /// Pods for the first indexes that have none. Without a limit per index failures hold back all of them, with one only
    /// the index that failed.
    fn creations_by_index(&mut self, missing: usize) -> Vec<sk_apiserver::Request> {
        let per_index = self.spec.backoff_limit_per_index.is_some();
        let wait = if per_index { SimDuration::ZERO } else { self.backoff.remaining(self.now) };
        if wait > SimDuration::ZERO {
            self.look_again(wait.max(BATCH_PERIOD));
            return Vec::new();
        }
        let Some(indexes) = &self.indexes else { return Vec::new() };
        let candidates = self.pending_indexes().first_missing(missing, indexes.completions);
        let wait_of = |index: &u32| {
            let pod = indexes.awaiting.get(index)?;
            let wait = Backoff::of_index(pod, creation::all_index_failures(pod)).remaining(self.now);
            Some(wait).filter(|wait| *wait > SimDuration::ZERO)
        };
        let (now, later): (Vec<u32>, Vec<u32>) = candidates.into_iter().partition(|index| wait_of(index).is_none());
        let shortest = later.iter().filter_map(wait_of).min();
        let create =
            |index: &u32| creation::indexed_pod(self.object, self.spec, *index, indexes.awaiting.get(index).copied());
        let creations: Vec<_> = now.iter().map(create).collect();
        if let Some(wait) = shortest.filter(|_| creations.is_empty()) {
            self.look_again(wait.max(BATCH_PERIOD));
        }
        creations
    }

    /// Indexes that need no pod: over, active, or held by a pod that must end first.
    fn pending_indexes(&self) -> Indexes {
        let Some(indexes) = &self.indexes else { return Indexes::default() };
        let mut taken = indexes.succeeded.merge(&self.active_pods.iter().filter_map(|pod| index(pod)).collect());
        if self.spec.only_replaces_failed() {
            let going = self.pods.iter().filter(|pod| is_terminating(pod));
            taken = taken.merge(&going.filter_map(|pod| index(pod)).collect());
        }
        indexes.failed.as_ref().map_or(taken.clone(), |failed| taken.merge(failed))
    }
}
