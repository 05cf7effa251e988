//! Pods, their nodes, and nominations.

use std::collections::BTreeMap;

use sk_core::{SimTime, SmolStr};

use super::Cluster;
use super::classes::Freed;
use super::log::Change;
use crate::ids::{ClassId, NodeId, PodId};

/// A pod.
#[derive(Clone, Debug)]
pub struct Pod {
    /// What it is like.
    pub class: ClassId,
    /// Its name, without the namespace.
    pub name: SmolStr,
    /// `status.startTime`.
    pub started: Option<SimTime>,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// Its condition `DisruptionTarget` says that a scheduler preempts it.
    pub preempted: bool,
    /// `status.nominatedNodeName` as last seen.
    pub nominated: Option<NodeId>,
    node: Option<NodeId>,
}

impl Pod {
    /// Where it is counted: bound or assumed.
    pub fn node(&self) -> Option<NodeId> {
        self.node
    }
}

/// All pods.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pods {
    pods: Vec<Option<Pod>>,
    free: Vec<PodId>,
    /// By node. A pod that goes is replaced by the last one, as `removeFromSlice` does (`framework/types.go`); the order
    /// decides between victims that are alike.
    pub(crate) on: Vec<Vec<PodId>>,
    /// How many are on nodes, by class and in all.
    of_class: Vec<u32>,
    pub(crate) on_nodes: usize,
    /// Pods on nodes whose class has affinity terms, by class.
    pub(crate) with_terms: BTreeMap<ClassId, u32>,
    /// Every class with affinity terms that was ever on a node and is still held, in that order.
    pub(crate) term_classes: Vec<ClassId>,
    /// Pods on nodes, by priority.
    by_priority: BTreeMap<i32, u32>,
    journal: Option<Vec<Step>>,
}

/// For which nodes pods are nominated, in the order of nomination (`backend/queue/nominator.go`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Nominations {
    pub(crate) by_node: BTreeMap<NodeId, Vec<PodId>>,
    by_pod: BTreeMap<PodId, NodeId>,
    /// Counts changes.
    pub(crate) version: u64,
}

impl Nominations {
    /// The node's slot may be given to another.
    pub(super) fn forget_node(&mut self, node: NodeId) {
        self.version += 1;
        for pod in self.by_node.remove(&node).into_iter().flatten() {
            self.by_pod.remove(&pod);
        }
    }
}

/// What [`Cluster::rollback`] undoes.
#[derive(Clone, Copy, Debug)]
enum Step {
    Added { pod: PodId },
    Removed { pod: PodId, node: NodeId, index: usize },
}

/// A state to come back to.
#[derive(Debug)]
#[must_use = "a checkpoint is for rolling back to"]
pub struct Checkpoint {
    length: usize,
    outermost: bool,
}

impl Pods {
    pub(crate) fn get(&self, pod: PodId) -> &Pod {
        self.pods[pod.index()].as_ref().expect("a PodId is used only while its pod lives")
    }

    fn get_mut(&mut self, pod: PodId) -> &mut Pod {
        self.pods[pod.index()].as_mut().expect("a PodId is used only while its pod lives")
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.pods.len() - self.free.len()
    }

    /// The class of each.
    pub(crate) fn classes(&self) -> impl Iterator<Item = ClassId> {
        self.pods.iter().flatten().map(|pod| pod.class)
    }

    /// Classes were freed that no pod has.
    pub(super) fn forget(&mut self, freed: &Freed) {
        self.with_terms.retain(|class, _| !freed.contains(*class));
        self.term_classes.retain(|class| !freed.contains(*class));
    }

    /// How many pods of a class are on nodes.
    pub(crate) fn of_class(&self, class: ClassId) -> u32 {
        self.of_class.get(class.index()).copied().unwrap_or(0)
    }

    fn count_in(&mut self, class: ClassId) {
        if self.of_class.len() <= class.index() {
            self.of_class.resize(class.index() + 1, 0);
        }
        self.of_class[class.index()] += 1;
        self.on_nodes += 1;
    }

    fn count_out(&mut self, class: ClassId) {
        self.of_class[class.index()] -= 1;
        self.on_nodes -= 1;
    }

    /// The index of a pod in the list of its node.
    fn place_on(&self, pod: PodId, node: NodeId) -> usize {
        let on = &self.on[node.index()];
        // The newest are at the end, and they are looked up most often.
        on.iter().rposition(|other| *other == pod).expect("a pod that has a node is listed there")
    }

