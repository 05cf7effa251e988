//! `DoNotSchedule`: rejects a node if the pod would raise its domain too far above the smallest one
//! (`podtopologyspread/filtering.go`).

use super::constraints::Keyed;
use super::{Constraints, NO_LABEL, SKEW};
use crate::class::SpreadConstraint;
use crate::cluster::topology::NO_VALUE;
use crate::counters::CounterId;
use crate::framework::cycle_state::{Caches, Cx};
use crate::ids::{ClassId, KeyId, NodeId};
use crate::plugins::{node_affinity, taint_toleration};

/// Where the count of each domain is read.
#[derive(Clone, Debug)]
pub(super) enum Counts {
    /// All nodes take part.
    Kept(CounterId),
    /// Summed for this cycle over the nodes that take part.
    Summed(Vec<i64>),
}

impl Counts {
    /// The count of every domain, or of every node.
    pub(super) fn all<'a>(&'a self, caches: &'a Caches) -> &'a [i64] {
        match self {
            Self::Kept(counter) => caches.counters.counts(*counter),
            Self::Summed(counts) => counts,
        }
    }

    /// No count is higher; it may once have been as high.
    pub(super) fn highest(&self, caches: &Caches) -> i64 {
        match self {
            Self::Kept(counter) => caches.counters.highest(*counter),
            Self::Summed(counts) => counts.iter().copied().max().unwrap_or(0),
        }
    }

    #[inline]
    pub(super) fn of(&self, caches: &Caches, domain: u32) -> i64 {
        match self {
            Self::Kept(counter) => caches.counters.counts(*counter).get(domain as usize).copied().unwrap_or(0),
            Self::Summed(counts) => counts.get(domain as usize).copied().unwrap_or(0),
        }
    }
}

/// One hard constraint in one cycle.
#[derive(Clone, Debug)]
pub(crate) struct HardState {
    constraint: SpreadConstraint,
    key: KeyId,
    all_keys: Vec<KeyId>,
    /// 1 if the pod counts itself.
    own: i64,
    counts: Counts,
    /// The least count and the first domain that has it, and the least of the other domains.
    least: (i64, u32),
    second: i64,
    domains: usize,
    /// As if so many more pods were in this domain.
    moved: (u32, i64),
}

/// No domain at all: `newCriticalPaths`.
const NO_DOMAIN: i64 = i32::MAX as i64;

impl HardState {
    /// The reason against a node, or 0.
    pub(super) fn check(&self, cx: &Cx<'_>, caches: &Caches, node: NodeId) -> u32 {
        let domain = cx.cluster.topology.domains(self.key).of[node.index()];
        if domain == NO_VALUE {
            return NO_LABEL;
        }
        let skew = self.count(caches, domain) + self.own - self.least(caches);
        if skew > i64::from(self.constraint.max_skew) { SKEW } else { 0 }
    }

    fn count(&self, caches: &Caches, domain: u32) -> i64 {
        let moved = if self.moved.0 == domain { self.moved.1 } else { 0 };
        self.counts.of(caches, domain) + moved
    }

    /// `minMatchNum`.
    fn least(&self, caches: &Caches) -> i64 {
        if self.domains < usize::try_from(self.constraint.min_domains).unwrap_or(0) {
            return 0;
        }
        if self.moved.0 == NO_VALUE {
            return self.least.0;
        }
        let others = if self.least.1 == self.moved.0 { self.second } else { self.least.0 };
        others.min(self.count(caches, self.moved.0))
    }
}

/// `calPreFilterState`.
pub(super) fn prepare(cx: &Cx<'_>, caches: &mut Caches, constraints: &Constraints) -> Vec<HardState> {
    let all_keys: Vec<KeyId> = constraints.hard.iter().map(|keyed| keyed.key).collect();
    let state = |keyed: &Keyed| {
        let Keyed { constraint, key, .. } = keyed;
        let (counts, present) = sum(cx, caches, keyed, &all_keys);
        let mut state = HardState {
            constraint: constraint.clone(),
            key: *key,
            all_keys: all_keys.clone(),
            own: i64::from(constraint.selector.matches(&cx.class.labels)),
            counts,
            least: (NO_DOMAIN, NO_VALUE),
            second: NO_DOMAIN,
            domains: 0,
            moved: (NO_VALUE, 0),
        };
        for domain in 0..cx.cluster.topology.domains(*key).len() {
            let is_present = match &present {
                Some(present) => present[domain],
                None => cx.cluster.topology.domains(*key).nodes[domain] > 0,
            };
            if is_present {
                state.add_domain(domain as u32, caches);
            }
        }
        state
    };
    constraints.hard.iter().map(state).collect()
}

impl HardState {
    fn add_domain(&mut self, domain: u32, caches: &Caches) {
        let count = self.counts.of(caches, domain);
        self.domains += 1;
        if count < self.least.0 {
            self.second = self.least.0;
            self.least = (count, domain);
        } else if count < self.second {
            self.second = count;
        }
    }
}

/// The count of each domain, and which domains have a node that takes part (`None`: all that have a node).
pub(super) fn sum(
    cx: &Cx<'_>,
    caches: &mut Caches,
    keyed: &Keyed,
    required_keys: &[KeyId],
) -> (Counts, Option<Vec<bool>>) {
    let topology = &cx.cluster.topology;
    let Keyed { constraint, key, what } = keyed;
    let everywhere = required_keys.iter().all(|key| topology.domains(*key).without == 0);
    let allowed = caches.spread.taking_part(cx, constraint.honor_affinity, constraint.honor_taints);
    if everywhere && allowed.is_none() {
        return (Counts::Kept(caches.counters.ask(cx.cluster, what, Some(*key))), None);
    }
    let per_node = caches.counters.ask(cx.cluster, what, None);
    let per_node = caches.counters.counts(per_node);
    let domains = topology.domains(*key);
    let (mut counts, mut present) = (vec![0; domains.len()], vec![false; domains.len()]);
    for node in cx.cluster.order.walk().iter() {
        let takes_part = allowed.is_none_or(|allowed| allowed[node.index()]);
        let has_all = required_keys.iter().all(|key| topology.domains(*key).of[node.index()] != NO_VALUE);
        let domain = domains.of[node.index()];
        if takes_part && has_all && domain != NO_VALUE {
            counts[domain as usize] += per_node[node.index()];
            present[domain as usize] = true;
        }
    }
    (Counts::Summed(counts), Some(present))
}

/// `updateWithPod`. All changes of one dry run are on one node, so one domain per constraint moves.
pub(super) fn pod_changed(cx: &Cx<'_>, states: &mut [HardState], class: ClassId, node: NodeId, by: i64) {
    let other = cx.cluster.class(class);
    if other.namespace != cx.class.namespace {
        return;
    }
    let topology = &cx.cluster.topology;
    for state in states {
        let has_all = state.all_keys.iter().all(|key| topology.domains(*key).of[node.index()] != NO_VALUE);
        let (spec, shape) = (cx.cluster.node(node), &cx.shape.shape);
        let takes_part = (!state.constraint.honor_affinity || node_affinity::matches(shape, spec))
            && (!state.constraint.honor_taints || !taint_toleration::repels(spec, &shape.tolerations));
        if has_all && takes_part && state.constraint.selector.matches(&other.labels) {
            state.moved = (topology.domains(state.key).of[node.index()], state.moved.1 + by);
        }
    }
}
