//! Is a Job finished? Checks in the order of `syncJob`: what an earlier sync decided, then failures, then success.

use sk_apiserver::kinds::{JobCondition, Pod, PodPhase};
use sk_core::SimDuration;

use super::failure_policy;
use super::pods::{is_failed, phase};
use super::sync::Sync;

impl Sync<'_> {
    /// What ends the Job, or nothing.
    pub(super) fn verdict(&mut self) -> Option<JobCondition> {
        if let Some(met) = self.status.true_condition("SuccessCriteriaMet") {
            return Some(met.clone());
        }
        if let Some(target) = self.status.true_condition("FailureTarget") {
            return Some(JobCondition::new("Failed", true, target.reason.clone(), target.message.clone(), self.now));
        }
        self.failed_pod().or_else(|| self.too_many_failures()).or_else(|| self.too_late()).or_else(|| self.by_index())
    }

    fn fails(&self, reason: &'static str, message: impl Into<sk_core::SmolStr>) -> JobCondition {
        JobCondition::new("FailureTarget", true, reason, message, self.now)
    }

    /// A pod failed in a way that the policy does not put up with.
    fn failed_pod(&self) -> Option<JobCondition> {
        self.spec.pod_failure_policy.as_ref()?;
        let mut failed = self.pods.iter().filter(|pod| is_failed(pod, self.spec));
        let message = failed.find_map(|pod| failure_policy::judge(pod, self.spec).fails_job)?;
        Some(self.fails("PodFailurePolicy", message))
    }

    fn too_many_failures(&self) -> Option<JobCondition> {
        let limit = self.spec.backoff_limit();
        let exceeded = self.failed > limit || self.too_many_restarts(limit);
        exceeded.then(|| self.fails("BackoffLimitExceeded", "Job has reached the specified backoff limit"))
    }

    /// Containers that start again within their pod count, too.
    fn too_many_restarts(&self, limit: i32) -> bool {
        if self.spec.template.spec.restart_policy != "OnFailure" {
            return false;
        }
        let alive = self.pods.iter().filter(|pod| matches!(phase(pod), PodPhase::Running | PodPhase::Pending));
        let restarts = alive.filter_map(|pod| pod.pod()).map(Pod::restart_count).fold(0, i32::saturating_add);
        if limit == 0 { restarts > 0 } else { restarts >= limit }
    }

    fn too_late(&mut self) -> Option<JobCondition> {
        let deadline = self.spec.active_deadline_seconds.filter(|_| !self.spec.is_suspended())?;
        let left = SimDuration::from_secs(deadline) - self.now.since(self.status.start_time?);
        if left > SimDuration::ZERO {
            self.look_again(left);
            return None;
        }
        Some(self.fails("DeadlineExceeded", "Job was active longer than specified deadline"))
    }

    /// What only an indexed Job can end by.
    fn by_index(&self) -> Option<JobCondition> {
        let indexes = self.indexes.as_ref()?;
        if let Some(failed) = &indexes.failed {
            let most = self.spec.max_failed_indexes.map(|most| u64::from(most.unsigned_abs()));
            if most.is_some_and(|most| failed.total() > most) {
                let message = "Job has exceeded the specified maximal number of failed indexes";
                return Some(self.fails("MaxFailedIndexesExceeded", message));
            }
            let over = failed.total() + indexes.succeeded.total();
            if failed.total() > 0 && over >= u64::from(indexes.completions) {
                return Some(self.fails("FailedIndexes", "Job has failed indexes"));
            }
        }
        let policy = self.spec.success_policy.as_ref();
        let message = failure_policy::success(policy, indexes.completions, &indexes.succeeded)?;
        Some(JobCondition::new("SuccessCriteriaMet", true, "SuccessPolicy", message, self.now))
    }

    /// Have enough pods succeeded, with none left running?
    pub(super) fn is_complete(&self) -> bool {
        let enough = self.spec.completions.map_or(self.succeeded > 0, |wanted| self.succeeded >= wanted);
        enough && self.active == 0
    }
}
