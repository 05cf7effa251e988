//! A pod's constraints: its own, or the profile's defaults with a selector from Services and controllers
//! (`podtopologyspread/common.go`, `plugins/helper/spread.go`); and which nodes they count.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_core::LabelSelector;

use crate::Cluster;
use crate::class::{PodClass, SpreadConstraint};
use crate::cluster::Freed;
use crate::cluster::log::Change;
use crate::counters::What;
use crate::framework::cycle_state::Cx;
use crate::framework::profile::Compiled;
use crate::ids::{ClassId, KeyId, ShapeId};
use crate::plugins::{node_affinity, taint_toleration};

/// The constraints of one class under one profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Constraints {
    pub(crate) hard: Vec<Keyed>,
    pub(crate) soft: Vec<Keyed>,
    /// A node without one of the labels takes no part.
    pub(crate) require_all: bool,
}

/// A constraint with what a cycle needs of it, worked out once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keyed {
    pub(crate) constraint: SpreadConstraint,
    pub(crate) key: KeyId,
    /// The pods that it counts.
    pub(crate) what: What,
}

impl Keyed {
    fn new(constraint: SpreadConstraint, key: KeyId, class: &PodClass) -> Self {
        let what = What::selected(class.namespace.clone(), constraint.selector.clone());
        Self { constraint, key, what }
    }
}

/// Constraints and participation, kept between cycles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    own: BTreeMap<ClassId, Arc<Constraints>>,
    defaults: BTreeMap<(ClassId, usize), Defaulted>,
    taking_part: BTreeMap<(ShapeId, bool, bool), TakingPart>,
}

/// The default constraints of a class, and what they were made from.
#[derive(Clone, Debug)]
struct Defaulted {
    services_version: u64,
    owner: Option<Arc<LabelSelector>>,
    constraints: Arc<Constraints>,
}

/// By node: do the pod's affinity and the node's taints let it take part?
#[derive(Clone, Debug, Default)]
struct TakingPart {
    nodes: Vec<bool>,
    cursor: u64,
}

/// Entries of each kind that are kept: 4,096 classes at about 500 bytes, 2 MB.
const MAX_KEPT: usize = 4_096;

impl Memory {
    /// Classes were freed.
    pub(crate) fn forget(&mut self, freed: &Freed) {
        self.own.retain(|class, _| !freed.contains(*class));
        self.defaults.retain(|(class, _), _| !freed.contains(*class));
        self.taking_part.retain(|(shape, _, _), _| !freed.has_shape(*shape));
    }

    /// How much is kept.
    pub(crate) fn len(&self) -> usize {
        self.own.len() + self.defaults.len() + self.taking_part.len()
    }

    /// The pod's constraints.
    pub(crate) fn constraints(&mut self, cx: &Cx<'_>) -> Arc<Constraints> {
        if !cx.class.spread.is_empty() {
            if let Some(known) = self.own.get(&cx.class_id) {
                return Arc::clone(known);
            }
            let key =
                |name: &str| cx.cluster.topology.id(name).expect("the keys of a class are learnt before its cycle");
            let with_key = |hard: bool| {
                let constraints = cx.class.spread.iter().filter(move |constraint| constraint.hard == hard);
                constraints.map(|one| Keyed::new(one.clone(), key(&one.key), cx.class)).collect()
            };
            let made = Arc::new(Constraints { hard: with_key(true), soft: with_key(false), require_all: true });
            make_room(&mut self.own);
            self.own.insert(cx.class_id, Arc::clone(&made));
            return made;
        }
        self.default_constraints(cx)
    }

    fn default_constraints(&mut self, cx: &Cx<'_>) -> Arc<Constraints> {
        let objects = &cx.cluster.objects;
        let owner = cx
            .class
            .owner
            .as_ref()
            .and_then(|owner| objects.owners.get(&(owner.kind, cx.class.namespace.clone(), owner.name.clone())));
        let profile = cx.profile.number;
        if let Some(known) = self.defaults.get(&(cx.class_id, profile)) {
            let same_owner = match (&known.owner, owner) {
                (Some(known), Some(now)) => Arc::ptr_eq(known, now) || known == now,
                (known, now) => known.is_none() && now.is_none(),
            };
            if known.services_version == objects.services_version && same_owner {
                return Arc::clone(&known.constraints);
            }
        }
        let selector = default_selector(cx.cluster, cx.class, owner.map(AsRef::as_ref));
        let constraints = Arc::new(with_selector(cx.profile, cx.class, &selector));
        make_room(&mut self.defaults);
        let entry = Defaulted {
            services_version: objects.services_version,
            owner: owner.cloned(),
            constraints: Arc::clone(&constraints),
        };
        self.defaults.insert((cx.class_id, profile), entry);
        constraints
    }

