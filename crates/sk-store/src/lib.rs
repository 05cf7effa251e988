//! What lies on disk: traces, in every form that people have them, and the event log that a tracer keeps.
//!
//! Start with [`trace`]: [`trace::open`] tells the forms apart by content, [`trace::Trace::records`] streams what
//! happened, whatever the form. [`location`] says where traces are: paths, pipes, object stores. [`log`] is what a
//! tracer writes and exports traces from. Nothing here knows a Kubernetes client or replays anything; objects are JSON.
//!
//! ```text
//!  v2 · native · JSON Lines · manifests ──open──▶ Trace ──records──▶ Record { at, seq, change }
//!                                                                        │ convert
//!                        v2 · native · JSON Lines ◀──Writer──────────────┘
//!                                                        ▲
//!                        Fact ──append──▶ Log ──export───┘
//! ```
//!
//! [`yaml`] says what is wrong with a YAML file in words for people.
//!
//! Files come from other people and other programs, so every length is checked against a named constant before
//! memory is taken for it, nesting has a limit, and no input makes a reader panic.

pub mod disk_space;
pub mod location;
pub mod log;
mod msgpack;
pub mod trace;
mod varint;
pub mod yaml;

pub use location::Location;
pub use trace::{OpenError, Trace, TraceError};
