//! The recorded history of the pods in a generated cluster: where each pod runs, when it starts and why it ends. A recording
//! of a real cluster contains observations, so a generated trace does too, and a replay can be compared with them.
//!
//! This is not a simulation of Kubernetes but a plausible history that is consistent in itself: no node ever holds more than
//! its capacity, owners have the pods that they want, rollouts keep their bounds, nodes are drained before they go, and
//! lifecycles agree with observations. It shares no code with the engine, so a comparison of the two means something.

mod batch;
mod fleet;
mod live;
mod workload;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use serde_json::Value;
use sk_core::{Gvk, ObjectKey, ObjectRef, SimDuration, SimTime, SmolStr, TemplateId};
use sk_store::trace::{NodeEvent, Row};

use super::pods::Requests;
use super::random::Draw;
use super::spec::GenerateSpec;
use batch::Cron;
use fleet::{Fleet, MachineId};
use live::{End, Live, Revision};
use workload::Workload;

/// An ordered node is removed after this long without pods, like the autoscaler's `--scale-down-unneeded-time`.
const IDLE: SimDuration = SimDuration::from_mins(10);

/// The generated reality at one moment.
#[derive(Debug)]
pub(super) struct Reality {
    seed: u64,
    end: SimTime,
    due: BinaryHeap<Reverse<(SimTime, u64, Due)>>,
    planned: u64,
    fleet: Fleet,
    /// Deployments by their place, and StatefulSets.
    deployments: Vec<Workload>,
    stateful_sets: Vec<Workload>,
    daemons: Vec<Daemon>,
    /// Daemons' pods, by machine.
    daemon_pods: Vec<Vec<Live>>,
    crons: Vec<Cron>,
    rows: Vec<Row>,
    /// How many owners have emitted their remaining pods, at the end.
    told: usize,
}

/// What may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A pod leaves its machine.
    Free(MachineId, Requests),
    /// An ordered machine is there.
    Come(MachineId),
    Drain(MachineId),
    Gone(MachineId),
    /// An ordered machine may have been idle for long enough.
    Idle(MachineId),
    /// The Deployment at this place goes on with its rollout.
    Settle(usize),
    /// A pod of a StatefulSet is made anew.
    Restart(usize, u32),
    Fire(usize),
}

/// A DaemonSet.
#[derive(Debug)]
struct Daemon {
    owner: ObjectRef,
    revision: Arc<Revision>,
    draw: Draw,
}

impl Reality {
    /// Of a cluster with these objects, at its beginning; nothing if it has no nodes. The nodes are emitted.
    pub(super) fn begin(spec: &GenerateSpec, objects: &[Value]) -> Option<Self> {
        let machines = spec.platform.as_ref().map_or(0, |platform| platform.machines);
        if machines == 0 {
            return None;
        }
        let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
        let daemons = || of_kind("DaemonSet");
        let requests = daemons().map(|object| Requests::of_template(&object["spec"]["template"]));
        let mut reality = Self {
            seed: spec.seed,
            end: spec.start + spec.duration,
            due: BinaryHeap::new(),
            planned: 0,
            fleet: Fleet::new(spec.seed, spec.start, requests),
            deployments: Vec::new(),
            stateful_sets: Vec::new(),
            daemons: daemons().map(|object| Daemon::new(spec.seed, object)).collect(),
            daemon_pods: Vec::new(),
            crons: Vec::new(),
            rows: Vec::new(),
            told: 0,
        };
        (0..machines).for_each(|_| reality.fleet.begin());
        reality.announce(spec.start);
        of_kind("StatefulSet").for_each(|object| reality.begin_stateful_set(spec.start, object));
        Some(reality)
    }

    /// What was emitted since the last call.
    pub(super) fn take_rows(&mut self) -> impl Iterator<Item = Row> {
        self.rows.drain(..)
    }

    /// Does the next thing that is due by then; is there one?
    pub(super) fn step(&mut self, by: SimTime) -> bool {
        if self.due.peek().is_none_or(|Reverse((at, ..))| *at > by) {
            return false;
        }
        if let Some(Reverse((at, _, due))) = self.due.pop() {
            self.perform(at, due);
        }
        true
    }

    fn perform(&mut self, at: SimTime, due: Due) {
        match due {
            Due::Free(machine, requests) => {
                self.fleet.free(machine, requests, at);
                self.plan_idle(at, machine);
            }
            Due::Come(machine) => {
                self.fleet.come(machine);
                self.come(at, machine);
                self.plan_idle(at, machine);
            }
            Due::Drain(machine) => self.drain(at, machine),
            Due::Gone(machine) => {
                self.remove(at, machine);
                self.fleet.succeed(machine, at);
                self.announce(at);
            }
            Due::Idle(machine) => self.remove_if_idle(at, machine),
            Due::Settle(place) => self.settle(at, place),
            Due::Restart(set, ordinal) => self.restart(at, set, ordinal),
            Due::Fire(cron) => self.fire(at, cron),
        }
    }

    fn plan(&mut self, at: SimTime, due: Due) {
        if at < self.end {
            self.planned += 1;
            self.due.push(Reverse((at, self.planned, due)));
        }
    }

