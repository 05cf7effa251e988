//! The disruption controller: computes how many pods of a budget may be evicted now (`pkg/controller/disruption`,
//! 1.36).
//!
//! It tracks which pods a budget selects as pods change, so a sync reads only those pods.
//!
//! Simplified: it does not ask for the `scale` of a custom resource that controls pods. The expected count is then
//! unknown, as for a DaemonSet or a Job, and no pod may be evicted, as in Kubernetes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sk_apiserver::kinds::{DEPLOYMENT, IntOrPercent, POD_DISRUPTION_BUDGET};
use sk_apiserver::{Body, Change, KindTag, Object, ObjectId, OwnerRef, Request, Uid, View, WatchEvent};
use sk_core::{LabelSelector, SimDuration, SimTime, SmolStr};

use super::pods::ready_since;
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
    selectors: BTreeMap<SmolStr, BTreeMap<ObjectId, LabelSelector>>,
    pods: BTreeMap<ObjectId, BTreeSet<ObjectId>>,
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
            Body::Pod(_) => self.pod_seen(event, queue),
            _ => {
                // Another size of a workload changes what a share of it is.
                let namespace = event.object.key.namespace_or_empty();
                let is_resized = event.before.as_ref().is_some_and(|before| scale(before) != scale(&event.object));
                if is_resized && let Some(budgets) = self.selectors.get(namespace) {
                    budgets.keys().for_each(|budget| queue.add(*budget));
                }
            }
        }
    }

    fn remarks(&self, id: &ObjectId, view: View<'_>, _now: SimTime) -> Vec<Event> {
        let Some(object) = view.get(*id) else { return Vec::new() };
        let Body::Other(other) = &object.body else { return Vec::new() };
        let spec = other.fields.get("spec").unwrap_or(&Value::Null);
        let pods: Vec<_> = self.pods.get(id).into_iter().flatten().filter_map(|pod| view.get(*pod)).collect();
        let none = pods.is_empty().then(|| Event::normal(FROM, object, "NoPods", "No matching pods found".to_owned()));
        none.into_iter().chain(of_size(object, spec, &pods, view)).collect()
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Plan {
        let Some(object) = view.get(*id) else { return Plan::nothing() };
        let Body::Other(other) = &object.body else { return Plan::nothing() };
        let spec = other.fields.get("spec").unwrap_or(&Value::Null);
        let known = other.status.as_deref().unwrap_or(&Value::Null);
        let pods: Vec<_> = self.pods.get(id).into_iter().flatten().filter_map(|pod| view.get(*pod)).collect();
        let (disrupted, recheck) = disrupted(known, &pods, now);
        let healthy = pods.iter().filter(|pod| is_healthy(pod) && !disrupted.contains_key(pod.key.name.as_str()));
        let healthy = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
        let status = match expected(spec, &pods, view) {
            Ok((expected, desired)) => {
                let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
                status(object, known, [healthy, desired, expected, allowed], &disrupted, now)
            }
            Err(NoSize(pod)) => unknown_size(object, known, &no_size(&pod), now),
        };
        let mut plan = Plan { again_after: recheck, ..Plan::nothing() };
        if status != *known {
            let mut updated = Object::clone(object);
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
        let selectors = self.selectors.entry(namespace.clone()).or_default();
        selectors.remove(&event.id);
        if event.change == Change::Deleted {
            self.pods.remove(&event.id);
            return;
        }
        queue.add(event.id);
        let Body::Other(other) = &event.object.body else { return };
        let selector = other.fields.get("spec").and_then(|spec| spec.get("selector")).unwrap_or(&Value::Null);
        let Ok(selector) = LabelSelector::from_json(selector) else { return };
        let same = |before: &Arc<Object>| matches!(&before.body, Body::Other(known) if known.fields == other.fields);
        if !event.before.as_ref().is_some_and(same) {
            let selected = |pod: &Object| pod.pod().is_some() && selector.matches(&*pod.meta.labels);
            let pods = view.in_namespace(&namespace).filter(|(_, pod)| selected(pod)).map(|(id, _)| id);
            self.pods.insert(event.id, pods.collect());
        }
        selectors.insert(event.id, selector);
    }

    fn pod_seen(&mut self, event: &WatchEvent, queue: &mut WorkQueue<ObjectId>) {
        let is_there = event.change != Change::Deleted;
        let Some(budgets) = self.selectors.get(event.object.key.namespace_or_empty()) else { return };
        let mut is_told = false;
        for (budget, selector) in budgets {
            let pods = self.pods.entry(*budget).or_default();
            let is_selected = is_there && selector.matches(&*event.object.meta.labels);
            let was_selected = if is_selected { !pods.insert(event.id) } else { pods.remove(&event.id) };
            // Of several budgets only one is looked at again (`getPdbForPod`): whichever in reality, the oldest here.
            if (is_selected || was_selected) && !is_told {
                queue.add(*budget);
                is_told = true;
            }
        }
    }
}

fn is_healthy(pod: &Object) -> bool {
    !pod.is_deleting() && ready_since(pod).is_some()
}

/// Pods whose eviction was allowed and that are not going yet, and when to look at them again.
fn disrupted(known: &Value, pods: &[&Arc<Object>], now: SimTime) -> (Map<String, Value>, Option<SimDuration>) {
    let mut kept = Map::new();
    let mut recheck: Option<SimDuration> = None;
    for pod in pods.iter().filter(|pod| !pod.is_deleting()) {
        let name = pod.key.name.as_str();
        let Some(since) = known.get("disruptedPods").and_then(|pods| pods.get(name)) else { continue };
        let Some(at) = since.as_str().and_then(|text| SimTime::parse_rfc3339(text).ok()) else { continue };
        let due = at + DELETION_TIMEOUT;
        if due >= now {
            recheck = recheck.into_iter().chain([due.since(now)]).min();
            kept.insert(name.to_owned(), since.clone());
        }
    }
    (kept, recheck)
}

/// Nobody can say how many pods there should be: this pod's controller has no size.
struct NoSize(SmolStr);

fn no_size(pod: &str) -> String {
    format!("found no controllers for pod \"{pod}\"")
}

/// `(expected pods, healthy pods that are wanted)`.
fn expected(spec: &Value, pods: &[&Arc<Object>], view: View<'_>) -> Result<(i32, i32), NoSize> {
    let read = |name: &str| serde_json::from_value::<IntOrPercent>(spec.get(name)?.clone()).ok();
    if let Some(unavailable) = read("maxUnavailable") {
        let expected = expected_scale(pods, view)?;
        return Ok((expected, expected.saturating_sub(unavailable.of(expected, true).unwrap_or(0)).max(0)));
    }
    match read("minAvailable") {
        Some(IntOrPercent::Int(count)) => Ok((i32::try_from(pods.len()).unwrap_or(i32::MAX), count)),
        Some(share) => {
            let expected = expected_scale(pods, view)?;
            Ok((expected, share.of(expected, true).unwrap_or(0)))
        }
        None => Ok((0, 0)),
    }
}

/// What is said of a budget whose size nobody knows, or only a part of it.
fn of_size(object: &Object, spec: &Value, pods: &[&Arc<Object>], view: View<'_>) -> Option<Event> {
    if let Err(NoSize(pod)) = expected(spec, pods, view) {
        let message = format!("Failed to calculate the number of expected pods: {}", no_size(&pod));
        return Some(Event::warning(FROM, object, "CalculateExpectedPodCountFailed", message));
    }
    let asks_for_size = spec.get("maxUnavailable").is_some() || spec.get("minAvailable").is_some_and(Value::is_string);
    let is_unmanaged = pods.iter().any(|pod| pod.controller().is_none());
    (asks_for_size && is_unmanaged).then(|| {
        let message = format!(
            "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of the \
             PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \
             \".spec.minAvailable\" field of the PDB to an integer value.",
            in_go(spec.get("selector").unwrap_or(&Value::Null))
        );
        Event::warning(FROM, object, "UnmanagedPods", message)
    })
}

/// A label selector as Go prints it.
fn in_go(selector: &Value) -> String {
    let none = Map::new();
    let labels = selector.get("matchLabels").and_then(Value::as_object).unwrap_or(&none);
    let labels = labels.iter().map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let expressions = expressions.map(|one| {
        let values = one.get("values").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let values = values.collect::<Vec<_>>().join(" ");
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},",
            text(one, "key"),
            text(one, "operator")
        )
    });
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        labels.collect::<String>(),
        expressions.collect::<String>()
    )
}

