//! cluster-autoscaler's flags, under its own names and with its own defaults, so that they can be pasted from its
//! configuration.
//!
//! A flag of cluster-autoscaler that this version does not model is refused as such, unless it has its default value; an
//! unknown flag is refused with the nearest known one; a flag without effect in a simulation is accepted and reported as
//! ignored. Defaults are those that cluster-autoscaler 1.36.1 prints; until early 2025 its default expander was `random`.

mod flags;
mod values;

use std::collections::BTreeMap;

use regex_lite::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sk_core::{SimDuration, SmolStr};

use super::error::{Fault, MAX_FAULTS, ScenarioError, shown};
use super::path::Path;
use super::yaml::{Document, Entry, Value};
use super::{schema, spelling};

use flags::{IGNORED_FLAGS, unmodelled};
pub use values::{Expander, Expanders, Names, Range};

/// How the cluster grows and shrinks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a mapping of cluster-autoscaler's flags")]
pub struct Autoscaler {
    /// Which group grows when several would help, with commas: each narrows down what the one before left. Default:
    /// `least-waste`.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_expanders")]
    pub expander: Expanders,
    /// The content of the priority expander's ConfigMap: regular expressions of group names, by priority. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub priorities: BTreeMap<String, Vec<String>>,
    /// The interval of the autoscaler's loop. Default: `10s`; at least `1s`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub scan_interval: SimDuration,
    /// Whether unschedulable pods, and loops that did something, start the next loop at once. Default: true.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub frequent_loops_enabled: bool,
    /// Pods younger than this trigger no scale-up. Default: `0s`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub new_pod_scale_up_delay: SimDuration,
    /// Pods of lower priority neither trigger scale-ups nor block scale-downs. Default: -10.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_integer")]
    pub expendable_pods_priority_cutoff: i32,
    /// The most nodes of all groups together; 0 for no limit. Default: 0.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub max_nodes_total: u32,
    /// The least cores that scale-down leaves and the most that scale-up makes, as `MIN:MAX`. Default: `0:320000`.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_range")]
    pub cores_total: Range,
    /// The same of memory, in GiB. Default: `0:6400000`.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_range")]
    pub memory_total: Range,
    /// The most nodes that one scale-up adds; 0 for no limit. Default: 1000.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub max_nodes_per_scaleup: u32,
    /// Whether several groups may grow in one loop. Default: false.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub salvo_scale_up: bool,
    /// Whether a scale-up is spread over groups that are alike but for their zone. Default: false.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub balance_similar_node_groups: bool,
    /// Labels in which such groups may differ besides, with commas between them. Default: none.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_text")]
    pub balancing_ignore_label: Names,
    /// Whether a group below its minimum is filled up. Default: false.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub enforce_node_group_min_size: bool,
    /// A node that is not ready by then is no longer waited for. Default: `15m`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub max_node_startup_time: SimDuration,
    /// Nodes that are awaited for longer are a failure of their group, which then backs off. Default: `15m`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub max_node_provision_time: SimDuration,
    /// The backoff of a group after a failed scale-up; doubled after each failure. Default: `5m`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub initial_node_group_backoff_duration: SimDuration,
    /// The maximum of that backoff. Default: `30m`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub max_node_group_backoff_duration: SimDuration,
    /// The backoff of a group is reset after this long without a failure. Default: `3h`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub node_group_backoff_reset_timeout: SimDuration,
    /// This many nodes may be unready, whatever their share. Default: 3.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub ok_total_unready_count: u32,
    /// With a larger percentage of unready nodes the autoscaler does nothing. Default: 45.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub max_total_unready_percentage: u32,
    /// Whether nodes are removed at all. Default: true.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub scale_down_enabled: bool,
    /// How long a node must have been unneeded before it is removed. Default: `10m`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub scale_down_unneeded_time: SimDuration,
    /// Whether nodes that do not become ready are removed. Default: true.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub scale_down_unready_enabled: bool,
    /// How long such a node must have been unneeded before it is removed. Default: `20m`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub scale_down_unready_time: SimDuration,
    /// How long after adding nodes none are removed. Default: `10m`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub scale_down_delay_after_add: SimDuration,
    /// How long after a removal began no other begins. Default: `0s`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub scale_down_delay_after_delete: SimDuration,
    /// Whether these delays hold only for the group that caused them. Default: false.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub scale_down_delay_type_local: bool,
    /// A node can be removed if at most this share of its cpu and of its memory is requested. Default: 0.5.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub scale_down_utilization_threshold: f64,
    /// The same of nodes with GPUs, of which only the share of the GPUs counts. Default: 0.5.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub scale_down_gpu_utilization_threshold: f64,
    /// Whether pods of DaemonSets are left out of that share. Default: false.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub ignore_daemonsets_utilization: bool,
    /// Whether mirror pods are left out of that share. Default: false.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub ignore_mirror_pods_utilization: bool,
    /// How long a node that could not be drained is not considered again. Default: `5m`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub unremovable_node_recheck_timeout: SimDuration,
    /// How many nodes are removed at once. Default: 10.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub max_scale_down_parallelism: u32,
    /// How many of them may have pods that must move. Default: 1.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub max_drain_parallelism: u32,
    /// How many nodes are marked as candidates in one loop. Default: 10.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub max_bulk_soft_taint_count: u32,
    /// From marking a node to deleting or emptying it. Default: `5s`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub node_delete_delay_after_taint: SimDuration,
    /// Maximum grace period, in seconds, of pods on a node that is being removed. Default: 600.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub max_graceful_termination_sec: u32,
    /// Whether a node that is being removed is cordoned first. Default: true.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub cordon_node_before_terminating: bool,
    /// Whether pods of DaemonSets are evicted from nodes that are emptied. Default: true.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub daemonset_eviction_for_occupied_nodes: bool,
    /// Whether they are evicted from nodes with no other pods. Default: false.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub daemonset_eviction_for_empty_nodes: bool,
    /// Whether nodes with pods of `kube-system`, other than those of DaemonSets, stay. Default: true.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub skip_nodes_with_system_pods: bool,
    /// How old such a pod gets before it no longer keeps its node. Default: `1h`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub blocking_system_pod_distruption_timeout: SimDuration,
    /// Whether nodes with pods that keep something on the node stay. Default: true.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub skip_nodes_with_local_storage: bool,
    /// Whether nodes with pods of unknown controllers stay. Default: true.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_switch")]
    pub skip_nodes_with_custom_controller_pods: bool,
    /// Pods of owners with fewer replicas keep their node. Default: 0.
    #[serde(with = "spelling::flag")]
    #[schemars(schema_with = "schema::flag_number")]
    pub min_replica_count: u32,
    /// Flags that were given and change nothing in a simulation.
    #[serde(skip)]
    #[schemars(skip)]
    pub ignored: Vec<String>,
}

