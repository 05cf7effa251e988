//! Everything that scheduling reads in a node, without the pods on it.

use std::collections::BTreeMap;

use serde_json::Value;
use sk_core::resources::Amounts;
use sk_core::{SmolStr, Taint, TaintEffect};

use super::class::ClassError;
use super::class::{amounts, is_scalar, texts};

/// Labels that name a node's zone and region, the deprecated ones first (component-helpers `node/topology/helpers.go`).
const ZONE_LABELS: [&str; 2] = ["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"];
const REGION_LABELS: [&str; 2] = ["failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"];

/// A node as its object says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its name.
    pub name: SmolStr,
    /// Its labels.
    pub labels: BTreeMap<SmolStr, SmolStr>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// It is cordoned.
    pub unschedulable: bool,
    /// CPU for pods, in millicores.
    pub cpu: i64,
    /// Memory for pods, in bytes.
    pub memory: i64,
    /// Local disk for pods, in bytes.
    pub ephemeral: i64,
    /// How many pods it takes.
    pub pods: i64,
    /// Extended resources, huge pages and the like.
    pub scalars: BTreeMap<SmolStr, i64>,
    /// Images it has: a size in bytes and every name it goes by.
    pub images: Vec<(i64, Vec<SmolStr>)>,
}

impl NodeSpec {
    /// A node of this name with so many millicores, bytes and places for pods.
    pub fn new(name: impl Into<SmolStr>, cpu: i64, memory: i64, pods: i64) -> Self {
        Self { name: name.into(), cpu, memory, pods, ..Self::default() }
    }

    /// From a node's JSON.
    pub fn from_json(node: &Value) -> Result<Self, ClassError> {
        let status = &node["status"];
        let taint = |taint: &Value| serde_json::from_value::<Taint>(taint.clone()).ok();
        let entries = |of: &Value| of.as_array().cloned().unwrap_or_default();
        let mut spec = Self {
            name: node["metadata"]["name"].as_str().unwrap_or_default().into(),
            labels: texts(node["metadata"].get("labels"), "metadata.labels")?,
            taints: entries(&node["spec"]["taints"]).iter().filter_map(taint).collect(),
            unschedulable: node["spec"]["unschedulable"].as_bool().unwrap_or(false),
            images: entries(&status["images"]).iter().map(image).collect(),
            ..Self::default()
        };
        spec.set_allocatable(&amounts(status.get("allocatable"), "status.allocatable")?);
        Ok(spec)
    }

    /// Takes over what the node has for pods.
    pub fn set_allocatable(&mut self, allocatable: &Amounts) {
        let value = |name: &str| allocatable.get(name).map_or(0, |amount| amount.value());
        self.cpu = allocatable.get("cpu").map_or(0, |amount| amount.milli_value());
        (self.memory, self.ephemeral, self.pods) = (value("memory"), value("ephemeral-storage"), value("pods"));
        let scalars = allocatable.iter().filter(|(name, _)| is_scalar(name));
        self.scalars = scalars.map(|(name, amount)| (name.clone(), amount.value())).collect();
    }

    /// `GetZoneKey`: nodes are looked at zone by zone.
    pub(crate) fn zone(&self) -> SmolStr {
        let first = |keys: [&str; 2]| keys.iter().find_map(|key| self.labels.get(*key)).map_or("", SmolStr::as_str);
        match (first(REGION_LABELS), first(ZONE_LABELS)) {
            ("", "") => SmolStr::default(),
            (region, zone) => [region, ":\0:", zone].concat().into(),
        }
    }

    /// Is there a taint that keeps pods off?
    pub(crate) fn has_hard_taint(&self) -> bool {
        self.taints.iter().any(|taint| taint.effect != TaintEffect::PreferNoSchedule)
    }

    /// Is there a taint that pods would rather avoid?
    pub(crate) fn has_soft_taint(&self) -> bool {
        self.taints.iter().any(|taint| taint.effect == TaintEffect::PreferNoSchedule)
    }
}

fn image(of: &Value) -> (i64, Vec<SmolStr>) {
    let names = of["names"].as_array().into_iter().flatten().filter_map(Value::as_str).map(SmolStr::from);
    (of["sizeBytes"].as_i64().unwrap_or(0), names.collect())
}
