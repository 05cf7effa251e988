//! Empties a cluster between two scenarios, so that the next one starts as on a new cluster.

use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PropagationPolicy};
use serde_json::json;
use sk_core::{Gvk, registry};

use crate::control_plane::access::dynamic_api;
use crate::control_plane::{ControlError, ControlPlane};

/// How long a cluster may take to be empty: its garbage collector and KWOK take a second or two.
const LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);
/// What scenarios make, owners first. Nodes come last: pods need them to go.
const MADE: [&str; 17] = [
    "CronJob",
    "Job",
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicationController",
    "ReplicaSet",
    "ControllerRevision",
    "PodDisruptionBudget",
    "ResourceQuota",
    "LimitRange",
    "ConfigMap",
    "Pod",
    "PersistentVolumeClaim",
    "Event",
    "Namespace",
    "Node",
];
/// What every cluster has by itself.
const OWN_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
const OWN_OBJECTS: [&str; 1] = ["kube-root-ca.crt"];

/// Deletes everything that a scenario may have made, again and again until nothing is left.
pub(super) async fn sweep(cluster: &ControlPlane) -> Result<(), ControlError> {
    let mut apis = Vec::new();
    for kind in MADE {
        let found = registry::KINDS.iter().find(|info| info.kind == kind);
        let gvk: Gvk = found.expect("only kinds that Kubernetes brings are listed").gvk();
        apis.push((kind, gvk.clone(), dynamic_api(cluster.client(), &gvk, None).await?));
    }
    let began = Instant::now();
    loop {
        let mut left = Vec::new();
        for (kind, gvk, api) in &apis {
            if *kind == "Node" && !left.is_empty() {
                continue;
            }
            for object in remaining(kind, api).await? {
                left.push(format!("{kind} {}", object.name_any()));
                remove(cluster, gvk, &object).await?;
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        if began.elapsed() > LIMIT {
            let last = Some(left.join(", "));
            return Err(ControlError::TimedOut { what: "an empty cluster".to_owned(), waited: LIMIT, last });
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn remaining(kind: &str, api: &Api<DynamicObject>) -> Result<Vec<DynamicObject>, ControlError> {
    let listed = api.list(&ListParams::default()).await.map_err(ControlError::request(format!("list {kind}")))?;
    let is_ours = |object: &DynamicObject| {
        let namespace = object.namespace().unwrap_or_default();
        let name = object.name_any();
        let is_own = if kind == "Namespace" { &OWN_NAMESPACES[..] } else { &OWN_OBJECTS[..] };
        !is_own.contains(&name.as_str()) && !namespace.starts_with("kube-")
    };
    Ok(listed.items.into_iter().filter(is_ours).collect())
}

/// Removes the finalizers of an object. It is no error if the object is already deleted.
async fn remove(cluster: &ControlPlane, gvk: &Gvk, object: &DynamicObject) -> Result<(), ControlError> {
    let namespace = object.namespace();
    let api = dynamic_api(cluster.client(), gvk, namespace.as_deref()).await?;
    let name = object.name_any();
    let is_held = object.metadata.deletion_timestamp.is_some() && !object.finalizers().is_empty();
    if is_held {
        let free = json!({"metadata": {"finalizers": null}});
        let freed = api.patch(&name, &PatchParams::default(), &Patch::Merge(free)).await.map(drop);
        return unless_gone(freed, "free", &name);
    }
    let parameters = DeleteParams {
        grace_period_seconds: Some(0),
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    };
    unless_gone(api.delete(&name, &parameters).await.map(drop), "delete", &name)
}

fn unless_gone(answer: Result<(), kube::Error>, step: &str, name: &str) -> Result<(), ControlError> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
        other => other.map_err(ControlError::request(format!("{step} {name}"))),
    }
}
