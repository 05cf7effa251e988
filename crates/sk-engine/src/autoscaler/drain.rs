//! Which pods block the removal of their node: cluster-autoscaler's drainability rules in their order
//! (`simulator/drainability/rules/rules.go`), each with the reason that its log gives.

use serde_json::Value;
use sk_apiserver::Object;
use sk_core::{SimDuration, SimTime, SmolStr};

use super::flags::Autoscaler;
use super::listers::{Allowance, Listers, listed};
use super::rules::Rule;

const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
const SAFE_LOCAL_VOLUMES: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Owners that make a pod again.
const KNOWN_OWNERS: [&str; 5] = ["ReplicationController", "Job", "ReplicaSet", "StatefulSet", "DaemonSet"];
/// A pod that should have been gone for once more its grace and this is not waited for
/// (`PodLongTerminatingExtraThreshold`).
const LONG_TERMINATING: SimDuration = SimDuration::from_secs(30);

/// What a pod means for the removal of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Drainability {
    /// It goes with its node, or is as good as gone.
    Ignored,
    /// It is evicted and made again elsewhere.
    Moves,
    /// The node stays, for this reason.
    Blocks(String),
}

/// What is known about the removal of nodes.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) flags: &'a Autoscaler,
    pub(super) listers: &'a Listers,
    pub(super) now: SimTime,
}

impl Rules<'_> {
    /// Judges one pod of a node that could go.
    pub(super) fn judge(&self, pod: &Object, allowance: &Allowance<'_>) -> Drainability {
        let goes_along = is_mirror(pod) && self.flags.follows(Rule::MirrorPodsGo);
        if goes_along || self.is_long_terminating(pod) {
            return Drainability::Ignored;
        }
        if self.has_too_few_replicas(pod) {
            return Drainability::Blocks(format!("{} replica count is below the minimum", pod.key));
        }
        if is_daemon(pod) {
            return Drainability::Ignored;
        }
        let says = pod.meta.annotations.get(SAFE_TO_EVICT).map(SmolStr::as_str);
        if says == Some("true") && self.flags.follows(Rule::SafePodsMove) {
            return Drainability::Moves;
        }
        match self.blocks(pod, says, allowance) {
            Some(reason) => Drainability::Blocks(reason),
            None => Drainability::Moves,
        }
    }

    fn blocks(&self, pod: &Object, says: Option<&str>, allowance: &Allowance<'_>) -> Option<String> {
        let owner = pod.controller().map(|owner| owner.gvk.kind.as_str());
        let known =
            if self.flags.follows(Rule::OwnedPodsMove) { &KNOWN_OWNERS[..] } else { &["ReplicaSet", "DaemonSet"] };
        let known = owner.is_some_and(|kind| known.contains(&kind));
        let is_bare = owner.is_none() && self.flags.follows(Rule::BarePodsBlock);
        if is_bare || (owner.is_some() && !known && self.flags.skip_nodes_with_custom_controller_pods) {
            return Some(format!("{} is not replicated", pod.key));
        }
        if self.flags.skip_nodes_with_system_pods && self.is_bound_to_the_system(pod, allowance) {
            let what = "non-daemonset, non-mirrored, non-pdb-assigned kube-system pod present";
            return Some(format!("{what}: {}", pod.key.name));
        }
        if says == Some("false") && self.flags.follows(Rule::UnsafePodsBlock) {
            return Some(format!("pod annotated as not safe to evict present: {}", pod.key.name));
        }
        if self.flags.skip_nodes_with_local_storage && self.has_local_storage(pod) {
            return Some(format!("pod with local storage present: {}", pod.key.name));
        }
        let is_held = !allowance.allows(pod) && self.flags.follows(Rule::BudgetsBlock);
        is_held.then(|| format!("not enough pod disruption budget to move {}", pod.key))
    }

    /// A pod of the system that no budget guards, unless it is so old that it keeps its node no longer.
    fn is_bound_to_the_system(&self, pod: &Object, allowance: &Allowance<'_>) -> bool {
        let of_the_system = pod.key.namespace.as_deref() == Some("kube-system");
        let is_guarded = allowance.covers(pod) && self.flags.follows(Rule::GuardedSystemPodsMove);
        // Kubernetes keeps the time of creation in whole seconds.
        let age = self.now.since(pod.created.whole_secs());
        of_the_system && !is_guarded && age <= self.flags.blocking_system_pod_distruption_timeout
    }

    /// Volumes whose content is lost with the node, other than those in memory and those that the pod declares to be of no
    /// worth.
    fn has_local_storage(&self, pod: &Object) -> bool {
        let volumes = pod.pod().and_then(|pod| pod.spec.rest.get("volumes")).and_then(Value::as_array);
        let declared = pod.meta.annotations.get(SAFE_LOCAL_VOLUMES);
        let safe: Vec<&str> = listed(declared.filter(|_| self.flags.follows(Rule::SafeVolumesMove))).collect();
        volumes.into_iter().flatten().any(|volume| {
            let in_memory = volume.pointer("/emptyDir/medium").and_then(Value::as_str) == Some("Memory");
            let is_lost = !in_memory || !self.flags.follows(Rule::MemoryVolumesMove);
            let is_local = volume.get("hostPath").is_some() || (volume.get("emptyDir").is_some() && is_lost);
            is_local && !volume["name"].as_str().is_some_and(|name| safe.contains(&name))
        })
    }

    fn has_too_few_replicas(&self, pod: &Object) -> bool {
        let wanted = pod.controller().and_then(|owner| self.listers.replicas(owner.uid));
        self.flags.min_replica_count > 0 && wanted.is_some_and(|wanted| wanted < self.flags.min_replica_count)
    }

    fn is_long_terminating(&self, pod: &Object) -> bool {
        let grace = pod.pod().and_then(|pod| pod.spec.termination_grace_period_seconds).unwrap_or(30);
        let patience = SimDuration::from_secs(grace) + LONG_TERMINATING;
        pod.meta.deletion.is_some_and(|deletion| self.now.since(deletion.at) >= patience)
    }
}

/// A pod that a node brings with it: no other node would take it.
pub(super) fn belongs_to_the_node(pod: &Object) -> bool {
    is_daemon(pod) || is_mirror(pod)
}

pub(super) fn is_daemon(pod: &Object) -> bool {
    pod.controller().is_some_and(|owner| owner.gvk.kind == "DaemonSet")
}

pub(super) fn is_mirror(pod: &Object) -> bool {
    let of_the_node = pod.controller().is_some_and(|owner| owner.gvk.kind == "Node");
    of_the_node || pod.meta.annotations.get(MIRROR).is_some()
}
