//! VolumeBinding: a bound claim's volume must be reachable from the node; for an unbound claim the node must allow a
//! new one (`volumebinding/volume_binding.go`, `binder.go`).
//!
//! Available volumes are not matched with claims by size and mode: an unbound claim with a `WaitForFirstConsumer`
//! class always gets a new volume. Storage capacities are not checked.

use crate::class::{NodeSelectorTerm, PodClass};
use crate::cluster::objects::VolumeClaim;
use crate::framework::cycle_state::{Caches, Cx, CycleState};
use crate::framework::plugin::{Plugin, PluginId, PreFilter, Rejection};
use crate::ids::NodeId;
use crate::queue::{Event, Hint, HintCx, NodeAction};

pub(crate) struct VolumeBinding;

const NODE_CONFLICT: u32 = 1;
const BIND_CONFLICT: u32 = 2;
const NO_VOLUME: u32 = 4;

/// What the pod's claims demand of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// The node affinity of each bound volume; `None`: the volume does not exist.
    bound: Vec<Option<Vec<NodeSelectorTerm>>>,
    /// Each claim that waits for a volume to be made.
    unbound: Vec<Unbound>,
}

#[derive(Clone, Debug)]
struct Unbound {
    node: Option<NodeId>,
    /// Nothing makes volumes of this class.
    hopeless: bool,
    allowed: Vec<NodeSelectorTerm>,
}

/// A lister's message for a claim that does not exist.
pub(crate) fn not_found(name: &str) -> String {
    format!("persistentvolumeclaim \"{name}\" not found")
}

/// A claim of the pod, or why the pod cannot go on (`podHasPVCs`).
fn claim<'a>(cx: &Cx<'a>, name: &str, ephemeral: bool) -> Result<&'a VolumeClaim, String> {
    let claims = &cx.cluster.objects.claims;
    let Some(found) = claims.get(&(cx.class.namespace.clone(), name.into())) else {
        return Err(match ephemeral {
            true => format!("waiting for ephemeral volume controller to create the persistentvolumeclaim \"{name}\""),
            false => not_found(name),
        });
    };
    if found.lost {
        let volume = found.volume.as_deref().unwrap_or_default();
        return Err(format!("persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{volume}\""));
    }
    if found.deleting {
        return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
    }
    Ok(found)
}

impl State {
    /// Takes one claim in; an error keeps the pod off every node.
    fn add(&mut self, cx: &Cx<'_>, claim: &VolumeClaim) -> Result<(), String> {
        let objects = &cx.cluster.objects;
        if let (Some(volume), true) = (&claim.volume, claim.bound) {
            self.bound.push(objects.volumes.get(volume).map(|volume| volume.node_affinity.clone().unwrap_or_default()));
            return Ok(());
        }
        let class = claim.storage_class.as_ref().and_then(|name| objects.storage_classes.get(name));
        match class.filter(|class| class.waits_for_consumer && claim.volume.is_none()) {
            None => Err("pod has unbound immediate PersistentVolumeClaims".to_owned()),
            Some(class) => {
                let node = claim.selected_node.as_ref().and_then(|name| cx.cluster.node_id(name));
                self.unbound.push(Unbound { node, hopeless: class.no_provisioner, allowed: class.allowed.clone() });
                Ok(())
            }
        }
    }
}

impl Plugin for VolumeBinding {
    fn pre_filter(&self, cx: &Cx<'_>, _: &mut Caches, state: &mut CycleState) -> PreFilter {
        if cx.class.claims.is_empty() {
            return PreFilter::Skip;
        }
        let pod = &cx.cluster.pod(cx.pod).name;
        // All claims are looked up before any is judged, as `podHasPVCs` comes before `GetPodVolumeClaims`.
        let claims: Result<Vec<_>, _> =
            cx.class.claims.iter().map(|one| claim(cx, &one.of(pod), one.ephemeral)).collect();
        let added = claims.and_then(|claims| claims.into_iter().try_for_each(|claim| state.volumes.add(cx, claim)));
        match added {
            Ok(()) => PreFilter::Run,
            Err(reason) => PreFilter::Reject(reason),
        }
    }

    fn filter(&self, cx: &Cx<'_>, _: &Caches, state: &CycleState, node: NodeId) -> Rejection {
        let spec = cx.cluster.node(node);
        let matches = |terms: &[NodeSelectorTerm]| terms.iter().any(|term| term.matches(&spec.name, &spec.labels));
        let mut reasons = 0;
        // The first bound claim that objects ends the look at bound ones.
        for volume in &state.volumes.bound {
            match volume {
                None => reasons = NO_VOLUME,
                Some(terms) if !terms.is_empty() && !matches(terms) => reasons = NODE_CONFLICT,
                Some(_) => continue,
            }
            break;
        }
        let unbound = state.volumes.unbound.iter().any(|one| {
            one.hopeless
                || one.node.is_some_and(|only| only != node)
                || !(one.allowed.is_empty() || matches(&one.allowed))
        });
        reasons |= if unbound { BIND_CONFLICT } else { 0 };
        if reasons == 0 { Rejection::NONE } else { Rejection::unresolvable(PluginId::VolumeBinding, reasons) }
    }

    fn hint(&self, cx: &HintCx<'_>, event: &Event) -> Hint {
        match event {
            Event::Node { action: NodeAction::Add | NodeAction::Label, .. } | Event::Volume { .. } => Hint::Queue,
            Event::Claim { namespace, name } => Hint::queue_if(cx.names_claim(namespace, name)),
            Event::StorageClass { before, after } => {
                Hint::queue_if(before.as_ref().is_none_or(|before| before.allowed != after.allowed))
            }
            _ => Hint::Skip,
        }
    }

    fn describe(&self, _: &PodClass, reasons: u32, say: &mut dyn FnMut(&str)) {
        let texts = [
            (NODE_CONFLICT, "node(s) didn't match PersistentVolume's node affinity"),
            (BIND_CONFLICT, "node(s) didn't find available persistent volumes to bind"),
            (NO_VOLUME, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
        ];
        texts.into_iter().filter(|(bit, _)| reasons & bit != 0).for_each(|(_, text)| say(text));
    }
}
