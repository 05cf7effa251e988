//! Seeded random scenarios: a cluster of mixed nodes, then pods with every feature mixed, with deletions, new nodes
//! and changed nodes in between. The same seed generates the same scenario.
//!
//! The generator only makes scenarios on which the real scheduler is deterministic. Above a hundred nodes the real
//! scheduler starts its search for victims at a random node, so pods have no priorities there. Victims end when the
//! scenario says so, never at once, because which pod the scheduler tries before it sees them deleted is a race.

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
/// Pods that live at a time, per node; the oldest go when there are more. Most nodes hold five to ten of those drawn.
const PODS_PER_NODE: usize = 7;
/// How many kinds of clusters are drawn, one after the other by seed.
const SIZES: [usize; 4] = [12, 30, 60, 130];
pub(super) const APPS: [&str; 5] = ["web", "api", "db", "batch", "guarded"];
pub(super) const NAMESPACES: [&str; 3] = ["default", "red", "blue"];
pub(super) const IMAGES: [&str; 4] = ["example/web:1", "example/api:1", "example/db:1", "example/rare:1"];
const ZONES: [&str; 4] = ["east", "north", "south", "west"];

/// A scenario of so many pods.
pub fn scenario(seed: u64, pods: usize) -> SchedulingScenario {
    let size = SIZES[(seed % SIZES.len() as u64) as usize];
    let mut draw = Draw::new(seed, "nodes");
    let nodes = (0..size).map(|index| node(&mut draw, index)).collect();
    let story = Story {
        cluster: Draw::new(seed, "cluster"),
        pods: Draw::new(seed, "pods"),
        nodes: size,
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
        node["resources"] = json!({"example.com/gpu": draw.one(&["1", "4"])});
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
    objects
}

/// A scenario that is being drawn.
struct Story {
    cluster: Draw,
    pods: Draw,
    /// How many nodes there have ever been.
    nodes: usize,
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
            if self.living.len() > self.nodes * PODS_PER_NODE {
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
        match self.cluster.below(10) {
            0..=2 => self.delete_a_pod(),
            3..=4 => self.steps.push(Step::Finish),
            5 => self.open_a_gate(),
            6 => {
                let node = node(&mut self.cluster, self.nodes);
                self.nodes += 1;
                self.steps.push(Step::Node(node));
            }
            _ => self.change_a_node(),
        }
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
        let name = format!("n-{}", self.cluster.below(self.nodes));
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
        ] {
            assert!(all.contains(feature), "no pod has {feature}");
        }
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
