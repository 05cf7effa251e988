//! The settings of a simulated cluster: its components and their speed.

use std::collections::BTreeMap;

use sk_apiserver::Rules;
use sk_core::rng::Stream;
use sk_core::{Quantity, SimDuration, SmolStr, Taint};
use sk_scheduler::Configuration;

use crate::autoscaler::Autoscaler;
use crate::limiter::RateLimit;
use crate::spread::Spread;

/// Everything the engine needs to know before it starts.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where all randomness comes from.
    pub seed: u64,
    /// How fast things go.
    pub timing: Timing,
    /// The kinds of nodes there are.
    pub groups: Vec<NodeGroup>,
    /// How the cluster grows and shrinks.
    pub autoscaler: Autoscaler,
    /// How pods are placed.
    pub scheduler: Configuration,
    /// Which decisions of the scheduler are explained; `None`: none, and nothing is kept for it.
    pub explain: Option<Explain>,
    /// By which rules objects from outside are judged.
    pub rules: Rules,
    /// Whether what is said about objects is kept for [`crate::Engine::take_events`]; whoever asks for it takes it away.
    pub events: bool,
}

/// How much of the scheduler's reasons is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explain {
    /// Scores are kept of every so-manieth decision, and of pods that had waited.
    pub sample: u32,
    /// Scores are kept of at most so many decisions: each costs a look at all nodes without any of the short cuts.
    pub most: u32,
}

impl Default for Explain {
    /// 1,000 slow looks at 5,000 nodes take some five seconds.
    fn default() -> Self {
        Self { sample: 1_000, most: 1_000 }
    }
}

/// How fast the parts of the control plane are.
#[derive(Clone, Debug)]
pub struct Timing {
    /// From a commit until an informer's handlers run.
    pub watch_latency: SimDuration,
    /// From sending a request until it is committed.
    pub request_latency: SimDuration,
    /// How fast each controller may send; `None` for no limit.
    pub controller_limit: Option<RateLimit>,
    /// The garbage collector's limit.
    pub garbage_limit: Option<RateLimit>,
    /// The namespace controller's limit.
    pub namespace_limit: Option<RateLimit>,
    /// How fast the scheduler may send.
    pub scheduler_limit: Option<RateLimit>,
    /// How long the scheduler thinks about one pod.
    pub scheduling_cycle: SimDuration,
    /// From being asked to stop until a pod has stopped, at most its grace.
    pub pod_termination: SimDuration,
    /// How long a pod of a Job runs when neither the trace nor an annotation says: an assumption.
    pub job_duration: SimDuration,
    /// How long a loop of the cluster autoscaler takes: the next begins that much later than its timer says.
    pub autoscaler_loop: SimDuration,
}

/// [`Timing::job_duration`] by default.
pub const ASSUMED_JOB_DURATION: SimDuration = SimDuration::from_mins(1);

impl Timing {
    /// No latencies and no limits: what a perfect control plane would do.
    pub fn ideal() -> Self {
        Self {
            watch_latency: SimDuration::ZERO,
            request_latency: SimDuration::ZERO,
            controller_limit: None,
            garbage_limit: None,
            namespace_limit: None,
            scheduler_limit: None,
            scheduling_cycle: SimDuration::ZERO,
            pod_termination: SimDuration::ZERO,
            job_duration: ASSUMED_JOB_DURATION,
            autoscaler_loop: SimDuration::ZERO,
        }
    }

    /// Kubernetes' own defaults: kube-controller-manager 20/30 requests per second per controller, twice that for garbage
    /// collection, 20 and 100 times for namespaces; kube-scheduler 50/100. The latencies are those
    /// measured on two cores with 1,000 and 5,000 nodes, in whole milliseconds (docs/fidelity.md): 5 ms from sending a pod until
    /// the scheduler sees it, 3 ms per scheduling cycle; 20 ms per loop is what cluster-autoscaler 1.36.1 took beside its scan
    /// interval.
    pub fn real_like() -> Self {
        Self {
            watch_latency: SimDuration::from_millis(2),
            request_latency: SimDuration::from_millis(3),
            controller_limit: Some(RateLimit { qps: 20, burst: 30 }),
            garbage_limit: Some(RateLimit { qps: 40, burst: 60 }),
            namespace_limit: Some(RateLimit { qps: 400, burst: 3000 }),
            scheduler_limit: Some(RateLimit { qps: 50, burst: 100 }),
            scheduling_cycle: SimDuration::from_millis(3),
            pod_termination: SimDuration::ZERO,
            job_duration: ASSUMED_JOB_DURATION,
            autoscaler_loop: SimDuration::from_millis(20),
        }
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self::real_like()
    }
}

/// A group of nodes that are all alike.
#[derive(Clone, Debug, Default)]
pub struct NodeGroup {
    /// Its name.
    pub name: SmolStr,
    /// Never fewer nodes than this.
    pub min: u32,
    /// Never more nodes than this.
    pub max: u32,
    /// How many nodes there are when the simulation begins; `None`: the minimum.
    pub initial: Option<u32>,
    /// The whole machine.
    pub capacity: BTreeMap<SmolStr, Quantity>,
    /// What is left for pods.
    pub allocatable: BTreeMap<SmolStr, Quantity>,
    /// Labels of its nodes.
    pub labels: BTreeMap<SmolStr, SmolStr>,
    /// Taints of its nodes.
    pub taints: Vec<Taint>,
    /// From asking for a node until it is ready.
    pub ready_delay: SimDuration,
    /// Where nodes do not all take the same: the 99th percentile of it, and [`Self::ready_delay`] is the median.
    pub ready_p99: Option<SimDuration>,
    /// What the provider's description of a node sets aside for pods that come with every node, such as kube-proxy. The
    /// autoscaler reckons with it until it has seen a node of the group.
    pub template_overhead: BTreeMap<SmolStr, Quantity>,
    /// Price of a node for an hour, if known.
    pub price_per_hour: Option<f64>,
}

impl NodeGroup {
    /// How long the next node takes to be ready.
    pub fn draw_ready_delay(&self, stream: &mut Stream) -> SimDuration {
        match self.ready_p99 {
            Some(p99) => Spread { p50: self.ready_delay, p99 }.draw(stream),
            None => self.ready_delay,
        }
    }
}
