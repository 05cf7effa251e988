//! NodeName: a pod with `spec.nodeName` fits only that node (`nodename/node_name.go`).

use crate::class::{PodClass, Shape};
use crate::cluster::columns::Columns;
use crate::framework::cycle_state::{Caches, Cx, CycleState};
use crate::framework::plugin::{Plugin, PluginId, Rejection};
use crate::ids::NodeId;
use crate::queue::{Event, Hint, HintCx, NodeAction};

pub(crate) struct NodeName;

#[inline]
pub(crate) fn filter(columns: &Columns, shape: &Shape, node: usize) -> Rejection {
    match &shape.node_name {
        Some(name) if *name != columns.specs[node].name => Rejection::unresolvable(PluginId::NodeName, 1),
        _ => Rejection::NONE,
    }
}

impl Plugin for NodeName {
    fn filter(&self, cx: &Cx<'_>, _: &Caches, _: &CycleState, node: NodeId) -> Rejection {
        filter(&cx.cluster.columns, &cx.shape.shape, node.index())
    }

    fn hint(&self, _: &HintCx<'_>, event: &Event) -> Hint {
        Hint::queue_if(matches!(event, Event::Node { action: NodeAction::Add, .. }))
    }

    fn describe(&self, _: &PodClass, _: u32, say: &mut dyn FnMut(&str)) {
        say("node(s) didn't match the requested node name");
    }
}
