//! What holds of every cluster after every step, and what holds once it has settled.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_core::{ObjectKey, Resources, SimTime};
use sk_engine::Engine;
use sk_engine::api::{Change, Object, Uid, WatchEvent};
use sk_engine::kinds::{
    DAEMON_SET, DEPLOYMENT, JOB, JobStatus, NAMESPACE, NODE, Node, POD, REPLICATION_CONTROLLER, STATEFUL_SET,
};

use crate::draw::SECOND_NAMESPACE;

/// The laws, and what they have seen so far.
pub(crate) struct Laws {
    seed: u64,
    read: u64,
    /// Every object as the log of changes tells it.
    told: BTreeMap<Uid, Arc<Object>>,
    /// When a node was last deleted.
    node_went: Option<SimTime>,
}

impl Laws {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, read: 0, told: BTreeMap::new(), node_went: None }
    }

    /// Reads what is new, tells it to `tell`, and checks everything.
    pub(crate) fn check(&mut self, engine: &Engine, step: usize, tell: &mut dyn FnMut(&str)) {
        let place = format!("seed {}, step {step}, {}", self.seed, engine.now());
        for event in engine.watch(self.read).expect("the log is read often enough") {
            assert_eq!(event.object.resource_version, self.read + 1, "{place}: a version is missing");
            self.read += 1;
            self.change(event, &place);
            tell(&format!("{} {:?} {} {}", event.at, event.change, event.object.key, event.object.meta.generation));
        }
        self.nothing_changed_in_secret(engine, &place);
        no_node_beyond_capacity(engine, &place);
    }

    fn change(&mut self, event: &WatchEvent, place: &str) {
        let (object, place) = (&event.object, format!("{place}: {} {}", event.object.gvk.kind, event.object.key));
        let before = match event.change {
            Change::Added => None,
            Change::Modified | Change::Deleted => self.told.remove(&object.uid),
        };
        assert_eq!(before.is_some(), event.before.is_some(), "{place}: the log contradicts itself");
        if let Some(before) = &before {
            assert!(event.change == Change::Deleted || **before != **object, "{place}: a change that changes nothing");
            pod_law(before, object, &place);
            job_law(before, object, &place);
        }
        if event.change != Change::Deleted {
            self.told.insert(object.uid, object.clone());
        } else if object.gvk == NODE {
            self.node_went = Some(event.at);
        }
    }

    fn nothing_changed_in_secret(&self, engine: &Engine, place: &str) {
        let mut there = 0;
        for (_, object) in engine.objects().everything() {
            there += 1;
            let told = self.told.get(&object.uid);
            assert!(told.is_some_and(|told| Arc::ptr_eq(told, object)), "{place}: {} changed in secret", object.key);
        }
        assert_eq!(there, self.told.len(), "{place}: an object went in secret");
    }

    /// Has a node gone since then?
    pub(crate) fn a_node_went_since(&self, since: SimTime) -> bool {
        self.node_went.is_some_and(|at| at >= since)
    }

    /// What holds when nothing was done for a long time.
    pub(crate) fn settled(&self, engine: &Engine) {
        let place = format!("seed {}", self.seed);
        for object in self.told.values() {
            let name = format!("{place}: {} {}", object.gvk.kind, object.key);
            assert!(!object.is_deleting(), "{name} is still going");
            let owner = object.controller().map(|owner| owner.uid);
            assert!(owner.is_none_or(|owner| self.told.contains_key(&owner)), "{name} has lost its owner");
            let node = object.pod().and_then(|pod| pod.node_name.clone());
            let has_node = node.is_none_or(|node| engine.get(&NODE, &ObjectKey::cluster(node)).is_some());
            assert!(has_node, "{name} is on a node that is gone");
            let is_second = object.key.namespace.as_deref() == Some(SECOND_NAMESPACE);
            let namespace = ObjectKey::cluster(SECOND_NAMESPACE);
            assert!(!is_second || engine.get(&NAMESPACE, &namespace).is_some(), "{name} has outlived its namespace");
        }
        engine.list(&DEPLOYMENT).for_each(|deployment| self.deployment_settled(engine, deployment, &place));
        engine.list(&JOB).for_each(|job| job_settled(job, &place));
        for kind in [&STATEFUL_SET, &REPLICATION_CONTROLLER] {
            engine.list(kind).for_each(|set| set_settled(engine, set, &place));
        }
        engine.list(&DAEMON_SET).for_each(|set| daemons_settled(engine, set, &place));
        let told = |count: &'static str| (count, "replicas");
        let ready = [told("replicas"), told("readyReplicas"), told("availableReplicas")];
        for kind in [&DEPLOYMENT, &STATEFUL_SET, &REPLICATION_CONTROLLER] {
            engine.list(kind).for_each(|set| counts_settled(set, &ready, &place));
        }
        engine.list(&DEPLOYMENT).for_each(|set| counts_settled(set, &[told("updatedReplicas")], &place));
    }

    fn deployment_settled(&self, engine: &Engine, deployment: &Object, place: &str) {
        let wanted = deployment.deployment().map_or(0, |deployment| deployment.spec.replicas);
        let sets: Vec<Uid> = engine.objects().owned_by(deployment.uid).map(|(_, set)| set.uid).collect();
        let of_sets = |pod: &&Arc<Object>| pod.controller().is_some_and(|owner| sets.contains(&owner.uid));
        let is_alive = |pod: &&Arc<Object>| pod.pod().is_some_and(|pod| !pod.status.phase.is_final());
        let pods: Vec<&Arc<Object>> = engine.list(&POD).filter(of_sets).filter(is_alive).collect();
        let told: Vec<String> = pods.iter().map(|pod| pod.to_json().to_string()).collect();
        assert_eq!(i32::try_from(pods.len()), Ok(wanted), "{place}: pods of {}: {}", deployment.key, told.join("\n"));
    }
}

