//! The disruption controller: computes how many pods of a budget may be evicted now (`pkg/controller/disruption`,
//! 1.36).
//!
//! `selected` counts the pods of each budget as they change, so a sync looks at no pod but those whose eviction was
//! allowed; `status` is what a budget reports.
//!
//! Simplified: it does not ask for the `scale` of a custom resource that controls pods. The expected count is then
//! unknown, as for a DaemonSet or a Job, and no pod may be evicted, as in Kubernetes.

mod selected;
mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use sk_apiserver::kinds::{IntOrPercent, POD, POD_DISRUPTION_BUDGET};
use sk_apiserver::{Body, Change, KindTag, Object, ObjectId, Request, View, WatchEvent};
use sk_core::{LabelSelector, ObjectKey, SimDuration, SimTime, SmolStr};

use self::selected::{NoSize, Selected, is_healthy, size};
use self::status::{in_go, status, unknown_size};
use super::selectors::Selectors;
use crate::controller::{Plan, Reconciler};
use crate::events::Event;
use crate::workqueue::WorkQueue;

/// A pod whose eviction was allowed and that is still there after this long counts again (`DeletionTimeout`).
const DELETION_TIMEOUT: SimDuration = SimDuration::from_mins(2);

/// How it signs Events.
const FROM: &str = "controllermanager";

/// The controller.
#[derive(Clone, Default)]
pub(crate) struct Disruption {
    selectors: Selectors,
    pods: BTreeMap<ObjectId, Selected>,
    /// How often a workload of a namespace came, went or changed its size.
    resizes: BTreeMap<SmolStr, u64>,
}

impl Reconciler for Disruption {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = &[
        KindTag::Pod,
        KindTag::Other,
        KindTag::Deployment,
        KindTag::ReplicaSet,
        KindTag::ReplicationController,
        KindTag::StatefulSet,
    ];

    fn wants_pods(&self) -> bool {
        !self.selectors.is_empty()
    }

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        match &event.object.body {
            Body::Other(_) if event.object.gvk == POD_DISRUPTION_BUDGET => self.budget_seen(event, view, queue),
            Body::Other(_) => {}
            Body::Pod(_) => self.pod_seen(event, queue),
            _ => self.workload_seen(event),
        }
    }

    fn remarks(&self, id: &ObjectId, view: View<'_>, _now: SimTime) -> Vec<Event> {
        let Some(budget) = Budget::of(*id, view) else { return Vec::new() };
        let Some(pods) = self.pods.get(id) else { return Vec::new() };
        let none = || Event::normal(FROM, budget.object, "NoPods", "No matching pods found".to_owned());
        let version = self.resizes(budget.object);
        (pods.count() == 0).then(none).into_iter().chain(of_size(&budget, pods, version, view)).collect()
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Plan {
        let Some(budget) = Budget::of(*id, view) else { return Plan::nothing() };
        let version = self.resizes(budget.object);
        let Some(pods) = self.pods.get_mut(id) else { return Plan::nothing() };
        debug_assert!(
            pods.is_as_counted(budget.selected(view)),
            "the counts of {} are not what its pods add up to",
            budget.object.key
        );
        if budget.asks_for_size() {
            pods.keep_scale(version, view);
        }
        let Disrupted { pods: disrupted, healthy: spoken_for, recheck } = disrupted(&budget, pods, view, now);
        let healthy = pods.healthy() - spoken_for;
        let status = match expected(budget.spec, pods, version, view) {
            Ok((expected, desired)) => {
                let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
                status(budget.object, budget.known, [healthy, desired, expected, allowed], &disrupted, now)
            }
            Err(NoSize(pod)) => unknown_size(budget.object, budget.known, &no_size(&pod), now),
        };
        let mut plan = Plan { again_after: recheck, ..Plan::nothing() };
        if status != *budget.known {
            let mut updated = Object::clone(budget.object);
            if let Body::Other(other) = &mut updated.body {
                other.status = Some(Arc::new(status));
            }
            plan.batches.push_back(vec![Request::update_status(updated)]);
        }
        plan
    }
}

