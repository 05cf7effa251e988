//! A Deployment's status: counts, and the conditions Available and Progressing (`progress.go`, `sync.go`, 1.36).

use std::sync::Arc;

use serde_json::Value;
use sk_apiserver::kinds::{Condition, ConditionStatus, Deployment, DeploymentStatus};
use sk_apiserver::{Body, Object, Request};
use sk_core::{SimDuration, SimTime};

use super::annotations::{self, REVISION};
use super::rollout::{Rollout, Set};
use crate::controllers::replica_set::{CONDITIONS, REPLICA_FAILURE};

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
/// What the API server fills in for `progressDeadlineSeconds`.
const DEFAULT_DEADLINE_SECS: i64 = 600;
/// The deadline of a deployment that has none.
const NO_DEADLINE_SECS: i64 = i32::MAX as i64;

const PAUSED: &str = "DeploymentPaused";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const DONE: &str = "NewReplicaSetAvailable";
/// The condition's reason, and the Event's, where a replica set could not be made.
pub(super) const CREATE_ERROR: &str = "ReplicaSetCreateError";

impl Rollout<'_> {
    /// The status to write, if it is news, and when to look whether the rollout is stuck.
    pub(super) fn report(&self, is_rollout: bool) -> (Option<Request>, Option<SimDuration>) {
        let mut annotations = self.object.meta.annotations.clone();
        let mut conditions = self.deployment.status.conditions.clone();
        if !self.object.is_deleting() {
            self.note_pause(&mut conditions);
            self.note_newest(&mut conditions, &mut annotations);
        }
        let mut status = self.counts(conditions);
        self.note_availability(&mut status);
        if is_rollout {
            self.note_progress(&mut status);
            self.note_failure(&mut status);
        }
        if status == self.deployment.status && annotations == self.object.meta.annotations {
            return (None, is_rollout.then(|| self.next_progress_check(&status)).flatten());
        }
        let mut object = Object::clone(self.object);
        object.meta.annotations = annotations;
        object.body = Body::Deployment(Deployment { spec: self.deployment.spec.clone(), status });
        (Some(Request::update_status(object)), None)
    }

    /// Are all pods new and available, and no others there? (`DeploymentComplete`)
    pub(super) fn is_complete(&self, status: &DeploymentStatus) -> bool {
        let counts = [status.updated_replicas, status.replicas, status.available_replicas];
        counts.iter().all(|count| *count == self.wanted()) && status.observed_generation >= self.object.meta.generation
    }

    fn counts(&self, conditions: Vec<Condition>) -> DeploymentStatus {
        let sum = |count: fn(&Set<'_>) -> i32| self.sets().map(count).fold(0, i32::saturating_add);
        let available = self.sets().map(Set::available).fold(0, i32::saturating_add);
        let before = self.sets().map(Set::replicas_before).fold(0, i32::saturating_add);
        DeploymentStatus {
            observed_generation: self.object.meta.generation,
            replicas: sum(|set| set.status().map_or(0, |status| status.replicas)),
            updated_replicas: self.newest.as_ref().and_then(Set::status).map_or(0, |status| status.replicas),
            ready_replicas: sum(|set| set.status().map_or(0, |status| status.ready_replicas)),
            available_replicas: available,
            unavailable_replicas: before.saturating_sub(available).max(0),
            terminating_replicas: self.terminating(),
            conditions,
            collision_count: self.deployment.status.collision_count,
            rest: self.deployment.status.rest.clone(),
        }
    }

    /// Terminating pods; unknown while a synced ReplicaSet has not reported its own.
    fn terminating(&self) -> Option<i32> {
        let reports = self.sets().filter_map(Set::status);
        let reports = reports.filter(|status| status.observed_generation > 0 || status.terminating_replicas.is_some());
        reports.map(|status| status.terminating_replicas).sum()
    }

    fn deadline(&self) -> Option<SimDuration> {
        deadline(self.deployment)
    }

    /// Lack of progress is not counted while paused (`checkPausedConditions`).
    fn note_pause(&self, conditions: &mut Vec<Condition>) {
        let reason = find(conditions, PROGRESSING).map_or("", Condition::reason);
        if self.deadline().is_none() || reason == TIMED_OUT {
            return;
        }
        let (is_paused, was_paused) = (self.deployment.spec.paused, reason == PAUSED);
        let (reason, message) = match (is_paused, was_paused) {
            (true, false) => (PAUSED, "Deployment is paused"),
            (false, true) => ("DeploymentResumed", "Deployment is resumed"),
            (true, true) | (false, false) => return,
        };
        let mut unknown = Condition::new(PROGRESSING, false, self.now).because(reason, message).updated(self.now);
        unknown.status = ConditionStatus::Unknown;
        set(conditions, unknown);
    }

    /// The deployment bears its newest set's revision, and says that it made the set.
    fn note_newest(&self, conditions: &mut Vec<Condition>, annotations: &mut sk_apiserver::Labels) {
        let Some(newest) = &self.newest else { return };
        if let Some(revision) = newest.annotations.get(&REVISION) {
            annotations::set(annotations, REVISION, revision.clone());
        }
        let is_first_word = find(conditions, PROGRESSING).is_none();
        if self.deadline().is_none() || !(newest.is_new() || is_first_word) {
            return;
        }
        let (reason, message) = match newest.is_new() {
            true => ("NewReplicaSetCreated", format!("Created new replica set \"{}\"", newest.name())),
            false => ("FoundNewReplicaSet", format!("Found new replica set \"{}\"", newest.name())),
        };
        set(conditions, Condition::new(PROGRESSING, true, self.now).because(reason, message).updated(self.now));
    }

    fn note_availability(&self, status: &mut DeploymentStatus) {
        let enough = status.available_replicas >= self.wanted() - self.sizes.max_unavailable;
        let (reason, message) = match enough {
            true => ("MinimumReplicasAvailable", "Deployment has minimum availability."),
            false => ("MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
        };
        let condition = Condition::new(AVAILABLE, enough, self.now).because(reason, message).updated(self.now);
        set(&mut status.conditions, condition);
    }

    /// Done, getting on, or stuck for too long (`syncRolloutStatus`).
    fn note_progress(&self, status: &mut DeploymentStatus) {
        let Some(deadline) = self.deadline() else {
            return status.conditions.retain(|condition| !condition.is(PROGRESSING));
        };
        let current = find(&self.deployment.status.conditions, PROGRESSING).cloned();
        let was_done = current.as_ref().is_some_and(|condition| condition.reason() == DONE);
        if status.replicas == status.updated_replicas && was_done {
            return;
        }
        let who = match &self.newest {
            Some(set) => format!("ReplicaSet \"{}\"", set.name()),
            None => format!("Deployment \"{}\"", self.object.key.name),
        };
        let holds = |reason: &'static str, what: &str| {
            Condition::new(PROGRESSING, true, self.now).because(reason, format!("{who} {what}")).updated(self.now)
        };
        if self.is_complete(status) {
            set(&mut status.conditions, holds(DONE, "has successfully progressed."));
        } else if self.got_on(status) {
            let mut progressing = holds("ReplicaSetUpdated", "is progressing.");
            // Only here is a condition renewed that says the same: its time is when progress was last seen.
            if let Some(current) = current.filter(Condition::is_true) {
                progressing.last_transition_time = current.last_transition_time;
            }
            status.conditions.retain(|condition| !condition.is(PROGRESSING));
            status.conditions.push(progressing);
        } else if self.is_stuck(status, deadline) {
            let mut stuck = holds(TIMED_OUT, "has timed out progressing.");
            stuck.status = ConditionStatus::False;
            set(&mut status.conditions, stuck);
        }
    }

    /// What a replica set was refused, its deployment says, too: the newest one's first (`getReplicaFailures`).
    fn note_failure(&self, status: &mut DeploymentStatus) {
        let failure = |set: &Set<'_>| {
            let known = set.status()?.rest.get(CONDITIONS)?.as_array()?;
            let failure = known.iter().find(|condition| condition["type"] == REPLICA_FAILURE)?;
            serde_json::from_value::<Condition>(failure.clone()).ok()
        };
        match self.newest.iter().chain(&self.old).find_map(failure) {
            Some(condition) => {
                let since = condition.last_transition_time.unwrap_or(self.now);
                set(&mut status.conditions, condition.updated(since));
            }
            None => status.conditions.retain(|condition| !condition.is(REPLICA_FAILURE)),
        }
    }

    fn got_on(&self, status: &DeploymentStatus) -> bool {
        let before = &self.deployment.status;
        let old_pods = |status: &DeploymentStatus| status.replicas - status.updated_replicas;
        status.updated_replicas > before.updated_replicas
            || old_pods(status) < old_pods(before)
            || status.ready_replicas > before.ready_replicas
            || status.available_replicas > before.available_replicas
    }

    fn is_stuck(&self, status: &DeploymentStatus, deadline: SimDuration) -> bool {
        let Some(condition) = find(&status.conditions, PROGRESSING) else { return false };
        match condition.reason() {
            DONE => false,
            TIMED_OUT => true,
            _ => condition.last_update_time().is_some_and(|since| since + deadline < self.now),
        }
    }

    /// When a rollout that shows no progress is to be looked at again (`requeueStuckDeployment`).
    fn next_progress_check(&self, status: &DeploymentStatus) -> Option<SimDuration> {
        const SKEW: SimDuration = SimDuration::from_secs(1);
        let current = find(&self.deployment.status.conditions, PROGRESSING)?;
        if self.is_complete(status) || current.reason() == TIMED_OUT {
            return None;
        }
        let due: SimTime = current.last_update_time()? + self.deadline()?;
        Some(due.since(self.now).max(SimDuration::ZERO) + SKEW)
    }
}

