//! The registry of kinds: one table of the built-in kinds of Kubernetes.
//!
//! Scope, plural, short names, where pod templates are, which subresources exist, and whether the embedded engine acts
//! on the kind. A kind that is not in the table is custom; nothing is assumed about it beyond its definition or its
//! objects. A test compares the table with the recorded discovery of a real API server 1.36.

use std::borrow::Cow;
use std::fmt;

use crate::{Gvk, PointerPattern};

/// What is known of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// API group, `""` for the core group.
    pub group: &'static str,
    /// The versions that API servers from 1.30 to 1.36 serve, preferred first.
    pub versions: &'static [&'static str],
    /// Kind in CamelCase.
    pub kind: &'static str,
    /// The plural in URLs and messages.
    pub plural: &'static str,
    /// What people type instead.
    pub short_names: &'static [&'static str],
    /// Whether its objects live in a namespace.
    pub scope: Scope,
    /// The JSON pointer of its pod template; `""` for a pod, which is its own.
    pub template_path: Option<&'static str>,
    /// What is served below an object: `status`, `scale` and the like.
    pub subresources: &'static [&'static str],
    /// What the embedded engine does with it.
    pub modelled: Modelled,
}

/// Whether objects of a kind live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They do not.
    Cluster,
}

/// What the embedded engine does with objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Modelled {
    /// It acts on them as Kubernetes does.
    Acted,
    /// On a real cluster a controller acts on them, and here none does.
    Missing,
    /// They are data: stored and served, and no controller acts on them.
    Stored,
}

