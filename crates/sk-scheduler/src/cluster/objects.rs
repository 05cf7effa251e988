//! The objects besides nodes and pods that affect placement: Namespaces, Services and controllers (default spreading),
//! PodDisruptionBudgets (preemption), PersistentVolumeClaims, PersistentVolumes and StorageClasses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_core::lookup::Keyed;
use sk_core::{LabelSelector, SmolStr};

use crate::class::{NodeSelectorTerm, OwnerKind};

/// Namespace and name.
pub type Key = (SmolStr, SmolStr);

/// A PodDisruptionBudget as preemption sees it.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// Which pods.
    pub selector: LabelSelector,
    /// `status.disruptionsAllowed`.
    pub allowed: i32,
    /// Names in `status.disruptedPods`: already counted by the API server.
    pub disrupted: BTreeSet<SmolStr>,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeClaim {
    /// The volume that it is bound to.
    pub volume: Option<SmolStr>,
    /// The bind has completed (annotation `pv.kubernetes.io/bind-completed`).
    pub bound: bool,
    /// Its class.
    pub storage_class: Option<SmolStr>,
    /// The node that a volume is being made for (annotation `volume.kubernetes.io/selected-node`).
    pub selected_node: Option<SmolStr>,
    /// `status.phase: Lost`.
    pub lost: bool,
    /// It is being deleted.
    pub deleting: bool,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Its labels: those of zone and region restrict.
    pub labels: BTreeMap<SmolStr, SmolStr>,
    /// `spec.nodeAffinity.required`; `None`: reachable from everywhere.
    pub node_affinity: Option<Vec<NodeSelectorTerm>>,
}

/// A StorageClass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageClass {
    /// `volumeBindingMode: WaitForFirstConsumer`.
    pub waits_for_consumer: bool,
    /// `provisioner` is `kubernetes.io/no-provisioner`: nothing makes volumes.
    pub no_provisioner: bool,
    /// `allowedTopologies`: a node must match one of these, if there are any.
    pub allowed: Vec<NodeSelectorTerm>,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub(crate) namespaces: BTreeMap<SmolStr, BTreeMap<SmolStr, SmolStr>>,
    /// Counts changes of namespaces' labels.
    pub(crate) namespaces_version: u64,
    pub(crate) services: BTreeMap<SmolStr, BTreeMap<SmolStr, LabelSelector>>,
    /// Counts changes of Services.
    pub(crate) services_version: u64,
    pub(crate) owners: Keyed<(OwnerKind, SmolStr, SmolStr), Arc<LabelSelector>>,
    /// Counts changes of those.
    pub(crate) owners_version: u64,
    pub(crate) budgets: BTreeMap<Key, Budget>,
    pub(crate) claims: BTreeMap<Key, VolumeClaim>,
    pub(crate) volumes: BTreeMap<SmolStr, Volume>,
    pub(crate) storage_classes: BTreeMap<SmolStr, StorageClass>,
}

impl Objects {
    /// The labels of each namespace.
    pub fn namespaces(&self) -> &BTreeMap<SmolStr, BTreeMap<SmolStr, SmolStr>> {
        &self.namespaces
    }

    /// A namespace came or changed, with these labels; `None`: it went.
    pub fn set_namespace(&mut self, name: impl Into<SmolStr>, labels: Option<BTreeMap<SmolStr, SmolStr>>) {
        if set(&mut self.namespaces, name.into(), labels) {
            self.namespaces_version += 1;
        }
    }

    /// A Service came or changed, with this selector; `None`: it went, or has no selector.
    pub fn set_service(&mut self, namespace: &str, name: impl Into<SmolStr>, selector: Option<LabelSelector>) {
        let services = self.services.entry(namespace.into()).or_default();
        if set(services, name.into(), selector) {
            self.services_version += 1;
        }
    }

    /// A ReplicationController, ReplicaSet or StatefulSet came or changed, with this selector; `None`: it went.
    pub fn set_owner(
        &mut self,
        kind: OwnerKind,
        namespace: impl Into<SmolStr>,
        name: impl Into<SmolStr>,
        selector: Option<LabelSelector>,
    ) {
        let key = (kind, namespace.into(), name.into());
        self.owners_version += 1;
        match selector {
            Some(selector) if self.owners.get(&key).is_some_and(|known| **known == selector) => {}
            Some(selector) => drop(self.owners.insert(key, Arc::new(selector))),
            None => drop(self.owners.remove(&key)),
        }
    }

    /// A PodDisruptionBudget came or changed; `None`: it went.
    pub fn set_budget(&mut self, key: Key, budget: Option<Budget>) {
        match budget {
            Some(budget) => drop(self.budgets.insert(key, budget)),
            None => drop(self.budgets.remove(&key)),
        }
    }

    /// A claim came or changed; `None`: it went.
    pub fn set_claim(&mut self, key: Key, claim: Option<VolumeClaim>) {
        set(&mut self.claims, key, claim);
    }

    /// A volume came or changed; `None`: it went.
    pub fn set_volume(&mut self, name: impl Into<SmolStr>, volume: Option<Volume>) {
        set(&mut self.volumes, name.into(), volume);
    }

    /// A storage class came or changed; `None`: it went.
    pub fn set_storage_class(&mut self, name: impl Into<SmolStr>, class: Option<StorageClass>) {
        set(&mut self.storage_classes, name.into(), class);
    }
}

/// Puts or removes; `true` if that changed anything.
fn set<K: Ord, V: PartialEq>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> bool {
    match value {
        Some(value) if map.get(&key) == Some(&value) => false,
        Some(value) => {
            map.insert(key, value);
            true
        }
        None => map.remove(&key).is_some(),
    }
}
