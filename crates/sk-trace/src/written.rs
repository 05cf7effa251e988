//! The result of operations that write a trace, and their errors.

use sk_store::TraceError;
use sk_store::trace::{Losses, WriteError};

use crate::generate::SpecError;

/// A trace that was written.
#[derive(Debug)]
pub struct Written<W, S> {
    /// What it was written to.
    pub out: W,
    /// What the chosen form could not hold.
    pub losses: Losses,
    /// What was done.
    pub summary: S,
}

/// Why a changed trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The trace gave out.
    #[error(transparent)]
    Read(#[from] TraceError),
    /// The place it was written to gave out.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What was to be generated cannot be.
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
