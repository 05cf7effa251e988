//! Deployments and ReplicaSets.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sk_core::SmolStr;
use sk_core::selector::LabelSelector;

use super::{Condition, Kind, PodSpec, read};
use crate::Labels;
use crate::error::Invalid;

/// A deployment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deployment {
    /// What is desired.
    pub spec: Arc<DeploymentSpec>,
    /// What is.
    pub status: DeploymentStatus,
}

/// What a deployment is to look like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentSpec {
    /// How many pods.
    #[serde(default = "one")]
    pub replicas: i32,
    /// Which pods are its own: a label selector as written, which validation has parsed once.
    #[serde(default)]
    pub selector: Value,
    /// What each pod is made from.
    #[serde(default)]
    pub template: PodTemplate,
    /// How a new template replaces an old one.
    #[serde(default)]
    pub strategy: Strategy,
    /// Seconds a pod must be ready to count as available.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min_ready_seconds: i32,
    /// How many old replica sets are kept.
    #[serde(default = "ten")]
    pub revision_history_limit: i32,
    /// Changes of the template are not rolled out while set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A pod to be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodTemplate {
    /// Its labels and annotations.
    pub metadata: TemplateMeta,
    /// What it runs. Shared with the pods made from it.
    pub spec: Arc<PodSpec>,
}

/// Metadata that pods take over from their template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateMeta {
    /// Labels.
    #[serde(skip_serializing_if = "no_labels")]
    pub labels: Labels,
    /// Annotations.
    #[serde(skip_serializing_if = "no_labels")]
    pub annotations: Labels,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How a new template replaces an old one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Strategy {
    /// In steps or all at once.
    #[serde(rename = "type")]
    pub kind: StrategyType,
    /// The size of the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
}

/// In steps or all at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StrategyType {
    /// In steps.
    #[default]
    RollingUpdate,
    /// All old pods go before the first new one comes.
    Recreate,
}

/// The size of a rollout's steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// How many pods may be missing.
    pub max_unavailable: IntOrPercent,
    /// How many pods may be too many.
    pub max_surge: IntOrPercent,
}

impl Default for RollingUpdate {
    fn default() -> Self {
        let quarter = IntOrPercent::Percent(SmolStr::new_static("25%"));
        Self { max_unavailable: quarter.clone(), max_surge: quarter }
    }
}

/// A count or a share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrPercent {
    /// So many.
    Int(i32),
    /// `25%` of the whole.
    Percent(SmolStr),
}

impl IntOrPercent {
    /// How many that is of `total`; `None` for a text that is no percentage.
    pub fn of(&self, total: i32, round_up: bool) -> Option<i32> {
        let percent = match self {
            Self::Int(count) => return Some(*count),
            Self::Percent(text) => text.strip_suffix('%')?.parse::<i64>().ok()?,
        };
        let hundredths = percent.saturating_mul(i64::from(total));
        let count = if round_up { hundredths.saturating_add(99).div_euclid(100) } else { hundredths.div_euclid(100) };
        i32::try_from(count).ok()
    }
}

/// What a deployment reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    /// The generation these figures speak of.
    #[serde(skip_serializing_if = "is_zero_64")]
    pub observed_generation: i64,
    /// All pods.
    #[serde(skip_serializing_if = "is_zero")]
    pub replicas: i32,
    /// Pods of the newest template.
    #[serde(skip_serializing_if = "is_zero")]
    pub updated_replicas: i32,
    /// Pods that are ready.
    #[serde(skip_serializing_if = "is_zero")]
    pub ready_replicas: i32,
    /// Pods ready for long enough.
    #[serde(skip_serializing_if = "is_zero")]
    pub available_replicas: i32,
    /// Pods still missing.
    #[serde(skip_serializing_if = "is_zero")]
    pub unavailable_replicas: i32,
    /// Terminating pods; set once its ReplicaSets have reported theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating_replicas: Option<i32>,
    /// Available, Progressing and the like.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// How often the name of a replica set was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A replica set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaSet {
    /// What is desired.
    pub spec: Arc<ReplicaSetSpec>,
    /// What is.
    pub status: ReplicaSetStatus,
}

