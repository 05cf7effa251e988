//! Which kinds live in a namespace: a manifest may leave it out, and then means `default`.

use std::collections::HashSet;

use serde_json::Value;

/// Kubernetes' own kinds that live outside of namespaces, by group (Kubernetes 1.36, `kubectl api-resources
/// --namespaced=false`).
const CLUSTER_SCOPED: [(&str, &[&str]); 14] = [
    ("", &["ComponentStatus", "Namespace", "Node", "PersistentVolume"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("authentication.k8s.io", &["SelfSubjectReview", "TokenReview"]),
    ("authorization.k8s.io", &["SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"]),
    ("certificates.k8s.io", &["CertificateSigningRequest", "ClusterTrustBundle"]),
    ("flowcontrol.apiserver.k8s.io", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("networking.k8s.io", &["IPAddress", "IngressClass", "ServiceCIDR"]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("resource.k8s.io", &["DeviceClass", "DeviceTaintRule", "ResourceSlice"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("storage.k8s.io", &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"]),
];

/// The cluster-scoped kinds that the manifests themselves define, as (group, kind).
pub(super) struct Scopes {
    defined: HashSet<(String, String)>,
}

impl Scopes {
    /// Looks for CustomResourceDefinitions.
    pub(super) fn of<'a>(objects: impl Iterator<Item = &'a Value>) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let defined = objects
            .filter(|object| object["kind"] == "CustomResourceDefinition" && object["spec"]["scope"] == "Cluster")
            .map(|object| (text(&object["spec"]["group"]), text(&object["spec"]["names"]["kind"])))
            .collect();
        Self { defined }
    }

    /// Adds the namespace `default` to an object that has none and needs one.
    pub(super) fn give_namespace(&self, object: &mut Value) {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if self.is_cluster_scoped(group, &kind) {
            return;
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
            && metadata.get("namespace").is_none_or(|namespace| namespace.is_null() || namespace == "")
        {
            metadata.insert("namespace".into(), "default".into());
        }
    }

    fn is_cluster_scoped(&self, group: &str, kind: &str) -> bool {
        CLUSTER_SCOPED.iter().any(|(known, kinds)| *known == group && kinds.contains(&kind))
            || self.defined.contains(&(group.to_owned(), kind.to_owned()))
    }
}
