//! A family: a handful of small scenarios about one thing, in one file, written short. Read from `scenarios/families/*.yaml`.
//!
//! What the members have in common (nodes, kinds to watch, fields that differ from run to run) is said once. Objects and
//! targets may be written short, and are what they stand for before anybody else sees them:
//!
//! ```yaml
//! nodes: [{name: node-1, cpu: 16, memory: 64Gi}]
//! watch: [Deployment, ReplicaSet, Pod]
//! scenarios:
//!   - name: deployment-grows
//!     about: A Deployment grows from one to three.
//!     steps:
//!       - create: {Deployment: web, replicas: 1}
//!         until: [{field: {of: Deployment web, at: /status/readyReplicas, is: 1}}]
//!       - patch: {of: Deployment web, merge: {spec: {replicas: 3}}}
//!         until: [{quiet: 2s}]
//! ```
//!
//! `{Deployment: web, replicas: 1}` is a Deployment of that name in `default` with a selector, labels and one container;
//! every other field is merged into its spec, `metadata`, `data` and `status` into theirs.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sk_core::registry::{self, KindInfo};

use super::{Scenario, ScenarioError};
use crate::merge;

/// Fields of an object besides its spec.
const BESIDE_SPEC: [&str; 4] = ["metadata", "status", "data", "spec"];
/// Kinds without a spec: the fields are in the object itself.
const WITHOUT_SPEC: [&str; 3] = ["ConfigMap", "PriorityClass", "StorageClass"];

/// A file of scenarios.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Family {
    #[serde(default)]
    control_plane: Value,
    #[serde(default)]
    nodes: Value,
    watch: Value,
    #[serde(default)]
    incomparable: Vec<Value>,
    scenarios: Vec<Map<String, Value>>,
}

/// Reads all scenarios of a family.
pub(super) fn read(path: &Path) -> Result<Vec<Scenario>, ScenarioError> {
    let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
    from_yaml(&path.display().to_string(), &text)
}

fn from_yaml(file: &str, text: &str) -> Result<Vec<Scenario>, ScenarioError> {
    let refuse = |reason: String| ScenarioError::Parse { name: file.to_owned(), reason };
    let family: Family = serde_saphyr::from_str(text).map_err(|error| refuse(error.to_string()))?;
    let member = |own: &Map<String, Value>| {
        let whole = expanded(&family, own).map_err(refuse)?;
        let name = format!("{file}, {}", own.get("name").unwrap_or(&Value::Null));
        Scenario::from_value(&name, whole)
    };
    family.scenarios.iter().map(member).collect()
}

/// One scenario as it would be written in a file of its own.
fn expanded(family: &Family, own: &Map<String, Value>) -> Result<Value, String> {
    let mut whole = json!({"watch": family.watch, "endings": true});
    for (name, shared) in [("nodes", &family.nodes), ("controlPlane", &family.control_plane)] {
        if !shared.is_null() {
            whole[name] = shared.clone();
        }
    }
    for (name, value) in own {
        whole[name.as_str()] = value.clone();
    }
    let own = own.get("incomparable").and_then(Value::as_array).cloned().unwrap_or_default();
    let incomparable: Vec<Value> = family.incomparable.iter().cloned().chain(own).collect();
    if !incomparable.is_empty() {
        whole["incomparable"] = incomparable.into();
    }
    for kind in whole["watch"].as_array_mut().into_iter().flatten() {
        spell_kind(kind)?;
    }
    spell_targets(&mut whole)?;
    for step in whole["steps"].as_array_mut().into_iter().flatten() {
        match step.get_mut("create") {
            Some(Value::Array(objects)) => objects.iter_mut().try_for_each(spell_object)?,
            Some(object) => spell_object(object)?,
            None => {}
        }
    }
    Ok(whole)
}

/// Kinds and objects are named under these keys at any depth.
fn spell_targets(value: &mut Value) -> Result<(), String> {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "of" | "gone" if field.is_string() => spell_target(field)?,
                    // What is inside an object is the object's own.
                    "create" | "merge" | "apply" => {}
                    _ => spell_targets(field)?,
                }
            }
            Ok(())
        }
        Value::Array(list) => list.iter_mut().try_for_each(spell_targets),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// `Deployment` becomes `apps/v1.Deployment`.
fn spell_kind(value: &mut Value) -> Result<(), String> {
    if let Some(kind) = value.as_str().filter(|kind| !kind.contains('.')) {
        *value = info(kind)?.gvk().to_string().into();
    }
    Ok(())
}

/// `Deployment web` becomes `apps/v1.Deployment default/web`.
fn spell_target(value: &mut Value) -> Result<(), String> {
    let Some(text) = value.as_str().map(str::to_owned) else { return Ok(()) };
    let Some((kind, key)) = text.split_once(' ') else { return spell_kind(value) };
    if kind.contains('.') {
        return Ok(());
    }
    let info = info(kind)?;
    let is_short = info.scope == registry::Scope::Namespaced && !key.contains('/');
    let namespace = if is_short { "default/" } else { "" };
    *value = format!("{} {namespace}{key}", info.gvk()).into();
    Ok(())
}

