//! What a generated trace says really happened: true to itself, and to the rest of the trace.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use sk_core::{ObjectRef, Quantity, SimDuration, SimTime, SmolStr, TemplateId, registry};
use sk_store::trace::{Change, Life, NodeEvent, Observation, Row};
use sk_trace::generate::{GenerateSpec, Generator, Platform, Step};

/// What pods of a template ask for: thousandths of a CPU, bytes.
type Requests = (i64, i64);

/// A trace, told apart.
#[derive(Default)]
struct Told {
    nodes: Vec<NodeEvent>,
    pods: Vec<Observation>,
    lives: BTreeMap<ObjectRef, Vec<Life>>,
    requests: BTreeMap<TemplateId, Requests>,
    /// The replicas of each owner over time; none when it is gone.
    replicas: BTreeMap<ObjectRef, Vec<(SimTime, Option<u64>)>>,
    /// The newest template of each owner.
    newest: BTreeMap<ObjectRef, TemplateId>,
}

fn tell(spec: &GenerateSpec) -> Told {
    let mut told = Told::default();
    for step in Generator::new(spec).unwrap() {
        match step {
            Step::Row(Row::Node(event)) => told.nodes.push(event),
            Step::Row(Row::Observation(pod)) => told.pods.push(pod),
            Step::Row(Row::Lives(row)) => {
                let lives = row.templates.into_iter().flat_map(|template| template.lives);
                told.lives.entry(row.owner).or_default().extend(lives);
            }
            Step::Row(_) => {}
            Step::Record(record) => match &record.change {
                Change::Apply(object) => {
                    let (reference, value) = (object.reference(), object.value());
                    if let Some(path) = registry::template_path(&reference.gvk) {
                        for (at, template) in path.find(value) {
                            let asked = &template["spec"]["containers"][0]["resources"]["requests"];
                            let amount = |name: &str| asked[name].as_str().unwrap().parse::<Quantity>().unwrap();
                            let requests = (amount("cpu").milli_value(), amount("memory").value());
                            let id = TemplateId::of(at, template);
                            told.newest.insert(reference.clone(), id.clone());
                            told.requests.insert(id, requests);
                        }
                    }
                    if let Some(replicas) = value["spec"]["replicas"].as_u64() {
                        told.replicas.entry(reference.clone()).or_default().push((record.at, Some(replicas)));
                    }
                }
                Change::Delete(deletion) => {
                    told.replicas.entry(deletion.object.clone()).or_default().push((record.at, None));
                }
                Change::Mark(_) => {}
            },
        }
    }
    told
}

/// Half a day of the middling cluster, told once for all tests.
static HALF_A_DAY: LazyLock<Told> = LazyLock::new(|| tell(&half_a_day()));

fn half_a_day() -> GenerateSpec {
    let day = GenerateSpec::preset("day").unwrap();
    GenerateSpec { duration: SimDuration::from_mins(12 * 60), seed: 7, ..day }
}

/// When a pod no longer takes anything from its node.
fn left(pod: &Observation, spec: &GenerateSpec) -> SimTime {
    let is_batch = pod.owner.as_ref().is_some_and(|owner| owner.gvk.group == "batch");
    let left = if is_batch { pod.finished } else { pod.deleted };
    left.unwrap_or(spec.start + spec.duration)
}

#[test]
fn every_pod_goes_through_its_life_in_order_on_a_node_that_is_there() {
    let (spec, told) = (half_a_day(), &*HALF_A_DAY);
    let mut there: BTreeMap<&SmolStr, (SimTime, SimTime)> = BTreeMap::new();
    for event in &told.nodes {
        match event.object {
            Some(ref node) => {
                let created = node["metadata"]["creationTimestamp"].as_str().unwrap();
                let created = SimTime::parse_rfc3339(created).unwrap();
                assert!(created <= event.at, "{event:?}");
                there.entry(&event.node).or_insert((created, SimTime::from_secs(i64::MAX / 1_000_000)));
            }
            None => there.get_mut(&event.node).unwrap().1 = event.at,
        }
    }
    let mut alive = BTreeSet::new();
    for pod in &told.pods {
        let steps = [Some(pod.created), pod.scheduled, pod.started, pod.finished, pod.deleted];
        let steps: Vec<SimTime> = steps.into_iter().flatten().collect();
        assert!(steps.is_sorted() && pod.created < spec.start + spec.duration, "{pod:?}");
        assert_eq!(pod.node.is_some(), pod.scheduled.is_some(), "{pod:?}");
        assert!(pod.finished.is_none() || pod.started.is_some(), "{pod:?}");
        assert!(told.requests.contains_key(pod.template.as_ref().unwrap()), "{pod:?}");
        if pod.deleted.is_none() {
            assert!(alive.insert(&pod.pod), "two pods of one name: {pod:?}");
        }
        if let (Some(node), Some(scheduled)) = (&pod.node, pod.scheduled) {
            let (came, went) = there[node];
            let is_daemon = pod.owner.as_ref().unwrap().gvk.kind == "DaemonSet";
            assert!(scheduled >= came, "{pod:?} came before its node");
            // Daemons go with their machine; everything else was drained before.
            assert!(is_daemon || left(pod, &spec) <= went, "{pod:?} was on a node that went at {went:?}");
        }
    }
    assert!(told.pods.len() > 10_000, "{} pods", told.pods.len());
}

