//! A node group: its size limits, its node template, and the startup time of a node.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use sk_core::{Quantity, SimDuration, SmolStr, Taint};

use super::text_or::TextOr;
use super::{schema, spelling};

/// Pods that a node takes unless it says otherwise: the kubelet's own default (`maxPods`, Kubernetes 1.36,
/// pkg/kubelet/apis/config/v1beta1/defaults.go).
const DEFAULT_PODS: i64 = 110;

/// From asking for a node until it is ready, unless the group says otherwise. An assumption and no measurement: clouds
/// take from half a minute to several minutes.
const DEFAULT_READY: SimDuration = SimDuration::from_secs(60);

/// A group of nodes that are all alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a node group: a mapping such as {min: 1, max: 10, cpu: 4, memory: 16Gi}")]
pub struct Group {
    /// Which recorded nodes belong here, by their labels: size, labels and taints then come from them.
    #[serde(rename = "match", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub matches: BTreeMap<SmolStr, SmolStr>,
    /// Never fewer nodes than this; a run starts with so many. Default: 0.
    #[serde(default)]
    pub min: u32,
    /// Never more nodes than this.
    pub max: u32,
    /// The machine's cores. Needed, unless the group has a `match`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::amount")]
    pub cpu: Option<Quantity>,
    /// The machine's memory. Needed, unless the group has a `match`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::amount")]
    pub memory: Option<Quantity>,
    /// What is left for pods, by resource. Default: all of `cpu` and `memory`, and 110 `pods`, which is the kubelet's
    /// own default. Resources that stand only here, like `nvidia.com/gpu`, are the machine's too.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::amounts")]
    pub allocatable: BTreeMap<SmolStr, Quantity>,
    /// Labels of its nodes. Default: none but those that every node gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<SmolStr, SmolStr>,
    /// Taints of its nodes. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "taints")]
    #[schemars(with = "Vec<taints::Written>")]
    pub taints: Vec<Taint>,
    /// Price of a node for an hour. Without it there is no cost, not a cost of 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub price: Option<f64>,
    /// From asking for a node until it is ready. Default: `60s`, an assumption: write what yours take.
    #[serde(default)]
    #[schemars(schema_with = "ready_schema")]
    pub ready: Ready,
}

impl Group {
    /// What a whole node has: its own size, and of everything else what is allocatable.
    pub fn capacity(&self) -> BTreeMap<SmolStr, Quantity> {
        let mut capacity = self.allocatable.clone();
        capacity.extend(self.cpu.map(|cpu| ("cpu".into(), cpu)));
        capacity.extend(self.memory.map(|memory| ("memory".into(), memory)));
        capacity
    }

    /// Fills in what is left for pods, unless that comes from a recording.
    pub(crate) fn resolve(&mut self) {
        if !self.matches.is_empty() {
            return;
        }
        let pods = Some(Quantity::from_value(DEFAULT_PODS));
        for (resource, amount) in [("cpu", self.cpu), ("memory", self.memory), ("pods", pods)] {
            if let Some(amount) = amount {
                self.allocatable.entry(resource.into()).or_insert(amount);
            }
        }
    }
}

/// From asking for a node until it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TextOr<Percentiles>", into = "TextOr<Percentiles>")]
pub enum Ready {
    /// `60s`: always so long.
    After(SimDuration),
    /// `{p50: 55s, p99: 140s}`: half of them take at most the one, all but one in a hundred at most the other.
    Spread {
        /// The median.
        p50: SimDuration,
        /// The 99th percentile.
        p99: SimDuration,
    },
}

impl Default for Ready {
    fn default() -> Self {
        Self::After(DEFAULT_READY)
    }
}

/// How long nodes take to be ready, when not all take the same.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping such as {p50: 55s, p99: 140s}")]
struct Percentiles {
    /// Half of them take at most so long.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    p50: SimDuration,
    /// All but one in a hundred take at most so long.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    p99: SimDuration,
}

fn ready_schema(generator: &mut SchemaGenerator) -> Schema {
    schema::either(&schema::duration(generator), &generator.subschema_for::<Percentiles>())
}

impl TryFrom<TextOr<Percentiles>> for Ready {
    type Error = String;

    fn try_from(written: TextOr<Percentiles>) -> Result<Self, String> {
        match written {
            TextOr::Text(text) => spelling::read_span(&text).map(Self::After),
            TextOr::Long(Percentiles { p50, p99 }) => Ok(Self::Spread { p50, p99 }),
        }
    }
}

impl From<Ready> for TextOr<Percentiles> {
    fn from(ready: Ready) -> Self {
        match ready {
            Ready::After(span) => Self::Text(spelling::span(span)),
            Ready::Spread { p50, p99 } => Self::Long(Percentiles { p50, p99 }),
        }
    }
}

/// Taints as a scenario writes them. Kubernetes' own type has a time besides, which a node that does not exist yet
/// cannot have, and lets unknown fields pass, which a scenario must not.
mod taints {
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use sk_core::{SmolStr, Taint, TaintEffect};

    /// A mark that repels pods.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(
        deny_unknown_fields,
        expecting = "a taint: a mapping such as {key: spot, value: \"true\", effect: NoSchedule}"
    )]
    #[schemars(rename = "Taint")]
    pub(super) struct Written {
        /// Its key.
        key: SmolStr,
        /// Its value. Default: empty.
        #[serde(default, skip_serializing_if = "SmolStr::is_empty")]
        value: SmolStr,
        /// What it does to pods that do not tolerate it.
        #[schemars(schema_with = "effect_schema")]
        effect: TaintEffect,
    }

    fn effect_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"] })
    }

    pub(super) fn serialize<S: Serializer>(taints: &[Taint], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(taints.iter().map(|taint| Written {
            key: taint.key.clone(),
            value: taint.value.clone(),
            effect: taint.effect,
        }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Taint>, D::Error> {
        let written = Vec::<Written>::deserialize(deserializer)?;
        let taint = |written: Written| Taint { value: written.value, ..Taint::new(written.key, written.effect) };
        Ok(written.into_iter().map(taint).collect())
    }
}
