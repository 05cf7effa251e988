//! Lifecycles of pods, by owner and pod template.

use serde::{Deserialize, Serialize};
use sk_core::{ObjectRef, SimTime, StableHash, TemplateId};

use super::text;

/// One pod's life: from its first container's start to its last one's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Life {
    /// When it began to run.
    #[serde(with = "text::time")]
    pub start: SimTime,
    /// When it had finished; `None` if it ran until it was deleted or the recording ended.
    #[serde(default, with = "text::maybe_time", skip_serializing_if = "Option::is_none")]
    pub end: Option<SimTime>,
    /// Is its end a guess, because it disappeared within a gap?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guessed: bool,
    /// What its containers ended with, if they failed; `None`: they succeeded, or it is unknown.
    #[serde(default, rename = "exitCode", skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// The lives of one owner's pods of one template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateLives {
    /// The template; v2 traces do not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateId>,
    /// The stable hash of the admitted pods' spec: what v2 traces know instead, and need.
    #[serde(default, with = "text::maybe_hash", skip_serializing_if = "Option::is_none")]
    pub pod_hash: Option<StableHash>,
    /// Their lives, in the order of the trace.
    pub lives: Vec<Life>,
}

/// The lives of one owner's pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnerLives {
    /// The object that the pods belonged to in the end: their CronJob, not its Job. A bare pod owns itself.
    pub owner: ObjectRef,
    /// By template.
    pub templates: Vec<TemplateLives>,
}
