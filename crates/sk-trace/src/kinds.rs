//! What is known of Kubernetes' own kinds: which versions an API server of today serves, and whether they have a
//! namespace. Kinds that are not here are custom resources, of which nothing is assumed.

use sk_core::{Gvk, PointerPattern, template};
use sk_store::trace::TracerConfig;

/// Whether objects of a kind live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespaced,
    Cluster,
}

/// Kinds of one group: the versions that Kubernetes 1.30 to 1.36 serve, the kinds with a namespace, the kinds without.
type Group = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

const GROUPS: [Group; 16] = [
    (
        "",
        &["v1"],
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
        &["Namespace", "Node", "PersistentVolume"],
    ),
    (
        "admissionregistration.k8s.io",
        &["v1", "v1beta1", "v1alpha1"],
        &[],
        &[
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        ],
    ),
    ("apiextensions.k8s.io", &["v1"], &[], &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["v1"], &[], &["APIService"]),
    ("apps", &["v1"], &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"], &[]),
    ("autoscaling", &["v1", "v2"], &["HorizontalPodAutoscaler"], &[]),
    ("batch", &["v1"], &["CronJob", "Job"], &[]),
    ("coordination.k8s.io", &["v1"], &["Lease"], &[]),
    ("discovery.k8s.io", &["v1"], &["EndpointSlice"], &[]),
    ("events.k8s.io", &["v1"], &["Event"], &[]),
    ("networking.k8s.io", &["v1", "v1beta1"], &["Ingress", "NetworkPolicy"], &["IngressClass"]),
    ("node.k8s.io", &["v1"], &[], &["RuntimeClass"]),
    ("policy", &["v1"], &["PodDisruptionBudget"], &[]),
    ("rbac.authorization.k8s.io", &["v1"], &["Role", "RoleBinding"], &["ClusterRole", "ClusterRoleBinding"]),
    ("scheduling.k8s.io", &["v1"], &[], &["PriorityClass"]),
    (
        "storage.k8s.io",
        &["v1", "v1beta1"],
        &["CSIStorageCapacity"],
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"],
    ),
];

/// Groups that Kubernetes had once and that no API server serves any more.
const REMOVED_GROUPS: [&str; 1] = ["extensions"];

/// Whether the kind has a namespace; `None` if it is no kind of Kubernetes' own.
pub(crate) fn scope(gvk: &Gvk) -> Option<Scope> {
    GROUPS.iter().filter(|(group, ..)| gvk.group == *group).find_map(|(_, _, namespaced, cluster)| {
        let has = |kinds: &[&str]| kinds.contains(&gvk.kind.as_str());
        match (has(namespaced), has(cluster)) {
            (true, _) => Some(Scope::Namespaced),
            (_, true) => Some(Scope::Cluster),
            _ => None,
        }
    })
}

/// Is this one of Kubernetes' own kinds in a version that is no longer served?
pub(crate) fn is_removed(gvk: &Gvk) -> bool {
    let served = |(group, versions, ..): &Group| gvk.group == *group && versions.contains(&gvk.version.as_str());
    REMOVED_GROUPS.contains(&gvk.group.as_str()) || (scope(gvk).is_some() && !GROUPS.iter().any(served))
}

/// Where objects of a kind keep their pod templates: as the tracer was told, else as Kubernetes' own kinds do.
pub(crate) fn template_paths(config: &TracerConfig, gvk: &Gvk) -> Vec<PointerPattern> {
    match config.tracked().get(gvk).and_then(|tracked| tracked.pod_spec_template_paths.as_ref()) {
        Some(paths) => paths.iter().filter_map(|path| path.parse().ok()).collect(),
        None => template::built_in_path(gvk).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_are_gone_are_known_and_custom_kinds_are_not_judged() {
        let removed = |text: &str| is_removed(&text.parse().unwrap());
        for gone in ["extensions/v1beta1.Deployment", "apps/v1beta2.Deployment", "batch/v1beta1.CronJob"] {
            assert!(removed(gone), "{gone}");
        }
        for served in
            ["apps/v1.Deployment", "v1.Pod", "autoscaling/v2.HorizontalPodAutoscaler", "argoproj.io/v1.Rollout"]
        {
            assert!(!removed(served), "{served}");
        }
    }

    #[test]
    fn the_scope_of_kubernetes_own_kinds_is_known() {
        let of = |text: &str| scope(&text.parse().unwrap());
        assert_eq!(of("v1.Pod"), Some(Scope::Namespaced));
        assert_eq!(of("v1.Node"), Some(Scope::Cluster));
        assert_eq!(of("argoproj.io/v1.Rollout"), None);
    }
}