impl Default for Autoscaler {
    fn default() -> Self {
        Self {
            expander: Expanders(vec![Expander::LeastWaste]),
            priorities: BTreeMap::new(),
            scan_interval: SimDuration::from_secs(10),
            frequent_loops_enabled: true,
            new_pod_scale_up_delay: SimDuration::ZERO,
            expendable_pods_priority_cutoff: -10,
            max_nodes_total: 0,
            cores_total: Range { least: 0, most: 320_000 },
            memory_total: Range { least: 0, most: 6_400_000 },
            max_nodes_per_scaleup: 1000,
            salvo_scale_up: false,
            balance_similar_node_groups: false,
            balancing_ignore_label: Names::default(),
            enforce_node_group_min_size: false,
            max_node_startup_time: SimDuration::from_mins(15),
            max_node_provision_time: SimDuration::from_mins(15),
            initial_node_group_backoff_duration: SimDuration::from_mins(5),
            max_node_group_backoff_duration: SimDuration::from_mins(30),
            node_group_backoff_reset_timeout: SimDuration::from_mins(180),
            ok_total_unready_count: 3,
            max_total_unready_percentage: 45,
            scale_down_enabled: true,
            scale_down_unneeded_time: SimDuration::from_mins(10),
            scale_down_unready_enabled: true,
            scale_down_unready_time: SimDuration::from_mins(20),
            scale_down_delay_after_add: SimDuration::from_mins(10),
            scale_down_delay_after_delete: SimDuration::ZERO,
            scale_down_delay_type_local: false,
            scale_down_utilization_threshold: 0.5,
            scale_down_gpu_utilization_threshold: 0.5,
            ignore_daemonsets_utilization: false,
            ignore_mirror_pods_utilization: false,
            unremovable_node_recheck_timeout: SimDuration::from_mins(5),
            max_scale_down_parallelism: 10,
            max_drain_parallelism: 1,
            max_bulk_soft_taint_count: 10,
            node_delete_delay_after_taint: SimDuration::from_secs(5),
            max_graceful_termination_sec: 600,
            cordon_node_before_terminating: true,
            daemonset_eviction_for_occupied_nodes: true,
            daemonset_eviction_for_empty_nodes: false,
            skip_nodes_with_system_pods: true,
            blocking_system_pod_distruption_timeout: SimDuration::from_mins(60),
            skip_nodes_with_local_storage: true,
            skip_nodes_with_custom_controller_pods: true,
            min_replica_count: 0,
            ignored: Vec::new(),
        }
    }
}

