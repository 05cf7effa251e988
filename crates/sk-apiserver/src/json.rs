//! Objects from and to the JSON that Kubernetes speaks.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sk_core::{Gvk, ObjectKey, SimTime, SmolStr};

use crate::error::ApiError;
use crate::kinds::{
    self, Deployment, Namespace, Node, NodeStatus, Other, Pod, PodPhase, PodSpec, PodStatus, ReplicaSet, Resource,
};
use crate::{Body, Deletion, Meta, Object, OwnerRef, Uid};

/// Times as `metav1.Time` writes them: whole seconds, UTC.
pub(crate) mod optional_time {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use sk_core::SimTime;

    pub(crate) fn serialize<S: Serializer>(time: &Option<SimTime>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(SimTime::to_rfc3339_secs).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SimTime>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| SimTime::parse_rfc3339(&text)).transpose().map_err(serde::de::Error::custom)
    }
}

impl Object {
    /// Reads an object. The server's own fields (uid, times, versions) are read if present, so that a stored object can
    /// be sent back with a change in it.
    pub fn from_json(value: Value) -> Result<Self, ApiError> {
        let Value::Object(mut fields) = value else {
            return Err(ApiError::bad_request("an object must be a JSON object with apiVersion, kind and metadata"));
        };
        let text = |fields: &mut Map<String, Value>, name: &str| match fields.remove(name) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(ApiError::bad_request(format!("Object '{name}' is missing"))),
        };
        let (api_version, kind) = (text(&mut fields, "apiVersion")?, text(&mut fields, "kind")?);
        let gvk =
            Gvk::from_api_version(&api_version, &kind).map_err(|error| ApiError::bad_request(error.to_string()))?;
        let (key, resource_version, meta) = read_meta(&gvk, fields.remove("metadata"))?;
        let body = read_body(&gvk, fields).map_err(|error| in_kind(&gvk, &error))?;
        Ok(Self { gvk, key, resource_version, meta, body })
    }

    /// Writes the object as the API server would send it.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("apiVersion".into(), self.gvk.api_version().into());
        fields.insert("kind".into(), self.gvk.kind.as_str().into());
        fields.insert("metadata".into(), write_meta(self));
        write_body(&self.body, &mut fields);
        Value::Object(fields)
    }
}

