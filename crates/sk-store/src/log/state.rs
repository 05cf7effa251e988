//! The state after all facts so far: live objects, links, pods and nodes, the resource version of each watch, and open
//! gaps.
//!
//! The writer keeps one, because each segment starts with it. It grows with the objects in the cluster, not with
//! history. Pods are kept in their encoded form, which takes a third of the memory; only a restart and the next segment
//! read them.

use std::collections::BTreeMap;

use bytes::Bytes;
use sk_core::{Gvk, ObjectRef, OwnerReference, SimTime, SmolStr};

use super::codec;
use super::fact::{Applied, Fact, Link, PodFacts, Watched};
use crate::trace::Gap;

/// How many gaps are kept apart: 4,096 at about 200 bytes is under 1 MiB. Beyond it the two oldest become one that
/// covers both, so that more is said to be missed than was, never less.
const MAX_GAPS: usize = 4_096;

/// The state of the recorded cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    objects: BTreeMap<ObjectRef, Live>,
    links: BTreeMap<SmolStr, Link>,
    pods: BTreeMap<SmolStr, Bytes>,
    nodes: BTreeMap<SmolStr, Bytes>,
    positions: BTreeMap<Gvk, Position>,
    /// The kinds of which nothing is seen, and since when.
    lost: BTreeMap<Gvk, SimTime>,
    gaps: Vec<Gap>,
}

/// How far a watch has come.
#[derive(Clone, Debug, PartialEq)]
struct Position {
    version: SmolStr,
    /// Until when nothing can have happened that it has not seen.
    seen: SimTime,
}

/// A live object of a tracked kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Its uid.
    pub uid: SmolStr,
    /// Everybody it belongs to.
    pub owners: Vec<OwnerReference>,
    /// The sanitised object as compact JSON, shared with the fact that brought it.
    pub body: Bytes,
}

