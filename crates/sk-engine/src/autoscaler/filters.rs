//! Asks the scheduler's own filters whether a new node would take a pod. Only a test that leaves a filter out asks them one by
//! one.

use sk_scheduler::NodeId;
use sk_scheduler::framework::plugin::PluginId;

use super::flags::Autoscaler;
use super::rules::Rule;
use super::view::{PodView, View};

/// The filters of the observed rules.
const FILTERS: [(Rule, PluginId); 4] = [
    (Rule::TaintsFilter, PluginId::TaintToleration),
    (Rule::NodeAffinityFilters, PluginId::NodeAffinity),
    (Rule::PodAffinityFilters, PluginId::InterPodAffinity),
    (Rule::SpreadFilters, PluginId::PodTopologySpread),
];
/// What NodeResourcesFit says where a node has no slot for one more pod.
const NO_SLOT: &str = "Too many pods";

/// If the pod may not go onto the node, the filters' reasons.
pub(super) fn check(pod: &PodView, node: NodeId, view: &mut View, flags: &Autoscaler) -> Result<(), Vec<String>> {
    let Err(diagnosis) = view.what_if.check(pod.id, node) else { return prefers(pod, node, view, flags) };
    let counts = |plugin: PluginId, reason: &str| {
        let is_left_out = |(rule, of): &(Rule, PluginId)| *of == plugin && !flags.follows(*rule);
        let slot_left_out = reason == NO_SLOT && !flags.follows(Rule::PodSlotsFilter);
        flags.follows(Rule::PodsAreFiltered) && !slot_left_out && !FILTERS.iter().any(is_left_out)
    };
    let all = diagnosis.reasons();
    let reasons: Vec<String> =
        all.iter().filter(|(plugin, reason, _)| counts(*plugin, reason)).map(|(_, reason, _)| reason.clone()).collect();
    // A pod that is refused before any node is looked at has no reason of a node's.
    if reasons.is_empty() && !all.is_empty() { Ok(()) } else { Err(reasons) }
}

/// May the pod go onto the node?
pub(super) fn fits(pod: &PodView, node: NodeId, view: &mut View, flags: &Autoscaler) -> bool {
    // Reasons are put into words only where a test leaves one out.
    match flags.is_whole() {
        true => view.what_if.check(pod.id, node).is_ok(),
        false => check(pod, node, view, flags).is_ok(),
    }
}

/// What a pod prefers does not count, but where a test leaves that rule out.
fn prefers(pod: &PodView, node: NodeId, view: &View, flags: &Autoscaler) -> Result<(), Vec<String>> {
    if flags.follows(Rule::PreferencesDoNotCount) {
        return Ok(());
    }
    let (spec, shape) = (view.what_if.cluster.node(node), &view.what_if.cluster.class(pod.class).shape);
    let is_met = shape.preferred_affinity.iter().all(|(_, term)| term.matches(&spec.name, &spec.labels));
    if is_met { Ok(()) } else { Err(vec!["node(s) are not what the pod prefers".to_owned()]) }
}
