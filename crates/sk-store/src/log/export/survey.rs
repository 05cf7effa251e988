//! The first pass of an export: everything that existed in the window, without bodies.
//!
//! A window can have far more pods than other objects: a Job that runs every minute leaves 1,440 pods a day. So for a pod
//! only the hash of its uid and the position of its last entry are kept; the second pass reads the pod there. Pods that own
//! other objects are looked up in an extra pass, which most clusters never need.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;
use sk_core::{Gvk, ObjectKey, ObjectRef, OwnerReference, SimTime, SmolStr};
use xxhash_rust::xxh3::xxh3_128;

use super::judge::{Asked, Family, Thing, Verdict};
use super::query::{ExportError, Query};
use crate::log::catalog::Listed;
use crate::log::error::Damage;
use crate::log::fact::{Applied, Attribution, Fact, Link, PodFacts};
use crate::log::timeline::{Item, Items};

/// Pods are not recorded like other kinds, but may stand between recorded ones.
const POD: Gvk = Gvk::new_static("", "v1", "Pod");

/// How much a window may hold, so that exporting it never takes the memory that recording needs.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Distinct pods, of at most 300 bytes each in both passes together: 300 MiB.
    pub(super) pods: usize,
    /// Distinct objects and links, of about 800 bytes each with everything that refers to them: 200 MiB.
    pub(super) objects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { pods: 1 << 20, objects: 1 << 18 }
    }
}

impl Limits {
    fn check(self, survey: &Survey, until: SimTime) -> Result<(), ExportError> {
        let pods = (survey.pods.len(), self.pods, "pods");
        let objects = (survey.objects.len() + survey.links.len(), self.objects, "objects");
        match [pods, objects].into_iter().find(|(count, limit, _)| count > limit) {
            Some((count, limit, what)) => Err(ExportError::TooMany { what, count, limit, until }),
            None => Ok(()),
        }
    }
}

/// What was there in the window.
#[derive(Default)]
pub(super) struct Survey {
    /// Objects by name, with those that had the name.
    objects: BTreeMap<ObjectRef, Vec<Head>>,
    /// The version that each object had at the start: its uid, and its place among all items.
    starting: BTreeMap<ObjectRef, (SmolStr, u64)>,
    /// The version that each node had at the start, by its place.
    starting_nodes: BTreeMap<SmolStr, u64>,
    /// What stands between others, by uid.
    links: BTreeMap<SmolStr, Link>,
    /// The position of the last entry of each pod.
    pods: HashMap<UidHash, u64>,
    /// When pods went of which the log does not tell how.
    vanished: HashMap<UidHash, SimTime>,
    /// Pods that something belongs to.
    owning: OwningPods,
}

/// A uid in 16 bytes, which is what a uid is before it is written out.
type UidHash = [u64; 2];

