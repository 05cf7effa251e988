//! Counts pods exactly once (`trackJobStatusAndRemoveFinalizers`): first the status with the uncounted uids, then the
//! finalizers, then the status with the counters.

use std::sync::Arc;

use sk_apiserver::kinds::{Job, JobCondition, JobStatus, PodPhase};
use sk_apiserver::{Body, Object, Request, Uid};

use super::failure_policy;
use super::pods::{index, is_failed, phase, release, valid_index};
use super::sync::{Outcome, Sync};
use crate::controller::Plan;

/// So many pods are counted in one sync (`MaxUncountedPods`): their uids in the status stay below 20 KB.
const MAX_UNCOUNTED: usize = 500;

/// The pods that are counted in this sync.
struct Counted<'a> {
    pods: Vec<&'a Arc<Object>>,
    /// There are more, for the next sync.
    is_full: bool,
}

impl<'a> Sync<'a> {
    /// Ends a sync: what is written, and in which order.
    pub(super) fn track(mut self) -> Outcome {
        self.needs_flush |= self.forget_released();
        let counted = self.count_pods();
        let final_condition = self.interim_condition();
        let mut backoff = None;
        let first = self.needs_flush.then(|| {
            backoff = Some(self.backoff);
            self.status.clone()
        });
        let release_now: Vec<Request> = counted.pods.iter().map(|pod| release(pod)).collect();
        let released: Vec<Uid> = counted.pods.iter().map(|pod| pod.uid).collect();
        // The plan goes on only if all finalizers have fallen.
        let mut flush_again = self.forget(|uid| released.contains(uid));
        if !counted.is_full && self.is_final() {
            flush_again |= self.conclude(final_condition);
        }
        if let Some(status) = first.clone() {
            self.batches.push_back(vec![write(self.object, status, self.object.resource_version)]);
        }
        if !release_now.is_empty() {
            self.batches.push_back(release_now);
        }
        if flush_again {
            // The second write of a sync goes by what the first one left behind.
            let version = if first.is_some() { 0 } else { self.object.resource_version };
            self.batches.push_back(vec![write(self.object, self.status, version)]);
        }
        let batches = self.batches.into_iter().filter(|batch| !batch.is_empty()).collect();
        let plan = Plan { batches, again_after: self.again_after };
        Outcome { plan, expects: self.expects, released, backoff }
    }

    /// Pods of an earlier sync whose finalizers have fallen since go into the counters.
    fn forget_released(&mut self) -> bool {
        let tracked: Vec<Uid> = self.pods.iter().filter(|pod| self.has_finalizer(pod)).map(|pod| pod.uid).collect();
        self.forget(|uid| !tracked.contains(uid))
    }

    /// Moves uncounted pods into the counters. Was there any?
    fn forget(&mut self, is_released: impl Fn(&Uid) -> bool) -> bool {
        let uncounted = self.status.uncounted_terminated_pods.get_or_insert_default();
        let mut any = false;
        let lists =
            [(&mut uncounted.succeeded, &mut self.status.succeeded), (&mut uncounted.failed, &mut self.status.failed)];
        for (uids, counter) in lists {
            let before = uids.len();
            uids.retain(|uid| !is_released(uid));
            *counter = counter.saturating_add(i32::try_from(before - uids.len()).unwrap_or(i32::MAX));
            any |= uids.len() != before;
        }
        any
    }

