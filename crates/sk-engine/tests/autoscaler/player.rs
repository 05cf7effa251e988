//! Plays a recording on the engine: the same cluster, the same steps at the same times, and the autoscaler with the same
//! flags.
//!
//! All controllers are the engine's own. Pods of the set-up take a moment to be ready, as KWOK's did: of two budgets over
//! one pod only the first is looked at again then (`getPdbForPod` of the disruption controller), and the other goes on saying
//! that nothing may be disrupted.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sk_core::rng::Stream;
use sk_core::{Gvk, ObjectKey, ObjectRef, Quantity, SimDuration, SimTime, SmolStr};
use sk_engine::api::{DeleteOptions, Object, Propagation, Request};
use sk_engine::kinds::{NODE, POD, PodPhase};
use sk_engine::{Autoscaler, Engine, Informers, NodeGroup, Settings, Timing};
use sk_testkit::autoscaling::{GroupSpec, Observation};

use crate::{flags, objects};

/// The autoscaler's first loop, unless the rig's phase is another.
const ZERO: SimTime = SimTime::from_secs(1_767_600_000);
/// How long the nodes of the set-up have been ready by then. Of one recording it is known that it was 10.3 s.
const LEAD: SimDuration = SimDuration::from_millis(10_300);
/// In one recording the node of the set-up had been ready for more than 70 s.
const LONG_LEAD: SimDuration = SimDuration::from_secs(80);
/// From the end of a pod to its going, unless a step says otherwise.
const TERMINATION: SimDuration = SimDuration::from_millis(600);

/// From a step to its first pod, as measured, in seconds.
const USUAL: f64 = 0.054;

/// What of the rig was not recorded as such: a busy machine's latencies. The recordings' README says that nodes were up to
/// 2.1 s late; what requests and watches took is measured in the recordings (`rig`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rig {
    /// From a whole second of the API's clock to the first loop: ages of pods are counted in whole seconds.
    pub(crate) phase_ms: i64,
    /// So much longer than those of an idle machine each request and each watch took.
    pub(crate) latency_ms: i64,
    /// So much longer than others one node in a hundred took to be ready.
    pub(crate) ready_ms: i64,
    /// So far the autoscaler's list of pods was behind the watch that starts its loops at most, or so much ahead.
    pub(crate) race_ms: i64,
    /// So many nodes the loop after the first scale-up did not see.
    pub(crate) unseen_nodes: usize,
    /// Steps took effect when the recording has their first pod, to the tenth of a second; where in that tenth is drawn by this
    /// number. 0: at once.
    pub(crate) steps: u64,
}

impl Default for Rig {
    /// As measured: 54 ms from a Deployment to its first pod, 35 ms from a pod to its place.
    fn default() -> Self {
        Self { phase_ms: 0, latency_ms: 11, ready_ms: 0, race_ms: 0, unseen_nodes: 0, steps: 0 }
    }
}

/// A recording that was played.
pub(crate) struct Played {
    pub(crate) engine: Engine,
    /// The first loop.
    pub(crate) zero: SimTime,
}

struct Player {
    engine: Engine,
    quick: bool,
}

/// Plays it to its end.
pub(crate) fn play(seen: &Observation, seed: u64, rig: Rig, change: impl FnOnce(&mut Autoscaler)) -> Played {
    let zero = ZERO + SimDuration::from_millis(rig.phase_ms);
    let lead = if seen.scenario == "c9-binpack-old-node" { LONG_LEAD } else { LEAD };
    let mut autoscaler = flags::parse(&seen.flags);
    autoscaler.first_loop = Some(lead);
    autoscaler.informers =
        Informers { pod_race: SimDuration::from_millis(rig.race_ms), unseen_nodes: rig.unseen_nodes };
    autoscaler.priorities = priorities(seen);
    change(&mut autoscaler);
    let ops = seen.setup.iter().chain(&seen.steps);
    let termination = ops.clone().filter_map(objects::termination).max();
    let termination_time = termination.map_or(TERMINATION, SimDuration::from_secs);
    let (usual, busy) = (Timing::real_like(), SimDuration::from_millis(rig.latency_ms));
    let timing = Timing {
        pod_termination: termination_time,
        job_duration: SimDuration::from_mins(60),
        watch_latency: usual.watch_latency + busy,
        request_latency: usual.request_latency + busy,
        ..usual
    };
    let groups = seen.groups.iter().map(|spec| group(spec, rig)).collect();
    let settings = Settings { seed, timing, groups, autoscaler, events: true, ..Settings::default() };
    let engine = Engine::new(&settings, zero - lead);
    let mut player = Player { engine, quick: termination.is_some() };
    player.prepare(seen);
    let mut draws = Stream::new(rig.steps, "steps");
    for step in &seen.steps {
        let late = if rig.steps > 0 { lateness(step, seen, &mut draws) } else { 0.0 };
        player.until(zero + seconds(at(step) + late));
        player.act(step);
    }
    player.until(zero + seconds(seen.ended));
    Played { engine: player.engine, zero }
}

