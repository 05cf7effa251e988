//! Annotations that schedulers, autoscalers, controllers or SimKube read: their values are kept. Annotations about how
//! an object was created are dropped. The values of all others are hashed.

use super::{HIDE, Rule};

/// Bookkeeping of kubectl and of the Deployment controller, which differs though nothing has changed.
const DROPPED: [&str; 2] = ["deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration"];

/// Kept by their whole name.
const KEPT: [&str; 16] = [
    "batch.kubernetes.io/cronjob-scheduled-timestamp",
    "batch.kubernetes.io/job-completion-index",
    "batch.kubernetes.io/job-index-failure-count",
    "controller.kubernetes.io/pod-deletion-cost",
    // A number: the API server refuses a DaemonSet whose is none.
    "deprecated.daemonset.template.generation",
    "descheduler.alpha.kubernetes.io/evict",
    "kubernetes.io/config.mirror",
    "kubernetes.io/config.source",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "scheduling.k8s.io/group-name",
    "storageclass.kubernetes.io/is-default-class",
    "volume.beta.kubernetes.io/storage-class",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
];

/// Kept by what they begin with.
const KEPT_PREFIXES: [&str; 9] = [
    "cluster-autoscaler.kubernetes.io/",
    "karpenter.sh/",
    "kueue.x-k8s.io/",
    "kwok.x-k8s.io/",
    // Tolerations, affinity and node selectors as they were before they had fields.
    "scheduler.alpha.kubernetes.io/",
    "scheduling.volcano.sh/",
    "scheduling.x-k8s.io/",
    "simkube.io/",
    "static.simkube.io/",
];

/// The treatment of an annotation's value.
pub(super) fn rule(key: &str) -> Rule {
    if DROPPED.contains(&key) {
        Rule::Drop
    } else if KEPT.contains(&key) || KEPT_PREFIXES.iter().any(|prefix| key.starts_with(prefix)) {
        Rule::Keep
    } else {
        HIDE
    }
}
