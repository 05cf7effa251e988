//! The user-facing types: scenario, tracer configuration, export request and Simulation, with defaults, schema and
//! validation.
//!
//! Start with [`Scenario::parse`]. It takes text and returns typed data, or an error with line and column. Nothing here
//! opens a file, reads a clock or has another effect.
//!
//! ```
//! use sk_api::Scenario;
//!
//! let text = "
//! apiVersion: simkube.io/v1
//! kind: Scenario
//! cluster: {groups: {small: {min: 1, max: 10, cpu: 4, memory: 16Gi}}}
//! ";
//! let scenario = Scenario::parse("small.yaml", text)?;
//! assert_eq!(scenario.cluster.groups["small"].max, 10);
//!
//! let error = Scenario::parse("small.yaml", &text.replace("max", "maxx")).unwrap_err();
//! assert!(error.to_string().starts_with("small.yaml:4:36: cluster.groups.small.maxx: there is no such field"));
//! # Ok::<(), sk_api::ScenarioError>(())
//! ```
//!
//! | module | what it owns |
//! |---|---|
//! | [`scenario`] | the scenario file: which cluster a trace is replayed on, how, and what must hold |
//! | [`simulation`] | the resources of a replay on a real cluster, and the names around them |
//! | [`tracer`] | the tracer's configuration, and the request for an export |

pub mod scenario;
pub mod simulation;
pub mod tracer;

pub use scenario::{Scenario, ScenarioError};
