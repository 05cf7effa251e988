//! Operations on traces: generate, inspect, validate and edit them.
//!
//! They are functions over the streams of `sk-store`: a trace goes in, a result or another trace comes out. Memory does
//! not grow with the trace, and an operation that reaches a limit says so. There is no terminal, network or cluster here;
//! the caller prints.
//!
//! | module | what it does |
//! |---|---|
//! | [`mod@generate`] | creates a realistic workload from a seed |
//! | [`mod@merge`] | merges several traces into one |
//! | [`mod@scale`] | multiplies replicas or workloads |
//! | [`mod@shift`] | moves all times |
//! | [`mod@show`] | summarises a trace, and lists every string in it |
//! | [`mod@slice`] | extracts a part by time, namespace, kind or label |
//! | [`mod@transform`] | edits objects with a jq program |
//! | [`mod@validate`] | checks whether a trace can be replayed, and fixes it |
//!
//! Every operation that writes a trace takes the format and returns a [`TraceOutput`]: the output, what the format could not
//! hold, and a summary.

pub mod generate;
pub mod merge;
mod names;
mod output;
mod parse;
mod rewrite;
pub mod scale;
pub mod shift;
pub mod show;
pub mod slice;
mod templates;
pub mod transform;
pub mod validate;

pub use output::{EditError, TraceOutput};
