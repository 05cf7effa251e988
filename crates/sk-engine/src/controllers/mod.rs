//! The controllers of kube-controller-manager: they share one process and one view, and each has a client with its own
//! rate limit.

mod adoption;
mod availability;
mod cron_job;
mod daemon_set;
mod deployment;
mod disruption;
mod expectations;
mod garbage;
mod job;
mod namespace;
mod node_lifecycle;
mod own_writes;
mod pod_gc;
mod pod_ranking;
mod pods;
mod replica_set;
mod resource_quota;
mod revisions;
mod selectors;
mod stateful_set;
mod taint_eviction;
mod ttl_after_finished;

use serde_json::json;
use sk_apiserver::Object;
use sk_core::rng::Stream;

use crate::controller::Controller;
use crate::process::Process;
use crate::settings::Timing;

/// `--concurrent-deployment-syncs`, `--concurrent-replicaset-syncs`, `--concurrent-rc-syncs`, `--concurrent-statefulset-syncs`,
/// `--concurrent-job-syncs`, `--concurrent-cron-job-syncs` and `--concurrent-ttl-after-finished-syncs`
const WORKLOAD_WORKERS: usize = 5;
/// `--concurrent-daemonset-syncs`
const DAEMON_SET_WORKERS: usize = 2;
/// `--terminated-pod-gc-threshold`
const TERMINATED_POD_THRESHOLD: usize = 12_500;
/// The disruption controller has one worker.
const DISRUPTION_WORKERS: usize = 1;
/// Workers of the node lifecycle and of the taint eviction controller (`UpdateWorkerSize`).
const NODE_WORKERS: usize = 8;
/// `--concurrent-resource-quota-syncs`
const QUOTA_WORKERS: usize = 5;
/// `--concurrent-gc-syncs`
const GARBAGE_WORKERS: usize = 20;
/// `--concurrent-namespace-syncs`
const NAMESPACE_WORKERS: usize = 10;

/// The process; a controller that leaves something to chance has a stream of its own from the run's seed.
pub(crate) fn process(timing: &Timing, seed: u64) -> Process {
    let stream = |name| Stream::new(seed, name);
    let deployment = Controller::new(deployment::Deployments::new(), WORKLOAD_WORKERS);
    let replica_set = Controller::new(replica_set::ReplicaSets::new(), WORKLOAD_WORKERS);
    let replication_controller =
        Controller::new(replica_set::ReplicaSets::of_replication_controllers(), WORKLOAD_WORKERS);
    let stateful_set = Controller::new(stateful_set::StatefulSets::new(), WORKLOAD_WORKERS);
    let daemon_set = Controller::new(daemon_set::DaemonSets::new(stream("daemon-set-order")), DAEMON_SET_WORKERS);
    let job = Controller::new(job::Jobs::default(), WORKLOAD_WORKERS);
    let cron_job = Controller::new(cron_job::CronJobs::default(), WORKLOAD_WORKERS);
    let ttl = Controller::new(ttl_after_finished::TtlAfterFinished, WORKLOAD_WORKERS);
    let pod_gc = Controller::new(pod_gc::PodGc::new(TERMINATED_POD_THRESHOLD), 1);
    let disruption = Controller::new(disruption::Disruption::default(), DISRUPTION_WORKERS);
    let node_lifecycle = Controller::new(node_lifecycle::NodeLifecycle::default(), NODE_WORKERS);
    let taint_eviction = Controller::new(taint_eviction::TaintEviction::default(), NODE_WORKERS);
    let quota = Controller::new(resource_quota::ResourceQuotas::default(), QUOTA_WORKERS);
    let garbage = Controller::new(garbage::Garbage, GARBAGE_WORKERS);
    let namespace = Controller::new(namespace::Namespaces::new(), NAMESPACE_WORKERS);
    Process::new(timing.watch_latency)
        .with(deployment, timing.controller_limit)
        .with(replica_set, timing.controller_limit)
        .with(replication_controller, timing.controller_limit)
        .with(stateful_set, timing.controller_limit)
        .with(daemon_set, timing.controller_limit)
        .with(job, timing.controller_limit)
        .with(cron_job, timing.controller_limit)
        .with(ttl, timing.controller_limit)
        .with(pod_gc, timing.controller_limit)
        .with(disruption, timing.controller_limit)
        .with(node_lifecycle, timing.controller_limit)
        .with(taint_eviction, timing.controller_limit)
        .with(quota, timing.controller_limit)
        .with(garbage, timing.garbage_limit)
        .with(namespace, timing.namespace_limit)
}

/// A namespace to create.
pub fn new_namespace(name: &str) -> Object {
    let json = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    Object::from_json(json).expect("a namespace with a name is an object")
}
