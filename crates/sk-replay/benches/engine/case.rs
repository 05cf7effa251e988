//! The workloads.

/// One workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// How it is asked for.
    pub(crate) name: &'static str,
    /// How it is called in the table.
    pub(crate) title: &'static str,
    /// Nodes of 32 CPUs and 128 GiB.
    pub(crate) nodes: u32,
    /// All pods that ever come.
    pub(crate) pods: u64,
    /// About so many live at the same time.
    pub(crate) live: u64,
    /// Pods of one Deployment, or StatefulSet; 0: bare pods.
    pub(crate) per_deployment: u64,
    /// Are they pods of StatefulSets, one after the other?
    pub(crate) is_stateful: bool,
    /// Has every Deployment a PodDisruptionBudget?
    pub(crate) has_budgets: bool,
    /// Seconds between two scans of the autoscaler.
    pub(crate) scan_secs: i64,
    /// Does a pod ask for more than half a node?
    pub(crate) one_per_node: bool,
}

const NEVER: i64 = 1_000_000;

impl Case {
    pub(crate) const ALL: [Self; 11] = [
        Self {
            name: "deployments",
            title: "1,000 nodes, 1,000 Deployments × 100 pods",
            nodes: 1_000,
            pods: 100_000,
            live: 100_000,
            per_deployment: 100,
            is_stateful: false,
            has_budgets: false,
            scan_secs: NEVER,
            one_per_node: false,
        },
        Self {
            name: "bare-1k",
            title: "1,000 nodes, 100,000 bare pods",
            nodes: 1_000,
            pods: 100_000,
            live: 25_000,
            per_deployment: 0,
            is_stateful: false,
            has_budgets: false,
            scan_secs: NEVER,
            one_per_node: false,
        },
        Self {
            name: "bare-5k",
            title: "5,000 nodes, 150,000 bare pods",
            nodes: 5_000,
            pods: 150_000,
            live: 37_500,
            per_deployment: 0,
            is_stateful: false,
            has_budgets: false,
            scan_secs: NEVER,
            one_per_node: false,
        },
        Self {
            name: "bare-10k",
            title: "10,000 nodes, 100,000 bare pods",
            nodes: 10_000,
            pods: 100_000,
            live: 25_000,
            per_deployment: 0,
            is_stateful: false,
            has_budgets: false,
            scan_secs: NEVER,
            one_per_node: false,
        },
        Self {
            name: "no-scans",
            title: "1,000 nodes, 20,000 live bare pods, an hour",
            nodes: 1_000,
            pods: 20_000,
            live: 20_000,
            per_deployment: 0,
            is_stateful: false,
            has_budgets: false,
            scan_secs: NEVER,
            one_per_node: false,
        },
        Self {
            name: "scans",
            title: "the same, the autoscaler scanning every 10 s",
            nodes: 1_000,
            pods: 20_000,
            live: 20_000,
            per_deployment: 0,
            is_stateful: false,
            has_budgets: false,
            scan_secs: 10,
            one_per_node: false,
        },
        Self::one_per_node("one-per-node-500", "500 nodes, one bare pod on each", 500),
        Self::one_per_node("one-per-node-4k", "4,000 nodes, one bare pod on each", 4_000),
        Self::of_one("one-deployment", "200 nodes, one Deployment × 10,000 pods", 10_000),
        Self { has_budgets: true, ..Self::of_one("one-budget", "the same under a PodDisruptionBudget", 10_000) },
        Self {
            is_stateful: true,
            ..Self::of_one("one-stateful-set", "200 nodes, one StatefulSet × 2,000 pods, in order", 2_000)
        },
    ];

    /// All pods of one workload.
    const fn of_one(name: &'static str, title: &'static str, pods: u64) -> Self {
        Self {
            name,
            title,
            nodes: 200,
            pods,
            live: pods,
            per_deployment: pods,
            is_stateful: false,
            has_budgets: false,
            scan_secs: NEVER,
            one_per_node: false,
        }
    }

    const fn one_per_node(name: &'static str, title: &'static str, nodes: u32) -> Self {
        let pods = nodes as u64;
        Self { nodes, per_deployment: 0, one_per_node: true, ..Self::of_one(name, title, pods) }
    }

    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|case| case.name == name)
    }

    /// The same with fewer pods.
    pub(crate) fn shrunk(mut self, by: u64) -> Self {
        self.pods /= by;
        self.live /= by;
        self.per_deployment = self.per_deployment.min(self.pods);
        if self.one_per_node {
            self.nodes /= u32::try_from(by).unwrap();
        }
        self
    }

    /// CPU in thousandths and memory in MiB that a pod asks for: twenty sizes, as a cluster has a few dozen templates. Pods
    /// of Deployments all live at the same time, a hundred on a node, and ask for half as much: 24 CPUs and 36 GiB.
    pub(crate) fn size(&self, number: u64) -> (i64, i64) {
        if self.one_per_node {
            return (20_000, 1_024);
        }
        let class = i64::try_from(number % 20).unwrap();
        let share = if self.per_deployment > 0 { 2 } else { 1 };
        ((100 + 40 * class) / share, (128 + 64 * (class * 7 % 20)) / share)
    }

    /// When a bare pod comes, in milliseconds, and when it goes; 40 a second, which the scheduler's client keeps up with.
    pub(crate) fn span(&self, number: u64) -> (i64, Option<i64>) {
        let come = i64::try_from(number * 25).unwrap();
        let stays = i64::try_from(self.live * 25).unwrap();
        (come, (self.live < self.pods).then_some(come + stays))
    }
}