/// A row of the table. Written as a function so that a row fits a line or two.
const fn row(
    (group, versions, kind): (&'static str, &'static [&'static str], &'static str),
    (plural, short_names): (&'static str, &'static [&'static str]),
    scope: Scope,
    subresources: &'static [&'static str],
    modelled: Modelled,
) -> KindInfo {
    KindInfo { group, versions, kind, plural, short_names, scope, template_path: None, subresources, modelled }
}

impl KindInfo {
    const fn template(mut self, path: &'static str) -> Self {
        self.template_path = Some(path);
        self
    }

    /// The kind in its preferred version.
    pub const fn gvk(&self) -> Gvk {
        Gvk::new_static(self.group, self.versions[0], self.kind)
    }

    /// Has it the subresource of this name?
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.contains(&name)
    }
}

use Modelled::{Acted, Missing, Stored};
use Scope::{Cluster, Namespaced};

const V1: &[&str] = &["v1"];
const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const RESOURCE: &str = "resource.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const STATUS: &[&str] = &["status"];
const SCALE: &[&str] = &["scale", "status"];

/// Every kind, by group and name.
#[rustfmt::skip]
pub static KINDS: &[KindInfo] = &[
    row(("", V1, "Binding"), ("bindings", &[]), Namespaced, &[], Stored),
    row(("", V1, "ComponentStatus"), ("componentstatuses", &["cs"]), Cluster, &[], Stored),
    row(("", V1, "ConfigMap"), ("configmaps", &["cm"]), Namespaced, &[], Stored),
    row(("", V1, "Endpoints"), ("endpoints", &["ep"]), Namespaced, &[], Stored),
    row(("", V1, "Event"), ("events", &["ev"]), Namespaced, &[], Stored),
    row(("", V1, "LimitRange"), ("limitranges", &["limits"]), Namespaced, &[], Acted),
    row(("", V1, "Namespace"), ("namespaces", &["ns"]), Cluster, &["finalize", "status"], Acted),
    row(("", V1, "Node"), ("nodes", &["no"]), Cluster, &["proxy", "status"], Acted),
    row(("", V1, "PersistentVolume"), ("persistentvolumes", &["pv"]), Cluster, STATUS, Stored),
    row(("", V1, "PersistentVolumeClaim"), ("persistentvolumeclaims", &["pvc"]), Namespaced, STATUS, Stored),
    row(("", V1, "Pod"), ("pods", &["po"]), Namespaced, &[
        "attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize", "status",
    ], Acted).template(""),
    row(("", V1, "PodTemplate"), ("podtemplates", &[]), Namespaced, &[], Stored),
    row(("", V1, "ReplicationController"), ("replicationcontrollers", &["rc"]), Namespaced, SCALE, Acted)
        .template("/spec/template"),
    row(("", V1, "ResourceQuota"), ("resourcequotas", &["quota"]), Namespaced, STATUS, Acted),
    row(("", V1, "Secret"), ("secrets", &[]), Namespaced, &[], Stored),
    row(("", V1, "Service"), ("services", &["svc"]), Namespaced, &["proxy", "status"], Stored),
    row(("", V1, "ServiceAccount"), ("serviceaccounts", &["sa"]), Namespaced, &["token"], Stored),

    row((ADMISSION, &["v1", "v1beta1", "v1alpha1"], "MutatingAdmissionPolicy"), ("mutatingadmissionpolicies", &[]), Cluster, &[], Missing),
    row((ADMISSION, &["v1", "v1beta1", "v1alpha1"], "MutatingAdmissionPolicyBinding"), ("mutatingadmissionpolicybindings", &[]), Cluster, &[], Missing),
    row((ADMISSION, V1, "MutatingWebhookConfiguration"), ("mutatingwebhookconfigurations", &[]), Cluster, &[], Missing),
    row((ADMISSION, &["v1", "v1beta1"], "ValidatingAdmissionPolicy"), ("validatingadmissionpolicies", &[]), Cluster, STATUS, Missing),
    row((ADMISSION, &["v1", "v1beta1"], "ValidatingAdmissionPolicyBinding"), ("validatingadmissionpolicybindings", &[]), Cluster, &[], Missing),
    row((ADMISSION, V1, "ValidatingWebhookConfiguration"), ("validatingwebhookconfigurations", &[]), Cluster, &[], Missing),

    row(("apiextensions.k8s.io", V1, "CustomResourceDefinition"), ("customresourcedefinitions", &["crd", "crds"]), Cluster, STATUS, Stored),
    row(("apiregistration.k8s.io", V1, "APIService"), ("apiservices", &[]), Cluster, STATUS, Stored),

    row(("apps", V1, "ControllerRevision"), ("controllerrevisions", &[]), Namespaced, &[], Stored),
    row(("apps", V1, "DaemonSet"), ("daemonsets", &["ds"]), Namespaced, STATUS, Acted).template("/spec/template"),
    row(("apps", V1, "Deployment"), ("deployments", &["deploy"]), Namespaced, SCALE, Acted).template("/spec/template"),
    row(("apps", V1, "ReplicaSet"), ("replicasets", &["rs"]), Namespaced, SCALE, Acted).template("/spec/template"),
    row(("apps", V1, "StatefulSet"), ("statefulsets", &["sts"]), Namespaced, SCALE, Acted).template("/spec/template"),

    row(("authentication.k8s.io", V1, "SelfSubjectReview"), ("selfsubjectreviews", &[]), Cluster, &[], Stored),
    row(("authentication.k8s.io", V1, "TokenReview"), ("tokenreviews", &[]), Cluster, &[], Stored),
    row(("authorization.k8s.io", V1, "LocalSubjectAccessReview"), ("localsubjectaccessreviews", &[]), Namespaced, &[], Stored),
    row(("authorization.k8s.io", V1, "SelfSubjectAccessReview"), ("selfsubjectaccessreviews", &[]), Cluster, &[], Stored),
    row(("authorization.k8s.io", V1, "SelfSubjectRulesReview"), ("selfsubjectrulesreviews", &[]), Cluster, &[], Stored),
    row(("authorization.k8s.io", V1, "SubjectAccessReview"), ("subjectaccessreviews", &[]), Cluster, &[], Stored),

    row(("autoscaling", &["v2", "v1"], "HorizontalPodAutoscaler"), ("horizontalpodautoscalers", &["hpa"]), Namespaced, STATUS, Missing),

    row(("batch", V1, "CronJob"), ("cronjobs", &["cj"]), Namespaced, STATUS, Acted).template("/spec/jobTemplate/spec/template"),
    row(("batch", V1, "Job"), ("jobs", &[]), Namespaced, STATUS, Acted).template("/spec/template"),

    row(("certificates.k8s.io", V1, "CertificateSigningRequest"), ("certificatesigningrequests", &["csr"]), Cluster, &["approval", "status"], Stored),
    row(("certificates.k8s.io", &["v1beta1", "v1alpha1"], "ClusterTrustBundle"), ("clustertrustbundles", &[]), Cluster, &[], Stored),

    row(("coordination.k8s.io", V1, "Lease"), ("leases", &[]), Namespaced, &[], Stored),
    row(("coordination.k8s.io", &["v1beta1", "v1alpha2"], "LeaseCandidate"), ("leasecandidates", &[]), Namespaced, &[], Stored),
    row(("discovery.k8s.io", V1, "EndpointSlice"), ("endpointslices", &[]), Namespaced, &[], Stored),
    row(("events.k8s.io", V1, "Event"), ("events", &["ev"]), Namespaced, &[], Stored),

    row(("flowcontrol.apiserver.k8s.io", &["v1", "v1beta3"], "FlowSchema"), ("flowschemas", &[]), Cluster, STATUS, Stored),
    row(("flowcontrol.apiserver.k8s.io", &["v1", "v1beta3"], "PriorityLevelConfiguration"), ("prioritylevelconfigurations", &[]), Cluster, STATUS, Stored),

    row(("networking.k8s.io", &["v1", "v1beta1"], "IPAddress"), ("ipaddresses", &["ip"]), Cluster, &[], Stored),
    row(("networking.k8s.io", V1, "Ingress"), ("ingresses", &["ing"]), Namespaced, STATUS, Stored),
    row(("networking.k8s.io", V1, "IngressClass"), ("ingressclasses", &[]), Cluster, &[], Stored),
    row(("networking.k8s.io", V1, "NetworkPolicy"), ("networkpolicies", &["netpol"]), Namespaced, &[], Stored),
    row(("networking.k8s.io", &["v1", "v1beta1"], "ServiceCIDR"), ("servicecidrs", &[]), Cluster, STATUS, Stored),
    row(("node.k8s.io", V1, "RuntimeClass"), ("runtimeclasses", &[]), Cluster, &[], Stored),
    row(("policy", V1, "PodDisruptionBudget"), ("poddisruptionbudgets", &["pdb"]), Namespaced, STATUS, Acted),

    row((RBAC, V1, "ClusterRole"), ("clusterroles", &[]), Cluster, &[], Stored),
    row((RBAC, V1, "ClusterRoleBinding"), ("clusterrolebindings", &[]), Cluster, &[], Stored),
    row((RBAC, V1, "Role"), ("roles", &[]), Namespaced, &[], Stored),
    row((RBAC, V1, "RoleBinding"), ("rolebindings", &[]), Namespaced, &[], Stored),

    row((RESOURCE, &["v1", "v1beta2", "v1beta1"], "DeviceClass"), ("deviceclasses", &[]), Cluster, &[], Stored),
    row((RESOURCE, &["v1beta2", "v1alpha3"], "DeviceTaintRule"), ("devicetaintrules", &[]), Cluster, &[], Stored),
    row((RESOURCE, &["v1", "v1beta2", "v1beta1"], "ResourceClaim"), ("resourceclaims", &[]), Namespaced, &["status"], Missing),
    row((RESOURCE, &["v1", "v1beta2", "v1beta1"], "ResourceClaimTemplate"), ("resourceclaimtemplates", &[]), Namespaced, &[], Missing),
    row((RESOURCE, &["v1", "v1beta2", "v1beta1"], "ResourceSlice"), ("resourceslices", &[]), Cluster, &[], Stored),

    row(("scheduling.k8s.io", V1, "PriorityClass"), ("priorityclasses", &["pc"]), Cluster, &[], Acted),

    row((STORAGE, V1, "CSIDriver"), ("csidrivers", &[]), Cluster, &[], Stored),
    row((STORAGE, V1, "CSINode"), ("csinodes", &[]), Cluster, &[], Stored),
    row((STORAGE, V1, "CSIStorageCapacity"), ("csistoragecapacities", &[]), Namespaced, &[], Stored),
    row((STORAGE, V1, "StorageClass"), ("storageclasses", &["sc"]), Cluster, &[], Stored),
    row((STORAGE, V1, "VolumeAttachment"), ("volumeattachments", &[]), Cluster, STATUS, Stored),
    row((STORAGE, &["v1", "v1beta1"], "VolumeAttributesClass"), ("volumeattributesclasses", &["vac"]), Cluster, &[], Stored),
];

/// Groups that Kubernetes had once and that no API server from 1.30 on serves.
const REMOVED_GROUPS: [&str; 1] = ["extensions"];

/// The entry of a kind in any version; `None` for a custom kind.
pub fn find(gvk: &Gvk) -> Option<&'static KindInfo> {
    let place = KINDS.binary_search_by(|info| (info.group, info.kind).cmp(&(gvk.group.as_str(), gvk.kind.as_str())));
    place.ok().map(|place| &KINDS[place])
}

