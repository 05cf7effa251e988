//! Replays a trace and records what comes of it.
//!
//! ```text
//! trace ──► plan (pure) ──► target: engine or cluster ──► watch ──► record ──► run folder
//!                                   ▲
//!                             mutate (every new pod)
//! ```
//!
//! [`plan`], [`mutate`] and the recorder are the same for both targets. Start with [`embedded::run`], which is short, and
//! then [`cluster::run`].

pub mod cli;
pub mod cluster;
pub mod embedded;
mod fingerprint;
mod log;
pub mod mutate;
pub mod nodes;
pub mod plan;
mod record;
mod refusals;
pub mod setup;
mod stages;

pub use embedded::{RunError, run};
pub use refusals::{Refusals, refusals};
pub use stages::{FAIL_ANNOTATION, stages, stages_yaml};
