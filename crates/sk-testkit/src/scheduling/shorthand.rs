//! Shorthand for nodes and pods, and the Kubernetes objects that it expands to.
//!
//! A scenario is about one or two fields; the rest of its objects only has to exist. A node is `{name: a, cpu: 4,
//! zone: x}`, a pod `{name: p, cpu: 500m, nodeSelector: {disk: ssd}}`: a key that is not shorthand is a field of the
//! pod's own spec. Nothing is checked: a scenario must be able to contain what the API server refuses.

use serde_json::{Map, Value, json};

/// Short names of the affinity fields, and the fields.
const LONG_NAMES: [(&str, &str); 2] = [
    ("required", "requiredDuringSchedulingIgnoredDuringExecution"),
    ("preferred", "preferredDuringSchedulingIgnoredDuringExecution"),
];
/// The label of a node's zone; kube-scheduler's node order goes round it.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// The label of a node's own name.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

type Fields = Map<String, Value>;

/// The nodes of one entry: one, or `count` of them named `name-1`, `name-2`, ….
///
/// `zone` may be a list, which the nodes of a `count` take in turn. Taints are written as kubectl does,
/// `key=value:Effect`.
pub fn nodes(entry: &Value) -> Result<Vec<Value>, String> {
    let fields = object(entry, "a node")?;
    many(&fields)?.into_iter().map(|(index, fields)| node(fields, index)).collect()
}

/// The pods of one entry: one, or `count` of them named `name-1`, `name-2`, ….
pub fn pods(entry: &Value) -> Result<Vec<Value>, String> {
    let fields = object(entry, "a pod")?;
    many(&fields)?.into_iter().map(|(_, fields)| pod(fields)).collect()
}

fn many(fields: &Fields) -> Result<Vec<(usize, Fields)>, String> {
    let mut fields = fields.clone();
    let Some(count) = fields.shift_remove("count") else { return Ok(vec![(0, fields)]) };
    let count = count.as_u64().ok_or("`count` is a number")? as usize;
    let name = fields.get("name").and_then(Value::as_str).ok_or("what is counted has a name")?.to_owned();
    let numbered = |index: usize| {
        let mut one = fields.clone();
        one.insert("name".into(), format!("{name}-{}", index + 1).into());
        (index, one)
    };
    Ok((0..count).map(numbered).collect())
}

fn node(mut fields: Fields, index: usize) -> Result<Value, String> {
    let name = text(&mut fields, "name").ok_or("a node has a name")?;
    let mut labels = json!({HOSTNAME: name});
    match fields.shift_remove("zone") {
        Some(Value::Array(zones)) if !zones.is_empty() => labels[ZONE] = zones[index % zones.len()].clone(),
        Some(zone) => labels[ZONE] = zone,
        None => {}
    }
    overlay(&mut labels, fields.shift_remove("labels"));
    let mut room = json!({
        "cpu": text(&mut fields, "cpu").unwrap_or_else(|| "4".into()),
        "memory": text(&mut fields, "memory").unwrap_or_else(|| "16Gi".into()),
        "pods": text(&mut fields, "pods").unwrap_or_else(|| "110".into()),
    });
    overlay(&mut room, fields.shift_remove("resources"));
    let mut status = json!({"capacity": room, "allocatable": room});
    if let Some(Value::Object(images)) = fields.shift_remove("images") {
        let line = |(name, bytes): (&String, &Value)| json!({"names": [name], "sizeBytes": bytes});
        status["images"] = images.iter().map(line).collect();
    }
    let mut node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}, "status": status,
    });
    if let Some(Value::Array(taints)) = fields.shift_remove("taints") {
        node["spec"]["taints"] = taints.iter().map(taint).collect::<Result<_, _>>()?;
    }
    overlay(&mut node["spec"], Some(Value::Object(fields)));
    Ok(node)
}

fn taint(text: &Value) -> Result<Value, String> {
    let wrong = || format!("{text} is no taint: write `key=value:NoSchedule` or `key:NoSchedule`");
    let (left, effect) = text.as_str().and_then(|text| text.rsplit_once(':')).ok_or_else(wrong)?;
    Ok(match left.split_once('=') {
        Some((key, value)) => json!({"key": key, "value": value, "effect": effect}),
        None => json!({"key": left, "effect": effect}),
    })
}

fn pod(mut fields: Fields) -> Result<Value, String> {
    let name = text(&mut fields, "name").ok_or("a pod has a name")?;
    let namespace = text(&mut fields, "namespace").unwrap_or_else(|| "default".into());
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": {},
    });
    for part in ["labels", "annotations"] {
        if let Some(value) = fields.shift_remove(part) {
            pod["metadata"][part] = value;
        }
    }
    if let Some(owner) = text(&mut fields, "owner") {
        pod["metadata"]["ownerReferences"] = json!([controller(&owner)?]);
    }
    if let Some(node) = fields.shift_remove("on") {
        pod["spec"]["nodeName"] = node;
    }
    pod["spec"]["containers"] = match fields.shift_remove("containers") {
        Some(containers) => containers,
        None => json!([container(&mut fields)]),
    };
    if let Some(affinity) = fields.get_mut("affinity") {
        lengthen(affinity);
    }
    // A pod whose victims' grace matters says so; for the others the API server's default is as good as any.
    overlay(&mut pod["spec"], Some(Value::Object(fields)));
    Ok(pod)
}