fn in_kind(gvk: &Gvk, error: &serde_json::Error) -> ApiError {
    ApiError::bad_request(format!("{} in version \"{}\" cannot be handled: {error}", gvk.kind, gvk.api_version()))
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct MetaJson {
    name: SmolStr,
    generate_name: Option<SmolStr>,
    namespace: Option<SmolStr>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: i64,
    #[serde(with = "optional_time")]
    creation_timestamp: Option<SimTime>,
    #[serde(with = "optional_time")]
    deletion_timestamp: Option<SimTime>,
    deletion_grace_period_seconds: Option<i64>,
    labels: Option<BTreeMap<SmolStr, SmolStr>>,
    annotations: Option<BTreeMap<SmolStr, SmolStr>>,
    owner_references: Option<Vec<OwnerJson>>,
    finalizers: Option<Vec<SmolStr>>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnerJson {
    api_version: String,
    kind: String,
    name: SmolStr,
    uid: String,
    controller: Option<bool>,
    block_owner_deletion: Option<bool>,
}

fn read_meta(gvk: &Gvk, value: Option<Value>) -> Result<(ObjectKey, u64, Meta), ApiError> {
    let json: MetaJson = read(value).map_err(|error| in_kind(gvk, &error))?;
    if json.name.is_empty() && json.generate_name.is_none() {
        return Err(ApiError::bad_request("resource name may not be empty"));
    }
    let namespace = json.namespace.filter(|namespace| !namespace.is_empty());
    let namespace = match (Resource::of(gvk).namespaced(), namespace) {
        (Some(false), _) => None,
        (Some(true), None) => Some(SmolStr::new_static("default")),
        (_, namespace) => namespace,
    };
    let parse_uid = |text: &str| text.parse::<Uid>().map_err(|error| ApiError::bad_request(error.to_string()));
    let owners = json.owner_references.unwrap_or_default().into_iter().map(|owner| {
        let gvk = Gvk::from_api_version(&owner.api_version, &owner.kind);
        Ok(OwnerRef {
            gvk: gvk.map_err(|error| ApiError::bad_request(error.to_string()))?,
            name: owner.name,
            uid: parse_uid(&owner.uid)?,
            controller: owner.controller.unwrap_or(false),
            block_owner_deletion: owner.block_owner_deletion.unwrap_or(false),
        })
    });
    let meta = Meta {
        uid: json.uid.as_deref().map(parse_uid).transpose()?.unwrap_or_default(),
        generation: json.generation,
        created: json.creation_timestamp.unwrap_or_default(),
        deletion: json
            .deletion_timestamp
            .map(|at| Deletion { at, grace_secs: json.deletion_grace_period_seconds.unwrap_or(0) }),
        labels: Arc::new(json.labels.unwrap_or_default()),
        annotations: Arc::new(json.annotations.unwrap_or_default()),
        owners: owners.collect::<Result<_, ApiError>>()?,
        finalizers: json.finalizers.unwrap_or_default(),
        generate_name: json.generate_name,
    };
    let resource_version = json.resource_version.as_deref().unwrap_or("0").parse();
    let resource_version = resource_version.map_err(|_| ApiError::bad_request("resourceVersion is no number"))?;
    Ok((ObjectKey { namespace, name: json.name }, resource_version, meta))
}

fn write_meta(object: &Object) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    let meta = &object.meta;
    put("name", object.key.name.as_str().into());
    if let Some(prefix) = &meta.generate_name {
        put("generateName", prefix.as_str().into());
    }
    if let Some(namespace) = &object.key.namespace {
        put("namespace", namespace.as_str().into());
    }
    put("uid", meta.uid.to_string().into());
    put("resourceVersion", object.resource_version.to_string().into());
    if meta.generation != 0 {
        put("generation", meta.generation.into());
    }
    put("creationTimestamp", meta.created.to_rfc3339_secs().into());
    if let Some(deletion) = meta.deletion {
        put("deletionTimestamp", deletion.at.to_rfc3339_secs().into());
        put("deletionGracePeriodSeconds", deletion.grace_secs.into());
    }
    for (name, labels) in [("labels", &meta.labels), ("annotations", &meta.annotations)] {
        if !labels.is_empty() {
            put(name, json!(labels));
        }
    }
    if !meta.owners.is_empty() {
        let owners = meta.owners.iter().map(|owner| {
            json!({
                "apiVersion": owner.gvk.api_version(), "kind": owner.gvk.kind, "name": owner.name,
                "uid": owner.uid.to_string(), "controller": owner.controller,
                "blockOwnerDeletion": owner.block_owner_deletion,
            })
        });
        put("ownerReferences", owners.collect());
    }
    if !meta.finalizers.is_empty() {
        put("finalizers", json!(meta.finalizers));
    }
    Value::Object(fields)
}

/// A missing or null section reads as an empty one.
fn read<T: DeserializeOwned + Default>(value: Option<Value>) -> Result<T, serde_json::Error> {
    match value {
        None | Some(Value::Null) => Ok(T::default()),
        Some(value) => serde_json::from_value(value),
    }
}

fn read_body(gvk: &Gvk, mut fields: Map<String, Value>) -> Result<Body, serde_json::Error> {
    let mut section = |name: &str| fields.remove(name);
    Ok(match gvk {
        gvk if *gvk == kinds::POD => {
            let mut spec = section("spec");
            let node_name = spec.as_mut().and_then(Value::as_object_mut).and_then(|spec| spec.remove("nodeName"));
            let node_name: Option<SmolStr> = read(node_name)?;
            let spec: PodSpec = read(spec)?;
            let status = read_pod_status(section("status"))?;
            Body::Pod(Pod { spec: Arc::new(spec), node_name: node_name.filter(|name| !name.is_empty()), status })
        }
        gvk if *gvk == kinds::NODE => Body::Node(Node {
            spec: Arc::new(read(section("spec"))?),
            status: Arc::new(read::<NodeStatus>(section("status"))?),
        }),
        gvk if *gvk == kinds::DEPLOYMENT => {
            Body::Deployment(Deployment { spec: Arc::new(read(section("spec"))?), status: read(section("status"))? })
        }
        gvk if *gvk == kinds::REPLICA_SET => {
            Body::ReplicaSet(ReplicaSet { spec: Arc::new(read(section("spec"))?), status: read(section("status"))? })
        }
        gvk if *gvk == kinds::NAMESPACE => {
            let get =
                |section: &Option<Value>, name: &str| section.as_ref().and_then(|fields| fields.get(name)).cloned();
            let (spec, status) = (section("spec"), section("status"));
            Body::Namespace(Namespace {
                finalizers: read(get(&spec, "finalizers"))?,
                phase: read(get(&status, "phase"))?,
            })
        }
        _ => {
            let status = section("status").map(Arc::new);
            Body::Other(Other { fields: Arc::new(fields), status })
        }
    })
}

fn write_body(body: &Body, fields: &mut Map<String, Value>) {
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    match body {
        Body::Pod(pod) => {
            let mut spec = json!(*pod.spec);
            if let (Some(node), Some(spec)) = (&pod.node_name, spec.as_object_mut()) {
                spec.insert("nodeName".into(), node.as_str().into());
            }
            put("spec", spec);
            put("status", write_pod_status(pod));
        }
        Body::Node(node) => {
            put("spec", json!(*node.spec));
            put("status", json!(*node.status));
        }
        Body::Namespace(namespace) => {
            put("spec", json!({"finalizers": namespace.finalizers}));
            put("status", json!({"phase": namespace.phase}));
        }
        Body::Deployment(deployment) => {
            put("spec", json!(*deployment.spec));
            put("status", json!(deployment.status));
        }
        Body::ReplicaSet(replica_set) => {
            put("spec", json!(*replica_set.spec));
            put("status", json!(replica_set.status));
        }
        Body::Other(other) => {
            for (name, value) in &*other.fields {
                put(name, value.clone());
            }
            if let Some(status) = &other.status {
                put("status", (**status).clone());
            }
        }
    }
}

#[derive(serde::Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodStatusJson {
    phase: PodPhase,
    conditions: Vec<kinds::Condition>,
    #[serde(with = "optional_time")]
    start_time: Option<SimTime>,
    reason: Option<SmolStr>,
    message: Option<SmolStr>,
    container_statuses: Vec<Value>,
}

