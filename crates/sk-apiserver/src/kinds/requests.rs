//! A pod's total resource requests, for the scheduler's fit and for its scores.

use sk_core::resources::{Amounts, pod_requests};
use sk_core::{Quantity, Resources, SmolStr};

use super::{Container, PodSpec, ResourceRequirements};

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

    /// Requests or limits of the whole pod, as quotas and limit ranges sum them.
    pub(crate) fn total(&self, of: impl Fn(&ResourceRequirements) -> &Amounts) -> Amounts {
        let none = Amounts::new();
        let pod_level = self.resources.as_ref().map_or(&none, &of);
        let containers = self.containers.iter().map(|container| of(&container.resources).clone());
        let init_containers =
            self.init_containers.iter().map(|container| (of(&container.resources).clone(), container.is_sidecar()));
        pod_requests(containers, init_containers, pod_level, &self.overhead)
    }

    fn sum(&self, requests: impl Fn(&Container) -> Amounts) -> Resources {
        let none = Amounts::new();
        let pod_level = self.resources.as_ref().map_or(&none, |pod_level| &pod_level.requests);
        let containers = self.containers.iter().map(&requests);
        let init_containers =
            self.init_containers.iter().map(|container| (requests(container), container.is_sidecar()));
        Resources::from_quantities(&pod_requests(containers, init_containers, pod_level, &self.overhead))
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
