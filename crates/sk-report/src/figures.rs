//! The figures of a run, each defined by its doc comment.
//!
//! The names are a contract: a field here is a key in summary.json, a variable in an assertion and a row label in the
//! report. Everything is counted inside the run's window, from `start` to `end` of run.json; integrals of step
//! functions are exact; percentiles are by nearest rank (the smallest value that at least p % of the values do not
//! exceed). docs/figures.md is generated from these comments.

use std::collections::BTreeMap;

use sk_core::SimDuration;

use crate::figure::{Described, ToFigure, figures};

figures! {
    /// Everything that one run can be judged by.
    Summary {
        /// Pods.
        pods: Pods,
        /// Waiting for a node.
        pending: Pending,
        /// Pods that no node could take.
        unschedulable: Counted,
        /// From a pod's creation to its containers running, over the pods created in the window that started.
        start_latency: Latency,
        /// Nodes, each counted from its creation to its removal.
        nodes: Nodes,
        /// Node-hours.
        node_hours: NodeHours,
        /// Money; absent if any node or node group has no price, because a part is not a total.
        cost: Option<Cost>,
        /// What pods requested of what nodes had to give.
        requested: Requested,
        /// Pods ended through the eviction API: drains and the autoscaler's scale-down.
        evicted: Counted,
        /// Pods ended to make room for pods of higher priority.
        preempted: Counted,
        /// Restlessness.
        churn: Churn,
        /// The same for the nodes of each node group; nodes of no group are under `""`.
        groups: BTreeMap<String, GroupFigures>,
        /// The same for the pods of each namespace.
        namespaces: BTreeMap<String, PodFigures>,
        /// The same for the pods of each top-most owner, `ns/Kind/name`; the bare pods of a namespace are one, `ns/Pod/*`.
        owners: BTreeMap<String, PodFigures>,
        /// What of the trace was not simulated; `not_simulated` in summary.json has each object.
        missing: NotSimulated,
        /// What limits how far the figures can be trusted; run.json has the words.
        warnings: Warnings,
    }

    /// How many pods there were.
    Pods {
        /// Pods created in the window.
        created: i64,
        /// Of those, pods whose containers ran.
        ran: i64,
        /// Of those created, pods that ran to success.
        finished: i64,
        /// Of those created, pods that ran to failure.
        failed: i64,
        /// Most pods running at one moment.
        running_max: i64,
        /// Running pods, mean over time.
        running_mean: f64,
        /// Pods running at the window's end.
        running_end: i64,
    }

    /// Waiting for a node: from a pod's creation to its binding, or to its end or the window's if it was never bound.
    Pending {
        /// Pods created in the window that the scheduler refused at least once.
        pods: i64,
        /// Most pods waiting at one moment.
        max: i64,
        /// The mean wait of the pods created in the window.
        mean: SimDuration,
        /// The wait that 99 % of the pods did not exceed.
        p99: SimDuration,
        /// The longest wait.
        longest: SimDuration,
    }

    /// A number of pods.
    Counted {
        /// How many, of those created in the window.
        pods: i64,
    }

    /// A distribution of lengths of time; all zero if nothing was measured.
    Latency {
        /// Half were not longer.
        p50: SimDuration,
        /// 90 % were not longer.
        p90: SimDuration,
        /// 99 % were not longer.
        p99: SimDuration,
        /// The longest.
        max: SimDuration,
        /// The mean.
        mean: SimDuration,
    }

    /// How many nodes there were.
    Nodes {
        /// Fewest at one moment.
        min: i64,
        /// Mean over time.
        mean: f64,
        /// Most at one moment.
        max: i64,
        /// At the window's end.
        end: i64,
        /// Nodes created after the window's first moment.
        created: i64,
        /// Nodes removed in the window.
        removed: i64,
    }

    /// Hours of nodes.
    NodeHours {
        /// From creation to removal, as they are paid for.
        total: f64,
        /// Of those, ready and with nothing to do: no pod with a request was bound there, DaemonSet pods aside.
        empty: f64,
    }

    /// Money in the scenario's currency.
    Cost {
        /// Node-hours times price.
        total: f64,
        /// The part of it for empty node-hours.
        empty: f64,
    }

    /// Mean share over time: requests of pods bound to nodes, divided by allocatable of ready nodes.
    Requested {
        /// Of CPU; 0.58 is 58 %.
        cpu: f64,
        /// Of memory.
        memory: f64,
    }

    /// What came and went.
    Churn {
        /// Nodes created or removed inside the window.
        nodes: i64,
        /// Pods that were evicted or preempted, or lost their node.
        pods: i64,
    }

    /// The nodes of one group.
    GroupFigures {
        /// How many.
        nodes: Nodes,
        /// Their hours.
        node_hours: NodeHours,
        /// Their cost; absent without a price.
        cost: Option<Cost>,
        /// What pods requested of them.
        requested: Requested,
    }

    /// How many pods one namespace or owner had.
    PodCounts {
        /// Pods created in the window.
        created: i64,
        /// Of those, pods whose containers ran.
        ran: i64,
        /// Of those created, pods that ran to success.
        finished: i64,
        /// Of those created, pods that ran to failure.
        failed: i64,
    }

    /// How long the pods of one namespace or owner waited.
    Waits {
        /// Pods created in the window that the scheduler refused at least once.
        pods: i64,
        /// The mean wait.
        mean: SimDuration,
        /// The wait that 99 % of the pods did not exceed.
        p99: SimDuration,
        /// The longest wait.
        longest: SimDuration,
    }

    /// The pods of one namespace or owner.
    PodFigures {
        /// How many.
        pods: PodCounts,
        /// Their waits.
        pending: Waits,
        /// Those no node could take: refused at least once and never bound.
        unschedulable: Counted,
        /// Their time to start.
        start_latency: Latency,
        /// Those evicted.
        evicted: Counted,
        /// Those preempted.
        preempted: Counted,
    }

    /// What the run left out, as far as anybody can tell.
    NotSimulated {
        /// Objects with pods that the engine does not act on, refused objects, and objects whose pods are for another
        /// scheduler.
        objects: i64,
        /// The pods that these would have had: recorded ones, or replicas or completions as the objects say.
        pods: i64,
        /// The CPU that these pods would have requested, each object's at its largest moment.
        cpu: f64,
        /// Of the objects, those of which nobody can tell how many pods they would have had.
        unknown: i64,
    }

    /// Warnings by sort; each counts once however many objects it concerns.
    Warnings {
        /// All of them.
        total: i64,
        /// Things that were made up: nodes, prices, durations.
        assumed: i64,
        /// Stretches or objects that the trace misses.
        gaps: i64,
        /// Things that the engine does not model.
        unmodelled: i64,
    }
}

