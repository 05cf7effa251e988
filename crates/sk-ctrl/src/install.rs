//! The manifests of the simulator: `skctl install sim` applies them, `skctl manifests sim` prints them.
//!
//! The label `simkube.io/installed=true` marks a cluster for simulations; `skctl run --cluster` refuses every other.
//! [`mark`] says which objects carry it.
//!
//! RBAC is in [`rbac`], as narrow as possible; [`policy`] has what RBAC cannot express. The controller's pod meets the
//! restricted Pod Security Standard. The namespace enforces it too, unless drivers mount traces from nodes, which that
//! standard forbids. A namespace that existed before is neither labelled nor restricted, because others use it.

pub mod mark;
pub mod policy;
pub mod rbac;

use serde_json::{Value, json};
use sk_api::simulation::{crds, names};

pub use rbac::Kinds;

/// The port of the controller's HTTPS endpoint.
pub const PORT: u16 = 8443;
/// Where the controller keeps records in its pod.
const RECORDS_DIR: &str = "/var/lib/simkube/records";
/// Room for records: 1,000 runs of 150,000 pods, at 15 MB each, are 15 GB.
const RECORDS_SIZE: &str = "20Gi";
/// The user id of the controller: `nobody` in distroless images.
const USER: u32 = 65532;

/// What may differ between installations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The namespace that everything goes to.
    pub namespace: String,
    /// Is that namespace the installation's own? One that was there before is not touched; [`mark::owns`] tells.
    pub own_namespace: bool,
    /// The controller's image.
    pub image: String,
    /// The driver's image where a Simulation names none.
    pub driver_image: String,
    /// Other images that Simulations may name for their driver, whole or up to a `/`, `:` or `@`.
    pub allowed_images: Vec<String>,
    /// The class of the records' volume; the cluster's own choice, by default.
    pub storage_class: Option<String>,
    /// The size of the records' volume.
    pub records_size: String,
    /// May Simulations have hooks?
    pub allow_hooks: bool,
    /// May drivers run in any namespace?
    pub any_namespace: bool,
    /// May traces be mounted from nodes? That takes a namespace without a Pod Security Standard.
    pub local_traces: bool,
    /// May the controller make a Prometheus, where a Simulation asks for one?
    pub metrics: bool,
    /// May the controller ask cert-manager for certificates, where a Simulation names an issuer?
    pub cert_manager: bool,
    /// Kinds with namespaces that may be replayed beyond Kubernetes' own workloads, in the namespaces of runs.
    pub more_kinds: Vec<Kinds>,
    /// Kinds without namespaces that may be replayed, and so be changed everywhere.
    pub more_cluster_kinds: Vec<Kinds>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: names::NAMESPACE.to_owned(),
            own_namespace: true,
            image: concat!("sk-ctrl:", env!("CARGO_PKG_VERSION")).to_owned(),
            driver_image: concat!("sk-driver:", env!("CARGO_PKG_VERSION")).to_owned(),
            allowed_images: Vec::new(),
            storage_class: None,
            records_size: RECORDS_SIZE.to_owned(),
            allow_hooks: false,
            any_namespace: false,
            local_traces: false,
            metrics: false,
            cert_manager: false,
            more_kinds: Vec::new(),
            more_cluster_kinds: Vec::new(),
        }
    }
}

/// Everything that is applied, in an order in which it can be.
pub fn manifests(options: &Options) -> Vec<Value> {
    let definitions =
        crds().into_iter().map(|crd| serde_json::to_value(crd).expect("a definition is made of plain data"));
    let mut all: Vec<_> = definitions.collect();
    all.extend(options.own_namespace.then(|| namespace(options)));
    all.push(mark::config_map(&options.namespace));
    all.extend(rbac::manifests(options));
    all.extend(policy::manifests(options));
    all.extend([volume(options), deployment(options), service(options), network_policy(options)]);
    all
}

fn namespace(options: &Options) -> Value {
    let standard = if options.local_traces { "privileged" } else { "restricted" };
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": options.namespace, "labels": {
            names::INSTALLED_LABEL: "true", "pod-security.kubernetes.io/enforce": standard,
        }},
    })
}

