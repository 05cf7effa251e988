//! The first pass: what was there in the window, without bodies.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;
use sk_core::{Gvk, ObjectRef, OwnerReference, SimTime, SmolStr, StableHash};

use super::judge::{self, Thing, Verdict};
use super::query::Query;
use crate::log::fact::{Applied, Attribution, Fact, Link, PodFacts};
use crate::log::timeline::{Item, Items};

/// What was there in the window.
#[derive(Default)]
pub(super) struct Survey {
    /// Objects by name, and by uid those that had the name.
    objects: BTreeMap<ObjectRef, BTreeMap<SmolStr, Head>>,
    /// The version that each object had at the start: its uid, and its place among all items.
    starting: BTreeMap<ObjectRef, (SmolStr, u64)>,
    /// The version that each node had at the start, by its place.
    starting_nodes: BTreeMap<SmolStr, u64>,
    links: BTreeMap<SmolStr, Link>,
    pods: BTreeMap<SmolStr, PodFacts>,
}

/// An object without its body.
#[derive(Default)]
struct Head {
    owners: Vec<OwnerReference>,
    /// The hash of its newest spec, and where that stands among all items.
    spec_hash: Option<(u64, StableHash)>,
    /// Did some version match the labels that are asked for?
    included: bool,
    /// Did some version match labels that are not wanted?
    excluded: bool,
}

/// What is exported, and what must not be told of.
pub(super) struct Verdicts {
    exported: HashMap<ObjectRef, HashSet<SmolStr>>,
    filtered_pods: HashSet<SmolStr>,
}

