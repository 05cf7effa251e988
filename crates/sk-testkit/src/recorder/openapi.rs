//! Records the types of a real API server (`/openapi/v2`), as far as the type table of sk-apiserver has them: names
//! and types of fields, and how lists, maps and patches merge.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::{RecordError, today, write_lines};
use crate::control_plane::{ControlError, ControlPlane};
use crate::fixture::{OpenApi, path_of};
use crate::options::Options;

/// The kinds that are in the type table, as group, version and kind.
const KINDS: [(&str, &str, &str); 26] = [
    ("", "v1", "ConfigMap"),
    ("", "v1", "LimitRange"),
    ("", "v1", "Namespace"),
    ("", "v1", "Node"),
    ("", "v1", "PersistentVolume"),
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "Pod"),
    ("", "v1", "PodTemplate"),
    ("", "v1", "ReplicationController"),
    ("", "v1", "ResourceQuota"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
    ("apps", "v1", "ControllerRevision"),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ReplicaSet"),
    ("apps", "v1", "StatefulSet"),
    ("autoscaling", "v1", "Scale"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("batch", "v1", "CronJob"),
    ("batch", "v1", "Job"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    ("scheduling.k8s.io", "v1", "PriorityClass"),
];

/// What of a field says how it merges.
const OF_FIELD: [&str; 5] = [
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
];
/// What of a type is kept beside its fields.
const OF_TYPE: [&str; 3] = ["type", "format", "x-kubernetes-map-type"];

/// What an API server with Kubernetes' own defaults serves.
pub async fn record_openapi() -> Result<OpenApi, RecordError> {
    ask_openapi(&ControlPlane::start(Options::api_only()).await?).await
}

/// What a running API server serves.
pub(super) async fn ask_openapi(plane: &ControlPlane) -> Result<OpenApi, RecordError> {
    let request = http::Request::get("/openapi/v2").header(http::header::ACCEPT, "application/json").body(Vec::new());
    let request = request.map_err(|error| RecordError::Discovery(error.to_string()))?;
    let served: Value = plane.client().request(request).await.map_err(ControlError::request("ask for the types"))?;
    let (kinds, types) = reduce(&served).map_err(RecordError::Discovery)?;
    Ok(OpenApi { kubernetes: plane.version().await?, recorded: today(), kinds, types })
}

/// Writes what is served: a line per field.
pub fn write_openapi(openapi: &OpenApi) -> Result<PathBuf, RecordError> {
    write_lines(openapi, 4, path_of("openapi"))
}

type Reduced = (BTreeMap<String, String>, BTreeMap<String, Value>);

/// The type of each kind, and every type that is within.
fn reduce(served: &Value) -> Result<Reduced, String> {
    let definitions = served["definitions"].as_object().ok_or("there are no definitions in /openapi/v2")?;
    let (mut kinds, mut types) = (BTreeMap::new(), BTreeMap::new());
    for (group, version, kind) in KINDS {
        let wanted = json!({"group": group, "version": version, "kind": kind});
        let is_of = |definition: &Value| {
            let gvks = definition["x-kubernetes-group-version-kind"].as_array();
            gvks.is_some_and(|gvks| gvks.contains(&wanted))
        };
        let found = definitions.iter().find(|(_, definition)| is_of(definition));
        let (name, _) = found.ok_or_else(|| format!("no type is of the kind {group}/{version}/{kind}"))?;
        kinds.insert(format!("{group}/{version}/{kind}"), name.clone());
        add(name, definitions, &mut types);
    }
    Ok((kinds, types))
}

fn add(name: &str, definitions: &Map<String, Value>, types: &mut BTreeMap<String, Value>) {
    let Some(definition) = definitions.get(name).filter(|_| !types.contains_key(name)) else { return };
    let mut kept = json!({"fields": {}});
    for word in OF_TYPE {
        if let Some(value) = definition.get(word) {
            kept[word] = value.clone();
        }
    }
    let fields: Vec<(&String, &Value)> = definition["properties"].as_object().into_iter().flatten().collect();
    for (field, of) in &fields {
        let mut said = json!({"type": type_of(of)});
        for word in OF_FIELD {
            if let Some(value) = of.get(word) {
                said[word] = value.clone();
            }
        }
        kept["fields"][field.as_str()] = said;
    }
    types.insert(name.to_owned(), kept);
    for inner in fields.iter().filter_map(|(_, of)| referred(of)) {
        add(inner, definitions, types);
    }
}

/// `[]string`, `map[string]integer:int32`, or the name of a type.
fn type_of(of: &Value) -> String {
    if let Some(name) = reference(of) {
        return name.to_owned();
    }
    match of["type"].as_str() {
        Some("array") => format!("[]{}", type_of(&of["items"])),
        Some("object") if of["additionalProperties"].is_object() => {
            format!("map[string]{}", type_of(&of["additionalProperties"]))
        }
        Some(plain) => of["format"].as_str().map_or_else(|| plain.to_owned(), |format| format!("{plain}:{format}")),
        None => "any".to_owned(),
    }
}

fn reference(of: &Value) -> Option<&str> {
    of["$ref"].as_str()?.rsplit('/').next()
}

/// The type that a field holds, in a list or a map or itself.
fn referred(mut of: &Value) -> Option<&str> {
    loop {
        if let Some(name) = reference(of) {
            return Some(name);
        }
        let inner = if of["items"].is_object() { &of["items"] } else { &of["additionalProperties"] };
        of = Some(inner).filter(|inner| inner.is_object())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_keeps_its_fields_and_brings_those_within() {
        let definitions = json!({
            "a.Thing": {"type": "object", "properties": {
                "parts": {"type": "array", "items": {"$ref": "#/definitions/a.Part"}, "x-kubernetes-list-type": "atomic",
                    "description": "gone"},
                "sizes": {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}},
            }},
            "a.Part": {"type": "string", "format": "date-time"},
        });
        let mut types = BTreeMap::new();
        add("a.Thing", definitions.as_object().expect("it is one"), &mut types);
        assert_eq!(
            types["a.Thing"],
            json!({"fields": {
                "parts": {"type": "[]a.Part", "x-kubernetes-list-type": "atomic"},
                "sizes": {"type": "map[string]integer:int32"},
            }, "type": "object"})
        );
        assert_eq!(types["a.Part"], json!({"fields": {}, "type": "string", "format": "date-time"}));
        assert!(reduce(&json!({"definitions": definitions})).is_err_and(|why| why.contains("/v1/ConfigMap")));
    }
}
