//! One sync of a Job: its state before any decision, and the result.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use sk_apiserver::kinds::{Indexes, Job, JobCondition, JobSpec, JobStatus, PodPhase, UncountedTerminatedPods};
use sk_apiserver::{Object, Request, Uid, View};
use sk_core::{SimDuration, SimTime};

use super::Pods;
use super::backoff::Backoff;
use super::pods::{
    self, finished_at, index, is_active, is_failed, is_terminating, is_tracked, phase, ready_since, valid_index,
    whole_seconds,
};
use super::{creation, failure_policy};
use crate::controller::Plan;

/// A Job, its pods, and what is decided on the way.
pub(super) struct Sync<'a> {
    pub(super) object: &'a Arc<Object>,
    pub(super) spec: &'a JobSpec,
    pub(super) now: SimTime,
    /// Has everything been seen that earlier syncs did?
    pub(super) satisfied: bool,
    removals: &'a BTreeSet<Uid>,
    pub(super) pods: Pods<'a>,
    pub(super) active_pods: Pods<'a>,
    /// What the status knew of pods that are not counted yet, before this sync.
    pub(super) uncounted: UncountedTerminatedPods,
    pub(super) active: i32,
    pub(super) ready: i32,
    pub(super) terminating: i32,
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    /// Only for indexed Jobs.
    pub(super) indexes: Option<IndexState<'a>>,
    pub(super) backoff: Backoff,
    /// What ends the Job, once its last pods are gone.
    pub(super) finished: Option<JobCondition>,
    /// The status to be, and whether it says anything new.
    pub(super) status: JobStatus,
    pub(super) needs_flush: bool,
    pub(super) batches: VecDeque<Vec<Request>>,
    pub(super) expects: Option<(i64, i64)>,
    pub(super) again_after: Option<SimDuration>,
}

/// The indexes of an indexed Job.
pub(super) struct IndexState<'a> {
    pub(super) completions: u32,
    /// As the status had them.
    pub(super) counted: Indexes,
    /// With those of pods that are not counted yet.
    pub(super) succeeded: Indexes,
    /// Only with a limit per index.
    pub(super) failed: Option<Indexes>,
    /// The newest failed pod of indexes that have no pod now: it keeps its finalizer until its replacement carries on its
    /// number of failures.
    pub(super) awaiting: BTreeMap<u32, &'a Arc<Object>>,
}

/// What came of a sync.
pub(super) struct Outcome {
    pub(super) plan: Plan,
    /// Creations and deletions to be seen.
    pub(super) expects: Option<(i64, i64)>,
    /// Pods whose finalizers fall.
    pub(super) released: Vec<Uid>,
    /// The record of failures, once the status is written.
    pub(super) backoff: Option<Backoff>,
}

impl<'a> Sync<'a> {
    pub(super) fn new(
        object: &'a Arc<Object>,
        job: &'a Job,
        view: View<'a>,
        removals: &'a BTreeSet<Uid>,
        backoff: Backoff,
        satisfied: bool,
        now: SimTime,
    ) -> Self {
        let mut pods: Pods<'a> = pods::of(object, view).into_iter().map(|(_, pod)| pod).collect();
        pods.sort_by(|one, other| (one.created, &one.key).cmp(&(other.created, &other.key)));
        let active_pods: Pods<'a> = pods.iter().copied().filter(|pod| is_active(pod)).collect();
        let mut status = JobStatus::clone(&job.status);
        let uncounted = status.uncounted_terminated_pods.get_or_insert_default().clone();
        let mut sync = Self {
            object,
            spec: &job.spec,
            now,
            satisfied,
            removals,
            active: count(&active_pods),
            ready: count(active_pods.iter().filter(|pod| ready_since(pod).is_some())),
            terminating: count(pods.iter().filter(|pod| is_terminating(pod))),
            active_pods,
            uncounted,
            succeeded: 0,
            failed: 0,
            indexes: None,
            backoff,
            finished: None,
            needs_flush: false,
            status,
            pods,
            batches: VecDeque::new(),
            expects: None,
            again_after: None,
        };
        sync.count_ended(backoff);
        sync.indexes = sync.index_state();
        sync
    }

    /// The whole sync, in the order of `syncJob`.
    pub(super) fn run(mut self) -> Outcome {
        if self.status.start_time.is_none() && !self.spec.is_suspended() {
            self.status.start_time = Some(whole_seconds(self.now));
        }
        self.finished = self.verdict();
        let suspension_changed = match self.finished.is_some() {
            true => {
                self.delete_active();
                false
            }
            false => self.work_on(),
        };
        let figures = (self.active, Some(self.ready), Some(self.terminating));
        let known = (self.status.active, self.status.ready, self.status.terminating);
        self.needs_flush = suspension_changed || figures != known;
        (self.status.active, self.status.ready, self.status.terminating) = figures;
        self.track()
    }

