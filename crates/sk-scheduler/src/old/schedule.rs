//! One scheduling cycle: filter, score, choose (`schedule_one.go`, 1.36, as it behaves with `parallelism: 1`).

use std::collections::{BTreeMap, BTreeSet};

use sk_core::SmolStr;

use crate::plugins::{self, Filter, Rejection};
use crate::{Cluster, Node, PodClass, select_host};

/// Below this many nodes all are looked at.
const MIN_FEASIBLE_NODES: usize = 100;
/// And never a smaller share than this.
const MIN_FEASIBLE_PERCENT: usize = 5;

/// What one cycle decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The pod goes to this node.
    Placed {
        /// Which node.
        node: SmolStr,
        /// How many nodes it could have gone to, among those looked at.
        feasible: usize,
    },
    /// No node will do.
    Unschedulable(Unschedulable),
}

/// Why no node will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unschedulable {
    /// kube-scheduler's own sentence, as it stands in the pod's `PodScheduled` condition.
    pub message: String,
    /// Who kept the pod off some node: what may help it later. Empty when there was no node at all.
    pub by: BTreeSet<Filter>,
}

/// The scheduler's memory between pods: the cluster and where the last search ended.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    /// The nodes and what is counted on them. The caller adds a pod it has placed.
    pub cluster: Cluster,
    next_start: usize,
}

impl Scheduler {
    /// Decides for one pod. Does not count the pod in: the caller does when it carries the decision out.
    pub fn schedule(&mut self, pod: &PodClass) -> Decision {
        let nodes = self.cluster.in_order();
        if nodes.is_empty() {
            let message = "no nodes available to schedule pods".to_owned();
            return Decision::Unschedulable(Unschedulable { message, by: BTreeSet::new() });
        }
        let search = Search::run(pod, &nodes, self.next_start);
        self.next_start = (self.next_start + search.processed()) % nodes.len();
        let node = match search.feasible.as_slice() {
            [] => {
                let by = search.rejected.iter().map(|rejection| rejection.by).collect();
                return Decision::Unschedulable(Unschedulable { message: search.message(pod), by });
            }
            [only] => only,
            several => {
                let scores = plugins::score(pod, several);
                several[select_host::select_host(&scores).expect("there are several feasible nodes")]
            }
        };
        Decision::Placed { node: node.name.clone(), feasible: search.feasible.len() }
    }
}

/// The filter phase over the nodes from where the last search ended.
struct Search<'a> {
    feasible: Vec<&'a Node>,
    rejected: Vec<Rejection>,
    total: usize,
}

impl<'a> Search<'a> {
    fn run(pod: &PodClass, nodes: &[&'a Node], start: usize) -> Self {
        let wanted = feasible_nodes_wanted(nodes.len());
        let mut search = Self { feasible: Vec::new(), rejected: Vec::new(), total: nodes.len() };
        for offset in 0..nodes.len() {
            let node = nodes[(start + offset) % nodes.len()];
            match plugins::filter(pod, node) {
                // The search stops at the first node too many; rejected ones before it still count as looked at.
                Ok(()) if search.feasible.len() == wanted => break,
                Ok(()) => search.feasible.push(node),
                Err(rejection) => search.rejected.push(rejection),
            }
        }
        search
    }

    fn processed(&self) -> usize {
        self.feasible.len() + self.rejected.len()
    }

    /// `FitError.Error()` with the messages of the PostFilter plugins behind it.
    fn message(&self, pod: &PodClass) -> String {
        let reasons = self.rejected.iter().flat_map(|rejection| rejection.reasons.iter().map(String::as_str));
        let preemption = if pod.never_preempts {
            "not eligible due to preemptionPolicy=Never.".to_owned()
        } else {
            let outlook = self.rejected.iter().map(|rejection| match rejection.unresolvable {
                true => "Preemption is not helpful for scheduling",
                false => "No preemption victims found for incoming pod",
            });
            histogram(self.total, outlook)
        };
        // DynamicResources comes first among the PostFilter plugins and always has this to say of a pod without claims.
        format!("{} no new claims to deallocate, preemption: {preemption}", histogram(self.total, reasons))
    }
}

/// `0/3 nodes are available: 1 Insufficient memory, 2 Insufficient cpu.`, sorted as text like Kubernetes sorts it.
fn histogram<'r>(total: usize, reasons: impl Iterator<Item = &'r str>) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for reason in reasons {
        *counts.entry(reason).or_default() += 1;
    }
    let mut parts: Vec<String> = counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    parts.sort();
    format!("0/{total} nodes are available: {}.", parts.join(", "))
}

