//! The eviction API: deletes a pod if its PodDisruptionBudget allows it (`registry/core/pod/storage/eviction.go`,
//! 1.36).
//!
//! An eviction that is allowed goes into the budget's status at once. Otherwise two evictions in a row could both use
//! the last allowed disruption before the disruption controller recounts.

use std::sync::Arc;

use serde_json::{Value, json};
use sk_core::{LabelSelector, ObjectKey, ObjectRef, SimTime};

use crate::kinds::{self, Body, Condition, PodPhase};
use crate::request::Answer;
use crate::server::{ApiServer, meant_for_another};
use crate::store::ObjectId;
use crate::{ApiError, DeleteOptions, Object, Reason};

/// So many evictions may wait for the disruption controller to count them (`MaxDisruptedPodSize`).
const MAX_DISRUPTED_PODS: usize = 2000;
/// The retry-after, in seconds, for a budget that the disruption controller has not synced yet.
const RETRY_AFTER_SECS: u32 = 10;

impl ApiServer {
    /// Writes the reason into the pod's status and deletes it, unless its budget forbids that now.
    pub(crate) fn evict(&mut self, now: SimTime, key: ObjectKey, options: DeleteOptions) -> Answer {
        let target = ObjectRef::new(kinds::POD.clone(), key);
        let (id, stored) = self.find(&target.gvk, &target.key)?;
        let (uid, stored) = (stored.uid, stored.clone());
        if !is_beyond_budgets(&stored) {
            self.ask_budget(now, &stored)?;
        }
        if let Some(uid) = options.uid.filter(|asked| *asked != uid) {
            return Err(meant_for_another(&stored, &uid.to_string()));
        }
        if !stored.is_deleting() {
            let mut marked = Object::clone(&stored);
            if let Some(pod) = marked.pod_mut() {
                let condition = Condition::new("DisruptionTarget", true, now);
                pod.status.set_condition(condition.because("EvictionByEvictionAPI", "Eviction API: evicting"));
            }
            self.commit(now, Some(id), marked);
        }
        self.delete(now, &target, DeleteOptions { uid: Some(uid), ..options })
    }

    /// Takes one of the disruptions that the pod's budget allows.
    fn ask_budget(&mut self, now: SimTime, pod: &Arc<Object>) -> Result<(), ApiError> {
        let budgets = self.budgets_of(pod);
        let (id, budget) = match budgets.as_slice() {
            [] => return Ok(()),
            [one] => one,
            _ => {
                let message =
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(ApiError::new(Reason::Unknown, message));
            }
        };
        let Body::Other(other) = &budget.body else { return Ok(()) };
        let status = other.status.as_deref().unwrap_or(&Value::Null);
        let count = |name: &str| status.get(name).and_then(Value::as_i64).unwrap_or(0);
        if !is_ready(pod) && may_go_unready(other.fields.get("spec"), &count) {
            return Ok(());
        }
        allow_disruption(budget, status)?;
        let mut taken = status.clone();
        taken["disruptionsAllowed"] = json!(count("disruptionsAllowed") - 1);
        if !taken["disruptedPods"].is_object() {
            taken["disruptedPods"] = json!({});
        }
        taken["disruptedPods"][pod.key.name.as_str()] = json!(now.to_rfc3339_secs());
        if taken["disruptionsAllowed"] == 0 {
            say_insufficient(&mut taken, budget.meta.generation, now);
        }
        let (id, mut counted) = (*id, Object::clone(budget));
        if let Body::Other(other) = &mut counted.body {
            other.status = Some(Arc::new(taken));
        }
        self.commit(now, Some(id), counted);
        Ok(())
    }

    fn budgets_of(&self, pod: &Object) -> Vec<(ObjectId, Arc<Object>)> {
        let beside = self.budgets.iter().filter(|key| key.namespace == pod.key.namespace);
        let found = beside.filter_map(|key| self.store().find(&kinds::POD_DISRUPTION_BUDGET, key));
        let selects = |budget: &Object| {
            let Body::Other(other) = &budget.body else { return false };
            let selector = other.fields.get("spec").and_then(|spec| spec.get("selector")).unwrap_or(&Value::Null);
            LabelSelector::from_json(selector).is_ok_and(|selector| selector.matches(&*pod.meta.labels))
        };
        found.filter(|(_, budget)| selects(budget)).map(|(id, budget)| (id, budget.clone())).collect()
    }
}

