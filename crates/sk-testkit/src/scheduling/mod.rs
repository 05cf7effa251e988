//! What kube-scheduler decides, as data: scenarios for the scheduler alone, and what the real one answered.
//!
//! A [`Family`] (`scenarios/scheduler/*.yaml`) is a group of small scenarios: nodes, objects, then one step after the other.
//! The real scheduler plays it on an API server without controllers and without kubelets, one step at a time, and every
//! attempt to schedule a pod is kept with its outcome, its words and its scores ([`Attempt`]). The answers lie beside
//! the questions in `fixtures/scheduler/*.json`, so that the hermetic suite needs no Go. [`generate`] draws scenarios
//! instead of reading them; those are compared live.
//!
//! | module | what it owns |
//! |---|---|
//! | [`scenario`] | families, scenarios, steps |
//! | [`shorthand`] | nodes and pods in a few words, and the objects that they stand for |
//! | [`table`] | one scenario written once for many values |
//! | [`answer`] | attempts: outcome, words, scores, victims |
//! | [`recorded`] | questions and answers on disk |
//! | [`generate`] | seeded random scenarios |
//! | `live` | the real scheduler (with the feature `control-plane`) |

pub mod answer;
pub mod generate;
#[cfg(feature = "control-plane")]
pub mod live;
pub mod recorded;
pub mod scenario;
pub mod shorthand;
pub mod table;

pub use answer::{Attempt, Outcome, Scores};
pub use recorded::Recorded;
pub use scenario::{Family, SchedulingScenario, Step};
