//! Recorded answers of kube-scheduler 1.36.4 (crates/sk-testkit/fixtures, with version and date inside).

use serde_json::{Value, json};

use crate::support::{World, merge, node, pod};

/// A fixture's node in few words as an object.
fn recorded_node(short: &Value) -> Value {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pods = if short["pods"].is_null() { "110".to_owned() } else { text(&short["pods"]) };
    let mut made = json!({
        "metadata": {"name": short["name"], "labels": short["labels"]},
        "spec": {"taints": short["taints"]},
        "status": {"allocatable": {"cpu": text(&short["cpu"]), "memory": short["memory"], "pods": pods}},
    });
    if short["labels"].is_null() {
        made["metadata"]["labels"] = json!({});
    }
    made
}

/// `name cpu memory` as a pod.
fn recorded_pod(short: &str) -> Value {
    let parts: Vec<&str> = short.split(' ').collect();
    let requests = match parts[1..] {
        [cpu, memory] => json!({"cpu": cpu, "memory": memory}),
        _ => json!({}),
    };
    pod(
        parts[0],
        json!({}),
        json!({"containers": [{"name": "main", "image": "example/app:1", "resources": {"requests": requests}}]}),
    )
}

/// Every change of a recorded pod, merged one after the other.
fn states(fixture: &Value, name: &str) -> Vec<Value> {
    let objects = fixture["objects"].as_array().unwrap();
    let found = objects.iter().find(|object| object["name"] == format!("default/Pod/{name}")).unwrap();
    let mut state = found["first"].clone();
    let mut states = vec![state.clone()];
    for change in found["changes"].as_array().unwrap() {
        merge(&mut state, change.clone());
        states.push(state.clone());
    }
    states
}

fn bound_to(fixture: &Value, name: &str) -> String {
    states(fixture, name).iter().find_map(|state| state["spec"]["nodeName"].as_str()).unwrap().to_owned()
}

#[test]
fn pods_go_where_the_real_scheduler_put_them() {
    let fixtures = [
        include_str!("../../../sk-testkit/fixtures/placement.json"),
        include_str!("../../../sk-testkit/fixtures/placement-zones.json"),
    ];
    for text in fixtures {
        let fixture: Value = serde_json::from_str(text).unwrap();
        let nodes = fixture["scenario"]["nodes"].as_array().unwrap();
        let mut world = World::new(nodes.iter().map(recorded_node));
        for short in fixture["scenario"]["steps"][0]["pods"].as_array().unwrap() {
            let pod = recorded_pod(short.as_str().unwrap());
            let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
            assert_eq!(world.place(&pod), bound_to(&fixture, &name), "{} {name}", fixture["scenario"]["name"]);
        }
    }
}

#[test]
fn a_pod_that_fits_nowhere_gets_the_real_schedulers_words() {
    let fixture: Value = serde_json::from_str(include_str!("../../../sk-testkit/fixtures/unschedulable.json")).unwrap();
    let mut world = World::new(fixture["scenario"]["nodes"].as_array().unwrap().iter().map(recorded_node));
    let messages = |name: &str| -> Vec<String> {
        let said = |state: &Value| state["status"]["conditions"][0]["message"].as_str().map(str::to_owned);
        let mut messages: Vec<String> = states(&fixture, name).iter().filter_map(said).collect();
        messages.dedup();
        messages
    };
    let big = world.create(&states(&fixture, "big")[0]);
    let huge = world.create(&states(&fixture, "huge")[0]);
    assert_eq!(world.try_again(big), messages("big")[0]);
    assert_eq!(world.try_again(huge), messages("huge")[0]);
    // A new node is tainted until it is ready.
    let taint = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
    let mut late = node("late", json!({"spec": {"taints": taint}, "status": {"allocatable": {"memory": "16Gi"}}}));
    world.set_node(&late);
    assert_eq!(world.try_again(big), messages("big")[1]);
    late["spec"]["taints"] = json!([]);
    world.set_node(&late);
    assert_eq!(world.try_again(huge), messages("huge")[1]);
    assert_eq!(world.try_again(big), bound_to(&fixture, "big"));
}

#[test]
fn the_recorded_preemption_takes_the_pod_of_the_lowest_priority() {
    let fixture: Value = serde_json::from_str(include_str!("../../../sk-testkit/fixtures/preemption.json")).unwrap();
    let mut world = World::new(fixture["scenario"]["nodes"].as_array().unwrap().iter().map(recorded_node));
    for name in ["middle", "low"] {
        assert_eq!(world.place(&states(&fixture, name)[0]), bound_to(&fixture, name));
    }
    let recorded = states(&fixture, "high");
    let (high, nominated) = (world.create(&recorded[0]), &recorded[1]["status"]["nominatedNodeName"]);
    let sk_scheduler::Decision::Nominated { node, victims, diagnosis } = world.scheduler.schedule(high) else {
        panic!("somebody has to go")
    };
    assert_eq!(world.name(node), *nominated);
    assert_eq!(victims, [world.pods["default/Pod/low"]]);
    assert_eq!(diagnosis.to_string(), recorded[1]["status"]["conditions"][0]["message"]);
    world.cluster().nominate(high, node);
    world.cluster().remove_pod(victims[0]);
    world.cluster().update_pod(high, |pod| pod.nominated = Some(node));
    assert_eq!(world.try_again(high), bound_to(&fixture, "high"));
}