impl Survey {
    /// Reads the window.
    pub(super) fn of(query: &Query, items: &mut Items) -> Self {
        let mut survey = Self::default();
        for (place, item) in (0..).zip(items) {
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
        }
        survey
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
                self.links.insert(link.uid.clone(), link);
            }
            Fact::Unlinked(uid) if before => {
                self.links.remove(&uid);
            }
            Fact::Pod(pod) if before && pod.deleted.is_some() => {
                self.pods.remove(&pod.uid);
            }
            Fact::Pod(pod) => {
                self.pods.insert(pod.uid.clone(), *pod);
            }
            Fact::Node(node, Some(_)) if before => {
                self.starting_nodes.insert(node, place);
            }
            Fact::Node(node, None) if before => {
                self.starting_nodes.remove(&node);
            }
            // After the start what is gone was there, and nodes are told of in the second pass.
            Fact::Deleted(_) | Fact::Unlinked(_) | Fact::Node(..) | Fact::Gap(_) | Fact::Watched(..) => {}
        }
    }

    fn note_object(&mut self, query: &Query, before: bool, place: u64, applied: Applied) {
        let heads = self.objects.entry(applied.object.clone()).or_default();
        if before {
            heads.retain(|uid, _| *uid == applied.uid);
            self.starting.insert(applied.object, (applied.uid.clone(), place));
        }
        let head = heads.entry(applied.uid).or_default();
        for owner in applied.owners {
            if !head.owners.contains(&owner) {
                head.owners.push(owner);
            }
        }
        head.spec_hash = Some((place, applied.spec_hash));
        if !query.included_labels.is_empty() || !query.excluded_labels.is_empty() {
            let labels = labels_of(&applied.body);
            head.included |= query.included_labels.iter().all(|selector| selector.matches(&labels));
            head.excluded |= query.excluded_labels.iter().any(|selector| selector.matches(&labels));
        }
    }

    /// A pod went while nobody saw it.
    fn lose_pod(&mut self, before: bool, at: SimTime, uid: &SmolStr) {
        if before {
            self.pods.remove(uid);
        } else if let Some(pod) = self.pods.get_mut(uid) {
            pod.guessed = true;
            pod.deleted.get_or_insert(at);
            if pod.started.is_some() {
                pod.finished.get_or_insert(at);
            }
        }
    }

    /// Decides what is exported.
    pub(super) fn judge(&self, query: &Query) -> Verdicts {
        let mut things = Vec::new();
        for pod in self.pods.values() {
            let object = ObjectRef::new(Gvk::new_static("", "v1", "Pod"), pod.pod.clone());
            let filtered = !query.admits_namespace_of(&object);
            let (uid, owners) = (pod.uid.clone(), pod.owners.clone());
            things.push(Thing { object, uid, owners, tracked: false, filtered });
        }
        for link in self.links.values() {
            let (object, uid, owners) = (link.object.clone(), link.uid.clone(), link.owners.clone());
            let filtered = !query.admits_namespace_of(&object);
            things.push(Thing { object, uid, owners, tracked: false, filtered });
        }
        for (object, heads) in &self.objects {
            for (uid, head) in heads {
                let wanted = query.included_labels.is_empty() || head.included;
                let filtered = !wanted || head.excluded || !query.admits_namespace_of(object);
                let (object, uid, owners) = (object.clone(), uid.clone(), head.owners.clone());
                things.push(Thing { object, uid, owners, tracked: true, filtered });
            }
        }
        let judged = judge::judge(&things);
        self.verdicts(query, things.into_iter().zip(judged))
    }

    fn verdicts(&self, query: &Query, judged: impl Iterator<Item = (Thing, Verdict)>) -> Verdicts {
        let mut verdicts = Verdicts { exported: HashMap::new(), filtered_pods: HashSet::new() };
        for (thing, verdict) in judged {
            match verdict {
                Verdict::Exported => {
                    verdicts.exported.entry(thing.object).or_default().insert(thing.uid);
                }
                Verdict::Filtered => {
                    verdicts.filtered_pods.insert(thing.uid);
                }
                Verdict::Below | Verdict::OfDaemonSet | Verdict::Untracked => {}
            }
        }
        if !query.included_labels.is_empty() {
            // Labels of pods are not kept, so where labels are asked for only the pods of what has them are told of.
            let others = self.pods.values().filter(|pod| verdicts.owner_of(pod).is_none());
            let others: Vec<_> = others.map(|pod| pod.uid.clone()).collect();
            verdicts.filtered_pods.extend(others);
        }
        verdicts
    }

    /// Is the item at `place` the version of this object that there was at the start?
    pub(super) fn is_at_start(&self, object: &ObjectRef, place: u64) -> bool {
        self.starting.get(object).is_some_and(|(_, starting)| *starting == place)
    }

    /// Is the item at `place` the version of this node that there was at the start?
    pub(super) fn is_node_at_start(&self, node: &SmolStr, place: u64) -> bool {
        self.starting_nodes.get(node) == Some(&place)
    }

    /// The pods that were there in the window, by uid.
    pub(super) fn pods(&self) -> impl Iterator<Item = &PodFacts> {
        self.pods.values()
    }

    /// An object that is not recorded but stands between others, by uid.
    pub(super) fn link(&self, uid: &str) -> Option<&Link> {
        self.links.get(uid)
    }

    /// The hash of the newest spec of each exported object.
    pub(super) fn spec_hashes(&self, verdicts: &Verdicts) -> impl Iterator<Item = (&ObjectRef, StableHash)> {
        self.objects.iter().filter_map(|(object, heads)| {
            let exported = heads.iter().filter(|(uid, _)| verdicts.exports(object, uid));
            let (_, newest) = exported.filter_map(|(_, head)| head.spec_hash).max()?;
            Some((object, newest))
        })
    }
}

impl Verdicts {
    /// Is this object in the trace?
    pub(super) fn exports(&self, object: &ObjectRef, uid: &str) -> bool {
        self.exported.get(object).is_some_and(|uids| uids.contains(uid))
    }

    /// How many distinct objects are.
    pub(super) fn exported_count(&self) -> u64 {
        self.exported.values().map(|uids| uids.len() as u64).sum()
    }

    /// The nearest recorded ancestor of a pod that is in the trace.
    pub(super) fn owner_of<'a>(&self, pod: &'a PodFacts) -> Option<&'a Attribution> {
        pod.attributions.iter().find(|attribution| self.exports(&attribution.owner, &attribution.uid))
    }

    /// Must nothing be told of this pod?
    pub(super) fn hides(&self, pod: &PodFacts) -> bool {
        self.filtered_pods.contains(&pod.uid)
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