/// The sizes of all workloads that control the pods; pods without a controller do not count.
fn expected_scale(pods: &[&Arc<Object>], view: View<'_>) -> Result<i32, NoSize> {
    let mut sizes = BTreeMap::<Uid, i32>::new();
    let mut seen = BTreeSet::new();
    let owned = pods.iter().filter_map(|pod| Some((pod, pod.controller()?)));
    for (pod, owner) in owned.filter(|(_, owner)| seen.insert(owner.uid)) {
        let (uid, size) = workload(owner, view).ok_or_else(|| NoSize(pod.key.name.clone()))?;
        sizes.insert(uid, size);
    }
    Ok(sizes.values().copied().fold(0, i32::saturating_add))
}

/// The workload that decides how many pods there are, and how many.
fn workload(owner: &OwnerRef, view: View<'_>) -> Option<(Uid, i32)> {
    let (_, object) = view.with_uid(owner.uid)?;
    let deployment = object.controller().filter(|owner| owner.gvk == DEPLOYMENT);
    let object = deployment.and_then(|owner| view.with_uid(owner.uid)).map_or(object, |(_, deployment)| deployment);
    Some((object.uid, scale(object)?))
}

/// How many pods a workload is to have; `None`: it does not say.
fn scale(object: &Object) -> Option<i32> {
    match &object.body {
        Body::Deployment(deployment) => Some(deployment.spec.replicas),
        Body::ReplicaSet(set) => Some(set.spec.replicas),
        Body::StatefulSet(set) => Some(set.spec.replicas),
        Body::ReplicationController(controller) => Some(controller.0.spec.replicas),
        _ => None,
    }
}

