//! What can be asked of a trace and done to it.
//!
//! Pure functions over the streams of `sk-store`: a trace goes in, an answer or another trace comes out. Memory does
//! not grow with the trace, and what is bounded says so when its bound is reached. No terminal, no network and no
//! cluster here; whoever calls prints.
//!
//! | module | question or change |
//! |---|---|
//! | [`mod@generate`] | a believable workload, from a seed |
//! | [`mod@validate`] | can it be replayed, and what would have to be mended |

pub mod generate;
mod kinds;
mod names;
mod rewrite;
mod spelt;
mod templates;
pub mod validate;
mod written;

pub use written::{EditError, Written};
