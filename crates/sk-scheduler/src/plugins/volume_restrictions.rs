//! VolumeRestrictions, as far as it rejects a pod whose claim does not exist
//! (`volumerestrictions/volume_restrictions.go`).
//!
//! It is the first plugin that looks claims up, so it is the plugin that rejects such a pod: only the claim helps it,
//! not a new volume. Disks that two pods may not share are passed through and counted on the class.

use super::volume_binding::not_found;
use crate::framework::cycle_state::{Caches, Cx, CycleState};
use crate::framework::plugin::{Plugin, PreFilter};
use crate::queue::{Event, Hint, HintCx, NodeAction};

pub(crate) struct VolumeRestrictions;

impl Plugin for VolumeRestrictions {
    fn pre_filter(&self, cx: &Cx<'_>, _: &mut Caches, _: &mut CycleState) -> PreFilter {
        let claims = &cx.cluster.objects.claims;
        let exists = |name: &str| claims.contains_key(&(cx.class.namespace.clone(), name.into()));
        let missing = cx.class.claims.iter().find(|claim| !claim.ephemeral && !exists(&claim.name));
        missing.map_or(PreFilter::Skip, |claim| PreFilter::Reject(not_found(&claim.name)))
    }

    fn hint(&self, cx: &HintCx<'_>, event: &Event) -> Hint {
        match event {
            Event::Node { action: NodeAction::Add, .. } => Hint::Queue,
            Event::Claim { namespace, name } => Hint::queue_if(cx.names_claim(namespace, name)),
            _ => Hint::Skip,
        }
    }
}
