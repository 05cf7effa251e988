//! PodDisruptionBudgets for preemption: how many pods of each may be disrupted.
//!
//! `status.disruptionsAllowed` counts where a controller writes it. Otherwise this file computes it as the disruption
//! controller does (`pkg/controller/disruption/disruption.go`), and only when a preemption needs it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sk_apiserver::kinds::{IntOrPercent, Other};
use sk_apiserver::{Object, View, WatchEvent};
use sk_core::{LabelSelector, SmolStr};
use sk_scheduler::cluster::objects::{Budget, Key};

use super::{KubeScheduler, is_there};

/// A budget as its object says.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    selector: LabelSelector,
    min_available: Option<IntOrPercent>,
    max_unavailable: Option<IntOrPercent>,
    /// `status.disruptionsAllowed` and the names in `status.disruptedPods`.
    status: Option<(i32, BTreeSet<SmolStr>)>,
}

impl KubeScheduler {
    pub(super) fn budget_seen(&mut self, event: &WatchEvent, other: &Other) {
        let key: Key = (event.object.key.namespace_or_empty().into(), event.object.key.name.clone());
        let spec = other.fields.get("spec").unwrap_or(&Value::Null);
        let limits = limits(spec, other.status.as_deref()).filter(|_| is_there(event));
        match limits {
            Some(limits) => drop(self.budgets.insert(key, limits)),
            None => {
                self.budgets.remove(&key);
                self.library.cluster.objects.set_budget(key, None);
            }
        }
    }

    /// Reckons how many pods each budget lets go now; are there any budgets?
    pub(super) fn reckon_budgets(&mut self, view: View<'_>) -> bool {
        for (key, limits) in &self.budgets {
            let (allowed, disrupted) =
                limits.status.clone().unwrap_or_else(|| (allowed(limits, &key.0, view), BTreeSet::new()));
            let budget = Budget { selector: limits.selector.clone(), allowed, disrupted };
            self.library.cluster.objects.set_budget(key.clone(), Some(budget));
        }
        !self.budgets.is_empty()
    }
}

fn limits(spec: &Value, status: Option<&Value>) -> Option<Limits> {
    let count = |field: &str| spec.get(field).and_then(|value| serde_json::from_value(value.clone()).ok());
    let status = status.and_then(|status| {
        let allowed = status.get("disruptionsAllowed")?.as_i64()?;
        let disrupted = status.get("disruptedPods").and_then(Value::as_object).into_iter().flatten();
        Some((i32::try_from(allowed).unwrap_or(0), disrupted.map(|(name, _)| name.into()).collect()))
    });
    Some(Limits {
        selector: LabelSelector::from_json(spec.get("selector")?).ok()?,
        min_available: count("minAvailable"),
        max_unavailable: count("maxUnavailable"),
        status,
    })
}

/// `getExpectedPodCount` and `countHealthyPods`: healthy pods beyond those that must be.
fn allowed(limits: &Limits, namespace: &SmolStr, view: View<'_>) -> i32 {
    let is_counted = |object: &&Object| {
        let lives = object.pod().is_some_and(|pod| !pod.status.phase.is_final());
        lives && limits.selector.matches(&*object.meta.labels)
    };
    let pods: Vec<&Object> = view.in_namespace(namespace).map(|(_, object)| &**object).filter(is_counted).collect();
    let is_healthy = |object: &&&Object| {
        let ready = object
            .pod()
            .and_then(|pod| pod.status.condition("Ready"))
            .is_some_and(sk_apiserver::kinds::Condition::is_true);
        ready && !object.is_deleting()
    };
    let healthy = whole(pods.iter().filter(is_healthy).count());
    let desired = match (&limits.max_unavailable, &limits.min_available) {
        (Some(unavailable), _) => {
            scale(&pods, view).and_then(|expected| Some((expected - unavailable.of(expected, true)?).max(0)))
        }
        (None, Some(IntOrPercent::Int(count))) => Some(*count),
        (None, Some(share)) => scale(&pods, view).and_then(|expected| share.of(expected, true)),
        (None, None) => Some(0),
    };
    // A budget that cannot be computed allows no disruption (`failSafe`).
    desired.map_or(0, |desired| (healthy - desired).max(0))
}

/// How many pods the controllers of these pods want; `None` if one has no controller that says so (`getExpectedScale`).
fn scale(pods: &[&Object], view: View<'_>) -> Option<i32> {
    let mut wanted = BTreeMap::new();
    for pod in pods {
        let (_, owner) = view.with_uid(pod.controller()?.uid)?;
        // A replica set's own number changes while its deployment rolls out.
        let top = owner.controller().and_then(|deployment| view.with_uid(deployment.uid)).map_or(owner, |(_, top)| top);
        let replicas = top.to_json().pointer("/spec/replicas").and_then(Value::as_i64)?;
        wanted.insert(top.uid, i32::try_from(replicas).ok()?);
    }
    Some(wanted.values().copied().fold(0, i32::saturating_add))
}

fn whole(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
