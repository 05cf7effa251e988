//! The scheduler's rules at work in the whole cluster: pods that avoid each other, pods that push others out.

use serde_json::{Value, json};
use sk_engine::api::Propagation;
use sk_engine::kinds::{POD, PodPhase};
use sk_engine::{Engine, Explain, Settings, Timing};
use sk_scheduler::framework::Criterion;
use sk_scheduler::{Configuration, Profile};

use crate::harness::{Cluster, START, deployment, group};

fn one_per_host(name: &str, replicas: i64) -> Value {
    let mut deployment = deployment(name, replicas, Some("100m"));
    deployment["spec"]["template"]["spec"]["affinity"] = json!({"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": name}}},
        ],
    }});
    deployment
}

fn bare(name: &str, cpu: &str, priority: i64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "priorityClassName": if priority > 0 { "high" } else { "" },
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
        },
    })
}

#[test]
fn pods_that_avoid_each_other_stand_on_nodes_of_their_own_and_the_rest_wait() {
    let mut cluster = Cluster::new(vec![group("fixed", "8", 2, 2)], Timing::real_like());
    cluster.until(1).apply(one_per_host("web", 8));
    cluster.until(300);
    assert_eq!(cluster.running_and_pending(), (2, 6));
}

#[test]
fn the_autoscaler_adds_a_node_for_each_pod_that_avoids_the_others() {
    let mut cluster = Cluster::new(vec![group("small", "8", 1, 10)], Timing::real_like());
    cluster.until(1).apply(one_per_host("web", 6));
    cluster.until(300);
    assert_eq!((cluster.running_and_pending(), cluster.nodes()), ((6, 0), 6));
}

#[test]
fn a_pod_of_higher_priority_takes_the_place_of_a_lower_one() {
    let mut cluster = Cluster::new(vec![group("fixed", "2", 1, 1)], Timing::real_like());
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000,
    });
    cluster.until(1).apply(class).apply(bare("low", "1500m", 0));
    cluster.until(60).apply(bare("high", "1500m", 1000));
    cluster.until(200);
    let running: Vec<_> = cluster
        .engine
        .list(&POD)
        .filter(|pod| pod.pod().is_some_and(|pod| pod.status.phase == PodPhase::Running))
        .map(|pod| pod.key.name.to_string())
        .collect();
    assert_eq!(running, ["high"]);
    assert_eq!(cluster.names(&POD), ["high"], "the victim is gone");
    let history = cluster.history();
    assert!(history.contains("PreemptionByScheduler") && history.contains("\"nominatedNodeName\":\"fixed-1\""));
}

#[test]
fn a_deployments_pods_are_spread_over_zones_by_default() {
    let zone = |name: &str| {
        let mut group = group(name, "8", 2, 2);
        group.labels.insert("topology.kubernetes.io/zone".into(), name.into());
        group
    };
    let mut cluster = Cluster::new(vec![zone("a"), zone("b"), zone("c")], Timing::real_like());
    cluster.until(1).apply(deployment("web", 9, Some("100m")));
    cluster.until(60);
    let in_zone = |zone: &str| {
        let pods = cluster.engine.list(&POD).filter_map(|pod| pod.pod()?.node_name.clone());
        pods.filter(|node| node.starts_with(zone)).count()
    };
    assert_eq!(["a", "b", "c"].map(in_zone), [3, 3, 3]);
}

#[test]
fn pods_that_never_fit_do_not_use_up_the_explanations_of_those_that_do() {
    let explain = Some(Explain { sample: 1_000, most: 2 });
    let settings = Settings { seed: 1, groups: vec![group("fixed", "2", 2, 2)], explain, ..Settings::default() };
    let mut cluster = Cluster { engine: Engine::new(&settings, START) };
    cluster.until(1).apply(bare("a", "1500m", 0)).apply(bare("b", "1500m", 0));
    for number in 0..8 {
        cluster.apply(bare(&format!("never-{number}"), "16", 0));
    }
    cluster.until(20).apply(bare("later", "1500m", 0));
    cluster.until(40).delete("v1.Pod", "a", Propagation::Background);
    cluster.until(120);
    let later = cluster.engine.list(&POD).find(|pod| pod.key.name == "later").expect("it is there").clone();
    assert!(later.pod().is_some_and(|pod| pod.node_name.is_some()), "there is room for it now");
    let explained = cluster.engine.take_explained();
    let of_later = explained.iter().find(|explained| explained.pod == later.uid && explained.counts.is_some());
    assert!(of_later.is_some_and(|explained| !explained.scores.is_empty()), "{explained:?}");
}

