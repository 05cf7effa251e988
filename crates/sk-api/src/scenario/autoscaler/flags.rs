//! The names of cluster-autoscaler's flags that are not fields: its own as of 2026, those for logging and leader election that
//! it shares with others, and a few that older Helm values still carry.

/// Flags that are not modelled for one reason.
pub(super) struct Family {
    /// Each with its default, as cluster-autoscaler 1.36.1 prints it or its `config/flags/flags.go` has it, where that is
    /// known: a flag that says what is so anyway changes nothing, and is ignored.
    flags: &'static [(&'static str, Option<&'static str>)],
    /// What is so instead, and what to do.
    pub(super) words: &'static str,
}

/// What a switch that is off by default is written with.
const OFF: Option<&str> = Some("false");
/// The same of a list that is empty by default.
const NONE: Option<&str> = Some("[]");

/// Not modelled.
const FAMILIES: [Family; 27] = [
    Family {
        flags: &[("nodes", NONE), ("node-group-auto-discovery", NONE)],
        words: "groups and their sizes stand under `cluster.groups`: write them there, and remove it",
    },
    Family {
        flags: &[
            ("async-node-groups", OFF),
            ("node-autoprovisioning-enabled", OFF),
            ("max-autoprovisioned-node-group-count", None),
        ],
        words: "no groups are made during a run: write those that there can be under `cluster.groups`, and remove it",
    },
    Family {
        flags: &[("max-empty-bulk-delete", None)],
        words: "1.36 does not have it any more either: write `max-scale-down-parallelism` instead",
    },
    Family {
        flags: &[("estimator", Some("binpacking"))],
        words: "new nodes are counted by bin packing: remove it, or write `binpacking`",
    },
    Family {
        flags: &[("fastpath-binpacking-enabled", OFF)],
        words: "pods are packed one by one, without a shortcut: remove it",
    },
    Family {
        flags: &[("scale-up-from-zero", Some("true"))],
        words: "groups without nodes grow like others: remove it, and leave out a group that must not grow",
    },
    Family {
        flags: &[("scale-from-unschedulable", OFF)],
        words: "a cordoned node is no template of its group's next one, which is then as the group describes it: remove it",
    },
    Family {
        flags: &[("parallel-scale-up", OFF)],
        words: "one loop enlarges one group, or several that are similar: remove it, or use `salvo-scale-up`",
    },
    Family {
        flags: &[("scaleup-simulation-for-skipped-node-groups-enabled", OFF)],
        words: "a group that may not grow is not tried, and says only why it may not: remove it",
    },
    Family {
        flags: &[("grpc-expander-cert", None), ("grpc-expander-url", None)],
        words: "a program outside cannot be asked which group grows: remove it, and choose another `expander`",
    },
    Family {
        flags: &[
            ("memory-difference-ratio", Some("0.015")),
            ("max-free-difference-ratio", Some("0.05")),
            ("max-allocatable-difference-ratio", Some("0.05")),
            ("balancing-label", NONE),
        ],
        words: "groups are similar by cluster-autoscaler's own measure, sizes and labels: remove it, or use \
                `balancing-ignore-label`",
    },
    Family {
        flags: &[
            ("ignore-taint", NONE),
            ("startup-taint", NONE),
            ("startup-taint-prefix", NONE),
            ("status-taint", NONE),
        ],
        words: "nodes have the taints of their group, and no others while they start: remove it",
    },
    Family {
        flags: &[
            ("check-capacity-batch-processing", OFF),
            ("check-capacity-processor-instance", None),
            ("check-capacity-provisioning-request-batch-timebox", Some("10s")),
            ("check-capacity-provisioning-request-max-batch-size", Some("10")),
            ("enable-provisioning-requests", OFF),
            ("provisioning-request-initial-backoff-time", Some("1m0s")),
            ("provisioning-request-max-backoff-cache-size", Some("1000")),
            ("provisioning-request-max-backoff-time", Some("10m0s")),
        ],
        words: "ProvisioningRequests call for no nodes, only pods do: remove it",
    },
    Family {
        flags: &[
            ("capacity-buffer-controller-enabled", OFF),
            ("capacity-buffer-pod-dry-run-enabled", Some("true")),
            ("capacity-buffer-pod-injection-enabled", OFF),
            ("capacity-buffer-ready-replicas-enabled", None),
            ("enable-proactive-scaleup", OFF),
            ("pod-injection-limit", Some("5000")),
        ],
        words: "no nodes are asked for ahead of pods: remove it, or keep room by a Deployment of low priority",
    },
    Family {
        flags: &[("capacity-quotas-enabled", OFF), ("gpu-total", NONE)],
        words: "the cluster is limited by `cores-total`, `memory-total` and `max-nodes-total`: remove it, and use these",
    },
    Family {
        flags: &[("allowed-scheduler-names", NONE), ("bypassed-scheduler-names", NONE)],
        words: "pods of every scheduler call for nodes, when it has found none for them and not before: remove it",
    },
    Family {
        flags: &[("scheduler-config-file", None)],
        words: "what would fit is asked with the scheduler's default profile: remove it",
    },
    Family {
        flags: &[("enable-csi-node-aware-scheduling", OFF), ("enable-dynamic-resource-allocation", Some("true"))],
        words: "volumes and devices are not looked at when nodes are counted: remove it",
    },
    Family {
        flags: &[
            ("scale-down-candidates-pool-min-count", Some("50")),
            ("scale-down-candidates-pool-ratio", Some("0.1")),
            ("scale-down-non-empty-candidates-count", Some("30")),
        ],
        words: "every node that is little used is a candidate: remove it",
    },
    Family {
        flags: &[("drain-priority-config", None), ("max-pod-eviction-time", Some("2m0s"))],
        words: "all pods of a node are evicted at once, and a refused eviction is tried again for two minutes: remove it, or \
                use `max-graceful-termination-sec`",
    },
    Family {
        flags: &[
            ("dynamic-node-delete-delay-after-taint-enabled", OFF),
            ("node-deletion-batcher-interval", Some("0s")),
        ],
        words: "a node is emptied or deleted by itself, a fixed time after it was marked: remove it, or use \
                `node-delete-delay-after-taint`",
    },
    Family {
        flags: &[("force-delete-failed-nodes", OFF), ("force-delete-unregistered-nodes", OFF)],
        words: "nodes that do not become ready go like others, and no group falls below its minimum: remove it",
    },
    Family {
        flags: &[("node-deletion-delay-timeout", Some("2m0s"))],
        words: "annotations that delay the deletion of a node are not looked at: remove it",
    },
    Family {
        flags: &[("node-deletion-candidate-ttl", Some("0s"))],
        words: "the autoscaler never stops, so its marks on nodes do not become stale: remove it",
    },
    Family {
        flags: &[("record-duplicated-events", OFF)],
        words: "a pod is told once that a group grows for it, and once that none does: remove it",
    },
    Family {
        flags: &[("force-ds", OFF)],
        words: "a group grows even if its nodes are too small for all of its DaemonSets' pods: remove it",
    },
    Family {
        flags: &[("feature-gates", None)],
        words: "the scheduler that is asked has the gates of Kubernetes 1.36 at their defaults: remove it",
    },
];