/// What a replica set is to look like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaSetSpec {
    /// How many pods.
    #[serde(default = "one")]
    pub replicas: i32,
    /// Seconds a pod must be ready to count as available.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min_ready_seconds: i32,
    /// Which pods are its own: a label selector as written, which validation has parsed once.
    #[serde(default)]
    pub selector: Value,
    /// What each pod is made from.
    #[serde(default)]
    pub template: PodTemplate,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What a replica set reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaSetStatus {
    /// All pods.
    pub replicas: i32,
    /// Pods that have the template's labels.
    #[serde(skip_serializing_if = "is_zero")]
    pub fully_labeled_replicas: i32,
    /// Pods that are ready.
    #[serde(skip_serializing_if = "is_zero")]
    pub ready_replicas: i32,
    /// Pods ready for long enough.
    #[serde(skip_serializing_if = "is_zero")]
    pub available_replicas: i32,
    /// Pods that are going; there once the controller has looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating_replicas: Option<i32>,
    /// The generation these figures speak of.
    #[serde(skip_serializing_if = "is_zero_64")]
    pub observed_generation: i64,
    /// All other fields: conditions.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A replicated workload is valid when its count is one, and its selector selects its template.
pub(super) fn validate(replicas: i32, selector: &Value, template: &PodTemplate) -> Result<(), Invalid> {
    template.spec.validate("spec.template.spec")?;
    if replicas < 0 {
        let why = format!("Invalid value: {replicas}: must be greater than or equal to 0");
        return Err(Invalid::new("spec.replicas", why));
    }
    let selector = match LabelSelector::from_json(selector) {
        Ok(selector) if selector.requirements().is_empty() => {
            return Err(Invalid::new("spec.selector", "Required value"));
        }
        Ok(selector) => selector,
        Err(error) => return Err(Invalid::new("spec.selector", format!("Invalid value: {error}"))),
    };
    if !selector.matches(&*template.metadata.labels) {
        let why = "Invalid value: `selector` does not match template `labels`";
        return Err(Invalid::new("spec.template.metadata.labels", why));
    }
    Ok(())
}

/// Workloads differ in their fields, not in how they are stored.
macro_rules! workload {
    ($kind:ident, $spec:ident, $status:ident) => {
        impl Kind for $kind {
            fn read(fields: &mut Map<String, Value>) -> Result<Self, serde_json::Error> {
                let spec: $spec = read(fields.remove("spec"))?;
                Ok(Self { spec: Arc::new(spec), status: read(fields.remove("status"))? })
            }

            fn write(&self, fields: &mut Map<String, Value>) {
                fields.insert("spec".into(), json!(*self.spec));
                fields.insert("status".into(), json!(self.status));
            }

            fn prepare_for_create(&mut self) {
                self.status = $status::default();
            }

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
                self.spec.check()
            }

            fn validate_update(&self, _stored: &Self) -> Result<(), Invalid> {
                Ok(())
            }
        }
    };
}

pub(super) use workload;

workload!(Deployment, DeploymentSpec, DeploymentStatus);
workload!(ReplicaSet, ReplicaSetSpec, ReplicaSetStatus);

impl DeploymentSpec {
    fn check(&self) -> Result<(), Invalid> {
        validate(self.replicas, &self.selector, &self.template)
    }
}

impl ReplicaSetSpec {
    fn check(&self) -> Result<(), Invalid> {
        validate(self.replicas, &self.selector, &self.template)
    }
}

impl Default for DeploymentSpec {
    fn default() -> Self {
        Self {
            replicas: one(),
            selector: Value::Null,
            template: PodTemplate::default(),
            strategy: Strategy::default(),
            min_ready_seconds: 0,
            revision_history_limit: ten(),
            paused: false,
            rest: Map::new(),
        }
    }
}

impl Default for ReplicaSetSpec {
    fn default() -> Self {
        Self {
            replicas: one(),
            min_ready_seconds: 0,
            selector: Value::Null,
            template: PodTemplate::default(),
            rest: Map::new(),
        }
    }
}

pub(super) fn one() -> i32 {
    1
}

pub(super) fn ten() -> i32 {
    10
}

pub(super) fn is_zero(count: &i32) -> bool {
    *count == 0
}

pub(super) fn is_zero_64(count: &i64) -> bool {
    *count == 0
}

fn no_labels(labels: &Labels) -> bool {
    labels.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_round_as_kubernetes_rounds_them() {
        let quarter = IntOrPercent::Percent("25%".into());
        assert_eq!((quarter.of(10, true), quarter.of(10, false)), (Some(3), Some(2)));
        assert_eq!(IntOrPercent::Int(4).of(10, true), Some(4));
        assert_eq!(IntOrPercent::Percent("a lot".into()).of(10, true), None);
    }
}