/// The kind of this name. Of two groups that have it, the one that is not about Events.
fn info(kind: &str) -> Result<&'static KindInfo, String> {
    let found = registry::KINDS.iter().find(|info| info.kind == kind);
    found.ok_or_else(|| format!("`{kind}` is no kind that Kubernetes brings: write it like `apps/v1.Deployment`"))
}

/// `{Deployment: web, replicas: 1}` becomes a whole object; an object that says its kind stays as it is.
fn spell_object(value: &mut Value) -> Result<(), String> {
    let Some(fields) = value.as_object().filter(|fields| !fields.contains_key("kind")) else { return Ok(()) };
    let is_kind = |name: &str| name.starts_with(|first: char| first.is_ascii_uppercase());
    let Some((kind, name)) = fields.iter().find(|(name, _)| is_kind(name)) else {
        return Err("an object begins with its kind and name, like `{Deployment: web}`".to_owned());
    };
    let (info, name) = (info(kind)?, name.as_str().unwrap_or_default());
    let mut object = json!({"apiVersion": info.gvk().api_version(), "kind": kind, "metadata": {"name": name}});
    if info.scope == registry::Scope::Namespaced {
        object["metadata"]["namespace"] = "default".into();
    }
    let mut spec = usual_spec(kind, name);
    for (field, written) in fields.iter().filter(|(field, _)| *field != kind) {
        match field.as_str() {
            "spec" => merge::apply(&mut spec, written),
            beside if BESIDE_SPEC.contains(&beside) || WITHOUT_SPEC.contains(&kind.as_str()) => {
                merge::apply(&mut object, &json!({beside: written}));
            }
            field => merge::apply(&mut spec, &json!({field: written})),
        }
    }
    if !spec.is_null() {
        object["spec"] = spec;
    }
    *value = object;
    Ok(())
}

/// The least that a kind needs to be taken, and to run.
fn usual_spec(kind: &str, name: &str) -> Value {
    let labels = json!({"app": name});
    let containers = json!([{"name": "main", "image": format!("example/{name}:1")}]);
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
    let job = json!({"template": {"spec": {"restartPolicy": "Never", "containers": containers}}});
    match kind {
        "Deployment" | "ReplicaSet" | "DaemonSet" => json!({"selector": {"matchLabels": labels}, "template": template}),
        "StatefulSet" => json!({"serviceName": name, "selector": {"matchLabels": labels}, "template": template}),
        "ReplicationController" => json!({"selector": labels, "template": template}),
        "Pod" => json!({"containers": containers}),
        "Job" => job,
        "CronJob" => json!({"jobTemplate": {"spec": job}}),
        "PodDisruptionBudget" => json!({"selector": {"matchLabels": labels}}),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILY: &str = r#"
nodes: [{name: a, cpu: 4, memory: 16Gi}]
watch: [Deployment, v1.Pod]
incomparable: [{of: Deployment, field: /metadata/generation, why: chance}]
scenarios:
  - name: grows
    about: It grows.
    steps:
      - create: {Deployment: web, replicas: 2, metadata: {labels: {tier: b}}, template: {spec: {nodeName: a}}}
        until: [{field: {of: Deployment web, at: /status/replicas, is: 2}}, {count: {of: Pod, is: 2}}]
      - delete: {of: Deployment other/web}
        until: [{gone: Deployment other/web}]
"#;

    #[test]
    fn what_is_written_short_is_spelt_out() {
        let scenarios = from_yaml("x", FAMILY).unwrap();
        let source = &scenarios[0].source;
        assert_eq!(source["watch"], json!(["apps/v1.Deployment", "v1.Pod"]));
        assert_eq!(source["steps"][0]["until"][0]["field"]["of"], "apps/v1.Deployment default/web");
        assert_eq!(source["steps"][0]["until"][1]["count"]["of"], "v1.Pod");
        assert_eq!(source["steps"][1]["delete"]["of"], "apps/v1.Deployment other/web");
        let web = &source["steps"][0]["create"];
        assert_eq!(web["metadata"], json!({"name": "web", "namespace": "default", "labels": {"tier": "b"}}));
        assert_eq!(
            (&web["spec"]["replicas"], &web["spec"]["selector"]),
            (&json!(2), &json!({"matchLabels": {"app": "web"}}))
        );
        let pod = json!({"nodeName": "a", "containers": [{"name": "main", "image": "example/web:1"}]});
        assert_eq!(web["spec"]["template"]["spec"], pod);
    }

    #[test]
    fn a_kind_that_nobody_knows_is_refused_by_its_name() {
        for wrong in ["{Deploymnt: web}", "{replicas: 2}"] {
            let text = FAMILY.replace("{Deployment: web, replicas: 2,", &format!("{},", wrong.trim_end_matches('}')));
            let error = from_yaml("x", &text).unwrap_err().to_string();
            assert!(error.contains("write it like") || error.contains("begins with its kind"), "{error}");
        }
    }
}