/// A pod of this priority, and the class that it comes from.
fn worth(name: &str, cpu: &str, priority: i64) -> (Value, Value) {
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": format!("p{priority}")},
        "value": priority,
    });
    let mut pod = bare(name, cpu, 0);
    pod["spec"]["priorityClassName"] = json!(format!("p{priority}"));
    (class, pod)
}

#[test]
fn events_of_a_pod_are_signed_by_the_profile_that_schedules_it() {
    let profile = |name: &str| Profile { scheduler_name: name.into(), ..Profile::default() };
    let profiles = vec![profile("default-scheduler"), profile("packer")];
    let scheduler = Configuration { profiles, ..Configuration::default() };
    let groups = vec![group("small", "1", 1, 1)];
    let settings =
        Settings { seed: 1, timing: Timing::ideal(), groups, scheduler, events: true, ..Settings::default() };
    let mut cluster = Cluster { engine: Engine::new(&settings, START) };
    let packed = |mut pod: Value| {
        pod["spec"]["schedulerName"] = json!("packer");
        pod
    };
    let (class, urgent) = worth("urgent", "900m", 9);
    cluster.until(100).apply(class).apply(bare("plain", "500m", 0)).apply(packed(bare("large", "3", 0)));
    cluster.until(110).apply(packed(urgent)).until(200);
    let said = cluster.engine.take_events();
    let signed = |reason: &str, name: &str| -> Vec<&str> {
        let of_it = said.iter().filter(|event| event.reason == reason && event.about.key.name == name);
        of_it.map(|event| event.from.as_str()).collect()
    };
    assert_eq!(signed("Scheduled", "plain"), ["default-scheduler"]);
    assert_eq!(signed("FailedScheduling", "large").first(), Some(&"packer"));
    assert_eq!(signed("Preempted", "plain"), ["packer"], "it is the preemptor's profile that says so");
    assert_eq!(signed("Scheduled", "urgent"), ["packer"]);
}

#[test]
fn a_preemption_says_why_these_pods_had_to_make_room() {
    let explain = Some(Explain::default());
    let groups = vec![group("fixed", "2", 2, 2)];
    let settings = Settings { seed: 1, timing: Timing::ideal(), groups, explain, ..Settings::default() };
    let mut cluster = Cluster { engine: Engine::new(&settings, START) };
    // The pods of priority 2 and 3 are on nodes of their own; each has one of priority 1 beside it.
    for (at, (name, priority)) in [("a2", 2), ("b3", 3), ("a1", 1), ("b1", 1)].into_iter().enumerate() {
        let (class, pod) = worth(name, "900m", priority);
        if name != "b1" {
            cluster.until(100 + at as i64).apply(class);
        }
        cluster.until(100 + at as i64).apply(pod);
    }
    let (class, urgent) = worth("urgent", "1500m", 9);
    cluster.until(110).apply(class).apply(urgent).until(112);
    let told = cluster.engine.take_explained();
    let why = told.iter().find_map(|told| Some((&told.victims, told.preemption.as_ref()?))).expect("an explanation");
    assert!(why.0.iter().any(|victim| victim.name == "a2") && why.0.len() == 2, "{why:?}");
    assert_eq!((why.1.candidates, why.1.criterion), (2, Criterion::LowestHighestPriority));
    assert_eq!((why.1.budget_violations, why.1.reprieved.1), (0, 0));
}

/// Deciding about victims takes a second look where there are budgets. It was made from where the first had ended, so that the
/// next pod was looked for a node from one node too far on.
#[test]
fn a_preemption_beside_budgets_moves_the_next_search_no_further_than_one_without() {
    let placed_after = |with_budget: bool| {
        let settings = Settings {
            seed: 1,
            timing: Timing::ideal(),
            groups: vec![group("fixed", "2", 4, 4)],
            ..Settings::default()
        };
        let mut cluster = Cluster { engine: Engine::new(&settings, START) };
        if with_budget {
            cluster.until(1).apply(json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "any", "namespace": "default"},
                "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "nobody"}}},
            }));
        }
        for number in 0..4 {
            cluster.until(100 + number).apply(bare(&format!("low-{number}"), "1500m", 0));
        }
        let (class, mut urgent) = worth("urgent", "1500m", 9);
        urgent["spec"]["affinity"]["nodeAffinity"] = json!({"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["fixed-1"]}]}],
        }});
        cluster.until(110).apply(class).apply(urgent).until(120).apply(bare("next", "200m", 0)).until(130);
        let next = cluster.engine.list(&POD).find(|pod| pod.key.name == "next").expect("it is there");
        next.pod().and_then(|pod| pod.node_name.clone()).expect("there is room for it")
    };
    assert_eq!(placed_after(true), placed_after(false));
}
