//! A user's KubeSchedulerConfiguration.

/// Parsed.
#[derive(Clone, Debug)]
pub struct Configuration;
