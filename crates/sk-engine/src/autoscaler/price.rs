//! The price expander (cluster-autoscaler's `expander/price/price.go` and `preferred.go`): cost efficiency times the
//! distance from the preferred node size. The lowest value wins.
//!
//! `(nodes' price + s) / (pods' price + s) × unfitness`, where `s` is the price of a pod with 500m and 500 MiB.
//! *Nodes' price* is the scenario's price of the group times the number of nodes. *Pods' price* is by CPU and memory.
//! cluster-autoscaler asks its cloud provider for these two prices; a scenario has none, so their ratio is that of the
//! GCE provider (`cloudprovider/gce/gce_price_info.go`), scaled so that the cheapest group of the scenario costs what
//! its CPU and memory do. *Unfitness* is the ratio of the node's CPU to the preferred node's, which grows with the
//! cluster; it counts less the more nodes are added. For nodes with GPUs it is 1,000, so that pods without need of a
//! GPU do not get them.

use sk_core::SmolStr;
use sk_scheduler::{NodeSpec, PodClass};

use super::groups::Group;
use super::view::Amount;

/// Of a core and of a GiB for an hour, in dollars, as the GCE provider has them. Only their ratio counts.
const CORE: f64 = 0.033_174;
const GIB: f64 = 0.004_446;
/// The pod that evens out the ratio of small scale-ups.
const STABILISER: Amount = Amount { cpu_milli: 500, memory: 500 << 20 };
/// Unfitness of nodes with GPUs.
const GPU_UNFITNESS: f64 = 1000.0;
/// e to the power of 2/15. The hyperbolic tangent of n/15 is made of its powers, so that it does not depend on the machine's
/// library of functions.
const GROWTH: f64 = 1.142_630_811_795_722_7;
/// GPUs by the names of their resources (`utils/gpu/gpu.go`).
const GPUS: [&str; 5] =
    ["nvidia.com/gpu", "habana.ai/gaudi", "gpu.intel.com/xe", "amd.com/gpu", "microsoft.com/directx"];

/// What CPU and memory cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices {
    /// What the constants above are multiplied by.
    height: f64,
    /// The CPU of the preferred node.
    preferred_milli: i64,
}

impl Prices {
    /// Of a scenario with these groups and a cluster of so many nodes. Groups that cost nothing say nothing of prices.
    pub(super) fn of(groups: &[Group], nodes: usize) -> Self {
        let height = |group: &Group| {
            let price = group.settings.price_per_hour.filter(|price| *price > 0.0)?;
            let worth = base(Amount::of(&group.described()));
            (worth > 0.0).then(|| price / worth)
        };
        let height = groups.iter().filter_map(height).min_by(f64::total_cmp).unwrap_or(1.0);
        Self { height, preferred_milli: preferred_milli(nodes) }
    }

    /// The score of adding so many nodes at this price for pods that ask for so much in all.
    pub(super) fn score(&self, price: f64, nodes: usize, node: &NodeSpec, total: Amount, pods: Amount) -> f64 {
        let stabiliser = self.height * base(STABILISER);
        let spent = (price * nodes as f64 + stabiliser) / (self.height * base(pods) + stabiliser);
        let unfitness = if gpu_of(node).is_some() { GPU_UNFITNESS } else { self.unfitness(nodes, total) };
        unfitness * spent
    }

    fn unfitness(&self, nodes: usize, total: Amount) -> f64 {
        let (preferred, found) = (self.preferred_milli as f64, total.cpu_milli.max(1) as f64);
        let unfitness = (preferred / found).max(found / preferred);
        (unfitness - 1.0) * (1.0 - tanh_of_fifteenths(nodes.saturating_sub(1))) + 1.0
    }
}

/// The resource by which the node has GPUs, if it has any.
pub(super) fn gpu_of(node: &NodeSpec) -> Option<&SmolStr> {
    let has = |name: &str| node.scalars.get_key_value(name).filter(|(_, amount)| **amount > 0).map(|(name, _)| name);
    GPUS.into_iter().find_map(has)
}

/// Does a pod of this class ask for GPUs?
pub(super) fn asks_for_gpus(class: &PodClass) -> bool {
    class.shape.requests.scalars.iter().any(|(name, _)| GPUS.contains(&name.as_str()))
}

fn base(amount: Amount) -> f64 {
    amount.cpu_milli as f64 / 1000.0 * CORE + amount.memory as f64 / (1_u64 << 30) as f64 * GIB
}

/// The preferred node doubles whenever the cluster has grown to three times its size.
fn preferred_milli(nodes: usize) -> i64 {
    1000 * match nodes {
        0..=2 => 1,
        3..=6 => 2,
        7..=20 => 4,
        21..=60 => 8,
        61..=200 => 16,
        _ => 32,
    }
}

fn tanh_of_fifteenths(count: usize) -> f64 {
    // From here on it is 1 to the last digit.
    if count > 300 {
        return 1.0;
    }
    let power = (0..count).fold(1.0, |power, _| power * GROWTH);
    1.0 - 2.0 / (power + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: Prices = Prices { height: 1.0, preferred_milli: 4000 };

    fn node(cpu_milli: i64) -> (NodeSpec, Amount) {
        let total = Amount { cpu_milli, memory: 16 << 30 };
        (NodeSpec::new("n", cpu_milli, 16 << 30, 110), total)
    }

    #[test]
    fn the_hyperbolic_tangent_is_that_of_the_library() {
        for count in [0, 1, 2, 15, 40, 299, 1000] {
            let expected = (count as f64 / 15.0).tanh();
            assert!((tanh_of_fifteenths(count) - expected).abs() < 1e-12, "{count}");
        }
    }

    #[test]
    fn money_that_buys_room_for_pods_counts_less_than_money_that_buys_nothing() {
        let (spec, total) = node(4000);
        let half = Amount { cpu_milli: 2000, memory: 8 << 30 };
        let (cheap, dear) = (0.2, 0.3);
        let full = PRICES.score(cheap, 1, &spec, total, total);
        assert!(full < PRICES.score(cheap, 1, &spec, total, half));
        assert!(full < PRICES.score(dear, 1, &spec, total, total));
        // By hand: (0.2 + s) / (4 × 0.033174 + 16 × 0.004446 + s) with s = 0.5 × 0.033174 + 500/1024 × 0.004446.
        let s = 0.5 * 0.033_174 + 500.0 / 1024.0 * 0.004_446;
        assert!((full - (0.2 + s) / (0.203_832 + s)).abs() < 1e-12);
    }

    #[test]
    fn a_node_of_another_size_than_the_cluster_prefers_is_worth_less_unless_many_are_added() {
        let pods = Amount { cpu_milli: 1000, memory: 1 << 30 };
        let (right, right_total) = node(4000);
        let (large, large_total) = node(16_000);
        let unfit = |nodes| {
            PRICES.score(1.0, nodes, &large, large_total, pods) / PRICES.score(1.0, nodes, &right, right_total, pods)
        };
        assert!((unfit(1) - 4.0).abs() < 1e-12);
        assert!(unfit(10) < unfit(2) && unfit(100) < 1.001);
    }

    #[test]
    fn nodes_with_gpus_are_the_last_that_are_taken() {
        let (mut spec, total) = node(4000);
        let pods = Amount { cpu_milli: 1000, memory: 1 << 30 };
        let without = PRICES.score(0.2, 1, &spec, total, pods);
        spec.scalars.insert("nvidia.com/gpu".into(), 1);
        assert!(PRICES.score(0.2, 1, &spec, total, pods) > 900.0 * without);
    }
}
