//! The autoscaler's snapshot of the cluster. A loop reads only what changed since the loop before.
//!
//! Nodes are updated change by change. For pods the view only notes that they changed ([`Unread`]) and reads them when
//! a loop needs them ([`View::catch_up`]), so a pod that came and went between two loops costs almost nothing.
//!
//! The view also keeps nodes and pods in a scheduler of its own, which answers what would fit where. It leaves out
//! expendable pods: they neither use capacity nor block the removal of their node.

mod facts;

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::directives::NODE_GROUP;
use sk_apiserver::kinds::Pod;
use sk_apiserver::{self as api, Change, Object, ObjectId, WatchEvent};
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr, Taint};
use sk_scheduler::{ClassId, Cluster, NodeId, NodeSpec, PodClass, PodId, Scheduler};

use super::flags::Autoscaler;
use super::hopeless::Hopeless;
use super::listers::Listers;
use super::rules::Rule;
use super::{SOFT_TAINT, TO_BE_DELETED};
use crate::classes::{self, Classes};
use crate::kubelet::NOT_READY;
use crate::settings::NodeGroup;

/// The picture.
#[derive(Clone)]
pub(super) struct View {
    /// The groups by name.
    groups: BTreeMap<SmolStr, usize>,
    /// Pods of lower priority are expendable.
    cutoff: i32,
    /// Pods that have ended count as well, because a test wants that.
    with_ended: bool,
    /// All nodes.
    pub(super) nodes: BTreeMap<SmolStr, NodeView>,
    /// Pods the scheduler found no place for, oldest first.
    pub(super) pending: BTreeMap<(SimTime, ObjectKey), PodView>,
    /// Asked what would fit where.
    pub(super) what_if: Scheduler,
    pub(super) classes: Classes,
    /// Disruption budgets and DaemonSets.
    pub(super) listers: Listers,
    /// Pods by the object's id, as they were last looked at.
    known: Vec<Option<Arc<Object>>>,
    unread: Unread,
    /// Counts the changes that a decision could depend on.
    changes: u64,
    /// Classes of waiting pods that fit on no node.
    pub(super) hopeless: Hopeless,
}

/// Pods that have changed since they were last looked at, in the order in which they came or were bound.
#[derive(Clone, Debug, Default)]
struct Unread {
    entries: Vec<(u64, ObjectId)>,
    /// By id: the number of its newest entry; 0: it has none.
    newest: Vec<u64>,
    made: u64,
}

impl Unread {
    /// Notes a change. One by which a pod gets its place puts it behind those that had theirs before.
    fn add(&mut self, id: ObjectId, is_new_place: bool) {
        if self.newest.len() <= id.index() {
            self.newest.resize(id.index() + 1, 0);
        }
        if self.newest[id.index()] != 0 && !is_new_place {
            return;
        }
        self.made += 1;
        self.newest[id.index()] = self.made;
        self.entries.push((self.made, id));
        // Half of them at least are out of date then.
        if self.entries.len() > 2 * self.newest.len() {
            let newest = &self.newest;
            self.entries.retain(|(number, id)| newest[id.index()] == *number);
        }
    }

    /// All of them, each once.
    fn take(&mut self) -> Vec<ObjectId> {
        let entries = std::mem::take(&mut self.entries);
        let is_newest = |(number, id): (u64, ObjectId)| {
            (self.newest[id.index()] == number).then(|| {
                self.newest[id.index()] = 0;
                id
            })
        };
        entries.into_iter().filter_map(is_newest).collect()
    }
}

/// A node with its pods counted in.
#[derive(Clone, Debug)]
pub(super) struct NodeView {
    pub(super) name: SmolStr,
    /// The group it belongs to, by index; `None`: the autoscaler leaves it alone.
    pub(super) group: Option<usize>,
    /// Since when it is ready.
    pub(super) ready: Option<SimTime>,
    pub(super) created: SimTime,
    is_deleting: bool,
    /// Its removal has begun; the mark on it may still be on its way.
    pub(super) leaving: bool,
    pub(super) taints: Taints,
    /// Annotated as not to be removed.
    pub(super) stays: bool,
    pub(super) id: NodeId,
    /// What is left for pods.
    pub(super) allocatable: Amount,
    pods: BTreeMap<ObjectKey, PodView>,
}

