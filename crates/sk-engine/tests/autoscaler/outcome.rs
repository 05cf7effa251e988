//! What a run of the engine came to, in the terms of a recording.

use std::collections::{BTreeMap, BTreeSet};

use sk_core::{ObjectKey, SimTime};
use sk_engine::Verdict;
use sk_engine::api::{Change, Object, WatchEvent};
use sk_engine::kinds::{Node, PodPhase};
use sk_testkit::autoscaling::Took;

use crate::player::Played;

const SOFT: &str = "DeletionCandidateOfClusterAutoscaler";
const GOING: &str = "ToBeDeletedByClusterAutoscaler";
const GROUP: &str = "obs/group";

/// Counts that change over time: when, and what from then on.
pub(crate) type Curve = Vec<(f64, i64)>;

/// What happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// By group: nodes, ready, soft-tainted, to be deleted, cordoned.
    pub(crate) nodes: BTreeMap<String, [Curve; 5]>,
    /// By workload: pending, running.
    pub(crate) pods: BTreeMap<String, [Curve; 2]>,
    /// The scale-ups.
    pub(crate) plans: Vec<(f64, Vec<sk_testkit::autoscaling::Growth>)>,
    /// What each option would have wasted, in percent.
    pub(crate) wastes: Vec<(String, f64)>,
    /// When, reason, who, message: nodes by their groups, pods by their workloads.
    pub(crate) events: Vec<(f64, String, String, String)>,
    /// Group of the node, and why it could not go.
    pub(crate) unremovable: BTreeSet<(String, String)>,
    /// How long things took.
    pub(crate) took: Took,
}

/// Reads what the engine did.
pub(crate) fn of(played: Played) -> Outcome {
    let Played { mut engine, zero } = played;
    let seconds = |at: SimTime| at.since(zero).as_secs_f64();
    let mut outcome = Outcome::default();
    let mut workloads: BTreeMap<ObjectKey, String> = BTreeMap::new();
    let mut groups: BTreeMap<String, String> = BTreeMap::new();
    let mut now = BTreeMap::new();
    let mut nodes: BTreeSet<ObjectKey> = BTreeSet::new();
    let mut spans = Spans::default();
    for event in engine.watch(0).expect("a recording's changes stay within the log") {
        let object = &event.object;
        let there = event.change != Change::Deleted;
        let at = seconds(event.at);
        spans.note(event, at, &mut outcome.took);
        if object.node().is_some() {
            match there {
                true => drop(nodes.insert(object.key.clone())),
                false => drop(nodes.remove(&object.key)),
            }
            let group = object.meta.labels.get(GROUP).map_or("", |group| group).to_owned();
            groups.insert(object.key.name.to_string(), group.clone());
            let counts = node_counts(object).filter(|_| there);
            note(&mut now, (true, group), object, counts.unwrap_or_default(), at, &mut outcome);
        } else if object.pod().is_some() {
            let app = object.meta.labels.get("app").map_or("", |app| app).to_owned();
            workloads.insert(object.key.clone(), app.clone());
            let node = object.pod().and_then(|pod| pod.node_name.as_ref());
            let is_lost = node.is_some_and(|node| !nodes.contains(&ObjectKey::cluster(node.clone())));
            let counts = pod_counts(object).filter(|_| there && !is_lost);
            note(&mut now, (false, app), object, counts.unwrap_or_default(), at, &mut outcome);
        }
    }
    let kinds: BTreeMap<String, String> =
        workloads.iter().map(|(pod, app)| (pod.name.to_string(), app.clone())).chain(groups).collect();
    for decision in engine.take_decisions() {
        for (reason, about, message) in decision.events() {
            let name = about.rsplit_once('/').map_or(about.as_str(), |(_, name)| name);
            let (who, message) = (named_by_kind(name, &kinds), named_by_kind(&message, &kinds));
            outcome.events.push((seconds(decision.at), reason.to_owned(), who, message));
        }
        match decision.verdict {
            // The real one logs no plan where it only fills a group up to its minimum.
            Verdict::ScaleUp { plan, pods, options, .. } if !pods.is_empty() => {
                let percent = |millionths: i64| millionths as f64 / 20_000.0;
                outcome.wastes.extend(options.iter().map(|option| (option.group.to_string(), percent(option.waste))));
                let plan = plan.into_iter().map(|resize| (resize.group.to_string(), resize.from, resize.to)).collect();
                outcome.plans.push((seconds(decision.at), plan));
            }
            Verdict::Unremovable { node, reason } => {
                let reason = workloads.iter().rev().fold(reason, |reason, (pod, app)| reason.replace(&*pod.name, app));
                outcome.unremovable.insert((group_of(&node), reason));
            }
            _ => {}
        }
    }
    outcome
}

