//! One scheduling cycle (`schedule_one.go`): PreFilter, Filter, PostFilter, PreScore, Score, select host.
//!
//! [`Scheduler`] holds the cluster, the profiles and where the last search ended. The caller assumes and binds: it
//! adds a placed pod with [`Cluster::add_pod`](super::Cluster::add_pod) and removes it if the binding fails.

mod alike;
mod column;
pub(crate) mod cycle_state;
mod diagnosis;
mod explain;
mod explain_preemption;
pub(crate) mod extension_points;
mod failures;
pub(crate) mod local;
mod pick;
pub mod plugin;
mod preemption;
pub mod profile;
mod scheduler;
mod search;
mod unused;
mod what_if;

pub use diagnosis::Diagnosis;
pub use explain::{Explanation, NodeScores, SearchStart};
pub use explain_preemption::{Criterion, PreemptionExplained};
pub use preemption::Importance;
pub use profile::Profile;
pub use scheduler::{Decision, Scheduler};
pub use unused::Kept;
