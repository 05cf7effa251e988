//! Reads objects from Kubernetes JSON and writes them back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sk_core::{Gvk, ObjectKey, SimTime, SmolStr};

use crate::directives;
use crate::error::{ApiError, Reason};
use crate::kinds::{self, Body};
use crate::object::Identity;
use crate::schema;
use crate::{Deletion, Labels, Meta, Object, OwnerRef, Uid};

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
        let gvk = gvk_of(&value)?;
        let Value::Object(mut fields) = value else {
            return Err(ApiError::bad_request("an object must be a JSON object with apiVersion, kind and metadata"));
        };
        fields.retain(|name, _| name != "apiVersion" && name != "kind");
        let (identity, resource_version, meta) = read_meta(&gvk, fields.remove("metadata"))?;
        let body = Body::read(&gvk, &mut fields).map_err(|error| ApiError::in_kind(&gvk, &error.to_string()))?;
        let mut object = Self::new(gvk, ObjectKey::cluster(""), meta, body);
        *object.identity_mut() = Identity { gvk: object.gvk.clone(), ..identity };
        object.resource_version = resource_version;
        object.rest = (!fields.is_empty()).then(|| Arc::new(fields));
        Ok(object)
    }

    /// Reads what a client sent: by the type table, and into the namespace that the path names.
    pub(crate) fn read(mut value: Value, namespace: Option<&SmolStr>) -> Result<Self, ApiError> {
        let gvk = gvk_of(&value)?;
        if let Some(of) = schema::find(&gvk) {
            value = schema::decode(&gvk, of, value).map_err(|why| ApiError::in_kind(&gvk, &why))?;
            crate::defaults::before_reading(&gvk, &mut value);
        }
        let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
        if let (Some(metadata), Some(namespace)) = (metadata, namespace) {
            let known = metadata.entry("namespace").or_insert(Value::Null);
            if known.is_null() || known == "" {
                *known = namespace.as_str().into();
            }
        }
        // An unknown enum value makes no typed body, but the server has a message for it.
        Self::from_json(value.clone()).map_err(|error| {
            crate::defaults::apply(&gvk, &mut value);
            let invalid = crate::validation::unreadable(&gvk, &value);
            let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            if invalid.is_empty() { error } else { ApiError::invalid(&gvk, name, &invalid) }
        })
    }

    /// Writes the object as the API server would send it.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("apiVersion".into(), self.gvk.api_version().into());
        fields.insert("kind".into(), self.gvk.kind.as_str().into());
        fields.insert("metadata".into(), write_meta(self));
        self.body.write(&mut fields);
        fields.extend(self.rest.as_deref().cloned().unwrap_or_default());
        Value::Object(fields)
    }

    /// The annotations as a client sees them: those that were written, and the driver's directives.
    pub fn annotations(&self) -> Labels {
        let mut annotations = self.meta.annotations.clone();
        if let Some(directives) = self.pod().and_then(|pod| pod.directives) {
            annotations.make_mut().extend(directives::annotations(&directives));
        }
        annotations
    }
}

fn gvk_of(value: &Value) -> Result<Gvk, ApiError> {
    if !value.is_object() {
        return Err(ApiError::bad_request("an object must be a JSON object with apiVersion, kind and metadata"));
    }
    let text = |name: &str, called: &str| match value.get(name) {
        Some(Value::String(text)) => Ok(text.as_str()),
        _ => Err(ApiError::bad_request(format!("Object '{called}' is missing"))),
    };
    let (api_version, kind) = (text("apiVersion", "apiVersion")?, text("kind", "Kind")?);
    Gvk::from_api_version(api_version, kind).map_err(|error| ApiError::bad_request(error.to_string()))
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
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
    labels: Labels,
    annotations: Labels,
    owner_references: Option<Vec<OwnerJson>>,
    finalizers: Option<Vec<SmolStr>>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct OwnerJson {
    api_version: String,
    kind: SmolStr,
    name: SmolStr,
    uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_owner_deletion: Option<bool>,
}

fn parse_uid(text: &str) -> Result<Uid, ApiError> {
    text.parse::<Uid>().map_err(|error| ApiError::bad_request(error.to_string()))
}

fn read_owner(owner: OwnerJson) -> Result<OwnerRef, ApiError> {
    let gvk = Gvk::from_api_version(&owner.api_version, &owner.kind);
    Ok(OwnerRef {
        gvk: gvk.map_err(|error| ApiError::bad_request(error.to_string()))?.into(),
        name: owner.name,
        uid: parse_uid(&owner.uid)?,
        controller: owner.controller,
        block_owner_deletion: owner.block_owner_deletion,
    })
}

fn read_meta(gvk: &Gvk, value: Option<Value>) -> Result<(Identity, u64, Meta), ApiError> {
    let json: MetaJson = kinds::read(value).map_err(|error| ApiError::in_kind(gvk, &error.to_string()))?;
    let owners = json.owner_references.unwrap_or_default().into_iter().map(read_owner);
    let meta = Meta {
        generation: json.generation,
        deletion: json
            .deletion_timestamp
            .map(|at| Deletion { at, grace_secs: json.deletion_grace_period_seconds.unwrap_or(0) }),
        labels: json.labels,
        annotations: json.annotations,
        owners: owners.collect::<Result<_, ApiError>>()?,
        finalizers: json.finalizers.unwrap_or_default().into(),
        rest: (!json.rest.is_empty()).then(|| Arc::new(json.rest)),
    };
    let version = json.resource_version.as_deref().filter(|version| !version.is_empty());
    let resource_version = version.unwrap_or("0").parse();
    let unreadable = |_: std::num::ParseIntError| {
        let text = json.resource_version.clone().unwrap_or_default();
        ApiError::new(Reason::Unknown, format!("strconv.ParseUint: parsing {text:?}: invalid syntax"))
    };
    let resource_version = resource_version.map_err(unreadable)?;
    let identity = Identity {
        gvk: gvk.clone().into(),
        key: kinds::place(gvk, json.namespace, json.name),
        uid: json.uid.as_deref().map(parse_uid).transpose()?.unwrap_or_default(),
        created: json.creation_timestamp.unwrap_or_default(),
        generate_name: json.generate_name,
    };
    Ok((identity, resource_version, meta))
}

fn write_meta(object: &Object) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    let meta = &object.meta;
    put("name", object.key.name.as_str().into());
    if let Some(prefix) = &object.generate_name {
        put("generateName", prefix.as_str().into());
    }
    if let Some(namespace) = &object.key.namespace {
        put("namespace", namespace.as_str().into());
    }
    put("uid", object.uid.to_string().into());
    put("resourceVersion", object.resource_version.to_string().into());
    if meta.generation != 0 {
        put("generation", meta.generation.into());
    }
    put("creationTimestamp", object.created.to_rfc3339_secs().into());
    if let Some(deletion) = meta.deletion {
        put("deletionTimestamp", deletion.at.to_rfc3339_secs().into());
        // A namespace ends when it is empty, however long that takes.
        if object.namespace().is_none() {
            put("deletionGracePeriodSeconds", deletion.grace_secs.into());
        }
    }
    for (name, labels) in [("labels", &meta.labels), ("annotations", &object.annotations())] {
        if !labels.is_empty() {
            put(name, json!(labels));
        }
    }
    if !meta.owners.is_empty() {
        put("ownerReferences", meta.owners.iter().map(write_owner).collect());
    }
    if !meta.finalizers.is_empty() {
        put("finalizers", json!(*meta.finalizers));
    }
    fields.extend(meta.rest.as_deref().cloned().unwrap_or_default());
    Value::Object(fields)
}

