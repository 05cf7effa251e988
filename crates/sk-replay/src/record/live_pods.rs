//! The pods that are alive: what the rows of their lives need and their newest versions do not say. There are many, so each takes
//! little room.

use std::sync::Arc;

use sk_core::lookup::{Lookup, hash_of};
use sk_core::{ObjectKey, Resources, SimTime, SmolStr};
use sk_engine::api::{Object, ObjectId};
use sk_engine::kinds::{ConditionStatus, Pod, PodPhase};
use sk_record::{DecisionRow, EndedBy, Error, Explained, Outcome, PodRow, Writer};

use super::names::{NameId, Texts};
use super::{Nodes, write_name};

/// The pods that are alive, by name.
#[derive(Clone, Default)]
pub(super) struct LivePods {
    pods: Vec<Option<LivePod>>,
    free: Vec<u32>,
    places: Lookup<u32>,
    /// Where the pod of each of the engine's ids was last found: its next change mostly finds it there.
    by_id: Vec<u32>,
}

/// A pod's row in the making: what its newest version does not say.
#[derive(Clone)]
pub(super) struct LivePod {
    /// Its newest version, which also says where it is bound: that never changes.
    pub(super) object: Arc<Object>,
    /// What the top of its chain of controllers is called; `None`: it owns itself.
    pub(super) owner: Option<NameId>,
    created: SimTime,
    scheduled: Option<SimTime>,
    started: Option<SimTime>,
    finished: Option<SimTime>,
    group: Option<NameId>,
    /// Its node was seen, so that its group is known, or that it has none.
    is_grouped: bool,
    /// As it was created.
    cpu_m: i64,
    memory_bytes: i64,
    /// Few pods ever wait.
    pub(super) waited_for: Option<Box<SmolStr>>,
    pub(super) ended_by: Option<EndedBy>,
}

impl LivePods {
    pub(super) fn place(&self, key: &ObjectKey) -> Option<u32> {
        let is_it = |place: &u32| self.pods[*place as usize].as_ref().is_some_and(|pod| pod.object.key == *key);
        self.places.find(hash_of(key), is_it).copied()
    }

    /// The same, for whoever knows the object's id.
    pub(super) fn place_of(&self, id: Option<ObjectId>, object: &Object) -> Option<u32> {
        let noted = id.and_then(|id| self.by_id.get(id.index())).copied();
        let is_it = |place: &u32| {
            let pod = self.pods.get(*place as usize).and_then(Option::as_ref);
            pod.is_some_and(|pod| pod.object.uid == object.uid)
        };
        noted.filter(is_it).or_else(|| self.place(&object.key))
    }

    pub(super) fn find(&self, key: &ObjectKey) -> Option<&LivePod> {
        self.pods[self.place(key)? as usize].as_ref()
    }

    pub(super) fn note(&mut self, id: Option<ObjectId>, place: u32) {
        let Some(id) = id else { return };
        if self.by_id.len() <= id.index() {
            self.by_id.resize(id.index() + 1, u32::MAX);
        }
        self.by_id[id.index()] = place;
    }

    pub(super) fn add(&mut self, pod: LivePod) -> u32 {
        let hash = hash_of(&pod.object.key);
        let place = match self.free.pop() {
            Some(place) => {
                self.pods[place as usize] = Some(pod);
                place
            }
            None => {
                self.pods.push(Some(pod));
                u32::try_from(self.pods.len() - 1).expect("a cluster holds at most sk_core::limits::MAX_OBJECTS")
            }
        };
        let pods = &self.pods;
        let rehash = |place: &u32| pods[*place as usize].as_ref().map_or(0, |pod| hash_of(&pod.object.key));
        self.places.insert(hash, place, rehash);
        place
    }

    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut LivePod> {
        self.pods[place as usize].as_mut()
    }

    pub(super) fn remove(&mut self, place: u32) -> Option<LivePod> {
        let pod = self.pods[place as usize].take()?;
        self.places.remove(hash_of(&pod.object.key), |known| *known == place);
        self.free.push(place);
        Some(pod)
    }

    /// All of them, mostly in the order in which they came.
    pub(super) fn into_all(self) -> impl Iterator<Item = LivePod> {
        self.pods.into_iter().flatten()
    }
}

impl LivePod {
    pub(super) fn new(object: &Arc<Object>, requests: &Resources, at: SimTime, owner: Option<NameId>) -> Self {
        Self {
            object: object.clone(),
            owner,
            created: at,
            scheduled: None,
            started: None,
            finished: None,
            group: None,
            is_grouped: false,
            cpu_m: requests.cpu_milli,
            memory_bytes: requests.memory,
            waited_for: None,
            ended_by: None,
        }
    }