/// The autoscaler's own marks on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taints {
    pub(super) soft: bool,
    pub(super) to_be_deleted: bool,
}

/// CPU in thousandths and memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) cpu_milli: i64,
    pub(super) memory: i64,
}

/// A pod and what the scheduler calls it.
#[derive(Clone, Debug)]
pub(super) struct PodView {
    pub(super) object_id: ObjectId,
    pub(super) object: Arc<Object>,
    pub(super) id: PodId,
    pub(super) class: ClassId,
    pub(super) requests: Amount,
    pub(super) priority: i32,
    /// Of too low a priority to be helped or to be cared for.
    pub(super) expendable: bool,
    /// Which pods are tried together with it.
    pub(super) likeness: Likeness,
}

/// What a pod is to the autoscaler.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    /// Marked by the scheduler as fitting nowhere.
    Pending,
    /// Takes room on this node.
    On(SmolStr),
}

impl Amount {
    pub(super) fn plus(self, other: Self, times: i64) -> Self {
        Self {
            cpu_milli: self.cpu_milli.saturating_add(other.cpu_milli.saturating_mul(times)),
            memory: self.memory.saturating_add(other.memory.saturating_mul(times)),
        }
    }

    pub(super) fn of(spec: &NodeSpec) -> Self {
        Self { cpu_milli: spec.cpu, memory: spec.memory }
    }

    pub(super) fn sum(amounts: impl Iterator<Item = Self>) -> Self {
        amounts.fold(Self::default(), |sum, one| sum.plus(one, 1))
    }
}

impl View {
    pub(super) fn new(groups: &[NodeGroup], flags: &Autoscaler) -> Self {
        let follows = flags.follows(Rule::ExpendablePods);
        let cutoff = if follows { flags.expendable_pods_priority_cutoff } else { i32::MIN };
        Self { with_ended: !flags.follows(Rule::FinishedPodsAreGone), ..Self::empty(groups, cutoff) }
    }

    /// The same cluster seen with other flags.
    pub(super) fn again(&self, groups: &[NodeGroup], flags: &Autoscaler, view: api::View<'_>) -> Self {
        let mut anew = Self::new(groups, flags);
        anew.look_at_all(view);
        for (name, node) in &mut anew.nodes {
            node.leaving = self.nodes.get(name).is_some_and(|before| before.leaving);
        }
        anew
    }

    /// Takes in everything that is there.
    fn look_at_all(&mut self, view: api::View<'_>) {
        for (id, object) in view.everything() {
            if object.node().is_some() {
                self.learn_node(object, view);
            } else if object.pod().is_some() {
                self.unread.add(id, false);
            } else {
                self.learn_other(object, true);
            }
        }
        self.catch_up(view);
    }

    fn empty(groups: &[NodeGroup], cutoff: i32) -> Self {
        let groups = groups.iter().enumerate().map(|(index, group)| (group.name.clone(), index)).collect();
        Self {
            groups,
            cutoff,
            with_ended: false,
            nodes: BTreeMap::new(),
            pending: BTreeMap::new(),
            what_if: Scheduler::default(),
            classes: Classes::default(),
            listers: Listers::default(),
            known: Vec::new(),
            unread: Unread::default(),
            changes: 0,
            hopeless: Hopeless::default(),
        }
    }

    /// Takes in one change, of a pod only that there was one.
    pub(super) fn learn(&mut self, event: &WatchEvent, view: api::View<'_>) {
        let is_there = event.change != Change::Deleted;
        let object = &event.object;
        if object.node().is_some() {
            match is_there {
                true => self.learn_node(object, view),
                false => self.forget_node(&object.key.name),
            }
        } else if let Some(pod) = object.pod() {
            let had_place = || event.before.as_ref().and_then(|before| before.pod()?.node_name.as_ref()).is_some();
            self.unread.add(event.id, pod.node_name.is_some() && !had_place());
        } else {
            self.learn_other(object, is_there);
        }
    }

