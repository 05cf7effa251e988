//! The manifests of a tracer in a cluster.
//!
//! RBAC is generated from the configuration. The tracer may read the recorded kinds, pods and nodes, and the metadata
//! of the kinds between pods and their owners. It may create TokenReviews and SubjectAccessReviews, and write one
//! ConfigMap, where it publishes its certificate. It cannot read Secrets unless the configuration tracks them.
//!
//! The names that clients need are constants here: `skctl export` finds the Service, requests a token for [`EXPORTER`],
//! forwards a port to the pod and trusts the certificate in [`CERTIFICATE`].

mod rights;
mod volume;
mod workload;

use serde_json::{Value, json};
use sk_api::tracer::Config;
use sk_core::Gvk;

use crate::watch::plan::{self, Task};
use crate::watch::resource::Resource;

pub use volume::{Sizing, sizing};

/// The name of the Deployment, Service and ServiceAccount, and in labels.
pub const NAME: &str = "sk-tracer";
/// The default namespace.
pub const NAMESPACE: &str = "simkube";
/// The ServiceAccount whose tokens may export.
pub const EXPORTER: &str = "simkube-exporter";
/// The ClusterRole that allows exporting; bind it to whoever else should.
pub const EXPORTER_ROLE: &str = "simkube-trace-exporter";
/// The ConfigMap in which the running tracer publishes its certificate, under [`CERTIFICATE_KEY`].
pub const CERTIFICATE: &str = "sk-tracer-certificate";
/// The key of the certificate (PEM) in that ConfigMap.
pub const CERTIFICATE_KEY: &str = "tls.crt";
/// The port that it serves on.
pub const PORT: u16 = 7777;

/// The file name of the configuration in its ConfigMap.
const CONFIG_FILE: &str = "config.yaml";

/// What may differ between installations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The namespace that everything goes to.
    pub namespace: String,
    /// The image of the tracer.
    pub image: String,
    /// The class of the volume; the cluster's own choice, by default.
    pub storage_class: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: NAMESPACE.to_owned(),
            image: concat!("sk-tracer:", env!("CARGO_PKG_VERSION")).to_owned(),
            storage_class: None,
        }
    }
}

/// A kind that the tracer reads, as RBAC names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Readable {
    /// The API group; empty for the core.
    pub group: String,
    /// The plural.
    pub resource: String,
}

/// Everything that is applied, in an order in which it can be. `kinds` says how RBAC calls kinds, where a cluster was
/// asked (see [`names`]); the rest is guessed as Kubernetes itself does, which is right for its own kinds.
pub fn manifests(config: &Config, options: &Options, kinds: &[(Gvk, Readable)]) -> Vec<Value> {
    let mut all = vec![namespace(options), account(options, NAME), account(options, EXPORTER)];
    all.extend(rights::manifests(config, options, kinds));
    all.extend([configuration(config, options), certificate(options)]);
    all.extend([volume::claim(config, options), workload::deployment(config, options), workload::service(options)]);
    all.push(workload::network_policy(options));
    all
}

/// What the API server calls the kinds that a configuration makes a tracer read, as far as it serves them.
pub async fn names(client: &kube::Client, config: &Config) -> Result<Vec<(Gvk, Readable)>, kube::Error> {
    let mut names = Vec::new();
    for Task { kind, .. } in plan::tasks(config) {
        if let Some(resource) = Resource::find(client, &kind).await? {
            let readable = Readable { group: kind.group.to_string(), resource: resource.plural().to_owned() };
            names.push((kind, readable));
        }
    }
    Ok(names)
}

fn namespace(options: &Options) -> Value {
    let level = |mode: &str| (format!("pod-security.kubernetes.io/{mode}"), json!("restricted"));
    let mut labels = labels();
    labels.extend(["enforce", "audit", "warn"].map(level));
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": options.namespace, "labels": labels}})
}

fn account(options: &Options, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(options, name),
        "automountServiceAccountToken": false,
    })
}

fn configuration(config: &Config, options: &Options) -> Value {
    // JSON is YAML, and this is what the tracer would write itself.
    let text = serde_json::to_string_pretty(config).expect("a configuration has only text keys");
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(options, NAME),
        "data": {CONFIG_FILE: text + "\n"},
    })
}

/// Empty: the tracer fills it, and an apply leaves what it has filled.
fn certificate(options: &Options) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(options, CERTIFICATE)})
}

fn labels() -> serde_json::Map<String, Value> {
    [("app.kubernetes.io/name", NAME), ("app.kubernetes.io/part-of", "simkube")]
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .into_iter()
        .collect()
}

fn metadata(options: &Options, name: &str) -> Value {
    json!({"name": name, "namespace": options.namespace, "labels": labels()})
}

fn cluster_metadata(name: &str) -> Value {
    json!({"name": name, "labels": labels()})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let text = "trackedObjects: {apps/v1.Deployment: {}, v1.ConfigMap: {}, example.com/v1.Mouse: {}}\n";
        Config::parse("test", text).unwrap()
    }

    #[test]
    fn every_manifest_has_a_name_and_what_has_a_namespace_is_in_the_one_asked_for() {
        let options = Options { namespace: "watching".to_owned(), ..Options::default() };
        for manifest in manifests(&config(), &options, &[]) {
            let kind = manifest["kind"].as_str().unwrap();
            assert!(manifest["metadata"]["name"].is_string(), "{manifest}");
            let scoped = !["Namespace", "ClusterRole", "ClusterRoleBinding"].contains(&kind);
            assert_eq!(manifest["metadata"]["namespace"].as_str(), scoped.then_some("watching"), "{manifest}");
        }
    }

    #[test]
    fn the_configuration_in_the_cluster_is_the_one_that_was_given() {
        let manifests = manifests(&config(), &Options::default(), &[]);
        let text = manifests.iter().find_map(|manifest| manifest["data"][CONFIG_FILE].as_str()).unwrap();
        assert_eq!(Config::parse("again", text).unwrap(), config());
    }
}
