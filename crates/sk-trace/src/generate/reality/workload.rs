//! Deployments and StatefulSets in the generated history.

use std::sync::Arc;

use serde_json::Value;
use sk_core::{ObjectRef, SimTime, SmolStr};

use super::fleet::{MachineId, Need};
use super::live::{End, Live, Revision};
use super::{Due, Reality, reference, template_of};
use crate::generate::platform::Pool;
use crate::generate::pods::Requests;
use crate::generate::random::Draw;
use crate::generate::service::{Drawn, Service};

/// A quarter of a Deployment's pods may be there too much and as many too few during a rollout: `maxSurge` and
/// `maxUnavailable` of all that are generated.
const QUARTER: usize = 4;

/// An owner of pods that stay.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) owner: ObjectRef,
    need: Need,
    replicas: usize,
    revision: Arc<Revision>,
    pub(super) pods: Vec<Live>,
    draw: Draw,
}

impl Workload {
    fn machines(&self) -> Vec<MachineId> {
        self.pods.iter().map(|pod| pod.machine).collect()
    }

    fn is_current(&self, pod: &Live) -> bool {
        Arc::ptr_eq(&pod.revision, &self.revision)
    }

    /// The next pod to go of those of the newest revision: one that has not started, else the youngest (the ReplicaSet
    /// controller ranks so too, after what does not occur here).
    fn surplus(&self, at: SimTime) -> Option<usize> {
        let current = self.pods.iter().enumerate().filter(|(_, pod)| self.is_current(pod));
        current.max_by_key(|(_, pod)| (pod.started > at, pod.created)).map(|(place, _)| place)
    }

    /// The next pod of an older revision that may go: one that has not started, or any while enough are available.
    fn outdated(&self, at: SimTime) -> Option<usize> {
        let mut old = self.pods.iter().enumerate().filter(|(_, pod)| !self.is_current(pod));
        let available = self.pods.iter().filter(|pod| pod.started <= at).count();
        let least = self.replicas - self.replicas / QUARTER;
        match old.clone().find(|(_, pod)| pod.started > at) {
            Some((place, _)) => Some(place),
            None if available > least => old.next().map(|(place, _)| place),
            None => None,
        }
    }
}

impl Reality {
    /// The Deployment at this place is now this. Its pods follow.
    pub(in crate::generate) fn deployment(
        &mut self,
        at: SimTime,
        place: u32,
        service: &Service,
        drawn: &Drawn,
        replicas: u64,
    ) {
        let place = place as usize;
        if place == self.deployments.len() {
            self.deployments.push(self.new_deployment(service, drawn));
        } else if self.deployments[place].owner != service.reference() {
            self.deployments[place] = self.new_deployment(service, drawn);
        } else if self.deployments[place].revision.infix != drawn.replica_set {
            self.deployments[place].revision = revision(service, drawn);
        }
        self.deployments[place].replicas = replicas as usize;
        self.settle(at, place);
    }

    fn new_deployment(&self, service: &Service, drawn: &Drawn) -> Workload {
        let owner = service.reference();
        let need = Need { requests: service.requests(), pool: Pool::General, apart: false, until: None };
        let draw = Draw::new(self.seed, &format!("pods of {owner}"));
        Workload { owner, need, replicas: 0, revision: revision(service, drawn), pods: Vec::new(), draw }
    }

    /// The Deployment at this place is gone, and its pods with it.
    pub(in crate::generate) fn delete_deployment(&mut self, at: SimTime, place: u32) {
        let place = place as usize;
        while let Some(pod) = self.deployments[place].pods.pop() {
            self.end_of_deployment(at, place, &pod);
        }
    }

    /// As far towards what a Deployment wants as its bounds let it now, and on when more pods have started.
    pub(super) fn settle(&mut self, at: SimTime, place: usize) {
        loop {
            self.create_missing(at, place);
            self.remove_surplus(at, place);
            let before = self.deployments[place].pods.len();
            while let Some(pod) = self.deployments[place].outdated(at) {
                self.remove_of_deployment(at, place, pod);
            }
            // Each old pod that has gone leaves room for a new one.
            if self.deployments[place].pods.len() == before {
                break;
            }
        }
        let workload = &self.deployments[place];
        let is_done =
            workload.pods.len() == workload.replicas && workload.pods.iter().all(|pod| workload.is_current(pod));
        let starts = workload.pods.iter().map(|pod| pod.started).filter(|started| *started > at).min();
        if let Some(next) = starts.filter(|_| !is_done) {
            self.plan(next, Due::Settle(place));
        }
    }

    fn remove_surplus(&mut self, at: SimTime, place: usize) {
        let workload = &self.deployments[place];
        let current = workload.pods.iter().filter(|pod| workload.is_current(pod)).count();
        for _ in workload.replicas..current {
            let surplus = self.deployments[place].surplus(at);
            surplus.into_iter().for_each(|pod| self.remove_of_deployment(at, place, pod));
        }
    }

