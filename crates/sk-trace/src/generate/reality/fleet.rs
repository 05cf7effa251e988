//! The nodes of a generated cluster: the free capacity of each, the placement of pods, and nodes that come and go.
//!
//! A node is replaced after about a month: it is cordoned, drained and deleted. If a pod fits on no node, another node is
//! ordered, as an autoscaler does; it arrives a minute or two later, and is deleted after ten minutes without pods. So every
//! pod is placed sooner or later, and when and where is known as soon as the pod is created.

use sk_core::{SimDuration, SimTime, SmolStr};

use crate::generate::platform::{self, Pool};
use crate::generate::pods::Requests;
use crate::generate::random::Draw;

/// How many machines are drawn for a pod; the best of those that have room takes it. kube-scheduler looks at a sample too.
const TRIES: usize = 8;
/// How many are looked at one by one if none of these has room: a pod costs no more than a millisecond in any fleet.
const MAX_LOOKED_AT: usize = 4_096;
/// How long before it goes a machine is cordoned and drained.
const DRAIN: SimDuration = SimDuration::from_mins(5);
/// The mean lifetime of a node, and the minimum.
const REPLACED_AFTER: SimDuration = SimDuration::from_mins(60 * 24 * 30);
const LEAST_LIFE: SimDuration = SimDuration::from_mins(60);
/// An ordered node is ready after this long: the start of a virtual machine and of a kubelet.
const ORDERED_READY_S: (u64, u64) = (60, 120);

/// A machine's place in the fleet.
pub(super) type MachineId = u32;

/// What a pod needs of a machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) requests: Requests,
    pub(super) pool: Pool,
    /// Must it stand alone among its siblings?
    pub(super) apart: bool,
    /// When it ends, if that is known. It does not go where it would be drained before that.
    pub(super) until: Option<SimTime>,
}

/// Where a pod goes.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) machine: MachineId,
    /// What the scheduler says until the machine is there, if it is not.
    pub(super) says: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) name: SmolStr,
    number: u32,
    generation: u32,
    pool: Pool,
    zone: usize,
    free: Requests,
    free_pods: u32,
    /// Pods that are no daemons.
    pub(super) guests: u32,
    /// When the last of them went, or when it came.
    pub(super) idle_since: SimTime,
    /// Since when there is a Node: before the oldest pod, or since it is ready.
    created: SimTime,
    pub(super) ready: SimTime,
    /// When it is gone; an ordered one goes when it is idle.
    pub(super) goes: Option<SimTime>,
    pub(super) is_ordered: bool,
    is_cordoned: bool,
    pub(super) is_gone: bool,
    draw: Draw,
}

/// All machines.
#[derive(Debug)]
pub(super) struct Fleet {
    machines: Vec<Machine>,
    /// Those that take pods, by pool.
    standing: [Vec<MachineId>; 2],
    /// Those that are ordered and not there yet.
    coming: Vec<MachineId>,
    /// Those that were not emitted yet.
    new: Vec<MachineId>,
    next_number: u32,
    /// What daemons take of each, and how many they are.
    daemons: (Requests, u32),
    start: SimTime,
    seed: u64,
    draw: Draw,
}

impl Fleet {
    /// Nothing, from `start` on; these daemons will run on every machine.
    pub(super) fn new(seed: u64, start: SimTime, daemons: impl Iterator<Item = Requests>) -> Self {
        let none = (Requests { cpu_milli: 0, memory: 0 }, 0);
        let daemons = daemons.fold(none, |(sum, count), one| (sum.plus(one), count + 1));
        Self {
            machines: Vec::new(),
            standing: [Vec::new(), Vec::new()],
            coming: Vec::new(),
            new: Vec::new(),
            next_number: 0,
            daemons,
            start,
            seed,
            draw: Draw::new(seed, "places"),
        }
    }

    /// The machines that were added since it was last asked.
    pub(super) fn take_new(&mut self) -> Vec<MachineId> {
        std::mem::take(&mut self.new)
    }

    /// When the trace begins: what is made then has been there for a while.
    pub(super) fn start(&self) -> SimTime {
        self.start
    }

