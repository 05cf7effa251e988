//! A real API server takes what privacy has left of its own objects: one of each built-in kind, full of things to hide,
//! is created, read back, made private and created once more under another name.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use serde_json::{Value, json};
use sk_api::tracer::Config;
use sk_core::Gvk;
use sk_ingest::{Ledger, PrivacyKey, Role, Rules};
use sk_store::log::Fact;
use sk_testkit::control_plane::ControlPlane;
use sk_testkit::objects::{self, Object};
use sk_testkit::{Component, Options};

/// What must not be found in anything that is kept.
const SECRET: &str = "hunter2";
/// Nor may addresses that begin so.
const SECRET_ADDRESSES: [&str; 2] = ["203.0.113", "2001:db8"];

fn container(name: &str) -> Value {
    let get = json!({"path": "/hunter2", "host": "hunter2.example.com", "port": "http", "httpHeaders": [
        {"name": "X-hunter2", "value": "hunter2"}]});
    json!({
        "name": name, "image": "example/app:1", "command": ["hunter2"], "args": ["--password=hunter2"],
        "workingDir": "/hunter2", "terminationMessagePath": "/hunter2",
        "env": [
            {"name": "PASSWORD", "value": "hunter2"},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "c"}}],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
        "livenessProbe": {"httpGet": get, "periodSeconds": 7},
        "readinessProbe": {"exec": {"command": ["hunter2"]}},
        "startupProbe": {"grpc": {"port": 8080, "service": "hunter2"}},
        "lifecycle": {"postStart": {"httpGet": get}, "preStop": {"exec": {"command": ["hunter2"]}}},
        "securityContext": {
            "capabilities": {"drop": ["ALL"]},
            "seLinuxOptions": {"level": "hunter2"},
            "seccompProfile": {"type": "Localhost", "localhostProfile": "profiles/hunter2.json"},
        },
        "volumeMounts": [
            {"name": "files", "mountPath": "/hunter2", "subPath": "hunter2"},
            {"name": "config", "mountPath": "/etc/hunter2"},
        ],
    })
}

