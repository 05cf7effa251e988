//! NodePorts: two pods cannot use one host port of a node (`nodeports/node_ports.go`).

use crate::class::{HostPort, PodClass, Shape};
use crate::cluster::columns::Columns;
use crate::framework::cycle_state::{Caches, Cx, CycleState};
use crate::framework::plugin::{Plugin, PluginId, PreFilter, Rejection};
use crate::ids::NodeId;
use crate::queue::{Event, Hint, HintCx, NodeAction, PodAction};

pub(crate) struct NodePorts;

fn conflict(wanted: &[HostPort], taken: &[HostPort]) -> bool {
    wanted.iter().any(|port| taken.iter().any(|other| port.conflicts(other)))
}

#[inline]
pub(crate) fn filter(columns: &Columns, shape: &Shape, node: usize) -> Rejection {
    if conflict(&shape.ports, &columns.ports[node]) {
        return Rejection::resolvable(PluginId::NodePorts, 1);
    }
    Rejection::NONE
}

impl Plugin for NodePorts {
    fn pre_filter(&self, cx: &Cx<'_>, _: &mut Caches, _: &mut CycleState) -> PreFilter {
        if cx.shape.shape.ports.is_empty() { PreFilter::Skip } else { PreFilter::Run }
    }

    fn filter(&self, cx: &Cx<'_>, _: &Caches, _: &CycleState, node: NodeId) -> Rejection {
        filter(&cx.cluster.columns, &cx.shape.shape, node.index())
    }

    fn hint(&self, cx: &HintCx<'_>, event: &Event) -> Hint {
        match event {
            Event::Node { action: NodeAction::Add, .. } => Hint::Queue,
            Event::PlacedPod { action: PodAction::Delete, before: Some(before), .. } => {
                Hint::queue_if(conflict(&cx.class.shape.ports, &cx.cluster.class(*before).shape.ports))
            }
            _ => Hint::Skip,
        }
    }

    fn describe(&self, _: &PodClass, _: u32, say: &mut dyn FnMut(&str)) {
        say("node(s) didn't have free ports for the requested pod ports");
    }
}
