//! Which kinds are namespaced: a manifest may leave the namespace out, and then means `default`.

use std::collections::HashSet;

use serde_json::Value;
use sk_core::Gvk;
use sk_core::registry::{self, Scope};

/// The cluster-scoped kinds that the manifests themselves define, as (group, kind).
pub(super) struct Scopes {
    defined: HashSet<(String, String)>,
}

impl Scopes {
    /// Looks for CustomResourceDefinitions.
    pub(super) fn of<'a>(objects: impl Iterator<Item = &'a Value>) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let defined = objects
            .filter(|object| object["kind"] == "CustomResourceDefinition" && object["spec"]["scope"] == "Cluster")
            .map(|object| (text(&object["spec"]["group"]), text(&object["spec"]["names"]["kind"])))
            .collect();
        Self { defined }
    }

    /// Adds the namespace `default` to an object that has none and needs one.
    pub(super) fn give_namespace(&self, object: &mut Value) {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if self.is_cluster_scoped(&api_version, &kind) {
            return;
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
            && metadata.get("namespace").is_none_or(|namespace| namespace.is_null() || namespace == "")
        {
            metadata.insert("namespace".into(), "default".into());
        }
    }

    fn is_cluster_scoped(&self, api_version: &str, kind: &str) -> bool {
        // What has no kind is refused elsewhere, with its place.
        let Ok(gvk) = Gvk::from_api_version(api_version, kind) else { return false };
        registry::scope(&gvk) == Some(Scope::Cluster)
            || self.defined.contains(&(gvk.group.to_string(), gvk.kind.to_string()))
    }
}