fn hash_of(uid: &str) -> UidHash {
    let hash = xxh3_128(uid.as_bytes()).to_le_bytes();
    let (low, high) = hash.split_at(8);
    [low, high].map(|half| half.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

/// Pods that own other objects, by uid and by name.
#[derive(Default)]
struct OwningPods {
    uids: HashSet<SmolStr>,
    keys: HashSet<ObjectKey>,
}

impl OwningPods {
    /// Notes the pods among the owners of something in that namespace.
    fn note(&mut self, owners: &[OwnerReference], namespace: Option<&str>) {
        for owner in owners.iter().filter(|owner| owner.gvk.kind == POD.kind && owner.gvk.group == POD.group) {
            self.uids.insert(owner.uid.clone());
            self.keys.insert(owner.object_ref(namespace).key);
        }
    }

    fn contains(&self, pod: &PodFacts) -> bool {
        self.uids.contains(&pod.uid) || self.keys.contains(&pod.pod)
    }
}

/// An object without its body.
#[derive(Default)]
struct Head {
    uid: SmolStr,
    owners: Vec<OwnerReference>,
    /// Did some version match the labels that are asked for?
    included: bool,
    /// Did some version match labels that are not wanted?
    excluded: bool,
}

/// What is exported, and what must be left out.
pub(super) struct Verdicts<'a> {
    query: &'a Query,
    family: Family<'a>,
    exported: HashSet<(&'a ObjectRef, &'a str)>,
}

impl Survey {
    /// Reads the window. Also answers what of it cannot be read.
    pub(super) fn of(query: &Query, segments: &[Listed], limits: Limits) -> Result<(Self, Vec<Damage>), ExportError> {
        let mut survey = Self::default();
        let mut items = Items::new(segments.to_vec());
        for (place, item) in (0..).zip(items.by_ref()) {
            let at = moment_of(&item, query.start);
            if at >= query.end {
                break;
            }
            let before = is_before(&item, query.start);
            match item {
                Item::State(fact) | Item::Healed(_, fact) => survey.note(query, before, place, fact),
                Item::Entry(entry) => survey.note(query, before, place, entry.fact),
                Item::Vanished(at, uid) => survey.lose_pod(before, at, &uid),
            }
            limits.check(&survey, at)?;
        }
        if !survey.owning.uids.is_empty() {
            survey.find_owning_pods(query, segments);
        }
        Ok((survey, items.damages().to_vec()))
    }

    fn note(&mut self, query: &Query, before: bool, place: u64, fact: Fact) {
        match fact {
            Fact::Applied(applied) => self.note_object(query, before, place, applied),
            Fact::Deleted(deleted) if before => {
                if self.starting.get(&deleted.object).is_some_and(|(uid, _)| *uid == deleted.uid) {
                    self.starting.remove(&deleted.object);
                    self.objects.remove(&deleted.object);
                }
            }
            Fact::Link(link) => {
                self.owning.note(&link.owners, link.object.key.namespace.as_deref());
                self.links.insert(link.uid.clone(), link);
            }
            Fact::Unlinked(uid) if before => {
                self.links.remove(&uid);
            }
            Fact::Pod(pod) => self.note_pod(before, place, &pod),
            Fact::Node(node, Some(_)) if before => {
                self.starting_nodes.insert(node, place);
            }
            Fact::Node(node, None) if before => {
                self.starting_nodes.remove(&node);
            }
            // After the start what is gone was there, and nodes are told of in the second pass.
            Fact::Deleted(_) | Fact::Unlinked(_) | Fact::Node(..) => {}
            Fact::Gap(_) | Fact::Watched(..) | Fact::Lost(_) => {}
        }
    }

    fn note_object(&mut self, query: &Query, before: bool, place: u64, applied: Applied) {
        self.owning.note(&applied.owners, applied.object.key.namespace.as_deref());
        let heads = self.objects.entry(applied.object.clone()).or_default();
        if before {
            // Only what it was at the start counts of what it was before.
            heads.clear();
            self.starting.insert(applied.object, (applied.uid.clone(), place));
        }
        let known = heads.iter().position(|head| head.uid == applied.uid);
        let place_among_heads = known.unwrap_or(heads.len());
        if known.is_none() {
            heads.push(Head { uid: applied.uid, ..Head::default() });
        }
        let head = &mut heads[place_among_heads];
        for owner in applied.owners {
            if !head.owners.contains(&owner) {
                head.owners.push(owner);
            }
        }
        if query.asks_for_labels() {
            let labels = labels_of(&applied.body);
            head.included |= query.included_labels.iter().all(|selector| selector.matches(&labels));
            head.excluded |= query.excluded_labels.iter().any(|selector| selector.matches(&labels));
        }
    }

    fn note_pod(&mut self, before: bool, place: u64, pod: &PodFacts) {
        let uid = hash_of(&pod.uid);
        self.vanished.remove(&uid);
        if before && pod.deleted.is_some() {
            self.pods.remove(&uid);
            return;
        }
        self.owning.note(&pod.owners, pod.pod.namespace.as_deref());
        self.pods.insert(uid, place);
    }

    /// A pod disappeared within a gap.
    fn lose_pod(&mut self, before: bool, at: SimTime, uid: &str) {
        let uid = hash_of(uid);
        if before {
            self.pods.remove(&uid);
        } else {
            self.vanished.insert(uid, at);
        }
    }

    /// Reads the window once more for the pods that own something: they are links like others.
    fn find_owning_pods(&mut self, query: &Query, segments: &[Listed]) {
        for (place, item) in (0..).zip(Items::new(segments.to_vec())) {
            if moment_of(&item, query.start) >= query.end {
                return;
            }
            let Some(Fact::Pod(pod)) = fact_of(item) else { continue };
            if self.owning.contains(&pod) && self.last_of(place, &pod).is_some() {
                let PodFacts { uid, pod, owners, .. } = *pod;
                self.links.insert(uid.clone(), Link { object: ObjectRef::new(POD, pod), uid, owners });
            }
        }
    }

    /// Decides what is exported.
    pub(super) fn judge<'a>(&'a self, query: &'a Query) -> Verdicts<'a> {
        let mut things = Vec::with_capacity(self.links.len() + self.objects.len());
        things.extend(self.links.values().map(|link| Thing {
            object: &link.object,
            uid: &link.uid,
            owners: &link.owners,
            tracked: false,
            asked: query.asks_for_namespace_of(&link.object),
        }));
        for (object, heads) in &self.objects {
            things.extend(heads.iter().map(|head| Thing {
                object,
                uid: &head.uid,
                owners: &head.owners,
                tracked: true,
                asked: head.asked(query, object),
            }));
        }
        let family = Family::new(things);
        let exported = family.judge().filter(|(_, verdict)| *verdict == Verdict::Exported);
        let exported = exported.map(|(thing, _)| (thing.object, thing.uid)).collect();
        Verdicts { query, family, exported }
    }

    /// Is the item at `place` the version of this object that there was at the start?
    pub(super) fn is_at_start(&self, object: &ObjectRef, place: u64) -> bool {
        self.starting.get(object).is_some_and(|(_, starting)| *starting == place)
    }

    /// Is the item at `place` the version of this node that there was at the start?
    pub(super) fn is_node_at_start(&self, node: &SmolStr, place: u64) -> bool {
        self.starting_nodes.get(node) == Some(&place)
    }

    /// How the pod ends that the item at `place` tells of, if nothing later does: `None` if something does.
    pub(super) fn last_of(&self, place: u64, pod: &PodFacts) -> Option<Ending> {
        let uid = hash_of(&pod.uid);
        let is_last = self.pods.get(&uid) == Some(&place);
        is_last.then(|| self.vanished.get(&uid).map_or(Ending::AsTold, |at| Ending::Vanished(*at)))
    }

    /// An object that is not recorded but stands between others, by uid.
    pub(super) fn link(&self, uid: &str) -> Option<&Link> {
        self.links.get(uid)
    }
}

/// How a pod ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// As the last fact about it says.
    AsTold,
    /// It was missing from a list at that time; its deletion was not observed.
    Vanished(SimTime),
}