    /// Is the finalizer there, and not on its way off?
    pub(super) fn has_finalizer(&self, pod: &Object) -> bool {
        is_tracked(pod) && !self.removals.contains(&pod.uid)
    }

    /// Counts the pods that have ended since the last sync.
    fn count_ended(&mut self, before: Backoff) {
        let succeeded = self.valid(&self.uncounted.succeeded, |pod| phase(pod) == PodPhase::Succeeded);
        let failed = self.valid(&self.uncounted.failed, |pod| is_failed(pod, self.spec));
        let counted = failed.iter().filter(|pod| failure_policy::judge(pod, self.spec).counts);
        self.failed = self.status.failed + count(counted) + count(&self.uncounted.failed);
        self.succeeded = self.status.succeeded + count(&succeeded) + count(&self.uncounted.succeeded);
        self.backoff = before.after(&succeeded, &failed);
    }

    /// Pods with a finalizer that are not in `uncounted` and, for an indexed Job, have one of its indexes.
    fn valid(&self, uncounted: &[Uid], accept: impl Fn(&Object) -> bool) -> Pods<'a> {
        let completions = self.completions();
        let is_valid = |pod: &Object| {
            self.has_finalizer(pod)
                && !uncounted.contains(&pod.uid)
                && (!self.spec.is_indexed() || valid_index(pod, completions).is_some())
                && accept(pod)
        };
        self.pods.iter().copied().filter(|pod| is_valid(pod)).collect()
    }

    pub(super) fn completions(&self) -> u32 {
        self.spec.completions.map_or(0, i32::unsigned_abs)
    }

    fn index_state(&mut self) -> Option<IndexState<'a>> {
        if !self.spec.is_indexed() {
            return None;
        }
        let completions = self.completions();
        let counted = Indexes::parse(&self.status.completed_indexes, completions);
        let ended = self.pods.iter().filter(|pod| phase(pod) == PodPhase::Succeeded && is_tracked(pod));
        let succeeded = counted.merge(&ended.filter_map(|pod| valid_index(pod, completions)).collect());
        self.succeeded = i32::try_from(succeeded.total()).unwrap_or(i32::MAX);
        let failed = self.spec.backoff_limit_per_index.map(|limit| self.failed_indexes(limit, completions));
        let awaiting = match &failed {
            Some(failed) => self.awaiting(&succeeded.merge(failed), completions),
            None => BTreeMap::new(),
        };
        Some(IndexState { completions, counted, succeeded, failed, awaiting })
    }

    fn failed_indexes(&self, limit: i32, completions: u32) -> Indexes {
        let is_over = |pod: &Object| {
            let failure = failure_policy::judge(pod, self.spec);
            failure.fails_index || (failure.counts && creation::index_failures(pod) >= limit.unsigned_abs())
        };
        let over = self.pods.iter().filter(|pod| is_tracked(pod) && is_failed(pod, self.spec) && is_over(pod));
        let known = Indexes::parse(self.status.failed_indexes.as_deref().unwrap_or_default(), completions);
        known.merge(&over.filter_map(|pod| valid_index(pod, completions)).collect())
    }

    /// The newest failed pod of every index that is neither over nor has a pod.
    fn awaiting(&self, over: &Indexes, completions: u32) -> BTreeMap<u32, &'a Arc<Object>> {
        let busy: BTreeSet<u32> = self.active_pods.iter().filter_map(|pod| index(pod)).collect();
        let mut awaiting = BTreeMap::<u32, &'a Arc<Object>>::new();
        for pod in self.valid(&[], |pod| is_failed(pod, self.spec)) {
            let Some(index) = valid_index(pod, completions).filter(|index| !over.has(*index) && !busy.contains(index))
            else {
                continue;
            };
            let age = |pod: &Object| (creation::all_index_failures(pod), finished_at(pod));
            let is_newer = |known: &&&Arc<Object>| {
                let ((failures, at), (known_failures, known_at)) = (age(pod), age(known));
                failures >= known_failures && at >= known_at
            };
            if awaiting.get(&index).is_none_or(|known| is_newer(&known)) {
                awaiting.insert(index, pod);
            }
        }
        awaiting
    }

    /// Looks again after this long at the latest.
    pub(super) fn look_again(&mut self, after: SimDuration) {
        self.again_after = Some(self.again_after.map_or(after, |known| known.min(after)));
    }
}

/// How many, as statuses count.
pub(super) fn count<I: IntoIterator>(things: I) -> i32 {
    i32::try_from(things.into_iter().count()).unwrap_or(i32::MAX)
}