impl Disruption {
    fn budget_seen(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        let namespace = event.object.key.namespace.clone().unwrap_or_default();
        let Body::Other(other) = &event.object.body else { return };
        let selector = other.fields.get("spec").and_then(|spec| spec.get("selector")).unwrap_or(&Value::Null);
        // One that is no selector was refused by the API server.
        let selector = LabelSelector::from_json(selector).ok().filter(|_| event.change != Change::Deleted);
        let Some(selector) = selector else {
            self.selectors.remove(&namespace, event.id);
            self.pods.remove(&event.id);
            return;
        };
        queue.add(event.id);
        let same = |before: &Arc<Object>| matches!(&before.body, Body::Other(known) if known.fields == other.fields);
        if !event.before.as_ref().is_some_and(same) {
            self.pods.insert(event.id, Selected::of(selected(&namespace, &selector, view)));
            self.selectors.insert(namespace, event.id, selector);
        }
    }

    fn pod_seen(&mut self, event: &WatchEvent, queue: &mut WorkQueue<ObjectId>) {
        let namespace = event.object.key.namespace_or_empty();
        let (before, after) = (event.before.as_deref(), &*event.object);
        let is_there = event.change != Change::Deleted;
        let new = if is_there { self.selectors.selecting(namespace, &after.meta.labels) } else { Vec::new() };
        let old = match before {
            Some(before) if is_there && before.meta.labels == after.meta.labels => new.clone(),
            Some(before) => self.selectors.selecting(namespace, &before.meta.labels),
            None => Vec::new(),
        };
        let mut concerned: Vec<_> = old.iter().chain(&new).copied().collect();
        concerned.sort_unstable();
        concerned.dedup();
        // Of several budgets only one is looked at again (`getPdbForPod`): whichever in reality, the oldest here.
        concerned.first().into_iter().for_each(|budget| queue.add(*budget));
        for budget in concerned {
            let (was, is) = (before.filter(|_| old.contains(&budget)), Some(after).filter(|_| new.contains(&budget)));
            self.pods.entry(budget).or_default().change(event.id, was, is);
        }
    }

    /// Another size of a workload changes what a share of it is.
    fn workload_seen(&mut self, event: &WatchEvent) {
        let same = |before: &Arc<Object>| size(before) == size(&event.object) && before.has_owners_of(&event.object);
        if event.change != Change::Modified || !event.before.as_ref().is_some_and(same) {
            *self.resizes.entry(event.object.key.namespace_or_empty().into()).or_default() += 1;
        }
    }

    fn resizes(&self, budget: &Object) -> u64 {
        self.resizes.get(budget.key.namespace_or_empty()).copied().unwrap_or(0)
    }
}

/// A budget as its object says.
struct Budget<'a> {
    object: &'a Arc<Object>,
    spec: &'a Value,
    /// The status that it has.
    known: &'a Value,
}

impl<'a> Budget<'a> {
    fn of(id: ObjectId, view: View<'a>) -> Option<Self> {
        let object = view.get(id)?;
        let Body::Other(other) = &object.body else { return None };
        let spec = other.fields.get("spec").unwrap_or(&Value::Null);
        Some(Self { object, spec, known: other.status.as_deref().unwrap_or(&Value::Null) })
    }

    /// Does it want a share of its pods, or leave a number of them out? Then it has to know how many there should be.
    fn asks_for_size(&self) -> bool {
        self.spec.get("maxUnavailable").is_some() || self.spec.get("minAvailable").is_some_and(Value::is_string)
    }

    /// Its pods, found by looking at every object of the namespace.
    fn selected(&self, view: View<'a>) -> impl Iterator<Item = (ObjectId, &'a Object)> {
        let selector = LabelSelector::from_json(self.spec.get("selector").unwrap_or(&Value::Null));
        let namespace = self.object.key.namespace.clone().unwrap_or_default();
        let selector = selector.unwrap_or_else(|_| LabelSelector::nothing());
        selected(&namespace, &selector, view).collect::<Vec<_>>().into_iter()
    }
}