    /// The lowest priority of any pod that is counted on a node.
    pub(crate) fn lowest_priority(&self) -> Option<i32> {
        self.by_priority.keys().next().copied()
    }

    fn record(&mut self, step: Step) {
        if let Some(journal) = &mut self.journal {
            journal.push(step);
        }
    }
}

impl Cluster {
    /// A pod that is nowhere yet.
    pub fn new_pod(&mut self, class: ClassId, name: impl Into<SmolStr>) -> PodId {
        let pod = Pod {
            class,
            name: name.into(),
            started: None,
            deleting: false,
            preempted: false,
            nominated: None,
            node: None,
        };
        match self.pods.free.pop() {
            Some(id) => {
                self.pods.pods[id.index()] = Some(pod);
                id
            }
            None => {
                self.pods.pods.push(Some(pod));
                PodId::from_index(self.pods.pods.len() - 1)
            }
        }
    }

    /// A pod that is gone from everywhere; its id may be given to another.
    pub fn drop_pod(&mut self, pod: PodId) {
        self.remove_pod(pod);
        self.withdraw(pod);
        self.pods.pods[pod.index()] = None;
        self.pods.free.push(pod);
    }

    /// A pod.
    ///
    /// # Panics
    /// If the pod was dropped.
    pub fn pod(&self, pod: PodId) -> &Pod {
        self.pods.get(pod)
    }

    /// The pods counted on a node.
    pub fn pods_on(&self, node: NodeId) -> &[PodId] {
        &self.pods.on[node.index()]
    }

    /// Counts a pod on a node: bound, assumed or supposed. A pod that is elsewhere moves.
    pub fn add_pod(&mut self, pod: PodId, node: NodeId) {
        self.remove_pod(pod);
        self.enter(pod, node);
        self.pods.on[node.index()].push(pod);
        self.pods.record(Step::Added { pod });
    }

    /// Counts a pod out; where it was, if anywhere.
    pub fn remove_pod(&mut self, pod: PodId) -> Option<NodeId> {
        let node = self.pods.get(pod).node?;
        let index = self.pods.place_on(pod, node);
        self.pods.on[node.index()].swap_remove(index);
        self.leave(pod, node);
        self.pods.record(Step::Removed { pod, node, index });
        Some(node)
    }

    /// The pod's object changed: Kubernetes takes it out and puts it in again, so it is the last on its node. What is
    /// counted there changes only with its class, so otherwise nothing is counted, and hardly anything logged.
    pub fn update_pod(&mut self, pod: PodId, change: impl FnOnce(&mut Pod)) {
        let entry = self.pods.get_mut(pod);
        let (node, class, deleting) = (entry.node, entry.class, entry.deleting);
        change(entry);
        let Some(node) = node else { return };
        if entry.class == class {
            let live = i8::from(deleting) - i8::from(entry.deleting);
            self.move_to_end(pod, node, live);
            return;
        }
        let after = (entry.class, entry.deleting);
        (entry.class, entry.deleting) = (class, deleting);
        self.remove_pod(pod);
        let entry = self.pods.get_mut(pod);
        (entry.class, entry.deleting) = after;
        self.add_pod(pod, node);
    }

    fn move_to_end(&mut self, pod: PodId, node: NodeId, live: i8) {
        let index = self.pods.place_on(pod, node);
        let on = &mut self.pods.on[node.index()];
        on.swap_remove(index);
        on.push(pod);
        self.pods.record(Step::Removed { pod, node, index });
        self.pods.record(Step::Added { pod });
        // Kubernetes looks afresh at the images of a node on which anything was written.
        if live != 0 || !self.images.is_empty() {
            self.log_pod(node, self.pods.get(pod).class, 0, live);
        }
    }

    fn enter(&mut self, pod: PodId, node: NodeId) {
        let entry = self.pods.get_mut(pod);
        entry.node = Some(node);
        let (class, live) = (entry.class, i8::from(!entry.deleting));
        if self.class(class).affinity.has_terms() {
            if !self.pods.with_terms.contains_key(&class) {
                self.pods.term_classes.push(class);
                self.learn_keys(class);
            }
            *self.pods.with_terms.entry(class).or_insert(0) += 1;
        }
        *self.pods.by_priority.entry(self.classes.get(class).priority).or_insert(0) += 1;
        self.pods.count_in(class);
        self.count(node, class, 1);
        self.log_pod(node, class, 1, live);
    }

