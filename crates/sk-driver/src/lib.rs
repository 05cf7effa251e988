//! Replays a trace and records what comes of it.
//!
//! ```text
//! trace ──► plan (pure) ──► target: engine ──► watch ──► record ──► run folder
//!                                   ▲
//!                             mutate (every new pod)
//! ```
//!
//! [`plan`], [`mutate`] and the recorder are made for both engines; the embedded one is the only target so far. Start with
//! [`embedded::run`].

pub mod embedded;
mod fingerprint;
pub mod mutate;
pub mod plan;
mod record;
pub mod setup;

pub use embedded::{RunError, run};
