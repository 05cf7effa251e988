//! Watching the cluster: one task per kind, each of which owns its kind.
//!
//! ```text
//!  plan::tasks ──▶ Watcher (one per kind) ──▶ resource: where is it served?
//!                     │ list (pages) ──▶ wire::Page ─┐
//!                     │ watch (lines) ─▶ wire::Event ┴▶ Rules::sieve ──▶ Batch ──▶ store
//!                     └ status ──▶ readiness, and `caught_up`: have all watches reached a version?
//! ```
//!
//! A relist is sent to the store as "begins", objects, "ended", all of one kind, so a relist of one kind can never delete
//! objects of another. Objects stay the bytes in which they arrived; nothing here parses them into trees.

mod backoff;
pub(crate) mod caught_up;
mod lines;
pub(crate) mod plan;
pub(crate) mod resource;
pub(crate) mod status;
mod watcher;
pub(crate) mod wire;

pub(crate) use watcher::{Shared, Watcher};
