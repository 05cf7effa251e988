//! Checks that all objects of an installation exist.

use serde_json::Value;
use sk_core::Gvk;

use super::{Finding, the_first};
use crate::cluster::apply::name_of;
use crate::cluster::kinds::{KindError, Kinds};
use crate::cluster::service::{Service, unready};
use crate::cluster::{Cluster, words};

/// The outcome of looking for an object.
enum Look {
    There,
    Missing,
    Unknown(String),
}

/// Looks for each of the objects.
pub(super) async fn presence(cluster: &Cluster, objects: &[Value], install: &str) -> Finding {
    let mut missing = Vec::new();
    let mut kinds = Kinds::of(cluster);
    for object in objects {
        match look(&mut kinds, object).await {
            Look::There => {}
            Look::Missing => missing.push(name_of(object)),
            Look::Unknown(why) => {
                let what = format!("cannot look for {}: {why}", name_of(object));
                return Finding::warn("objects", what, "ask somebody with more permissions");
            }
        }
    }
    if missing.is_empty() {
        return Finding::ok("objects", format!("all {} objects of the installation exist", objects.len()));
    }
    Finding::fail("objects", format!("missing: {}", the_first(missing, ", ")), install)
}

async fn look(kinds: &mut Kinds<'_>, object: &Value) -> Look {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let Ok(kind) = Gvk::from_api_version(text("/apiVersion"), text("/kind")) else {
        return Look::Unknown("its kind has no name".to_owned());
    };
    let api = match kinds.api(&kind, text("/metadata/namespace")).await {
        Ok(api) => api,
        Err(KindError::Unknown(_)) => return Look::Missing,
        Err(KindError::Request(error)) => return Look::Unknown(words(&error)),
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
            let what = format!("the {} has no pod in namespace {}", service.what, cluster.namespace);
            Finding::fail("pod", what, format!("skctl install {}, or look elsewhere with -n", service.part))
        }
    }
}