    fn leave(&mut self, pod: PodId, node: NodeId) {
        let entry = self.pods.get_mut(pod);
        entry.node = None;
        let (class, live) = (entry.class, -i8::from(!entry.deleting));
        if let Some(count) = self.pods.with_terms.get_mut(&class) {
            *count -= 1;
        }
        let priority = self.classes.get(class).priority;
        if let Some(count) = self.pods.by_priority.get_mut(&priority) {
            *count -= 1;
            if *count == 0 {
                self.pods.by_priority.remove(&priority);
            }
        }
        self.pods.count_out(class);
        self.count(node, class, -1);
        self.log_pod(node, class, -1, live);
    }

    /// Pods on a node without an object are not counted by anybody: when the node comes back, all is counted anew.
    fn log_pod(&mut self, node: NodeId, class: ClassId, by: i8, live: i8) {
        let change = if self.is_live(node) { Change::Pod { node, class, by, live } } else { Change::Node { node } };
        self.log.push(change, self.columns.len());
    }

    /// Remembers the state of all pods.
    pub fn checkpoint(&mut self) -> Checkpoint {
        let outermost = self.pods.journal.is_none();
        let length = self.pods.journal.get_or_insert_with(Vec::new).len();
        Checkpoint { length, outermost }
    }

    /// Undoes every [`Self::add_pod`] and [`Self::remove_pod`] since.
    #[expect(clippy::needless_pass_by_value, reason = "a checkpoint is good for one rollback")]
    pub fn rollback(&mut self, to: Checkpoint) {
        let mut journal = self.pods.journal.take().unwrap_or_default();
        while journal.len() > to.length {
            match journal.pop() {
                Some(Step::Added { pod }) => {
                    let node = self.pods.get(pod).node.expect("an added pod has a node");
                    let last = self.pods.on[node.index()].pop();
                    debug_assert_eq!(last, Some(pod), "steps are undone in reverse");
                    self.leave(pod, node);
                }
                Some(Step::Removed { pod, node, index }) => {
                    let on = &mut self.pods.on[node.index()];
                    on.push(pod);
                    let last = on.len() - 1;
                    on.swap(index, last);
                    self.enter(pod, node);
                }
                None => break,
            }
        }
        if !to.outermost {
            self.pods.journal = Some(journal);
        }
    }

    /// Keeps what was done since the checkpoint.
    #[expect(clippy::needless_pass_by_value, reason = "a checkpoint is good for one use")]
    pub fn commit(&mut self, checkpoint: Checkpoint) {
        if checkpoint.outermost {
            self.pods.journal = None;
        }
    }

    /// Nominates a pod for a node in place of any other nomination.
    pub fn nominate(&mut self, pod: PodId, node: NodeId) {
        self.withdraw(pod);
        self.nominations.version += 1;
        self.nominations.by_node.entry(node).or_default().push(pod);
        self.nominations.by_pod.insert(pod, node);
    }

    /// Takes a pod's nomination back; for which node it was.
    pub fn withdraw(&mut self, pod: PodId) -> Option<NodeId> {
        let node = self.nominations.by_pod.remove(&pod)?;
        self.nominations.version += 1;
        if let Some(pods) = self.nominations.by_node.get_mut(&node) {
            pods.retain(|other| *other != pod);
            if pods.is_empty() {
                self.nominations.by_node.remove(&node);
            }
        }
        Some(node)
    }

    /// The pods that are nominated for a node.
    pub fn nominated_for(&self, node: NodeId) -> &[PodId] {
        self.nominations.by_node.get(&node).map_or(&[], Vec::as_slice)
    }

    /// The pods of lower priority than this one that are nominated for a node: whoever makes room there takes their
    /// nomination from them (`preemption/executor.go`, `getLowerPriorityNominatedPods`).
    pub fn nominations_below(&self, pod: PodId, node: NodeId) -> Vec<PodId> {
        let priority = self.class_of(pod).priority;
        self.nominated_for(node).iter().copied().filter(|other| self.class_of(*other).priority < priority).collect()
    }

    /// For which node a pod is nominated.
    pub fn nomination(&self, pod: PodId) -> Option<NodeId> {
        self.nominations.by_pod.get(&pod).copied()
    }
}
