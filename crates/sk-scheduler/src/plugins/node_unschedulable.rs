//! NodeUnschedulable: a cordoned node accepts only pods that tolerate it (`nodeunschedulable/node_unschedulable.go`).

use std::sync::Arc;

use sk_core::{Taint, TaintEffect, Toleration};

use crate::class::{PodClass, Shape};
use crate::cluster::columns::{Columns, UNSCHEDULABLE};
use crate::framework::cycle_state::{Caches, Cx, CycleState};
use crate::framework::plugin::{Plugin, PluginId, Rejection};
use crate::ids::NodeId;
use crate::node::NodeSpec;
use crate::queue::{Event, Hint, HintCx, NodeAction, PodAction};

pub(crate) struct NodeUnschedulable;

fn tolerated(tolerations: &[Toleration]) -> bool {
    let cordon = Taint::new("node.kubernetes.io/unschedulable", TaintEffect::NoSchedule);
    tolerations.iter().any(|toleration| toleration.tolerates(&cordon))
}

#[inline]
pub(crate) fn filter(columns: &Columns, shape: &Shape, node: usize) -> Rejection {
    if columns.flags[node] & UNSCHEDULABLE == 0 || tolerated(&shape.tolerations) {
        return Rejection::NONE;
    }
    Rejection::unresolvable(PluginId::NodeUnschedulable, 1)
}

impl Plugin for NodeUnschedulable {
    fn filter(&self, cx: &Cx<'_>, _: &Caches, _: &CycleState, node: NodeId) -> Rejection {
        filter(&cx.cluster.columns, &cx.shape.shape, node.index())
    }

    fn hint(&self, cx: &HintCx<'_>, event: &Event) -> Hint {
        match event {
            Event::Node { change, action: NodeAction::Add | NodeAction::Taint } => {
                let open = |spec: &Option<Arc<NodeSpec>>| spec.as_ref().is_some_and(|spec| !spec.unschedulable);
                Hint::queue_if(!open(&change.before) && open(&change.after))
            }
            Event::WaitingPod { pod, action: PodAction::Toleration, after, .. } => {
                let tolerations = &cx.cluster.class(*after).shape.tolerations;
                Hint::queue_if(cx.pod == Some(*pod) && tolerated(tolerations))
            }
            _ => Hint::Skip,
        }
    }

    fn describe(&self, _: &PodClass, _: u32, say: &mut dyn FnMut(&str)) {
        say("node(s) were unschedulable");
    }
}
