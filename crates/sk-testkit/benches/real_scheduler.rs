//! Pods per second of the real kube-scheduler and of the library, on the same nodes and pods in one run; and how long the
//! real one takes from a pod's creation until it is bound when there is nothing else to do.
//!
//! ```text
//! make control-plane
//! cargo bench -p sk-testkit --features control-plane --bench real_scheduler              # 1,000 and 5,000 nodes
//! cargo bench -p sk-testkit --features control-plane --bench real_scheduler -- 1000 500  # nodes, pods
//! ```
//!
//! The real scheduler has its default parallelism, and a client that may send as fast as it can (`qps: 5000`). All pods are
//! there before it starts, so it is never short of work: its speed is taken between the first and the last pod that it
//! says to have bound. Two figures: by the clock, and by the processor time of its process alone, without API server and
//! etcd, which is the same on a busy machine. The library decides and counts in, on one thread.

#[path = "real_scheduler/ours.rs"]
mod ours;
#[path = "real_scheduler/real.rs"]
mod real;

use std::error::Error;

use serde_json::{Value, json};
use sk_testkit::scheduling::shorthand;

/// Pods of each kind come from so many applications.
const APPS: usize = 20;
/// How many pods are created one after the other to see how long one takes.
const ALONE: usize = 100;

/// What pods ask for besides room.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Plain,
    Spread,
    Near,
    Apart,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Plain, Self::Spread, Self::Near, Self::Apart];

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Spread => "spread over zones, required",
            Self::Near => "near their own kind, by zone",
            Self::Apart => "not beside their own kind, by host",
        }
    }

    fn pod(self, number: usize) -> Value {
        let app = format!("a{}", number % APPS);
        let mut pod = json!({"name": format!("p-{number}"), "labels": {"app": app}, "cpu": "250m", "memory": "512Mi"});
        let selector = json!({"matchLabels": {"app": app}});
        let term = |key: &str| json!([{"topologyKey": key, "labelSelector": selector}]);
        match self {
            Self::Plain => {}
            Self::Spread => {
                pod["topologySpreadConstraints"] = json!([{
                    "maxSkew": 1, "topologyKey": shorthand::ZONE, "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector,
                }]);
            }
            Self::Near => pod["affinity"]["podAffinity"]["required"] = term(shorthand::ZONE),
            Self::Apart => pod["affinity"]["podAntiAffinity"]["required"] = term(shorthand::HOSTNAME),
        }
        shorthand::pods(&pod).expect("the shorthand reads it").swap_remove(0)
    }
}

fn nodes(count: usize) -> Vec<Value> {
    let entry =
        json!({"name": "n", "count": count, "cpu": "32", "memory": "128Gi", "zone": ["east", "north", "south"]});
    shorthand::nodes(&entry).expect("the shorthand reads it")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<usize> = std::env::args().filter_map(|text| text.parse().ok()).collect();
    let sizes = numbers.first().map_or_else(|| vec![1_000, 5_000], |nodes| vec![*nodes]);
    let pods = numbers.get(1).copied().unwrap_or(2_000);
    println!(
        "| nodes | pods | | real, by the clock | real, its processor time | library | times the clock | times the processor |"
    );
    println!("|--:|--:|---|--:|--:|--:|--:|--:|");
    let mut waits = Vec::new();
    for size in sizes {
        let nodes = nodes(size);
        for kind in Kind::ALL {
            let pods: Vec<Value> = (0..pods).map(|number| kind.pod(number)).collect();
            let real = real::place_all(&nodes, &pods).await?;
            let ours = ours::place_all(&nodes, &pods);
            println!(
                "| {size} | {} | {} | {:.0} pods/s | {:.0} pods/s | {ours:.0} pods/s | {:.0} | {:.0} |",
                pods.len(),
                kind.name(),
                real.by_clock,
                real.by_processor,
                ours / real.by_clock,
                ours / real.by_processor
            );
        }
        let alone: Vec<Value> = (0..ALONE).map(|number| Kind::Plain.pod(number)).collect();
        waits.push((size, real::place_one_by_one(&nodes, &alone).await?));
    }
    println!("\n| nodes | | fastest | 10 % | median | 90 % | 99 % |\n|--:|---|--:|--:|--:|--:|--:|");
    for (size, spans) in waits {
        for (what, mut micros) in spans {
            micros.sort_unstable();
            let at = |percent: usize| micros[(micros.len() - 1) * percent / 100] as f64 / 1_000.0;
            let [p0, p10, p50, p90, p99] = [0, 10, 50, 90, 99].map(at);
            println!("| {size} | {what} | {p0:.1} ms | {p10:.1} ms | {p50:.1} ms | {p90:.1} ms | {p99:.1} ms |");
        }
    }
    Ok(())
}
