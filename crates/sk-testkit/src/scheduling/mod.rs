//! Decisions of kube-scheduler as data: scenarios for the scheduler alone, and what the real one did.
//!
//! A [`Family`] (`scenarios/scheduler/*.yaml`) is a group of small scenarios: nodes, objects, then one step after the
//! other. The real scheduler plays it on an API server without controllers and kubelets, one step at a time, and every
//! attempt to schedule a pod is kept with its result, its message and its scores ([`Attempt`]). The recordings are in
//! `fixtures/scheduler/*.json`, so that the hermetic suite needs no Go. [`generate`] generates scenarios instead of
//! reading them; those are compared live.
//!
//! | module | what it owns |
//! |---|---|
//! | [`scenario`] | families, scenarios, steps |
//! | [`shorthand`] | shorthand for nodes and pods, and the objects that it expands to |
//! | [`table`] | one scenario for many values |
//! | [`attempt`] | scheduling attempts: result, message, scores, victims |
//! | [`recorded`] | recordings on disk |
//! | [`generate`] | seeded random scenarios |
//! | `live` | the real scheduler (with the feature `control-plane`) |

pub mod attempt;
pub mod generate;
#[cfg(feature = "control-plane")]
pub mod live;
pub mod recorded;
pub mod scenario;
pub mod shorthand;
pub mod table;

pub use attempt::{Attempt, Outcome, Scores};
pub use recorded::Recorded;
pub use scenario::{Family, SchedulingScenario, Step};