impl Ending {
    pub(super) fn put_on(self, pod: &mut PodFacts) {
        let Self::Vanished(at) = self else { return };
        pod.guessed = true;
        pod.deleted.get_or_insert(at);
        if pod.started.is_some() {
            pod.finished.get_or_insert(at);
        }
    }
}

impl Head {
    /// What the filters say of this object.
    fn asked(&self, query: &Query, object: &ObjectRef) -> Asked {
        let by_namespace = query.asks_for_namespace_of(object);
        if self.excluded {
            return Asked::Without;
        }
        let by_labels = query.included_labels.is_empty() || self.included;
        if by_labels || by_namespace == Asked::Without { by_namespace } else { Asked::NotFor }
    }
}

impl Verdicts<'_> {
    /// Is this object in the trace?
    pub(super) fn exports(&self, object: &ObjectRef, uid: &str) -> bool {
        self.exported.contains(&(object, uid))
    }

    /// How many distinct objects are.
    pub(super) fn exported_count(&self) -> u64 {
        self.exported.len() as u64
    }

    /// The nearest recorded ancestor of a pod that is in the trace.
    pub(super) fn owner_of<'p>(&self, pod: &'p PodFacts) -> Option<&'p Attribution> {
        pod.attributions.iter().find(|attribution| self.exports(&attribution.owner, &attribution.uid))
    }

    /// Must this pod be left out?
    pub(super) fn hides(&self, pod: &PodFacts) -> bool {
        // Labels of pods are not kept, so where they matter only the pods of exported objects are in the trace.
        if self.query.asks_for_labels() && self.owner_of(pod).is_none() {
            return true;
        }
        let object = &ObjectRef::new(POD, pod.pod.clone());
        let asked = self.query.asks_for_namespace_of(object);
        let thing = Thing { object, uid: &pod.uid, owners: &pod.owners, tracked: false, asked };
        self.family.fate(&thing) == Some(Verdict::Filtered)
    }
}

