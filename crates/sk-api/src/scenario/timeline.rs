//! Faults and changes during a run, at given times; and the variants of a scenario.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sk_core::{SimDuration, SmolStr, TimeSpec};

use super::{schema, spelling};

/// Fields that change, by path, with their new values: `cluster.groups.general.max: 60`.
pub type Changes = BTreeMap<String, Value>;

/// The most nodes that one entry names: as many as a large group has.
pub(crate) const MAX_NAMES: usize = 1_000;

/// One fault or change, once or repeatedly: `at` or `every`, and one of the six others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase", expecting = "a mapping such as {at: +3d, stockout: …}")]
pub struct Happening {
    /// When, on the trace's clock.
    #[serde(with = "spelling::some_moment", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub at: Option<TimeSpec>,
    /// How often.
    #[serde(with = "spelling::some_duration", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub every: Option<SimDuration>,
    /// The cloud has no more nodes of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stockout: Option<Stockout>,
    /// The kubelets of a zone stop reporting, and the zone gets no new nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lose_zone: Option<LoseZone>,
    /// The kubelets of some nodes stop reporting, for a time or for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lose_nodes: Option<LoseNodes>,
    /// Requests to the API server take longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_api: Option<SlowApi>,
    /// The cloud takes nodes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaim: Option<Reclaim>,
    /// Fields of this scenario change.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: Changes,
}

/// The cloud has no more nodes of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping such as {group: general, for: 20m}")]
pub struct Stockout {
    /// Of which group.
    pub group: SmolStr,
    /// How long.
    #[serde(rename = "for", with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub length: SimDuration,
}

/// The kubelets of a zone stop reporting, and the zone gets no new nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping such as {zone: eu-central-1b, for: 15m}")]
pub struct LoseZone {
    /// The zone, by label `topology.kubernetes.io/zone`.
    pub zone: SmolStr,
    /// How long.
    #[serde(rename = "for", with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub length: SimDuration,
}

/// The kubelets of some nodes stop reporting, for a time or for good: named nodes, or a number of a group's nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a mapping such as {group: general, count: 2, for: 10m}")]
pub struct LoseNodes {
    /// Of which group. The seed decides which of its nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<SmolStr>,
    /// How many of the group. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Which nodes, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<SmolStr>,
    /// How long. Default: for good.
    #[serde(rename = "for", with = "spelling::some_duration", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub length: Option<SimDuration>,
}

/// Requests to the API server take longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping such as {latency: 200ms, for: 5m}")]
pub struct SlowApi {
    /// How much longer each request takes.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub latency: SimDuration,
    /// How long that lasts.
    #[serde(rename = "for", with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub length: SimDuration,
}

/// The cloud takes nodes back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping such as {group: spot, share: 0.1, notice: 2m}")]
pub struct Reclaim {
    /// Of which group.
    pub group: SmolStr,
    /// Which share of its nodes, from 0 to 1.
    pub share: f64,
    /// The notice period before that. Default: `0s`.
    #[serde(default, with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub notice: SimDuration,
}

/// The scenario with some fields changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name.
    pub name: SmolStr,
    /// What is changed.
    pub changes: Changes,
}

/// For `#[serde(with)]`: variants as a mapping, in the order written, because the first is what others are compared with.
pub(crate) mod variants {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(variants: &[Variant], serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(variants.len()))?;
        for variant in variants {
            map.serialize_entry(&variant.name, &variant.changes)?;
        }
        map.end()
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Variant>, D::Error> {
        struct VariantsVisitor;

        impl<'de> Visitor<'de> for VariantsVisitor {
            type Value = Vec<Variant>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a mapping from each variant's name to the fields it changes")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Variant>, A::Error> {
                let mut variants = Vec::new();
                while let Some((name, changes)) = map.next_entry()? {
                    variants.push(Variant { name, changes });
                }
                Ok(variants)
            }
        }

        deserializer.deserialize_map(VariantsVisitor)
    }
}
