//! The template of a group's next node.
//!
//! Until a node of the group has been ready for a minute, the template is what the provider describes, plus the
//! DaemonSet pods that would run there. From then on it is a copy of that node without the autoscaler's own taints,
//! plus the DaemonSet and mirror pods that run there (`processors/nodeinfosprovider/mixed_nodeinfos_processor.go`).
//! The template carries these pods, so their ports and labels count like their requests.

use sk_core::{SimDuration, SimTime, SmolStr};
use sk_scheduler::{ClassId, NodeId, NodeSpec, PodClass, PodId};

use super::flags::Autoscaler;
use super::groups::Group;
use super::rules::Rule;
use super::view::{Amount, NodeView, View};
use super::{SOFT_TAINT, TO_BE_DELETED, drain};

/// A node serves as a template once it has been ready this long (`stabilizationDelay`).
pub(super) const STABLE: SimDuration = SimDuration::from_mins(1);

/// Taints that say how a node is now; a new one has none of them (`NodeConditionTaints` of `utils/taints/taints.go`).
const CONDITION_TAINTS: [&str; 8] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/pid-pressure",
    "node.cloudprovider.kubernetes.io/uninitialized",
];

/// A new node of a group.
#[derive(Clone, Debug)]
pub(super) struct Template {
    /// The node without what its provider sets aside.
    node: NodeSpec,
    /// The same as pods would find it: what its residents ask for is taken off.
    free: NodeSpec,
    /// The pods that come with every node.
    residents: Vec<ClassId>,
    /// The whole of it.
    pub(super) total: Amount,
}

/// A copy of a template in the scheduler that is asked what would fit.
#[derive(Clone, Debug)]
pub(super) struct TemplateNode {
    pub(super) node: NodeId,
    residents: Vec<PodId>,
}

impl TemplateNode {
    /// Takes it out again. What was tried since it was put in is rolled back before.
    pub(super) fn take_out(self, view: &mut View) {
        self.residents.into_iter().for_each(|pod| view.what_if.cluster.drop_pod(pod));
        view.what_if.cluster.remove_node(self.node);
    }
}

impl Template {
    pub(super) fn of(group: usize, settings: &Group, view: &mut View, flags: &Autoscaler, now: SimTime) -> Self {
        let grown_up = |node: &&NodeView| {
            let is_cordoned = || view.what_if.cluster.node(node.id).unschedulable;
            let stable = if flags.follows(Rule::TemplateAfterAMinute) { STABLE } else { SimDuration::ZERO };
            let is_stable = node.ready.is_some_and(|since| now.since(since) >= stable);
            node.group == Some(group) && is_stable && !node.is_going() && !is_cordoned()
        };
        let real = view.nodes.values().find(grown_up).filter(|_| flags.follows(Rule::TemplateFromNode)).cloned();
        match real {
            Some(node) => Self::like(&node, settings, view, flags),
            None => Self::described(settings, view, flags),
        }
    }

    fn new(node: NodeSpec, residents: Vec<ClassId>, total: Amount, view: &View) -> Self {
        let mut free = node.clone();
        residents.iter().for_each(|class| take_off(&mut free, view.what_if.cluster.class(*class)));
        Self { node, free, residents, total }
    }

    /// As the provider describes it.
    fn described(group: &Group, view: &mut View, flags: &Autoscaler) -> Self {
        let whole = group.described();
        let total = Amount::of(&whole);
        let mut overhead = NodeSpec::default();
        overhead.set_allocatable(&group.settings.template_overhead);
        let mut spec = whole.clone();
        spec.cpu -= overhead.cpu;
        spec.memory -= overhead.memory;
        spec.pods -= overhead.pods;
        let counted = flags.follows(Rule::DaemonsInTemplate);
        let daemons: Vec<_> =
            view.listers.daemons().filter(|_| counted).map(|(key, class)| (key.clone(), class.clone())).collect();
        let node = view.what_if.cluster.set_node(whole).node;
        let mut residents = Vec::new();
        for (key, class) in daemons {
            let class = view.what_if.cluster.intern(class);
            let pod = view.what_if.cluster.new_pod(class, key.name);
            if view.what_if.check(pod, node).is_ok() {
                residents.push(class);
            }
            view.what_if.cluster.drop_pod(pod);
        }
        view.what_if.cluster.remove_node(node);
        Self::new(spec, residents, total, view)
    }

    /// Like a node that is there.
    fn like(node: &NodeView, group: &Group, view: &View, flags: &Autoscaler) -> Self {
        let mut spec = NodeSpec::clone(view.what_if.cluster.node(node.id));
        spec.name = group.template_name();
        spec.taints.retain(|taint| !is_passing(&taint.key, flags));
        spec.unschedulable = false;
        let total = Amount::of(&spec);
        let residents = node.pods().filter(|pod| drain::belongs_to_the_node(&pod.object)).map(|pod| pod.class);
        Self::new(spec, residents.collect(), total, view)
    }

    /// Puts a copy into the scheduler that is asked what would fit; the caller takes it out again.
    pub(super) fn put(&self, name: SmolStr, view: &mut View) -> TemplateNode {
        let mut spec = self.node.clone();
        spec.labels.insert(HOSTNAME, name.clone());
        let cluster = &mut view.what_if.cluster;
        let node = cluster.set_node(NodeSpec { name, ..spec }).node;
        let stand = |class: &ClassId| {
            let pod = cluster.new_pod(*class, "resident");
            cluster.add_pod(pod, node);
            pod
        };
        TemplateNode { node, residents: self.residents.iter().map(stand).collect() }
    }

    /// Its labels, and what of each resource is there for pods.
    pub(super) fn spec(&self) -> &NodeSpec {
        &self.free
    }
}

/// Is the taint about what this very node is like now, so that a new node would not have it?
fn is_passing(key: &str, flags: &Autoscaler) -> bool {
    match key {
        SOFT_TAINT => flags.follows(Rule::TemplateLosesSoftTaint),
        TO_BE_DELETED => true,
        _ => CONDITION_TAINTS.contains(&key),
    }
}

pub(super) const HOSTNAME: SmolStr = SmolStr::new_static("kubernetes.io/hostname");

fn take_off(spec: &mut NodeSpec, class: &PodClass) {
    let requests = &class.shape.requests;
    spec.cpu -= requests.cpu;
    spec.memory -= requests.memory;
    spec.ephemeral -= requests.ephemeral;
    spec.pods -= 1;
    for (name, amount) in &requests.scalars {
        if let Some(left) = spec.scalars.get_mut(name) {
            *left -= amount;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_made_from_a_node_has_the_groups_taints_and_not_the_nodes_own() {
        let flags = Autoscaler::default();
        let passing = [SOFT_TAINT, TO_BE_DELETED, "node.kubernetes.io/not-ready"];
        assert!(passing.iter().all(|key| is_passing(key, &flags)));
        assert!(!is_passing("dedicated", &flags), "a new node of the group has it as well");
        let without = Autoscaler { without: Some(Rule::TemplateLosesSoftTaint), ..flags };
        assert!(!is_passing(SOFT_TAINT, &without), "the switch leaves this one rule out");
        assert!(is_passing(TO_BE_DELETED, &without));
    }
}