/// Whether a kind lives in namespaces; `None` for a custom kind: ask its definition or its objects.
pub fn scope(gvk: &Gvk) -> Option<Scope> {
    find(gvk).map(|info| info.scope)
}

/// The JSON pointer of a kind's pod template, if it is a built-in workload kind.
pub fn template_path(gvk: &Gvk) -> Option<PointerPattern> {
    let path = find(gvk)?.template_path?;
    Some(path.parse().expect("the table holds pointers"))
}

/// Is this one of Kubernetes' own kinds in a version that is no longer served?
pub fn is_removed(gvk: &Gvk) -> bool {
    let unserved = |info: &KindInfo| !info.versions.contains(&gvk.version.as_str());
    REMOVED_GROUPS.contains(&gvk.group.as_str()) || find(gvk).is_some_and(unserved)
}

/// The plural of a kind in URLs and messages. Custom kinds without a definition get the regular English plural.
pub fn plural(gvk: &Gvk) -> Cow<'static, str> {
    if let Some(info) = find(gvk) {
        return Cow::Borrowed(info.plural);
    }
    let lower = gvk.kind.to_lowercase();
    let hisses = ["s", "x", "ch", "sh", "z"].iter().any(|ending| lower.ends_with(ending));
    match lower.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => Cow::Owned(format!("{stem}ies")),
        _ if hisses => Cow::Owned(format!("{lower}es")),
        _ => Cow::Owned(format!("{lower}s")),
    }
}

