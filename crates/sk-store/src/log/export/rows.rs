//! The rows of an export: lifecycles, observations, and what pods outside the trace reserved on nodes.
//!
//! Pods arrive one at a time in the order of the log; rows are written in an order that does not depend on it. What has to
//! wait is small: a lifecycle, two numbers for each start and end of a pod, and the position of the pod in a temporary file.

use std::collections::{BTreeMap, HashMap};

use sk_core::{Gvk, ObjectRef, Quantity, SimTime, SmolStr, StableHash, TemplateId};
use xxhash_rust::xxh3::xxh3_64;

use super::query::Query;
use super::survey::{Survey, Verdicts};
use crate::log::codec;
use crate::log::fact::{Fact, PodFacts};
use crate::trace::spool::{Spool, SpoolFolder};
use crate::trace::{IndexPart, Life, Observation, OwnerLives, Reserved, TemplateLives, WriteError};

/// How many lives go into one row: 4,096 at about 80 bytes is 320 KiB of text, far below what a line may have.
const LIVES_PER_ROW: usize = 4_096;

/// How many links are followed from a pod upwards to name its owner.
const MAX_LINKS: usize = 16;

/// What is known of the pods of a window.
pub(super) struct Pods<'a> {
    query: &'a Query,
    survey: &'a Survey,
    verdicts: &'a Verdicts<'a>,
    /// Are templates no part of the form (v2)? Then the pods of one hash are one group, in one row; a template stands for a
    /// hash that is not known.
    by_hash_alone: bool,
    lives: Lives,
    /// The exported pods, as they are in the spool.
    told: Vec<Told>,
    spool: Spool,
    moves: BTreeMap<SmolStr, Vec<Move>>,
    requests: Requests,
    /// Reused: one encoded pod.
    bytes: Vec<u8>,
}

/// Lives by owner, template and hash.
type Lives = BTreeMap<(ObjectRef, Option<TemplateId>, Option<StableHash>), Vec<Life>>;

/// A pod in the spool. Their order is that of their creation, and among those of one moment any that is always the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    created: SimTime,
    uid: u64,
    offset: u64,
    len: u32,
}

/// A pod that comes to a node or leaves it.
struct Move {
    at: SimTime,
    /// What it takes there, by its place in [`Requests`].
    requests: u32,
    comes: bool,
}

/// What pods ask for. Most ask for the same as others.
#[derive(Default)]
struct Requests {
    places: HashMap<BTreeMap<SmolStr, String>, u32>,
    amounts: Vec<Vec<(SmolStr, Quantity)>>,
}

impl Requests {
    fn place_of(&mut self, requests: BTreeMap<SmolStr, String>) -> u32 {
        let next = u32::try_from(self.amounts.len()).expect("a window has fewer pods than that");
        *self.places.entry(requests).or_insert_with_key(|requests| {
            let amounts = requests.iter().filter_map(|(resource, text)| Some((resource.clone(), text.parse().ok()?)));
            self.amounts.push(amounts.collect());
            next
        })
    }

    fn at(&self, place: u32) -> &[(SmolStr, Quantity)] {
        &self.amounts[place as usize]
    }
}

impl<'a> Pods<'a> {
    pub(super) fn new(
        query: &'a Query,
        survey: &'a Survey,
        verdicts: &'a Verdicts<'a>,
        by_hash_alone: bool,
        folder: &SpoolFolder,
    ) -> Self {
        Self {
            query,
            survey,
            verdicts,
            by_hash_alone,
            lives: Lives::new(),
            told: Vec::new(),
            spool: Spool::new(folder),
            moves: BTreeMap::new(),
            requests: Requests::default(),
            bytes: Vec::new(),
        }
    }

    /// Takes in the last that is known of a pod.
    pub(super) fn take(&mut self, pod: PodFacts) -> Result<(), WriteError> {
        if ended(&pod).is_none_or(|end| end >= self.query.start) {
            self.take_life(&pod);
            self.lay_aside(&pod)?;
        }
        self.take_moves(pod);
        Ok(())
    }

    fn take_life(&mut self, pod: &PodFacts) {
        let attribution = self.verdicts.owner_of(pod).filter(|attribution| attribution.track_lifecycle);
        let (Some(attribution), Some(start)) = (attribution, pod.started) else { return };
        let template = attribution.template.clone().filter(|_| !self.by_hash_alone || pod.pod_hash.is_none());
        let group = (attribution.owner.clone(), template, pod.pod_hash);
        self.lives.entry(group).or_default().push(Life {
            start,
            end: pod.finished,
            guessed: pod.guessed,
            exit_code: pod.exit_code,
        });
    }

    /// Keeps a pod until all of them are known.
    fn lay_aside(&mut self, pod: &PodFacts) -> Result<(), WriteError> {
        if self.verdicts.hides(pod) {
            return Ok(());
        }
        self.bytes.clear();
        codec::put_pod(&mut self.bytes, pod);
        let len = u32::try_from(self.bytes.len()).expect("it was an entry of the log, which are shorter");
        let uid = xxh3_64(pod.uid.as_bytes());
        self.told.push(Told { created: pod.created, uid, offset: self.spool.len(), len });
        self.spool.append(&self.bytes)
    }

