//! DefaultPreemption: the search for victims is in [`crate::next::framework`]; events never help a pod that waits for
//! its victims (`defaultpreemption/default_preemption.go`, `isPodSchedulableAfterPodDeletion`).

use crate::next::framework::plugin::Plugin;

pub(crate) struct DefaultPreemption;

impl Plugin for DefaultPreemption {}
