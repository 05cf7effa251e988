//! DaemonSets: one pod on every node that accepts it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::workload::{is_zero, is_zero_64, ten, validate, workload};
use super::{IntOrPercent, Kind, PodTemplate, SetStrategyType, read};
use crate::error::Invalid;

/// A daemon set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DaemonSet {
    /// What is desired.
    pub spec: Arc<DaemonSetSpec>,
    /// What is.
    pub status: DaemonSetStatus,
}

/// What a daemon set is to look like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetSpec {
    /// Which pods are its own: a label selector as written, which validation has parsed once.
    #[serde(default)]
    pub selector: Value,
    /// What each pod is made from.
    #[serde(default)]
    pub template: PodTemplate,
    /// How a new template replaces an old one.
    #[serde(default)]
    pub update_strategy: DaemonSetStrategy,
    /// Seconds a pod must be ready to count as available.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min_ready_seconds: i32,
    /// How many old revisions are kept.
    #[serde(default = "ten")]
    pub revision_history_limit: i32,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How a new template replaces an old one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetStrategy {
    /// `RollingUpdate`, or `OnDelete`: only when a user deletes a pod.
    #[serde(rename = "type")]
    pub kind: SetStrategyType,
    /// The size of the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<DaemonSetSteps>,
}

/// The size of a rollout's steps, in nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetSteps {
    /// On how many nodes the pod may be missing.
    pub max_unavailable: IntOrPercent,
    /// On how many nodes a new pod may run beside the old one.
    pub max_surge: IntOrPercent,
}

/// What a daemon set reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetStatus {
    /// Nodes that should have a pod and have one.
    pub current_number_scheduled: i32,
    /// Nodes that have a pod and should have none.
    pub number_misscheduled: i32,
    /// Nodes that should have a pod.
    pub desired_number_scheduled: i32,
    /// Nodes whose pod is ready.
    pub number_ready: i32,
    /// The generation these figures speak of.
    #[serde(skip_serializing_if = "is_zero_64")]
    pub observed_generation: i64,
    /// Nodes whose pod is of the newest template.
    #[serde(skip_serializing_if = "is_zero")]
    pub updated_number_scheduled: i32,
    /// Nodes whose pod has been ready for long enough.
    #[serde(skip_serializing_if = "is_zero")]
    pub number_available: i32,
    /// Nodes that should have such a pod and have none.
    #[serde(skip_serializing_if = "is_zero")]
    pub number_unavailable: i32,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl DaemonSetSpec {
    fn check(&self) -> Result<(), Invalid> {
        validate(0, &self.selector, &self.template)
    }
}

workload!(DaemonSet, DaemonSetSpec, DaemonSetStatus);

impl Default for DaemonSetSteps {
    fn default() -> Self {
        Self { max_unavailable: IntOrPercent::Int(1), max_surge: IntOrPercent::Int(0) }
    }
}

impl Default for DaemonSetSpec {
    fn default() -> Self {
        read(Some(json!({}))).expect("every field of a daemon set has a default")
    }
}
