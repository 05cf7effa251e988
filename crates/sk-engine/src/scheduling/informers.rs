//! The scheduler's informers: pods, nodes, and the other objects that scheduling reads.

use std::sync::Arc;

use serde_json::Value;
use sk_apiserver::kinds::{Other, Pod};
use sk_apiserver::{ObjectId, WatchEvent};
use sk_core::{LabelSelector, SimTime, SmolStr};
use sk_scheduler::class::OwnerKind;
use sk_scheduler::queue::{Event, PodAction};
use sk_scheduler::{ClassId, NodeId, PodId};

use super::{Context, Known, KubeScheduler, is_there};
use crate::classes;

/// Is all the same that a pod's class is made from?
fn has_class_as_before(event: &WatchEvent, pod: &Pod) -> bool {
    let object = &event.object;
    event.before.as_ref().is_some_and(|before| {
        before.pod().is_some_and(|before| Arc::ptr_eq(&before.spec, &pod.spec))
            && before.meta.labels.is_same(&object.meta.labels)
            && before.has_owners_of(object)
    })
}

impl KubeScheduler {
    pub(super) fn pod_seen(&mut self, event: &WatchEvent, pod: &Pod, ctx: &mut Context<'_>) {
        let object = &event.object;
        if self.known(event.id).is_some_and(|known| known.uid != object.uid) {
            self.pod_gone(event.id, ctx.now);
        }
        if !is_there(event) || pod.status.phase.is_final() {
            self.pod_gone(event.id, ctx.now);
        } else if let Some(name) = &pod.node_name {
            let node = self.slot_of(event.id, name);
            self.bound_pod_seen(event, pod, node, ctx);
        } else {
            self.waiting_pod_seen(event, pod, ctx);
        }
    }

    /// The slot of the node that a pod is bound to: mostly that on which it counts already, which spares a search by name.
    fn slot_of(&mut self, id: ObjectId, name: &SmolStr) -> NodeId {
        let known = self.known(id);
        let cluster = &mut self.library.cluster;
        let counted = known.and_then(|known| cluster.pod(known.pod).node());
        counted.filter(|node| cluster.node(*node).name == *name).unwrap_or_else(|| cluster.slot(name))
    }

    fn pod_gone(&mut self, id: ObjectId, now: SimTime) {
        let Some(known) = self.pods.get_mut(id.index()).and_then(Option::take) else { return };
        let pod = self.library.cluster.pod(known.pod);
        let (held_room, was_nominated) = (pod.node().is_some(), pod.nominated.is_some());
        self.queue.remove(known.pod);
        self.library.cluster.drop_pod(known.pod);
        self.objects[known.pod.index()] = None;
        if held_room {
            let event = Event::PlacedPod { action: PodAction::Delete, before: Some(known.class), after: None };
            self.queue.happened(now, &event, &self.library);
        } else if was_nominated {
            self.nomination_gone(known.class, now);
        }
    }

    /// A nomination is no more: to pods of at most that priority it is as if a pod had gone (`eventhandlers.go`,
    /// `hasNominatedNodeNameChanged`).
    fn nomination_gone(&mut self, class: ClassId, now: SimTime) {
        let event = Event::PlacedPod { action: PodAction::Delete, before: Some(class), after: None };
        let priority = self.library.cluster.class(class).priority;
        self.queue.happened_to(priority, now, &event, &self.library);
    }

    /// The pod as the library knows it, made known now if it is not; `None` if it cannot be scheduled.
    fn learn(&mut self, event: &WatchEvent, pod: &Pod, ctx: &mut Context<'_>) -> Option<(Known, ClassId)> {
        let object = &event.object;
        if let Some(known) = self.known(event.id).filter(|_| has_class_as_before(event, pod)) {
            return Some((known, known.class));
        }
        let (queue, pods) = (&self.queue, &self.pods);
        let held = || queue.classes().chain(pods.iter().flatten().map(|known| known.class));
        self.classes.free_unused(&mut self.library, held);
        let class = match self.classes.of(object, pod, &mut self.library.cluster) {
            Ok(class) => class,
            Err(error) => {
                self.report(object, super::named_scheduler(object), &error.to_string(), None, ctx);
                return None;
            }
        };
        if let Some(known) = self.known(event.id) {
            return Some((known, class));
        }
        let id = self.library.cluster.new_pod(class, object.key.name.clone());
        let known = Known { pod: id, uid: object.uid, class, is_bound: false };
        if self.pods.len() <= event.id.index() {
            self.pods.resize(event.id.index() + 1, None);
        }
        if self.objects.len() <= id.index() {
            self.objects.resize(id.index() + 1, None);
        }
        self.pods[event.id.index()] = Some(known);
        self.objects[id.index()] = Some(event.id);
        self.count_passed(class, &object.key);
        self.suppose_claims(class);
        Some((known, class))
    }

