//! StatefulSets: pods with stable names, an order and their own PersistentVolumeClaims.
//!
//! The body keeps `maxUnavailable` of a rolling update among the other fields and does not read it: its feature gate
//! `MaxUnavailableStatefulSet` is off in 1.36.4, and the API server drops the field.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sk_core::SmolStr;

use super::workload::{is_zero, is_zero_64, one, ten, validate, workload};
use super::{Kind, PodTemplate, read};
use crate::error::Invalid;

/// A stateful set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatefulSet {
    /// What is desired.
    pub spec: Arc<StatefulSetSpec>,
    /// What is.
    pub status: StatefulSetStatus,
}

/// What a stateful set is to look like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSetSpec {
    /// How many pods.
    #[serde(default = "one")]
    pub replicas: i32,
    /// Which pods are its own: a label selector as written, which validation has parsed once.
    #[serde(default)]
    pub selector: Value,
    /// What each pod is made from.
    #[serde(default)]
    pub template: PodTemplate,
    /// Claims that each pod gets, as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_claim_templates: Vec<Value>,
    /// The Service that gives its pods names: their `subdomain`.
    #[serde(default, skip_serializing_if = "SmolStr::is_empty")]
    pub service_name: SmolStr,
    /// One pod after the other, or all at once.
    #[serde(default)]
    pub pod_management_policy: PodManagementPolicy,
    /// How a new template replaces an old one.
    #[serde(default)]
    pub update_strategy: StatefulSetStrategy,
    /// How many old revisions are kept.
    #[serde(default = "ten")]
    pub revision_history_limit: i32,
    /// Seconds a pod must be ready to count as available.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min_ready_seconds: i32,
    /// What becomes of its claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim_retention_policy: Option<ClaimRetention>,
    /// With which number its pods begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinals: Option<Ordinals>,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// One pod after the other, or all at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodManagementPolicy {
    /// Each pod waits until the one before it is available.
    #[default]
    OrderedReady,
    /// Pods do not wait for one another.
    Parallel,
}

/// How a new template replaces an old one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetStrategy {
    /// `RollingUpdate`, or `OnDelete`: only when a user deletes a pod.
    #[serde(rename = "type")]
    pub kind: SetStrategyType,
    /// Where a rollout stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<Partition>,
}

/// The update strategy of a StatefulSet or a DaemonSet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetStrategyType {
    /// The controller replaces old pods.
    #[default]
    RollingUpdate,
    /// The controller replaces a pod only after a user has deleted it.
    OnDelete,
}

/// Where a rollout stops.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Partition {
    /// Pods below this place keep the old template.
    pub partition: i32,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The retention policy for the claims of deleted pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimRetention {
    /// When the set is deleted.
    pub when_deleted: Retention,
    /// When the set shrinks.
    pub when_scaled: Retention,
}

/// Does a claim stay?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Retention {
    /// It stays.
    #[default]
    Retain,
    /// The claim is deleted with its pod or its StatefulSet.
    Delete,
}

/// With which number pods begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ordinals {
    /// The first number.
    pub start: i32,
}

/// What a stateful set reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetStatus {
    /// The generation these figures speak of.
    #[serde(skip_serializing_if = "is_zero_64")]
    pub observed_generation: i64,
    /// All pods.
    pub replicas: i32,
    /// Pods that are ready.
    #[serde(skip_serializing_if = "is_zero")]
    pub ready_replicas: i32,
    /// Pods of the revision that is being replaced.
    #[serde(skip_serializing_if = "is_zero")]
    pub current_replicas: i32,
    /// Pods of the newest revision.
    #[serde(skip_serializing_if = "is_zero")]
    pub updated_replicas: i32,
    /// The revision that is being replaced.
    #[serde(skip_serializing_if = "SmolStr::is_empty")]
    pub current_revision: SmolStr,
    /// The newest revision.
    #[serde(skip_serializing_if = "SmolStr::is_empty")]
    pub update_revision: SmolStr,
    /// How often the name of a revision was taken; set once the controller has synced the StatefulSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// Pods ready for long enough.
    pub available_replicas: i32,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl StatefulSetSpec {
    /// The retention policy of its claims; `Retain` by default.
    pub fn claim_retention(&self) -> ClaimRetention {
        self.persistent_volume_claim_retention_policy.unwrap_or_default()
    }

    /// The first of its pods' numbers.
    pub fn start_ordinal(&self) -> i32 {
        self.ordinals.map_or(0, |ordinals| ordinals.start)
    }

    /// Places below this keep the old template.
    pub fn partition(&self) -> i32 {
        self.update_strategy.rolling_update.as_ref().map_or(0, |update| update.partition)
    }

    fn check(&self) -> Result<(), Invalid> {
        let counts = [
            ("spec.updateStrategy.rollingUpdate.partition", self.partition()),
            ("spec.ordinals.start", self.start_ordinal()),
            ("spec.minReadySeconds", self.min_ready_seconds),
        ];
        if let Some((field, count)) = counts.into_iter().find(|(_, count)| *count < 0) {
            return Err(Invalid::new(field, format!("Invalid value: {count}: must be greater than or equal to 0")));
        }
        let nameless =
            |claim: &Value| claim.pointer("/metadata/name").and_then(Value::as_str).is_none_or(str::is_empty);
        if self.volume_claim_templates.iter().any(nameless) {
            return Err(Invalid::new("spec.volumeClaimTemplates.metadata.name", "Required value"));
        }
        validate(self.replicas, &self.selector, &self.template)
    }
}

workload!(StatefulSet, StatefulSetSpec, StatefulSetStatus);

impl Default for StatefulSetSpec {
    fn default() -> Self {
        read(Some(json!({}))).expect("every field of a stateful set has a default")
    }
}
