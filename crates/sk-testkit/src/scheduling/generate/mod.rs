//! Seeded random scenarios: a cluster of mixed nodes, then pods with every feature mixed; in between pods are deleted and
//! change their labels, and nodes come, change and go. The same seed draws the same scenario.
//!
//! Drawn is only what the real scheduler decides alike twice. Where it draws lots itself the generator keeps away: above
//! a hundred nodes it looks for victims from a random node on, so there pods have no priorities, and where they have, no
//! more nodes come. And victims end when the
//! scenario says so, never at once, because which pod the scheduler tries before it sees them gone is a race.

mod pod;

use serde_json::{Value, json};
use sk_core::rng::Stream;
use sk_core::{Gvk, ObjectKey, ObjectRef};

use super::scenario::{Change, SchedulingScenario, Step};
use super::shorthand;
use crate::scenario::Target;

/// Above so many nodes the search for victims begins at a random one (preemption.go, `GetOffsetAndNumCandidates`: all
/// nodes are looked at as long as there are no more than 100).
const MAX_NODES_WITH_PRIORITIES: usize = 100;
/// Pods that live at a time, per node; some go when there are more. Most nodes hold five to ten of those drawn, and every
/// pod that waits is tried again and again: with two more for each node a pod is tried fifteen times.
const PODS_PER_NODE: usize = 5;
/// Nodes go only where at least so many are there.
const MIN_NODES: usize = 8;
/// How many kinds of clusters are drawn, one after the other by seed.
const SIZES: [usize; 4] = [12, 30, 60, 130];
pub(super) const APPS: [&str; 5] = ["web", "api", "db", "batch", "guarded"];
pub(super) const NAMESPACES: [&str; 3] = ["default", "red", "blue"];
pub(super) const IMAGES: [&str; 4] = ["example/web:1", "example/api:1", "example/db:1", "example/rare:1"];
pub(super) const ZONES: [&str; 4] = ["east", "north", "south", "west"];

/// A scenario of so many pods.
pub fn scenario(seed: u64, pods: usize) -> SchedulingScenario {
    let size = SIZES[(seed % SIZES.len() as u64) as usize];
    let mut draw = Draw::new(seed, "nodes");
    let nodes = (0..size).map(|index| node(&mut draw, index)).collect();
    let story = Story {
        cluster: Draw::new(seed, "cluster"),
        pods: Draw::new(seed, "pods"),
        nodes: size,
        there: (0..size).collect(),
        living: Vec::new(),
        gated: Vec::new(),
        steps: Vec::new(),
        priorities: size <= MAX_NODES_WITH_PRIORITIES,
    };
    SchedulingScenario {
        name: format!("seed-{seed}"),
        scheduler: json!({}),
        objects: objects(),
        nodes,
        steps: story.tell(pods),
    }
}

/// Draws from one random stream, with names that read like a scenario.
pub(super) struct Draw(Stream);

impl Draw {
    fn new(seed: u64, name: &str) -> Self {
        Self(Stream::new(seed, name))
    }

    /// True in so many of a hundred cases.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    /// One of several.
    pub(super) fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// A number below a bound.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }
}

fn node(draw: &mut Draw, index: usize) -> Value {
    let mut labels = json!({"gen": draw.below(9).to_string()});
    if draw.chance(70) {
        labels["disk"] = draw.one(&["ssd", "hdd"]).into();
    }
    let mut node = json!({
        "name": format!("n-{index}"), "labels": labels,
        "cpu": draw.one(&["2", "4", "8", "16"]), "memory": draw.one(&["4Gi", "8Gi", "16Gi", "32Gi"]),
        "pods": draw.one(&["6", "30", "110"]),
    });
    if draw.chance(90) {
        node["zone"] = draw.one(&ZONES).into();
    }
    let taints: Vec<&str> =
        [(12, "dedicated=batch:NoSchedule"), (10, "slow:PreferNoSchedule"), (6, "old=1:PreferNoSchedule")]
            .into_iter()
            .filter_map(|(percent, taint)| draw.chance(percent).then_some(taint))
            .collect();
    node["taints"] = taints.into();
    node["images"] = json!({});
    for (image, bytes) in IMAGES.iter().zip([300_000_000_u64, 900_000_000, 2_500_000_000, 60_000_000]) {
        if draw.chance(40) {
            node["images"][image] = bytes.into();
        }
    }
    if draw.chance(20) {
        node["resources"]["example.com/gpu"] = draw.one(&["1", "4"]).into();
    }
    if draw.chance(80) {
        node["resources"]["ephemeral-storage"] = draw.one(&["10Gi", "100Gi"]).into();
    }
    if draw.chance(4) {
        node["unschedulable"] = true.into();
    }
    written_out(shorthand::nodes(&node))
}

/// Expands shorthand. The generator writes only shorthand that can be parsed.
fn written_out(objects: Result<Vec<Value>, String>) -> Value {
    objects.expect("the generator writes what the shorthand reads").swap_remove(0)
}

