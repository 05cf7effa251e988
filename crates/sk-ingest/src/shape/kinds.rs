//! The kinds that have a shape, and the fields of a node that are kept.
//!
//! Sanitising is part of the shapes: metadata that a server assigns is dropped, and so is the status.

use sk_core::Gvk;

use super::pods::{BARE_POD_SPEC, CLAIM, CLAIM_SPEC, CSI, POD_TEMPLATE, TEMPLATE_META};
use super::{HIDE, Rule, Shape};
use crate::privacy::Spelling;

/// By group and kind; all versions of a kind are alike.
static KINDS: [(&str, &str, &Shape); 27] = [
    ("", "ConfigMap", &CONFIG_MAP),
    ("", "LimitRange", &KEPT_SPEC),
    ("", "Namespace", &KEPT_SPEC),
    ("", "Node", &NODE),
    ("", "PersistentVolume", &PERSISTENT_VOLUME),
    ("", "PersistentVolumeClaim", &PERSISTENT_VOLUME_CLAIM),
    ("", "Pod", &POD),
    ("", "PodTemplate", &POD_TEMPLATE_OBJECT),
    ("", "ReplicationController", &WORKLOAD),
    ("", "ResourceQuota", &KEPT_SPEC),
    ("", "Secret", &SECRET),
    ("", "Service", &SERVICE),
    ("", "ServiceAccount", &SERVICE_ACCOUNT),
    ("apps", "DaemonSet", &WORKLOAD),
    ("apps", "Deployment", &WORKLOAD),
    ("apps", "ReplicaSet", &WORKLOAD),
    ("apps", "StatefulSet", &WORKLOAD),
    ("autoscaling", "HorizontalPodAutoscaler", &KEPT_SPEC),
    ("batch", "CronJob", &CRON_JOB),
    ("batch", "Job", &WORKLOAD),
    ("networking.k8s.io", "Ingress", &INGRESS),
    ("networking.k8s.io", "IngressClass", &KEPT_SPEC),
    ("networking.k8s.io", "NetworkPolicy", &NETWORK_POLICY),
    ("node.k8s.io", "RuntimeClass", &RUNTIME_CLASS),
    ("policy", "PodDisruptionBudget", &KEPT_SPEC),
    ("scheduling.k8s.io", "PriorityClass", &PRIORITY_CLASS),
    ("storage.k8s.io", "StorageClass", &STORAGE_CLASS),
];

/// The shape of a kind; one that is not known keeps its metadata alone.
pub(crate) fn of(kind: &Gvk) -> &'static Shape {
    let known = KINDS.iter().find(|(group, name, _)| kind.group == *group && kind.kind == *name);
    known.map_or(&UNKNOWN, |(_, _, shape)| shape)
}

static META: Shape = Shape {
    keep: &["finalizers", "generateName", "labels", "name", "namespace", "ownerReferences"],
    inside: &[
        ("annotations", Rule::Annotations),
        ("creationTimestamp", Rule::Drop),
        ("deletionGracePeriodSeconds", Rule::Drop),
        ("deletionTimestamp", Rule::Drop),
        ("generation", Rule::Drop),
        ("managedFields", Rule::Drop),
        ("resourceVersion", Rule::Drop),
        ("selfLink", Rule::Drop),
        ("uid", Rule::Drop),
    ],
    rest: HIDE,
};

/// A whole object: its kind is written by whoever walks it, because items of a list do not say theirs.
macro_rules! object {
    ($name:ident, keep: $keep:expr, $($field:literal: $rule:expr),* $(,)?) => {
        static $name: Shape = Shape {
            keep: &$keep,
            inside: &[
                ("apiVersion", Rule::Drop),
                ("kind", Rule::Drop),
                ("metadata", Rule::Of(&META)),
                ("status", Rule::Drop),
                $(($field, $rule)),*
            ],
            rest: HIDE,
        };
    };
}

object!(UNKNOWN, keep: [],);
object!(KEPT_SPEC, keep: ["spec"],);
object!(POD, keep: [], "spec": Rule::Of(&BARE_POD_SPEC));
object!(WORKLOAD, keep: [], "spec": Rule::Of(&WORKLOAD_SPEC));
object!(CRON_JOB, keep: [], "spec": Rule::Of(&CRON_JOB_SPEC));
object!(POD_TEMPLATE_OBJECT, keep: [], "template": Rule::Of(&POD_TEMPLATE));
object!(NODE, keep: [], "spec": Rule::Of(&NODE_SPEC));
object!(SERVICE, keep: [], "spec": Rule::Of(&SERVICE_SPEC));
object!(SERVICE_ACCOUNT, keep: ["imagePullSecrets", "secrets"],);
object!(CONFIG_MAP, keep: [], "binaryData": Rule::Hide(Spelling::Base64));
object!(SECRET, keep: ["type"], "data": Rule::Seal(Spelling::Base64), "stringData": Rule::Seal(Spelling::Text));
object!(PERSISTENT_VOLUME, keep: [], "spec": Rule::Of(&PERSISTENT_VOLUME_SPEC));
object!(PERSISTENT_VOLUME_CLAIM, keep: [], "spec": Rule::Of(&CLAIM_SPEC));
object!(PRIORITY_CLASS, keep: ["preemptionPolicy"],);
object!(INGRESS, keep: [], "spec": Rule::Of(&INGRESS_SPEC));
object!(NETWORK_POLICY, keep: [], "spec": Rule::Of(&NETWORK_POLICY_SPEC));
object!(RUNTIME_CLASS, keep: ["handler", "overhead", "scheduling"],);
object!(
    STORAGE_CLASS,
    keep: ["allowedTopologies", "provisioner", "reclaimPolicy", "volumeBindingMode"],
);

