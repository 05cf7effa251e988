//! The recorded state of the cluster, and the decision which observations are changes.
//!
//! The ledger grows with the objects in the cluster, never with history. It does not hold bodies of objects: it has
//! their hashes, and slices of the newest bodies with pod templates, which share their bytes with the log.
//!
//! | module | what it owns |
//! |---|---|
//! | `objects` | recorded objects, and those that only link pods to them |
//! | `nodes` | nodes |
//! | `pods` | pods, from first event to their end |
//! | `life` | the lifecycle of one pod, which only moves forward |
//! | `ownership` | the owners of objects and pods |
//! | `owner_lookups` | pending requests for owners that no watch covers |
//! | `known_owners` | the results of such requests |
//! | `versions` | the pod templates of an owner, and which one a pod was created from |
//! | `waiting` | pods that arrived before their owners |
//! | `interner` | values that many pods have in common |

mod interner;
mod known_owners;
mod life;
mod nodes;
mod objects;
mod owner_lookups;
mod ownership;
mod pods;
mod versions;
mod waiting;
mod warning;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_core::{Gvk, ObjectKey, SimTime, SmolStr};
use sk_store::log::{Attribution, Fact, State};
use sk_store::trace::Gap;

use crate::rules::{Rules, is_pod};
use crate::sighting::Sighting;
use crate::uid::Uid;
use interner::Interner;
use known_owners::KnownOwners;
use objects::Object;
use owner_lookups::OwnerLookups;
use ownership::Referrers;
use pods::{Pod, SeenPod};
use waiting::Waiting;

pub use ownership::{LookupResult, OwnerLookup};
use warning::Warnings;
pub use warning::{Trouble, Warning};

/// The state of a recording.
#[derive(Debug)]
pub struct Ledger {
    rules: Arc<Rules>,
    kinds: Kinds,
    /// Kinds whose objects come by themselves, sooner or later, and need not be asked for.
    watched: BTreeSet<Gvk>,
    objects: BTreeMap<(KindId, ObjectKey), Object>,
    pods: BTreeMap<ObjectKey, Pod>,
    nodes: BTreeMap<SmolStr, nodes::Node>,
    by_uid: BTreeMap<Uid, Place>,
    referrers: Referrers,
    known_owners: KnownOwners,
    lookups: OwnerLookups,
    waiting: Waiting,
    interners: Interners,
    warnings: Warnings,
    counts: Counts,
}

/// Which list of its kind something was last seen in; see [`Ledger::relist_begins`].
type Epoch = u32;

/// A kind, small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KindId(u16);

/// Where something with a uid is found.
#[derive(Clone, Debug)]
enum Place {
    Object(KindId, ObjectKey),
    Pod(ObjectKey),
    Node,
}

/// What many pods have in common.
#[derive(Debug, Default)]
struct Interners {
    owners: Interner<Vec<sk_core::OwnerReference>>,
    attributions: Interner<Vec<Attribution>>,
    requests: Interner<BTreeMap<SmolStr, String>>,
    names: Interner<SmolStr>,
}

/// What is counted as it happens.
#[derive(Debug, Default)]
struct Counts {
    /// How many of the objects are links.
    links: usize,
    unchanged: u64,
    refused_lives: u64,
    dropped_waits: u64,
}

/// How much there is, and what went beyond a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Recorded objects that live.
    pub objects: usize,
    /// Objects that only link pods to their owners.
    pub links: usize,
    /// Pods that live.
    pub pods: usize,
    /// Nodes.
    pub nodes: usize,
    /// Owners that the API server was asked about, and what it said of them.
    pub known_owners: usize,
    /// Owners that the API server is being asked about.
    pub open_lookups: usize,
    /// Owners that it could not be asked about, which is tried again.
    pub failed_lookups: usize,
    /// Pods whose owners, or whose owners' templates, have not been seen yet.
    pub waiting_pods: usize,
    /// Pods that have waited so long, or with so many others, that their specs were dropped.
    /// They are attributed to an owner that comes later, and to its template when they are looked at again.
    pub unattributed_pods: usize,
    /// Those of them whose owners have come: see [`Ledger::pods_to_look_at`].
    pub pods_to_look_at: usize,
    /// Sightings that said nothing new.
    pub unchanged: u64,
    /// Lives that would have moved backward.
    pub refused_lives: u64,
    /// Reasons of waiting that were dropped because a pod had too many.
    pub dropped_waits: u64,
    /// How often a pod's spec was dropped before its owner arrived, because of time or memory.
    pub given_up_pods: u64,
    /// Owners that were not asked for because too many lookups were open.
    pub unasked_owners: u64,
}

