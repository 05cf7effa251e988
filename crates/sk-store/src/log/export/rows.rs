//! What an export says beside its records: lives, observations, and what pods outside the trace took from nodes.

use std::collections::BTreeMap;
use std::rc::Rc;

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
    let mut owners: BTreeMap<ObjectRef, Grouped> = BTreeMap::new();
    for pod in survey.pods().filter(|pod| reaches_into(query, pod)) {
        let attribution = verdicts.owner_of(&pod).filter(|attribution| attribution.track_lifecycle);
        let (Some(attribution), Some(start)) = (attribution, pod.started) else { continue };
        let template = attribution.template.clone().filter(|_| !by_hash_alone);
        let groups = owners.entry(attribution.owner.clone()).or_default();
        groups.entry((template, pod.pod_hash)).or_default().push(Life { start, end: pod.finished });
    }
    let per_row = if by_hash_alone { usize::MAX } else { LIVES_PER_ROW };
    owners.into_iter().flat_map(|(owner, groups)| rows_of(&owner, groups, per_row)).collect()
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
    let told = survey.pods().filter(|pod| reaches_into(query, pod) && !verdicts.hides(pod));
    let mut order: Vec<_> = told.map(|pod| (pod.created, pod.pod, pod.uid)).collect();
    order.sort_unstable();
    order.into_iter().filter_map(|(_, _, uid)| {
        let pod = survey.pod(&uid)?;
        let (owner, template) = owner_of(survey, verdicts, &pod);
        Some(Observation {
            pod: pod.pod,
            owner,
            template,
            created: pod.created,
            scheduled: pod.scheduled,
            started: pod.started,
            finished: pod.finished,
            deleted: pod.deleted,
            node: pod.node,
            waits: pod.waits,
        })
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

/// A pod that comes to a node or leaves it, with what it takes there.
struct Move {
    at: SimTime,
    comes: bool,
    requests: Rc<[(SmolStr, Quantity)]>,
}

/// What the pods that are not in the trace took from each node, from the window's start on, at every change.
pub(super) fn reserved(query: &Query, survey: &Survey, verdicts: &Verdicts) -> Vec<Reserved> {
    let mut nodes: BTreeMap<SmolStr, Vec<Move>> = BTreeMap::new();
    for pod in survey.pods().filter(|pod| verdicts.owner_of(pod).is_none()) {
        let bound = pod.scheduled.or(pod.started).unwrap_or(pod.created).max(query.start);
        let end = ended(&pod);
        let outside = bound >= query.end || end.is_some_and(|end| end <= bound);
        let (Some(node), false) = (pod.node, outside) else { continue };
        let amounts = pod.requests.into_iter().filter_map(|(resource, text)| Some((resource, text.parse().ok()?)));
        let requests: Rc<[_]> = amounts.collect();
        let moves = nodes.entry(node).or_default();
        moves.push(Move { at: bound, comes: true, requests: Rc::clone(&requests) });
        let end = end.filter(|end| *end < query.end);
        moves.extend(end.map(|end| Move { at: end, comes: false, requests }));
    }
    nodes.into_iter().flat_map(|(node, moves)| reserved_on(&node, moves)).collect()
}

fn reserved_on(node: &SmolStr, mut moves: Vec<Move>) -> Vec<Reserved> {
    // What goes makes room before what comes takes it.
    moves.sort_by_key(|step| (step.at, step.comes));
    let mut rows = Vec::new();
    let (mut pods, mut sums) = (0_u32, BTreeMap::<SmolStr, Quantity>::new());
    let mut moves = moves.into_iter().peekable();
    while let Some(Move { at, comes, requests }) = moves.next() {
        pods = if comes { pods.saturating_add(1) } else { pods.saturating_sub(1) };
        for (resource, amount) in requests.iter() {
            let change = if comes { *amount } else { -*amount };
            sums.entry(resource.clone()).and_modify(|sum| *sum += change).or_insert(change);
        }
        sums.retain(|_, sum| !sum.is_zero());
        if moves.peek().is_none_or(|next| next.at != at) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> ObjectRef {
        ObjectRef::new(Gvk::new_static("batch", "v1", "CronJob"), sk_core::ObjectKey::namespaced("a", "b"))
    }

    #[test]
    fn an_owner_of_many_lives_has_several_rows_and_none_is_lost() {
        let life = |n| Life { start: SimTime::from_secs(n), end: None };
        let mut groups = Grouped::new();
        groups.insert((None, Some(StableHash::new(1))), (0..10_000).rev().map(life).collect());
        groups.insert((None, Some(StableHash::new(2))), (0..100).map(life).collect());
        let rows = rows_of(&owner(), groups.clone(), LIVES_PER_ROW);
        let lengths: Vec<usize> =
            rows.iter().map(|row| row.templates.iter().map(|template| template.lives.len()).sum()).collect();
        assert_eq!(lengths, [4_096, 4_096, 1_908]);
        let first: Vec<_> = rows.iter().flat_map(|row| &row.templates[0].lives).copied().collect();
        assert!(first.iter().copied().eq((0..10_000).map(life)), "in the order of their starts");
        let [whole] = &rows_of(&owner(), groups, usize::MAX)[..] else { panic!("v2 has one row for an owner") };
        assert_eq!(whole.templates.iter().map(|template| template.lives.len()).collect::<Vec<_>>(), [10_000, 100]);
    }

    #[test]
    fn what_is_reserved_adds_up_at_every_moment() {
        let take = |cpu: &str| Rc::from([(SmolStr::from("cpu"), cpu.parse::<Quantity>().unwrap())]);
        let step = |secs, comes, cpu| Move { at: SimTime::from_secs(secs), comes, requests: take(cpu) };
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
        let rows = reserved_on(&"n".into(), moves);
        let told: Vec<_> =
            rows.iter().map(|row| (row.at.as_secs(), row.pods, row.requests.get("cpu").map(String::as_str))).collect();
        assert_eq!(told, [(0, 1, Some("1")), (5, 3, Some("1500m")), (9, 3, Some("2500m")), (10, 0, None)]);
    }
}
