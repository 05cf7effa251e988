//! The header of a trace.

use super::config::TracerConfig;

/// What a trace begins with, in every form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The tracer configuration.
    pub config: TracerConfig,
    /// The version (2 or 3) of the SimKube 2 trace that it was converted from. Its bookkeeping is then carried along
    /// as [`super::IndexPart`] rows, and written back instead of being made anew.
    pub origin: Option<u64>,
}
