//! A Deployment and its ReplicaSets during one sync, and the next step of its rollout (`rolling.go`, `recreate.go`,
//! 1.36).

use std::sync::Arc;

use serde_json::{Map, json};
use sk_apiserver::kinds::{
    Deployment, REPLICA_SET, ReplicaSet, ReplicaSetSpec, ReplicaSetStatus, RollingUpdate, StrategyType,
};
use sk_apiserver::{Body, DeleteOptions, Labels, Meta, Object, Request, View};
use sk_core::{ObjectKey, SimTime, SmolStr};

use super::annotations::{self, DESIRED_REPLICAS, MAX_REPLICAS};
use super::{TEMPLATE_HASH, same_template};
use crate::controller::Plan;

/// A deployment and its replica sets. Steps change the sets here; what changed is sent when the sync is over.
pub(super) struct Rollout<'a> {
    pub(super) object: &'a Arc<Object>,
    pub(super) deployment: &'a Deployment,
    hash: SmolStr,
    pub(super) newest: Option<Set<'a>>,
    /// Oldest first.
    pub(super) old: Vec<Set<'a>>,
    pub(super) sizes: Sizes,
    view: View<'a>,
    pub(super) now: SimTime,
}

/// The annotations about the Deployment's size on its ReplicaSets.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) desired: i32,
    pub(super) max: i32,
    pub(super) max_unavailable: i32,
}

/// A replica set as it is to be.
pub(super) struct Set<'a> {
    /// As it is; `None`: it is to be made.
    before: Option<(&'a Arc<Object>, &'a ReplicaSet)>,
    object: Object,
    pub(super) replicas: i32,
    pub(super) annotations: Labels,
    min_ready_seconds: i32,
}

impl<'a> Set<'a> {
    fn known(object: &'a Arc<Object>, set: &'a ReplicaSet) -> Self {
        Self {
            before: Some((object, set)),
            replicas: set.spec.replicas,
            annotations: object.meta.annotations.clone(),
            min_ready_seconds: set.spec.min_ready_seconds,
            object: Object::clone(object),
        }
    }

    /// What it reports; nothing before it is made.
    pub(super) fn status(&self) -> Option<&'a ReplicaSetStatus> {
        self.before.map(|(_, set)| &set.status)
    }

    pub(super) fn available(&self) -> i32 {
        self.status().map_or(0, |status| status.available_replicas)
    }

    /// Its desired replicas before this sync, or at its creation.
    pub(super) fn replicas_before(&self) -> i32 {
        self.before.map_or(self.replicas, |(_, set)| set.spec.replicas)
    }

    pub(super) fn age(&self) -> SimTime {
        self.object.created
    }

    pub(super) fn name(&self) -> &SmolStr {
        &self.object.key.name
    }

    pub(super) fn is_new(&self) -> bool {
        self.before.is_none()
    }

    pub(super) fn resize(&mut self, replicas: i32, sizes: Sizes) {
        self.replicas = replicas;
        annotations::set(&mut self.annotations, DESIRED_REPLICAS, sizes.desired.to_string().into());
        annotations::set(&mut self.annotations, MAX_REPLICAS, sizes.max.to_string().into());
    }

    /// The request that makes it so, if there is anything to do.
    fn request(self) -> Option<Request> {
        let Self { before, mut object, replicas, annotations, min_ready_seconds } = self;
        let (was, spec) = match (&before, &object.body) {
            (Some((_, set)), _) => (Some(set), set.spec.clone()),
            (None, Body::ReplicaSet(set)) => (None, set.spec.clone()),
            (None, _) => return None,
        };
        let is_same = |set: &&&ReplicaSet| {
            set.spec.replicas == replicas
                && set.spec.min_ready_seconds == min_ready_seconds
                && object.meta.annotations == annotations
        };
        if was.as_ref().is_some_and(is_same) {
            return None;
        }
        let spec = ReplicaSetSpec { replicas, min_ready_seconds, ..ReplicaSetSpec::clone(&spec) };
        object.meta.annotations = annotations;
        let status = was.map(|set| set.status.clone()).unwrap_or_default();
        object.body = Body::ReplicaSet(ReplicaSet { spec: Arc::new(spec), status });
        Some(if before.is_some() { Request::update(object) } else { Request::create(object) })
    }
}

impl<'a> Rollout<'a> {
    pub(super) fn new(
        object: &'a Arc<Object>,
        deployment: &'a Deployment,
        hash: SmolStr,
        view: View<'a>,
        now: SimTime,
    ) -> Self {
        let mine = |set: &Object| set.controller().is_some_and(|owner| owner.uid == object.uid);
        let owned = view.owned_by(object.uid).map(|(_, set)| set).filter(|set| mine(set));
        let mut sets: Vec<_> = owned.filter_map(|set| Some((set, set.replica_set()?))).collect();
        sets.sort_by_key(|(set, _)| (set.created, set.key.clone()));
        // Of several with the same template, the oldest is the one.
        let newest = sets.iter().position(|(_, set)| same_template(&set.spec.template, &deployment.spec.template));
        let newest = newest.map(|place| sets.remove(place)).map(|(object, set)| Set::known(object, set));
        let old = sets.into_iter().map(|(object, set)| Set::known(object, set)).collect();
        Self { object, deployment, hash, newest, old, sizes: sizes(deployment), view, now }
    }

