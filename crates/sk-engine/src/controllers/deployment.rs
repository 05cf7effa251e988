//! The deployment controller: replica sets for templates, and the steps of a rollout
//! (`pkg/controller/deployment`, 1.36).
//!
//! Simplified: a deployment scaled in the middle of a rollout goes on with the rollout's steps instead of spreading the
//! difference over its replica sets; no revisions are kept, no rollback, no progress deadline, no conditions.

use std::sync::Arc;

use serde_json::json;
use sk_apiserver::kinds::{
    DEPLOYMENT, Deployment, DeploymentSpec, DeploymentStatus, PodTemplate, REPLICA_SET, ReplicaSet, ReplicaSetSpec,
    RollingUpdate, StrategyType,
};
use sk_apiserver::{Body, Change, DeleteOptions, KindTag, Labels, Meta, Object, ObjectId, Request, View, WatchEvent};
use sk_core::memo::Memo;
use sk_core::{ObjectKey, SimTime, SmolStr, StableHash};

use crate::controller::{Plan, Reconciler};
use crate::workqueue::WorkQueue;

/// The label that tells the pods of one template from those of another.
const TEMPLATE_HASH: SmolStr = SmolStr::new_static("pod-template-hash");

/// How many template hashes are remembered; one per deployment in use, below 100 bytes each.
const HASH_MEMORY: usize = 1 << 16;

/// The controller. All it decides by is in its view.
#[derive(Clone)]
pub(crate) struct Deployments {
    hashes: Memo<DeploymentSpec, SmolStr>,
}

impl Deployments {
    pub(crate) fn new() -> Self {
        Self { hashes: Memo::new(HASH_MEMORY) }
    }
}

impl Reconciler for Deployments {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = &[KindTag::Deployment, KindTag::ReplicaSet, KindTag::Pod];

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        let object = &event.object;
        let deployment_of = |set: &Object| {
            let owner = set.controller().filter(|owner| owner.gvk == DEPLOYMENT)?;
            view.with_uid(owner.uid).map(|(id, _)| id)
        };
        match &object.body {
            Body::Deployment(_) => queue.add(event.id),
            Body::ReplicaSet(_) => deployment_of(object).into_iter().for_each(|id| queue.add(id)),
            // Only `Recreate` waits for old pods to be gone.
            Body::Pod(_) if event.change == Change::Deleted => {
                let set = object.controller().filter(|owner| owner.gvk == REPLICA_SET);
                let set = set.and_then(|owner| view.with_uid(owner.uid));
                set.and_then(|(_, set)| deployment_of(set)).into_iter().for_each(|id| queue.add(id));
            }
            Body::Pod(_) | Body::Node(_) | Body::Namespace(_) | Body::Job(_) | Body::CronJob(_) | Body::Other(_) => {}
        }
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, _now: SimTime) -> Plan {
        let Some(object) = view.get(*id) else { return Plan::nothing() };
        let Some(deployment) = object.deployment() else { return Plan::nothing() };
        let hash = self.hashes.get_or_insert_with(&deployment.spec, |spec| template_hash(&spec.template));
        let rollout = Rollout::new(object, deployment, hash, view);
        let mut requests = Vec::new();
        if !object.is_deleting() {
            requests = if deployment.spec.paused {
                rollout.scale_newest()
            } else {
                match deployment.spec.strategy.kind {
                    StrategyType::RollingUpdate => rollout.roll(),
                    StrategyType::Recreate => rollout.recreate(view),
                }
            };
        }
        if requests.is_empty() && !object.is_deleting() {
            requests = rollout.clean_up();
        }
        requests.extend(rollout.status());
        Plan::of(requests)
    }
}

fn beside(object: &Object, name: &SmolStr) -> ObjectKey {
    ObjectKey { namespace: object.key.namespace.clone(), name: name.clone() }
}

/// A deployment and its replica sets at one moment.
struct Rollout<'a> {
    object: &'a Arc<Object>,
    deployment: &'a Deployment,
    hash: SmolStr,
    newest: Option<(&'a Arc<Object>, &'a ReplicaSet)>,
    /// Oldest first.
    old: Vec<(&'a Arc<Object>, &'a ReplicaSet)>,
}