/// A pod never leaves its node or comes back from its end, and its containers never un-start.
fn pod_law(before: &Object, after: &Object, place: &str) {
    let (Some(before), Some(after)) = (before.pod(), after.pod()) else { return };
    assert!(before.node_name.is_none() || before.node_name == after.node_name, "{place} moved");
    let (old, new) = (before.status.phase, after.status.phase);
    assert!(!old.is_final() || old == new, "{place} came back from {old:?}");
    assert!(before.status.restarts <= after.status.restarts, "{place} lost restarts");
}

/// Counters only grow, what is over stays over, and nothing is ready that is not active.
fn job_law(before: &Object, after: &Object, place: &str) {
    let (Some(before), Some(after)) = (before.job(), after.job()) else { return };
    let (old, new): (&JobStatus, &JobStatus) = (&before.status, &after.status);
    assert!(new.failed >= old.failed, "{place}: fewer failures");
    assert!(
        new.succeeded >= old.succeeded || before.spec.completions != after.spec.completions,
        "{place}: fewer successes"
    );
    assert!(new.ready.unwrap_or(0) <= new.active, "{place}: more ready than active");
    assert!(new.active >= 0 && new.ready >= Some(0), "{place}: less than none");
    let ends = ["Complete", "Failed"].map(|kind| new.true_condition(kind).is_some());
    assert_ne!(ends, [true, true], "{place}: complete and failed");
    if old.is_finished() {
        assert_eq!((old, new.is_finished()), (new, true), "{place}: a finished Job went on");
    }
    if ends[0] && after.spec.success_policy.is_none() {
        let wanted = after.spec.completions.unwrap_or(1);
        assert!(new.succeeded >= wanted, "{place}: complete with {} of {wanted}", new.succeeded);
    }
}

/// As many pods as are wanted, and those of a stateful set bear the numbers from its first on.
fn set_settled(engine: &Engine, object: &Object, place: &str) {
    let wanted =
        object.stateful_set().map(|set| set.spec.replicas).or(object.replica_set().map(|set| set.spec.replicas));
    let owned = engine.objects().owned_by(object.uid).map(|(_, pod)| pod);
    let is_alive = |pod: &&Arc<Object>| pod.pod().is_some_and(|pod| !pod.status.phase.is_final());
    let mut names: Vec<_> = owned.filter(is_alive).map(|pod| pod.key.name.to_string()).collect();
    names.sort();
    assert_eq!(i32::try_from(names.len()).ok(), wanted, "{place}: {} {} has {names:?}", object.gvk.kind, object.key);
    if object.stateful_set().is_some() {
        let numbered: Vec<_> = (0..names.len()).map(|number| format!("{}-{number}", object.key.name)).collect();
        assert_eq!(names, numbered, "{place}: numbers of {}", object.key);
    }
}

