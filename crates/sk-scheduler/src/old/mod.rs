//! The scheduler that sk-engine still calls: filters and scores of a pod and a node, nothing between pods.
//!
//! [`crate::next`] replaces it. It goes when its last caller does.

pub mod cluster;
pub mod node;
pub mod plugins;
pub mod pod;
pub mod queue;
pub mod schedule;
pub(crate) mod select_host;