fn read_pod_status(value: Option<Value>) -> Result<PodStatus, serde_json::Error> {
    let json: PodStatusJson = read(value)?;
    let times = |pointers: [&str; 2]| {
        let statuses = json.container_statuses.iter();
        let texts = statuses.flat_map(move |status| pointers.into_iter().filter_map(|pointer| status.pointer(pointer)));
        let times: Vec<_> = texts.filter_map(|text| SimTime::parse_rfc3339(text.as_str()?).ok()).collect();
        times
    };
    let started = times(["/state/running/startedAt", "/state/terminated/startedAt"]).into_iter().min();
    let finished = times(["/state/terminated/finishedAt", "/state/terminated/finishedAt"]).into_iter().max();
    Ok(PodStatus {
        phase: json.phase,
        conditions: json.conditions,
        start_time: json.start_time,
        started,
        finished: finished.filter(|_| json.phase.is_final()),
        reason: json.reason,
        message: json.message,
    })
}

fn write_pod_status(pod: &Pod) -> Value {
    let status = &pod.status;
    let mut fields = Map::new();
    fields.insert("phase".into(), json!(status.phase));
    if !status.conditions.is_empty() {
        fields.insert("conditions".into(), json!(status.conditions));
    }
    let texts = [("reason", &status.reason), ("message", &status.message)];
    for (name, text) in texts.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
        fields.insert(name.into(), text.as_str().into());
    }
    if let Some(time) = status.start_time {
        fields.insert("startTime".into(), time.to_rfc3339_secs().into());
    }
    if let Some(started) = status.started {
        let state = match status.finished {
            None => json!({"running": {"startedAt": started.to_rfc3339_secs()}}),
            Some(finished) => json!({"terminated": {
                "exitCode": i32::from(status.phase == PodPhase::Failed),
                "startedAt": started.to_rfc3339_secs(), "finishedAt": finished.to_rfc3339_secs(),
            }}),
        };
        let running = status.finished.is_none();
        let containers = pod.spec.containers.iter().map(|container| {
            json!({"name": container.name, "ready": running, "started": running, "restartCount": 0, "state": state})
        });
        fields.insert("containerStatuses".into(), containers.collect());
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_every_field_it_came_with() {
        let json = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "web-1", "namespace": "shop", "uid": "6f1b5c7e-93a4-4c55-9a3b-0d4f86a6a001",
                "resourceVersion": "7", "creationTimestamp": "2026-01-05T09:00:00Z", "labels": {"app": "web"},
            },
            "spec": {
                "containers": [{
                    "name": "web", "image": "nginx", "resources": {"requests": {"cpu": "500m"}, "claims": [{"name": "c"}]},
                }],
                "dnsPolicy": "ClusterFirst", "nodeName": "n1", "tolerations": [{"key": "a", "operator": "Exists"}],
            },
            "status": {"phase": "Pending"},
        });
        assert_eq!(Object::from_json(json.clone()).unwrap().to_json(), json);
    }

    #[test]
    fn a_kind_nobody_knows_is_kept_as_it_is() {
        let json = json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {
                "name": "w", "namespace": "shop", "uid": Uid(1).to_string(), "resourceVersion": "1",
                "creationTimestamp": "2026-01-05T09:00:00Z",
            },
            "spec": {"a": [1, {"b": null}]}, "data": "x", "status": {"ok": true},
        });
        assert_eq!(Object::from_json(json.clone()).unwrap().to_json(), json);
    }

    #[test]
    fn what_is_no_object_is_refused_with_a_reason() {
        let refuse = |json: Value| Object::from_json(json).unwrap_err().message;
        assert!(refuse(json!([])).contains("JSON object"));
        assert!(refuse(json!({"kind": "Pod"})).contains("'apiVersion' is missing"));
        assert!(refuse(json!({"apiVersion": "v1", "kind": "Pod"})).contains("name may not be empty"));
        let wrong_type = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replicas": "many"}
        });
        assert!(refuse(wrong_type).contains("Deployment in version \"apps/v1\" cannot be handled"));
    }
}
