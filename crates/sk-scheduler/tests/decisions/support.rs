//! A cluster in a few words.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sk_core::{LabelSelector, SimTime};
use sk_scheduler::cluster::Cluster;
use sk_scheduler::{Decision, NodeId, NodeSpec, PodClass, PodId, Profile, Scheduler};

/// A scheduler whose pods are called by name.
pub(crate) struct World {
    pub(crate) scheduler: Scheduler,
    pub(crate) pods: BTreeMap<String, PodId>,
    started: i64,
}

/// A node's JSON: `with` is laid over one of 4 cores, 8 GiB and 110 pods.
pub(crate) fn node(name: &str, with: Value) -> Value {
    let mut node = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    });
    merge(&mut node, with);
    node
}

/// A node in a zone.
pub(crate) fn in_zone(name: &str, zone: &str) -> Value {
    node(name, json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}}))
}

/// A pod's JSON: `spec` is laid over one container without requests.
pub(crate) fn pod(name: &str, labels: Value, spec: Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    });
    merge(&mut pod["spec"], spec);
    pod
}

/// A container list that asks for this.
pub(crate) fn asks(cpu: &str, memory: &str) -> Value {
    json!({"containers": [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]})
}

/// Lays one JSON over another; lists are replaced.
pub(crate) fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over,
    }
}

/// Several JSON objects laid over each other.
pub(crate) fn all(parts: impl IntoIterator<Item = Value>) -> Value {
    parts.into_iter().fold(json!({}), |mut sum, part| {
        merge(&mut sum, part);
        sum
    })
}

pub(crate) fn selector(labels: Value) -> LabelSelector {
    LabelSelector::from_json(&json!({"matchLabels": labels})).unwrap()
}

impl World {
    pub(crate) fn new(nodes: impl IntoIterator<Item = Value>) -> Self {
        Self::with_profiles(nodes, vec![Profile::default()])
    }

    pub(crate) fn with_profiles(nodes: impl IntoIterator<Item = Value>, profiles: Vec<Profile>) -> Self {
        let scheduler = Scheduler::new(Cluster::default(), profiles);
        let mut world = Self { scheduler, pods: BTreeMap::new(), started: 0 };
        for node in nodes {
            world.set_node(&node);
        }
        world
    }

    pub(crate) fn cluster(&mut self) -> &mut Cluster {
        &mut self.scheduler.cluster
    }

    pub(crate) fn set_node(&mut self, node: &Value) -> NodeId {
        let spec = NodeSpec::from_json(node).unwrap();
        self.cluster().set_node(spec).node
    }

    pub(crate) fn node(&self, name: &str) -> NodeId {
        self.scheduler.cluster.node_id(name).unwrap()
    }

    pub(crate) fn name(&self, node: NodeId) -> String {
        self.scheduler.cluster.node(node).name.to_string()
    }

    /// A pod that has no node yet.
    pub(crate) fn create(&mut self, pod: &Value) -> PodId {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let class = PodClass::from_pod(pod).unwrap();
        let class = self.cluster().intern(class);
        let id = self.cluster().new_pod(class, name);
        self.pods.insert(name.to_owned(), id);
        id
    }

    /// A pod that is on its node already, running since one second after the last.
    pub(crate) fn bind(&mut self, node: &str, pod: &Value) -> PodId {
        let id = self.create(pod);
        self.put(id, self.node(node));
        id
    }

    pub(crate) fn put(&mut self, pod: PodId, node: NodeId) {
        self.started += 1;
        let started = SimTime::from_secs(self.started);
        self.cluster().add_pod(pod, node);
        self.cluster().update_pod(pod, |pod| pod.started = Some(started));
    }

    /// Creates a pod and tries it; a placed one is put onto its node.
    pub(crate) fn place(&mut self, pod: &Value) -> String {
        let id = self.create(pod);
        self.try_again(id)
    }

    /// The node, `-> node: victims`, or the words.
    pub(crate) fn try_again(&mut self, pod: PodId) -> String {
        match self.scheduler.schedule(pod) {
            Decision::Placed { node, .. } => {
                self.put(pod, node);
                self.name(node)
            }
            Decision::Nominated { node, victims, .. } => {
                let victims: Vec<&str> =
                    victims.iter().map(|pod| self.scheduler.cluster.pod(*pod).name.as_str()).collect();
                format!("-> {}: {}", self.name(node), victims.join(" "))
            }
            Decision::Unschedulable(diagnosis) => diagnosis.to_string(),
            Decision::NoProfile => "no profile".to_owned(),
        }
    }

    /// The weighted scores of one plugin, by node.
    pub(crate) fn scores(&mut self, pod: &Value, plugin: &str) -> Vec<(String, i64)> {
        let id = self.create(pod);
        let explanation = self.scheduler.explain(id).unwrap();
        let of = |scores: &sk_scheduler::framework::NodeScores| {
            let found = scores.plugins.iter().find(|(id, _)| id.name() == plugin);
            (self.name(scores.node), found.map_or(0, |(_, score)| *score))
        };
        explanation.nodes.iter().map(of).collect()
    }
}

/// What preemption and DynamicResources add when nobody can be taken off any of `nodes`.
pub(crate) fn not_helpful(nodes: usize) -> String {
    let sentence = "Preemption is not helpful for scheduling";
    format!(" no new claims to deallocate, preemption: 0/{nodes} nodes are available: {nodes} {sentence}.")
}

/// The same where preemption was tried on all of them, and there was nobody to take off.
pub(crate) fn no_victims(nodes: usize) -> String {
    let sentence = "No preemption victims found for incoming pod";
    format!(" no new claims to deallocate, preemption: 0/{nodes} nodes are available: {nodes} {sentence}.")
}
