//! Pods: the part of the spec that placement and lifecycle read, and a compact status.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sk_core::{Quantity, SimTime, SmolStr, Toleration};

/// A pod. The spec is shared by all pods of a template; the node it is bound to stands outside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    /// What to run.
    pub spec: Arc<PodSpec>,
    /// Where it runs, once decided.
    pub node_name: Option<SmolStr>,
    /// How it is doing.
    pub status: PodStatus,
}

/// What to run and where it may run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Init containers, sidecars (`restartPolicy: Always`) among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Container>,
    /// The main containers.
    pub containers: Vec<Container>,
    /// Labels a node must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<SmolStr, SmolStr>,
    /// Rules on nodes and other pods, as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Value>,
    /// Taints it puts up with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Higher goes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Where the priority comes from.
    #[serde(skip_serializing_if = "SmolStr::is_empty")]
    pub priority_class_name: SmolStr,
    /// `Never`: waits instead of preempting others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption_policy: Option<SmolStr>,
    /// `Always`, `OnFailure` or `Never`.
    #[serde(skip_serializing_if = "SmolStr::is_empty")]
    pub restart_policy: SmolStr,
    /// Seconds between asking it to stop and killing it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<i64>,
    /// What the runtime itself needs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub overhead: BTreeMap<SmolStr, Quantity>,
    /// Requests and limits of the pod as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Not to be scheduled while there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scheduling_gates: Vec<Value>,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A container, as far as the engine reads it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Its name.
    pub name: SmolStr,
    /// What it asks for.
    #[serde(skip_serializing_if = "ResourceRequirements::is_empty")]
    pub resources: ResourceRequirements,
    /// `Always` on an init container makes it a sidecar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<SmolStr>,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Requests and limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceRequirements {
    /// At most this.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<SmolStr, Quantity>,
    /// At least this.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<SmolStr, Quantity>,
    /// Claims and whatever else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl ResourceRequirements {
    fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.requests.is_empty() && self.rest.is_empty()
    }
}

impl Container {
    /// A sidecar is an init container that runs as long as the pod does.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PodPhase {
    /// Not all containers have started.
    #[default]
    Pending,
    /// At least one container runs.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended and one did not end well.
    Failed,
    /// The node cannot be asked.
    Unknown,
}

impl PodPhase {
    /// Will it never run again?
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// How a pod is doing. Container statuses are made from it when somebody asks for JSON: in a simulation all containers of
/// a pod start and end together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodStatus {
    /// Where it is in its life.
    pub phase: PodPhase,
    /// PodScheduled, Ready and the like.
    pub conditions: Vec<Condition>,
    /// When its node took it on.
    pub start_time: Option<SimTime>,
    /// When its containers started.
    pub started: Option<SimTime>,
    /// When its containers ended.
    pub finished: Option<SimTime>,
    /// Why it failed, in a word.
    pub reason: Option<SmolStr>,
    /// Why it failed, in a sentence.
    pub message: Option<SmolStr>,
}

impl PodStatus {
    /// The condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Sets a condition; its transition time changes only when its status does. `false`: nothing changed.
    pub fn set_condition(&mut self, mut condition: Condition) -> bool {
        match self.conditions.iter_mut().find(|known| known.kind == condition.kind) {
            Some(known) => {
                if known.status == condition.status {
                    condition.last_transition_time = known.last_transition_time;
                }
                let changed = *known != condition;
                *known = condition;
                changed
            }
            None => {
                self.conditions.push(condition);
                true
            }
        }
    }
}

/// One condition of a pod, node or workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its type, e.g. `Ready`.
    #[serde(rename = "type")]
    pub kind: SmolStr,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// When that last changed.
    #[serde(default, with = "crate::json::optional_time", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<SimTime>,
    /// Why, in a word.
    #[serde(default, skip_serializing_if = "SmolStr::is_empty")]
    pub reason: SmolStr,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "SmolStr::is_empty")]
    pub message: SmolStr,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can say.
    Unknown,
}

impl Condition {
    /// A condition that came to hold, or to hold no longer, at `now`.
    pub fn new(kind: &'static str, holds: bool, now: SimTime) -> Self {
        Self {
            kind: SmolStr::new_static(kind),
            status: if holds { ConditionStatus::True } else { ConditionStatus::False },
            last_transition_time: Some(now),
            reason: SmolStr::default(),
            message: SmolStr::default(),
        }
    }

    /// With a reason and a message.
    pub fn because(mut self, reason: impl Into<SmolStr>, message: impl Into<SmolStr>) -> Self {
        self.reason = reason.into();
        self.message = message.into();
        self
    }

    /// Does it hold?
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }
}