    pub(super) fn machine(&self, id: MachineId) -> &Machine {
        &self.machines[id as usize]
    }

    /// The next machine that is there from the beginning.
    pub(super) fn begin(&mut self) {
        let number = self.next_number;
        self.next_number += 1;
        let draw = Draw::new(self.seed, &format!("machine {number}"));
        self.add(number, 0, Pool::of_machine(number), self.start, draw, false);
    }

    /// The machine that takes the place of one that has gone.
    pub(super) fn succeed(&mut self, id: MachineId, at: SimTime) {
        let old = self.machine(id);
        let (number, generation, pool, draw) = (old.number, old.generation + 1, old.pool, old.draw.clone());
        self.add(number, generation, pool, at, draw, false);
    }

    fn add(
        &mut self,
        number: u32,
        generation: u32,
        pool: Pool,
        ready: SimTime,
        mut draw: Draw,
        is_ordered: bool,
    ) -> MachineId {
        let id = self.machines.len() as MachineId;
        let goes = (!is_ordered).then(|| ready + draw.wait(REPLACED_AFTER).max(LEAST_LIFE));
        self.machines.push(Machine {
            name: platform::machine_name(number, generation),
            number,
            generation,
            pool,
            zone: platform::zone(number),
            free: platform::ALLOCATABLE.minus(self.daemons.0),
            free_pods: platform::ALLOCATABLE_PODS.saturating_sub(self.daemons.1),
            guests: 0,
            idle_since: ready,
            created: if ready <= self.start { self.begun(number) } else { ready },
            ready,
            goes,
            is_ordered,
            is_cordoned: false,
            is_gone: false,
            draw,
        });
        let list = if ready > self.start && is_ordered { &mut self.coming } else { &mut self.standing[pool as usize] };
        list.push(id);
        self.new.push(id);
        id
    }

    /// An ordered machine is there.
    pub(super) fn come(&mut self, id: MachineId) {
        self.coming.retain(|coming| *coming != id);
        let pool = self.machine(id).pool;
        self.standing[pool as usize].push(id);
    }

    /// Takes no more pods.
    pub(super) fn cordon(&mut self, id: MachineId) {
        self.machines[id as usize].is_cordoned = true;
        let pool = self.machine(id).pool;
        self.standing[pool as usize].retain(|standing| *standing != id);
    }

    /// The node is deleted.
    pub(super) fn gone(&mut self, id: MachineId) {
        self.machines[id as usize].is_gone = true;
    }

    /// When a machine has to be drained, if that is known.
    pub(super) fn drained_at(&self, id: MachineId) -> Option<SimTime> {
        self.machine(id).goes.map(|goes| goes - DRAIN)
    }

    /// The Node as it is now.
    pub(super) fn node(&self, id: MachineId) -> serde_json::Value {
        let machine = self.machine(id);
        let place = (machine.number, machine.pool);
        platform::node(&machine.name, place, machine.created, machine.is_cordoned)
    }

    /// When a machine that stands at the beginning was made: longer ago than any pod on it.
    fn begun(&self, number: u32) -> SimTime {
        let days = Draw::new(self.seed, &format!("age of machine {number}")).between(21, 60);
        self.start - SimDuration::from_mins(days as i64 * 24 * 60)
    }

    fn take(&mut self, id: MachineId, requests: Requests) {
        let machine = &mut self.machines[id as usize];
        machine.free = machine.free.minus(requests);
        machine.free_pods = machine.free_pods.saturating_sub(1);
        machine.guests += 1;
    }

    /// A pod has left.
    pub(super) fn free(&mut self, id: MachineId, requests: Requests, at: SimTime) {
        let machine = &mut self.machines[id as usize];
        machine.free = machine.free.plus(requests);
        machine.free_pods += 1;
        machine.guests = machine.guests.saturating_sub(1);
        machine.idle_since = at;
    }

