//! TaintToleration: `NoSchedule` and `NoExecute` taints reject a pod, `PreferNoSchedule` taints lower the score
//! (`tainttoleration/taint_toleration.go`). The feature gate for `Lt` and `Gt` is off by default in 1.36.

use sk_core::{TaintEffect, Toleration};

use crate::class::{PodClass, Shape};
use crate::cluster::columns::{Columns, HARD_TAINT, SOFT_TAINT};
use crate::framework::cycle_state::{Caches, Cx, CycleState};
use crate::framework::plugin::{Plugin, PluginId, Rejection};
use crate::ids::NodeId;
use crate::node::NodeSpec;
use crate::plugins::normalize;
use crate::queue::{Event, Hint, HintCx, NodeAction, PodAction};

pub(crate) struct TaintToleration;

/// Does some taint keep the pod off?
pub(crate) fn repels(spec: &NodeSpec, tolerations: &[Toleration]) -> bool {
    let hard = spec.taints.iter().filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    hard.into_iter().any(|taint| !tolerations.iter().any(|toleration| toleration.tolerates(taint)))
}

#[inline]
pub(crate) fn filter(columns: &Columns, shape: &Shape, node: usize) -> Rejection {
    if columns.flags[node] & HARD_TAINT == 0 || !repels(&columns.specs[node], &shape.tolerations) {
        return Rejection::NONE;
    }
    Rejection::unresolvable(PluginId::TaintToleration, 1)
}

/// How many soft taints the pod does not tolerate.
#[inline]
pub(crate) fn disliked(columns: &Columns, shape: &Shape, node: usize) -> u16 {
    if columns.flags[node] & SOFT_TAINT == 0 {
        return 0;
    }
    let soft = columns.specs[node].taints.iter().filter(|taint| taint.effect == TaintEffect::PreferNoSchedule);
    let untolerated = soft.filter(|taint| !shape.tolerations.iter().any(|toleration| toleration.tolerates(taint)));
    u16::try_from(untolerated.count()).unwrap_or(u16::MAX)
}

impl Plugin for TaintToleration {
    fn filter(&self, cx: &Cx<'_>, _: &Caches, _: &CycleState, node: NodeId) -> Rejection {
        filter(&cx.cluster.columns, &cx.shape.shape, node.index())
    }

    fn score(&self, cx: &Cx<'_>, _: &Caches, _: &CycleState, nodes: &[NodeId], scores: &mut [i64]) {
        for (score, node) in scores.iter_mut().zip(nodes) {
            *score = disliked(&cx.cluster.columns, &cx.shape.shape, node.index()).into();
        }
        normalize(scores, true);
    }

    fn hint(&self, cx: &HintCx<'_>, event: &Event) -> Hint {
        match event {
            Event::Node { change, action: NodeAction::Add | NodeAction::Taint } => {
                let repelled = |spec: &NodeSpec| repels(spec, &cx.class.shape.tolerations);
                let was = change.before.as_deref().is_none_or(repelled);
                Hint::queue_if(was && change.after.as_deref().is_some_and(|after| !repelled(after)))
            }
            Event::WaitingPod { pod, action: PodAction::Toleration, .. } => Hint::queue_if(cx.pod == Some(*pod)),
            _ => Hint::Skip,
        }
    }

    fn describe(&self, _: &PodClass, _: u32, say: &mut dyn FnMut(&str)) {
        say("node(s) had untolerated taint(s)");
    }
}
