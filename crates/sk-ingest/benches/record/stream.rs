//! The prepared watch stream: what an API server sends of Deployments that people and autoscalers change.

use std::io::{BufWriter, Write};

use serde_json::{Value, json};

/// How many versions of each object there are.
const VERSIONS: usize = 50;

/// Writes the stream, a line per event, and says how many there are. The versions of one object lie as far apart as
/// there are objects.
pub(crate) fn write(out: &mut impl Write, objects: usize) -> u64 {
    let mut out = BufWriter::new(out);
    let mut events = 0;
    for version in 0..VERSIONS {
        for number in 0..objects {
            let kind = if version == 0 { "ADDED" } else { "MODIFIED" };
            events += 1;
            writeln!(out, "{{\"type\":\"{kind}\",\"object\":{}}}", deployment(number, version, events)).unwrap();
        }
    }
    out.flush().unwrap();
    events
}

/// One version of one Deployment. Every second step scales it; the others in turns restart it and give it an image.
fn deployment(number: usize, version: usize, resource_version: u64) -> Value {
    let name = format!("service-{number:04}");
    let (scaled, rolled, restarted) = (version.div_ceil(2), version / 4, (version + 2) / 4);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": format!("team-{}", number % 20),
            "uid": format!("{number:08x}-1111-4222-8333-444455556666"),
            "resourceVersion": resource_version.to_string(),
            "generation": version + 1,
            "creationTimestamp": "2026-11-01T08:00:00Z",
            "labels": {"app": name, "app.kubernetes.io/managed-by": "Helm", "team": format!("team-{}", number % 20)},
            "annotations": {
                "deployment.kubernetes.io/revision": rolled.to_string(),
                "meta.helm.sh/release-name": name,
                "kubernetes.io/change-cause": format!("restart {restarted}"),
            },
        },
        "spec": {
            "replicas": 3 + scaled % 7,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
            "template": {
                "metadata": {"labels": {"app": name, "version": format!("v{rolled}")}},
                "spec": {
                    "containers": [container(&name, number, rolled)],
                    "restartPolicy": "Always",
                    "terminationGracePeriodSeconds": 30,
                    "dnsPolicy": "ClusterFirst",
                    "serviceAccountName": name,
                    "securityContext": {"runAsNonRoot": true},
                    "schedulerName": "default-scheduler",
                    "topologySpreadConstraints": [{
                        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": {"app": name}},
                    }],
                    "volumes": [{"name": "config", "configMap": {"name": name, "defaultMode": 420}}],
                    "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "web", "effect": "NoSchedule"}],
                },
            },
        },
        "status": {
            "observedGeneration": version + 1,
            "replicas": 3 + scaled % 7,
            "readyReplicas": 3,
            "conditions": [
                {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
                 "lastUpdateTime": "2026-11-01T08:00:10Z", "lastTransitionTime": "2026-11-01T08:00:10Z"},
            ],
        },
    })
}

fn container(name: &str, number: usize, rolled: usize) -> Value {
    json!({
        "name": "main",
        "image": format!("registry.example.com/{name}:1.{rolled}.0"),
        "args": ["serve", "--listen=:8080", format!("--shard={number}")],
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "env": [
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "DATABASE_URL", "value": format!("postgres://{name}@db.internal:5432/{name}")},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        ],
        "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"}, "periodSeconds": 5},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}],
        "imagePullPolicy": "IfNotPresent",
    })
}
