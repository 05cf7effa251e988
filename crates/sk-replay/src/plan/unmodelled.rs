//! What in a trace the embedded engine does not model. Said aloud in every answer, never passed over in silence.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sk_core::{Gvk, ObjectRef};
use sk_store::trace::TracerConfig;

use super::templates;

/// One thing that is not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Stable and short.
    pub code: &'static str,
    /// One sentence for a person.
    pub message: &'static str,
}

/// Kinds whose controllers would act on a real cluster and do not here.
const KINDS: [(&str, &str, Finding); 12] = [
    ("apps", "StatefulSet", Finding { code: "statefulset", message: "StatefulSets make no pods yet" }),
    ("apps", "DaemonSet", Finding { code: "daemonset", message: "DaemonSets make no pods yet" }),
    ("batch", "Job", Finding { code: "job", message: "Jobs make no pods yet" }),
    ("batch", "CronJob", Finding { code: "cronjob", message: "CronJobs make no Jobs yet" }),
    ("", "ReplicationController", Finding { code: "rc", message: "ReplicationControllers make no pods yet" }),
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
        Finding { code: "hpa", message: "HorizontalPodAutoscalers do nothing: replicas as recorded" },
    ),
    (
        "policy",
        "PodDisruptionBudget",
        Finding { code: "pdb", message: "PodDisruptionBudgets do not hold evictions back yet" },
    ),
    ("", "LimitRange", Finding { code: "limit-range", message: "LimitRanges set no defaults and no limits yet" }),
    ("", "ResourceQuota", Finding { code: "quota", message: "ResourceQuotas do not hold anything back yet" }),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", WEBHOOKS),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", WEBHOOKS),
    ("", "Node", Finding { code: "node", message: "recorded nodes are not replayed: the scenario has its own" }),
];

/// Fields of a pod's spec that decide its placement on a real cluster and do not here.
const FIELDS: [(&str, Finding); 10] = [
    ("/affinity/podAffinity", Finding { code: "pod-affinity", message: "pod affinity is not modelled yet" }),
    (
        "/affinity/podAntiAffinity",
        Finding { code: "pod-anti-affinity", message: "pod anti-affinity is not modelled yet" },
    ),
    (
        "/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution",
        Finding { code: "preferred-node-affinity", message: "preferred node affinity is not scored yet" },
    ),
    (
        "/topologySpreadConstraints",
        Finding { code: "topology-spread", message: "topology spread constraints are not modelled yet" },
    ),
    ("/resourceClaims", Finding { code: "dra", message: "dynamic resource claims are not modelled" }),
    ("/schedulerName", Finding { code: "scheduler-name", message: "other schedulers than the default one do not run" }),
    ("/hostNetwork", HOST_PORTS),
    ("/priorityClassName", PREEMPTION),
    ("/priority", PREEMPTION),
    ("/nodeName", Finding { code: "node-name", message: "templates that name a node are scheduled all the same" }),
];

const WEBHOOKS: Finding = Finding { code: "webhooks", message: "admission webhooks are not called" };
const PREEMPTION: Finding =
    Finding { code: "preemption", message: "preemption is not modelled yet: pods of higher priority wait" };
const CUSTOM: Finding =
    Finding { code: "custom-resource", message: "nothing acts on custom resources: their controllers are not there" };
const CLAIMS: Finding =
    Finding { code: "volumes", message: "volumes that bind pods to zones or nodes are not modelled yet" };
const HOST_PORTS: Finding = Finding { code: "host-ports", message: "host ports are not modelled yet" };
const SPREADING: Finding =
    Finding { code: "default-spreading", message: "default spreading of a workload's pods is not scored yet" };

/// Objects by what of them is not modelled.
#[derive(Clone, Debug, Default)]
pub struct Unmodelled {
    objects: BTreeMap<Finding, BTreeSet<ObjectRef>>,
}

impl Unmodelled {
    /// Each finding and how many objects it concerns.
    pub fn findings(&self) -> impl Iterator<Item = (Finding, u64)> {
        self.objects.iter().map(|(finding, objects)| (*finding, objects.len() as u64))
    }

    pub(super) fn look_at(&mut self, object: &ObjectRef, value: &Value, config: &TracerConfig) {
        let of_kind =
            |(group, kind, _): &&(&str, &str, Finding)| object.gvk.group == *group && object.gvk.kind == *kind;
        if let Some((_, _, finding)) = KINDS.iter().find(of_kind) {
            self.found(*finding, object);
        } else if is_custom(&object.gvk) {
            self.found(CUSTOM, object);
        }
        if makes_several_pods(&object.gvk, value) {
            self.found(SPREADING, object);
        }
        for pattern in templates::paths(&object.gvk, config) {
            for (_, template) in pattern.find(value) {
                if let Some(spec) = template.get("spec") {
                    self.look_at_pod(object, spec);
                }
            }
        }
    }

    fn look_at_pod(&mut self, object: &ObjectRef, spec: &Value) {
        for (field, finding) in FIELDS {
            // A bare pod's node is where it was placed; the plan takes it off.
            let is_placement = field == "/nodeName" && object.gvk.kind == "Pod";
            if !is_placement && spec.pointer(field).is_some_and(|value| matters(field, value)) {
                self.found(finding, object);
            }
        }
        let list = |value: &Value, name: &str| value.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let claims =
            |volume: &Value| volume.get("persistentVolumeClaim").is_some() || volume.get("ephemeral").is_some();
        if list(spec, "volumes").iter().any(claims) {
            self.found(CLAIMS, object);
        }
        let host_port = |port: &Value| port.get("hostPort").and_then(Value::as_i64).is_some_and(|port| port != 0);
        if list(spec, "containers").iter().any(|container| list(container, "ports").iter().any(host_port)) {
            self.found(HOST_PORTS, object);
        }
    }

    fn found(&mut self, finding: Finding, object: &ObjectRef) {
        self.objects.entry(finding).or_default().insert(object.clone());
    }
}

/// Empty lists, `false` and the default scheduler change nothing.
fn matters(field: &str, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) if field == "/schedulerName" => !text.is_empty() && text != "default-scheduler",
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_i64() != Some(0),
    }
}

/// Groups of Kubernetes itself have no dot, or end in `.k8s.io`.
fn is_custom(gvk: &Gvk) -> bool {
    gvk.group.contains('.') && !gvk.group.ends_with(".k8s.io")
}

fn makes_several_pods(gvk: &Gvk, value: &Value) -> bool {
    let replicas = value.pointer("/spec/replicas").and_then(Value::as_i64);
    gvk.group == "apps" && matches!(gvk.kind.as_str(), "Deployment" | "ReplicaSet") && replicas.is_some_and(|n| n > 1)
}