impl Summary {
    /// The same figures, all zero, with one entry for each group: what assertions are checked against before a run.
    pub fn zero(groups: &[sk_record::Group]) -> Self {
        let priced = !groups.is_empty() && groups.iter().all(|group| group.price_per_hour.is_some());
        let zero_group = |group: &sk_record::Group| {
            let cost = group.price_per_hour.map(|_| Cost::default());
            (group.name.clone(), GroupFigures { cost, ..GroupFigures::default() })
        };
        Self { cost: priced.then(Cost::default), groups: groups.iter().map(zero_group).collect(), ..Self::default() }
    }
}

/// docs/figures.md, generated.
pub fn documentation() -> String {
    let mut lines: Vec<Described> = Vec::new();
    Summary::describe("", "", &mut lines);
    let mut text = String::from(INTRODUCTION);
    for line in lines {
        if line.kind.is_empty() {
            text.push_str(&format!("| **`{}`** | | {} |\n", line.path, line.meaning));
        } else {
            text.push_str(&format!("| `{}` | {} | {} |\n", line.path, line.kind, line.meaning));
        }
    }
    text
}

const INTRODUCTION: &str = "\
# Figures

What a run is judged by. A name here is a key in `summary.json`, a variable in an assertion and a label in the report.
Everything is counted inside the run's window (`start` to `end` in `run.json`). Means over time are exact integrals of
step functions; percentiles are by nearest rank: the smallest value that at least p % of the values do not exceed.

In `summary.json` a duration is a number of seconds; in an assertion it is a CEL duration, so write
`start_latency.p99 < duration(\"30s\")`. Counts are CEL ints, everything else is a double.

This file is generated from the code: `cargo test -p sk-report` says when it is out of date.

| figure | type | meaning |
|---|---|---|
";
