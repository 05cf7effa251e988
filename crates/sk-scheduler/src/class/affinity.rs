//! Terms of node affinity and pod affinity, and what they match.

use std::collections::BTreeMap;

use serde_json::Value;
use sk_core::label::Labels;
use sk_core::selector::Requirement;
use sk_core::{LabelSelector, SmolStr};

/// One term of node affinity: all its requirements must hold (component-helpers, `nodeaffinity.go`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSelectorTerm {
    /// On the node's labels.
    pub labels: Vec<Requirement>,
    /// On the node's name: it must be this (`true`) or must not be (`false`).
    pub names: Vec<(bool, SmolStr)>,
    /// The term is empty, or Kubernetes cannot parse it; then it matches no node.
    pub matches_nothing: bool,
}

impl NodeSelectorTerm {
    /// A `nodeSelectorTerm` as a pod or a PersistentVolume has it.
    pub fn from_json(term: &Value) -> Self {
        super::json::node_selector_term(term)
    }

    /// Does a node of this name and these labels match?
    pub fn matches(&self, name: &str, labels: &BTreeMap<SmolStr, SmolStr>) -> bool {
        !self.matches_nothing
            && self.labels.iter().all(|requirement| requirement.matches(labels))
            && self.names.iter().all(|(equal, wanted)| (wanted == name) == *equal)
    }
}

/// One term of pod affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodAffinityTerm {
    /// Namespaces by name, sorted; the pod's own when the term names none and has no selector.
    pub namespaces: Vec<SmolStr>,
    /// Namespaces by label; nothing when the term has no `namespaceSelector`.
    pub namespace_selector: LabelSelector,
    /// Which pods, `matchLabelKeys` and `mismatchLabelKeys` merged in.
    pub selector: LabelSelector,
    /// The label that says how near is near.
    pub key: SmolStr,
}

impl PodAffinityTerm {
    /// `AffinityTerm.Matches` (kube-scheduler/framework/types.go) with the labels of the other pod's namespace.
    pub fn matches(&self, namespace: &str, namespace_labels: &(impl Labels + ?Sized), labels: &impl Labels) -> bool {
        (self.names(namespace) || self.namespace_selector.matches(namespace_labels)) && self.selector.matches(labels)
    }

    /// Is the namespace among those listed by name?
    pub fn names(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|listed| listed == namespace)
    }
}
