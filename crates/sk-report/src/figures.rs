//! The figures of a run, each defined by its doc comment.
//!
//! The names are a contract: a field here is a key in summary.json, a variable in an assertion and a row label in the
//! report. Everything is counted inside the run's window, from `start` to `end` of run.json; integrals of step
//! functions are exact; percentiles are by nearest rank (the smallest value that at least p % of the values do not
//! exceed). docs/figures.md is generated from these comments.

use std::collections::BTreeMap;

use sk_core::SimDuration;

use crate::columns::{Column, Unit};
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
        /// Churn: nodes and pods that came or went.
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
        /// How close the run comes to what was recorded; absent if the trace holds no observations.
        fidelity: Option<Fidelity>,
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
        /// How many, in the window; those that were there before it are counted too.
        pods: i64,
    }

    /// A distribution of lengths of time; all zero if nothing was measured.
    Latency {
        /// The median.
        p50: SimDuration,
        /// The 90th percentile.
        p90: SimDuration,
        /// The 99th percentile.
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

    /// A run beside the recording that it replays. Pods of one owner are matched in the order of their creation.
    Fidelity {
        /// The time to start, at p99.
        start_latency: Deviation,
        /// Node-hours; absent if the recording has no nodes.
        node_hours: Option<Deviation>,
        /// Where pods ran.
        placements: Placements,
        /// The pods that were matched.
        pods: MatchedPods,
    }

    /// How far a figure is from the recorded one.
    Deviation {
        /// Without its sign, as a share of the recorded figure; 1.0 where the recorded one is nothing and ours is not.
        error: f64,
        /// With its sign: 0.07 is 7 % more than recorded.
        change: f64,
    }

    /// Where pods ran.
    Placements {
        /// The share of matched pods that ran on a node on which their owner's pods were recorded, counted node by node.
        same: f64,
    }

    /// Pods of the run and of the recording, matched.
    MatchedPods {
        /// Pods that were matched.
        compared: i64,
        /// The share of those whose time to start differs from the recorded one by at most 5 s.
        within_5s: f64,
        /// Pods that only one side has.
        unmatched: i64,
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

/// Hours of a month and of a year, as price lists of machines count them.
const MONTH: f64 = 730.0;
const YEAR: f64 = 8_760.0;

/// The figures of a run that people are shown, in the order in which they read them: comparison, Markdown, CSV and page.
pub static RUN_COLUMNS: [Column; 22] = [
    Column::fact("pods.created", "pods created", Unit::Count).rare(),
    Column::higher("pods.ran", "pods that ran", Unit::Count).rare(),
    Column::lower("pods.failed", "pods that failed", Unit::Count).rare(),
    Column::lower("missing.pods", "not simulated", Unit::Count).rare(),
    Column::lower("start_latency.p50", "start latency p50", Unit::Time),
    Column::lower("start_latency.p99", "start latency p99", Unit::Time),
    Column::lower("pending.pods", "pods that waited", Unit::Count),
    Column::lower("pending.longest", "pending longest", Unit::Time),
    Column::lower("unschedulable.pods", "unschedulable pods", Unit::Count),
    Column::fact("nodes.mean", "nodes mean", Unit::Number),
    Column::fact("nodes.max", "nodes max", Unit::Count),
    Column::lower("node_hours.total", "node-hours", Unit::Number),
    Column::lower("node_hours.empty", "node-hours empty", Unit::Number),
    Column::higher("requested.cpu", "requested CPU", Unit::Share),
    Column::higher("requested.memory", "requested memory", Unit::Share).rare(),
    Column::lower("cost.total", "cost", Unit::Money),
    Column::lower("cost.total", "cost per hour", Unit::MoneyPer(1.0)),
    Column::lower("cost.total", "cost per month", Unit::MoneyPer(MONTH)),
    Column::lower("cost.total", "cost per year", Unit::MoneyPer(YEAR)),
    Column::lower("evicted.pods", "evicted pods", Unit::Count),
    Column::lower("preempted.pods", "preempted pods", Unit::Count).rare(),
    Column::lower("churn.nodes", "nodes came or went", Unit::Count).rare(),
];

/// The columns of the page's tables of namespaces and owners.
pub const POD_COLUMNS: [Column; 9] = [
    Column::fact("pods.created", "pods", Unit::Count),
    Column::higher("pods.ran", "ran", Unit::Count),
    Column::lower("pending.pods", "waited", Unit::Count),
    Column::lower("pending.longest", "longest wait", Unit::Time),
    Column::lower("start_latency.p50", "start p50", Unit::Time),
    Column::lower("start_latency.p99", "start p99", Unit::Time),
    Column::lower("unschedulable.pods", "unschedulable", Unit::Count),
    Column::lower("evicted.pods", "evicted", Unit::Count),
    Column::lower("preempted.pods", "preempted", Unit::Count),
];

/// The columns of the page's table of node groups.
pub const GROUP_COLUMNS: [Column; 8] = [
    Column::fact("nodes.min", "nodes min", Unit::Count),
    Column::fact("nodes.mean", "nodes mean", Unit::Number),
    Column::fact("nodes.max", "nodes max", Unit::Count),
    Column::lower("node_hours.total", "node-hours", Unit::Number),
    Column::lower("node_hours.empty", "of them empty", Unit::Number),
    Column::lower("cost.total", "cost", Unit::Money),
    Column::higher("requested.cpu", "CPU requested", Unit::Share),
    Column::higher("requested.memory", "memory requested", Unit::Share),
];

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
