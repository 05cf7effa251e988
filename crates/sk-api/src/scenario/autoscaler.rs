//! cluster-autoscaler's flags, under its own names and with its own defaults, so that they can be pasted from where it
//! is configured.
//!
//! A flag that cluster-autoscaler has and this version does not model is refused as such; one that nobody has is refused
//! with the nearest that there is. Defaults are cluster-autoscaler's own as of 2026 (config/flags/flags.go); until early
//! 2025 its default expander was `random`.

mod flags;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sk_core::SimDuration;

use super::error::{Fault, MAX_FAULTS, ScenarioError, shown};
use super::path::Path;
use super::yaml::{Document, Entry, Value};
use super::{schema, spelling};

use flags::UNMODELLED_FLAGS;

/// How the cluster grows and shrinks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a mapping of cluster-autoscaler's flags")]
pub struct Autoscaler {
    /// Which group grows when several would help. Default: `least-waste`.
    pub expander: Expander,
    /// How often the cluster is looked at. Default: `10s`; at least `1s`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub scan_interval: SimDuration,
    /// Whether nodes are removed at all. Default: true.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub scale_down_enabled: bool,
    /// How long a node must have been unneeded before it goes. Default: `10m`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub scale_down_unneeded_time: SimDuration,
    /// How long after adding nodes none are removed. Default: `10m`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub scale_down_delay_after_add: SimDuration,
    /// A node can go if less than this share of its cpu and of its memory is requested. Default: 0.5.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub scale_down_utilization_threshold: f64,
    /// How many nodes are removed at once. Default: 10.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub max_scale_down_parallelism: u32,
    /// How many of them may have pods that must move. Default: 1.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub max_drain_parallelism: u32,
    /// Whether nodes with pods of `kube-system`, other than those of DaemonSets, stay. Default: true.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub skip_nodes_with_system_pods: bool,
}

impl Default for Autoscaler {
    fn default() -> Self {
        Self {
            expander: Expander::LeastWaste,
            scan_interval: SimDuration::from_secs(10),
            scale_down_enabled: true,
            scale_down_unneeded_time: SimDuration::from_mins(10),
            scale_down_delay_after_add: SimDuration::from_mins(10),
            scale_down_utilization_threshold: 0.5,
            max_scale_down_parallelism: 10,
            max_drain_parallelism: 1,
            skip_nodes_with_system_pods: true,
        }
    }
}

/// Which group grows when several would help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Expander {
    /// Any of them, by the run's seed.
    Random,
    /// The one that is left with the least unused.
    LeastWaste,
    /// The one that takes the most pods.
    MostPods,
}

/// Refuses what cluster-autoscaler has and this version does not model: all of it at once, because flags are pasted many
/// at a time. Flags that nobody has are left to be refused as unknown fields.
pub(crate) fn refuse_unmodelled(document: &Document) -> Result<(), ScenarioError> {
    let at = Path::of(["autoscaler"]);
    let Some(section) = document.root.get("autoscaler") else { return Ok(()) };
    let mut faults = Vec::new();
    for Entry { key, mark, node } in section.entries() {
        let problem = match &node.value {
            _ if UNMODELLED_FLAGS.contains(&key.as_str()) => {
                "this flag of cluster-autoscaler is not modelled: remove it, and keep in mind that the run goes without"
                    .to_owned()
            }
            Value::Text(text) if key == "expander" && is_unmodelled_expander(text) => {
                let text = shown(text);
                format!(
                    "cluster-autoscaler's `{text}` is not modelled: use one of `random`, `least-waste`, `most-pods`"
                )
            }
            _ => continue,
        };
        faults.push(Fault { place: document.place(*mark), path: at.field(key), problem });
    }
    faults.truncate(MAX_FAULTS);
    if faults.is_empty() { Ok(()) } else { Err(ScenarioError::Meaning(faults)) }
}

fn is_unmodelled_expander(text: &str) -> bool {
    let mut expanders = text.split(',').map(str::trim);
    text.contains(',') || expanders.any(|name| ["least-nodes", "price", "priority", "grpc"].contains(&name))
}