/// The one container of a pod that lists none.
fn container(fields: &mut Fields) -> Value {
    let image = text(fields, "image").unwrap_or_else(|| "example/app:1".into());
    let mut container = json!({"name": "main", "image": image});
    let mut requests = json!({});
    for resource in ["cpu", "memory"] {
        if let Some(amount) = text(fields, resource) {
            requests[resource] = amount.into();
        }
    }
    overlay(&mut requests, fields.shift_remove("requests"));
    if requests.as_object().is_some_and(|requests| !requests.is_empty()) {
        container["resources"]["requests"] = requests;
    }
    if let Some(limits) = fields.shift_remove("limits") {
        container["resources"]["limits"] = limits;
    }
    if let Some(ports) = fields.shift_remove("ports") {
        container["ports"] = ports;
    }
    container
}

/// `ReplicaSet web` as the reference to a controller. Nothing here collects garbage, so any uid will do.
fn controller(owner: &str) -> Result<Value, String> {
    let (kind, name) =
        owner.split_once(' ').ok_or_else(|| format!("`{owner}` is no owner: write it like `ReplicaSet web`"))?;
    let version = if kind == "ReplicationController" { "v1" } else { "apps/v1" };
    Ok(json!({"apiVersion": version, "kind": kind, "name": name, "uid": format!("{kind}-{name}"), "controller": true}))
}

fn lengthen(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(lengthen),
        Value::Object(fields) => {
            let whole = std::mem::take(fields);
            for (key, mut field) in whole {
                lengthen(&mut field);
                let long = LONG_NAMES.iter().find(|(short, _)| *short == key).map(|(_, long)| (*long).to_owned());
                fields.insert(long.unwrap_or(key), field);
            }
        }
        _ => {}
    }
}

fn object(value: &Value, what: &str) -> Result<Fields, String> {
    value.as_object().cloned().ok_or_else(|| format!("{value} is not {what}: write it like {{name: a, cpu: 2}}"))
}

/// A text that YAML may have taken for a number, such as the quantity `4`.
fn text(fields: &mut Fields, key: &str) -> Option<String> {
    match fields.shift_remove(key)? {
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

fn overlay(target: &mut Value, fields: Option<Value>) {
    if let (Some(target), Some(Value::Object(fields))) = (target.as_object_mut(), fields) {
        target.extend(fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_in_a_few_words_is_a_whole_node() {
        let made = nodes(&json!({"name": "a", "cpu": 2, "zone": "x", "taints": ["k=v:NoSchedule", "gone:NoExecute"],
            "images": {"app:1": 5}, "resources": {"example.com/gpu": "2"}, "unschedulable": true}))
        .unwrap();
        assert_eq!(made[0]["metadata"]["labels"], json!({HOSTNAME: "a", ZONE: "x"}));
        assert_eq!(made[0]["status"]["allocatable"]["cpu"], "2");
        assert_eq!(made[0]["status"]["capacity"]["example.com/gpu"], "2");
        assert_eq!(made[0]["spec"]["taints"][1], json!({"key": "gone", "effect": "NoExecute"}));
        assert_eq!(made[0]["spec"]["unschedulable"], true);
        assert_eq!(made[0]["status"]["images"], json!([{"names": ["app:1"], "sizeBytes": 5}]));
    }

    #[test]
    fn counted_nodes_take_their_zones_in_turn() {
        let made = nodes(&json!({"name": "n", "count": 3, "zone": ["x", "y"]})).unwrap();
        let zones: Vec<_> = made.iter().map(|node| &node["metadata"]["labels"][ZONE]).collect();
        assert_eq!(zones, ["x", "y", "x"]);
        assert_eq!(made[2]["metadata"]["name"], "n-3");
    }

    #[test]
    fn fields_that_are_no_shorthand_are_the_pods_own() {
        let made = pods(&json!({"name": "p", "cpu": 1, "owner": "ReplicaSet web", "on": "a", "priority": 7,
            "affinity": {"nodeAffinity": {"required": {"nodeSelectorTerms": []}}}}))
        .unwrap();
        let spec = &made[0]["spec"];
        assert_eq!((&spec["priority"], &spec["nodeName"]), (&json!(7), &json!("a")));
        assert_eq!(spec["containers"][0]["resources"]["requests"], json!({"cpu": "1"}));
        assert!(spec["affinity"]["nodeAffinity"][LONG_NAMES[0].1].is_object());
        assert_eq!(made[0]["metadata"]["ownerReferences"][0]["kind"], "ReplicaSet");
    }

    #[test]
    fn a_misspelt_taint_is_told_how_to_write_it() {
        assert!(nodes(&json!({"name": "a", "taints": ["k"]})).unwrap_err().contains("key=value:NoSchedule"));
    }
}