    /// Takes in what is neither a node nor a pod.
    fn learn_other(&mut self, object: &Object, is_there: bool) {
        if object.namespace().is_none() {
            self.changes += u64::from(self.listers.learn(object, is_there));
            return;
        }
        let labels = is_there.then(|| (*object.meta.labels).clone());
        let objects = &mut self.what_if.cluster.objects;
        if objects.namespaces().get(&object.key.name) != labels.as_ref() {
            objects.set_namespace(object.key.name.clone(), labels);
            self.changes += 1;
            // What a term of affinity selects namespaces by.
            self.hopeless.room_made();
        }
    }

    /// How many changes were taken in so far that a decision could depend on. Without one a loop finds what it found before.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// The removal of a node begins, or is over and the node stays.
    pub(super) fn set_leaving(&mut self, name: &SmolStr, leaving: bool) {
        if let Some(node) = self.nodes.get_mut(name) {
            node.leaving = leaving;
            self.changes += 1;
            self.hopeless.room_made();
        }
    }

    /// Looks at the pods that have changed. The view is that of the newest change taken in.
    pub(super) fn catch_up(&mut self, view: api::View<'_>) {
        // Nobody holds a class between two loops but the pods.
        self.classes.free_unused(&mut self.what_if, std::iter::empty);
        let unread = self.unread.take();
        let now = |id: ObjectId| view.get(id).filter(|object| object.pod().is_some());
        // Those that are gone go first: another pod may have the name of one of them. An id may also stand for another object now.
        for id in unread.iter().copied() {
            if self.known.len() <= id.index() {
                self.known.resize(id.index() + 1, None);
            }
            let is_there = |before: &Arc<Object>| now(id).is_some_and(|after| before.uid == after.uid);
            if let Some(gone) = self.known[id.index()].take_if(|before| !is_there(before)) {
                self.pod_changed(id, Some(&gone), None);
            }
        }
        for id in unread {
            let (before, after) = (self.known[id.index()].take(), now(id));
            self.pod_changed(id, before.as_ref(), after);
            self.known[id.index()] = after.filter(|after| self.role(after).is_some()).cloned();
        }
    }

    fn learn_node(&mut self, object: &Arc<Object>, view: api::View<'_>) {
        let name = &object.key.name;
        self.changes += 1;
        self.hopeless.room_made();
        let (Some(node), Some(spec)) = (object.node(), classes::node(object)) else { return self.forget_node(name) };
        let group = object.meta.labels.get(&NODE_GROUP).and_then(|group| self.groups.get(group)).copied();
        let condition = node.status.conditions.iter().find(|condition| condition.is("Ready"));
        let has = |key: &str| node.spec.taints.iter().any(|taint: &Taint| taint.key == key);
        // A node that still repels pods as not ready is not ready (`utils/kubernetes/ready.go`).
        let is_ready = |condition: &&api::kinds::Condition| condition.is_true() && !has(NOT_READY);
        let since = condition.filter(is_ready).map(|condition| condition.last_transition_time);
        let known = NodeView {
            name: name.clone(),
            group,
            ready: since.map(|since| since.unwrap_or(object.created)),
            created: object.created,
            is_deleting: object.is_deleting(),
            leaving: false,
            taints: Taints { soft: has(SOFT_TAINT), to_be_deleted: has(TO_BE_DELETED) },
            stays: object.meta.annotations.get(SCALE_DOWN_DISABLED).is_some_and(|value| value == "true"),
            allocatable: Amount::of(&spec),
            id: self.what_if.cluster.set_node(spec).node,
            pods: BTreeMap::new(),
        };
        let is_new = match self.nodes.get_mut(name) {
            Some(before) => {
                let pods = std::mem::take(&mut before.pods);
                *before = NodeView { pods, leaving: before.leaving, ..known };
                false
            }
            None => self.nodes.insert(name.clone(), known).is_none(),
        };
        if is_new {
            for (id, _) in view.pods_on(name) {
                // A pod that was last seen waiting is still among those that wait, and leaves them when it is read.
                let known = self.known.get(id.index()).and_then(Option::as_ref);
                if known.is_some_and(|pod| self.role(pod) != Some(Role::Pending)) {
                    self.forget_known(id);
                }
                self.unread.add(id, true);
            }
        }
    }

