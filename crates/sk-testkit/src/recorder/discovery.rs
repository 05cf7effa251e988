//! Records the discovery of a real API server, with which a test compares the registry of kinds.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{RecordError, today, write_lines};
use crate::control_plane::{ControlError, ControlPlane};
use crate::fixture::{Discovery, ServedKind, path_of};

/// The aggregated form, in which one answer tells all (1.30 and later).
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What a control plane with Kubernetes' own defaults serves.
pub async fn record_discovery() -> Result<Discovery, RecordError> {
    let cluster = ControlPlane::start(crate::Options::default()).await?;
    let mut kinds = BTreeMap::new();
    for path in ["/api", "/apis"] {
        let request = http::Request::get(path).header(http::header::ACCEPT, AGGREGATED).body(Vec::new());
        let request = request.map_err(|error| RecordError::Discovery(error.to_string()))?;
        let answer: Value =
            cluster.client().request(request).await.map_err(ControlError::request("ask what is served"))?;
        each(&answer, "items").for_each(|group| add_group(group, &mut kinds));
    }
    Ok(Discovery { kubernetes: cluster.version().await?, recorded: today(), kinds: kinds.into_values().collect() })
}

/// Writes what is served: a line per kind.
pub fn write_discovery(discovery: &Discovery) -> Result<std::path::PathBuf, RecordError> {
    write_lines(discovery, 2, path_of("discovery"))
}

fn add_group(group: &Value, kinds: &mut BTreeMap<(String, String), ServedKind>) {
    let name = text(&group["metadata"]["name"]);
    for version in each(group, "versions") {
        for resource in each(version, "resources") {
            let kind = text(&resource["responseKind"]["kind"]);
            let served = kinds.entry((name.clone(), kind.clone())).or_insert_with(|| ServedKind {
                group: name.clone(),
                versions: Vec::new(),
                kind,
                plural: text(&resource["resource"]),
                short_names: each(resource, "shortNames").map(text).collect(),
                scope: text(&resource["scope"]),
                subresources: each(resource, "subresources").map(|sub| text(&sub["subresource"])).collect(),
            });
            served.versions.push(text(&version["version"]));
            served.subresources.sort_unstable();
        }
    }
}

fn each<'v>(value: &'v Value, list: &str) -> impl Iterator<Item = &'v Value> {
    value[list].as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