#[test]
fn no_node_ever_has_more_than_it_can_hold() {
    let (spec, told) = (half_a_day(), &*HALF_A_DAY);
    let sum_of = |told: &Told, allowed: (i64, i64, i64)| {
        let mut moves: Vec<(SimTime, bool, &Observation)> = Vec::new();
        for pod in told.pods.iter().filter(|pod| pod.node.is_some()) {
            moves.push((pod.scheduled.unwrap(), true, pod));
            moves.push((left(pod, &spec), false, pod));
        }
        // Of one moment, what goes goes first.
        moves.sort_by_key(|(at, comes, _)| (*at, *comes));
        let mut used: BTreeMap<&SmolStr, (i64, i64, i64)> = BTreeMap::new();
        let mut most = (0, 0, 0);
        for (at, comes, pod) in moves {
            let (cpu, memory) = told.requests[pod.template.as_ref().unwrap()];
            let sign = if comes { 1 } else { -1 };
            let used = used.entry(pod.node.as_ref().unwrap()).or_default();
            *used = (used.0 + sign * cpu, used.1 + sign * memory, used.2 + sign);
            assert!(used.0 <= allowed.0 && used.1 <= allowed.1 && used.2 <= allowed.2, "{at:?} {used:?} {pod:?}");
            most = (most.0.max(used.0), most.1.max(used.1), most.2.max(used.2));
        }
        most
    };
    let (cpu, ..) = sum_of(told, (15_800, 60 << 30, 110));
    assert!(cpu > 8_000, "the fullest node holds {cpu} thousandths of a CPU: nothing was at stake");
}

#[test]
fn owners_have_the_pods_that_they_want_at_the_beginning_and_in_the_end() {
    let (spec, told) = (half_a_day(), &*HALF_A_DAY);
    let end = spec.start + spec.duration;
    let standing = |owner: &ObjectRef, at: SimTime| {
        let is_there = |pod: &&Observation| pod.created < at && pod.deleted.is_none_or(|deleted| deleted > at);
        told.pods.iter().filter(|pod| pod.owner.as_ref() == Some(owner)).filter(is_there).count()
    };
    let mut settled = 0;
    for (owner, replicas) in &told.replicas {
        let first = replicas.first().unwrap();
        if first.0 == spec.start {
            let all_run = told.pods.iter().filter(|pod| pod.owner.as_ref() == Some(owner) && pod.created < spec.start);
            let running = all_run.filter(|pod| pod.started.is_some_and(|started| started < spec.start)).count();
            assert_eq!(running as u64, first.1.unwrap(), "{owner} at the beginning");
        }
        // What changed in the last minutes is on its way.
        let (at, last) = replicas.last().unwrap();
        if *at + SimDuration::from_mins(10) < end {
            assert_eq!(standing(owner, end) as u64, last.unwrap_or(0), "{owner} in the end");
            settled += 1;
        }
    }
    assert!(settled > 200, "{settled} owners");
}