impl State {
    /// The live objects of tracked kinds, by kind and name.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = (&ObjectRef, &Live)> {
        self.objects.iter()
    }

    /// One live object.
    pub fn object(&self, object: &ObjectRef) -> Option<&Live> {
        self.objects.get(object)
    }

    /// The objects that stand between pods and recorded owners, by uid.
    pub fn links(&self) -> impl ExactSizeIterator<Item = &Link> {
        self.links.values()
    }

    /// The live pods, by uid.
    pub fn pods(&self) -> impl Iterator<Item = PodFacts> {
        self.pods.values().filter_map(|bytes| match codec::read(bytes) {
            Ok(Fact::Pod(pod)) => Some(*pod),
            _ => None,
        })
    }

    /// How many pods there are.
    pub fn pod_count(&self) -> usize {
        self.pods.len()
    }

    /// The nodes by name, each with its Node object as compact JSON.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (&SmolStr, &Bytes)> {
        self.nodes.iter()
    }

    /// The resource version up to which each kind's watch has seen everything, and the moment until which nothing can have
    /// happened that it has not seen: should the watch not go on from there, what was missed begins then.
    pub fn positions(&self) -> impl ExactSizeIterator<Item = (&Gvk, &SmolStr, SimTime)> {
        self.positions.iter().map(|(gvk, position)| (gvk, &position.version, position.seen))
    }

    /// The kinds whose watch has lost its position and that were not listed again, each with the last moment that was
    /// seen of it.
    pub fn lost(&self) -> impl ExactSizeIterator<Item = (&Gvk, SimTime)> {
        self.lost.iter().map(|(gvk, since)| (gvk, *since))
    }

    /// What was missed, in the order in which that was found out.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Takes a fact in that was recorded at that moment.
    pub fn apply(&mut self, at: SimTime, fact: Fact) {
        match fact {
            Fact::Applied(Applied { object, uid, owners, body }) => {
                self.objects.insert(object, Live { uid, owners, body });
            }
            Fact::Deleted(deleted) => {
                if self.objects.get(&deleted.object).is_some_and(|live| live.uid == deleted.uid) {
                    self.objects.remove(&deleted.object);
                }
            }
            Fact::Link(link) => {
                self.links.insert(link.uid.clone(), link);
            }
            Fact::Unlinked(uid) => {
                self.links.remove(&uid);
            }
            Fact::Pod(pod) => self.apply_pod(&pod),
            Fact::Node(node, Some(body)) => {
                self.nodes.insert(node, body);
            }
            Fact::Node(node, None) => {
                self.nodes.remove(&node);
            }
            Fact::Gap(gap) => self.apply_gap(gap),
            Fact::Watched(Watched { kind, version, seen }) => {
                self.positions.insert(kind, Position { version, seen: seen.map_or(at, |seen| seen.min(at)) });
            }
            Fact::Lost(gvk) => {
                let since = self.positions.remove(&gvk).map_or(at, |position| position.seen);
                self.lost.entry(gvk).and_modify(|before| *before = since.min(*before)).or_insert(since);
            }
        }
    }

    fn apply_pod(&mut self, pod: &PodFacts) {
        if pod.deleted.is_some() {
            self.pods.remove(&pod.uid);
            return;
        }
        let mut bytes = Vec::new();
        codec::put_pod(&mut bytes, pod);
        self.pods.insert(pod.uid.clone(), bytes.into());
    }

    fn apply_gap(&mut self, mut gap: Gap) {
        let since = gap.kind.as_ref().and_then(|kind| self.lost.remove(kind));
        gap.from = since.map_or(gap.from, |since| since.min(gap.from));
        self.gaps.push(gap);
        if self.gaps.len() > MAX_GAPS {
            let oldest = self.gaps.remove(0);
            let next = &mut self.gaps[0];
            let kind = next.kind.take().filter(|kind| oldest.kind.as_ref() == Some(kind));
            let (from, to) = (oldest.from.min(next.from), oldest.to.max(next.to));
            *next = Gap { from, to, kind, reason: "several gaps that are no longer told apart".into() };
        }
    }

    /// Takes the gap back that came last.
    pub(super) fn forget_newest_gap(&mut self) {
        self.gaps.pop();
    }

    /// Forgets the gaps that ended before anything that is kept.
    pub(super) fn forget_gaps_before(&mut self, kept_from: SimTime) {
        self.gaps.retain(|gap| gap.to >= kept_from);
    }

    /// Calls `put` with every fact that makes this state from nothing, as bytes, in a stable order, each with its moment:
    /// `now`, except where another matters.
    pub(super) fn encode<E>(
        &self,
        now: SimTime,
        mut put: impl FnMut(SimTime, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut bytes = Vec::new();
        let mut one_at = |at, write: &dyn Fn(&mut Vec<u8>)| {
            bytes.clear();
            write(&mut bytes);
            put(at, &bytes)
        };
        // Gaps end what was lost, and what is lost has no position: in this order none takes another away.
        for gap in &self.gaps {
            one_at(now, &|out| codec::put_gap(out, gap))?;
        }
        for (gvk, since) in &self.lost {
            one_at(*since, &|out| codec::put_lost(out, gvk))?;
        }
        for (gvk, position) in &self.positions {
            one_at(position.seen, &|out| codec::put_watched(out, gvk, &position.version, None))?;
        }
        let mut one = |write: &dyn Fn(&mut Vec<u8>)| one_at(now, write);
        for (node, body) in &self.nodes {
            one(&|out| codec::put_node(out, node, body))?;
        }
        for link in self.links.values() {
            one(&|out| codec::put_link(out, link))?;
        }
        for (object, live) in &self.objects {
            one(&|out| codec::put_applied(out, object, &live.uid, &live.owners, &live.body))?;
        }
        for pod in self.pods.values() {
            one(&|out| out.extend_from_slice(pod))?;
        }
        Ok(())
    }
}