impl Stats {
    /// What is still open, and what went beyond a bound, each under a word of its own: what an operator should see.
    pub fn shortcomings(&self) -> [(&'static str, u64); 9] {
        let count = |number: usize| number as u64;
        [
            ("open_lookups", count(self.open_lookups)),
            ("failed_lookups", count(self.failed_lookups)),
            ("waiting_pods", count(self.waiting_pods)),
            ("unattributed_pods", count(self.unattributed_pods)),
            ("pods_to_look_at", count(self.pods_to_look_at)),
            ("given_up_pods", self.given_up_pods),
            ("unasked_owners", self.unasked_owners),
            ("dropped_waits", self.dropped_waits),
            ("refused_lives", self.refused_lives),
        ]
    }
}

impl Ledger {
    /// An empty one. `watched` are the kinds that somebody watches: their objects are waited for, not asked for.
    pub fn new(rules: Arc<Rules>, watched: impl IntoIterator<Item = Gvk>) -> Self {
        let watched = watched.into_iter().chain(rules.tracked_kinds().cloned()).collect();
        Self {
            rules,
            watched,
            kinds: Kinds::default(),
            objects: BTreeMap::new(),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            by_uid: BTreeMap::new(),
            referrers: Referrers::default(),
            known_owners: KnownOwners::default(),
            lookups: OwnerLookups::default(),
            waiting: Waiting::default(),
            interners: Interners::default(),
            warnings: Warnings::default(),
            counts: Counts::default(),
        }
    }

    /// An object was seen: new, changed, or as it was.
    pub fn applied(&mut self, now: SimTime, sighting: Sighting, out: &mut Vec<Fact>) {
        self.give_up_waiting(now);
        let before = out.len();
        let Sighting { object, uid, owners, tracked, pod, node, .. } = sighting;
        let is_link = tracked.is_none() && pod.is_none() && node.is_none();
        let body = tracked.as_ref().map(|tracked| tracked.body.clone());
        if let Some(record) = node {
            self.node_applied(&object.key.name, &uid, record, out);
        }
        if tracked.is_some() || is_link {
            self.object_applied(now, &object, &uid, &owners, tracked, out);
        }
        if let Some(look) = &pod {
            let seen = SeenPod { key: &object.key, uid: &uid, owners: &owners, look, body: body.as_ref() };
            self.pod_applied(now, &seen, out);
        }
        self.counts.unchanged += u64::from(out.len() == before);
    }

    /// An object is gone; the sighting is what it was in the end.
    pub fn deleted(&mut self, now: SimTime, sighting: Sighting, out: &mut Vec<Fact>) {
        self.give_up_waiting(now);
        let Sighting { object, uid, owners, tracked, pod, node, .. } = sighting;
        let own_uid = Uid::new(&uid);
        if let Some(look) = &pod {
            let body = tracked.as_ref().map(|tracked| &tracked.body);
            let seen = SeenPod { key: &object.key, uid: &uid, owners: &owners, look, body };
            self.pod_deleted(now, &seen, out);
        }
        if node.is_some() {
            self.node_deleted(&object.key.name, &own_uid, out);
        }
        let id = self.kinds.id(&object.gvk);
        self.object_deleted(&(id, object.key), Some(&own_uid), out);
    }

    /// A list of everything of this kind begins: what it does not bring is gone.
    pub fn relist_begins(&mut self, kind: &Gvk) {
        let id = self.kinds.id(kind);
        self.kinds.begin(id);
        self.watched.insert(kind.clone());
    }

