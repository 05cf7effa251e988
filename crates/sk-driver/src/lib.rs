//! Replays a trace and records what comes of it.
//!
//! ```text
//! trace ──► plan (pure) ──► pace ──► target: engine │ live cluster ──► watch ──► record ──► run folder
//!                                       ▲
//!                                 mutate (every new pod)
//! ```
//!
//! [`plan`], [`mutate`] and the recorder are the same for both engines; only the target differs. Start with
//! [`embedded::run`].

pub mod embedded;
mod fingerprint;
pub mod mutate;
pub mod plan;
mod record;
pub mod setup;

pub use embedded::{RunError, run};