fn volume(options: &Options) -> Value {
    let mut claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata(options, "sk-ctrl-records"),
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": options.records_size}},
        },
    });
    if let Some(class) = &options.storage_class {
        claim["spec"]["storageClassName"] = class.as_str().into();
    }
    claim
}

/// One controller: of several one acts, but each keeps its own records.
fn deployment(options: &Options) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(options, names::CONTROLLER_NAME),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels()},
            "template": {"metadata": {"labels": labels()}, "spec": pod(options)},
        },
    })
}

fn pod(options: &Options) -> Value {
    let probe = json!({"httpGet": {"path": "/healthz", "port": "https", "scheme": "HTTPS"}, "periodSeconds": 10});
    json!({
        "serviceAccountName": names::CONTROLLER_NAME,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{
            "name": "controller",
            "image": options.image,
            "args": arguments(options),
            "ports": [{"name": "https", "containerPort": PORT}],
            "readinessProbe": probe,
            "livenessProbe": probe,
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [{"name": "records", "mountPath": RECORDS_DIR}],
        }],
        "volumes": [{"name": "records", "persistentVolumeClaim": {"claimName": "sk-ctrl-records"}}],
    })
}

/// What the controller is started with.
pub fn arguments(options: &Options) -> Vec<String> {
    let mut arguments = vec![
        format!("--namespace={}", options.namespace),
        format!("--driver-image={}", options.driver_image),
        format!("--driver-service-account={}", names::DRIVER_ACCOUNT),
        format!("--records-dir={RECORDS_DIR}"),
        format!("--bind=0.0.0.0:{PORT}"),
    ];
    arguments.extend(options.allowed_images.iter().map(|image| format!("--allow-driver-image={image}")));
    arguments.extend(options.allow_hooks.then(|| "--allow-hooks".to_owned()));
    arguments.extend(options.any_namespace.then(|| "--any-namespace".to_owned()));
    arguments.extend(options.local_traces.then(|| "--local-traces".to_owned()));
    arguments
}

fn service(options: &Options) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata(options, names::CONTROLLER_NAME),
        "spec": {"selector": labels(), "ports": [{"name": "https", "port": 443, "targetPort": "https"}]},
    })
}

/// Only drivers send records. People come through a port-forward, which the node makes and no policy sees.
fn network_policy(options: &Options) -> Value {
    let drivers = json!({
        "namespaceSelector": {}, "podSelector": {"matchLabels": {names::COMPONENT_LABEL: names::DRIVER}},
    });
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": metadata(options, names::CONTROLLER_NAME),
        "spec": {
            "podSelector": {"matchLabels": labels()}, "policyTypes": ["Ingress"],
            "ingress": [{"from": [drivers], "ports": [{"port": "https", "protocol": "TCP"}]}],
        },
    })
}

fn labels() -> Value {
    json!({names::COMPONENT_LABEL: names::CONTROLLER})
}