    /// Machines that were added are there, or will be.
    fn announce(&mut self, at: SimTime) {
        for machine in self.fleet.take_new() {
            self.daemon_pods.push(Vec::new());
            let ready = self.fleet.machine(machine).ready;
            if ready > at {
                self.plan(ready, Due::Come(machine));
            } else {
                self.come(at, machine);
            }
        }
    }

    fn come(&mut self, at: SimTime, machine: MachineId) {
        self.tell_node(at, machine, true);
        for daemon in &mut self.daemons {
            let name = format!("{}-{}", daemon.owner.key.name, daemon.draw.suffix());
            let pod = Live::on(at, (name.into(), &daemon.revision), machine, &self.fleet, &mut daemon.draw);
            self.daemon_pods[machine as usize].push(pod);
        }
        let goes = self.fleet.machine(machine).goes;
        if let (Some(drained), Some(goes)) = (self.fleet.drained_at(machine), goes) {
            self.plan(drained, Due::Drain(machine));
            self.plan(goes, Due::Gone(machine));
        }
    }

    fn drain(&mut self, at: SimTime, machine: MachineId) {
        self.fleet.cordon(machine);
        self.tell_node(at, machine, true);
        for place in 0..self.deployments.len() {
            if self.evict_of_deployment(at, place, machine) {
                self.settle(at, place);
            }
        }
        (0..self.stateful_sets.len()).for_each(|set| self.evict_of_stateful_set(at, set, machine));
    }

    fn plan_idle(&mut self, at: SimTime, machine: MachineId) {
        let is_idle = |machine: &fleet::Machine| machine.is_ordered && machine.guests == 0;
        if is_idle(self.fleet.machine(machine)) {
            self.plan(at + IDLE, Due::Idle(machine));
        }
    }

    fn remove_if_idle(&mut self, at: SimTime, machine: MachineId) {
        let found = self.fleet.machine(machine);
        if found.guests == 0 && !found.is_gone && at.since(found.idle_since) >= IDLE {
            self.fleet.cordon(machine);
            self.remove(at, machine);
        }
    }

    /// A machine is gone, and its daemons with it.
    fn remove(&mut self, at: SimTime, machine: MachineId) {
        self.tell_node(at, machine, false);
        self.fleet.gone(machine);
        let pods = std::mem::take(&mut self.daemon_pods[machine as usize]);
        for (daemon, pod) in pods.into_iter().enumerate() {
            let end = pod.delete(at, &mut self.daemons[daemon].draw);
            let owner = self.daemons[daemon].owner.clone();
            self.tell_pod(&owner, &pod, end);
        }
    }

    fn tell_node(&mut self, at: SimTime, machine: MachineId, is_there: bool) {
        let node = self.fleet.machine(machine).name.clone();
        let object = is_there.then(|| self.fleet.node(machine));
        self.rows.push(Row::Node(NodeEvent { at, node, object }));
    }

    fn tell_pod(&mut self, owner: &ObjectRef, pod: &Live, end: End) {
        if let Some(mut observation) = pod.observation(owner, end, self.end) {
            observation.node = observation.scheduled.map(|_| self.fleet.machine(pod.machine).name.clone());
            self.rows.push(Row::Observation(observation));
        }
    }

    /// At the end: what is told of the pods of one more owner that are still there, in a recording that ends at `end`. Is
    /// there one?
    pub(super) fn tell_rest(&mut self, end: SimTime) -> bool {
        self.end = end;
        let (deployments, sets) = (self.deployments.len(), self.stateful_sets.len());
        let number = self.told;
        self.told += 1;
        if number < deployments + sets {
            let workload = match number.checked_sub(deployments) {
                Some(set) => &mut self.stateful_sets[set],
                None => &mut self.deployments[number],
            };
            let (owner, pods) = (workload.owner.clone(), std::mem::take(&mut workload.pods));
            pods.iter().for_each(|pod| self.tell_pod(&owner, pod, End::default()));
            return true;
        }
        let number = number - deployments - sets;
        if number < self.daemon_pods.len() {
            let pods = std::mem::take(&mut self.daemon_pods[number]);
            for (daemon, pod) in pods.iter().enumerate() {
                let owner = self.daemons[daemon].owner.clone();
                self.tell_pod(&owner, pod, End::default());
            }
            return true;
        }
        let number = number - self.daemon_pods.len();
        self.tell_rest_of_cron(number)
    }
}

impl Daemon {
    fn new(seed: u64, object: &Value) -> Self {
        let owner = reference(object);
        let draw = Draw::new(seed, &format!("pods of {owner}"));
        let revision = Arc::new(Revision { template: template_of(object), infix: SmolStr::default() });
        Self { owner, revision, draw }
    }
}

/// What a generated object is called.
fn reference(object: &Value) -> ObjectRef {
    let text = |place: &str| object.pointer(place).and_then(Value::as_str).unwrap_or_default();
    let gvk: Gvk = format!("{}.{}", text("/apiVersion"), text("/kind")).parse().expect("generated objects have kinds");
    ObjectRef::new(gvk, ObjectKey::namespaced(text("/metadata/namespace"), text("/metadata/name")))
}

fn template_of(object: &Value) -> TemplateId {
    let path = "/spec/template";
    TemplateId::of(path.parse().expect("it is a pointer"), &object["spec"]["template"])
}
