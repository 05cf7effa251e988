//! NodeResourcesFit as a filter: is there room? (`noderesources/fit.go`, `fitsRequest`, 1.36)

use super::{Filter, Rejection};
use crate::{Node, PodClass};

/// Names everything the node has too little of, as Kubernetes does, not just the first.
pub fn filter(pod: &PodClass, node: &Node) -> Result<(), Rejection> {
    let mut reasons = Vec::new();
    let mut unresolvable = false;
    if node.pods + 1 > node.allowed_pods {
        reasons.push("Too many pods".to_owned());
    }
    let mut require = |name: &str, wanted: i64, total: i64, used: i64| {
        if wanted > 0 && wanted > total.saturating_sub(used) {
            reasons.push(format!("Insufficient {name}"));
            unresolvable |= wanted > total;
        }
    };
    let (wanted, total, used) = (&pod.requests, &node.allocatable, &node.requested);
    require("cpu", wanted.cpu_milli, total.cpu_milli, used.cpu_milli);
    require("memory", wanted.memory, total.memory, used.memory);
    require("ephemeral-storage", wanted.ephemeral_storage, total.ephemeral_storage, used.ephemeral_storage);
    for (name, &amount) in &wanted.scalars {
        let of = |all: &sk_core::Resources| all.scalars.get(name).copied().unwrap_or(0);
        require(name, amount, of(total), of(used));
    }
    if reasons.is_empty() { Ok(()) } else { Err(Rejection { by: Filter::NodeResourcesFit, reasons, unresolvable }) }
}

#[cfg(test)]
mod tests {
    use sk_core::Resources;

    use super::*;

    fn node(cpu: i64, memory: i64, pods: i64) -> Node {
        Node { allocatable: Resources::new(cpu, memory), allowed_pods: pods, ..Node::default() }
    }

    fn pod(cpu: i64, memory: i64) -> PodClass {
        PodClass { requests: Resources::new(cpu, memory), ..PodClass::default() }
    }

    #[test]
    fn a_pod_that_fills_the_node_exactly_fits() {
        assert_eq!(filter(&pod(1000, 10), &node(1000, 10, 1)), Ok(()));
    }

    #[test]
    fn everything_missing_is_named() {
        let rejection = filter(&pod(1001, 11), &node(1000, 10, 0)).unwrap_err();
        assert_eq!(rejection.reasons, ["Too many pods", "Insufficient cpu", "Insufficient memory"]);
        assert!(rejection.unresolvable);
    }

    #[test]
    fn a_node_full_of_others_is_resolvable_by_preemption() {
        let mut node = node(1000, 10, 5);
        node.add_pod(&pod(600, 1));
        let rejection = filter(&pod(600, 1), &node).unwrap_err();
        assert_eq!(
            (rejection.reasons.as_slice(), rejection.unresolvable),
            (&["Insufficient cpu".to_owned()][..], false)
        );
    }

    #[test]
    fn a_pod_that_asks_for_nothing_fits_an_overcommitted_node() {
        let mut node = node(1000, 10, 5);
        node.add_pod(&pod(5000, 50));
        assert_eq!(filter(&pod(0, 0), &node), Ok(()));
    }
}
