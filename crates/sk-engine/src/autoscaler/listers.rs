//! What the autoscaler reads besides nodes and pods: PodDisruptionBudgets, DaemonSets, and the desired replicas of a
//! pod's owner.
//!
//! It reads the objects' JSON, because they change rarely and only the autoscaler reads them often.

use std::collections::BTreeMap;

use serde_json::Value;
use sk_apiserver::{Object, Uid};
use sk_core::{LabelSelector, ObjectKey, SmolStr};
use sk_scheduler::PodClass;

/// Budgets and daemons.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Listers {
    budgets: BTreeMap<ObjectKey, Budget>,
    daemons: BTreeMap<ObjectKey, PodClass>,
    replicas: BTreeMap<Uid, i64>,
}

/// A PodDisruptionBudget.
#[derive(Clone, Debug, PartialEq)]
struct Budget {
    selector: LabelSelector,
    /// `status.disruptionsAllowed`.
    allowed: i64,
}

/// How many pods each budget still allows to be disrupted, while nodes are tried one after the other.
#[derive(Clone, Debug)]
pub(super) struct Allowance<'a> {
    budgets: &'a BTreeMap<ObjectKey, Budget>,
    used: BTreeMap<&'a ObjectKey, i64>,
}

impl Listers {
    /// Takes in a change; `false`: it changes nothing here.
    pub(super) fn learn(&mut self, object: &Object, is_there: bool) -> bool {
        match (object.gvk.group.as_str(), object.gvk.kind.as_str()) {
            ("policy", "PodDisruptionBudget") => self.learn_budget(object, is_there),
            ("apps", "DaemonSet") => self.learn_daemon(object, is_there),
            ("apps", "ReplicaSet" | "StatefulSet") | ("", "ReplicationController") => {
                self.learn_replicas(object, is_there)
            }
            _ => false,
        }
    }

    fn learn_budget(&mut self, object: &Object, is_there: bool) -> bool {
        let json = if is_there { object.to_json() } else { Value::Null };
        // An absent selector matches nothing, an empty one everything.
        let selector = json.pointer("/spec/selector").and_then(|selector| LabelSelector::from_json(selector).ok());
        let allowed = json.pointer("/status/disruptionsAllowed").and_then(Value::as_i64).unwrap_or(0);
        set(&mut self.budgets, &object.key, selector.map(|selector| Budget { selector, allowed }))
    }

    fn learn_daemon(&mut self, object: &Object, is_there: bool) -> bool {
        let json = if is_there { object.to_json() } else { Value::Null };
        let parts = json.pointer("/spec/template/metadata").zip(json.pointer("/spec/template/spec"));
        let class = parts
            .and_then(|(metadata, spec)| PodClass::from_json(object.key.namespace_or_empty(), metadata, spec).ok());
        set(&mut self.daemons, &object.key, class)
    }

    fn learn_replicas(&mut self, object: &Object, is_there: bool) -> bool {
        let wanted = match object.replica_set() {
            Some(set) => Some(i64::from(set.spec.replicas)),
            None => object.to_json().pointer("/spec/replicas").and_then(Value::as_i64),
        };
        set(&mut self.replicas, &object.uid, wanted.filter(|_| is_there))
    }

    /// How many replicas the owner of a pod wants, if it is one that wants replicas.
    pub(super) fn replicas(&self, owner: Uid) -> Option<i64> {
        self.replicas.get(&owner).copied()
    }

    /// What the pods of the DaemonSets are like.
    pub(super) fn daemons(&self) -> impl Iterator<Item = (&ObjectKey, &PodClass)> {
        self.daemons.iter()
    }

    pub(super) fn allowance(&self) -> Allowance<'_> {
        Allowance { budgets: &self.budgets, used: BTreeMap::new() }
    }
}

impl<'a> Allowance<'a> {
    fn of(&self, pod: &Object) -> impl Iterator<Item = (&'a ObjectKey, &'a Budget)> {
        let budgets = self.budgets;
        let (namespace, labels) = (pod.key.namespace.clone(), pod.meta.labels.clone());
        budgets.iter().filter(move |(key, budget)| key.namespace == namespace && budget.selector.matches(&*labels))
    }

    /// Is the pod covered by any budget?
    pub(super) fn covers(&self, pod: &Object) -> bool {
        self.of(pod).next().is_some()
    }

    /// Does every budget over the pod still allow one disruption? A budget that allows one lets any number of pods of one
    /// node go, one after the other.
    pub(super) fn allows(&self, pod: &Object) -> bool {
        self.of(pod).all(|(key, budget)| budget.allowed - self.used.get(key).copied().unwrap_or(0) > 0)
    }

    /// Counts a pod as disrupted.
    pub(super) fn take(&mut self, pod: &Object) {
        let covering: Vec<&ObjectKey> = self.of(pod).map(|(key, _)| key).collect();
        for key in covering {
            *self.used.entry(key).or_insert(0) += 1;
        }
    }
}

/// Sets or removes an entry; `false`: it was so already.
fn set<K: Ord + Clone, V: PartialEq>(map: &mut BTreeMap<K, V>, key: &K, value: Option<V>) -> bool {
    if map.get(key) == value.as_ref() {
        return false;
    }
    match value {
        Some(value) => drop(map.insert(key.clone(), value)),
        None => drop(map.remove(key)),
    }
    true
}

/// The volumes of a pod that a list in its annotation declares to be of no worth.
pub(super) fn listed(annotation: Option<&SmolStr>) -> impl Iterator<Item = &str> {
    annotation.into_iter().flat_map(|names| names.split(',')).map(str::trim)
}
