//! One random pod, in shorthand.

use serde_json::{Value, json};

use super::{APPS, Draw, IMAGES, NAMESPACES, ZONES};
use crate::scheduling::shorthand::{HOSTNAME, ZONE};

/// The pod with this number.
pub(super) fn entry(draw: &mut Draw, index: usize, priorities: bool) -> Value {
    let app = draw.one(&APPS);
    let namespace = if draw.chance(80) { NAMESPACES[0] } else { draw.one(&NAMESPACES) };
    let version = draw.one(&["1", "2"]);
    let mut pod = json!({
        "name": format!("p-{index}"), "namespace": namespace, "labels": {"app": app, "version": version},
        "image": draw.one(&IMAGES),
    });
    room(draw, &mut pod);
    whole(draw, &mut pod);
    if namespace == NAMESPACES[0] && draw.chance(5) {
        let zone = draw.one(&[ZONES[0], ZONES[1], ZONES[2], ZONES[3], "none"]);
        let claim = json!({"claimName": format!("disk-{zone}")});
        pod["volumes"] = json!([{"name": "data", "persistentVolumeClaim": claim}]);
    }
    place(draw, &mut pod);
    spread(draw, &mut pod, app);
    neighbours(draw, &mut pod, app);
    if app == "api" && namespace == NAMESPACES[0] && draw.chance(60) {
        pod["owner"] = "ReplicaSet api".into();
    }
    if priorities && draw.chance(30) {
        pod["priorityClassName"] = draw.one(&["low", "low", "high", "polite"]).into();
    }
    if draw.chance(3) {
        pod["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    }
    pod
}

/// What it asks for.
fn room(draw: &mut Draw, pod: &mut Value) {
    if draw.chance(85) {
        pod["cpu"] = draw.one(&["100m", "250m", "500m", "1", "1500m", "3"]).into();
    }
    if draw.chance(75) {
        pod["memory"] = draw.one(&["64Mi", "256Mi", "1Gi", "2Gi", "3Gi"]).into();
    }
    if draw.chance(8) {
        pod["requests"]["example.com/gpu"] = "1".into();
        pod["limits"]["example.com/gpu"] = "1".into();
    }
    if draw.chance(8) {
        pod["requests"]["ephemeral-storage"] = draw.one(&["1Gi", "6Gi"]).into();
    }
    if draw.chance(8) {
        let asks = json!({"requests": {"cpu": draw.one(&["200m", "2"]), "memory": "128Mi"}});
        let mut first = json!({"name": "first", "image": draw.one(&IMAGES), "resources": asks});
        if draw.chance(50) {
            first["restartPolicy"] = "Always".into();
        }
        pod["initContainers"] = json!([first]);
    }
    if draw.chance(7) {
        let mut port = json!({"containerPort": 80, "hostPort": 8080 + draw.below(2)});
        if draw.chance(30) {
            port["hostIP"] = draw.one(&["10.0.0.1", "127.0.0.1"]).into();
        }
        if draw.chance(30) {
            port["protocol"] = "UDP".into();
        }
        pod["ports"] = json!([port]);
    }
}

/// What it asks for beside its containers. No container asks for more than the pod as a whole does.
fn whole(draw: &mut Draw, pod: &mut Value) {
    if draw.chance(5) {
        pod["runtimeClassName"] = "heavy".into();
    }
    if pod["initContainers"].is_null() && draw.chance(5) {
        pod["resources"] = json!({"requests": {"cpu": "3", "memory": "3Gi"}});
    }
}

/// On which nodes it can be, and on which it likes to be.
fn place(draw: &mut Draw, pod: &mut Value) {
    if draw.chance(25) {
        let some = json!({"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"});
        let all = json!({"operator": "Exists"});
        let soft = json!({"key": "slow", "operator": "Exists", "effect": "PreferNoSchedule"});
        pod["tolerations"] = json!([draw.one(&[&some, &all, &soft])]);
    }
    if draw.chance(8) {
        pod["nodeSelector"] = json!({"disk": draw.one(&["ssd", "hdd"])});
    }
    if draw.chance(8) {
        let terms: Vec<Value> = (0..=draw.below(2)).map(|_| json!({"matchExpressions": [expression(draw)]})).collect();
        pod["affinity"]["nodeAffinity"]["required"] = json!({"nodeSelectorTerms": terms});
    }
    if draw.chance(3) {
        let names = json!([{"key": "metadata.name", "operator": "In", "values": [format!("n-{}", draw.below(12))]}]);
        pod["affinity"]["nodeAffinity"]["required"] = json!({"nodeSelectorTerms": [{"matchFields": names}]});
    }
    if draw.chance(15) {
        let likes = (0..=draw.below(3))
            .map(|_| json!({"weight": 1 + draw.below(100), "preference": {"matchExpressions": [expression(draw)]}}));
        pod["affinity"]["nodeAffinity"]["preferred"] = likes.collect();
    }
}

fn expression(draw: &mut Draw) -> Value {
    match draw.below(6) {
        0 => json!({"key": "disk", "operator": "In", "values": ["ssd"]}),
        1 => json!({"key": "disk", "operator": "NotIn", "values": ["ssd"]}),
        2 => json!({"key": "disk", "operator": "Exists"}),
        3 => json!({"key": "disk", "operator": "DoesNotExist"}),
        4 => json!({"key": "gen", "operator": "Gt", "values": [draw.below(8).to_string()]}),
        _ => json!({"key": "gen", "operator": "Lt", "values": [(1 + draw.below(8)).to_string()]}),
    }
}

/// How it spreads.
fn spread(draw: &mut Draw, pod: &mut Value, app: &str) {
    let mut constraints = Vec::new();
    for (percent, key) in [(12, ZONE), (10, HOSTNAME)] {
        if !draw.chance(percent) {
            continue;
        }
        let when = draw.one(&["DoNotSchedule", "ScheduleAnyway"]);
        let mut constraint = json!({
            "maxSkew": 1 + draw.below(3), "topologyKey": key, "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"app": app}},
        });
        if when == "DoNotSchedule" && draw.chance(20) {
            constraint["minDomains"] = (2 + draw.below(4)).into();
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if draw.chance(30) {
                constraint[policy] = draw.one(&["Honor", "Ignore"]).into();
            }
        }
        if draw.chance(25) {
            constraint["matchLabelKeys"] = json!(["version"]);
        }
        constraints.push(constraint);
    }
    if !constraints.is_empty() {
        pod["topologySpreadConstraints"] = constraints.into();
    }
}

/// Whom it wants near, and whom far.
fn neighbours(draw: &mut Draw, pod: &mut Value, app: &str) {
    if draw.chance(5) {
        pod["affinity"]["podAffinity"]["required"] = json!([term(draw)]);
    }
    if draw.chance(8) {
        // Its own kind: the commonest use, and one that fills up.
        let own = json!({"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}});
        let other = term(draw);
        pod["affinity"]["podAntiAffinity"]["required"] = json!([draw.one(&[&own, &own, &other])]);
    }
    for way in ["podAffinity", "podAntiAffinity"] {
        if draw.chance(10) {
            let likes =
                (0..=draw.below(2)).map(|_| json!({"weight": 1 + draw.below(100), "podAffinityTerm": term(draw)}));
            pod["affinity"][way]["preferred"] = likes.collect();
        }
    }
}

fn term(draw: &mut Draw) -> Value {
    let mut term = json!({
        "topologyKey": draw.one(&[HOSTNAME, ZONE, ZONE]), "labelSelector": {"matchLabels": {"app": draw.one(&APPS)}},
    });
    match draw.below(6) {
        0 => term["namespaces"] = json!(NAMESPACES),
        1 => term["namespaceSelector"] = json!({"matchLabels": {"color": draw.one(&["red", "blue"])}}),
        2 => term["namespaceSelector"] = json!({}),
        _ => {}
    }
    match draw.below(8) {
        0 => term["matchLabelKeys"] = json!(["version"]),
        1 => term["mismatchLabelKeys"] = json!(["version"]),
        _ => {}
    }
    term
}