    fn create_missing(&mut self, at: SimTime, place: usize) {
        let workload = &mut self.deployments[place];
        let current = workload.pods.iter().filter(|pod| workload.is_current(pod)).count();
        let surge = if current == workload.pods.len() { 0 } else { workload.replicas.div_ceil(QUARTER) };
        let room = (workload.replicas + surge).saturating_sub(workload.pods.len());
        for _ in 0..workload.replicas.saturating_sub(current).min(room) {
            let name = format!("{}-{}-{}", workload.owner.key.name, workload.revision.infix, workload.draw.suffix());
            let siblings = workload.machines();
            let named = (SmolStr::from(name), &workload.revision);
            let pod = Live::create(&mut self.fleet, at, named, &workload.need, &siblings, &mut workload.draw);
            workload.pods.push(pod);
        }
        self.announce(at);
    }

    fn remove_of_deployment(&mut self, at: SimTime, place: usize, pod: usize) {
        let pod = self.deployments[place].pods.remove(pod);
        self.end_of_deployment(at, place, &pod);
    }

    fn end_of_deployment(&mut self, at: SimTime, place: usize, pod: &Live) {
        let workload = &mut self.deployments[place];
        let end = pod.delete(at, &mut workload.draw);
        let (owner, requests) = (workload.owner.clone(), workload.need.requests);
        self.end_pod(at, &owner, requests, pod, end);
    }

    /// Tells of a pod's end, and gives back what it took once it is gone.
    pub(super) fn end_pod(&mut self, at: SimTime, owner: &ObjectRef, requests: Requests, pod: &Live, end: End) {
        self.tell_pod(owner, pod, end);
        let gone = end.deleted.unwrap_or(at);
        self.plan(if pod.scheduled < gone { gone } else { at }, Due::Free(pod.machine, requests));
    }

    /// Takes a Deployment's pods off a machine; were there any?
    pub(super) fn evict_of_deployment(&mut self, at: SimTime, place: usize, machine: MachineId) -> bool {
        let mut found = false;
        while let Some(pod) = self.deployments[place].pods.iter().position(|pod| pod.machine == machine) {
            self.remove_of_deployment(at, place, pod);
            found = true;
        }
        found
    }

    /// A StatefulSet that stands when the trace begins.
    pub(super) fn begin_stateful_set(&mut self, at: SimTime, object: &Value) {
        let pod = &object["spec"]["template"]["spec"];
        let need = Need {
            requests: Requests::of_template(&object["spec"]["template"]),
            pool: if pod["nodeSelector"].is_object() { Pool::Stateful } else { Pool::General },
            apart: pod.pointer("/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution").is_some(),
            until: None,
        };
        let owner = reference(object);
        let draw = Draw::new(self.seed, &format!("pods of {owner}"));
        let revision = Arc::new(Revision { template: template_of(object), infix: SmolStr::default() });
        let replicas = object["spec"]["replicas"].as_u64().unwrap_or_default() as u32;
        let pods = Vec::new();
        self.stateful_sets.push(Workload { owner, need, replicas: replicas as usize, revision, pods, draw });
        let set = self.stateful_sets.len() - 1;
        (0..replicas).for_each(|ordinal| self.restart(at, set, ordinal));
    }

    /// The pod of this number is made.
    pub(super) fn restart(&mut self, at: SimTime, set: usize, ordinal: u32) {
        let workload = &mut self.stateful_sets[set];
        let name = SmolStr::from(format!("{}-{ordinal}", workload.owner.key.name));
        let siblings = workload.machines();
        let named = (name, &workload.revision);
        let pod = Live::create(&mut self.fleet, at, named, &workload.need, &siblings, &mut workload.draw);
        workload.pods.push(pod);
        self.announce(at);
    }

    /// Takes a StatefulSet's pods off a machine. Each is made anew when it is gone.
    pub(super) fn evict_of_stateful_set(&mut self, at: SimTime, set: usize, machine: MachineId) {
        while let Some(place) = self.stateful_sets[set].pods.iter().position(|pod| pod.machine == machine) {
            let workload = &mut self.stateful_sets[set];
            let pod = workload.pods.remove(place);
            let end = pod.delete(at, &mut workload.draw);
            let (owner, requests) = (workload.owner.clone(), workload.need.requests);
            let ordinal = pod.name.rsplit('-').next().and_then(|ordinal| ordinal.parse().ok()).unwrap_or_default();
            self.end_pod(at, &owner, requests, &pod, end);
            self.plan(end.deleted.unwrap_or(at), Due::Restart(set, ordinal));
        }
    }
}

fn revision(service: &Service, drawn: &Drawn) -> Arc<Revision> {
    Arc::new(Revision { template: service.template(drawn), infix: drawn.replica_set.clone() })
}
