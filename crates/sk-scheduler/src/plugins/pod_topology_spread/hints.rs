//! Queueing hints (`podtopologyspread/plugin.go`).

use super::constraints::hard_of;
use crate::class::SpreadConstraint;
use crate::ids::ClassId;
use crate::node::NodeSpec;
use crate::queue::{Event, Hint, HintCx, NodeAction, PodAction};

pub(super) fn hint(cx: &HintCx<'_>, event: &Event) -> Hint {
    let constraints = || hard_of(cx.cluster, cx.profile, cx.class);
    match event {
        Event::Node {
            change,
            action: NodeAction::Add | NodeAction::Delete | NodeAction::Label | NodeAction::Taint,
        } => after_node(&constraints(), change.before.as_deref(), change.after.as_deref()),
        Event::PlacedPod { action, before, after } => {
            let same_namespace = |class: &ClassId| cx.cluster.class(*class).namespace == cx.class.namespace;
            if !before.iter().chain(after).all(same_namespace) {
                return Hint::Skip;
            }
            match (action, before, after) {
                (PodAction::Add, _, Some(class)) | (PodAction::Delete, Some(class), _) => {
                    let labels = &cx.cluster.class(*class).labels;
                    Hint::queue_if(constraints().iter().any(|constraint| constraint.selector.matches(labels)))
                }
                (PodAction::Label, Some(before), Some(after)) => {
                    Hint::queue_if(labels_matter(cx, &constraints(), *before, *after))
                }
                _ => Hint::Skip,
            }
        }
        Event::WaitingPod { pod, action, before, after } if cx.pod == Some(*pod) => match action {
            PodAction::Toleration if constraints().iter().any(|constraint| constraint.honor_taints) => Hint::Queue,
            PodAction::Label => Hint::queue_if(labels_matter(cx, &constraints(), *before, *after)),
            _ => Hint::Skip,
        },
        _ => Hint::Skip,
    }
}

fn labels_matter(cx: &HintCx<'_>, constraints: &[SpreadConstraint], before: ClassId, after: ClassId) -> bool {
    let (before, after) = (&cx.cluster.class(before).labels, &cx.cluster.class(after).labels);
    constraints.iter().any(|constraint| constraint.selector.matches(before) != constraint.selector.matches(after))
}

fn after_node(constraints: &[SpreadConstraint], before: Option<&NodeSpec>, after: Option<&NodeSpec>) -> Hint {
    let has_all = |spec: &NodeSpec| constraints.iter().all(|constraint| spec.labels.contains_key(&constraint.key));
    match (before, after) {
        (Some(before), Some(after)) => {
            let moved = |one: &SpreadConstraint| before.labels.get(&one.key) != after.labels.get(&one.key);
            let differs = has_all(before) != has_all(after);
            let changed = constraints.iter().any(moved) || before.taints != after.taints;
            Hint::queue_if(differs || (has_all(after) && changed))
        }
        (Some(one), None) | (None, Some(one)) => Hint::queue_if(has_all(one)),
        (None, None) => Hint::Skip,
    }
}