fn at(step: &Value) -> f64 {
    step["at"].as_f64().expect("a step has its time")
}

/// How much later than usual the first pod of a step came, by the recording: it has tenths of seconds.
fn lateness(step: &Value, seen: &Observation, draws: &mut Stream) -> f64 {
    let at = at(step);
    let rows = seen.pods.get(objects::name(step)).map_or(&[][..], Vec::as_slice);
    let sum = |row: &(f64, i64, i64, i64)| row.1 + row.2 + row.3;
    let before = rows.iter().rev().find(|row| row.0 < at - 0.05).map_or(0, sum);
    let first = rows.iter().find(|row| row.0 >= at - 0.05 && sum(row) > before);
    let within = draws.below(100) as f64 / 1000.0 - 0.05;
    first.map_or(0.0, |row| (row.0 + within).max(at) - at - USUAL)
}

pub(crate) fn seconds(seconds: f64) -> SimDuration {
    SimDuration::from_millis((seconds * 1000.0).round() as i64)
}

fn group(spec: &GroupSpec, rig: Rig) -> NodeGroup {
    let quantity = |text: &str| text.parse::<Quantity>().expect("the recording's quantities are well-formed");
    let pods = spec.pods.unwrap_or(110).to_string();
    let amounts = |cpu: &str, memory: &str, pods: &str| -> BTreeMap<SmolStr, Quantity> {
        [("cpu", cpu), ("memory", memory), ("pods", pods)].map(|(name, value)| (name.into(), quantity(value))).into()
    };
    let mut labels: BTreeMap<SmolStr, SmolStr> =
        spec.labels.iter().map(|(key, value)| (key.into(), value.into())).collect();
    labels.insert("obs/group".into(), spec.name.as_str().into());
    labels.extend(spec.machine.iter().map(|machine| ("node.kubernetes.io/instance-type".into(), machine.into())));
    let ready = spec.ready.as_deref().map_or(SimDuration::from_secs(1), |text| text.parse().expect("a duration"));
    NodeGroup {
        name: spec.name.as_str().into(),
        min: spec.min,
        max: spec.max,
        initial: Some(spec.init),
        capacity: amounts(&spec.cpu, &spec.mem, &pods),
        allocatable: amounts(&spec.cpu, &spec.mem, &pods),
        labels,
        taints: spec.taints.iter().map(|taint| serde_json::from_value(taint.clone()).expect("a taint")).collect(),
        ready_delay: ready,
        ready_p99: (rig.ready_ms > 0).then(|| ready + SimDuration::from_millis(rig.ready_ms)),
        // The provider's template has a kube-proxy pod.
        template_overhead: amounts("100m", "0", "1"),
        price_per_hour: None,
    }
}

/// The ConfigMap of the priority expander: `10:` and then `- regex` per line. The recordings' patterns are parts of names.
fn priorities(seen: &Observation) -> BTreeMap<SmolStr, i64> {
    let data = seen.setup.iter().find_map(|op| op.pointer("/data/priorities")).and_then(Value::as_str);
    let mut found = BTreeMap::new();
    let mut priority = 0;
    for line in data.unwrap_or_default().lines() {
        if let Some(number) = line.trim().strip_suffix(':') {
            priority = number.parse().expect("a priority");
        } else if let Some(pattern) = line.trim().strip_prefix("- ") {
            let part = pattern.trim_matches(['.', '*']);
            let named = seen.groups.iter().filter(|group| group.name.contains(part));
            found.extend(named.map(|group| (SmolStr::from(&group.name), priority)));
        }
    }
    found
}

impl Player {
    fn until(&mut self, end: SimTime) {
        self.engine.advance_to(end);
    }

    fn prepare(&mut self, seen: &Observation) {
        for spec in &seen.groups {
            for (number, annotations) in &spec.node_annotations {
                self.dress(&format!("{}-{number}", spec.name), "annotations", annotations);
            }
            for (number, labels) in &spec.node_labels {
                self.dress(&format!("{}-{number}", spec.name), "labels", labels);
            }
        }
        for op in &seen.setup {
            if op["op"] == "pdb" {
                self.create(objects::budget(op));
            } else {
                self.act(op);
            }
        }
    }