/// The fact that an item tells, if it tells one.
pub(super) fn fact_of(item: Item) -> Option<Fact> {
    match item {
        Item::State(fact) | Item::Healed(_, fact) => Some(fact),
        Item::Entry(entry) => Some(entry.fact),
        Item::Vanished(..) => None,
    }
}

/// Does the item belong to the state at `start`?
pub(super) fn is_before(item: &Item, start: SimTime) -> bool {
    match item {
        Item::State(_) => true,
        Item::Entry(entry) => entry.at < start,
        Item::Healed(at, _) | Item::Vanished(at, _) => *at < start,
    }
}

/// When it happened; what was there before anything else happened at the start.
pub(super) fn moment_of(item: &Item, start: SimTime) -> SimTime {
    match item {
        Item::State(_) => start,
        Item::Entry(entry) => entry.at,
        Item::Healed(at, _) | Item::Vanished(at, _) => *at,
    }
}

/// An object's labels, without reading the rest of it into memory.
fn labels_of(body: &[u8]) -> BTreeMap<SmolStr, SmolStr> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default)]
        labels: BTreeMap<SmolStr, SmolStr>,
    }
    serde_json::from_slice::<Object>(body).map(|object| object.metadata.labels).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Log, Options};

    fn pod(uid: u64) -> PodFacts {
        PodFacts {
            uid: uid.to_string().into(),
            pod: ObjectKey::namespaced("default", uid.to_string()),
            owners: Vec::new(),
            attributions: Vec::new(),
            pod_hash: None,
            created: SimTime::EPOCH,
            scheduled: None,
            started: None,
            finished: None,
            deleted: None,
            guessed: false,
            exit_code: None,
            node: None,
            waits: Vec::new(),
            requests: BTreeMap::new(),
        }
    }

    #[test]
    fn a_window_of_too_many_pods_is_refused_with_the_moment_at_which_it_was_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(folder.path(), Options::default()).unwrap();
        for n in 0..20 {
            // Each has two entries and counts once.
            for _ in 0..2 {
                log.append(SimTime::from_secs(n), Fact::Pod(Box::new(pod(n.unsigned_abs())))).unwrap();
            }
        }
        log.sync().unwrap();
        let segments = log.reader().contents().segments;
        let of = |pods, end| {
            let query = Query::window(SimTime::EPOCH, SimTime::from_secs(end));
            Survey::of(&query, &segments, Limits { pods, ..Limits::default() }).map(|(survey, _)| survey.pods.len())
        };
        assert_eq!(of(20, 99).unwrap(), 20);
        let refused = of(10, 99).err().unwrap().to_string();
        assert!(refused.contains("more than 10 pods") && refused.contains("00:00:10"), "{refused}");
        assert_eq!(of(10, 10).unwrap(), 10, "a shorter one is not");
    }
}
