//! The `scale` subresource: a workload's replicas as `autoscaling/v1.Scale`.

use serde_json::{Value, json};
use sk_core::{Gvk, LabelSelector, ObjectRef, SimTime};

use crate::custom::ScalePaths;
use crate::error::Invalid;
use crate::kinds::{Body, ReplicationController};
use crate::request::Answer;
use crate::server::ApiServer;
use crate::{ApiError, Object, Request};

/// The kind of a size.
pub(crate) static GVK: Gvk = Gvk::new_static("autoscaling", "v1", "Scale");

/// The replicas of a workload, at the JSON paths in `paths`.
fn of(object: &Object, paths: Option<&ScalePaths>) -> Value {
    let json = object.to_json();
    let at = |pointer: &str| json.pointer(pointer).cloned();
    let mut metadata = json!({});
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = at(&format!("/metadata/{name}")) {
            metadata[name] = value;
        }
    }
    let mut spec = json!({});
    if let Some(replicas) =
        at(paths.map_or("/spec/replicas", |paths| &paths.spec_replicas)).filter(|replicas| *replicas != 0)
    {
        spec["replicas"] = replicas;
    }
    let replicas = at(paths.map_or("/status/replicas", |paths| &paths.status_replicas));
    let mut status = json!({"replicas": replicas.unwrap_or_else(|| 0.into())});
    if let Some(selector) = paths.and_then(|paths| at(paths.selector.as_deref()?)) {
        status["selector"] = selector;
    }
    // A replication controller selects by plain labels.
    let whole = |selector: Value| match &object.body {
        Body::ReplicationController(_) => json!({"matchLabels": selector}),
        _ => selector,
    };
    let selector = at("/spec/selector").filter(|_| paths.is_none()).map(whole);
    let selector = selector.and_then(|selector| LabelSelector::from_json(&selector).ok());
    if let Some(selector) = selector {
        status["selector"] = selector.to_string().into();
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

impl ApiServer {
    /// The size of an object that has one.
    pub(crate) fn scale_of(&self, object: &Object) -> Value {
        let paths = self.admission.definitions.find(&object.gvk).and_then(|(_, version)| version.scale.as_ref());
        of(object, paths)
    }

    /// Makes a workload as large as `scale` says.
    pub(crate) fn scale(&mut self, now: SimTime, target: &ObjectRef, scale: &Value) -> Answer {
        let (_, stored) = self.find(&target.gvk, &target.key)?;
        let mut wanted = Object::clone(stored);
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        let refuse = |why: String| ApiError::invalid(&GVK, &target.key.name, &[Invalid::new("spec.replicas", why)]);
        let replicas = i32::try_from(replicas)
            .ok()
            .filter(|replicas| *replicas >= 0)
            .ok_or_else(|| refuse(format!("Invalid value: {replicas}: must be greater than or equal to 0")))?;
        let version = scale.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
        wanted.resource_version = version.parse().unwrap_or(0);
        match &mut wanted.body {
            Body::Deployment(deployment) => std::sync::Arc::make_mut(&mut deployment.spec).replicas = replicas,
            Body::ReplicaSet(set) | Body::ReplicationController(ReplicationController(set)) => {
                std::sync::Arc::make_mut(&mut set.spec).replicas = replicas;
            }
            Body::StatefulSet(set) => std::sync::Arc::make_mut(&mut set.spec).replicas = replicas,
            Body::Other(other) => {
                let paths =
                    self.admission.definitions.find(&target.gvk).and_then(|(_, version)| version.scale.as_ref());
                let path = paths.map_or("/spec/replicas", |paths| &paths.spec_replicas);
                let mut json = Value::Object((*other.fields).clone());
                // Kinds without a body of their own may hold anything on the way there.
                put(&mut json, path, replicas).ok_or_else(|| refuse(format!("{path} cannot be set")))?;
                other.fields = std::sync::Arc::new(json.as_object().cloned().unwrap_or_default());
            }
            Body::Pod(_)
            | Body::Node(_)
            | Body::Namespace(_)
            | Body::Job(_)
            | Body::CronJob(_)
            | Body::DaemonSet(_) => {
                return Err(ApiError::not_found(&target.gvk, &target.key.name));
            }
        }
        self.handle(now, Request::update(wanted))
    }
}

/// Sets a number at a JSON pointer, creating its parents; `None` if a parent is not an object.
fn put(json: &mut Value, pointer: &str, number: i32) -> Option<()> {
    let mut at = json;
    let steps: Vec<&str> = pointer.split('/').filter(|step| !step.is_empty()).collect();
    let (last, parents) = steps.split_last()?;
    for step in parents {
        at = at.as_object_mut()?.entry(*step).or_insert_with(|| json!({}));
    }
    at.as_object_mut()?.insert((*last).to_owned(), number.into());
    Some(())
}