    /// The list has ended. What is known of this kind, and of no other, and was not seen since it began is gone. `gap`
    /// says from when on nobody was watching, and why.
    pub fn relist_ended(&mut self, now: SimTime, kind: &Gvk, gap: Option<(SimTime, String)>, out: &mut Vec<Fact>) {
        if let Some((from, reason)) = gap {
            out.push(Fact::Gap(Gap { from, to: now, kind: Some(kind.clone()), reason }));
        }
        let id = self.kinds.id(kind);
        let epoch = self.kinds.epoch(id);
        if is_pod(kind) {
            self.unseen_pods_vanish(now, epoch, out);
        }
        if nodes::is_node(kind) {
            self.unseen_nodes_vanish(epoch, out);
        }
        self.unseen_objects_vanish(id, epoch, out);
    }

    /// Takes in what a log knew when it was last written, so that the next lists are compared with that. For a ledger
    /// that has seen nothing yet.
    pub fn restore(&mut self, state: &State) {
        for (object, live) in state.objects() {
            self.restore_object(object, &live.uid, &live.owners, &live.body);
        }
        for link in state.links() {
            if self.watched.contains(&link.object.gvk) {
                self.restore_link(link);
            } else {
                self.restore_known_owner(link.clone());
            }
        }
        state.pods().for_each(|pod| self.restore_pod(pod));
        state.nodes().for_each(|(name, record)| self.restore_node(name.clone(), record));
        self.restore_lookups();
        self.restore_waiting();
    }

    /// Owners that nobody watches and that are not known: to be asked of the API server. Each is given out once, and again
    /// some time after it was answered with [`LookupResult::Failed`].
    pub fn missing_owners(&mut self, now: SimTime) -> Vec<OwnerLookup> {
        self.lookups.take(now)
    }

    /// Pods whose owners have come, and whose templates another look at each would tell: to be given to
    /// [`Ledger::looked_at`]. At most so many, by turns; one that could not be looked at has its turn again.
    pub fn pods_to_look_at(&mut self, limit: usize) -> Vec<ObjectKey> {
        self.waiting.next_ripe(limit)
    }

    /// The warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        self.warnings.take()
    }

    /// How much there is, and what went beyond a bound.
    pub fn stats(&self) -> Stats {
        let links = self.counts.links;
        Stats {
            objects: self.objects.len() - links,
            links,
            pods: self.pods.len(),
            nodes: self.nodes.len(),
            known_owners: self.known_owners.len(),
            open_lookups: self.lookups.open(),
            failed_lookups: self.lookups.failing(),
            waiting_pods: self.waiting.patient(),
            unattributed_pods: self.waiting.formless(),
            pods_to_look_at: self.waiting.ripe(),
            unchanged: self.counts.unchanged,
            refused_lives: self.counts.refused_lives,
            dropped_waits: self.counts.dropped_waits,
            given_up_pods: self.waiting.given_up(),
            unasked_owners: self.lookups.unasked(),
        }
    }
}

/// Kinds by a small number, with the list that is being read of each. They are as many as the configuration names, and
/// few more.
#[derive(Debug, Default)]
struct Kinds {
    ids: BTreeMap<Gvk, KindId>,
    all: Vec<(Gvk, Epoch)>,
}

impl Kinds {
    fn id(&mut self, kind: &Gvk) -> KindId {
        if let Some(id) = self.ids.get(kind) {
            return *id;
        }
        let id = KindId(u16::try_from(self.all.len()).expect("nobody watches 65,536 kinds"));
        self.all.push((kind.clone(), 0));
        self.ids.insert(kind.clone(), id);
        id
    }

    fn gvk(&self, id: KindId) -> &Gvk {
        &self.all[usize::from(id.0)].0
    }

    fn epoch(&self, id: KindId) -> Epoch {
        self.all[usize::from(id.0)].1
    }

    fn begin(&mut self, id: KindId) {
        let epoch = &mut self.all[usize::from(id.0)].1;
        *epoch = epoch.wrapping_add(1);
    }
}
