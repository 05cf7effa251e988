//! The cluster target of a replay: applies the plan to a real Kubernetes with virtual nodes, in wall time.
//!
//! Plan, decisions and rows are those of sk-replay, the same as on the embedded engine. Start with [`cluster::run`].

pub mod cli;
pub mod cluster;
mod log;
pub mod nodes;
mod stages;

pub use stages::{FAIL_ANNOTATION, stages, stages_yaml};