    fn take_moves(&mut self, pod: PodFacts) {
        if self.verdicts.owner_of(&pod).is_some() {
            return;
        }
        let bound = pod.scheduled.or(pod.started).unwrap_or(pod.created).max(self.query.start);
        let end = ended(&pod);
        let outside = bound >= self.query.end || end.is_some_and(|end| end <= bound);
        let (Some(node), false) = (pod.node, outside) else { return };
        let requests = self.requests.place_of(pod.requests);
        let moves = self.moves.entry(node).or_default();
        moves.push(Move { at: bound, requests, comes: true });
        let end = end.filter(|end| *end < self.query.end);
        moves.extend(end.map(|end| Move { at: end, requests, comes: false }));
    }

    /// The lives of the pods that ran in the window, by owner.
    pub(super) fn lives<E>(&mut self, put: impl FnMut(OwnerLives) -> Result<(), E>) -> Result<(), E> {
        let per_row = if self.by_hash_alone { usize::MAX } else { LIVES_PER_ROW };
        rows_of(std::mem::take(&mut self.lives), per_row, put)
    }

    /// What really happened to the pods that were bound or waiting in the window, in the order of their creation.
    pub(super) fn observations<E: From<WriteError>>(
        &mut self,
        mut put: impl FnMut(Observation) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut told = std::mem::take(&mut self.told);
        told.sort_unstable();
        for Told { offset, len, .. } in told {
            self.bytes.clear();
            self.spool.copy(offset, len.into(), &mut self.bytes)?;
            // It was encoded here, and so can be read.
            let Ok(Fact::Pod(pod)) = codec::read(&self.bytes) else { continue };
            put(observation(self.survey, self.verdicts, *pod))?;
        }
        Ok(())
    }

    /// What the pods that are not in the trace took from each node, from the window's start on, at every change.
    pub(super) fn reserved<E>(&mut self, mut put: impl FnMut(Reserved) -> Result<(), E>) -> Result<(), E> {
        for (node, moves) in std::mem::take(&mut self.moves) {
            reserved_on(&node, moves, &self.requests, &mut put)?;
        }
        Ok(())
    }
}

/// When a pod stopped taking anything.
fn ended(pod: &PodFacts) -> Option<SimTime> {
    pod.finished.into_iter().chain(pod.deleted).min()
}

fn rows_of<E>(lives: Lives, per_row: usize, mut put: impl FnMut(OwnerLives) -> Result<(), E>) -> Result<(), E> {
    let mut row: Option<OwnerLives> = None;
    let mut room = per_row;
    for ((owner, template, pod_hash), mut lives) in lives {
        lives.sort_unstable();
        for part in lives.chunks(per_row) {
            if part.len() > room || row.as_ref().is_some_and(|row| row.owner != owner) {
                row.take().map_or(Ok(()), &mut put)?;
                room = per_row;
            }
            room -= part.len();
            let part = TemplateLives { template: template.clone(), pod_hash, lives: part.to_vec() };
            let begun = row.get_or_insert_with(|| OwnerLives { owner: owner.clone(), templates: Vec::new() });
            begun.templates.push(part);
        }
    }
    row.map_or(Ok(()), put)
}

fn observation(survey: &Survey, verdicts: &Verdicts<'_>, pod: PodFacts) -> Observation {
    let (owner, template) = owner_of(survey, verdicts, &pod);
    Observation {
        pod: pod.pod,
        owner,
        template,
        created: pod.created,
        scheduled: pod.scheduled,
        started: pod.started,
        finished: pod.finished,
        deleted: pod.deleted,
        guessed: pod.guessed,
        node: pod.node,
        waits: pod.waits,
    }
}

/// Who a pod belonged to: the owner that is in the trace, else the farthest that is known. A bare pod has none.
fn owner_of(survey: &Survey, verdicts: &Verdicts<'_>, pod: &PodFacts) -> (Option<ObjectRef>, Option<TemplateId>) {
    let itself = |owner: &ObjectRef| owner.gvk == Gvk::new_static("", "v1", "Pod") && owner.key == pod.pod;
    let attribution = verdicts.owner_of(pod).or_else(|| pod.attributions.last());
    if let Some(attribution) = attribution {
        return (Some(&attribution.owner).filter(|owner| !itself(owner)).cloned(), attribution.template.clone());
    }
    let mut owners = &pod.owners;
    let mut farthest = None;
    for _ in 0..MAX_LINKS {
        let Some(owner) = owners.iter().find(|owner| owner.controller).or(owners.first()) else { break };
        let link = survey.link(&owner.uid);
        let named = || owner.object_ref(pod.pod.namespace.as_deref());
        farthest = Some(link.map_or_else(named, |link| link.object.clone()));
        match link {
            Some(link) => owners = &link.owners,
            None => break,
        }
    }
    (farthest, None)
}

