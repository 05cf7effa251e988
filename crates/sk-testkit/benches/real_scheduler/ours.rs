//! The library's side.

use std::time::Instant;

use serde_json::Value;
use sk_scheduler::{Cluster, Decision, NodeSpec, PodClass, Profile, Scheduler};

/// The pods are placed so often over, each time on an empty cluster, so that there is something to measure.
const ROUNDS: u32 = 5;

/// Pods per second. Objects are read beforehand, as the real scheduler's are by its informers.
pub(crate) fn place_all(nodes: &[Value], pods: &[Value]) -> f64 {
    let specs: Vec<NodeSpec> = nodes.iter().map(|node| NodeSpec::from_json(node).expect("a node")).collect();
    let classes: Vec<PodClass> = pods.iter().map(|pod| PodClass::from_pod(pod).expect("a pod")).collect();
    let mut seconds = 0.0;
    for _ in 0..ROUNDS {
        let mut cluster = Cluster::default();
        specs.iter().for_each(|spec| drop(cluster.set_node(spec.clone())));
        let mut scheduler = Scheduler::new(cluster, vec![Profile::default()]);
        let began = Instant::now();
        for class in &classes {
            let class = scheduler.cluster.intern(class.clone());
            let pod = scheduler.cluster.new_pod(class, "");
            let Decision::Placed { node, .. } = scheduler.schedule(pod) else { panic!("there is room for all") };
            scheduler.cluster.add_pod(pod, node);
        }
        seconds += began.elapsed().as_secs_f64();
    }
    pods.len() as f64 * f64::from(ROUNDS) / seconds
}