fn metadata(options: &Options, name: &str) -> Value {
    json!({"name": name, "namespace": options.namespace, "labels": labels()})
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Arguments;

    #[test]
    fn the_deployments_arguments_are_understood() {
        let options = Options {
            allow_hooks: true,
            any_namespace: true,
            local_traces: true,
            namespace: "lab".to_owned(),
            allowed_images: vec!["a/b".to_owned(), "c:1".to_owned()],
            ..Options::default()
        };
        let arguments = std::iter::once("sk-ctrl".to_owned()).chain(arguments(&options));
        let parsed = Arguments::try_parse_from(arguments).unwrap();
        assert!(parsed.allow_hooks && parsed.any_namespace && parsed.local_traces);
        assert_eq!(parsed.allow_driver_image, options.allowed_images);
        assert_eq!((parsed.namespace.as_str(), parsed.bind.port()), ("lab", PORT));
    }

    #[test]
    fn nothing_of_an_installation_is_a_cluster_admin() {
        let options = Options { any_namespace: true, metrics: true, cert_manager: true, ..Options::default() };
        for object in manifests(&options) {
            let text = object.to_string();
            assert!(!text.contains("cluster-admin"), "{text}");
            let rules = object["rules"].as_array().cloned().unwrap_or_default();
            assert!(rules.iter().all(|rule| !rule.to_string().contains("\"*\"")), "{text}");
        }
    }

    #[test]
    fn a_driver_may_write_workloads_only_where_it_has_bound_itself() {
        let kinds = |group: &str, plural: &str| Kinds { group: group.to_owned(), resources: vec![plural.to_owned()] };
        let options = Options {
            more_kinds: vec![kinds("", "secrets")],
            more_cluster_kinds: vec![kinds("example.com", "planets")],
            ..Options::default()
        };
        let all = manifests(&options);
        let writes = |role: &str, resource: &str| {
            let is_it = |object: &&Value| object["kind"] == "ClusterRole" && object["metadata"]["name"] == role;
            let rules = all.iter().find(is_it).unwrap()["rules"].as_array().unwrap().clone();
            let has = |rule: &Value, field: &str, wanted: &str| {
                rule[field].as_array().is_some_and(|values| values.iter().any(|value| value == wanted))
            };
            rules.iter().any(|rule| has(rule, "resources", resource) && has(rule, "verbs", "patch"))
        };
        for resource in ["pods", "configmaps", "deployments", "jobs", "secrets", "serviceaccounts"] {
            assert!(!writes(names::DRIVER_ACCOUNT, resource), "{resource} everywhere");
            assert!(writes(names::DRIVER_REPLAY_ROLE, resource), "{resource} in a run's namespace");
        }
        assert!(writes(names::DRIVER_ACCOUNT, "planets"), "what has no namespace cannot be narrower");
        let binds = |object: &&Value| object["roleRef"]["name"] == names::DRIVER_REPLAY_ROLE;
        assert_eq!(all.iter().filter(binds).count(), 0, "the installation binds it nowhere");
    }

    #[test]
    fn people_who_run_simulations_may_do_what_skctl_asks_for() {
        let all = manifests(&Options::default());
        let may = |kind: &str, resource: &str, verb: &str| {
            let role =
                all.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == names::USER_ROLE);
            let has = |rule: &Value, field: &str, wanted: &str| {
                rule[field].as_array().is_some_and(|values| values.iter().any(|value| value == wanted))
            };
            let mut rules = role.unwrap()["rules"].as_array().unwrap().iter();
            rules.any(|rule| has(rule, "resources", resource) && has(rule, "verbs", verb))
        };
        for (kind, resource, verb) in [
            // `run --cluster` looks for the mark, `describe` for Events, `logs` into the driver's pod.
            ("ClusterRole", "namespaces", "list"),
            ("ClusterRole", "events", "list"),
            ("ClusterRole", "simulations", "patch"),
            ("ClusterRole", "simulations/trace", "create"),
            ("Role", "pods", "list"),
            ("Role", "pods/log", "get"),
        ] {
            assert!(may(kind, resource, verb), "{verb} {resource}");
        }
    }

    #[test]
    fn the_namespace_is_marked_and_restricted_unless_traces_are_on_nodes() {
        let labels = |options: &Options| namespace(options)["metadata"]["labels"].clone();
        let usual = labels(&Options::default());
        assert_eq!(usual["simkube.io/installed"], "true");
        assert_eq!(usual["pod-security.kubernetes.io/enforce"], "restricted");
        let local = labels(&Options { local_traces: true, ..Options::default() });
        assert_eq!(local["pod-security.kubernetes.io/enforce"], "privileged");
    }

    #[test]
    fn a_namespace_that_was_there_is_not_touched_and_the_mark_is_beside() {
        let count = |options: &Options, kind: &str, name: &str| {
            let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
            manifests(options).iter().filter(is_it).count()
        };
        let own = Options { namespace: "lab".to_owned(), ..Options::default() };
        let theirs = Options { own_namespace: false, ..own.clone() };
        for (options, namespaces) in [(&own, 1), (&theirs, 0)] {
            assert_eq!(count(options, "Namespace", "lab"), namespaces);
            assert_eq!(count(options, "ConfigMap", names::INSTALLED), 1);
        }
    }
}
