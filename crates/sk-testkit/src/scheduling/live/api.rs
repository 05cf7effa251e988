//! The few requests of a scenario, sent without discovery.
//!
//! A scheduling scenario creates and changes a dozen kinds, thousands of times. Discovery before each request would
//! take most of the time of a recording, so the paths of these kinds are listed here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use sk_core::Gvk;

use crate::control_plane::ControlError;

/// The kinds that scenarios are made of: kind, path of its group, plural, whether it lives in namespaces.
const KINDS: [(&str, &str, &str, bool); 14] = [
    ("Node", "/api/v1", "nodes", false),
    ("Pod", "/api/v1", "pods", true),
    ("Namespace", "/api/v1", "namespaces", false),
    ("Service", "/api/v1", "services", true),
    ("ReplicationController", "/api/v1", "replicationcontrollers", true),
    ("PersistentVolume", "/api/v1", "persistentvolumes", false),
    ("PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims", true),
    ("ReplicaSet", "/apis/apps/v1", "replicasets", true),
    ("StatefulSet", "/apis/apps/v1", "statefulsets", true),
    ("PodDisruptionBudget", "/apis/policy/v1", "poddisruptionbudgets", true),
    ("PriorityClass", "/apis/scheduling.k8s.io/v1", "priorityclasses", false),
    ("StorageClass", "/apis/storage.k8s.io/v1", "storageclasses", false),
    ("RuntimeClass", "/apis/node.k8s.io/v1", "runtimeclasses", false),
    ("CSINode", "/apis/storage.k8s.io/v1", "csinodes", false),
];

/// A client for scenarios.
#[derive(Clone)]
pub(super) struct Api {
    client: Client,
    written: Arc<Written>,
}

/// What was done to pods, as far as an answer tells it.
#[derive(Default)]
struct Written {
    /// The newest resource version that an answer had.
    version: AtomicU64,
    /// A pod was deleted: answers do not tell the version of its last event.
    deleted: AtomicBool,
}

impl Api {
    pub(super) fn new(client: Client) -> Self {
        Self { client, written: Arc::default() }
    }

    /// The newest resource version that this client wrote of a pod.
    pub(super) fn newest(&self) -> u64 {
        self.written.version.load(Ordering::Relaxed)
    }

    /// Has a pod been deleted since this was last asked?
    pub(super) fn take_deleted(&self) -> bool {
        self.written.deleted.swap(false, Ordering::Relaxed)
    }

    /// Creates an object and returns its path. Its status goes to the server too, where the server keeps that apart.
    pub(super) async fn create(&self, object: &Value) -> Result<String, ControlError> {
        let (collection, path) = paths_of(object)?;
        if object["kind"] == "Namespace" {
            // Nothing here can end a namespace, so it may be there from the scenario before, with other labels.
            self.send(Method::PATCH, &format!("{path}?fieldManager=scenario&force=true"), APPLY, Some(object)).await?;
            return Ok(path);
        }
        self.send(Method::POST, &collection, JSON, Some(object)).await?;
        if object["kind"] == "PodDisruptionBudget" && object["status"].is_object() {
            let status = json!({"status": object["status"]});
            self.send(Method::PATCH, &format!("{path}/status"), MERGE, Some(&status)).await?;
        }
        Ok(path)
    }

    /// Reads an object.
    pub(super) async fn get(&self, path: &str) -> Result<Value, ControlError> {
        self.send(Method::GET, path, JSON, None).await
    }

    /// Changes an object.
    pub(super) async fn merge(&self, path: &str, patch: &Value) -> Result<(), ControlError> {
        self.send(Method::PATCH, path, MERGE, Some(patch)).await.map(drop)
    }

    /// Changes an object, if it is there.
    pub(super) async fn merge_if_there(&self, path: &str, patch: &Value) -> Result<(), ControlError> {
        match self.merge(path, patch).await {
            Err(ControlError::Request { source, .. }) if is_not_found(&source) => Ok(()),
            merged => merged,
        }
    }

    /// Deletes an object or a whole collection at once, without grace.
    pub(super) async fn delete(&self, path: &str) -> Result<(), ControlError> {
        // Some kinds orphan what they own by default, and wait for a garbage collector that is not there.
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Background",
        });
        self.send(Method::DELETE, path, JSON, Some(&options)).await.map(drop)
    }

    /// Deletes an object at once, and says whether it was there.
    pub(super) async fn delete_if_there(&self, path: &str) -> Result<bool, ControlError> {
        match self.delete(path).await {
            Ok(()) => Ok(true),
            Err(ControlError::Request { source, .. }) if is_not_found(&source) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content: &'static str,
        body: Option<&Value>,
    ) -> Result<Value, ControlError> {
        let step = format!("{method} {path}");
        let (writes, deletes) = ([Method::POST, Method::PATCH].contains(&method), method == Method::DELETE);
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = Request::builder().method(method).uri(path).header("Content-Type", content).body(body);
        let request = request.map_err(|error| ControlError::request(step.clone())(kube::Error::HttpError(error)))?;
        let answer: Value = self.client.request(request).await.map_err(ControlError::request(step))?;
        if is_of_pods(path) && writes {
            self.written.version.fetch_max(version_of(&answer).unwrap_or_default(), Ordering::Relaxed);
        }
        if is_of_pods(path) && deletes {
            self.written.deleted.store(true, Ordering::Relaxed);
        }
        Ok(answer)
    }
}

/// Does a path lead to a pod, or to all pods?
pub(super) fn is_of_pods(path: &str) -> bool {
    path.starts_with("/api/v1/") && path.split(['/', '?']).any(|part| part == "pods")
}

/// An object's resource version.
pub(super) fn version_of(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Where an object of this kind, namespace and name is.
pub(super) fn path(gvk: &Gvk, namespace: Option<&str>, name: &str) -> Result<String, ControlError> {
    let (_, group, plural, namespaced) = *KINDS
        .iter()
        .find(|(kind, ..)| *kind == gvk.kind.as_str())
        .ok_or_else(|| ControlError::UnknownKind(gvk.clone()))?;
    Ok(match namespaced {
        true => format!("{group}/namespaces/{}/{plural}/{name}", namespace.unwrap_or("default")),
        false => format!("{group}/{plural}/{name}"),
    })
}

/// Where all objects of a kind are, in whatever namespace.
pub(super) fn collection(kind: &str) -> Option<String> {
    let (_, group, plural, _) = KINDS.iter().find(|(known, ..)| *known == kind)?;
    Some(format!("{group}/{plural}"))
}

/// The collection that an object belongs to, and where the object itself is.
fn paths_of(object: &Value) -> Result<(String, String), ControlError> {
    let refuse = || ControlError::NoObject(object.to_string().chars().take(200).collect());
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let gvk = Gvk::from_api_version(text("/apiVersion").unwrap_or_default(), text("/kind").unwrap_or_default())
        .map_err(|_| refuse())?;
    let name = text("/metadata/name").ok_or_else(refuse)?;
    let path = path(&gvk, text("/metadata/namespace"), name)?;
    let collection = path.strip_suffix(&format!("/{name}")).unwrap_or(&path).to_owned();
    Ok((collection, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_goes_where_its_kind_lives() {
        let claim =
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "x"}});
        let (collection, path) = paths_of(&claim).unwrap();
        assert_eq!(collection, "/api/v1/namespaces/x/persistentvolumeclaims");
        assert_eq!(path, "/api/v1/namespaces/x/persistentvolumeclaims/c");
        let unknown = json!({"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "c"}});
        assert!(paths_of(&unknown).unwrap_err().to_string().contains("Gadget"));
    }
}
