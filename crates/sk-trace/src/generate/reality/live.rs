//! One pod of the generated history: when it was created, bound and started, on which node, and its observation as a tracer
//! would record it.

use std::sync::Arc;

use sk_core::{ObjectKey, ObjectRef, SimDuration, SimTime, SmolStr, TemplateId};
use sk_store::trace::{Observation, Wait};

use super::fleet::{Fleet, MachineId, Need};
use crate::generate::random::Draw;

/// How long controllers, scheduler and kubelet take for their step, in milliseconds. [ours]
const CREATE_MS: (u64, u64) = (5, 150);
const BIND_MS: (u64, u64) = (5, 50);
pub(super) const START_MS: (u64, u64) = (800, 9_000);
const STOP_MS: (u64, u64) = (500, 8_000);
const REMOVE_MS: (u64, u64) = (50, 900);
/// The age of pods that are there at the beginning, in minutes.
const AGE_MINUTES: (u64, u64) = (10, 20 * 24 * 60);

/// One version of a pod template.
#[derive(Debug)]
pub(super) struct Revision {
    pub(super) template: TemplateId,
    /// What stands between the names of owner and pod, e.g. a ReplicaSet's hash.
    pub(super) infix: SmolStr,
}

/// A pod that is there.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) name: SmolStr,
    pub(super) revision: Arc<Revision>,
    pub(super) created: SimTime,
    pub(super) scheduled: SimTime,
    pub(super) started: SimTime,
    pub(super) machine: MachineId,
    /// What the scheduler said before it found a place.
    says: Option<Box<str>>,
}

/// How a pod ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    pub(super) finished: Option<SimTime>,
    pub(super) deleted: Option<SimTime>,
}

fn millis(draw: &mut Draw, (low, high): (u64, u64)) -> SimDuration {
    SimDuration::from_millis(draw.between(low, high) as i64)
}

impl Live {
    /// A new pod on the machine that the fleet finds for it. What stands at the start has stood for a while.
    pub(super) fn create(
        fleet: &mut Fleet,
        at: SimTime,
        (name, revision): (SmolStr, &Arc<Revision>),
        need: &Need,
        siblings: &[MachineId],
        draw: &mut Draw,
    ) -> Self {
        let place = fleet.place(at, need, siblings);
        let mut pod = Self::on(at, (name, revision), place.machine, fleet, draw);
        pod.says = place.says.map(Into::into);
        pod
    }

    /// A new pod on this machine, bound as soon as the machine is ready.
    pub(super) fn on(
        at: SimTime,
        (name, revision): (SmolStr, &Arc<Revision>),
        machine: MachineId,
        fleet: &Fleet,
        draw: &mut Draw,
    ) -> Self {
        let is_standing = at <= fleet.start();
        let (low, high) = AGE_MINUTES;
        let created = match is_standing {
            true => at - SimDuration::from_secs(draw.between(low * 60, high * 60) as i64),
            false => at + millis(draw, CREATE_MS),
        };
        let ready = if is_standing { created } else { fleet.machine(machine).ready };
        let scheduled = created.max(ready) + millis(draw, BIND_MS);
        let started = scheduled + millis(draw, START_MS);
        Self { name, revision: Arc::clone(revision), created, scheduled, started, machine, says: None }
    }

    /// It is deleted at `at`: it stops within its grace and is gone. One that has not started only goes.
    pub(super) fn delete(&self, at: SimTime, draw: &mut Draw) -> End {
        let finished = (self.started <= at).then(|| at + millis(draw, STOP_MS));
        End { finished, deleted: Some(finished.unwrap_or(at) + millis(draw, REMOVE_MS)) }
    }

    /// What a recording says of it that ends at `until`; nothing if it was created later.
    pub(super) fn observation(&self, owner: &ObjectRef, end: End, until: SimTime) -> Option<Observation> {
        let seen = |time: Option<SimTime>| time.filter(|time| *time < until);
        // Whoever is deleted before the next step never comes to it.
        let reached = |time: SimTime| seen(Some(time)).filter(|time| end.deleted.is_none_or(|gone| *time < gone));
        let scheduled = reached(self.scheduled);
        let wait = |message: &str| Wait {
            at: self.created + SimDuration::from_millis(BIND_MS.0 as i64),
            reason: "Unschedulable".into(),
            message: message.to_owned(),
        };
        let started = match end.finished {
            // It was on its way when it was deleted.
            None if end.deleted.is_some() => None,
            Some(_) | None => reached(self.started),
        };
        (self.created < until).then(|| Observation {
            pod: ObjectKey::namespaced(owner.key.namespace_or_empty(), self.name.as_str()),
            owner: Some(owner.clone()),
            template: Some(self.revision.template.clone()),
            created: self.created,
            scheduled,
            started,
            finished: seen(end.finished),
            deleted: seen(end.deleted),
            guessed: false,
            node: None,
            waits: self.says.as_deref().map(wait).into_iter().collect(),
        })
    }
}