    fn forget_known(&mut self, id: ObjectId) {
        if let Some(known) = self.known.get_mut(id.index()) {
            *known = None;
        }
    }

    fn forget_node(&mut self, name: &SmolStr) {
        let Some(node) = self.nodes.remove(name) else { return };
        self.changes += 1;
        self.hopeless.room_made();
        for pod in node.pods.values() {
            self.what_if.cluster.drop_pod(pod.id);
            self.forget_known(pod.object_id);
        }
        self.what_if.cluster.remove_node(node.id);
    }

    fn pod_changed(&mut self, id: ObjectId, before: Option<&Arc<Object>>, after: Option<&Arc<Object>>) {
        let (was, is) = (before.and_then(|pod| self.role(pod)), after.and_then(|pod| self.role(pod)));
        if let (Some(before), Some(after)) = (before, after)
            && was == is
            && is_alike(before, after)
        {
            if let Some(known) = self.pod_mut(after, is.as_ref()) {
                known.object = after.clone();
            }
            self.changes += u64::from(!is_judged_alike(before, after));
            return;
        }
        self.changes += u64::from(was.is_some() || is.is_some());
        if let (Some(before), Some(role)) = (before, &was) {
            self.forget_pod(before, role);
        }
        if let (Some(after), Some(role)) = (after, &is) {
            self.learn_pod(id, after, role);
        }
    }

    /// What a pod is to the autoscaler; nothing once it has ended.
    fn role(&self, object: &Object) -> Option<Role> {
        let pod = object.pod().filter(|pod| self.with_ended || !pod.status.phase.is_final())?;
        match &pod.node_name {
            Some(node) => Some(Role::On(node.clone())),
            None => is_pending(object).then_some(Role::Pending),
        }
    }

    fn pod_mut(&mut self, object: &Object, role: Option<&Role>) -> Option<&mut PodView> {
        match role? {
            Role::Pending => self.pending.get_mut(&age_of(object)),
            Role::On(node) => self.nodes.get_mut(node)?.pods.get_mut(&object.key),
        }
    }

    fn learn_pod(&mut self, object_id: ObjectId, object: &Arc<Object>, role: &Role) {
        let Some(pod) = object.pod() else { return };
        let node = match role {
            Role::Pending => None,
            Role::On(node) => match self.nodes.get_mut(node) {
                Some(node) => Some(node),
                None => return,
            },
        };
        let cluster = &mut self.what_if.cluster;
        let Ok(class) = self.classes.of(object, pod, cluster) else { return };
        let class = anywhere(class, cluster);
        let requests = &cluster.class(class).shape.requests;
        let requests = Amount { cpu_milli: requests.cpu, memory: requests.memory };
        let priority = cluster.class(class).priority;
        let expendable = priority < self.cutoff;
        let id = cluster.new_pod(class, object.key.name.clone());
        let likeness = match object.controller() {
            Some(owner) => Likeness::Of(owner.uid, class),
            None => Likeness::Alone(id),
        };
        let known = PodView { object_id, object: object.clone(), id, class, requests, priority, expendable, likeness };
        match node {
            None => drop(self.pending.insert(age_of(object), known)),
            Some(node) => {
                if !expendable {
                    cluster.add_pod(id, node.id);
                }
                node.pods.insert(object.key.clone(), known);
            }
        }
    }

    fn forget_pod(&mut self, object: &Object, role: &Role) {
        let known = match role {
            Role::Pending => self.pending.remove(&age_of(object)),
            Role::On(node) => self.nodes.get_mut(node).and_then(|node| node.pods.remove(&object.key)),
        };
        let Some(known) = known else { return };
        match role {
            Role::Pending => self.hopeless.forget(known.class),
            Role::On(_) => self.hopeless.room_made(),
        }
        self.what_if.cluster.drop_pod(known.id);
    }