/// A kind as messages of the API server name it: `pods`, `deployments.apps`.
pub struct GroupResource<'a>(pub &'a Gvk);

impl fmt::Display for GroupResource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plural(self.0))?;
        if self.0.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.0.group) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_so_that_it_can_be_searched() {
        assert!(KINDS.is_sorted_by_key(|info| (info.group, info.kind)));
        assert!(KINDS.iter().all(|info| find(&info.gvk()) == Some(info)));
        assert!(KINDS.iter().filter_map(|info| info.template_path).all(|path| path.parse::<PointerPattern>().is_ok()));
    }

    #[test]
    fn resources_are_called_as_kubernetes_calls_them() {
        let cases = [
            ("v1.Pod", "pods", Some(Namespaced)),
            ("apps/v1.Deployment", "deployments.apps", Some(Namespaced)),
            ("networking.k8s.io/v1.NetworkPolicy", "networkpolicies.networking.k8s.io", Some(Namespaced)),
            ("v1.Endpoints", "endpoints", Some(Namespaced)),
            ("v1.Node", "nodes", Some(Cluster)),
            ("storage.k8s.io/v1.VolumeAttributesClass", "volumeattributesclasses.storage.k8s.io", Some(Cluster)),
            ("example.com/v1.Gateway", "gateways.example.com", None),
            ("example.com/v1.Policy", "policies.example.com", None),
        ];
        for (text, name, expected) in cases {
            let gvk = text.parse().unwrap();
            assert_eq!((GroupResource(&gvk).to_string().as_str(), scope(&gvk)), (name, expected), "{text}");
        }
    }

    #[test]
    fn versions_that_are_gone_are_known_and_custom_kinds_are_not_judged() {
        let removed = |text: &str| is_removed(&text.parse().unwrap());
        for gone in ["extensions/v1beta1.Deployment", "apps/v1beta2.Deployment", "batch/v1beta1.CronJob"] {
            assert!(removed(gone), "{gone}");
        }
        for served in ["apps/v1.Deployment", "autoscaling/v2.HorizontalPodAutoscaler", "argoproj.io/v1.Rollout"] {
            assert!(!removed(served), "{served}");
        }
    }
}