#[test]
fn rollouts_come_to_their_end() {
    let (spec, told) = (half_a_day(), &*HALF_A_DAY);
    let end = spec.start + spec.duration;
    let settled: BTreeSet<&ObjectRef> = told
        .replicas
        .iter()
        .filter(|(_, changes)| changes.last().is_some_and(|(at, _)| *at + SimDuration::from_mins(10) < end))
        .map(|(owner, _)| owner)
        .collect();
    let mut rolled_out = BTreeSet::new();
    for pod in told.pods.iter().filter(|pod| pod.deleted.is_none()) {
        let owner = pod.owner.as_ref().filter(|owner| settled.contains(owner) && owner.gvk.kind == "Deployment");
        if let Some(owner) = owner {
            assert_eq!(pod.template.as_ref(), told.newest.get(owner), "{pod:?} is of an old template");
            if pod.created > spec.start {
                rolled_out.insert(owner);
            }
        }
    }
    assert!(rolled_out.len() > 100, "{} Deployments got new pods", rolled_out.len());
}

#[test]
fn lives_are_those_of_the_observed_pods() {
    let (spec, told) = (half_a_day(), &*HALF_A_DAY);
    let mut observed: BTreeMap<&ObjectRef, Vec<(SimTime, Option<SimTime>)>> = BTreeMap::new();
    for pod in &told.pods {
        let owner = pod.owner.as_ref().unwrap();
        if let Some(started) = pod.started.filter(|_| owner.gvk.group == "batch") {
            observed.entry(owner).or_default().push((started, pod.finished));
        }
    }
    let (mut jobs, mut crons) = (0, 0);
    for (owner, lives) in &told.lives {
        let mut lives: Vec<_> = lives.iter().map(|life| (life.start, life.end)).collect();
        lives.retain(|(start, _)| *start < spec.start + spec.duration);
        let mut pods = observed.remove(owner).unwrap_or_default();
        lives.sort_unstable();
        pods.sort_unstable();
        assert_eq!(pods, lives, "{owner}");
        *(if owner.gvk.kind == "Job" { &mut jobs } else { &mut crons }) += lives.len();
    }
    assert!(observed.is_empty() && jobs > 1_000 && crons > 500, "{jobs} {crons} {}", observed.len());
}

#[test]
fn where_there_is_no_room_pods_wait_for_machines_that_go_when_they_are_idle() {
    let mut spec = half_a_day();
    spec.platform = Some(Platform { machines: 6, stateful: 2, ..Platform::default() });
    spec.services.count = 5;
    (spec.batch.jobs_per_hour, spec.batch.bursts_per_day) = (60.0, 24.0);
    let told = tell(&spec);
    let waited: Vec<_> = told.pods.iter().filter(|pod| !pod.waits.is_empty()).collect();
    assert!(waited.len() > 20, "{} pods waited", waited.len());
    for pod in &waited {
        assert!(pod.waits[0].message.starts_with("0/") && pod.waits[0].reason == "Unschedulable");
        if let Some(scheduled) = pod.scheduled {
            let waited = scheduled.since(pod.created);
            assert!(SimDuration::from_secs(1) < waited && waited < SimDuration::from_mins(3), "{pod:?}");
        }
    }
    let went = told.nodes.iter().filter(|event| event.object.is_none()).count();
    let came = told.nodes.iter().map(|event| &event.node).collect::<BTreeSet<_>>().len();
    assert!(came > 8 && went > 2, "{came} machines came and {went} went");
}

#[test]
fn machines_are_cordoned_before_they_go_and_every_one_that_goes_was_there() {
    let mut spec = GenerateSpec::preset("week").unwrap();
    spec.services.count = 5;
    spec.batch.jobs_per_hour = 1.0;
    spec.batch.bursts_per_day = 0.0;
    let told = tell(&spec);
    let mut alive: BTreeMap<SmolStr, bool> = BTreeMap::new();
    assert!(told.nodes.is_sorted_by_key(|event| event.at), "they are told in the order of time");
    for event in &told.nodes {
        match &event.object {
            Some(node) => drop(alive.insert(event.node.clone(), node["spec"]["unschedulable"] == true)),
            None => assert_eq!(alive.remove(&event.node), Some(true), "{event:?}"),
        }
    }
    assert_eq!(alive.len(), 150, "each has a successor");
    assert!(told.nodes.len() > 200, "{} events", told.nodes.len());
}

#[test]
fn a_cluster_without_machines_has_nothing_to_tell() {
    let mut spec = half_a_day();
    spec.duration = SimDuration::from_mins(60);
    spec.platform = Some(Platform { machines: 0, ..spec.platform.unwrap() });
    let told = tell(&spec);
    assert!(told.pods.is_empty() && told.nodes.is_empty() && !told.lives.is_empty());
}