    /// By node: may it take part in a constraint with these policies? `None`: all may.
    pub(crate) fn taking_part(&mut self, cx: &Cx<'_>, honor_affinity: bool, honor_taints: bool) -> Option<&[bool]> {
        let honor_affinity = honor_affinity && node_affinity::restricts(&cx.shape.shape);
        let honor_taints = honor_taints && cx.cluster.hard_taints > 0;
        if !honor_affinity && !honor_taints {
            return None;
        }
        let shape = cx.cluster.classes.shape_of(cx.class_id);
        if self.taking_part.len() >= MAX_KEPT / 16 {
            self.taking_part.clear();
        }
        let known = self.taking_part.entry((shape, honor_affinity, honor_taints)).or_default();
        let columns = &cx.cluster.columns;
        let allowed = |node: usize| {
            let (spec, shape) = (&columns.specs[node], &cx.shape.shape);
            (!honor_affinity || node_affinity::matches(shape, spec))
                && (!honor_taints || !taint_toleration::repels(spec, &shape.tolerations))
        };
        let seen = known.nodes.len();
        known.nodes.extend((seen..columns.len()).map(allowed));
        match cx.cluster.log.since(known.cursor) {
            Some(changes) => {
                for change in changes {
                    if let Change::Node { node } = change {
                        known.nodes[node.index()] = allowed(node.index());
                    }
                }
            }
            None => known.nodes = (0..columns.len()).map(allowed).collect(),
        }
        known.cursor = cx.cluster.log.end();
        Some(&known.nodes)
    }
}

fn make_room<K: Ord, V>(kept: &mut BTreeMap<K, V>) {
    if kept.len() >= MAX_KEPT {
        kept.clear();
    }
}

/// `DefaultSelector`: everything that the Services and the controller of the pod select by.
pub(crate) fn default_selector(cluster: &Cluster, class: &PodClass, owner: Option<&LabelSelector>) -> LabelSelector {
    let services = cluster.objects.services.get(&class.namespace).into_iter().flat_map(|services| services.values());
    let services = services.filter(|selector| selector.matches(&class.labels));
    let mut requirements = Vec::new();
    for requirement in services.chain(owner).flat_map(LabelSelector::requirements) {
        if !requirements.contains(requirement) {
            requirements.push(requirement.clone());
        }
    }
    LabelSelector::all(requirements)
}

/// `buildDefaultConstraints`: the profile's constraints, for those whom anything selects.
fn with_selector(profile: &Compiled, class: &PodClass, selector: &LabelSelector) -> Constraints {
    let args = &profile.profile.spread;
    let mut made = Constraints { require_all: !args.system_defaulted, ..Constraints::default() };
    if selector.is_everything() {
        return made;
    }
    for (constraint, key) in args.default_constraints.iter().zip(&profile.default_keys) {
        let of = if constraint.hard { &mut made.hard } else { &mut made.soft };
        let constraint = SpreadConstraint { selector: selector.clone(), ..constraint.clone() };
        of.push(Keyed::new(constraint, *key, class));
    }
    made
}

/// The hard constraints of a class outside a cycle, for queueing hints.
pub(crate) fn hard_of(cluster: &Cluster, profile: &Compiled, class: &PodClass) -> Vec<SpreadConstraint> {
    if !class.spread.is_empty() {
        return class.spread.iter().filter(|constraint| constraint.hard).cloned().collect();
    }
    let owner = class
        .owner
        .as_ref()
        .and_then(|owner| cluster.objects.owners.get(&(owner.kind, class.namespace.clone(), owner.name.clone())));
    let selector = default_selector(cluster, class, owner.map(AsRef::as_ref));
    with_selector(profile, class, &selector).hard.into_iter().map(|keyed| keyed.constraint).collect()
}
