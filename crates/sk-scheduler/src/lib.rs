//! kube-scheduler 1.36 as a pure library: the nodes and a pod in, a decision with its reasons out.
//!
//! It knows no API, no clock and no queue worker: the engine feeds it what its informers saw, asks [`Scheduler::schedule`]
//! for one pod at a time, and carries the answer out. The autoscaler asks the same code what-if questions through
//! [`plugins::filter`] on nodes that do not exist yet.
//!
//! Read in this order: [`pod`] and [`node`] (what is looked at), [`plugins`] (filters and scores), [`schedule`] (one
//! cycle), [`queue`] (which pod is next).
//!
//! Not modelled yet, and said so by the run that needs it: topology spread, inter-pod affinity, preferred node affinity,
//! image locality, host ports, volumes, preemption.

pub mod cluster;
pub mod node;
pub mod plugins;
pub mod pod;
pub mod queue;
pub mod schedule;
mod select_host;

pub use cluster::Cluster;
pub use node::Node;
pub use pod::{NodeSelectorTerm, PodClass};
pub use queue::{QueueSettings, SchedulingQueue};
pub use schedule::{Decision, Scheduler, Unschedulable};
