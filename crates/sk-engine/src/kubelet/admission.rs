//! Kubelet admission: a pod that does not fit on its node fails there (`pkg/kubelet/lifecycle/predicate.go`, 1.36).
//!
//! The scheduler never binds such a pod, but whoever writes `spec.nodeName` can. The requests on each node are updated
//! as pods come and go, never recounted.

use std::sync::Arc;

use sk_apiserver::kinds::{NODE, NodeStatus, PodSpec, Why};
use sk_apiserver::{Change, Object, View, WatchEvent};
use sk_core::lookup::Keyed;
use sk_core::memo::Memo;
use sk_core::{ObjectKey, Resources, SmolStr};

/// How many specs' requests are remembered: one per pod template in use, about 100 bytes each.
const REQUEST_MEMORY: usize = 4096;
/// How many nodes' room is remembered: 16,384 × 150 bytes are 2.5 MB.
const NODE_MEMORY: usize = 1 << 14;

/// What the pods on each node ask for.
#[derive(Clone)]
pub(super) struct NodeUse {
    used: Keyed<SmolStr, (Resources, i64)>,
    requests: Memo<PodSpec, Arc<Resources>>,
    /// What nodes of a status have for pods, and for how many.
    allocatable: Memo<NodeStatus, Arc<(Resources, i64)>>,
}

/// What becomes of a pod that was bound.
pub(super) enum Verdict {
    /// Its node is not there.
    NoNode,
    /// Its node has no room for it.
    Refused(Why),
    /// Its node starts it.
    Taken,
}

impl NodeUse {
    pub(super) fn new() -> Self {
        Self { used: Keyed::default(), requests: Memo::new(REQUEST_MEMORY), allocatable: Memo::new(NODE_MEMORY) }
    }

    /// Keeps the sums true.
    pub(super) fn see(&mut self, event: &WatchEvent) {
        let after = (event.change != Change::Deleted).then_some(&event.object);
        let (before, after) = (event.before.as_ref().and_then(holds), after.and_then(holds));
        if before.as_ref().map(|(node, _)| node) == after.as_ref().map(|(node, _)| node) {
            return;
        }
        if let Some((node, spec)) = before {
            let requests = self.requests_of(spec);
            let (used, pods) = self.used.or_insert_with(node, Default::default);
            used.sub(&requests);
            *pods -= 1;
            if *pods == 0 {
                self.used.remove(node);
            }
        }
        if let Some((node, spec)) = after {
            let requests = self.requests_of(spec);
            let (used, pods) = self.used.or_insert_with(node, Default::default);
            used.add(&requests);
            *pods += 1;
        }
    }

    fn requests_of(&mut self, spec: &Arc<PodSpec>) -> Arc<Resources> {
        self.requests.get_or_insert_with(spec, |spec| Arc::new(spec.requests()))
    }

    /// Why the pod that was just seen on its node does not fit there.
    pub(super) fn refusal(&mut self, object: &Arc<Object>, view: View<'_>) -> Option<Why> {
        if let Verdict::Refused(why) = self.judge(object, view) { Some(why) } else { None }
    }

    /// What the node says of a pod that was just seen on it.
    pub(super) fn judge(&mut self, object: &Arc<Object>, view: View<'_>) -> Verdict {
        let Some((node_name, spec)) = holds(object) else { return Verdict::Taken };
        let node = view.find(&NODE, &ObjectKey::cluster(node_name.clone()));
        let Some(node) = node.and_then(|(_, node)| node.node()) else { return Verdict::NoNode };
        let requested = self.requests_of(spec);
        let room = self.allocatable.get_or_insert_with(&node.status, |_| Arc::new(node.allocatable()));
        let (allocatable, most_pods) = (&room.0, room.1);
        let Some((used, pods)) = self.used.get(node_name) else { return Verdict::Taken };
        if *pods > most_pods {
            return Verdict::Refused(why("pods", 1, pods - 1, most_pods));
        }
        // The pod itself is among those that are counted.
        let mut wanted = amounts(&requested);
        let is_short = |name: &str| amount_of(used, name) > amount_of(allocatable, name);
        let short = wanted.find(|(name, amount)| *amount > 0 && is_short(name) && !is_elsewhere(allocatable, name));
        match short {
            Some((name, amount)) => {
                let (used, capacity) = (amount_of(used, name) - amount, amount_of(allocatable, name));
                Verdict::Refused(why(name, amount, used, capacity))
            }
            None => Verdict::Taken,
        }
    }
}

/// Each resource by its name.
fn amounts(resources: &Resources) -> impl Iterator<Item = (&str, i64)> {
    let known = ["cpu", "memory", "ephemeral-storage"].into_iter();
    known
        .map(|name| (name, amount_of(resources, name)))
        .chain(resources.scalars.iter().map(|(name, amount)| (name.as_str(), *amount)))
}

/// An extended resource that a node does not have at all is not its affair: somebody provides it for the whole cluster
/// (`removeMissingExtendedResources`).
fn is_elsewhere(allocatable: &Resources, name: &str) -> bool {
    let is_extended = name.contains('/') && !name.contains("kubernetes.io/");
    is_extended && !allocatable.scalars.contains_key(name)
}

fn amount_of(resources: &Resources, name: &str) -> i64 {
    match name {
        "cpu" => resources.cpu_milli,
        "memory" => resources.memory,
        "ephemeral-storage" => resources.ephemeral_storage,
        other => resources.scalars.get(other).copied().unwrap_or(0),
    }
}

/// The node a pod takes room on, until it has ended.
fn holds(object: &Arc<Object>) -> Option<(&SmolStr, &Arc<PodSpec>)> {
    let pod = object.pod().filter(|pod| !pod.status.phase.is_final())?;
    Some((pod.node_name.as_ref()?, &pod.spec))
}

fn why(resource: &str, requested: i64, used: i64, capacity: i64) -> Why {
    let message = format!(
        "Pod was rejected: Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, \
         capacity: {capacity}"
    );
    Why { reason: format!("OutOf{resource}").into(), message: message.into(), ..Why::default() }
}
