//! The pods that one budget selects, counted as they change.
//!
//! Kubernetes lists them in every sync. Here a pod's change moves a count, and a sync reads counts: how many pods there
//! are, how many are healthy, and by which controllers. The sizes of those controllers are added up again only when a
//! controller came to the budget or left it, or when a workload of the namespace changed its size.

use std::collections::{BTreeMap, BTreeSet};

use sk_apiserver::kinds::DEPLOYMENT;
use sk_apiserver::{Body, Object, ObjectId, Uid, View};
use sk_core::SmolStr;

use crate::controllers::pods::ready_since;

/// The pods of one budget.
#[derive(Clone, Debug, Default)]
pub(super) struct Selected {
    count: i32,
    healthy: i32,
    /// By their controller; `None`: nobody controls them.
    by_controller: BTreeMap<Option<Uid>, BTreeSet<ObjectId>>,
    /// The controllers, each by the oldest of its pods: sizes are asked for in this order.
    controllers: BTreeMap<ObjectId, Uid>,
    /// The sizes of all workloads together, as of how many changes of size in the namespace.
    scale: Option<(u64, Result<i32, NoSize>)>,
}

/// Nobody can say how many pods there should be: this pod's controller has no size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoSize(pub(super) SmolStr);

impl Selected {
    /// All pods of a list.
    pub(super) fn of<'a>(pods: impl Iterator<Item = (ObjectId, &'a Object)>) -> Self {
        let mut selected = Self::default();
        pods.for_each(|(id, pod)| selected.change(id, None, Some(pod)));
        selected
    }

    pub(super) fn count(&self) -> i32 {
        self.count
    }

    /// Pods that are ready and not going.
    pub(super) fn healthy(&self) -> i32 {
        self.healthy
    }

    pub(super) fn has(&self, id: ObjectId, pod: &Object) -> bool {
        let controller = pod.controller().map(|owner| owner.uid);
        self.by_controller.get(&controller).is_some_and(|pods| pods.contains(&id))
    }

    /// Is there a pod that nobody controls?
    pub(super) fn has_unmanaged(&self) -> bool {
        self.by_controller.contains_key(&None)
    }

    /// A pod changed. `None`: it was not selected before, or is not any more.
    pub(super) fn change(&mut self, id: ObjectId, before: Option<&Object>, after: Option<&Object>) {
        let healthy = |pod: Option<&Object>| i32::from(pod.is_some_and(is_healthy));
        self.count += i32::from(after.is_some()) - i32::from(before.is_some());
        self.healthy += healthy(after) - healthy(before);
        let controller = |pod: &Object| pod.controller().map(|owner| owner.uid);
        let (old, new) = (before.map(controller), after.map(controller));
        if old != new {
            old.into_iter().for_each(|controller| self.moved(id, controller, false));
            new.into_iter().for_each(|controller| self.moved(id, controller, true));
        }
    }

    /// A pod came to a controller's pods or left them.
    fn moved(&mut self, id: ObjectId, controller: Option<Uid>, came: bool) {
        let pods = self.by_controller.entry(controller).or_default();
        let first = pods.first().copied();
        if came {
            pods.insert(id)
        } else {
            pods.remove(&id)
        };
        let now_first = pods.first().copied();
        if pods.is_empty() {
            self.by_controller.remove(&controller);
        }
        if let Some(controller) = controller.filter(|_| first != now_first) {
            if let Some(pod) = first {
                self.controllers.remove(&pod);
            }
            if let Some(pod) = now_first {
                self.controllers.insert(pod, controller);
            }
            self.scale = None;
        }
    }

    /// The sizes of all workloads that control the pods; pods without a controller do not count.
    pub(super) fn scale(&self, version: u64, view: View<'_>) -> Result<i32, NoSize> {
        match &self.scale {
            Some((as_of, scale)) if *as_of == version => scale.clone(),
            _ => self.add_up(view),
        }
    }

    /// Adds the sizes up, unless that was done after so many changes of size in the namespace.
    pub(super) fn keep_scale(&mut self, version: u64, view: View<'_>) {
        self.scale = Some((version, self.scale(version, view)));
    }

    fn add_up(&self, view: View<'_>) -> Result<i32, NoSize> {
        let mut sizes = BTreeMap::new();
        for (pod, controller) in &self.controllers {
            let name = || view.get(*pod).map(|pod| pod.key.name.clone()).unwrap_or_default();
            let (workload, size) = workload(*controller, view).ok_or_else(|| NoSize(name()))?;
            sizes.insert(workload, size);
        }
        Ok(sizes.values().copied().fold(0, i32::saturating_add))
    }

    /// Is this what counting all pods anew gives? `of_view` are all pods that the budget selects.
    pub(super) fn is_as_counted<'a>(&self, of_view: impl Iterator<Item = (ObjectId, &'a Object)>) -> bool {
        let counted = Self::of(of_view);
        let counts = |of: &Self| (of.count, of.healthy);
        counts(self) == counts(&counted)
            && self.by_controller == counted.by_controller
            && self.controllers == counted.controllers
    }
}

pub(super) fn is_healthy(pod: &Object) -> bool {
    !pod.is_deleting() && ready_since(pod).is_some()
}

/// The workload that decides how many pods there are, and how many.
fn workload(controller: Uid, view: View<'_>) -> Option<(Uid, i32)> {
    let (_, object) = view.with_uid(controller)?;
    let deployment = object.controller().filter(|owner| owner.gvk == DEPLOYMENT);
    let object = deployment.and_then(|owner| view.with_uid(owner.uid)).map_or(object, |(_, deployment)| deployment);
    Some((object.uid, size(object)?))
}

/// How many pods a workload is to have; `None`: it does not say.
pub(super) fn size(object: &Object) -> Option<i32> {
    match &object.body {
        Body::Deployment(deployment) => Some(deployment.spec.replicas),
        Body::ReplicaSet(set) => Some(set.spec.replicas),
        Body::StatefulSet(set) => Some(set.spec.replicas),
        Body::ReplicationController(controller) => Some(controller.0.spec.replicas),
        _ => None,
    }
}