impl Autoscaler {
    /// The highest priority that the patterns of `priorities` give each of these groups. Patterns match anywhere in a name,
    /// as in cluster-autoscaler; those that do not compile were refused when the scenario was read.
    pub fn priorities_of<'a>(&self, groups: impl Iterator<Item = &'a SmolStr>) -> BTreeMap<SmolStr, i64> {
        let mut found = BTreeMap::new();
        for group in groups {
            let given = self.priorities.iter().filter(|(_, patterns)| {
                patterns.iter().any(|pattern| Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(group)))
            });
            let highest = given.filter_map(|(priority, _)| priority.parse().ok()).max();
            found.extend(highest.map(|priority| (group.clone(), priority)));
        }
        found
    }
}

/// Refuses flags of cluster-autoscaler that are not modelled: all of them at once, because flags are pasted many at a
/// time. Unknown flags are refused later, as unknown fields.
pub(crate) fn refuse_unmodelled(document: &Document) -> Result<(), ScenarioError> {
    let at = Path::of(["autoscaler"]);
    let Some(section) = document.root.get("autoscaler") else { return Ok(()) };
    let mut faults = Vec::new();
    for Entry { key, mark, node } in section.entries() {
        let problem = match (&node.value, unmodelled(key)) {
            (value, Some((_, Some(default)))) if says(value, default) => continue,
            (_, Some((family, _))) => {
                format!("this flag of cluster-autoscaler is not modelled: {}", family.words)
            }
            (Value::Text(text), None) if key == "expander" && is_unmodelled_expander(text) => {
                let text = shown(text);
                format!(
                    "cluster-autoscaler's `{text}` is not modelled: use `random`, `least-waste`, `most-pods`, `least-nodes`, \
                     `priority`, `price`, or several of them with commas"
                )
            }
            _ => continue,
        };
        faults.push(Fault { place: document.place(*mark), path: at.field(key), problem });
    }
    faults.truncate(MAX_FAULTS);
    if faults.is_empty() { Ok(()) } else { Err(ScenarioError::Meaning(faults)) }
}

/// Is a value the flag's default?
fn says(value: &Value, default: &str) -> bool {
    let span = |text: &str| text.parse::<SimDuration>().ok();
    match value {
        Value::Null => true,
        Value::Bool(value) => value.to_string() == default,
        Value::Integer(value) => value.to_string() == default,
        Value::Unsigned(value) => value.to_string() == default,
        Value::Float(value) => default.parse() == Ok(*value),
        Value::Text(text) => text == default || (span(text).is_some() && span(text) == span(default)),
        Value::List(values) => values.is_empty() && default == "[]",
        Value::Map(_) => false,
    }
}

fn is_unmodelled_expander(text: &str) -> bool {
    text.split(',').map(str::trim).any(|name| name == "grpc")
}

/// Takes out the flags that change nothing in a simulation: about logging, leader election, credentials and the
/// autoscaler's own speed, whatever their values; and those that are not modelled and say what is so anyway, which is why
/// they were not refused. Their names.
pub(crate) fn take_ignored(document: &mut Document) -> Vec<String> {
    let mut ignored = Vec::new();
    if let Some(section) = document.root.get_mut("autoscaler") {
        section.retain_entries(|key| {
            let is_ignored = IGNORED_FLAGS.contains(&key) || unmodelled(key).is_some();
            if is_ignored {
                ignored.push(key.to_owned());
            }
            !is_ignored
        });
    }
    ignored
}
