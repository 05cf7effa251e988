//! What lies on disk: traces, in every form that people have them.
//!
//! Start with [`trace`]: [`trace::open`] tells the forms apart by content, [`trace::Trace::records`] streams what
//! happened, whatever the form. Nothing here knows a Kubernetes client or replays anything; objects are JSON.
//!
//! ```text
//!  v2 · native · JSON Lines · manifests ──open──▶ Trace ──records──▶ Record { at, seq, change }
//! ```
//!
//! Files come from other people and other programs, so every length is checked against a named constant before
//! memory is taken for it, nesting has a limit, and no input makes a reader panic.

mod msgpack;
pub mod trace;

pub use trace::{OpenError, Trace, TraceError};
