//! The ResourceQuota admission plugin: charges new objects to the quotas of their namespace and refuses what exceeds
//! them (`apiserver/pkg/admission/plugin/resourcequota`, `pkg/quota/v1`, 1.36).
//!
//! The plugin charges a new object to every quota that matches it, and writes the charge into the quota's status
//! before the object is stored. A quota limits nothing until the quota controller has written its status once; that
//! controller also subtracts deleted objects.
//!
//! Of updates, the plugin charges those of Services and PersistentVolumeClaims for what they use more than before: a
//! Service may become a load balancer, a claim may grow. The controller gives back what they use less.
//!
//! Simplified: a pod that outlives its grace period counts until it is deleted.

mod usage;

use std::sync::Arc;

use serde_json::{Value, json};
use sk_core::resources::Amounts;
use sk_core::{Gvk, ObjectKey, Quantity, SimTime, SmolStr};

use crate::kinds::Body;
use crate::server::ApiServer;
use crate::store::ObjectId;
use crate::{ApiError, Object};

pub use usage::usage_of;

/// `v1.ResourceQuota`
pub static RESOURCE_QUOTA: Gvk = Gvk::new_static("", "v1", "ResourceQuota");

/// If a quota limits one of these, every container must say how much it wants. Kubernetes calls it a mistake that it
/// will not repeat for others (`validationSet`).
const MUST_BE_SAID: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// What a quota limits, and of which objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quota {
    /// The limits of its spec.
    pub hard: Amounts,
    scopes: Vec<Value>,
}

impl Quota {
    /// The quota that an object is, if it is one.
    pub fn of(object: &Object) -> Option<Self> {
        let Body::Other(other) = &object.body else { return None };
        if object.gvk != RESOURCE_QUOTA {
            return None;
        }
        let spec = other.fields.get("spec").unwrap_or(&Value::Null);
        let names = spec.get("scopes").and_then(Value::as_array).into_iter().flatten();
        let named = names.map(|name| json!({"scopeName": name, "operator": "Exists"}));
        let selected = spec.pointer("/scopeSelector/matchExpressions").and_then(Value::as_array).into_iter().flatten();
        Some(Self { hard: amounts(spec.get("hard")), scopes: named.chain(selected.cloned()).collect() })
    }

    /// What an object uses of what is limited here; nothing if it is none of those that are counted.
    pub fn charge(&self, object: &Object) -> Amounts {
        if !self.is_about(object) {
            return Amounts::new();
        }
        let mut used = usage_of(object);
        used.retain(|name, _| self.hard.contains_key(name));
        used
    }

    fn is_about(&self, object: &Object) -> bool {
        self.scopes.iter().all(|scope| usage::is_in_scope(scope, object))
    }

    /// The status that a quota has when so much is used.
    pub fn status(&self, used: &Amounts) -> Value {
        let used: Amounts =
            self.hard.keys().map(|name| (name.clone(), used.get(name).copied().unwrap_or_default())).collect();
        json!({"hard": self.hard, "used": used})
    }
}

