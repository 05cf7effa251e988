//! What can be asked of a trace and done to it.
//!
//! Pure functions over the streams of `sk-store`: a trace goes in, an answer or another trace comes out. Memory does
//! not grow with the trace, and what is bounded says so when its bound is reached. No terminal, no network and no
//! cluster here; whoever calls prints.
//!
//! | module | question or change |
//! |---|---|
//! | [`mod@generate`] | a believable workload, from a seed |
//! | [`mod@merge`] | several traces as one |
//! | [`mod@scale`] | more or less of the same |
//! | [`mod@shift`] | the same at another time |
//! | [`mod@show`] | what is in it, and every text that left the cluster |
//! | [`mod@slice`] | a part of it, by time, namespace, kind or label |
//! | [`mod@transform`] | another trace, by a jq program |
//! | [`mod@validate`] | can it be replayed, and what would have to be mended |
//!
//! Everything that writes a trace takes the form to write it in and gives back a [`Written`]: what it was written to,
//! what the form could not hold, and what was done.

pub mod generate;
mod kinds;
pub mod merge;
mod names;
mod rewrite;
pub mod scale;
pub mod shift;
pub mod show;
pub mod slice;
mod spelt;
mod templates;
pub mod transform;
pub mod validate;
mod written;

pub use written::{EditError, Written};
