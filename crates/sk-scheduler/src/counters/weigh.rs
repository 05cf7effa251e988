//! The weight of one pod in a counter.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use sk_core::lookup::hash_of;
use sk_core::selector::{Operator, Requirement};
use sk_core::{LabelSelector, SmolStr};

use crate::Cluster;
use crate::class::{PodAffinityTerm, PodClass};
use crate::ids::ClassId;

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    /// Pods of a namespace that a selector selects and that are not being deleted (`countPodsMatchSelector`,
    /// `podtopologyspread/common.go`).
    Selected(Arc<Selected>),
    /// Pods that match all required affinity terms of the class, once per term with the key.
    Affinity(ClassId),
    /// Required anti-affinity terms of the class that match, per key.
    AntiAffinity(ClassId),
    /// Required anti-affinity terms of the pods there that match the class, per key.
    ExistingAntiAffinity(ClassId),
    /// The preferences of the class, and those of the pods there towards it, per key.
    Preference { class: ClassId, hard_weight: i32 },
}

/// Which pods of a namespace. Asked for in every cycle of a pod that spreads, so its hash is worked out once.
#[derive(Clone, Debug)]
pub(crate) struct Selected {
    namespace: SmolStr,
    selector: LabelSelector,
    hash: u64,
}

impl PartialEq for Selected {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || (self.hash == other.hash && self.namespace == other.namespace && self.selector == other.selector)
    }
}

impl Eq for Selected {}

impl Hash for Selected {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl What {
    /// The pods of a namespace that a selector selects.
    pub(crate) fn selected(namespace: SmolStr, selector: LabelSelector) -> Self {
        let hash = hash_of(&(&namespace, &selector));
        Self::Selected(Arc::new(Selected { namespace, selector, hash }))
    }

    pub(super) fn counts_live_only(&self) -> bool {
        matches!(self, Self::Selected(_))
    }

    pub(super) fn looks_at_namespaces(&self) -> bool {
        !matches!(self, Self::Selected(_))
    }

    /// The class that it is about, if it is about one.
    pub(super) fn class(&self) -> Option<ClassId> {
        match self {
            Self::Selected(_) => None,
            Self::Affinity(class)
            | Self::AntiAffinity(class)
            | Self::ExistingAntiAffinity(class)
            | Self::Preference { class, .. } => Some(*class),
        }
    }

    /// Does it select by the value of a label? Then [`Self::labelled`] finds the classes that may count.
    pub(super) fn is_by_label(&self) -> bool {
        self.one_of().is_some()
    }

    /// The classes from the place `first` on that may count, in order; `None`: any class may.
    pub(super) fn labelled(&self, cluster: &Cluster, first: usize) -> Option<Vec<ClassId>> {
        let (namespace, wanted) = self.one_of()?;
        let of_value = |value: &SmolStr| cluster.classes.labelled(namespace, wanted.key(), value, first);
        let mut classes: Vec<ClassId> = wanted.values().iter().flat_map(of_value).copied().collect();
        // Two values have classes in common only where their hashes are the same.
        classes.sort_unstable_by_key(|class| cluster.classes.place(*class));
        classes.dedup();
        Some(classes)
    }

    /// The namespace and the first requirement by a label's value, where that alone rules out most classes.
    fn one_of(&self) -> Option<(&str, &Requirement)> {
        let Self::Selected(selected) = self else { return None };
        let Selected { namespace, selector, .. } = &**selected;
        let mut requirements = selector.requirements().iter();
        requirements.find(|one| one.operator() == Operator::In).map(|one| (namespace.as_str(), one))
    }
}

/// What a pod of class `other` is worth.
pub(crate) fn weigh(cluster: &Cluster, what: &What, key: Option<&str>, other: ClassId) -> i32 {
    let there = cluster.class(other);
    let has_key = |term: &&PodAffinityTerm| Some(term.key.as_str()) == key;
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    match what {
        What::Selected(selected) => {
            let Selected { namespace, selector, .. } = &**selected;
            // A selector of everything counts nothing: `if selector.Empty() { return 0 }`.
            (!selector.is_everything() && there.namespace == *namespace && selector.matches(&there.labels)).into()
        }
        What::Affinity(class) => {
            let own = &cluster.class(*class).affinity.required;
            if own.iter().all(|term| matches_other(cluster, term, there)) {
                count(own.iter().filter(has_key).count())
            } else {
                0
            }
        }
        What::AntiAffinity(class) => {
            let own = cluster.class(*class).affinity.required_anti.iter().filter(has_key);
            count(own.filter(|term| matches_other(cluster, term, there)).count())
        }
        What::ExistingAntiAffinity(class) => {
            let pod = cluster.class(*class);
            let theirs = there.affinity.required_anti.iter().filter(has_key);
            count(theirs.filter(|term| is_matched_by(cluster, term, pod)).count())
        }
        What::Preference { class, hard_weight } => {
            preference(cluster, cluster.class(*class), there, *hard_weight, key.unwrap_or_default())
        }
    }
}

/// `processExistingPod` (`interpodaffinity/scoring.go`).
fn preference(cluster: &Cluster, pod: &PodClass, there: &PodClass, hard_weight: i32, key: &str) -> i32 {
    let own = |terms: &[(i32, PodAffinityTerm)]| -> i32 {
        let terms = terms.iter().filter(|(_, term)| term.key == key && matches_other(cluster, term, there));
        terms.map(|(weight, _)| *weight).sum()
    };
    let theirs = |terms: &[(i32, PodAffinityTerm)]| -> i32 {
        let terms = terms.iter().filter(|(_, term)| term.key == key && is_matched_by(cluster, term, pod));
        terms.map(|(weight, _)| *weight).sum()
    };
    let hard =
        there.affinity.required.iter().filter(|term| term.key == key && is_matched_by(cluster, term, pod)).count();
    own(&pod.affinity.preferred) - own(&pod.affinity.preferred_anti)
        + hard_weight * i32::try_from(hard).unwrap_or(i32::MAX)
        + theirs(&there.affinity.preferred)
        - theirs(&there.affinity.preferred_anti)
}

/// Does the incoming pod's own term match a pod that is there? Its namespace selector has been turned into names
/// (`mergeAffinityTermNamespacesIfNotEmpty`), and is then asked once more, of no labels at all.
pub(crate) fn matches_other(cluster: &Cluster, term: &PodAffinityTerm, there: &PodClass) -> bool {
    let no_labels: BTreeMap<SmolStr, SmolStr> = BTreeMap::new();
    let by_label = || {
        let labels = cluster.objects.namespaces.get(&there.namespace);
        !term.namespace_selector.is_everything() && labels.is_some_and(|labels| term.namespace_selector.matches(labels))
    };
    (term.names(&there.namespace) || by_label() || term.namespace_selector.matches(&no_labels))
        && term.selector.matches(&there.labels)
}

/// Does a term of a pod that is there match the incoming pod, whose namespace's labels are known?
pub(crate) fn is_matched_by(cluster: &Cluster, term: &PodAffinityTerm, pod: &PodClass) -> bool {
    let no_labels = BTreeMap::new();
    let labels = cluster.objects.namespaces.get(&pod.namespace).unwrap_or(&no_labels);
    term.matches(&pod.namespace, labels, &pod.labels)
}
