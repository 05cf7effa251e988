//! The Deployment, the Service and the NetworkPolicy.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sk_api::tracer::Config;

use super::{CERTIFICATE, CONFIG_FILE, NAME, Options, PORT, labels, metadata};

/// An account that owns nothing; its number is that of "nobody" on most systems.
const NOBODY: u32 = 65_534;
/// What an idle tracer takes. Live objects cost about 3 KB each, so the limit is reached at some 300,000.
const MEMORY: (&str, &str) = ("128Mi", "1Gi");

fn selector() -> Value {
    json!({"app.kubernetes.io/name": NAME})
}

/// One tracer at a time: a second one could not open the log, so the old pod must be gone before the new one starts.
/// The configuration's hash on the pods makes a new one of them when the configuration changes.
pub(super) fn deployment(config: &Config, options: &Options) -> Value {
    let written = serde_json::to_string(config).expect("a configuration has only text keys");
    let hash: String = Sha256::digest(written).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let metadata_of_pods = json!({"labels": labels(), "annotations": {"simkube.io/configuration": hash}});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(options, NAME),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": selector()},
            "template": {"metadata": metadata_of_pods, "spec": pod(options)},
        },
    })
}

fn pod(options: &Options) -> Value {
    json!({
        "serviceAccountName": NAME,
        "automountServiceAccountToken": true,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "fsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container(options)],
        "volumes": [
            {"name": "config", "configMap": {"name": NAME}},
            {"name": "data", "persistentVolumeClaim": {"claimName": NAME}},
        ],
    })
}

fn container(options: &Options) -> Value {
    let probe =
        |path: &str| json!({"httpGet": {"path": path, "port": "https", "scheme": "HTTPS"}, "periodSeconds": 10});
    json!({
        "name": NAME,
        "image": options.image,
        "args": [
            format!("--config-file=/etc/sk-tracer/{CONFIG_FILE}"),
            "--data-dir=/var/lib/sk-tracer/log",
            "--bind=0.0.0.0",
            format!("--server-port={PORT}"),
            format!("--publish-certificate={}/{CERTIFICATE}", options.namespace),
        ],
        "ports": [{"name": "https", "containerPort": PORT}],
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        "resources": {"requests": {"cpu": "100m", "memory": MEMORY.0}, "limits": {"memory": MEMORY.1}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/sk-tracer", "readOnly": true},
            {"name": "data", "mountPath": "/var/lib/sk-tracer"},
        ],
    })
}

pub(super) fn service(options: &Options) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(options, NAME),
        "spec": {"selector": selector(), "ports": [{"name": "https", "port": PORT, "targetPort": "https"}]},
    })
}

/// In: the tracer's port. Out: names, and the API server and object stores, whose addresses nobody knows beforehand but
/// whose ports are HTTPS ones.
pub(super) fn network_policy(options: &Options) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(options, NAME),
        "spec": {
            "podSelector": {"matchLabels": selector()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"port": PORT, "protocol": "TCP"}]}],
            "egress": [
                {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]},
                {"ports": [{"port": 443, "protocol": "TCP"}, {"port": 6443, "protocol": "TCP"}]},
            ],
        },
    })
}