/// Does the budget allow one more disruption now (`checkAndDecrement`)?
fn allow_disruption(budget: &Object, status: &Value) -> Result<(), ApiError> {
    let (name, count) = (&budget.key.name, |name: &str| status.get(name).and_then(Value::as_i64).unwrap_or(0));
    let forbid = |why: &str| Err(ApiError::forbidden(&kinds::POD_DISRUPTION_BUDGET, name, why));
    if count("observedGeneration") < budget.meta.generation {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(ApiError::disruption_budget(why, Some(RETRY_AFTER_SECS)));
    }
    let waiting = status.get("disruptedPods").and_then(Value::as_object).map_or(0, serde_json::Map::len);
    match count("disruptionsAllowed") {
        ..0 => forbid("pdb disruptions allowed is negative"),
        _ if waiting > MAX_DISRUPTED_PODS => {
            forbid("DisruptedPods map too big - too many evictions not confirmed by PDB controller")
        }
        0 => Err(ApiError::disruption_budget(why_not(name, status), None)),
        1.. => Ok(()),
    }
}

/// A budget that has allowed the last disruption says so (`UpdateDisruptionAllowedCondition`).
fn say_insufficient(status: &mut Value, generation: i64, now: SimTime) {
    let mut said = json!({
        "type": "DisruptionAllowed", "status": "False", "observedGeneration": generation,
        "lastTransitionTime": now.to_rfc3339_secs(), "reason": "InsufficientPods", "message": "",
    });
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|condition| condition["type"] == "DisruptionAllowed") {
        Some(known) => {
            if known["status"] == said["status"] {
                said["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = said;
        }
        None => conditions.push(said),
    }
}

/// Why a budget allows no disruption: what its controller could not work out comes first.
fn why_not(name: &str, status: &Value) -> String {
    let count = |name: &str| status.get(name).and_then(Value::as_i64).unwrap_or(0);
    let (needed, healthy) = (count("desiredHealthy"), count("currentHealthy"));
    let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let allowed = conditions.into_iter().find(|condition| condition["type"] == "DisruptionAllowed");
    let said = allowed.filter(|condition| condition["status"] == "False").and_then(|condition| {
        let text = |name: &str| condition[name].as_str().filter(|text| !text.is_empty());
        Some((text("reason").unwrap_or_default(), text("message")?))
    });
    let not_now = format!("The disruption budget {name} does not allow evicting pods currently");
    match said {
        Some(("SyncFailed", message)) => format!("{not_now} because it failed sync: {message}"),
        _ if healthy <= needed => {
            format!("The disruption budget {name} needs {needed} healthy pods and has {healthy} currently")
        }
        Some((reason, message)) => format!("{not_now} ({reason}): {message}"),
        None => not_now,
    }
}

/// A pod that does not run, or is going, disrupts nothing any more.
fn is_beyond_budgets(object: &Object) -> bool {
    let phase = object.pod().map(|pod| pod.status.phase);
    object.is_deleting() || phase.is_some_and(|phase| phase.is_final() || phase == PodPhase::Pending)
}

fn is_ready(object: &Object) -> bool {
    object.pod().and_then(|pod| pod.status.condition("Ready")).is_some_and(Condition::is_true)
}

/// A pod that is not ready may go if the policy always allows it, or if enough others are healthy.
fn may_go_unready(spec: Option<&Value>, count: &impl Fn(&str) -> i64) -> bool {
    let policy = spec.and_then(|spec| spec.get("unhealthyPodEvictionPolicy")).and_then(Value::as_str);
    let desired = count("desiredHealthy");
    policy == Some("AlwaysAllow") || (desired > 0 && count("currentHealthy") >= desired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_says_why_it_allows_nothing() {
        let status = |healthy: i64, condition: Value| json!({"desiredHealthy": 2, "currentHealthy": healthy, "conditions": [condition]});
        let says =
            |reason: &str| json!({"type": "DisruptionAllowed", "status": "False", "reason": reason, "message": "why"});
        for (status, words) in [
            (status(2, json!({})), "The disruption budget b needs 2 healthy pods and has 2 currently"),
            (
                status(1, says("SyncFailed")),
                "The disruption budget b does not allow evicting pods currently because it failed sync: why",
            ),
            (status(3, says("Odd")), "The disruption budget b does not allow evicting pods currently (Odd): why"),
            (status(3, json!({})), "The disruption budget b does not allow evicting pods currently"),
        ] {
            assert_eq!(why_not("b", &status), words);
        }
    }
}
