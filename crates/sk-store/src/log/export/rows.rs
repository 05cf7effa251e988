//! What an export says beside its records: lives, observations, and what pods outside the trace took from nodes.

use std::collections::BTreeMap;

use sk_core::{Gvk, ObjectRef, Quantity, SimTime, SmolStr, StableHash, TemplateId};

use super::query::Query;
use super::survey::{Survey, Verdicts};
use crate::log::fact::PodFacts;
use crate::trace::{IndexPart, Life, Observation, OwnerLives, Reserved, TemplateLives};

/// How many lives go into one row: 4,096 at about 80 bytes is 320 KiB of text, far below what a line may have.
const LIVES_PER_ROW: usize = 4_096;

/// How many links are followed from a pod upwards to name its owner.
const MAX_LINKS: usize = 16;

/// The lives of one owner's pods, by template and by hash.
type Grouped = BTreeMap<(Option<TemplateId>, Option<StableHash>), Vec<Life>>;

/// The lives of the pods that ran in the window, by owner. Where templates are no part of the form (v2), the pods of
/// one hash are one group, in one row.
pub(super) fn lives(query: &Query, survey: &Survey, verdicts: &Verdicts, by_hash_alone: bool) -> Vec<OwnerLives> {
    let mut owners: BTreeMap<&ObjectRef, Grouped> = BTreeMap::new();
    for pod in survey.pods().filter(|pod| reaches_into(query, pod)) {
        let attribution = verdicts.owner_of(pod).filter(|attribution| attribution.track_lifecycle);
        let (Some(attribution), Some(start)) = (attribution, pod.started) else { continue };
        let template = attribution.template.clone().filter(|_| !by_hash_alone);
        let group = owners.entry(&attribution.owner).or_default().entry((template, pod.pod_hash)).or_default();
        group.push(Life { start, end: pod.finished });
    }
    let per_row = if by_hash_alone { usize::MAX } else { LIVES_PER_ROW };
    owners.into_iter().flat_map(|(owner, groups)| rows_of(owner, groups, per_row)).collect()
}

fn rows_of(owner: &ObjectRef, groups: Grouped, per_row: usize) -> Vec<OwnerLives> {
    let mut rows = vec![OwnerLives { owner: owner.clone(), templates: Vec::new() }];
    let mut room = per_row;
    for ((template, pod_hash), mut lives) in groups {
        lives.sort_unstable();
        for part in lives.chunks(per_row.min(lives.len())) {
            if part.len() > room {
                rows.push(OwnerLives { owner: owner.clone(), templates: Vec::new() });
                room = per_row;
            }
            room -= part.len();
            let part = TemplateLives { template: template.clone(), pod_hash, lives: part.to_vec() };
            rows.last_mut().expect("it begins with one").templates.push(part);
        }
    }
    rows
}

/// Had the pod not ended before the window began?
fn reaches_into(query: &Query, pod: &PodFacts) -> bool {
    ended(pod).is_none_or(|end| end >= query.start)
}

/// When a pod stopped taking anything.
fn ended(pod: &PodFacts) -> Option<SimTime> {
    pod.finished.into_iter().chain(pod.deleted).min()
}

/// What really happened to the pods that were bound or waiting in the window, in the order of their creation.
pub(super) fn observations<'a>(
    query: &'a Query,
    survey: &'a Survey,
    verdicts: &'a Verdicts,
) -> impl Iterator<Item = Observation> + 'a {
    let mut pods: Vec<_> = survey.pods().filter(|pod| reaches_into(query, pod) && !verdicts.hides(pod)).collect();
    pods.sort_by_key(|pod| (pod.created, &pod.pod, &pod.uid));
    pods.into_iter().map(|pod| {
        let (owner, template) = owner_of(survey, verdicts, pod);
        Observation {
            pod: pod.pod.clone(),
            owner,
            template,
            created: pod.created,
            scheduled: pod.scheduled,
            started: pod.started,
            finished: pod.finished,
            deleted: pod.deleted,
            node: pod.node.clone(),
            waits: pod.waits.clone(),
        }
    })
}

/// Who a pod belonged to: the owner that is in the trace, else the farthest that is known. A bare pod has none.
fn owner_of(survey: &Survey, verdicts: &Verdicts, pod: &PodFacts) -> (Option<ObjectRef>, Option<TemplateId>) {
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

/// What the pods that are not in the trace took from each node, from the window's start on, at every change.
pub(super) fn reserved(query: &Query, survey: &Survey, verdicts: &Verdicts) -> Vec<Reserved> {
    let mut nodes: BTreeMap<&SmolStr, Vec<(SimTime, bool, &PodFacts)>> = BTreeMap::new();
    for pod in survey.pods().filter(|pod| verdicts.owner_of(pod).is_none()) {
        let bound = pod.scheduled.or(pod.started).unwrap_or(pod.created);
        let (Some(node), true) = (&pod.node, bound < query.end) else { continue };
        let end = ended(pod);
        if end.is_some_and(|end| end <= query.start) {
            continue;
        }
        let changes = nodes.entry(node).or_default();
        changes.push((bound.max(query.start), true, pod));
        changes.extend(end.filter(|end| *end < query.end).map(|end| (end.max(bound), false, pod)));
    }
    nodes.into_iter().flat_map(|(node, changes)| reserved_on(node, changes)).collect()
}

fn reserved_on(node: &SmolStr, mut changes: Vec<(SimTime, bool, &PodFacts)>) -> Vec<Reserved> {
    // What goes makes room before what comes takes it.
    changes.sort_by_key(|(at, comes, pod)| (*at, *comes, &pod.uid));
    let mut rows = Vec::new();
    let (mut pods, mut sums) = (0_u32, BTreeMap::<SmolStr, Quantity>::new());
    let mut changes = changes.into_iter().peekable();
    while let Some((at, comes, pod)) = changes.next() {
        pods = if comes { pods.saturating_add(1) } else { pods.saturating_sub(1) };
        for (resource, text) in &pod.requests {
            let Ok(quantity) = text.parse::<Quantity>() else { continue };
            let change = if comes { quantity } else { -quantity };
            match sums.get_mut(resource) {
                Some(sum) => *sum += change,
                None => drop(sums.insert(resource.clone(), change)),
            }
        }
        sums.retain(|_, sum| !sum.is_zero());
        if changes.peek().is_none_or(|(next, ..)| *next != at) {
            let requests = sums.iter().map(|(resource, sum)| (resource.clone(), sum.to_string())).collect();
            rows.push(Reserved { at, node: node.clone(), pods, requests });
        }
    }
    rows
}

/// The index that v2 has: the hash of each exported object's spec as it was before anything was made private.
pub(super) fn index(survey: &Survey, verdicts: &Verdicts) -> Vec<IndexPart> {
    let mut parts: Vec<IndexPart> = Vec::new();
    for (object, hash) in survey.spec_hashes(verdicts) {
        let kind = object.gvk.to_string();
        if parts.last().is_none_or(|part| part.kind != kind) {
            parts.push(IndexPart { kind, objects: Vec::new() });
        }
        let name = format!("{}/{}", object.key.namespace_or_empty(), object.key.name);
        parts.last_mut().expect("one was just pushed").objects.push((name, Some(hash)));
    }
    parts
}
