//! The kinds whose insides the engine understands, and what every kind is called in a URL.
//!
//! A typed body holds the fields the engine reads and, beside them, all the others as they came (`rest`), so nothing a
//! trace holds is lost. Kinds not listed here are kept whole as [`Other`].

mod namespace;
mod node;
mod other;
mod pod;
mod requests;
mod workload;

use std::fmt;

use sk_core::Gvk;

pub(crate) use namespace::KUBERNETES_FINALIZER;
pub use namespace::{Namespace, NamespacePhase};
pub use node::{Node, NodeSpec, NodeStatus};
pub use other::Other;
pub use pod::{Condition, ConditionStatus, Container, Pod, PodPhase, PodSpec, PodStatus, ResourceRequirements};
pub use workload::{
    Deployment, DeploymentSpec, DeploymentStatus, IntOrPercent, PodTemplate, ReplicaSet, ReplicaSetSpec,
    ReplicaSetStatus, RollingUpdate, Strategy, StrategyType, TemplateMeta,
};

/// `v1.Pod`
pub const POD: Gvk = Gvk::new_static("", "v1", "Pod");
/// `v1.Node`
pub const NODE: Gvk = Gvk::new_static("", "v1", "Node");
/// `v1.Namespace`
pub const NAMESPACE: Gvk = Gvk::new_static("", "v1", "Namespace");
/// `apps/v1.Deployment`
pub const DEPLOYMENT: Gvk = Gvk::new_static("apps", "v1", "Deployment");
/// `apps/v1.ReplicaSet`
pub const REPLICA_SET: Gvk = Gvk::new_static("apps", "v1", "ReplicaSet");
/// `scheduling.k8s.io/v1.PriorityClass`
pub const PRIORITY_CLASS: Gvk = Gvk::new_static("scheduling.k8s.io", "v1", "PriorityClass");

/// Built-in kinds that live outside namespaces. A kind we do not know is taken for what its first object looks like.
const CLUSTER_SCOPED: &[(&str, &str)] = &[
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("networking.k8s.io", "IngressClass"),
    ("node.k8s.io", "RuntimeClass"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "ResourceSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
];

/// Built-in groups, whose kinds not listed above all live in namespaces.
const BUILT_IN_GROUPS: &[&str] = &[
    "",
    "apps",
    "autoscaling",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// A kind as the API serves it.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Its kind.
    pub gvk: Gvk,
}

impl Resource {
    /// The resource that serves `gvk`.
    pub fn of(gvk: &Gvk) -> Self {
        Self { gvk: gvk.clone() }
    }

    /// Does it live in namespaces? `None`: a custom kind, ask the object.
    pub fn namespaced(&self) -> Option<bool> {
        let (group, kind) = (self.gvk.group.as_str(), self.gvk.kind.as_str());
        if CLUSTER_SCOPED.contains(&(group, kind)) {
            return Some(false);
        }
        BUILT_IN_GROUPS.contains(&group).then_some(true)
    }

    /// The plural in URLs and messages. Custom kinds without a definition get the regular English plural.
    pub fn plural(&self) -> String {
        let lower = self.gvk.kind.to_lowercase();
        match lower.as_str() {
            "endpoints" => lower,
            _ if lower.ends_with('s') || lower.ends_with('x') || lower.ends_with("ch") => format!("{lower}es"),
            _ if lower.ends_with('y') && !lower.ends_with("ey") && !lower.ends_with("ay") => {
                format!("{}ies", &lower[..lower.len() - 1])
            }
            _ => format!("{lower}s"),
        }
    }
}

impl fmt::Display for Resource {
    /// `pods`, `deployments.apps`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural())?;
        if !self.gvk.group.is_empty() {
            write!(f, ".{}", self.gvk.group)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_called_as_kubernetes_calls_them() {
        let cases = [
            ("v1.Pod", "pods", Some(true)),
            ("apps/v1.Deployment", "deployments.apps", Some(true)),
            ("networking.k8s.io/v1.NetworkPolicy", "networkpolicies.networking.k8s.io", Some(true)),
            ("networking.k8s.io/v1.Ingress", "ingresses.networking.k8s.io", Some(true)),
            ("v1.Endpoints", "endpoints", Some(true)),
            ("v1.Node", "nodes", Some(false)),
            ("example.com/v1.Gateway", "gateways.example.com", None),
        ];
        for (gvk, name, namespaced) in cases {
            let resource = Resource::of(&gvk.parse().unwrap());
            assert_eq!((resource.to_string().as_str(), resource.namespaced()), (name, namespaced), "{gvk}");
        }
    }
}