/// The status of a deployment whose replica set could not be made, if that is news and it has a deadline for its progress.
pub(super) fn create_error(
    object: &Arc<Object>,
    deployment: &Deployment,
    message: String,
    now: SimTime,
) -> Option<Request> {
    deadline(deployment)?;
    let mut status = deployment.status.clone();
    set(&mut status.conditions, Condition::new(PROGRESSING, false, now).because(CREATE_ERROR, message).updated(now));
    if status == deployment.status {
        return None;
    }
    let mut object = Object::clone(object);
    object.body = Body::Deployment(Deployment { spec: deployment.spec.clone(), status });
    Some(Request::update_status(object))
}

fn deadline(deployment: &Deployment) -> Option<SimDuration> {
    let written = deployment.spec.rest.get("progressDeadlineSeconds").and_then(Value::as_i64);
    let secs = written.unwrap_or(DEFAULT_DEADLINE_SECS);
    (secs != NO_DEADLINE_SECS).then(|| SimDuration::from_secs(secs))
}

fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.is(kind))
}

/// Sets a condition that says something new; it then comes last (`SetDeploymentCondition`).
fn set(conditions: &mut Vec<Condition>, mut condition: Condition) {
    if let Some(known) = find(conditions, condition.kind()) {
        if known.status == condition.status && known.reason() == condition.reason() {
            return;
        }
        if known.status == condition.status {
            condition.last_transition_time = known.last_transition_time;
        }
    }
    conditions.retain(|known| !known.is(condition.kind()));
    conditions.push(condition);
}
