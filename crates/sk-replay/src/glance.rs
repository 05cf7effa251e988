//! The progress of a run, for whoever waits for it.

use sk_core::SimTime;
use sk_engine::Engine;
use sk_engine::api::Body;
use sk_engine::kinds::{NODE, POD, PodPhase};

/// The cluster at one moment. Looking costs nothing; counting goes through all nodes and pods, so whoever shows a number
/// asks for it a few times a second and not at each step.
#[derive(Clone, Copy)]
pub struct Glance<'a>(pub(crate) &'a Engine);

/// How much there is in the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nodes, ready or not.
    pub nodes: u64,
    /// Pods that run.
    pub running: u64,
    /// Pods without a node.
    pub waiting: u64,
}

impl Glance<'_> {
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
