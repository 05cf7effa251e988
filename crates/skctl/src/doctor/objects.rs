//! Is everything there that an installation makes?

use kube::api::{Api, DynamicObject};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use serde_json::Value;
use sk_core::Gvk;

use super::Finding;
use crate::cluster::apply::name_of;
use crate::cluster::service::{Service, unready};
use crate::cluster::{Cluster, words};

/// How many missing objects are named; the rest is a number.
const NAMED: usize = 4;

/// What became of looking for an object.
enum Look {
    There,
    Missing,
    Unknown(String),
}

/// Looks for each of the objects.
pub(super) async fn presence(cluster: &Cluster, objects: &[Value], install: &str) -> Finding {
    let mut missing = Vec::new();
    for object in objects {
        match look(cluster, object).await {
            Look::There => {}
            Look::Missing => missing.push(name_of(object)),
            Look::Unknown(why) => {
                let what = format!("{} cannot be looked for: {why}", name_of(object));
                return Finding::warn("objects", what, "somebody with more rights can say more");
            }
        }
    }
    if missing.is_empty() {
        return Finding::ok("objects", format!("all {} of the installation are there", objects.len()));
    }
    let more = missing.len().saturating_sub(NAMED);
    missing.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Finding::fail("objects", format!("missing: {}{more}", missing.join(", ")), install)
}

async fn look(cluster: &Cluster, object: &Value) -> Look {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let Ok(kind) = Gvk::from_api_version(text("/apiVersion"), text("/kind")) else {
        return Look::Unknown("its kind has no name".to_owned());
    };
    let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
    let Ok((resource, capabilities)) = discovery::pinned_kind(&cluster.client, &gvk).await else {
        return Look::Missing;
    };
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Namespaced => Api::namespaced_with(cluster.client.clone(), text("/metadata/namespace"), &resource),
        Scope::Cluster => Api::all_with(cluster.client.clone(), &resource),
    };
    match api.get_metadata_opt(text("/metadata/name")).await {
        Ok(Some(_)) => Look::There,
        Ok(None) => Look::Missing,
        Err(error) => Look::Unknown(words(&error)),
    }
}

/// Is one of the server's pods ready?
pub(super) async fn pod(cluster: &Cluster, service: &Service) -> Finding {
    let pods = match service.pods(cluster).await {
        Ok(pods) => pods,
        Err(error) => return Finding::warn("pod", error.to_string(), "it takes `list` on pods there"),
    };
    let whys: Vec<Option<String>> = pods.iter().map(unready).collect();
    if let Some(ready) = whys.iter().position(Option::is_none) {
        let name = pods[ready].metadata.name.clone().unwrap_or_default();
        return Finding::ok("pod", format!("{name} is ready"));
    }
    match whys.into_iter().flatten().next() {
        Some(why) => {
            let advice = format!("kubectl -n {} describe pods -l {}", cluster.namespace, service.selector);
            Finding::fail("pod", format!("the {}: {why}", service.what), advice)
        }
        None => {
            let what = format!("the {} has none in namespace {}", service.what, cluster.namespace);
            Finding::fail("pod", what, format!("skctl install {}, or look elsewhere with -n", service.part))
        }
    }
}
