//! kube-scheduler 1.36.4 as a pure library, as it behaves with `parallelism: 1`: a cluster and a pod in, a decision
//! with its reasons out.
//!
//! It knows no API, no clock and no queue worker: the engine passes in what its informers saw, asks for one pod at a
//! time and carries out the decision; the autoscaler asks what would fit where. Nodes, pods and pod classes have dense
//! ids.
//!
//! | module | what it owns |
//! |---|---|
//! | [`class`] | everything scheduling looks at in a pod, parsed once and shared by all pods alike |
//! | [`node`] | everything scheduling looks at in a node |
//! | [`cluster`] | nodes, pods and the other objects as the scheduler's cache has them; what-if with undo |
//! | [`framework`] | one cycle: filter, score, choose, preempt; profiles; diagnoses and explanations |
//! | [`plugins`] | one file per plugin, each beside the name of the file it follows |
//! | [`counters`] | how many pods of which kind are in which zone, kept by deltas |
//! | [`queue`] | which pod is next, and what an event is worth to the others |
//! | [`config`] | a user's KubeSchedulerConfiguration, with located errors |
//!
//! Start with [`cluster::Cluster`] and [`framework::Scheduler::schedule`].
//!
//! Refused: extenders and plugins that are not built in. Passed through and counted on the class
//! ([`class::PassedThrough`]): NodeVolumeLimits, VolumeRestrictions, DynamicResources, NodeDeclaredFeatures.

pub mod class;
pub mod cluster;
pub mod config;
pub mod counters;
pub mod framework;
pub mod ids;
mod intern;
pub mod node;
pub mod plugins;
pub mod queue;

pub use class::PodClass;
pub use cluster::Cluster;
pub use config::Configuration;
pub use framework::{Decision, Diagnosis, Importance, Profile, Scheduler};
pub use ids::{ClassId, NodeId, PodId};
pub use node::NodeSpec;
pub use queue::Queue;