/// Every node has a pod of a DaemonSet that tolerates everything, and its status says so. On a node that is full a pod waits, and so
/// may the rest of a rollout.
fn daemons_settled(engine: &Engine, object: &Object, place: &str) {
    let place = format!("{place}: DaemonSet {}", object.key);
    let is_alive = |pod: &&Arc<Object>| pod.pod().is_some_and(|pod| !pod.status.phase.is_final());
    let pods: Vec<_> = engine.objects().owned_by(object.uid).map(|(_, pod)| pod).filter(is_alive).collect();
    let mut there: Vec<_> = pods.iter().filter_map(|pod| node_meant(pod)).collect();
    let mut nodes: Vec<_> = engine.list(&NODE).map(|node| node.key.name.to_string()).collect();
    there.sort();
    nodes.sort();
    let mut waiting = pods.iter().filter(|pod| pod.pod().is_some_and(|pod| pod.node_name.is_none())).peekable();
    if waiting.peek().is_some() {
        waiting.for_each(|pod| node_is_full(engine, pod, &place));
        there.dedup();
        return assert_eq!(there, nodes, "{place}: nodes with a pod");
    }
    assert_eq!(there, nodes, "{place}: nodes with a pod");
    let status = &object.to_json()["status"];
    for count in DAEMON_COUNTS {
        assert_eq!(status[count].as_u64().unwrap_or(0), nodes.len() as u64, "{place}: {count} in {status}");
    }
}

const DAEMON_COUNTS: [&str; 5] =
    ["desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady", "numberAvailable"];

/// The node that a DaemonSet's pod was made for.
fn node_meant(pod: &Object) -> Option<String> {
    const NODE_OF_POD: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                               /nodeSelectorTerms/0/matchFields/0/values/0";
    pod.to_json().pointer(NODE_OF_POD)?.as_str().map(str::to_owned)
}

/// A pod that waits for one node waits because there is no room.
fn node_is_full(engine: &Engine, pod: &Object, place: &str) {
    let name = node_meant(pod).unwrap_or_default();
    let on_it = engine.list(&POD).filter_map(|pod| pod.pod()).filter(|pod| pod.node_name.as_deref() == Some(&*name));
    let (mut sum, mut pods) = (pod.pod().map(|pod| pod.spec.requests()).unwrap_or_default(), 1);
    for other in on_it.filter(|pod| !pod.status.phase.is_final()) {
        sum.add(&other.spec.requests());
        pods += 1;
    }
    let node = engine.get(&NODE, &ObjectKey::cluster(name.as_str()));
    let Some((room, most)) = node.and_then(|node| node.node()).map(Node::allocatable) else { return };
    let fits = sum.cpu_milli <= room.cpu_milli && sum.memory <= room.memory && pods <= most;
    assert!(!fits, "{place}: {} waits although node {name} has room", pod.key);
}

/// A settled workload reports of its newest generation, and each count is as large as the spec's field.
fn counts_settled(object: &Object, counts: &[(&str, &str)], place: &str) {
    let json = object.to_json();
    let place = format!("{place}: {} {}: {}", object.gvk.kind, object.key, json["status"]);
    assert_eq!(json["status"]["observedGeneration"], json["metadata"]["generation"], "{place}");
    for (count, wanted) in counts {
        let told = json["status"][*count].as_u64().unwrap_or(0);
        assert_eq!(Some(told), json["spec"][*wanted].as_u64(), "{count}, {place}");
    }
}

fn job_settled(object: &Object, place: &str) {
    let Some(job) = object.job() else { return };
    assert!(job.status.is_finished(), "{place}: {} never ended: {:?}", object.key, job.status);
    assert_eq!((job.status.active, job.status.terminating), (0, Some(0)), "{place}: {} has pods", object.key);
}

fn no_node_beyond_capacity(engine: &Engine, place: &str) {
    let mut used = BTreeMap::<_, (Resources, i64)>::new();
    for (_, object) in engine.objects().everything() {
        let Some(pod) = object.pod().filter(|pod| !pod.status.phase.is_final()) else { continue };
        let Some(node) = &pod.node_name else { continue };
        let (sum, pods) = used.entry(node.clone()).or_default();
        sum.add(&pod.spec.requests());
        *pods += 1;
    }
    for (name, (sum, pods)) in used {
        let node = engine.get(&NODE, &ObjectKey::cluster(name.clone()));
        let Some((room, most)) = node.and_then(|node| node.node()).map(Node::allocatable) else { continue };
        let fits = sum.cpu_milli <= room.cpu_milli && sum.memory <= room.memory && pods <= most;
        assert!(fits, "{place}: node {name} holds {sum:?} in {pods} pods, of {room:?}");
    }
}