fn reserved_on<E>(
    node: &SmolStr,
    mut moves: Vec<Move>,
    requests: &Requests,
    put: &mut impl FnMut(Reserved) -> Result<(), E>,
) -> Result<(), E> {
    // What goes makes room before what comes takes it.
    moves.sort_unstable_by_key(|step| (step.at, step.comes));
    let (mut pods, mut sums) = (0_u32, BTreeMap::<SmolStr, Quantity>::new());
    let mut moves = moves.into_iter().peekable();
    while let Some(Move { at, comes, requests: place }) = moves.next() {
        pods = if comes { pods.saturating_add(1) } else { pods.saturating_sub(1) };
        for (resource, amount) in requests.at(place) {
            let change = if comes { *amount } else { -*amount };
            sums.entry(resource.clone()).and_modify(|sum| *sum += change).or_insert(change);
        }
        sums.retain(|_, sum| !sum.is_zero());
        if moves.peek().is_none_or(|next| next.at != at) {
            let requests = sums.iter().map(|(resource, sum)| (resource.clone(), sum.to_string())).collect();
            put(Reserved { at, node: node.clone(), pods, requests })?;
        }
    }
    Ok(())
}

/// The index that v2 has: the hash of each exported object's newest spec, as it stands in the trace.
pub(super) fn index(spec_hashes: &BTreeMap<ObjectRef, StableHash>) -> Vec<IndexPart> {
    let mut parts: Vec<IndexPart> = Vec::new();
    for (object, hash) in spec_hashes {
        let kind = object.gvk.to_string();
        if parts.last().is_none_or(|part| part.kind != kind) {
            parts.push(IndexPart { kind, objects: Vec::new() });
        }
        let name = format!("{}/{}", object.key.namespace_or_empty(), object.key.name);
        parts.last_mut().expect("one was just pushed").objects.push((name, Some(*hash)));
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn owner() -> ObjectRef {
        ObjectRef::new(Gvk::new_static("batch", "v1", "CronJob"), sk_core::ObjectKey::namespaced("a", "b"))
    }

    /// The rows that something puts.
    fn all<R>(put_all: impl FnOnce(&mut dyn FnMut(R) -> Result<(), Infallible>) -> Result<(), Infallible>) -> Vec<R> {
        let mut rows = Vec::new();
        let Ok(()) = put_all(&mut |row| {
            rows.push(row);
            Ok(())
        });
        rows
    }

    #[test]
    fn an_owner_of_many_lives_has_several_rows_and_none_is_lost() {
        let life = |n| Life { start: SimTime::from_secs(n), end: None, guessed: false, exit_code: None };
        let mut lives = Lives::new();
        lives.insert((owner(), None, Some(StableHash::new(1))), (0..10_000).rev().map(life).collect());
        lives.insert((owner(), None, Some(StableHash::new(2))), (0..100).map(life).collect());
        let rows = all(|put| rows_of(lives.clone(), LIVES_PER_ROW, put));
        let lengths: Vec<usize> =
            rows.iter().map(|row| row.templates.iter().map(|template| template.lives.len()).sum()).collect();
        assert_eq!(lengths, [4_096, 4_096, 1_908]);
        let first: Vec<_> = rows.iter().flat_map(|row| &row.templates[0].lives).copied().collect();
        assert!(first.iter().copied().eq((0..10_000).map(life)), "in the order of their starts");
        let rows = all(|put| rows_of(lives, usize::MAX, put));
        let [whole] = &rows[..] else { panic!("v2 has one row for an owner") };
        assert_eq!(whole.templates.iter().map(|template| template.lives.len()).collect::<Vec<_>>(), [10_000, 100]);
    }

    #[test]
    fn what_is_reserved_adds_up_at_every_moment() {
        let mut requests = Requests::default();
        let mut step = |secs, comes, cpu: &str| {
            let requests = requests.place_of([("cpu".into(), cpu.to_owned())].into());
            Move { at: SimTime::from_secs(secs), requests, comes }
        };
        let moves = vec![
            step(9, false, "1"),
            step(0, true, "1"),
            step(5, true, "250m"),
            step(5, true, "250m"),
            step(9, true, "2"),
            step(10, false, "2"),
            step(10, false, "250m"),
            step(10, false, "250m"),
        ];
        assert_eq!(requests.amounts.len(), 3, "the same are kept once");
        let rows = all(|mut put| reserved_on(&"n".into(), moves, &requests, &mut put));
        let told: Vec<_> = rows
            .iter()
            .map(|row: &Reserved| (row.at.as_secs(), row.pods, row.requests.get("cpu").map(String::as_str)))
            .collect();
        assert_eq!(told, [(0, 1, Some("1")), (5, 3, Some("1500m")), (9, 3, Some("2500m")), (10, 0, None)]);
    }
}
