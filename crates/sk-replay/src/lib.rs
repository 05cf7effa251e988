//! Replays a trace and records what comes of it: the half that knows no cluster client.
//!
//! ```text
//! trace ──► plan (pure) ──► target: engine or cluster ──► watch ──► record ──► run folder
//!                                   ▲
//!                             mutate (every new pod)
//! ```
//!
//! [`plan`], [`mutate`] and [`record`] are the same for both targets; [`embedded`] is the loop over the engine, and
//! sk-driver is the other target, a real cluster. Start with [`embedded::run`], which is short.
//!
//! | module | what it owns |
//! |---|---|
//! | [`plan`] | records → timed operations |
//! | [`mutate`] | what every new pod gets: delays, and a recorded life |
//! | [`record`] | changes → rows of the run record |
//! | [`nodes`], [`standing`] | nodes that no group makes, and the pods that stand on them at the start |
//! | [`fit`] | groups from recorded nodes |
//! | [`forecast`] | what can be said of a run before it is made |
//! | [`timeline`] | faults and changes during a run |
//! | [`setup`], [`scheduler`] | the scenario → the engine's settings |
//! | [`embedded`] | the replay in virtual time |
//! | [`glance`] | what a run shows of itself while it goes on |
//! | [`fingerprint`] | the same question has the same name |

mod assumptions;
mod beginning;
mod decided;
pub mod embedded;
pub mod fingerprint;
pub mod fit;
pub mod forecast;
pub mod glance;
pub mod mutate;
pub mod nodes;
pub mod plan;
pub mod record;
pub mod recorded;
mod refusals;
pub mod scheduler;
pub mod setup;
pub mod standing;
pub mod timeline;
mod told;

pub use embedded::{RunError, run};
pub use refusals::{Refusals, refusals};