/// How many feasible nodes are enough, with `percentageOfNodesToScore` at its default.
fn feasible_nodes_wanted(nodes: usize) -> usize {
    if nodes < MIN_FEASIBLE_NODES {
        return nodes;
    }
    let percent = 50_usize.saturating_sub(nodes / 125).max(MIN_FEASIBLE_PERCENT);
    (nodes * percent / 100).max(MIN_FEASIBLE_NODES)
}

#[cfg(test)]
mod tests {
    use sk_core::Resources;

    use super::*;

    fn pod(cpu: i64, memory: i64) -> PodClass {
        let requests = Resources::new(cpu, memory);
        PodClass { scoring_requests: requests.clone(), requests, ..PodClass::default() }
    }

    fn scheduler(nodes: &[(&str, i64, i64)]) -> Scheduler {
        let mut scheduler = Scheduler::default();
        for &(name, cpu, memory) in nodes {
            let allocatable = Resources::new(cpu, memory);
            scheduler.cluster.upsert(Node { name: name.into(), allocatable, allowed_pods: 110, ..Node::default() });
        }
        scheduler
    }

    fn place(scheduler: &mut Scheduler, pod: &PodClass) -> String {
        match scheduler.schedule(pod) {
            Decision::Placed { node, .. } => {
                assert!(scheduler.cluster.add_pod(&node, pod));
                node.to_string()
            }
            Decision::Unschedulable(why) => why.message,
        }
    }

    #[test]
    fn pods_spread_over_equal_nodes() {
        let mut scheduler = scheduler(&[("a", 1000, 1000), ("b", 1000, 1000)]);
        let pod = pod(300, 300);
        let placed: Vec<_> = (0..4).map(|_| place(&mut scheduler, &pod)).collect();
        assert_eq!(placed.iter().filter(|node| *node == "a").count(), 2, "{placed:?}");
    }

    #[test]
    fn the_sentence_counts_reasons_as_kube_scheduler_does() {
        let mut scheduler = scheduler(&[("a", 1000, 1000), ("b", 4000, 100), ("c", 1000, 100)]);
        assert_eq!(
            place(&mut scheduler, &pod(2000, 500)),
            "0/3 nodes are available: 2 Insufficient cpu, 2 Insufficient memory. no new claims to deallocate, \
             preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        );
        assert_eq!(place(&mut Scheduler::default(), &pod(1, 1)), "no nodes available to schedule pods");
    }

    #[test]
    fn large_clusters_are_searched_in_part_and_from_where_the_last_search_ended() {
        assert_eq!(feasible_nodes_wanted(99), 99);
        assert_eq!(feasible_nodes_wanted(100), 100);
        assert_eq!(feasible_nodes_wanted(1000), 420);
        assert_eq!(feasible_nodes_wanted(10_000), 500);
        let names: Vec<String> = (0..300).map(|n| format!("n{n:03}")).collect();
        let nodes: Vec<_> = names.iter().map(|name| (name.as_str(), 1000, 1000)).collect();
        let mut scheduler = scheduler(&nodes);
        scheduler.schedule(&pod(1, 1));
        assert_eq!(scheduler.next_start, 300 * 48 / 100);
    }
}