fn volumes() -> Value {
    let items = json!([{"key": "k", "path": "dir/hunter2"}]);
    json!([
        {"name": "files", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "config", "configMap": {"name": "c", "items": items}},
        {"name": "secret", "secret": {"secretName": "s", "items": items}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "p"}},
        {"name": "host", "hostPath": {"path": "/hunter2", "type": "DirectoryOrCreate"}},
        {"name": "nfs", "nfs": {"server": "hunter2.example.com", "path": "/hunter2"}},
        {"name": "csi", "csi": {"driver": "csi.example.com", "volumeAttributes": {"password": "hunter2"}}},
        {"name": "self", "downwardAPI": {"items": [{"path": "hunter2", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "all", "projected": {"sources": [
            {"serviceAccountToken": {"audience": "hunter2", "path": "hunter2"}},
            {"secret": {"name": "s", "items": items}},
        ]}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}},
    ])
}

/// Fills the pod template at `pod` with everything that a pod can say.
fn with_secrets(object: Object, pod: &str) -> Object {
    let spec = |field: &str| format!("{pod}/spec/{field}");
    object
        .annotation("note", SECRET)
        .set(&spec("containers"), json!([container("main")]))
        .set(&spec("initContainers"), json!([{"name": "init", "image": "example/init:1", "args": ["hunter2"]}]))
        .set(&spec("volumes"), volumes())
        .set(&spec("serviceAccountName"), "builder")
        .set(&spec("dnsPolicy"), "None")
        .set(&spec("dnsConfig"), json!({"nameservers": ["10.1.2.3"], "searches": ["hunter2.example.com"]}))
        .set(&spec("hostAliases"), json!([{"ip": "10.1.2.3", "hostnames": ["hunter2.example.com"]}]))
        .set(&spec("tolerations"), json!([{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]))
        .set(&spec("securityContext"), json!({"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}]}))
}

fn samples() -> Vec<Object> {
    let object = |api: &str, kind: &str, name: &str, mut rest: Value| {
        rest["apiVersion"] = json!(api);
        rest["kind"] = json!(kind);
        rest["metadata"] = json!({"name": name, "annotations": {"note": SECRET}});
        if !matches!(
            kind,
            "PersistentVolume" | "PriorityClass" | "StorageClass" | "RuntimeClass" | "Namespace" | "IngressClass"
        ) {
            rest["metadata"]["namespace"] = json!("default");
        }
        objects::object(rest)
    };
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    vec![
        with_secrets(objects::pod().name("pod"), ""),
        with_secrets(objects::deployment().name("deployment"), "/spec/template"),
        with_secrets(objects::replica_set().name("replica-set"), "/spec/template"),
        with_secrets(objects::daemon_set().name("daemon-set"), "/spec/template"),
        with_secrets(objects::stateful_set().name("stateful-set"), "/spec/template")
            .set("/spec/volumeClaimTemplates", json!([{"metadata": {"name": "data"}, "spec": claim}])),
        with_secrets(objects::job().name("job"), "/spec/template"),
        with_secrets(objects::cron_job().name("cron-job"), "/spec/jobTemplate/spec/template"),
        object("v1", "ConfigMap", "config-map", json!({"data": {"a": "hunter2"}, "binaryData": {"b": "aHVudGVyMg=="}})),
        object("v1", "Secret", "secret", json!({"data": {"a": "aHVudGVyMg=="}, "type": "Opaque"})),
        object(
            "v1",
            "Service",
            "service",
            json!({"spec": {"selector": {"app": "a"}, "ports": [{"port": 80, "targetPort": "http"}],
            "externalIPs": ["203.0.113.7"]}}),
        ),
        object(
            "v1",
            "Service",
            "elsewhere",
            json!({"spec": {"type": "ExternalName", "externalName": "hunter2.example.com"}}),
        ),
        object(
            "v1",
            "Service",
            "balanced",
            json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80}],
            "loadBalancerSourceRanges": ["203.0.113.0/24", "203.0.113.128/25"]}}),
        ),
        object("v1", "ServiceAccount", "account", json!({"imagePullSecrets": [{"name": "s"}]})),
        object("v1", "PersistentVolumeClaim", "claim", json!({"spec": claim})),
        object(
            "v1",
            "PersistentVolume",
            "volume",
            json!({"spec": {"capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"], "csi": {"driver": "csi.example.com", "volumeHandle": "hunter2"}}}),
        ),
        object("v1", "Namespace", "hidden", json!({})),
        object(
            "v1",
            "LimitRange",
            "limits",
            json!({"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}),
        ),
        object("v1", "ResourceQuota", "quota", json!({"spec": {"hard": {"requests.nvidia.com/gpu": "4"}}})),
        object(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "hpa",
            json!({"spec": {"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "deployment"}}}),
        ),
        object(
            "policy/v1",
            "PodDisruptionBudget",
            "budget",
            json!({"spec": {"minAvailable": 1,
            "selector": {"matchLabels": {"app": "a"}}}}),
        ),
        object(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "closed",
            json!({"spec": {"podSelector": {"matchLabels": {"app": "a"}}, "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"port": "http", "protocol": "TCP"}], "from": [{"podSelector": {}}]}],
            "egress": [{"ports": [{"port": 53, "endPort": 54, "protocol": "UDP"}],
            "to": [{"namespaceSelector": {"matchLabels": {"team": "a"}}},
            {"ipBlock": {"cidr": "203.0.113.0/24", "except": ["203.0.113.64/26", "203.0.113.7/32"]}},
            {"ipBlock": {"cidr": "2001:db8::/32", "except": ["2001:db8:1::/48"]}},
            {"ipBlock": {"cidr": "0.0.0.0/0"}}]}]}}),
        ),
        object(
            "networking.k8s.io/v1",
            "Ingress",
            "door",
            json!({"spec": {"ingressClassName": "outer", "tls": [{"hosts": ["hunter2.example.com"], "secretName": "s"}],
            "defaultBackend": {"resource": {"apiGroup": "example.com", "kind": "Bucket", "name": "b"}},
            "rules": [{"host": "hunter2.example.com", "http": {"paths": [
                {"path": "/hunter2", "pathType": "Exact",
                    "backend": {"service": {"name": "service", "port": {"name": "http"}}}},
                {"path": "/hunter2/more", "pathType": "Prefix",
                    "backend": {"service": {"name": "service", "port": {"number": 80}}}},
                {"pathType": "ImplementationSpecific",
                    "backend": {"service": {"name": "service", "port": {"number": 81}}}}]}}]}}),
        ),
        object("networking.k8s.io/v1", "IngressClass", "outer", json!({"spec": {"controller": "example.com/ingress"}})),
        object("scheduling.k8s.io/v1", "PriorityClass", "high", json!({"value": 1000, "description": "hunter2"})),
        object(
            "storage.k8s.io/v1",
            "StorageClass",
            "fast",
            json!({"provisioner": "csi.example.com",
            "parameters": {"password": "hunter2"}}),
        ),
        object("node.k8s.io/v1", "RuntimeClass", "sandbox", json!({"handler": "gvisor"})),
    ]
}

/// What the log keeps of an object that a server has sent.
fn private(rules: &std::sync::Arc<Rules>, kind: &Gvk, served: &Value) -> Value {
    let role = if kind.kind == "Pod" { Role::Pod } else { Role::Tracked };
    let sighting = rules.sieve(kind, role, served.to_string().as_bytes()).unwrap().unwrap();
    let mut facts = Vec::new();
    Ledger::new(rules.clone(), []).applied(sk_core::SimTime::EPOCH, sighting, &mut facts);
    let body = facts.iter().find_map(|fact| if let Fact::Applied(applied) = fact { Some(&applied.body) } else { None });
    serde_json::from_slice(body.unwrap()).unwrap()
}

#[tokio::test]
async fn a_real_server_accepts_what_privacy_has_left_of_its_own_objects() {
    let only_api = [Component::ControllerManager, Component::Scheduler, Component::Kwok].into_iter().collect();
    let cluster = ControlPlane::start(Options { without: only_api, ..Options::default() }).await.unwrap();
    let mut refusals = Vec::new();
    for sample in samples() {
        let kind = sample.gvk();
        let config = Config::parse("test", &format!("{{trackedObjects: {{{kind}: {{}}}}}}")).unwrap();
        let rules = std::sync::Arc::new(Rules::new(&config, PrivacyKey::new([7; 16])));
        let created = match cluster.create(&sample).await {
            Ok(created) => created,
            Err(error) => {
                refusals.push(format!("{kind} itself: {error}"));
                continue;
            }
        };
        let mut kept = private(&rules, &kind, &serde_json::to_value(created).unwrap());
        for secret in SECRET_ADDRESSES.iter().chain([&SECRET]) {
            assert!(!kept.to_string().contains(secret), "{kind}: {kept}");
        }
        kept["metadata"]["name"] = json!(format!("{}-private", sample.key().name));
        take_off_what_replay_takes_off(&mut kept);
        if let Err(error) = cluster.create(&objects::object(kept)).await {
            refusals.push(format!("{kind} made private: {error}"));
        }
    }
    assert!(refusals.is_empty(), "{}", refusals.join("\n"));
}

/// What a server allots to one object cannot be given to another; the plan of a replay takes it off too.
fn take_off_what_replay_takes_off(object: &mut Value) {
    let allotted = |field: &String| matches!(field.as_str(), "clusterIP" | "clusterIPs" | "finalizers");
    if object["kind"] == "Job" {
        object["spec"].as_object_mut().unwrap().retain(|field, _| field != "selector");
        object["spec"]["template"]["metadata"]["labels"] = json!({});
    }
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.retain(|field, _| !allotted(field));
    }
    let ports = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        port.retain(|field, _| field != "nodePort");
    }
    if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
        labels.retain(|label, _| label != "kubernetes.io/metadata.name");
    }
}
