//! A node with what runs on it, as the scheduler sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_core::{Resources, SmolStr, Taint};

use crate::PodClass;

/// A node and the sums over its pods. Adding and removing a pod are exact inverses.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its name.
    pub name: SmolStr,
    /// Its labels.
    pub labels: Arc<BTreeMap<SmolStr, SmolStr>>,
    /// Its taints.
    pub taints: Arc<[Taint]>,
    /// Cordoned?
    pub unschedulable: bool,
    /// What pods may use.
    pub allocatable: Resources,
    /// How many pods it may hold.
    pub allowed_pods: i64,
    /// What its pods ask for.
    pub requested: Resources,
    /// What its pods ask for by the scoring view (see [`PodClass::scoring_requests`]).
    pub scoring_requested: Resources,
    /// How many pods it holds.
    pub pods: i64,
}

impl Node {
    /// Counts a pod in.
    pub fn add_pod(&mut self, class: &PodClass) {
        self.requested.add(&class.requests);
        self.scoring_requested.add(&class.scoring_requests);
        self.pods += 1;
    }

    /// Counts a pod out.
    pub fn remove_pod(&mut self, class: &PodClass) {
        self.requested.sub(&class.requests);
        self.scoring_requested.sub(&class.scoring_requests);
        self.pods -= 1;
    }

    /// Takes everything but the pods from `newer`.
    pub(crate) fn update(&mut self, newer: Self) {
        let pods = (std::mem::take(&mut self.requested), std::mem::take(&mut self.scoring_requested), self.pods);
        *self = newer;
        (self.requested, self.scoring_requested, self.pods) = pods;
    }

    /// Region and zone, which order the search (`GetZoneKey` of component-helpers 1.36).
    pub(crate) fn zone(&self) -> SmolStr {
        let label = |name: &str| self.labels.get(name).map_or("", SmolStr::as_str);
        let (region, zone) = (label("topology.kubernetes.io/region"), label("topology.kubernetes.io/zone"));
        if region.is_empty() && zone.is_empty() {
            return SmolStr::default();
        }
        // The NUL keeps ("a", "bc") and ("ab", "c") apart, as Kubernetes does.
        SmolStr::from(format!("{region}:\0:{zone}"))
    }
}