/// What is there before the first pod.
fn objects() -> Vec<Value> {
    let mut objects = vec![];
    for namespace in &NAMESPACES[1..] {
        let labels = json!({"color": namespace});
        objects
            .push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}));
    }
    for (name, value, policy) in
        [("low", 10, "PreemptLowerPriority"), ("high", 1_000, "PreemptLowerPriority"), ("polite", 500, "Never")]
    {
        objects.push(json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "preemptionPolicy": policy,
        }));
    }
    let selector = |app: &str| json!({"matchLabels": {"app": app}});
    objects.push(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }));
    objects.push(json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "api", "namespace": "default"},
        "spec": {"replicas": 0, "selector": selector("api"), "template": {
            "metadata": {"labels": {"app": "api"}}, "spec": {"containers": [{"name": "main", "image": "example/api:1"}]}}},
    }));
    objects.push(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guard", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": selector("guarded")},
        "status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2},
    }));
    objects.push(json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "heavy"}, "handler": "heavy",
        "overhead": {"podFixed": {"cpu": "150m", "memory": "100Mi"}},
    }));
    objects.extend(disks());
    objects
}

/// A disk in each zone with the claim that is bound to it, and a claim that nothing is bound to.
fn disks() -> Vec<Value> {
    let mut objects = vec![json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "now"},
        "provisioner": "example.com/disk", "volumeBindingMode": "Immediate",
    })];
    let claim = |name: &str, metadata: Value, volume: Option<&str>| {
        let mut claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
            "spec": {"storageClassName": "now", "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        (claim["metadata"]["name"], claim["metadata"]["namespace"]) = (name.into(), NAMESPACES[0].into());
        if let Some(volume) = volume {
            claim["spec"]["volumeName"] = volume.into();
        }
        claim
    };
    for zone in ZONES {
        let name = format!("disk-{zone}");
        objects.push(json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": name, "labels": {shorthand::ZONE: zone}},
            "spec": {
                "storageClassName": "now", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
                "claimRef": {"namespace": NAMESPACES[0], "name": name},
                "csi": {"driver": "example.com", "volumeHandle": name},
            },
        }));
        let bound = json!({"annotations": {"pv.kubernetes.io/bind-completed": "yes"}});
        objects.push(claim(&name, bound, Some(&name)));
    }
    objects.push(claim("disk-none", json!({}), None));
    objects
}

/// A scenario that is being drawn.
struct Story {
    cluster: Draw,
    pods: Draw,
    /// How many nodes there have ever been, and which are there.
    nodes: usize,
    there: Vec<usize>,
    living: Vec<ObjectKey>,
    gated: Vec<ObjectKey>,
    steps: Vec<Step>,
    priorities: bool,
}

impl Story {
    fn tell(mut self, pods: usize) -> Vec<Step> {
        for index in 0..pods {
            self.pod(index);
            if self.cluster.chance(20) {
                self.event();
            }
            if self.living.len() > self.there.len() * PODS_PER_NODE {
                self.delete_a_pod();
            }
        }
        self.steps.push(Step::Finish);
        self.steps
    }

    fn pod(&mut self, index: usize) {
        let entry = pod::entry(&mut self.pods, index, self.priorities);
        let pod = written_out(shorthand::pods(&entry));
        let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = ObjectKey::namespaced(text("namespace"), text("name"));
        if !pod["spec"]["schedulingGates"].is_null() {
            self.gated.push(key.clone());
        }
        self.living.push(key);
        self.steps.push(Step::Pod(pod));
    }

    fn event(&mut self) {
        let has_room = !self.priorities || self.there.len() < MAX_NODES_WITH_PRIORITIES;
        match self.cluster.below(12) {
            0..=2 => self.delete_a_pod(),
            3..=4 => self.steps.push(Step::Finish),
            5 => self.open_a_gate(),
            6 if has_room => {
                let node = node(&mut self.cluster, self.nodes);
                self.there.push(self.nodes);
                self.nodes += 1;
                self.steps.push(Step::Node(node));
            }
            6 | 7 => self.delete_a_node(),
            8 => self.change_a_pod(),
            _ => self.change_a_node(),
        }
    }

    /// A node goes, whatever is on it; the pods there stay bound to it, since nobody is there to remove them.
    fn delete_a_node(&mut self) {
        if self.there.len() < MIN_NODES {
            return;
        }
        let node = self.there.swap_remove(self.cluster.below(self.there.len()));
        self.steps.push(Step::Delete(target("Node", ObjectKey::cluster(format!("n-{node}")))));
    }

    /// A pod belongs to another application from now on, wherever it is.
    fn change_a_pod(&mut self) {
        if self.living.is_empty() {
            return;
        }
        let key = self.living[self.cluster.below(self.living.len())].clone();
        let merge = json!({"metadata": {"labels": {"app": self.cluster.one(&APPS)}}});
        self.steps.push(Step::Change(Change { of: target("Pod", key), merge, status: false }));
    }

    fn delete_a_pod(&mut self) {
        if self.living.is_empty() {
            return;
        }
        let key = self.living.swap_remove(self.cluster.below(self.living.len()));
        self.gated.retain(|gated| *gated != key);
        self.steps.push(Step::Delete(target("Pod", key)));
    }

