//! NodeUnschedulable, and the required half of NodeAffinity.

use sk_core::{Taint, TaintEffect};

use super::{Filter, Rejection};
use crate::{Node, PodClass};

/// A cordoned node takes only pods that tolerate being cordoned.
pub(super) fn unschedulable(pod: &PodClass, node: &Node) -> Result<(), Rejection> {
    if !node.unschedulable {
        return Ok(());
    }
    let cordon = Taint::new("node.kubernetes.io/unschedulable", TaintEffect::NoSchedule);
    if pod.tolerations.iter().any(|toleration| toleration.tolerates(&cordon)) {
        return Ok(());
    }
    Err(Rejection::unresolvable(Filter::NodeUnschedulable, "node(s) were unschedulable"))
}

/// `nodeSelector` and required node affinity.
pub(super) fn affinity(pod: &PodClass, node: &Node) -> Result<(), Rejection> {
    let selected = pod.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value));
    let wanted = |terms: &Vec<crate::NodeSelectorTerm>| terms.iter().any(|term| term.matches(&node.name, &node.labels));
    if selected && pod.required_affinity.as_ref().is_none_or(wanted) {
        return Ok(());
    }
    Err(Rejection::unresolvable(Filter::NodeAffinity, "node(s) didn't match Pod's node affinity/selector"))
}
