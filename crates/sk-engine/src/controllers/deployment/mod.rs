//! The Deployment controller (`pkg/controller/deployment`, 1.36): a ReplicaSet per template, the steps of a rollout,
//! and proportional scaling during one.
//!
//! `rollout` decides the steps, `scaling` spreads a new size over several ReplicaSets, `annotations` keeps revisions
//! and sizes on them, `status` computes counts, conditions and the progress deadline.
//!
//! Simplified: the annotation `deprecated.deployment.rollback.to` of extensions/v1beta1 is not read (`kubectl rollout
//! undo` writes the old template, which works). Two status updates of one sync in Kubernetes are one update here.

mod annotations;
mod rollout;
mod scaling;
mod status;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use sk_apiserver::kinds::{DEPLOYMENT, Deployment, DeploymentSpec, PodTemplate, REPLICA_SET};
use sk_apiserver::{
    Answer, ApiError, Body, Change, KindTag, Object, ObjectId, Reason, Request, Verb, View, WatchEvent,
};
use sk_core::memo::Memo;
use sk_core::{SimTime, SmolStr, StableHash};

use self::rollout::Rollout;
use super::adoption::Adoption;
use super::own_writes::OwnWrites;
use super::revisions::{HASH_MEMORY, name_safe, template_hash};
use crate::controller::{Plan, Reconciler};
use crate::events::{self, Event};
use crate::workqueue::WorkQueue;

/// How it signs Events.
const FROM: &str = "deployment-controller";

/// The label that tells the pods of one template from those of another.
const TEMPLATE_HASH: SmolStr = SmolStr::new_static("pod-template-hash");

/// The controller.
#[derive(Clone)]
pub(crate) struct Deployments {
    adoption: Adoption,
    own_writes: OwnWrites,
    hashes: Memo<DeploymentSpec, SmolStr>,
    /// What a server said that refused to make a replica set, until the deployment has said so.
    refused: BTreeMap<ObjectId, String>,
}

impl Deployments {
    pub(crate) fn new() -> Self {
        let adoption = Adoption::new(&DEPLOYMENT, KindTag::ReplicaSet);
        Self { adoption, own_writes: OwnWrites::default(), hashes: Memo::new(HASH_MEMORY), refused: BTreeMap::new() }
    }

    /// The hash of a template; another one for each collision that there was.
    fn hash(&mut self, deployment: &Deployment) -> SmolStr {
        match deployment.status.collision_count {
            None | Some(0) => self.hashes.get_or_insert_with(&deployment.spec, |spec| template_hash(&spec.template)),
            Some(count) => hash_after_collision(&deployment.spec.template, count),
        }
    }
}

impl Reconciler for Deployments {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = &[KindTag::Deployment, KindTag::ReplicaSet, KindTag::Pod];

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        let owner = |set: &Arc<Object>| {
            let owner = set.controller().filter(|owner| owner.gvk == DEPLOYMENT)?;
            view.with_uid(owner.uid).map(|(id, _)| id)
        };
        if let Body::Deployment(deployment) = &event.object.body {
            self.adoption.set_seen(event, &deployment.spec.selector, view);
            if event.change == Change::Deleted {
                self.refused.remove(&event.id);
                self.own_writes.forget(event.id);
            }
            queue.add(event.id);
        } else if event.object.replica_set().is_some() {
            self.adoption.child_seen(event, view, queue);
            for id in event.before.as_ref().and_then(owner).into_iter().chain(owner(&event.object)) {
                queue.add(id);
            }
        } else if event.change == Change::Deleted {
            // Only `Recreate` waits for old pods to be gone.
            let set = event.object.controller().filter(|owner| owner.gvk == REPLICA_SET);
            let set = set.and_then(|owner| view.with_uid(owner.uid));
            set.and_then(|(_, set)| owner(set)).into_iter().for_each(|id| queue.add(id));
        }
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Plan {
        let found = view.get(*id).and_then(|object| Some((object, object.deployment()?)));
        let Some((object, deployment)) = found else { return Plan::nothing() };
        if !self.own_writes.are_seen(*id, view) {
            return Plan::nothing();
        }
        let claims = self.adoption.claim(*id, object, view, |set| set.replica_set().is_some());
        if !claims.is_empty() {
            return Plan::of(claims);
        }
        let hash = self.hash(deployment);
        Rollout::new(object, deployment, hash, view, now).plan()
    }

    fn events(&self, id: &ObjectId, verb: Verb, answer: &Answer, view: View<'_>) -> Vec<Event> {
        let Some(deployment) = view.get(*id) else { return Vec::new() };
        let said = match answer {
            Ok(set) => scaled(deployment, set, view),
            Err(error) => {
                let warning = |message| Event::warning(FROM, deployment, status::CREATE_ERROR, message);
                not_made(verb, error).map(warning)
            }
        };
        said.into_iter().collect()
    }

    fn answered(&mut self, id: &ObjectId, verb: Verb, answer: &Answer) {
        self.own_writes.answered(*id, answer);
        if let Some(message) = answer.as_ref().err().and_then(|error| not_made(verb, error)) {
            self.refused.insert(*id, message);
        }
    }

    fn after_refusal(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Option<Request> {
        let message = self.refused.remove(id)?;
        let object = view.get(*id)?;
        status::create_error(object, object.deployment()?, message, now)
    }
}

/// What is said of a replica set that could not be made (`getNewReplicaSet`). One that is there already is a collision, and in a
/// namespace that goes nothing can be made any more.
fn not_made(verb: Verb, error: &ApiError) -> Option<String> {
    let is_told = verb == Verb::Create && error.reason != Reason::AlreadyExists && !error.is_namespace_terminating();
    let name = &error.about.as_ref().filter(|_| is_told)?.name;
    Some(format!("Failed to create new replica set \"{name}\": {error}"))
}

/// The Event of a ReplicaSet with a new size (`scaleReplicaSet`, `getNewReplicaSet`).
fn scaled(deployment: &Object, set: &Object, view: View<'_>) -> Option<Event> {
    let after = set.replica_set()?.spec.replicas;
    let before = events::before(set, view).and_then(|set| set.replica_set()).map_or(0, |set| set.spec.replicas);
    let way = match after.cmp(&before) {
        Ordering::Equal => return None,
        Ordering::Greater => "up",
        Ordering::Less => "down",
    };
    let message = format!("Scaled {way} replica set {} from {before} to {after}", set.key.name);
    Some(Event::normal(FROM, deployment, "ScalingReplicaSet", message))
}

fn hash_after_collision(template: &PodTemplate, count: i32) -> SmolStr {
    name_safe(StableHash::of(&json!([template, count])).get())
}

/// Are both the same but for the label that the controller adds? (`EqualIgnoreHash`)
fn same_template(one: &PodTemplate, other: &PodTemplate) -> bool {
    let without = |template: &PodTemplate| {
        let mut labels = template.metadata.labels.clone();
        if labels.contains_key(&TEMPLATE_HASH) {
            labels.make_mut().remove(&TEMPLATE_HASH);
        }
        labels
    };
    (Arc::ptr_eq(&one.spec, &other.spec) || one.spec == other.spec)
        && one.metadata.annotations == other.metadata.annotations
        && without(one) == without(other)
}
