//! Nodes: size, labels and taints are what placement needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sk_core::{Quantity, Resources, SmolStr, Taint};

use super::Condition;

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
        self.status.conditions.iter().any(|condition| condition.kind == "Ready" && condition.is_true())
    }

    /// What pods may use, and how many of them.
    pub fn allocatable(&self) -> (Resources, i64) {
        let pods = self.status.allocatable.get("pods").map_or(0, |pods| pods.value());
        (Resources::from_quantities(&self.status.allocatable), pods)
    }
}
