//! RBAC of the tracer and of users who export.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sk_api::tracer::Config;
use sk_core::{Gvk, registry};

use super::{CERTIFICATE, EXPORTER, EXPORTER_ROLE, NAME, Options, Readable, cluster_metadata, metadata};
use crate::auth;
use crate::cluster_identity::NAMESPACE as KUBE_SYSTEM;
use crate::watch::plan;

pub(super) fn manifests(config: &Config, options: &Options, kinds: &[(Gvk, Readable)]) -> Vec<Value> {
    vec![
        role("ClusterRole", &cluster_metadata(NAME), &tracer_rules(config, kinds)),
        binding("ClusterRoleBinding", &cluster_metadata(NAME), "ClusterRole", NAME, NAME, options),
        role("Role", &metadata(options, NAME), &certificate_rules()),
        binding("RoleBinding", &metadata(options, NAME), "Role", NAME, NAME, options),
        role("ClusterRole", &cluster_metadata(EXPORTER_ROLE), &export_rules()),
        binding(
            "ClusterRoleBinding",
            &cluster_metadata(EXPORTER_ROLE),
            "ClusterRole",
            EXPORTER_ROLE,
            EXPORTER,
            options,
        ),
        role("Role", &metadata(options, EXPORTER_ROLE), &reaching_rules()),
    ]
}

/// Read the watched kinds; create TokenReviews and SubjectAccessReviews.
fn tracer_rules(config: &Config, kinds: &[(Gvk, Readable)]) -> Value {
    let mut by_group: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for task in plan::tasks(config) {
        let known = kinds.iter().find(|(kind, _)| *kind == task.kind).map(|(_, readable)| readable.clone());
        let readable = known.unwrap_or_else(|| guess(&task.kind));
        by_group.entry(readable.group).or_default().insert(readable.resource);
    }
    let reading = by_group.into_iter().map(|(group, resources)| rule(&group, &resources, &["get", "list", "watch"]));
    let reviews = [("authentication.k8s.io", "tokenreviews"), ("authorization.k8s.io", "subjectaccessreviews")];
    let reviewing = reviews.map(|(group, resource)| rule(group, &BTreeSet::from([resource.to_owned()]), &["create"]));
    reading.chain(reviewing).chain([cluster_rule()]).collect()
}

/// Read the uid that identifies the cluster, so that no data folder is used for two.
fn cluster_rule() -> Value {
    json!({"apiGroups": [""], "resources": ["namespaces"], "resourceNames": [KUBE_SYSTEM], "verbs": ["get"]})
}

fn rule(group: &str, resources: &BTreeSet<String>, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// Publish the certificate in one ConfigMap.
fn certificate_rules() -> Value {
    json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [CERTIFICATE], "verbs": ["get", "patch"]}])
}

/// The right itself. It is asked for without a namespace, so only a ClusterRoleBinding grants it.
fn export_rules() -> Value {
    json!([{"apiGroups": [auth::GROUP], "resources": [auth::RESOURCE], "verbs": [auth::VERB]}])
}

/// What `skctl export` needs of a person to reach the tracer; bind it to people, the tracer's own account needs none.
fn reaching_rules() -> Value {
    json!([
        {"apiGroups": [""], "resources": ["services", "pods"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["create", "get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [CERTIFICATE], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": [EXPORTER], "verbs": ["create"]},
    ])
}

fn role(kind: &str, metadata: &Value, rules: &Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules})
}

fn binding(kind: &str, metadata: &Value, role_kind: &str, role: &str, account: &str, options: &Options) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": options.namespace}],
    })
}

/// The resource of a kind in RBAC, where no cluster was asked: Kubernetes' own kinds are known, others are guessed.
fn guess(kind: &Gvk) -> Readable {
    Readable { group: kind.group.to_string(), resource: registry::plural(kind).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_called_as_kubernetes_calls_them() {
        let known = [
            ("v1.Pod", "pods"),
            ("networking.k8s.io/v1.Ingress", "ingresses"),
            ("networking.k8s.io/v1.NetworkPolicy", "networkpolicies"),
            ("v1.Endpoints", "endpoints"),
            ("storage.k8s.io/v1.StorageClass", "storageclasses"),
            ("gateway.networking.k8s.io/v1.Gateway", "gateways"),
            ("example.com/v1.Proxy", "proxies"),
        ];
        for (kind, expected) in known {
            assert_eq!(guess(&kind.parse().unwrap()).resource, expected);
        }
    }

    #[test]
    fn the_tracer_may_read_what_is_configured_and_nothing_else() {
        let text = "trackedObjects: {apps/v1.Deployment: {}, example.com/v1.Mouse: {}}\n";
        let config = Config::parse("test", text).unwrap();
        let mouse = Readable { group: "example.com".into(), resource: "mice".into() };
        let rules = tracer_rules(&config, &[("example.com/v1.Mouse".parse().unwrap(), mouse)]);
        let expected = json!([
            {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["apps"], "resources": ["deployments", "replicasets"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["example.com"], "resources": ["mice"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
            {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
        ]);
        assert_eq!(rules, expected);
    }
}
