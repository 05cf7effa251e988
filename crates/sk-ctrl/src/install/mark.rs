//! The mark of an installation, by which skctl recognises a cluster for simulations.
//!
//! The label `simkube.io/installed=true` is on the ConfigMap `simkube-installed` in the controller's namespace, and on
//! the namespace if the installation created it. A namespace without the label existed before, belongs to others and is
//! not changed.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use sk_api::simulation::names;

/// The ConfigMap that carries the mark.
pub(super) fn config_map(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": names::INSTALLED, "namespace": namespace,
            "labels": {names::INSTALLED_LABEL: "true", names::COMPONENT_LABEL: names::CONTROLLER},
        },
        "data": {"about": "Simulations may be run on this cluster: skctl run --cluster looks for this."},
    })
}

/// Is there an installation: a marked namespace anywhere, or a marked ConfigMap in `namespace`? Only people who may list
/// namespaces or read that one ConfigMap can know; whoever may do neither gets the API server's words.
pub async fn is_there(client: &Client, namespace: &str) -> Result<bool, kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let beside = maps.get_opt(names::INSTALLED).await;
    if beside.as_ref().is_ok_and(|map| map.as_ref().is_some_and(is_marked)) {
        return Ok(true);
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let marked = ListParams::default().labels(&format!("{}=true", names::INSTALLED_LABEL)).limit(1);
    match (namespaces.list(&marked).await, beside) {
        (Ok(listed), _) => Ok(!listed.items.is_empty()),
        (Err(_), Ok(_)) => Ok(false),
        (Err(error), Err(_)) => Err(error),
    }
}

/// Is a namespace an installation's own, or to become it? So it is if it is not there, or has the mark.
pub async fn owns(client: &Client, namespace: &str) -> Result<bool, kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    Ok(namespaces.get_opt(namespace).await?.is_none_or(|found| is_marked(&found)))
}

fn is_marked(object: &impl ResourceExt) -> bool {
    object.labels().get(names::INSTALLED_LABEL).is_some_and(|value| value == "true")
}
