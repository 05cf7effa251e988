//! The progress of a run, for progress bars.

use sk_core::SimTime;
use sk_engine::Engine;
use sk_engine::api::Body;
use sk_engine::kinds::{NODE, POD, PodPhase};

/// The progress of a run at one moment. Counting iterates over all nodes and pods, so call [`Progress::counts`] a few
/// times a second and not at each step.
#[derive(Clone, Copy)]
pub struct Progress<'a>(pub(crate) &'a Engine);

/// The size of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nodes, ready or not.
    pub nodes: u64,
    /// Pods that run.
    pub running: u64,
    /// Pods without a node.
    pub waiting: u64,
}

impl Progress<'_> {
    /// The simulated time.
    pub fn at(&self) -> SimTime {
        self.0.now()
    }

    /// Counts nodes and pods.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts { nodes: self.0.list(&NODE).count() as u64, ..Counts::default() };
        for object in self.0.list(&POD) {
            let Body::Pod(pod) = &object.body else { continue };
            counts.running += u64::from(pod.status.phase == PodPhase::Running);
            counts.waiting += u64::from(pod.node_name.is_none() && !pod.status.phase.is_final());
        }
        counts
    }
}
