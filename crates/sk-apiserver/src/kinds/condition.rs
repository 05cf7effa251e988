//! Status conditions: type, status, reason, message and last transition.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use sk_core::{SimTime, SmolStr};

const LAST_UPDATE_TIME: &str = "lastUpdateTime";

/// One condition of a pod, node or workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Its type, e.g. `Ready`.
    pub kind: SmolStr,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// When that last changed.
    pub last_transition_time: Option<SimTime>,
    why: Option<Arc<Why>>,
}

/// Why a condition holds or does not: shared, because many pods wait for the same reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Why {
    /// In a word.
    pub reason: SmolStr,
    /// In a sentence.
    pub message: SmolStr,
    /// All other fields, as they came.
    pub rest: Map<String, Value>,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Unknown.
    #[default]
    Unknown,
}

impl Condition {
    /// A condition that came to hold, or to hold no longer, at `now`.
    pub fn new(kind: &'static str, holds: bool, now: SimTime) -> Self {
        Self {
            kind: SmolStr::new_static(kind),
            status: if holds { ConditionStatus::True } else { ConditionStatus::False },
            last_transition_time: Some(now),
            why: None,
        }
    }

    /// With a reason and a message.
    pub fn because(mut self, reason: impl Into<SmolStr>, message: impl Into<SmolStr>) -> Self {
        let why = Why { reason: reason.into(), message: message.into(), rest: Map::new() };
        self.why = (why != Why::default()).then(|| Arc::new(why));
        self
    }

    /// With the time when it was last written, which conditions of deployments have.
    pub fn updated(mut self, now: SimTime) -> Self {
        let why = Arc::make_mut(self.why.get_or_insert_default());
        why.rest.insert(LAST_UPDATE_TIME.into(), now.to_rfc3339_secs().into());
        self
    }

    /// When it was last written, if known.
    pub fn last_update_time(&self) -> Option<SimTime> {
        let text = self.why.as_ref()?.rest.get(LAST_UPDATE_TIME)?.as_str()?;
        SimTime::parse_rfc3339(text).ok()
    }

    /// Does it hold?
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }

    /// The reason, one CamelCase word; may be empty.
    pub fn reason(&self) -> &str {
        self.why.as_ref().map_or("", |why| &why.reason)
    }

    /// The message, a sentence; may be empty.
    pub fn message(&self) -> &str {
        self.why.as_ref().map_or("", |why| &why.message)
    }
}

/// Sets a condition; its transition time changes only when its status does. `false`: nothing changed.
pub(crate) fn set(conditions: &mut Vec<Condition>, mut condition: Condition) -> bool {
    match conditions.iter_mut().find(|known| known.kind == condition.kind) {
        Some(known) => {
            if known.status == condition.status {
                condition.last_transition_time = known.last_transition_time;
            }
            let changed = *known != condition;
            *known = condition;
            changed
        }
        None => {
            // A pod has five in the end, and there are many pods: no room is kept for more.
            conditions.reserve_exact(1);
            conditions.push(condition);
            true
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json {
    #[serde(rename = "type", default)]
    kind: SmolStr,
    #[serde(default)]
    status: ConditionStatus,
    #[serde(default, with = "crate::json::optional_time", skip_serializing_if = "Option::is_none")]
    last_transition_time: Option<SimTime>,
    #[serde(default, skip_serializing_if = "SmolStr::is_empty")]
    reason: SmolStr,
    #[serde(default, skip_serializing_if = "SmolStr::is_empty")]
    message: SmolStr,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Why { reason, message, rest } = self.why.as_deref().cloned().unwrap_or_default();
        let (kind, status) = (self.kind.clone(), self.status);
        Json { kind, status, last_transition_time: self.last_transition_time, reason, message, rest }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Json { kind, status, last_transition_time, reason, message, rest } = Json::deserialize(deserializer)?;
        let why = Why { reason, message, rest };
        let why = (why != Why::default()).then(|| Arc::new(why));
        Ok(Self { kind, status, last_transition_time, why })
    }
}
