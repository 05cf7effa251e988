//! PersistentVolumeClaims, PersistentVolumes and StorageClasses: those in the trace restrict pods, and the engine
//! binds the rest.
//!
//! A claim that names a volume is bound to it, and its pod goes where that volume is reachable, if the volume is in
//! the trace. A claim with a `WaitForFirstConsumer` class is bound when its first pod gets a node, to a volume on that
//! node. Every other claim, also one that is not in the trace, is bound at once to a volume that all nodes reach. No
//! API object is created: on a real cluster a provisioner would create one, and pods would wait for it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sk_apiserver::WatchEvent;
use sk_core::{SimTime, SmolStr};
use sk_scheduler::class::NodeSelectorTerm;
use sk_scheduler::cluster::objects::{Key, StorageClass, Volume, VolumeClaim};
use sk_scheduler::queue::Event;
use sk_scheduler::{ClassId, NodeId};

use super::{KubeScheduler, is_there};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
/// What makes disks that only their own zone reaches.
const ZONAL: [&str; 7] = [
    "cinder.csi.openstack.org",
    "disk.csi.azure.com",
    "ebs.csi.aws.com",
    "kubernetes.io/aws-ebs",
    "kubernetes.io/azure-disk",
    "kubernetes.io/gce-pd",
    "pd.csi.storage.gke.io",
];
/// What makes directories or disks of one node.
const LOCAL: [&str; 5] =
    ["kubernetes.io/no-provisioner", "local.csi.openebs.io", "openebs.io/local", "rancher.io/local-path", "topolvm.io"];

/// What is known of storage.
#[derive(Clone, Debug, Default)]
pub(super) struct Volumes {
    claims: BTreeMap<Key, Claim>,
    classes: BTreeMap<SmolStr, Class>,
    volumes: BTreeMap<SmolStr, Volume>,
}

/// A claim as its object says, or as pods that name it make believe.
#[derive(Clone, Debug, Default, PartialEq)]
struct Claim {
    volume: Option<SmolStr>,
    class: Option<SmolStr>,
    /// It was used, and its volume made.
    made: bool,
    deleting: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Class {
    waits: bool,
    provisioner: SmolStr,
    scheduling: StorageClass,
}

/// The name of the volume that is made for a claim; no object can be called so.
fn made_for((namespace, name): &Key) -> SmolStr {
    format!("made for {namespace}/{name}").into()
}

impl KubeScheduler {
    pub(super) fn claim_seen(&mut self, event: &WatchEvent, spec: &Value, now: SimTime) {
        let object = &event.object;
        let key: Key = (object.key.namespace_or_empty().into(), object.key.name.clone());
        if !is_there(event) {
            self.storage.claims.remove(&key);
            self.library.cluster.objects.set_volume(made_for(&key), None);
            return self.library.cluster.objects.set_claim(key, None);
        }
        let text = |field: &str| spec[field].as_str().filter(|text| !text.is_empty()).map(SmolStr::from);
        let before = self.storage.claims.get(&key);
        let made = before.is_some_and(|before| before.made);
        let claim =
            Claim { volume: text("volumeName"), class: text("storageClassName"), made, deleting: object.is_deleting() };
        if before == Some(&claim) {
            return;
        }
        self.storage.claims.insert(key.clone(), claim);
        self.bind_claim(&key);
        let (namespace, name) = key;
        self.queue.happened(now, &Event::Claim { namespace, name }, &self.library);
    }

    /// Passes a claim's state to the library.
    fn bind_claim(&mut self, key: &Key) {
        let Some(claim) = self.storage.claims.get(key) else { return };
        let class = claim.class.as_ref().and_then(|name| self.storage.classes.get(name));
        let waits = claim.volume.is_none() && !claim.made && class.is_some_and(|class| class.waits);
        let volume = claim.volume.clone().unwrap_or_else(|| made_for(key));
        let objects = &mut self.library.cluster.objects;
        if !waits && !claim.made && !self.storage.volumes.contains_key(&volume) {
            objects.set_volume(volume.clone(), Some(Volume::default()));
        }
        let told = VolumeClaim {
            volume: (!waits).then_some(volume),
            bound: !waits,
            storage_class: claim.class.clone(),
            deleting: claim.deleting,
            ..VolumeClaim::default()
        };
        objects.set_claim(key.clone(), Some(told));
    }