    /// Finds a place for a pod, and takes it. `siblings` are the machines of its owner's other pods.
    pub(super) fn place(&mut self, at: SimTime, need: &Need, siblings: &[MachineId]) -> Place {
        let found = self.among_some(need, siblings).or_else(|| self.among_all(need, siblings));
        let (machine, says) = match found {
            Some(machine) => (machine, None),
            None => {
                let says = Some(self.refusal(need));
                let coming = self.coming.iter().copied().find(|id| self.fits(*id, need, siblings));
                (coming.unwrap_or_else(|| self.order(need.pool, at)), says)
            }
        };
        self.take(machine, need.requests);
        let ready = self.machine(machine).ready;
        Place { machine, says: says.filter(|_| ready > at) }
    }

    /// One more machine. What was ordered before the clock began is there.
    fn order(&mut self, pool: Pool, at: SimTime) -> MachineId {
        let number = self.next_number;
        self.next_number += 1;
        let mut draw = Draw::new(self.seed, &format!("machine {number}"));
        let (low, high) = ORDERED_READY_S;
        let wait = if at <= self.start { 0 } else { draw.between(low, high) };
        self.add(number, 0, pool, at + SimDuration::from_secs(wait as i64), draw, true)
    }

    fn among_some(&mut self, need: &Need, siblings: &[MachineId]) -> Option<MachineId> {
        let standing = self.standing[need.pool as usize].len() as u64;
        if standing == 0 {
            return None;
        }
        let drawn: [MachineId; TRIES] =
            std::array::from_fn(|_| self.standing[need.pool as usize][self.draw.below(standing) as usize]);
        self.best(drawn.into_iter(), need, siblings)
    }

    fn among_all(&self, need: &Need, siblings: &[MachineId]) -> Option<MachineId> {
        // The newest have most room.
        self.best(self.standing[need.pool as usize].iter().rev().take(MAX_LOOKED_AT).copied(), need, siblings)
    }

    /// Where machines stay first, so that ordered ones can go again; then apart from its siblings, then in another zone, then
    /// where most is left.
    fn best(
        &self,
        machines: impl Iterator<Item = MachineId>,
        need: &Need,
        siblings: &[MachineId],
    ) -> Option<MachineId> {
        let mut in_zone = [0_u32; platform::ZONES];
        siblings.iter().for_each(|id| in_zone[self.machine(*id).zone] += 1);
        let crowd = |id: MachineId| siblings.iter().filter(|sibling| **sibling == id).count();
        machines.filter(|id| self.fits(*id, need, siblings)).min_by_key(|id| {
            let machine = self.machine(*id);
            (machine.is_ordered, crowd(*id), in_zone[machine.zone], -machine.free.cpu_milli, *id)
        })
    }

    fn fits(&self, id: MachineId, need: &Need, siblings: &[MachineId]) -> bool {
        let machine = self.machine(id);
        let stays = |until: SimTime| self.drained_at(id).is_none_or(|drained| until < drained);
        machine.pool == need.pool
            && !machine.is_cordoned
            && machine.free.cpu_milli >= need.requests.cpu_milli
            && machine.free.memory >= need.requests.memory
            && machine.free_pods > 0
            && need.until.is_none_or(stays)
            && !(need.apart && siblings.contains(&id))
    }

    /// What kube-scheduler says if no machine fits: the untolerated taints of the other pool, and the resource of which there is
    /// too little (the lesser reasons are left out).
    fn refusal(&self, need: &Need) -> String {
        let [general, stateful] = [Pool::General, Pool::Stateful].map(|pool| self.standing[pool as usize].len());
        let all = general + stateful;
        match need.pool {
            Pool::General if stateful > 0 => format!(
                "0/{all} nodes are available: {stateful} node(s) had untolerated taint(s), {general} Insufficient cpu."
            ),
            Pool::General => format!("0/{all} nodes are available: {general} Insufficient cpu."),
            Pool::Stateful if general > 0 => format!(
                "0/{all} nodes are available: {general} node(s) didn't match Pod's node affinity/selector, {stateful} Insufficient cpu."
            ),
            Pool::Stateful => format!("0/{all} nodes are available: {stateful} Insufficient cpu."),
        }
    }
}