    fn bound_pod_seen(&mut self, event: &WatchEvent, pod: &Pod, node: NodeId, ctx: &mut Context<'_>) {
        let Some((known, class)) = self.learn(event, pod, ctx) else { return };
        let preempted = pod.status.condition("DisruptionTarget").is_some_and(|c| c.reason() == "PreemptionByScheduler");
        // An API server serves whole seconds.
        let started = pod.status.start_time.map(SimTime::whole_secs);
        let deleting = event.object.is_deleting();
        let cluster = &mut self.library.cluster;
        let is_new = !known.is_bound;
        if cluster.pod(known.pod).node() != Some(node) {
            cluster.add_pod(known.pod, node);
        }
        cluster.update_pod(known.pod, |pod| {
            (pod.class, pod.started, pod.deleting, pod.preempted) = (class, started, deleting, preempted);
        });
        self.pods[event.id.index()] = Some(Known { class, is_bound: true, ..known });
        if is_new {
            self.first_use(class, node);
            self.library.cluster.withdraw(known.pod);
            self.queue.remove(known.pod);
            let event = Event::PlacedPod { action: PodAction::Add, before: None, after: Some(class) };
            self.queue.happened(ctx.now, &event, &self.library);
        } else if known.class != class {
            let classes = &self.library.cluster;
            for action in Event::pod_actions(classes.class(known.class), classes.class(class)) {
                let event = Event::PlacedPod { action, before: Some(known.class), after: Some(class) };
                self.queue.happened(ctx.now, &event, &self.library);
            }
        }
    }

    fn waiting_pod_seen(&mut self, event: &WatchEvent, pod: &Pod, ctx: &mut Context<'_>) {
        let Some((known, class)) = self.learn(event, pod, ctx) else { return };
        if event.object.is_deleting() {
            self.queue.remove(known.pod);
            return;
        }
        // An assumed pod whose binding is on its way is not queued again.
        if self.library.cluster.pod(known.pod).node().is_some() {
            return;
        }
        if known.class != class {
            self.library.cluster.update_pod(known.pod, |pod| pod.class = class);
            self.pods[event.id.index()] = Some(Known { class, ..known });
            self.queue.updated(ctx.now, known.pod, known.class, &self.library);
        } else if self.library.has_profile(&self.library.cluster.class(class).scheduler_name) {
            self.queue.add(ctx.now, known.pod, &self.library);
        }
        self.nomination_seen(known.pod, class, pod, ctx.now);
    }

    /// `status.nominatedNodeName` as the API server has it (`backend/queue/nominator.go`, `UpdateNominatedPod`). A node that
    /// stands there counts, even if the scheduler has another in mind by now; without one before and after, what it has in
    /// mind stays.
    fn nomination_seen(&mut self, id: PodId, class: ClassId, pod: &Pod, now: SimTime) {
        let cluster = &mut self.library.cluster;
        let (before, after) = (cluster.pod(id).nominated, pod.status.nominated_node_name.as_ref());
        let after = after.map(|node| cluster.slot(node));
        match after {
            Some(node) if cluster.nomination(id) == Some(node) => {}
            Some(node) => cluster.nominate(id, node),
            None if before.is_some() => drop(cluster.withdraw(id)),
            None => return,
        }
        if before != after {
            cluster.update_pod(id, |pod| pod.nominated = after);
        }
        if before.is_some() && before != after {
            self.nomination_gone(class, now);
        }
    }

    pub(super) fn node_seen(&mut self, event: &WatchEvent, now: SimTime) {
        let cluster = &mut self.library.cluster;
        let known = cluster.node_id(&event.object.key.name);
        let change = match (classes::node(&event.object).filter(|_| is_there(event)), known) {
            (Some(spec), _) => cluster.set_node(spec),
            (None, Some(node)) => cluster.remove_node(node),
            (None, None) => return,
        };
        for event in Event::of_node(&change) {
            self.queue.happened(now, &event, &self.library);
        }
    }

    /// A controller whose selector spreads its pods.
    pub(super) fn owner_seen(&mut self, event: &WatchEvent, kind: OwnerKind, selector: &Value) {
        // One that is no selector was refused by the API server.
        let selector = LabelSelector::from_json(selector).ok().filter(|_| is_there(event));
        let (namespace, name) = (event.object.key.namespace_or_empty(), event.object.key.name.clone());
        self.library.cluster.objects.set_owner(kind, namespace, name, selector);
    }

    pub(super) fn other_seen(&mut self, event: &WatchEvent, other: &Other, now: SimTime) {
        let spec = other.fields.get("spec").unwrap_or(&Value::Null);
        let selector = spec.get("selector").unwrap_or(&Value::Null);
        match (event.object.gvk.group.as_str(), event.object.gvk.kind.as_str()) {
            ("", "Service") => {
                let labels = selector.as_object().is_some_and(|labels| !labels.is_empty() && is_there(event));
                let selector = labels.then(|| LabelSelector::from_json(&serde_json::json!({"matchLabels": selector})));
                let (namespace, name) = (event.object.key.namespace_or_empty(), event.object.key.name.clone());
                self.library.cluster.objects.set_service(namespace, name, selector.and_then(Result::ok));
            }
            ("", "PersistentVolumeClaim") => self.claim_seen(event, spec, now),
            ("", "PersistentVolume") => self.volume_seen(event, spec, now),
            ("storage.k8s.io", "StorageClass") => self.storage_class_seen(event, &other.fields, now),
            ("policy", "PodDisruptionBudget") => self.budget_seen(event, other),
            ("resource.k8s.io", "DeviceClass") => self.devices.see(&event.object.key.name, spec, is_there(event)),
            _ => {}
        }
    }
}
