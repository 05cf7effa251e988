//! NodeAffinity: `nodeSelector`, required and preferred node affinity, and the profile's added affinity
//! (`nodeaffinity/node_affinity.go`).

use std::collections::BTreeSet;

use sk_core::SmolStr;

use crate::class::{NodeSelectorTerm, PodClass, Shape};
use crate::framework::cycle_state::{Caches, Cx, CycleState};
use crate::framework::plugin::{Plugin, PluginId, PreFilter, Rejection};
use crate::framework::profile::Compiled;
use crate::ids::NodeId;
use crate::node::NodeSpec;
use crate::plugins::normalize;
use crate::queue::{Event, Hint, HintCx, NodeAction};

pub(crate) struct NodeAffinity;

const ENFORCED: u32 = 1;
const OF_POD: u32 = 2;

fn any_matches(terms: &[NodeSelectorTerm], spec: &NodeSpec) -> bool {
    terms.iter().any(|term| term.matches(&spec.name, &spec.labels))
}

/// `RequiredNodeAffinity.Match`: `nodeSelector` and required affinity.
pub(crate) fn matches(shape: &Shape, spec: &NodeSpec) -> bool {
    shape.node_selector.iter().all(|(key, value)| spec.labels.get(key) == Some(value))
        && shape.required_affinity.as_ref().is_none_or(|terms| any_matches(terms, spec))
}

/// Can it keep the pod off any node at all?
pub(crate) fn applies(profile: &Compiled, shape: &Shape) -> bool {
    profile.profile.added_required.is_some() || restricts(shape)
}

/// Does the pod itself restrict where it runs?
pub(crate) fn restricts(shape: &Shape) -> bool {
    !shape.node_selector.is_empty() || shape.required_affinity.is_some()
}

pub(crate) fn filter(profile: &Compiled, shape: &Shape, spec: &NodeSpec) -> Rejection {
    if profile.profile.added_required.as_ref().is_some_and(|terms| !any_matches(terms, spec)) {
        return Rejection::unresolvable(PluginId::NodeAffinity, ENFORCED);
    }
    if matches(shape, spec) { Rejection::NONE } else { Rejection::unresolvable(PluginId::NodeAffinity, OF_POD) }
}

/// The sum of the weights of the terms that match.
pub(crate) fn preference(profile: &Compiled, shape: &Shape, spec: &NodeSpec) -> i64 {
    let terms = profile.profile.added_preferred.iter().chain(&shape.preferred_affinity);
    terms.filter(|(_, term)| term.matches(&spec.name, &spec.labels)).map(|(weight, _)| i64::from(*weight)).sum()
}

/// Does it score at all?
pub(crate) fn prefers(profile: &Compiled, shape: &Shape) -> bool {
    !(profile.profile.added_preferred.is_empty() && shape.preferred_affinity.is_empty())
}

/// The only nodes that terms which all name nodes allow; `None`: some term names none.
fn named(terms: &[NodeSelectorTerm]) -> Option<BTreeSet<SmolStr>> {
    let mut all = BTreeSet::new();
    for term in terms {
        let mut names = term.names.iter().filter(|(equal, _)| *equal).map(|(_, name)| name);
        let first = names.next()?;
        if names.all(|name| name == first) {
            all.insert(first.clone());
        }
    }
    Some(all)
}

impl Plugin for NodeAffinity {
    fn pre_filter(&self, cx: &Cx<'_>, _: &mut Caches, _: &mut CycleState) -> PreFilter {
        if !applies(cx.profile, &cx.shape.shape) {
            return PreFilter::Skip;
        }
        match cx.shape.shape.required_affinity.as_deref() {
            None | Some([]) => PreFilter::Run,
            Some(terms) => match named(terms) {
                None => PreFilter::Run,
                Some(names) if names.is_empty() => PreFilter::Reject("pod affinity terms conflict".to_owned()),
                Some(names) => {
                    let live = names.iter().filter_map(|name| cx.cluster.node_id(name));
                    PreFilter::Only(live.filter(|node| cx.cluster.is_live(*node)).collect())
                }
            },
        }
    }

    fn filter(&self, cx: &Cx<'_>, _: &Caches, _: &CycleState, node: NodeId) -> Rejection {
        filter(cx.profile, &cx.shape.shape, cx.cluster.node(node))
    }

    fn pre_score(&self, cx: &Cx<'_>, _: &mut Caches, _: &mut CycleState, _: &[NodeId]) -> bool {
        prefers(cx.profile, &cx.shape.shape)
    }

    fn score(&self, cx: &Cx<'_>, _: &Caches, _: &CycleState, nodes: &[NodeId], scores: &mut [i64]) {
        for (score, node) in scores.iter_mut().zip(nodes) {
            *score = preference(cx.profile, &cx.shape.shape, cx.cluster.node(*node));
        }
        normalize(scores, false);
    }

    fn hint(&self, cx: &HintCx<'_>, event: &Event) -> Hint {
        let Event::Node { change, action: NodeAction::Add | NodeAction::Label } = event else { return Hint::Skip };
        let Some(after) = &change.after else { return Hint::Skip };
        let enforced = cx.profile.profile.added_required.as_ref();
        if enforced.is_some_and(|terms| !any_matches(terms, after)) || !matches(&cx.class.shape, after) {
            return Hint::Skip;
        }
        Hint::queue_if(change.before.as_ref().is_none_or(|before| !matches(&cx.class.shape, before)))
    }

    fn describe(&self, _: &PodClass, reasons: u32, say: &mut dyn FnMut(&str)) {
        say(match reasons {
            ENFORCED => "node(s) didn't match scheduler-enforced node affinity",
            _ => "node(s) didn't match Pod's node affinity/selector",
        });
    }
}
