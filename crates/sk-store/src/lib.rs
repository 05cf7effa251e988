//! Storage: trace files in every supported format, and the tracer's event log.
//!
//! Start with [`trace`]: [`trace::open`] detects the format by content, and [`trace::Trace::records`] streams the records
//! of any format. [`location`] reads and writes paths, pipes and object stores. [`log`] is the event log that a tracer
//! writes and exports traces from. This crate has no Kubernetes client and replays nothing; objects are JSON.
//!
//! ```text
//!  v2 · native · JSON Lines · manifests ──open──▶ Trace ──records──▶ Record { at, seq, change }
//!                                                                        │ convert
//!                        v2 · native · JSON Lines ◀──Writer──────────────┘
//!                                                        ▲
//!                        Fact ──append──▶ Log ──export───┘
//! ```
//!
//! [`yaml`] writes error messages for YAML files.
//!
//! Files come from other people and other programs, so every length is checked against a named constant before
//! memory is allocated for it, nesting has a limit, and no input makes a reader panic.

pub mod disk_space;
pub mod location;
#[cfg(feature = "log")]
pub mod log;
mod msgpack;
pub mod trace;
mod varint;
pub mod yaml;

pub use location::Location;
pub use trace::{OpenError, Trace, TraceError};