    pub(super) fn volume_seen(&mut self, event: &WatchEvent, spec: &Value, now: SimTime) {
        let name = event.object.key.name.clone();
        if !is_there(event) {
            self.storage.volumes.remove(&name);
            return self.library.cluster.objects.set_volume(name, None);
        }
        let terms = spec.pointer("/nodeAffinity/required/nodeSelectorTerms").and_then(Value::as_array);
        let volume = Volume {
            labels: (*event.object.meta.labels).clone(),
            node_affinity: terms.map(|terms| terms.iter().map(NodeSelectorTerm::from_json).collect()),
        };
        let before = self.storage.volumes.insert(name.clone(), volume.clone());
        if before.as_ref() == Some(&volume) {
            return;
        }
        self.library.cluster.objects.set_volume(name, Some(volume.clone()));
        let event = Event::Volume { before: before.map(Box::new), after: Box::new(volume) };
        self.queue.happened(now, &event, &self.library);
    }

    pub(super) fn storage_class_seen(
        &mut self,
        event: &WatchEvent,
        fields: &serde_json::Map<String, Value>,
        now: SimTime,
    ) {
        let name = event.object.key.name.clone();
        if !is_there(event) {
            self.storage.classes.remove(&name);
            return self.library.cluster.objects.set_storage_class(name, None);
        }
        let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default();
        let waits = text("volumeBindingMode") == "WaitForFirstConsumer";
        let topologies = fields.get("allowedTopologies").and_then(Value::as_array).into_iter().flatten();
        // Volumes are made, or are assumed to be there, whatever the provisioner.
        let scheduling = StorageClass {
            waits_for_consumer: waits,
            no_provisioner: false,
            allowed: topologies.map(allowed_topology).collect(),
        };
        let class = Class { waits, provisioner: text("provisioner").into(), scheduling };
        let before = self.storage.classes.insert(name.clone(), class.clone());
        if before.as_ref() == Some(&class) {
            return;
        }
        self.library.cluster.objects.set_storage_class(name.clone(), Some(class.scheduling.clone()));
        let of_class = self.storage.claims.iter().filter(|(_, claim)| claim.class.as_ref() == Some(&name));
        let keys: Vec<Key> = of_class.map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.bind_claim(key));
        let before = before.map(|before| Box::new(before.scheduling));
        let event = Event::StorageClass { before, after: Box::new(class.scheduling) };
        self.queue.happened(now, &event, &self.library);
    }

    /// Claims that are not in the trace count as bound and reachable from every node.
    pub(super) fn suppose_claims(&mut self, class: ClassId) {
        for key in self.claims_of(class) {
            if !self.storage.claims.contains_key(&key) {
                self.storage.claims.insert(key.clone(), Claim::default());
                self.bind_claim(&key);
            }
        }
    }

    /// A pod of this class got a node: claims that waited for that are bound, to volumes that are made there.
    pub(super) fn first_use(&mut self, class: ClassId, node: NodeId) {
        for key in self.claims_of(class) {
            let Some(claim) = self.storage.claims.get_mut(&key) else { continue };
            let class = claim.class.as_ref().and_then(|name| self.storage.classes.get(name));
            let Some(class) = class.filter(|class| class.waits && claim.volume.is_none() && !claim.made) else {
                continue;
            };
            claim.made = true;
            let volume = made_on(&self.library.cluster.node(node).labels, &class.provisioner);
            self.library.cluster.objects.set_volume(made_for(&key), Some(volume));
            self.bind_claim(&key);
        }
    }

    fn claims_of(&self, class: ClassId) -> Vec<Key> {
        let class = self.library.cluster.class(class);
        class.claims.iter().map(|claim| (class.namespace.clone(), claim.name.clone())).collect()
    }
}

/// A volume that is made for a node: reachable from its zone, from itself alone, or from everywhere.
fn made_on(node: &BTreeMap<SmolStr, SmolStr>, provisioner: &str) -> Volume {
    let mut volume = Volume::default();
    if ZONAL.contains(&provisioner) {
        volume.labels.extend(node.get(ZONE).map(|zone| (SmolStr::new_static(ZONE), zone.clone())));
    } else if LOCAL.contains(&provisioner)
        && let Some(name) = node.get(HOSTNAME)
    {
        let here = json!({"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [name]}]});
        volume.node_affinity = Some(vec![NodeSelectorTerm::from_json(&here)]);
    }
    volume
}

/// An entry of `allowedTopologies`, which has `matchLabelExpressions` without operators.
fn allowed_topology(topology: &Value) -> NodeSelectorTerm {
    let expressions = topology["matchLabelExpressions"].as_array().into_iter().flatten();
    let expressions: Vec<Value> =
        expressions.map(|one| json!({"key": one["key"], "operator": "In", "values": one["values"]})).collect();
    NodeSelectorTerm::from_json(&json!({"matchExpressions": expressions}))
}
