//! Pods that exist when the clock starts, each on the node on which it was recorded.
//!
//! The engine's controllers create these pods like all others; before the clock starts, each new pod of an owner takes
//! the place of one that the owner really had then. The scheduler places a pod whose node the simulated cluster does
//! not have, and a pod without a recording; both are counted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sk_core::{ObjectKey, ObjectRef, SimTime, SmolStr};
use sk_store::trace::{Observation, Trace, TraceError};

/// The nodes of pods at one time.
#[derive(Clone, Debug, Default)]
pub struct InitialPods {
    /// By owner and template, in the order in which they started. Pods without a known template are under nothing.
    owners: BTreeMap<ObjectRef, BTreeMap<Option<String>, VecDeque<SmolStr>>>,
    /// Pods without an owner.
    bare: BTreeMap<ObjectKey, SmolStr>,
    /// Pods on nodes that the simulated cluster does not have.
    pub(crate) elsewhere: u64,
}

impl InitialPods {
    /// The pods of a trace that were on one of these nodes at `at`.
    pub fn of(trace: &Trace, at: SimTime, nodes: &BTreeSet<SmolStr>) -> Result<Self, TraceError> {
        let mut running = Vec::new();
        for observation in trace.observations()? {
            let observation = observation?;
            if is_running(&observation, at) {
                running.push(observation);
            }
        }
        running.sort_by(|a, b| (a.started, a.created, &a.pod).cmp(&(b.started, b.created, &b.pod)));
        let mut places = Self::default();
        for observation in running {
            places.add(observation, nodes);
        }
        Ok(places)
    }

    fn add(&mut self, observation: Observation, nodes: &BTreeSet<SmolStr>) {
        let Some(node) = observation.node else { return };
        if !nodes.contains(&node) {
            self.elsewhere += 1;
            return;
        }
        match observation.owner {
            Some(owner) => {
                let template = observation.template.map(|template| template.to_string());
                self.owners.entry(owner).or_default().entry(template).or_default().push_back(node);
            }
            None => {
                self.bare.insert(observation.pod, node);
            }
        }
    }

    /// The node of the next pod of this owner and template, or of the bare pod of this name.
    pub(crate) fn next(
        &mut self,
        owner: Option<&ObjectRef>,
        template: Option<&str>,
        pod: &ObjectKey,
    ) -> Option<SmolStr> {
        let Some(templates) = owner.and_then(|owner| self.owners.get_mut(owner)) else { return self.bare.remove(pod) };
        let own = template.and_then(|template| templates.get_mut(&Some(template.to_owned())));
        if let Some(place) = own.and_then(VecDeque::pop_front) {
            return Some(place);
        }
        // A pod whose template is unknown may have been of this one.
        templates.get_mut(&None).and_then(VecDeque::pop_front)
    }
}

/// Was it on a node at this moment, and not finished?
fn is_running(pod: &Observation, at: SimTime) -> bool {
    let is_over = |end: Option<SimTime>| end.is_some_and(|end| end <= at);
    pod.scheduled.unwrap_or(pod.created) < at && pod.node.is_some() && !is_over(pod.finished) && !is_over(pod.deleted)
}
