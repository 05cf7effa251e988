//! A Job's pod failure policy and success policy.

use serde::{Deserialize, Serialize};
use sk_core::SmolStr;

use super::ConditionStatus;

/// What becomes of a Job when a pod fails in a certain way: the first rule that matches decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodFailurePolicy {
    /// In order.
    pub rules: Vec<PodFailureRule>,
}

/// One rule of a pod failure policy. It has either exit codes or conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodFailureRule {
    /// What to do.
    pub action: PodFailureAction,
    /// Matches pods whose containers ended with certain codes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_exit_codes: Option<OnExitCodes>,
    /// Matches pods that have one of these conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_pod_conditions: Option<Vec<OnPodCondition>>,
}

/// What a rule does with a pod's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodFailureAction {
    /// The whole Job fails.
    FailJob,
    /// The pod's index fails for good.
    FailIndex,
    /// As if it had not happened.
    Ignore,
    /// As without a policy.
    Count,
}

/// Which exit codes a rule means; 0 is never one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OnExitCodes {
    /// Of this container only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_name: Option<SmolStr>,
    /// These, or all but these.
    pub operator: ExitCodeOperator,
    /// The codes.
    #[serde(default)]
    pub values: Vec<i32>,
}

/// These, or all but these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitCodeOperator {
    /// One of these.
    In,
    /// None of these.
    NotIn,
}

/// A condition that a rule looks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnPodCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: SmolStr,
    /// Its status.
    #[serde(default = "holds")]
    pub status: ConditionStatus,
}

/// When an indexed Job has succeeded before all of its indexes have: any rule is enough.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuccessPolicy {
    /// In order.
    pub rules: Vec<SuccessRule>,
}

/// One rule of a success policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SuccessRule {
    /// Of these indexes, such as `0,2-4`; all if it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded_indexes: Option<String>,
    /// So many; all if it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded_count: Option<i32>,
}

fn holds() -> ConditionStatus {
    ConditionStatus::True
}