    /// Writes pods that have ended down as uncounted, and their indexes as succeeded or failed.
    fn count_pods(&mut self) -> Counted<'a> {
        let mut pods: Vec<_> = self.pods.iter().copied().filter(|pod| self.has_finalizer(pod)).collect();
        if self.indexes.is_some() {
            pods.sort_by_key(|pod| index(pod));
        }
        let mut counted = Counted { pods: Vec::new(), is_full: false };
        let mut new_indexes = Vec::new();
        for pod in pods {
            if !self.may_release(pod) {
                continue;
            }
            counted.pods.push(pod);
            self.note_end(pod, &mut new_indexes);
            let uncounted = self.status.uncounted_terminated_pods.get_or_insert_default();
            if new_indexes.len() + uncounted.succeeded.len() + uncounted.failed.len() >= MAX_UNCOUNTED {
                counted.is_full = true;
                break;
            }
        }
        self.write_indexes(new_indexes);
        counted
    }

    /// Has the pod ended for this Job? The pod of an index that failed stays until its replacement is there.
    fn may_release(&self, pod: &Arc<Object>) -> bool {
        if self.object.is_deleting() || self.finished.is_some() || phase(pod) == PodPhase::Succeeded {
            return true;
        }
        let awaits = self.indexes.as_ref().is_some_and(|indexes| {
            index(pod).and_then(|index| indexes.awaiting.get(&index)).is_some_and(|known| known.uid == pod.uid)
        });
        is_failed(pod, self.spec) && !awaits
    }

    fn note_end(&mut self, pod: &Object, new_indexes: &mut Vec<u32>) {
        let index = self.indexes.as_ref().map(|indexes| valid_index(pod, indexes.completions));
        let failed_before = self.uncounted.failed.contains(&pod.uid);
        let uncounted = self.status.uncounted_terminated_pods.get_or_insert_default();
        if phase(pod) == PodPhase::Succeeded && !failed_before {
            match (index, &self.indexes) {
                (Some(Some(index)), Some(indexes)) if !indexes.counted.has(index) => {
                    new_indexes.push(index);
                    self.needs_flush = true;
                }
                (Some(_), _) => {}
                (None, _) if self.uncounted.succeeded.contains(&pod.uid) => {}
                (None, _) => {
                    uncounted.succeeded.push(pod.uid);
                    self.needs_flush = true;
                }
            }
            return;
        }
        let job_fails = self.finished.as_ref().is_some_and(|finished| finished.kind != "SuccessCriteriaMet");
        let is_ours = index.is_none_or(|index| index.is_some());
        let counts = is_ours && !failed_before && failure_policy::judge(pod, self.spec).counts;
        if (is_failed(pod, self.spec) || job_fails) && counts {
            uncounted.failed.push(pod.uid);
            self.needs_flush = true;
        }
    }

    fn write_indexes(&mut self, new_indexes: Vec<u32>) {
        let Some(indexes) = &self.indexes else { return };
        let succeeded = indexes.succeeded.merge(&new_indexes.into_iter().collect());
        self.status.succeeded = i32::try_from(succeeded.total()).unwrap_or(i32::MAX);
        let (text, failed) = (succeeded.to_string(), indexes.failed.as_ref().map(ToString::to_string));
        self.needs_flush |= text != self.status.completed_indexes || failed != self.status.failed_indexes;
        (self.status.completed_indexes, self.status.failed_indexes) = (text, failed);
    }

    /// Announces the end before finalizers fall, and says what the Job will be called when they have.
    fn interim_condition(&mut self) -> Option<JobCondition> {
        let finished = self.finished.clone()?;
        let kind = match finished.kind.as_str() {
            "FailureTarget" => {
                self.status.conditions.push(finished.clone());
                self.needs_flush = true;
                "Failed"
            }
            "SuccessCriteriaMet" => {
                if self.status.true_condition("SuccessCriteriaMet").is_none() {
                    self.status.conditions.push(finished.clone());
                    self.needs_flush = true;
                }
                "Complete"
            }
            _ => "Failed",
        };
        Some(JobCondition::new(kind, true, finished.reason, finished.message, self.now))
    }

    /// Is no pod left to count or to delete?
    fn is_final(&self) -> bool {
        let uncounted = self.status.uncounted_terminated_pods.as_ref();
        let left = uncounted.map_or(0, |uncounted| uncounted.succeeded.len() + uncounted.failed.len());
        self.finished.is_some() && left == 0 && self.terminating == 0
    }

    /// The Job is over.
    fn conclude(&mut self, condition: Option<JobCondition>) -> bool {
        let Some(condition) = condition else { return false };
        if condition.kind == "Complete" {
            self.status.completion_time = condition.last_transition_time;
        }
        self.status.conditions.push(condition);
        true
    }
}

/// Writes the status; `version` 0 means whatever is there.
fn write(object: &Arc<Object>, status: JobStatus, version: u64) -> Request {
    let mut updated = Object::clone(object);
    updated.resource_version = version;
    if let Body::Job(job) = &mut updated.body {
        *job = Job { spec: job.spec.clone(), status: Arc::new(status) };
    }
    Request::update_status(updated)
}
