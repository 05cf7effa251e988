//! Status conditions: type, status, reason, message and last transition.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use sk_core::{SimTime, SmolStr};

const LAST_UPDATE_TIME: &str = "lastUpdateTime";

/// One condition of a pod, node or workload: 24 bytes, because every pod has five.
#[derive(Clone, PartialEq)]
pub struct Condition {
    why: Option<Arc<Why>>,
    /// When its status last changed.
    pub last_transition_time: Option<SimTime>,
    /// Its type among [`TYPES`]; [`ANOTHER`]: [`Why::kind`] says.
    kind: u8,
    /// Whether it holds.
    pub status: ConditionStatus,
}

const _: () = assert!(size_of::<Condition>() == 24);

/// The types that Kubernetes' own parts write.
const TYPES: [&str; 19] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    "DisruptionTarget",
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "NetworkUnavailable",
    "Available",
    "Progressing",
    "ReplicaFailure",
    "Complete",
    "Failed",
    "FailureTarget",
    "SuccessCriteriaMet",
    "Suspended",
    "DisruptionAllowed",
];
const ANOTHER: u8 = u8::MAX;

/// Why a condition holds or does not: shared, because many pods wait for the same reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Why {
    /// The condition's type, if it is none of the usual ones.
    pub kind: SmolStr,
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
    pub fn new(kind: &str, holds: bool, now: SimTime) -> Self {
        let status = if holds { ConditionStatus::True } else { ConditionStatus::False };
        Self::of(kind, status, Some(now), None)
    }

    fn of(kind: &str, status: ConditionStatus, last_transition_time: Option<SimTime>, why: Option<Why>) -> Self {
        let usual = TYPES.iter().position(|usual| *usual == kind).and_then(|place| u8::try_from(place).ok());
        let why = match usual {
            Some(_) => why,
            None => Some(Why { kind: kind.into(), ..why.unwrap_or_default() }),
        };
        Self { why: why.map(Arc::new), last_transition_time, kind: usual.unwrap_or(ANOTHER), status }
    }

    /// Its type, e.g. `Ready`.
    pub fn kind(&self) -> &str {
        match TYPES.get(usize::from(self.kind)) {
            Some(usual) => usual,
            None => self.why.as_ref().map_or("", |why| &why.kind),
        }
    }

    /// Is it of this type?
    pub fn is(&self, kind: &str) -> bool {
        self.kind() == kind
    }

    /// With a reason and a message.
    pub fn because(mut self, reason: impl Into<SmolStr>, message: impl Into<SmolStr>) -> Self {
        let kind = self.why.take().map(|why| why.kind.clone()).unwrap_or_default();
        let why = Why { kind, reason: reason.into(), message: message.into(), rest: Map::new() };
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
    match conditions.iter_mut().find(|known| known.is(condition.kind())) {
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
        let Why { kind: _, reason, message, rest } = self.why.as_deref().cloned().unwrap_or_default();
        let (kind, status, last_transition_time) = (self.kind().into(), self.status, self.last_transition_time);
        Json { kind, status, last_transition_time, reason, message, rest }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Json { kind, status, last_transition_time, reason, message, rest } = Json::deserialize(deserializer)?;
        let why = Why { kind: SmolStr::default(), reason, message, rest };
        Ok(Self::of(&kind, status, last_transition_time, Some(why).filter(|why| *why != Why::default())))
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, since) = (&self.status, self.last_transition_time);
        write!(f, "{}={status:?} since {since:?}: {} {}", self.kind(), self.reason(), self.message())
    }
}