    /// How many nodes each group has, those that are going included.
    pub(super) fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.groups.len()];
        self.nodes.values().filter_map(|node| node.group).for_each(|group| sizes[group] += 1);
        sizes
    }

    /// The nodes that pods may be put on: ready, and not going.
    pub(super) fn open(&self) -> impl Iterator<Item = &NodeView> {
        self.nodes.values().filter(|node| node.ready.is_some() && !node.is_going())
    }
}

impl NodeView {
    /// Its pods, by namespace and name.
    pub(super) fn pods(&self) -> impl Iterator<Item = &PodView> {
        self.pods.values()
    }

    /// Marked for deletion, or being deleted.
    pub(super) fn is_going(&self) -> bool {
        self.is_deleting || self.leaving || self.taints.to_be_deleted
    }
}

impl PodView {
    pub(super) fn key(&self) -> &ObjectKey {
        &self.object.key
    }

    /// The node that the scheduler makes room on for it.
    pub(super) fn nominated(&self) -> Option<&SmolStr> {
        nominated(&self.object)
    }

    /// Since when the scheduler has found no place for it.
    pub(super) fn refused(&self) -> Option<SimTime> {
        refused(&self.object)
    }
}

fn nominated(pod: &Object) -> Option<&SmolStr> {
    pod.pod().and_then(|pod| pod.status.nominated_node_name.as_ref()).filter(|node| !node.is_empty())
}

fn refused(pod: &Object) -> Option<SimTime> {
    pod.pod()?.status.condition("PodScheduled")?.last_transition_time
}

/// What two pods share that are alike to the autoscaler: those with the same owner are tried once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    /// The same owner, and the same to scheduling.
    Of(api::Uid, ClassId),
    /// A pod without an owner is like no other.
    Alone(PodId),
}

const SCALE_DOWN_DISABLED: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";

/// A pod without a place starts a loop when it changes, as long as it has been without one no longer than this
/// (`maxPodChangeAge`). A change is, for one, that the scheduler has tried it again and says something else.
const MAX_POD_CHANGE_AGE: SimDuration = SimDuration::from_secs(10);

/// Does the change of a pod start a loop (`isRecentUnschedulablePod` of `loop/trigger.go`)?
pub(super) fn starts_loop(event: &WatchEvent, now: SimTime) -> bool {
    let object = &event.object;
    // Kubernetes keeps it in whole seconds.
    let is_recent = |since: SimTime| now.since(since.whole_secs()) <= MAX_POD_CHANGE_AGE;
    event.change != Change::Deleted && is_pending(object) && refused(object).is_some_and(is_recent)
}

/// The class without the name of a node: what would fit where is asked as if the pod were made again, even if its template
/// names a node.
fn anywhere(class: ClassId, cluster: &mut Cluster) -> ClassId {
    if cluster.class(class).shape.node_name.is_none() {
        return class;
    }
    let mut free = PodClass::clone(cluster.class(class));
    free.shape.node_name = None;
    cluster.intern(free)
}

fn age_of(object: &Object) -> (SimTime, ObjectKey) {
    (object.created, object.key.clone())
}

/// Did the scheduler find no place for it, so far?
fn is_pending(object: &Object) -> bool {
    let waits = |pod: &&Pod| pod.node_name.is_none() && !pod.status.phase.is_final() && !object.is_deleting();
    let condition = object.pod().filter(waits).and_then(|pod| pod.status.condition("PodScheduled"));
    condition.is_some_and(|condition| !condition.is_true() && condition.reason() == "Unschedulable")
}

/// Is there nothing that scheduling looks at in which the two differ?
fn is_alike(before: &Object, after: &Object) -> bool {
    let specs = before.pod().zip(after.pod());
    specs.is_some_and(|(before, after)| Arc::ptr_eq(&before.spec, &after.spec))
        && before.meta.labels.is_same(&after.meta.labels)
        && Arc::ptr_eq(&before.meta.owners, &after.meta.owners)
}

/// Of two that scheduling cannot tell apart: is there nothing else that the autoscaler looks at in which they differ?
fn is_judged_alike(before: &Object, after: &Object) -> bool {
    before.meta.annotations.is_same(&after.meta.annotations)
        && before.meta.deletion == after.meta.deletion
        && nominated(before) == nominated(after)
        && refused(before) == refused(after)
}
