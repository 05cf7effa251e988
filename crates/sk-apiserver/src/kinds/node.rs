//! Nodes: the fields that placement needs, which are resources, labels and taints.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sk_core::{Quantity, Resources, SmolStr, Taint};

use super::{Condition, Kind, read};
use crate::error::Invalid;

/// A node's spec and status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// What is desired.
    pub spec: Arc<NodeSpec>,
    /// What is.
    pub status: Arc<NodeStatus>,
}

/// What is desired of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    /// Cordoned?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,
    /// Marks that repel pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What a node reports of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    /// The whole machine.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<SmolStr, Quantity>,
    /// What is left for pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<SmolStr, Quantity>,
    /// Ready and the like.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Node {
    /// Is it ready to run pods?
    pub fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|condition| condition.is("Ready") && condition.is_true())
    }

    /// What pods may use, and how many of them.
    pub fn allocatable(&self) -> (Resources, i64) {
        let pods = self.status.allocatable.get("pods").map_or(0, |pods| pods.value());
        (Resources::from_quantities(&self.status.allocatable), pods)
    }
}

impl Node {
    /// Allocatable defaults to capacity (`SetDefaults_NodeStatus`).
    pub(crate) fn default_allocatable(&mut self) {
        if self.status.allocatable.is_empty() && !self.status.capacity.is_empty() {
            let status = Arc::make_mut(&mut self.status);
            status.allocatable.clone_from(&status.capacity);
        }
    }
}

impl Kind for Node {
    fn read(fields: &mut Map<String, Value>) -> Result<Self, serde_json::Error> {
        Ok(Self { spec: Arc::new(read(fields.remove("spec"))?), status: Arc::new(read(fields.remove("status"))?) })
    }

    fn write(&self, fields: &mut Map<String, Value>) {
        fields.insert("spec".into(), json!(*self.spec));
        fields.insert("status".into(), json!(*self.status));
    }

    /// A node registers itself with its status.
    fn prepare_for_create(&mut self) {}

    fn set_status(&mut self, other: &Self) {
        self.status.clone_from(&other.status);
    }

    fn prepare_for_update(&mut self, stored: &Self) {
        self.set_status(stored);
    }

    fn same_desire(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.spec, &other.spec) || self.spec == other.spec
    }

    fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }

    fn validate_update(&self, _stored: &Self) -> Result<(), Invalid> {
        Ok(())
    }
}