/// From when spans count.
#[derive(Default)]
struct Spans {
    created: BTreeMap<ObjectKey, f64>,
    ready: BTreeMap<String, f64>,
}

impl Spans {
    /// The same spans as the recordings have (`tools/observations/autoscaler`).
    fn note(&mut self, event: &WatchEvent, at: f64, took: &mut Took) {
        let object = &event.object;
        if object.node().is_some_and(Node::is_ready) {
            self.ready.entry(object.key.name.to_string()).or_insert(at);
        }
        let Some(pod) = object.pod() else { return };
        let had_node = event.before.as_ref().and_then(|before| before.pod()?.node_name.as_ref()).is_some();
        match (&pod.node_name, event.change) {
            (None, Change::Added) if at > 0.0 => drop(self.created.insert(object.key.clone(), at)),
            (Some(node), Change::Modified) if !had_node => {
                let created = self.created.get(&object.key).map(|created| at - created);
                let ready = self.ready.get(node.as_str()).map(|ready| at - ready);
                match (created, ready) {
                    (Some(span), _) if span < 1.0 => took.created_to_bound.push(span),
                    (Some(_), Some(span)) if (-0.5..1.0).contains(&span) => took.ready_to_bound.push(span),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// The group of a node by its name.
fn group_of(node: &str) -> String {
    node.rsplit_once('-').map_or(node, |(group, _)| group).to_owned()
}

/// The text with nodes called by their groups and pods by their workloads.
fn named_by_kind(text: &str, kinds: &BTreeMap<String, String>) -> String {
    let is_of_a_name = |c: char| c.is_alphanumeric() || c == '-';
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_of_a_name) {
        let end = rest[start..].find(|c| !is_of_a_name(c)).map_or(rest.len(), |length| start + length);
        let word = &rest[start..end];
        out.push_str(&rest[..start]);
        out.push_str(kinds.get(word).map_or(word, String::as_str));
        rest = &rest[end..];
    }
    out + rest
}

type Counts = [i64; 5];

/// Counts an object anew and draws the curves on.
fn note(
    now: &mut BTreeMap<(bool, String), BTreeMap<ObjectKey, Counts>>,
    (is_node, name): (bool, String),
    object: &Object,
    counts: Counts,
    at: f64,
    outcome: &mut Outcome,
) {
    let all = now.entry((is_node, name.clone())).or_default();
    all.insert(object.key.clone(), counts);
    let sum = |place: usize| all.values().map(|counts| counts[place]).sum::<i64>();
    let curves: &mut [Curve] = match is_node {
        true => outcome.nodes.entry(name).or_default(),
        false => outcome.pods.entry(name).or_default(),
    };
    for (place, curve) in curves.iter_mut().enumerate() {
        let value = sum(place);
        if curve.last().is_none_or(|(_, last)| *last != value) {
            curve.push((at, value));
        }
    }
}

fn node_counts(object: &Object) -> Option<Counts> {
    let node = object.node()?;
    let has = |key: &str| i64::from(node.spec.taints.iter().any(|taint| taint.key == key));
    Some([1, i64::from(node.is_ready()), has(SOFT), has(GOING), i64::from(node.spec.unschedulable)])
}

fn pod_counts(object: &Object) -> Option<Counts> {
    let pod = object.pod()?;
    if object.is_deleting() {
        return Some(Counts::default());
    }
    match pod.status.phase {
        PodPhase::Pending => Some([1, 0, 0, 0, 0]),
        PodPhase::Running => Some([0, 1, 0, 0, 0]),
        _ => Some(Counts::default()),
    }
}
