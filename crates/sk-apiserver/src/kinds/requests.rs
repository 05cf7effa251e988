//! What a pod asks for in all, as the scheduler sums it (`component-helpers/resource/helpers.go`, 1.36).

use std::collections::BTreeMap;

use sk_core::{Quantity, Resources, SmolStr};

use super::{Container, PodSpec};

type Amounts = BTreeMap<SmolStr, Quantity>;

/// A container that names no CPU counts as this much when nodes are scored (100m).
const SCORED_CPU_MILLI: i64 = 100;
/// A container that names no memory counts as this much when nodes are scored (200Mi).
const SCORED_MEMORY: i64 = 200 * 1024 * 1024;

impl PodSpec {
    /// What must be free on a node for the pod to fit.
    pub fn requests(&self) -> Resources {
        self.sum(|container| container.resources.requests.clone())
    }

    /// The same where containers without requests are not taken for free: for scoring only.
    pub fn scoring_requests(&self) -> Resources {
        self.sum(|container| {
            let mut amounts = container.resources.requests.clone();
            amounts.entry(SmolStr::new_static("cpu")).or_insert_with(|| Quantity::from_milli(SCORED_CPU_MILLI));
            amounts.entry(SmolStr::new_static("memory")).or_insert_with(|| Quantity::from_value(SCORED_MEMORY));
            amounts
        })
    }

    fn sum(&self, requests: impl Fn(&Container) -> Amounts) -> Resources {
        let mut total = Amounts::new();
        for container in &self.containers {
            add(&mut total, &requests(container));
        }
        // While an init container runs, so do the sidecars before it; the pod needs the largest such moment.
        let (mut sidecars, mut largest_init) = (Amounts::new(), Amounts::new());
        for container in &self.init_containers {
            let mut wanted = requests(container);
            if container.is_sidecar() {
                add(&mut total, &wanted);
                add(&mut sidecars, &wanted);
                wanted.clone_from(&sidecars);
            } else {
                add(&mut wanted, &sidecars);
            }
            raise(&mut largest_init, &wanted);
        }
        raise(&mut total, &largest_init);
        for (name, amount) in self.resources.iter().flat_map(|pod_level| &pod_level.requests) {
            if name == "cpu" || name == "memory" || name.starts_with("hugepages-") {
                total.insert(name.clone(), *amount);
            }
        }
        add(&mut total, &self.overhead);
        Resources::from_quantities(&total)
    }
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        total.entry(name.clone()).and_modify(|sum| *sum += *amount).or_insert(*amount);
    }
}

fn raise(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        total.entry(name.clone()).and_modify(|most| *most = (*most).max(*amount)).or_insert(*amount);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(json: serde_json::Value) -> PodSpec {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn containers_add_up_and_init_containers_set_a_floor() {
        let spec = spec(json!({
            "initContainers": [
                {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                {"name": "init", "resources": {"requests": {"cpu": "2"}}},
            ],
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
            "overhead": {"cpu": "10m"},
        }));
        // During init: 2000m + 100m; afterwards 600m. Overhead on top.
        assert_eq!(spec.requests(), Resources::new(2110, 1 << 30));
    }

    #[test]
    fn containers_without_requests_count_only_when_nodes_are_scored() {
        let spec = spec(json!({"containers": [{"name": "a"}, {"name": "b"}]}));
        assert!(spec.requests().is_zero());
        assert_eq!(spec.scoring_requests(), Resources::new(200, 400 * 1024 * 1024));
    }

    #[test]
    fn requests_of_the_whole_pod_replace_the_containers() {
        let spec = spec(json!({
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "500m", "example.com/gpu": "1"}}}],
            "resources": {"requests": {"cpu": "2"}},
        }));
        let requests = spec.requests();
        assert_eq!((requests.cpu_milli, requests.scalars["example.com/gpu"]), (2000, 1));
    }
}