    fn open_a_gate(&mut self) {
        if let Some(key) = self.gated.pop() {
            let merge = json!({"spec": {"schedulingGates": []}});
            self.steps.push(Step::Change(Change { of: target("Pod", key), merge, status: false }));
        }
    }

    /// Some change that the API server takes even if nothing changes by it; the annotation makes it one.
    fn change_a_node(&mut self) {
        let name = format!("n-{}", self.there[self.cluster.below(self.there.len())]);
        let marked = json!({"annotations": {"change": self.steps.len().to_string()}});
        let (merge, status) = match self.cluster.below(5) {
            0 => (json!({"metadata": marked, "spec": {"unschedulable": self.cluster.chance(40)}}), false),
            1 => {
                let disk = self.cluster.one(&["ssd", "hdd"]);
                (json!({"metadata": {"annotations": marked["annotations"], "labels": {"disk": disk}}}), false)
            }
            2 => (json!({"metadata": marked, "spec": {"taints": null}}), false),
            3 => {
                let taint = json!({"key": "dedicated", "value": "batch", "effect": "NoSchedule"});
                (json!({"metadata": marked, "spec": {"taints": [taint]}}), false)
            }
            _ => {
                let cpu = self.cluster.one(&["2", "4", "8", "16"]);
                (json!({"metadata": marked, "status": {"allocatable": {"cpu": cpu}, "capacity": {"cpu": cpu}}}), true)
            }
        };
        let of = target("Node", ObjectKey::cluster(&name));
        self.steps.push(Step::Change(Change { of, merge, status }));
    }
}

fn target(kind: &str, key: ObjectKey) -> Target {
    let gvk = Gvk::from_api_version("v1", kind).expect("v1 is a version");
    Target(ObjectRef::new(gvk, key))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_draws_the_same_scenario_twice_and_another_draws_another() {
        assert_eq!(scenario(3, 50), scenario(3, 50));
        assert_ne!(scenario(3, 50).steps, scenario(7, 50).steps);
    }

    #[test]
    fn every_feature_is_drawn() {
        let all: String = (0..4)
            .flat_map(|seed| scenario(seed, 250).steps)
            .filter_map(|step| if let Step::Pod(pod) = step { Some(pod.to_string()) } else { None })
            .collect();
        for feature in [
            "nodeSelector",
            "nodeAffinity",
            "podAffinity",
            "podAntiAffinity",
            "preferredDuringScheduling",
            "requiredDuringScheduling",
            "namespaceSelector",
            "topologySpreadConstraints",
            "minDomains",
            "nodeTaintsPolicy",
            "matchLabelKeys",
            "hostPort",
            "tolerations",
            "priorityClassName",
            "schedulingGates",
            "initContainers",
            "restartPolicy",
            "example.com/gpu",
            "ownerReferences",
            "ephemeral-storage",
            "runtimeClassName",
            "persistentVolumeClaim",
            "matchFields",
            "\"resources\":{\"requests\":{\"cpu\":\"3\",\"memory\":\"3Gi\"}},",
        ] {
            assert!(all.contains(feature), "no pod has {feature}");
        }
    }

    #[test]
    fn everything_happens_in_between_and_only_to_what_can_be_there() {
        let (mut seen, mut there) = (BTreeSet::new(), BTreeSet::new());
        let drawn = scenario(0, 2_000);
        there.extend(drawn.nodes.iter().map(crate::scheduling::attempt::name_of));
        for step in &drawn.steps {
            let (what, of) = match step {
                Step::Node(node) => {
                    assert!(there.insert(crate::scheduling::attempt::name_of(node)));
                    ("new", "Node")
                }
                Step::Delete(of) => ("deleted", of.0.gvk.kind.as_str()),
                Step::Change(Change { of, .. }) => ("changed", of.0.gvk.kind.as_str()),
                Step::Finish => ("finished", "Pod"),
                Step::Pod(_) | Step::Bind(_) | Step::Create(_) | Step::Wait(_) => continue,
            };
            if let Step::Delete(of) | Step::Change(Change { of, .. }) = step
                && of.0.gvk.kind.as_str() == "Node"
            {
                assert!(there.contains(of.0.key.name.as_str()), "{} is not there", of.0.key.name);
            }
            if let Step::Delete(of) = step {
                there.remove(of.0.key.name.as_str());
            }
            assert!(there.len() <= MAX_NODES_WITH_PRIORITIES);
            seen.insert(format!("{what} {of}"));
        }
        let all = ["changed Node", "changed Pod", "deleted Node", "deleted Pod", "finished Pod", "new Node"];
        assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), all);
    }

    #[test]
    fn no_pod_has_a_priority_where_the_real_scheduler_draws_lots() {
        for seed in 0..4 {
            let scenario = scenario(seed, 100);
            let text: String = scenario
                .steps
                .iter()
                .filter_map(|step| if let Step::Pod(pod) = step { Some(pod.to_string()) } else { None })
                .collect();
            assert_eq!(text.contains("priorityClassName"), scenario.nodes.len() <= MAX_NODES_WITH_PRIORITIES, "{seed}");
        }
    }
}