    fn dress(&mut self, node: &str, what: &str, with: &BTreeMap<String, String>) {
        let mut json = self.engine.get(&NODE, &ObjectKey::cluster(node)).expect("a node of the set-up").to_json();
        for (key, value) in with {
            json["metadata"][what][key] = json!(value);
        }
        self.handle(Request::update(parse(json)));
    }

    fn act(&mut self, op: &Value) {
        let quick = self.quick;
        match op["op"].as_str().expect("an operation") {
            "deploy" => drop(self.create(objects::workload("Deployment", op, count(op), quick))),
            "place" => self.place(op),
            "pod" => {
                let owner = op.get("owner").cloned().map(|owner| self.widget(&owner));
                let on = objects::text(op, "nodeName");
                self.create(objects::pod(op, objects::name(op), on, owner, quick));
            }
            "daemonset" => drop(self.create(objects::workload("DaemonSet", op, 1, self.quick))),
            "job" => drop(self.create(objects::workload("Job", op, 1, quick))),
            "statefulset" => drop(self.create(objects::workload("StatefulSet", op, count(op), quick))),
            "scale" => self.scale(op),
            "delete" => self.delete(op),
            "priorityclass" => drop(self.create(json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": op["name"]}, "value": op["value"],
                "preemptionPolicy": op.get("preemptionPolicy").cloned().unwrap_or(json!("PreemptLowerPriority")),
            }))),
            "succeed" => self.succeed(objects::name(op)),
            // The priority expander's ConfigMap is read before; waiting is for the rig.
            "configmap" | "wait" => {}
            other => panic!("the recordings have an operation {other}, which the player does not know"),
        }
    }

    /// Pods on given nodes, and then a ReplicaSet that owns them.
    fn place(&mut self, op: &Value) {
        let nodes: Vec<&str> = op["nodes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let owner = (op["kind"] != "none").then(|| {
            let set = objects::workload("ReplicaSet", op, nodes.len() as i64, self.quick);
            reference(&self.create(set))
        });
        for (number, node) in nodes.iter().enumerate() {
            let pod = format!("{}-{}", objects::name(op), number + 1);
            self.create(objects::pod(op, &pod, Some(node), owner.clone(), self.quick));
        }
    }

    /// An owner of a kind that nobody knows.
    fn widget(&mut self, owner: &Value) -> Value {
        let made = self.create(json!({
            "apiVersion": owner["apiVersion"], "kind": owner["kind"],
            "metadata": {"name": owner["name"], "namespace": "default"},
        }));
        reference(&made)
    }

    fn scale(&mut self, op: &Value) {
        let kind = objects::text(op, "kind").unwrap_or("Deployment");
        let gvk: Gvk = format!("apps/v1.{kind}").parse().expect("a kind");
        let key = ObjectKey::namespaced(objects::namespace(op), objects::name(op));
        let mut json = self.engine.get(&gvk, &key).expect("the recording scales what is there").to_json();
        json["spec"]["replicas"] = op["replicas"].clone();
        self.handle(Request::update(parse(json)));
    }

    fn delete(&mut self, op: &Value) {
        let kind = objects::text(op, "kind").expect("what is deleted has a kind");
        let key = ObjectKey::namespaced(objects::namespace(op), objects::name(op));
        let target = ObjectRef::new(format!("apps/v1.{kind}").parse().expect("a kind"), key);
        let options = DeleteOptions { propagation: Propagation::Background, ..DeleteOptions::default() };
        self.handle(Request::Delete { target, options });
    }

    fn succeed(&mut self, name: &str) {
        let stored = self.engine.get(&POD, &ObjectKey::namespaced("default", name)).expect("the pod is there");
        let mut done = Object::clone(stored);
        done.resource_version = 0;
        done.pod_mut().expect("a pod").status.phase = PodPhase::Succeeded;
        self.handle(Request::update_status(done));
    }

    fn create(&mut self, json: Value) -> Object {
        let object = parse(json);
        let (gvk, key) = (object.gvk.clone(), object.key.clone());
        self.handle(Request::create(object));
        Object::clone(self.engine.get(&gvk, &key).expect("what was created is there"))
    }

    fn handle(&mut self, request: Request) {
        let target = request.target();
        if let Err(error) = self.engine.handle(request) {
            panic!("the engine refuses what the real API server took: {target}: {error}");
        }
    }
}

fn count(op: &Value) -> i64 {
    op["replicas"].as_i64().expect("a number of replicas")
}

fn reference(owner: &Object) -> Value {
    json!({
        "apiVersion": owner.gvk.api_version(), "kind": owner.gvk.kind, "name": owner.key.name,
        "uid": owner.uid.to_string(), "controller": true,
    })
}

fn parse(json: Value) -> Object {
    Object::from_json(json).unwrap_or_else(|error| panic!("the recording's object does not parse: {error}"))
}
