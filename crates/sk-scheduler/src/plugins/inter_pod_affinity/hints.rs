//! Queueing hints (`interpodaffinity/plugin.go`). Hints use the terms as written: a namespace selector is matched
//! against no labels, because only PreFilter resolves it to names.

use std::collections::BTreeMap;

use sk_core::SmolStr;

use crate::class::{PodAffinityTerm, PodClass};
use crate::node::NodeSpec;
use crate::queue::{Event, Hint, HintCx, NodeAction, PodAction};

pub(super) fn hint(cx: &HintCx<'_>, event: &Event) -> Hint {
    let own = &cx.class.affinity;
    let class = |id| cx.cluster.class(id).as_ref();
    match event {
        Event::WaitingPod { pod, action: PodAction::Label, .. } => Hint::queue_if(cx.pod == Some(*pod)),
        Event::PlacedPod { action: PodAction::Label, before: Some(before), after: Some(after) } => {
            let (before, after) = (class(*before), class(*after));
            let comes = !matches_all(&own.required, before) && matches_all(&own.required, after);
            let goes = matches_all(&own.required_anti, before) && !matches_all(&own.required_anti, after);
            Hint::queue_if(comes || goes)
        }
        Event::PlacedPod { action: PodAction::Add, after: Some(after), .. } => {
            Hint::queue_if(matches_all(&own.required, class(*after)))
        }
        Event::PlacedPod { action: PodAction::Delete, before: Some(before), .. } => {
            let before = class(*before);
            let was_in_the_way = matches_all(&own.required_anti, before);
            Hint::queue_if(was_in_the_way || matches_all(&before.affinity.required_anti, cx.class))
        }
        Event::Node { change, action: NodeAction::Add | NodeAction::Label } => match &change.after {
            Some(after) => Hint::queue_if(after_node(cx.class, change.before.as_deref(), after)),
            None => Hint::Skip,
        },
        _ => Hint::Skip,
    }
}

/// `podMatchesAllAffinityTerms`: no terms match nothing.
fn matches_all(terms: &[PodAffinityTerm], pod: &PodClass) -> bool {
    let no_labels: BTreeMap<SmolStr, SmolStr> = BTreeMap::new();
    !terms.is_empty() && terms.iter().all(|term| term.matches(&pod.namespace, &no_labels, &pod.labels))
}

fn after_node(class: &PodClass, before: Option<&NodeSpec>, after: &NodeSpec) -> bool {
    let near = class.affinity.required.iter().any(|term| {
        let now = after.labels.get(&term.key);
        now.is_some() && before.is_none_or(|before| before.labels.get(&term.key) != now)
    });
    let far = class.affinity.required_anti.iter().any(|term| match before {
        None => true,
        Some(before) => {
            let was = before.labels.get(&term.key);
            was.is_some() && was != after.labels.get(&term.key)
        }
    });
    near || far
}