/// The pods of a namespace that a selector selects.
fn selected<'a>(
    namespace: &SmolStr,
    selector: &LabelSelector,
    view: View<'a>,
) -> impl Iterator<Item = (ObjectId, &'a Object)> {
    let is_selected = |pod: &Object| pod.pod().is_some() && selector.matches(&*pod.meta.labels);
    view.in_namespace(namespace).map(|(id, pod)| (id, &**pod)).filter(move |(_, pod)| is_selected(pod))
}

/// Pods whose eviction was allowed and that are not going yet.
struct Disrupted {
    /// Their names with the time, as the status has them.
    pods: Map<String, Value>,
    /// How many of them are healthy.
    healthy: i32,
    /// When to look at them again.
    recheck: Option<SimDuration>,
}

fn disrupted(budget: &Budget<'_>, selected: &Selected, view: View<'_>, now: SimTime) -> Disrupted {
    let known = budget.known.get("disruptedPods").and_then(Value::as_object).into_iter().flatten();
    let mut there: Vec<_> = known
        .filter_map(|(name, since)| {
            let key = ObjectKey { namespace: budget.object.key.namespace.clone(), name: name.into() };
            let (id, pod) = view.find(&POD, &key)?;
            (selected.has(id, pod) && !pod.is_deleting()).then_some((id, pod, since))
        })
        .collect();
    there.sort_by_key(|(id, ..)| *id);
    let mut found = Disrupted { pods: Map::new(), healthy: 0, recheck: None };
    for (_, pod, since) in there {
        let Some(at) = since.as_str().and_then(|text| SimTime::parse_rfc3339(text).ok()) else { continue };
        let due = at + DELETION_TIMEOUT;
        if due >= now {
            // At that moment it still counts; a real clock has moved on by the time it is read.
            let past = due.since(now) + SimDuration::from_micros(1);
            found.recheck = found.recheck.into_iter().chain([past]).min();
            found.healthy += i32::from(is_healthy(pod));
            found.pods.insert(pod.key.name.to_string(), since.clone());
        }
    }
    found
}

fn no_size(pod: &str) -> String {
    format!("found no controllers for pod \"{pod}\"")
}

/// `(expected pods, healthy pods that are wanted)`.
fn expected(spec: &Value, pods: &Selected, version: u64, view: View<'_>) -> Result<(i32, i32), NoSize> {
    let read = |name: &str| serde_json::from_value::<IntOrPercent>(spec.get(name)?.clone()).ok();
    if let Some(unavailable) = read("maxUnavailable") {
        let expected = pods.scale(version, view)?;
        return Ok((expected, expected.saturating_sub(unavailable.of(expected, true).unwrap_or(0)).max(0)));
    }
    match read("minAvailable") {
        Some(IntOrPercent::Int(count)) => Ok((pods.count(), count)),
        Some(share) => {
            let expected = pods.scale(version, view)?;
            Ok((expected, share.of(expected, true).unwrap_or(0)))
        }
        None => Ok((0, 0)),
    }
}

/// What is said of a budget whose size nobody knows, or only a part of it.
fn of_size(budget: &Budget<'_>, pods: &Selected, version: u64, view: View<'_>) -> Option<Event> {
    let Budget { object, spec, .. } = budget;
    if let Err(NoSize(pod)) = expected(spec, pods, version, view) {
        let message = format!("Failed to calculate the number of expected pods: {}", no_size(&pod));
        return Some(Event::warning(FROM, object, "CalculateExpectedPodCountFailed", message));
    }
    (budget.asks_for_size() && pods.has_unmanaged()).then(|| {
        let message = format!(
            "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of the \
             PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \
             \".spec.minAvailable\" field of the PDB to an integer value.",
            in_go(spec.get("selector").unwrap_or(&Value::Null))
        );
        Event::warning(FROM, object, "UnmanagedPods", message)
    })
}
