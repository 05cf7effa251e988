//! kube-scheduler 1.36 as a pure library: a cluster and a pod in, a decision with its reasons out.
//!
//! It knows no API, no clock and no queue worker: the engine feeds it what its informers saw, asks for one pod at a time
//! and carries the answer out.
//!
//! [`next`] is the library: every plugin of the default profile, profiles as data, preemption, the queue with its hints.
//! Start there. [`plugins`], [`cluster`], [`schedule`] and the rest at the root are the smaller scheduler that it
//! replaces; they stay until sk-engine calls `next`.

pub mod next;
mod old;

pub use old::cluster::Cluster;
pub use old::node::Node;
pub use old::pod::{NodeSelectorTerm, PodClass};
pub use old::queue::{QueueSettings, SchedulingQueue};
pub use old::schedule::{Decision, Scheduler, Unschedulable};
use old::select_host;
pub use old::{cluster, node, plugins, pod, queue, schedule};