pub(crate) fn write_owner(owner: &OwnerRef) -> Value {
    json!(OwnerJson {
        api_version: owner.gvk.api_version(),
        kind: owner.gvk.kind.clone(),
        name: owner.name.clone(),
        uid: owner.uid.to_string(),
        controller: owner.controller,
        block_owner_deletion: owner.block_owner_deletion,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(json: &Value) {
        assert_eq!(&Object::from_json(json.clone()).unwrap().to_json(), json);
    }

    fn metadata(more: &Value) -> Value {
        let mut metadata = json!({
            "name": "x", "namespace": "shop", "uid": "6f1b5c7e-93a4-4c55-9a3b-0d4f86a6a001",
            "resourceVersion": "7", "creationTimestamp": "2026-01-05T09:00:00Z",
        });
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        metadata
    }

    #[test]
    fn an_object_keeps_every_field_it_came_with() {
        round_trip(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": metadata(&json!({
                "labels": {"app": "web"}, "managedFields": [{"manager": "kubectl"}], "selfLink": "/x",
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": Uid(3).to_string()}],
            })),
            "spec": {
                "containers": [{
                    "name": "web", "image": "nginx", "resources": {"requests": {"cpu": "500m"}, "claims": [{"name": "c"}]},
                }],
                "dnsPolicy": "ClusterFirst", "nodeName": "n1", "tolerations": [{"key": "a", "operator": "Exists"}],
            },
            "status": {
                "phase": "Pending", "podIP": "10.0.0.1", "qosClass": "Burstable",
                "conditions": [{"type": "Ready", "status": "False", "lastProbeTime": null, "reason": "ContainersNotReady"}],
            },
        }));
    }

    #[test]
    fn status_and_conditions_of_workloads_and_namespaces_survive() {
        round_trip(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(&json!({"generation": 2})),
            "spec": {
                "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "revisionHistoryLimit": 10,
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}},
                "strategy": {"type": "RollingUpdate"}, "progressDeadlineSeconds": 600,
            },
            "status": {
                "observedGeneration": 2, "replicas": 1, "collisionCount": 1,
                "conditions": [{"type": "Available", "status": "True", "lastUpdateTime": "2026-01-05T09:00:00Z"}],
            },
        }));
        let mut namespace = metadata(&json!({}));
        namespace.as_object_mut().unwrap().remove("namespace");
        round_trip(&json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": namespace, "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Terminating", "conditions": [{"type": "NamespaceContentRemaining", "status": "True"}]},
        }));
    }

    #[test]
    fn a_kind_nobody_knows_is_kept_as_it_is() {
        round_trip(&json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata(&json!({})),
            "spec": {"a": [1, {"b": null}]}, "data": "x", "status": {"ok": true},
        }));
    }

    #[test]
    fn what_is_no_object_is_refused_with_a_reason() {
        let refuse = |json: Value| Object::from_json(json).unwrap_err().message;
        assert!(refuse(json!([])).contains("JSON object"));
        assert!(refuse(json!({"kind": "Pod"})).contains("'apiVersion' is missing"));
        let wrong_type = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replicas": "many"}
        });
        assert!(refuse(wrong_type).contains("Deployment in version \"v1\" cannot be handled as a Deployment"));
    }
}
