//! What holds of every cluster after every step, and what holds once it has settled.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_core::{ObjectKey, Resources};
use sk_engine::Engine;
use sk_engine::api::{Change, Object, Uid, WatchEvent};
use sk_engine::kinds::{DEPLOYMENT, JOB, JobStatus, NODE, Node, POD, REPLICATION_CONTROLLER, STATEFUL_SET};

/// The laws, and what they have seen so far.
pub(crate) struct Laws {
    seed: u64,
    read: u64,
    /// Every object as the log of changes tells it.
    told: BTreeMap<Uid, Arc<Object>>,
}

impl Laws {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, read: 0, told: BTreeMap::new() }
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
        }
        engine.list(&DEPLOYMENT).for_each(|deployment| self.deployment_settled(engine, deployment, &place));
        engine.list(&JOB).for_each(|job| job_settled(job, &place));
        for kind in [&STATEFUL_SET, &REPLICATION_CONTROLLER] {
            engine.list(kind).for_each(|set| set_settled(engine, set, &place));
        }
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
