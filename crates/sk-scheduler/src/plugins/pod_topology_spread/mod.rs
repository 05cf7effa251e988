//! PodTopologySpread: spreads matching pods over zones, hosts and other domains (`podtopologyspread/`).
//!
//! [`crate::counters`] counts the pods in each domain. Where a constraint counts all nodes, its counter is the result;
//! where it leaves some out (they lack a label, or the pod's node affinity or the node's taints exclude them), the
//! cycle sums the counts of the nodes that remain.

mod alike;
mod constraints;
mod filter;
mod go_log;
mod hints;
mod score;

use std::sync::Arc;

pub(crate) use self::alike::Alike;
pub(crate) use self::constraints::{Constraints, Memory};
pub(crate) use self::filter::HardState;
pub(crate) use self::score::SoftState;
use crate::class::PodClass;
use crate::framework::cycle_state::{Caches, Cx, CycleState};
use crate::framework::plugin::{Plugin, PluginId, PreFilter, Rejection};
use crate::ids::{ClassId, NodeId};
use crate::queue::{Event, Hint, HintCx};

pub(crate) struct PodTopologySpread;

const SKEW: u32 = 1;
const NO_LABEL: u32 = 2;
/// The label that counts pods per node.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// What the cycle knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// The pod's constraints, once computed.
    constraints: Option<Arc<Constraints>>,
    hard: Vec<HardState>,
    soft: SoftState,
}

impl State {
    /// The pod's constraints, looked up once in a cycle.
    pub(crate) fn constraints(&mut self, cx: &Cx<'_>, caches: &mut Caches) -> Arc<Constraints> {
        let found = self.constraints.get_or_insert_with(|| caches.spread.constraints(cx));
        Arc::clone(found)
    }
}

impl Plugin for PodTopologySpread {
    fn pre_filter(&self, cx: &Cx<'_>, caches: &mut Caches, state: &mut CycleState) -> PreFilter {
        let constraints = state.spread.constraints(cx, caches);
        if constraints.hard.is_empty() {
            return PreFilter::Skip;
        }
        state.spread.hard = filter::prepare(cx, caches, &constraints);
        PreFilter::Run
    }

    fn filter(&self, cx: &Cx<'_>, caches: &Caches, state: &CycleState, node: NodeId) -> Rejection {
        for constraint in &state.spread.hard {
            match constraint.check(cx, caches, node) {
                0 => {}
                NO_LABEL => return Rejection::unresolvable(PluginId::PodTopologySpread, NO_LABEL),
                reason => return Rejection::resolvable(PluginId::PodTopologySpread, reason),
            }
        }
        Rejection::NONE
    }

    fn pod_changed(&self, cx: &Cx<'_>, state: &mut CycleState, class: ClassId, node: NodeId, by: i64) {
        filter::pod_changed(cx, &mut state.spread.hard, class, node, by);
    }

    fn pre_score(&self, cx: &Cx<'_>, caches: &mut Caches, state: &mut CycleState, nodes: &[NodeId]) -> bool {
        let constraints = state.spread.constraints(cx, caches);
        if constraints.soft.is_empty() {
            return false;
        }
        state.spread.soft = score::prepare(cx, caches, &constraints, nodes);
        true
    }

    fn score(&self, cx: &Cx<'_>, caches: &Caches, state: &CycleState, nodes: &[NodeId], scores: &mut [i64]) {
        state.spread.soft.score(cx, caches, nodes, scores);
    }

    fn hint(&self, cx: &HintCx<'_>, event: &Event) -> Hint {
        hints::hint(cx, event)
    }

    fn describe(&self, _: &PodClass, reasons: u32, say: &mut dyn FnMut(&str)) {
        say(match reasons {
            NO_LABEL => "node(s) didn't match pod topology spread constraints (missing required label)",
            _ => "node(s) didn't match pod topology spread constraints",
        });
    }
}