/// The family of a flag that is not modelled, and the flag's default if that is known.
pub(super) fn unmodelled(flag: &str) -> Option<(&'static Family, Option<&'static str>)> {
    FAMILIES.iter().find_map(|family| {
        let (_, default) = family.flags.iter().find(|(known, _)| *known == flag)?;
        Some((family, *default))
    })
}

/// Taken and ignored, sorted by name: they are about logging, leader election, credentials and the autoscaler's own speed.
/// `scale-down-delay-after-failure` was seen to have no effect on failed drains, and no other removal of a node fails here.
pub(super) const IGNORED_FLAGS: [&str; 66] = [
    "add-dir-header",
    "address",
    "alsologtostderr",
    "aws-use-static-instance-list",
    "bulk-mig-instances-listing-enabled",
    "cloud-config",
    "cloud-provider",
    "cluster-name",
    "cluster-snapshot-parallelism",
    "clusterapi-cloud-config-authoritative",
    "debugging-snapshot-enabled",
    "emit-per-nodegroup-metrics",
    "enable-graceful-degradation",
    "enable-inter-pod-affinity-hostname-fast-path",
    "gce-concurrent-refreshes",
    "gce-mig-instances-min-refresh-wait-time",
    "kube-api-content-type",
    "kube-client-burst",
    "kube-client-qps",
    "kubeconfig",
    "kubernetes",
    "leader-elect",
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-resource-lock",
    "leader-elect-resource-name",
    "leader-elect-resource-namespace",
    "leader-elect-retry-period",
    "log-backtrace-at",
    "log-dir",
    "log-file",
    "log-file-max-size",
    "log-flush-frequency",
    "log-json-info-buffer-size",
    "log-json-split-stream",
    "log-text-info-buffer-size",
    "log-text-split-stream",
    "logging-format",
    "logtostderr",
    "max-binpacking-time",
    "max-bulk-soft-taint-time",
    "max-failing-time",
    "max-inactivity",
    "max-node-skip-eval-time-tracker-enabled",
    "max-nodegroup-binpacking-duration",
    "max-startup-time",
    "namespace",
    "node-info-cache-expire-time",
    "node-removal-latency-tracking-enabled",
    "one-output",
    "pending-pods-batching-timeout",
    "predicate-parallelism",
    "profiling",
    "regional",
    "salvo-scale-up-budget",
    "scale-down-delay-after-failure",
    "scale-down-simulation-timeout",
    "scheduler-verbosity",
    "skip-headers",
    "skip-log-headers",
    "status-config-map-name",
    "stderrthreshold",
    "user-agent",
    "v",
    "vmodule",
    "write-status-configmap",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_flag_stands_here_once_and_each_family_has_its_own_words() {
        assert!(IGNORED_FLAGS.is_sorted_by(|one, next| one < next));
        let mut known: BTreeSet<&str> = IGNORED_FLAGS.into();
        for (flag, _) in FAMILIES.iter().flat_map(|family| family.flags) {
            assert!(known.insert(flag), "{flag} stands here twice");
        }
        assert_eq!(FAMILIES.iter().map(|family| family.words).collect::<BTreeSet<_>>().len(), FAMILIES.len());
    }
}