    /// The scheduler's word on the pod, as it stands in the pod itself, if it is news.
    pub(super) fn decide(&mut self, at: SimTime, pod: &Pod) -> Option<Outcome> {
        if self.scheduled.is_some() {
            return None;
        }
        if pod.node_name.is_some() {
            self.scheduled = Some(at);
            return Some(Outcome::Scheduled);
        }
        let refused = pod.status.condition("PodScheduled").filter(|c| c.status == ConditionStatus::False)?;
        if self.waited_for() == Some(refused.message()) {
            return None;
        }
        self.waited_for = Some(Box::new(refused.message().into()));
        Some(Outcome::Unschedulable)
    }

    pub(super) fn push_decision(
        &self,
        time: SimTime,
        outcome: Outcome,
        explained: &Explained,
        (names, own_name): (&Texts, &mut String),
        writer: &mut Writer,
    ) -> Result<(), Error> {
        let Explained { evaluated, feasible, scores, victims } = explained;
        writer.push_decision(&DecisionRow {
            time,
            namespace: self.object.key.namespace_or_empty(),
            pod: &self.object.key.name,
            owner: self.owner_name(names, own_name),
            outcome,
            node: self.node(),
            message: self.waited_for().filter(|_| outcome == Outcome::Unschedulable),
            explained: Explained {
                evaluated: *evaluated,
                feasible: *feasible,
                scores: scores.as_deref(),
                victims: victims.as_deref(),
            },
        })
    }

    /// Why the scheduler last refused it.
    pub(super) fn waited_for(&self) -> Option<&str> {
        self.waited_for.as_ref().map(|message| message.as_str())
    }

    /// Where it was bound.
    pub(super) fn node(&self) -> Option<&str> {
        self.object.pod().and_then(|pod| pod.node_name.as_deref())
    }

    /// `namespace/Kind/name`; written into `own_name` if it is the pod's own.
    pub(super) fn owner_name<'a>(&self, names: &'a Texts, own_name: &'a mut String) -> &'a str {
        match self.owner {
            Some(owner) => names.get(owner),
            None => {
                own_name.clear();
                write_name(own_name, &self.object.key, &self.object.gvk.kind);
                own_name
            }
        }
    }

    pub(super) fn see(&mut self, at: SimTime, pod: &Pod, nodes: &Nodes, names: &mut Texts) {
        self.name_group(nodes, names);
        if pod.status.phase != PodPhase::Pending {
            self.started = self.started.or(pod.status.started);
        }
        if pod.status.phase.is_final() {
            self.finished = self.finished.or(pod.status.finished).or(Some(at));
            self.ended_by.get_or_insert_with(|| end_of(pod));
        }
    }

    /// Says which group the pod's node is of. Each time the pod is seen, until it is known: on a cluster nodes and pods
    /// are two watches, and a pod may be seen on a new node before that node is.
    pub(super) fn name_group(&mut self, nodes: &Nodes, names: &mut Texts) {
        if !self.is_grouped
            && let Some(node) = self.node().and_then(|name| nodes.get(name))
        {
            self.is_grouped = true;
            self.group = node.group.as_deref().map(|group| names.intern(group));
        }
    }

    /// Writes its row.
    pub(super) fn push(
        &self,
        deleted: Option<SimTime>,
        names: &Texts,
        own_name: &mut String,
        writer: &mut Writer,
    ) -> Result<(), Error> {
        writer.push_pod(&PodRow {
            namespace: self.object.key.namespace_or_empty(),
            name: &self.object.key.name,
            uid: self.object.uid.text().as_str(),
            owner: self.owner_name(names, own_name),
            created: self.created,
            scheduled: self.scheduled,
            started: self.started,
            finished: self.finished,
            deleted,
            node: self.node(),
            group: self.group.map(|group| names.get(group).as_str()),
            cpu_m: self.cpu_m,
            memory_bytes: self.memory_bytes,
            phase: self.object.pod().map_or("", |pod| pod.status.phase.as_str()),
            waited_for: self.waited_for(),
            ended_by: self.ended_by,
        })
    }
}

/// How a pod came to its end. One that the pod garbage collector has given up counts as failed there, and did nothing wrong.
fn end_of(pod: &Pod) -> EndedBy {
    let is_given_up = || pod.status.condition("DisruptionTarget").is_some_and(|why| why.reason() == "DeletionByPodGC");
    match pod.status.phase {
        PodPhase::Failed if is_given_up() => EndedBy::NodeLost,
        PodPhase::Failed => EndedBy::Failed,
        PodPhase::Succeeded | PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => EndedBy::Finished,
    }
}