fn status(
    object: &Object,
    known: &Value,
    [healthy, desired, expected, allowed]: [i32; 4],
    disrupted: &Map<String, Value>,
    now: SimTime,
) -> Value {
    let (is_allowed, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let mut status = json!({
        "observedGeneration": object.meta.generation, "currentHealthy": healthy, "desiredHealthy": desired,
        "expectedPods": expected, "disruptionsAllowed": allowed,
        "conditions": [condition(object, known, is_allowed, reason, "", now)],
    });
    if !disrupted.is_empty() {
        status["disruptedPods"] = Value::Object(disrupted.clone());
    }
    status
}

/// Where the size is not known, nothing may be disrupted (`failSafe`).
fn unknown_size(object: &Object, known: &Value, why: &str, now: SimTime) -> Value {
    let mut status = if known.is_object() { known.clone() } else { json!({}) };
    for count in ["currentHealthy", "desiredHealthy", "expectedPods"] {
        if status.get(count).is_none() {
            status[count] = json!(0);
        }
    }
    status["disruptionsAllowed"] = json!(0);
    // It says which generation the counts are of, and those are as they were.
    let mut failed = condition(object, known, "False", "SyncFailed", why, now);
    match known.get("observedGeneration") {
        Some(observed) => failed["observedGeneration"] = observed.clone(),
        None => drop(failed.as_object_mut().and_then(|failed| failed.remove("observedGeneration"))),
    }
    status["conditions"] = json!([failed]);
    status
}

fn condition(object: &Object, known: &Value, status: &str, reason: &str, message: &str, now: SimTime) -> Value {
    let before = known.pointer("/conditions/0").filter(|before| before["status"] == status);
    let since = before.map_or_else(|| json!(now.to_rfc3339_secs()), |before| before["lastTransitionTime"].clone());
    json!({
        "type": "DisruptionAllowed", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since, "observedGeneration": object.meta.generation,
    })
}