const fn spec(keep: &'static [&'static str], inside: &'static [(&'static str, Rule)]) -> Shape {
    Shape { keep, inside, rest: HIDE }
}

/// Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs: their fields do not contradict one another.
static WORKLOAD_SPEC: Shape = spec(
    &[
        "completionMode",
        "managedBy",
        "persistentVolumeClaimRetentionPolicy",
        "podFailurePolicy",
        "podManagementPolicy",
        "podReplacementPolicy",
        "selector",
        "serviceName",
        "strategy",
        "successPolicy",
        "updateStrategy",
    ],
    &[("template", Rule::Of(&POD_TEMPLATE)), ("volumeClaimTemplates", Rule::Of(&CLAIM))],
);
static CRON_JOB_SPEC: Shape =
    spec(&["concurrencyPolicy", "schedule", "timeZone"], &[("jobTemplate", Rule::Of(&JOB_TEMPLATE))]);
static JOB_TEMPLATE: Shape = spec(&[], &[("metadata", Rule::Of(&TEMPLATE_META)), ("spec", Rule::Of(&WORKLOAD_SPEC))]);
static INGRESS_SPEC: Shape = spec(
    &["defaultBackend", "ingressClassName"],
    &[("rules", Rule::Of(&INGRESS_RULE)), ("tls", Rule::Of(&INGRESS_TLS))],
);
static INGRESS_RULE: Shape = spec(&[], &[("host", Rule::Hide(Spelling::Name)), ("http", Rule::Of(&INGRESS_PATHS))]);
static INGRESS_PATHS: Shape = spec(&[], &[("paths", Rule::Of(&INGRESS_PATH))]);
static INGRESS_PATH: Shape = spec(&["backend", "pathType"], &[("path", Rule::Hide(Spelling::Path))]);
static INGRESS_TLS: Shape = spec(&["secretName"], &[("hosts", Rule::Hide(Spelling::Name))]);
static NETWORK_POLICY_SPEC: Shape = spec(
    &["podSelector", "policyTypes"],
    &[("egress", Rule::Of(&NETWORK_POLICY_RULE)), ("ingress", Rule::Of(&NETWORK_POLICY_RULE))],
);
static NETWORK_POLICY_RULE: Shape =
    spec(&["ports"], &[("from", Rule::Of(&NETWORK_POLICY_PEER)), ("to", Rule::Of(&NETWORK_POLICY_PEER))]);
static NETWORK_POLICY_PEER: Shape =
    spec(&["namespaceSelector", "podSelector"], &[("ipBlock", Rule::Hide(Spelling::Range))]);
static NODE_SPEC: Shape = spec(&["taints"], &[]);
static SERVICE_SPEC: Shape = spec(
    &[
        "clusterIP",
        "clusterIPs",
        "externalTrafficPolicy",
        "internalTrafficPolicy",
        "ipFamilies",
        "ipFamilyPolicy",
        "loadBalancerClass",
        "ports",
        "selector",
        "sessionAffinity",
        "trafficDistribution",
        "type",
    ],
    &[
        ("externalIPs", Rule::Hide(Spelling::Address)),
        ("externalName", Rule::Hide(Spelling::Name)),
        ("loadBalancerIP", Rule::Hide(Spelling::Address)),
        ("loadBalancerSourceRanges", Rule::Hide(Spelling::Range)),
    ],
);
static PERSISTENT_VOLUME_SPEC: Shape = spec(
    &[
        "accessModes",
        "capacity",
        "claimRef",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ],
    &[("csi", Rule::Of(&CSI))],
);

/// A node as the record of nodes has it: what it offers, how it is doing, and when that changed; no heartbeats.
pub(crate) static NODE_RECORD: Shape = Shape {
    keep: &[],
    inside: &[
        ("apiVersion", Rule::Drop),
        ("kind", Rule::Drop),
        ("metadata", Rule::Of(&META)),
        ("spec", Rule::Of(&NODE_RECORD_SPEC)),
        ("status", Rule::Of(&NODE_STATUS)),
    ],
    rest: Rule::Drop,
};
static NODE_RECORD_SPEC: Shape = Shape { keep: &["taints", "unschedulable"], inside: &[], rest: Rule::Drop };
static NODE_STATUS: Shape = Shape {
    keep: &["allocatable", "capacity", "declaredFeatures"],
    inside: &[("conditions", Rule::Of(&NODE_CONDITION))],
    rest: Rule::Drop,
};
static NODE_CONDITION: Shape =
    Shape { keep: &["lastTransitionTime", "reason", "status", "type"], inside: &[], rest: Rule::Drop };