impl<'a> Rollout<'a> {
    fn new(object: &'a Arc<Object>, deployment: &'a Deployment, hash: SmolStr, view: View<'a>) -> Self {
        let owned = view.owned_by(object.uid).filter_map(|(_, set)| Some((set, set.replica_set()?)));
        let is_new = |set: &Object| set.meta.labels.get(&TEMPLATE_HASH) == Some(&hash);
        let (mut new, mut old): (Vec<_>, Vec<_>) = owned.partition(|(set, _)| is_new(set));
        old.sort_by_key(|(set, _)| (set.created, set.key.clone()));
        Self { object, deployment, newest: new.pop(), old, hash }
    }

    fn wanted(&self) -> i32 {
        self.deployment.spec.replicas
    }

    fn all(&self) -> impl Iterator<Item = &(&'a Arc<Object>, &'a ReplicaSet)> {
        self.old.iter().chain(&self.newest)
    }

    fn total(&self) -> i32 {
        self.all().map(|(_, set)| set.spec.replicas).fold(0, i32::saturating_add)
    }

    /// `(maxSurge, maxUnavailable)`, never both zero (`ResolveFenceposts`).
    fn fenceposts(&self) -> (i32, i32) {
        let default = RollingUpdate::default();
        let steps = self.deployment.spec.strategy.rolling_update.as_ref().unwrap_or(&default);
        let surge = steps.max_surge.of(self.wanted(), true).unwrap_or(0).max(0);
        let unavailable = steps.max_unavailable.of(self.wanted(), false).unwrap_or(0).max(0);
        if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable.min(self.wanted())) }
    }

    /// One step of a rolling update: first the new set up, then the old ones down.
    fn roll(&self) -> Vec<Request> {
        let Some((object, set)) = self.newest else {
            return vec![self.create_set(self.room_for_new(0))];
        };
        let replicas = set.spec.replicas;
        let target = if replicas > self.wanted() { self.wanted() } else { self.room_for_new(replicas) };
        if target != replicas {
            return vec![scale(object, set, target)];
        }
        self.shrink_old(set)
    }

    /// How far the new set may grow without too many pods in all (`NewRSNewReplicas`).
    fn room_for_new(&self, replicas: i32) -> i32 {
        let most = self.wanted().saturating_add(self.fenceposts().0);
        let room = most.saturating_sub(self.total()).max(0);
        replicas.saturating_add(room.min(self.wanted() - replicas))
    }

    /// Takes from the old sets, sick pods first, as long as enough stay available.
    fn shrink_old(&self, newest: &ReplicaSet) -> Vec<Request> {
        let keep = self.wanted().saturating_sub(self.fenceposts().1);
        let new_unavailable = newest.spec.replicas.saturating_sub(newest.status.available_replicas);
        let spare = self.total().saturating_sub(keep).saturating_sub(new_unavailable);
        if spare <= 0 {
            return Vec::new();
        }
        let mut targets: Vec<i32> = self.old.iter().map(|(_, set)| set.spec.replicas).collect();
        let mut sick_left = spare;
        for (target, (_, set)) in targets.iter_mut().zip(&self.old) {
            let sick = target.saturating_sub(set.status.available_replicas).clamp(0, sick_left);
            *target -= sick;
            sick_left -= sick;
        }
        let available = self.all().map(|(_, set)| set.status.available_replicas).fold(0, i32::saturating_add);
        let mut healthy_left = available.saturating_sub(keep).max(0);
        for target in &mut targets {
            let taken = (*target).min(healthy_left);
            *target -= taken;
            healthy_left -= taken;
        }
        let changed = self.old.iter().zip(targets).filter(|((_, set), target)| set.spec.replicas != *target);
        changed.map(|((object, set), target)| scale(object, set, target)).collect()
    }

    /// All old pods go before the first new one comes.
    fn recreate(&self, view: View<'_>) -> Vec<Request> {
        let active: Vec<_> = self.old.iter().filter(|(_, set)| set.spec.replicas > 0).collect();
        if !active.is_empty() {
            return active.into_iter().map(|(object, set)| scale(object, set, 0)).collect();
        }
        let runs = |pod: &Arc<Object>| pod.pod().is_some_and(|pod| !pod.status.phase.is_final());
        if self.old.iter().any(|(set, _)| view.owned_by(set.uid).any(|(_, pod)| runs(pod))) {
            return Vec::new();
        }
        match self.newest {
            None => vec![self.create_set(self.wanted())],
            Some((object, set)) if set.spec.replicas != self.wanted() => vec![scale(object, set, self.wanted())],
            Some(_) => Vec::new(),
        }
    }

    /// A paused deployment still follows its replica count.
    fn scale_newest(&self) -> Vec<Request> {
        let active = self.all().filter(|(_, set)| set.spec.replicas > 0).last();
        match active.or_else(|| self.all().last()) {
            Some((object, set)) if set.spec.replicas != self.wanted() => vec![scale(object, set, self.wanted())],
            _ => Vec::new(),
        }
    }

    /// Old sets beyond the history limit go, oldest first.
    fn clean_up(&self) -> Vec<Request> {
        let idle = |(_, set): &&(&Arc<Object>, &ReplicaSet)| set.spec.replicas == 0 && set.status.replicas == 0;
        let limit = usize::try_from(self.deployment.spec.revision_history_limit).unwrap_or(0);
        let surplus = self.old.len().saturating_sub(limit);
        let gone = self.old.iter().take(surplus).filter(idle).filter(|(set, _)| !set.is_deleting());
        gone.map(|(set, _)| Request::Delete { target: set.reference(), options: DeleteOptions::default() }).collect()
    }

    fn create_set(&self, replicas: i32) -> Request {
        let labelled = |labels: &Labels| {
            let mut labels = labels.clone();
            labels.make_mut().insert(TEMPLATE_HASH, self.hash.clone());
            labels
        };
        let spec = &self.deployment.spec;
        let mut template = spec.template.clone();
        template.metadata.labels = labelled(&spec.template.metadata.labels);
        let mut selector = spec.selector.clone();
        selector["matchLabels"][TEMPLATE_HASH.as_str()] = json!(self.hash);
        let meta = Meta {
            labels: template.metadata.labels.clone(),
            owners: [self.object.as_controller()].into(),
            ..Meta::default()
        };
        let min_ready_seconds = spec.min_ready_seconds;
        let set = ReplicaSetSpec { replicas, min_ready_seconds, selector, template, rest: serde_json::Map::new() };
        let name = SmolStr::from(format!("{}-{}", self.object.key.name, self.hash));
        let body = Body::ReplicaSet(ReplicaSet { spec: Arc::new(set), ..ReplicaSet::default() });
        Request::create(Object::new(&REPLICA_SET, beside(self.object, &name), meta, body))
    }

    /// What the deployment should report, if that is news.
    fn status(&self) -> Option<Request> {
        let sum = |count: fn(&ReplicaSet) -> i32| self.all().map(|(_, set)| count(set)).fold(0, i32::saturating_add);
        let available = sum(|set| set.status.available_replicas);
        let status = DeploymentStatus {
            observed_generation: self.object.meta.generation,
            replicas: sum(|set| set.status.replicas),
            updated_replicas: self.newest.map_or(0, |(_, set)| set.status.replicas),
            ready_replicas: sum(|set| set.status.ready_replicas),
            available_replicas: available,
            unavailable_replicas: self.total().saturating_sub(available).max(0),
            rest: self.deployment.status.rest.clone(),
        };
        if status == self.deployment.status {
            return None;
        }
        let mut object = Object::clone(self.object);
        // Figures, not decisions: they are written whatever else has changed meanwhile.
        object.resource_version = 0;
        object.body = Body::Deployment(Deployment { spec: self.deployment.spec.clone(), status });
        Some(Request::update_status(object))
    }
}

fn scale(object: &Arc<Object>, set: &ReplicaSet, replicas: i32) -> Request {
    let mut scaled = Object::clone(object);
    let spec = ReplicaSetSpec { replicas, ..ReplicaSetSpec::clone(&set.spec) };
    scaled.body = Body::ReplicaSet(ReplicaSet { spec: Arc::new(spec), status: set.status.clone() });
    Request::update(scaled)
}

/// A name-safe hash of a template. Kubernetes' own hash is of its memory layout and differs between versions; nothing may
/// depend on its value.
fn template_hash(template: &PodTemplate) -> SmolStr {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hash = StableHash::of(&json!(template)).get();
    let digit = |_| {
        let char = char::from(ALPHABET[(hash % 27) as usize]);
        hash /= 27;
        char
    };
    (0..10).map(digit).collect::<String>().into()
}
