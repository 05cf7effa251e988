//! SchedulingGates: a gated pod does not enter the queue (`schedulinggates/scheduling_gates.go`). The gate itself is in
//! [`crate::queue`].

use crate::framework::plugin::Plugin;
use crate::queue::{Event, Hint, HintCx, PodAction};

pub(crate) struct SchedulingGates;

impl Plugin for SchedulingGates {
    fn hint(&self, cx: &HintCx<'_>, event: &Event) -> Hint {
        match event {
            Event::WaitingPod { pod, action: PodAction::GatesEliminated, .. } => Hint::queue_if(cx.pod == Some(*pod)),
            _ => Hint::Skip,
        }
    }
}
