//! The result of operations that write a trace, and their errors.

use sk_store::TraceError;
use sk_store::trace::{Losses, WriteError};

use crate::generate::SpecError;

/// A trace that was written.
#[derive(Debug)]
pub struct TraceOutput<W, S> {
    /// What it was written to.
    pub out: W,
    /// What the chosen format could not hold.
    pub losses: Losses,
    /// What was done.
    pub summary: S,
}

/// Why a changed trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// Reading the trace failed.
    #[error(transparent)]
    Read(#[from] TraceError),
    /// Writing the output failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The specification is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The operation is impossible on this trace.
    #[error("{what}; {advice}")]
    Refused {
        /// What is in the way.
        what: String,
        /// What to do.
        advice: &'static str,
    },
}
