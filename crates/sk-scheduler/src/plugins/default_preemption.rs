//! DefaultPreemption: [`crate::framework`] searches for victims; events never help a pod that waits for its victims
//! (`defaultpreemption/default_preemption.go`, `isPodSchedulableAfterPodDeletion`).

use crate::framework::plugin::Plugin;

pub(crate) struct DefaultPreemption;

impl Plugin for DefaultPreemption {}