    pub(super) fn wanted(&self) -> i32 {
        self.deployment.spec.replicas
    }

    pub(super) fn is_rolling(&self) -> bool {
        self.deployment.spec.strategy.kind == StrategyType::RollingUpdate
    }

    pub(super) fn sets(&self) -> impl Iterator<Item = &Set<'a>> {
        self.old.iter().chain(&self.newest)
    }

    pub(super) fn total(&self) -> i32 {
        self.sets().map(|set| set.replicas).fold(0, i32::saturating_add)
    }

    /// The whole sync.
    pub(super) fn plan(mut self) -> Plan {
        if let Some(collision) = self.collision() {
            return Plan::of([collision]);
        }
        let mut gone = Vec::new();
        let mut is_rollout = false;
        if !self.object.is_deleting() {
            self.mark_newest();
            if self.deployment.spec.paused {
                self.scale();
                gone = self.surplus();
            } else if self.is_being_scaled() {
                self.scale();
            } else {
                is_rollout = true;
                gone = self.step();
            }
        }
        let (report, again_after) = self.report(is_rollout);
        let sets = self.newest.into_iter().chain(self.old);
        let mut plan = Plan::of(sets.filter_map(Set::request).chain(gone).chain(report));
        plan.again_after = again_after;
        plan
    }

    /// The next step of a rollout, and the old sets that go once it is over.
    fn step(&mut self) -> Vec<Request> {
        if self.is_rolling() {
            let grew = self.grow_newest();
            if grew || self.shrink_old() {
                return Vec::new();
            }
        } else if !self.recreate() {
            return Vec::new();
        }
        if self.is_complete(&self.deployment.status) { self.surplus() } else { Vec::new() }
    }

    /// The newest set has the highest revision, the deployment's annotations and its `minReadySeconds`.
    fn mark_newest(&mut self) {
        let next = self.next_revision();
        if let Some(set) = &mut self.newest {
            annotations::take_over(&mut set.annotations, &self.object.meta.annotations, next);
            set.min_ready_seconds = self.deployment.spec.min_ready_seconds;
        }
    }

    fn next_revision(&self) -> i64 {
        let highest = self.old.iter().map(|set| annotations::revision(&set.annotations)).max();
        highest.unwrap_or(0).saturating_add(1)
    }

    /// First the new set up. `true`: that was the step.
    fn grow_newest(&mut self) -> bool {
        if self.newest.is_none() {
            self.make_newest();
            return false;
        }
        let (wanted, total, sizes) = (self.wanted(), self.total(), self.sizes);
        let Some(set) = &mut self.newest else { return false };
        // `NewRSNewReplicas`: without too many pods in all.
        let room = sizes.max.saturating_sub(total).max(0);
        let target = if set.replicas > wanted { wanted } else { set.replicas + room.min(wanted - set.replicas) };
        let grows = target != set.replicas;
        if grows {
            set.resize(target, sizes);
        }
        grows
    }

    /// Then the old ones down, sick pods first, as long as enough stay available. `true`: that was the step.
    fn shrink_old(&mut self) -> bool {
        let Some(newest) = &self.newest else { return false };
        let keep = self.wanted().saturating_sub(self.sizes.max_unavailable);
        let new_unavailable = newest.replicas.saturating_sub(newest.available());
        let mut sick_left = self.total().saturating_sub(keep).saturating_sub(new_unavailable);
        if sick_left <= 0 {
            return false;
        }
        let available = self.sets().map(Set::available).fold(0, i32::saturating_add);
        let mut healthy_left = available.saturating_sub(keep).max(0);
        let mut targets: Vec<i32> = self.old.iter().map(|set| set.replicas).collect();
        for (target, set) in targets.iter_mut().zip(&self.old) {
            let sick = target.saturating_sub(set.available()).clamp(0, sick_left);
            *target -= sick;
            sick_left -= sick;
        }
        for target in &mut targets {
            let taken = (*target).min(healthy_left);
            *target -= taken;
            healthy_left -= taken;
        }
        let (mut shrank, sizes) = (false, self.sizes);
        for (set, target) in self.old.iter_mut().zip(targets).filter(|(set, target)| set.replicas != *target) {
            set.resize(target, sizes);
            shrank = true;
        }
        shrank
    }

    /// All old pods go before the first new one comes. `true`: they are gone.
    fn recreate(&mut self) -> bool {
        let sizes = self.sizes;
        let mut active = self.old.iter_mut().filter(|set| set.replicas > 0).peekable();
        if active.peek().is_some() {
            active.for_each(|set| set.resize(0, sizes));
            return false;
        }
        let runs = |pod: &Arc<Object>| pod.pod().is_some_and(|pod| !pod.status.phase.is_final());
        let has_pods = |set: &Set<'_>| {
            set.status().is_some_and(|status| status.replicas > 0)
                || self.view.owned_by(set.object.uid).any(|(_, pod)| runs(pod))
        };
        if self.old.iter().any(has_pods) {
            return false;
        }
        if self.newest.is_none() {
            self.make_newest();
        }
        let wanted = self.wanted();
        if let Some(set) = self.newest.as_mut().filter(|set| set.replicas != wanted) {
            set.resize(wanted, sizes);
        }
        true
    }

    /// Old sets beyond the history limit go, those of the lowest revision first, unless they still have pods.
    fn surplus(&self) -> Vec<Request> {
        let limit = self.deployment.spec.revision_history_limit;
        let mut old: Vec<_> = self.old.iter().filter(|set| !set.object.is_deleting()).collect();
        old.sort_by_key(|set| (annotations::revision(&set.annotations), set.age(), set.name().clone()));
        let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        let is_idle = |set: &&&Set<'_>| {
            let reports = |status: &ReplicaSetStatus| {
                status.replicas == 0 && status.observed_generation >= set.object.meta.generation
            };
            set.replicas == 0 && set.replicas_before() == 0 && set.status().is_some_and(reports)
        };
        let delete = |set: &&Set<'_>| Request::Delete {
            target: set.object.reference(),
            options: DeleteOptions { uid: Some(set.object.uid), ..DeleteOptions::default() },
        };
        old[..surplus].iter().filter(is_idle).map(delete).collect()
    }

    fn set_name(&self) -> SmolStr {
        format!("{}-{}", self.object.key.name, self.hash).into()
    }

    /// Has another owner a ReplicaSet with the name of the newest? Then the hash is computed again.
    fn collision(&self) -> Option<Request> {
        let key = ObjectKey { namespace: self.object.key.namespace.clone(), name: self.set_name() };
        let is_needed = self.newest.is_none() && !self.object.is_deleting();
        if !is_needed || self.view.find(&REPLICA_SET, &key).is_none() {
            return None;
        }
        let mut status = self.deployment.status.clone();
        status.collision_count = Some(status.collision_count.unwrap_or(0).saturating_add(1));
        let mut object = Object::clone(self.object);
        object.body = Body::Deployment(Deployment { spec: self.deployment.spec.clone(), status });
        Some(Request::update_status(object))
    }

    /// The set for a template that has none yet.
    fn make_newest(&mut self) {
        let spec = &self.deployment.spec;
        let mut template = spec.template.clone();
        template.metadata.labels.make_mut().insert(TEMPLATE_HASH, self.hash.clone());
        let mut selector = spec.selector.clone();
        selector["matchLabels"][TEMPLATE_HASH.as_str()] = json!(self.hash);
        let labels = template.metadata.labels.clone();
        let meta = Meta { labels, owners: [self.object.as_controller()].into(), ..Meta::default() };
        let room = self.sizes.max.saturating_sub(self.total()).clamp(0, self.wanted().max(0));
        let min_ready_seconds = spec.min_ready_seconds;
        let body = ReplicaSetSpec { replicas: 0, min_ready_seconds, selector, template, rest: Map::new() };
        let body = Body::ReplicaSet(ReplicaSet { spec: Arc::new(body), ..ReplicaSet::default() });
        let key = ObjectKey { namespace: self.object.key.namespace.clone(), name: self.set_name() };
        let mut set = Set {
            before: None,
            object: Object::new(&REPLICA_SET, key, meta, body),
            replicas: 0,
            annotations: Labels::default(),
            min_ready_seconds,
        };
        annotations::take_over(&mut set.annotations, &self.object.meta.annotations, self.next_revision());
        set.resize(if self.is_rolling() { room } else { self.wanted() }, self.sizes);
        self.newest = Some(set);
    }
}

/// `MaxSurge` and `MaxUnavailable`, never both zero (`ResolveFenceposts`).
fn sizes(deployment: &Deployment) -> Sizes {
    let (spec, default) = (&deployment.spec, RollingUpdate::default());
    let desired = spec.replicas;
    if spec.strategy.kind == StrategyType::Recreate {
        return Sizes { desired, max: desired, max_unavailable: 0 };
    }
    let steps = spec.strategy.rolling_update.as_ref().unwrap_or(&default);
    let surge = steps.max_surge.of(desired, true).unwrap_or(0).max(0);
    let unavailable = steps.max_unavailable.of(desired, false).unwrap_or(0).max(0);
    let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
    Sizes { desired, max: desired.saturating_add(surge), max_unavailable: unavailable.min(desired) }
}