/// What an object is charged for.
#[derive(Clone, Copy)]
enum Charge<'o> {
    /// All that it uses.
    New,
    /// What it uses more than this one.
    Change(&'o Object),
    /// The same, whether there is room or not.
    Status(&'o Object),
}

impl ApiServer {
    /// Charges a new object to the quotas of its namespace, or refuses it.
    pub(crate) fn charge(&mut self, now: SimTime, object: &Object) -> Result<(), ApiError> {
        self.charge_all(now, object, Charge::New)
    }

    /// Charges an object for what it uses more than `before`, or refuses the change. `is_status`: what is only known
    /// now has happened already, and is charged whether there is room or not.
    pub(crate) fn charge_change(
        &mut self,
        now: SimTime,
        object: &Object,
        before: &Object,
        is_status: bool,
    ) -> Result<(), ApiError> {
        let changes_use = !self.quotas.is_empty()
            && object.gvk.group.is_empty()
            && match object.gvk.kind.as_str() {
                "PersistentVolumeClaim" => true,
                "Service" => !is_status,
                _ => false,
            };
        if !changes_use {
            return Ok(());
        }
        self.charge_all(now, object, if is_status { Charge::Status(before) } else { Charge::Change(before) })
    }

    fn charge_all(&mut self, now: SimTime, object: &Object, charge: Charge<'_>) -> Result<(), ApiError> {
        if self.quotas.is_empty() {
            return Ok(());
        }
        let mut charged = Vec::new();
        for (id, quota) in self.quotas_of(object) {
            if let Some(status) = charged_status(&quota, object, charge)? {
                let mut updated = Object::clone(&quota);
                if let Body::Other(other) = &mut updated.body {
                    other.status = Some(Arc::new(status));
                }
                charged.push((id, updated));
            }
        }
        for (id, updated) in charged {
            self.commit(now, Some(id), updated);
        }
        Ok(())
    }

    fn quotas_of(&self, object: &Object) -> Vec<(ObjectId, Arc<Object>)> {
        let Some(namespace) = &object.key.namespace else { return Vec::new() };
        let first = ObjectKey { namespace: Some(namespace.clone()), name: SmolStr::default() };
        let keys = self.quotas.range(first..).take_while(|key| key.namespace.as_ref() == Some(namespace));
        let found = keys.filter_map(|key| self.store().find(&RESOURCE_QUOTA, key));
        found.map(|(id, quota)| (id, quota.clone())).collect()
    }
}

/// The status of a quota with the object charged to it; `None` if the object is not counted there.
fn charged_status(quota: &Object, object: &Object, charge: Charge<'_>) -> Result<Option<Value>, ApiError> {
    let Body::Other(other) = &quota.body else { return Ok(None) };
    let status = other.status.as_deref().unwrap_or(&Value::Null);
    let (hard, mut used) = (amounts(status.get("hard")), amounts(status.get("used")));
    let Some(limits) = Quota::of(quota) else { return Ok(None) };
    let limits = Quota { hard, ..limits };
    let refuse = |why: String| Err(ApiError::forbidden(&object.gvk, &object.key.name, &why));
    if let Some(missing) = unsaid(&limits.hard, object).filter(|_| limits.is_about(object)) {
        return refuse(format!("failed quota: {}: must specify {missing}", quota.key.name));
    }
    let mut asked = limits.charge(object);
    if let Charge::Change(before) | Charge::Status(before) = charge {
        let known = limits.charge(before);
        asked.retain(|name, amount| {
            *amount -= known.get(name).copied().unwrap_or_default();
            *amount > Quantity::default()
        });
    }
    if asked.is_empty() {
        return Ok(None);
    }
    let exceeds = |name: &SmolStr| {
        let sum = used.get(name).copied().unwrap_or_default() + asked[name];
        limits.hard.get(name).is_some_and(|hard| sum > *hard)
    };
    let is_asked = !matches!(charge, Charge::Status(_));
    let exceeded: Vec<&SmolStr> = asked.keys().filter(|name| is_asked && exceeds(name)).collect();
    if !exceeded.is_empty() {
        let shown = |of: &Amounts| {
            let amount = |name: &&SmolStr| format!("{name}={}", of.get(*name).copied().unwrap_or_default());
            exceeded.iter().map(amount).collect::<Vec<_>>().join(",")
        };
        return refuse(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            quota.key.name,
            shown(&asked),
            shown(&used),
            shown(&limits.hard)
        ));
    }
    for (name, amount) in asked {
        *used.entry(name).or_default() += amount;
    }
    let mut status = status.clone();
    status["used"] = json!(used);
    Ok(Some(status))
}

/// What containers of a pod do not say although a quota limits it: `limits.cpu for: main; requests.cpu for: main`.
fn unsaid(hard: &Amounts, object: &Object) -> Option<String> {
    let pod = object.pod()?;
    if pod.spec.resources.as_ref().is_some_and(|whole| !whole.requests.is_empty() || !whole.limits.is_empty()) {
        return None;
    }
    let containers = || pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let silent = |name: &&str| {
        let (is_limit, amount) = match name.split_once('.') {
            Some((section, amount)) => (section == "limits", amount),
            None => (false, *name),
        };
        let says = |container: &&crate::kinds::Container| {
            let resources = &container.resources;
            let section = if is_limit { &resources.limits } else { &resources.requests };
            section.contains_key(amount)
        };
        let mut names: Vec<&str> =
            containers().filter(|container| !says(container)).map(|container| container.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        (!names.is_empty()).then(|| format!("{name} for: {}", names.join(",")))
    };
    let mut missing: Vec<String> =
        MUST_BE_SAID.iter().filter(|name| hard.contains_key(**name)).filter_map(silent).collect();
    missing.sort();
    (!missing.is_empty()).then(|| missing.join("; "))
}

fn amounts(value: Option<&Value>) -> Amounts {
    let fields = value.and_then(Value::as_object).into_iter().flatten();
    let read = |(name, amount): (&String, &Value)| {
        Some((SmolStr::from(name), serde_json::from_value::<Quantity>(amount.clone()).ok()?))
    };
    fields.filter_map(read).collect()
}
