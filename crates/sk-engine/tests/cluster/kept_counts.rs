//! Counts that controllers keep as pods change are what counting all pods gives, whatever happens to the pods.
//!
//! Pods are relabelled, adopted, released, evicted and deleted under budgets, ReplicaSets and StatefulSets, drawn from a seed.
//! In debug builds the controllers compare their counts with a recount in every sync; what they report in the end is
//! compared here.

use serde_json::{Value, json};
use sk_core::rng::Stream;
use sk_core::{Gvk, LabelSelector, ObjectRef, SimDuration};
use sk_engine::Timing;
use sk_engine::api::{DeleteOptions, Object, Request};
use sk_engine::kinds::{POD, POD_DISRUPTION_BUDGET, REPLICA_SET, STATEFUL_SET};

use crate::harness::{Cluster, group};

static CLAIM: Gvk = Gvk::new_static("", "v1", "PersistentVolumeClaim");
const SEEDS: u64 = 20;
const STEPS: usize = 60;

struct Hand {
    stream: Stream,
    cluster: Cluster,
}

impl Hand {
    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.stream.below(of.len() as u64) as usize].clone()
    }

    fn labels(&mut self) -> Value {
        let app = self.one(&["a0", "a1", "s"]);
        let tier = self.one(&["front", "back"]);
        if self.stream.below(2) == 0 { json!({"app": app}) } else { json!({"app": app, "tier": tier}) }
    }

    fn act(&mut self) {
        match self.stream.below(9) {
            0 => self.budget(),
            1 => self.bare_pod(),
            2 => self.relabel(),
            3 | 4 => self.deployment(),
            5 | 6 => self.stateful_set(),
            7 => self.evict(),
            _ => self.delete_one(),
        }
    }

    /// What the server refuses, such as another selector of a set, is part of the story.
    fn apply(&mut self, json: Value) {
        let object = Object::from_json(json).expect("the test's object is well-formed");
        drop(self.cluster.engine.handle(Request::apply(object)));
    }

    fn budget(&mut self) {
        let selector = self.one(&[
            json!({}),
            json!({"matchLabels": {"app": "a0"}}),
            json!({"matchLabels": {"app": "s", "tier": "front"}}),
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a1", "s"]}]}),
            json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
        ]);
        let mut spec = self.one(&[
            json!({"minAvailable": 2}),
            json!({"minAvailable": "50%"}),
            json!({"maxUnavailable": 1}),
            json!({"maxUnavailable": "30%"}),
        ]);
        spec["selector"] = selector;
        let metadata = json!({"name": self.one(&["b0", "b1", "b2"]), "namespace": "default"});
        self.apply(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec,
        }));
    }

    /// Some bear a name of the StatefulSet's, two of them with the same number.
    fn bare_pod(&mut self) {
        let name = self.one(&["p0", "p1", "p2", "s-0", "s-00", "s-1", "s-9"]);
        let metadata = json!({"name": name, "namespace": "default", "labels": self.labels()});
        let spec = json!({"containers": [{"name": "main", "image": "a:1"}]});
        self.apply(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}));
    }

    fn any(&mut self, kind: &Gvk) -> Option<ObjectRef> {
        let all: Vec<_> = self.cluster.engine.list(kind).map(|object| object.reference()).collect();
        (!all.is_empty()).then(|| self.one(&all))
    }

    fn relabel(&mut self) {
        let Some(pod) = self.any(&POD) else { return };
        let mut json = self.cluster.engine.get(&POD, &pod.key).expect("it was just listed").to_json();
        json["metadata"]["labels"] = self.labels();
        drop(self.cluster.engine.handle(Request::update(Object::from_json(json).expect("what came out goes in"))));
    }

    fn template(&mut self, app: &str) -> Value {
        let annotations = json!({"simkube.io/kwok-stage-ready-delay": format!("{}ms", self.stream.below(8_000))});
        let image = self.one(&["a:1", "a:2"]);
        json!({
            "metadata": {"labels": {"app": app, "tier": "front"}, "annotations": annotations},
            "spec": {"containers": [{"name": "main", "image": image}]},
        })
    }

    fn deployment(&mut self) {
        let name = self.one(&["a0", "a1"]);
        let template = self.template(name);
        let (replicas, min_ready) = (self.stream.below(7), self.one(&[0, 0, 5, 20]));
        self.apply(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "replicas": replicas, "minReadySeconds": min_ready,
                "selector": {"matchLabels": {"app": name}}, "template": template,
            },
        }));
    }

    fn stateful_set(&mut self) {
        let template = self.template("s");
        let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        let rolling = json!({"partition": self.stream.below(3)});
        let mut spec = json!({
            "replicas": self.stream.below(6), "serviceName": "s", "selector": {"matchLabels": {"app": "s"}},
            "minReadySeconds": self.one(&[0, 3]), "ordinals": {"start": self.one(&[0, 0, 1])}, "template": template,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        });
        // Neither can change once the set is there; which it is, the first one decides.
        spec["podManagementPolicy"] = json!(self.one(&["OrderedReady", "Parallel"]));
        if self.stream.below(2) == 0 {
            spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": claim}]);
            let (deleted, scaled) = (self.one(&["Retain", "Delete"]), self.one(&["Retain", "Delete"]));
            spec["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": deleted, "whenScaled": scaled});
        }
        let known = self.cluster.engine.list(&STATEFUL_SET).next().map(|set| set.to_json());
        if let Some(known) = known {
            spec["podManagementPolicy"] = known["spec"]["podManagementPolicy"].clone();
            spec["volumeClaimTemplates"] =
                json!(known["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten().collect::<Vec<_>>());
        }
        let metadata = json!({"name": "s", "namespace": "default"});
        self.apply(json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}));
    }

    fn evict(&mut self) {
        if let Some(pod) = self.any(&POD) {
            drop(self.cluster.engine.handle(Request::Evict { pod: pod.key }));
        }
    }

    fn delete_one(&mut self) {
        let kind = self.one(&[&POD, &POD, &POD, &CLAIM, &STATEFUL_SET, &POD_DISRUPTION_BUDGET]);
        if let Some(target) = self.any(kind) {
            drop(self.cluster.engine.handle(Request::Delete { target, options: DeleteOptions::default() }));
        }
    }

    fn wait(&mut self, duration: SimDuration) {
        let until = self.cluster.engine.now() + duration;
        self.cluster.engine.advance_to(until);
    }

    /// Makes the controller look at every budget again: of those that share a pod it looks at one.
    fn touch_budgets(&mut self) {
        let all: Vec<_> = self.cluster.engine.list(&POD_DISRUPTION_BUDGET).map(|budget| budget.to_json()).collect();
        for mut budget in all {
            budget["metadata"]["annotations"] = json!({"touched": "yes"});
            self.apply(budget);
        }
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.clone().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn check_budgets(hand: &Hand, seed: u64) -> usize {
    let pods: Vec<_> = hand.cluster.engine.list(&POD).map(|pod| pod.to_json()).collect();
    let mut checked = 0;
    for budget in hand.cluster.engine.list(&POD_DISRUPTION_BUDGET).map(|budget| budget.to_json()) {
        let selector = LabelSelector::from_json(&budget["spec"]["selector"]).expect("it was taken");
        let selected: Vec<_> = pods.iter().filter(|pod| selector.matches(&pod["metadata"]["labels"])).collect();
        let is_healthy = |pod: &&&Value| is_ready(pod) && pod["metadata"]["deletionTimestamp"].is_null();
        // Where nobody knows how many there should be, the counts stay as they were.
        if budget["status"]["conditions"][0]["reason"] != "SyncFailed" {
            let healthy = selected.iter().filter(is_healthy).count();
            assert_eq!(budget["status"]["currentHealthy"], json!(healthy), "seed {seed}: {budget}");
            checked += 1;
        }
        if budget["spec"]["minAvailable"].is_number() {
            assert_eq!(budget["status"]["expectedPods"], json!(selected.len()), "seed {seed}: {budget}");
        }
    }
    checked
}

fn check_replica_sets(hand: &Hand, seed: u64) -> usize {
    let pods: Vec<_> = hand.cluster.engine.list(&POD).map(|pod| pod.to_json()).collect();
    let mut available = 0;
    for set in hand.cluster.engine.list(&REPLICA_SET).map(|set| set.to_json()) {
        let is_its = |pod: &&Value| pod["metadata"]["ownerReferences"][0]["uid"] == set["metadata"]["uid"];
        let ready = pods.iter().filter(is_its).filter(|pod| is_ready(pod)).count();
        assert_eq!(set["status"]["availableReplicas"].as_u64().unwrap_or(0), ready as u64, "seed {seed}: {set}");
        available += ready;
    }
    available
}

#[test]
fn kept_counts_are_what_counting_all_pods_gives() {
    let (mut budgets, mut available) = (0, 0);
    for seed in 1..=SEEDS {
        let timing = if seed % 2 == 0 { Timing::real_like() } else { Timing::ideal() };
        let cluster = Cluster::new(vec![group("big", "64", 2, 2)], timing);
        eprintln!("seed {seed}");
        let mut hand = Hand { stream: Stream::new(seed, "kept counts"), cluster };
        for _ in 0..STEPS {
            hand.act();
            let pause = i64::try_from(hand.stream.below(6_000)).unwrap_or(0);
            hand.wait(SimDuration::from_millis(pause));
        }
        hand.wait(SimDuration::from_mins(10));
        hand.touch_budgets();
        hand.wait(SimDuration::from_mins(1));
        budgets += check_budgets(&hand, seed);
        available += check_replica_sets(&hand, seed);
    }
    assert!(budgets > 5 && available > 5, "{budgets} budgets and {available} available pods are no test");
}
