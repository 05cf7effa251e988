//! Replays a trace and records the result: everything that needs no cluster client.
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
//! | [`plan`] | trace records → timed operations |
//! | [`mutate`] | what every new pod gets: delays, and a recorded life |
//! | [`record`] | changes → rows of the run record |
//! | [`nodes`], [`initial_pods`] | nodes that no group creates, and the pods on them at the start |
//! | [`fit`] | node groups from recorded nodes |
//! | [`forecast`] | what is known before a run |
//! | [`timeline`] | faults and changes during a run |
//! | [`setup`], [`scheduler`] | the scenario → the engine's settings |
//! | [`embedded`] | the replay in virtual time |
//! | [`progress`] | the progress of a run |
//! | [`fingerprint`] | the id of a run |

mod assumptions;
mod autoscaler_rows;
mod control_plane_events;
pub mod embedded;
pub mod fingerprint;
pub mod fit;
pub mod forecast;
pub mod initial_pods;
mod initial_state;
pub mod mutate;
pub mod nodes;
pub mod plan;
pub mod progress;
pub mod record;
pub mod recorded;
mod refusals;
pub mod scheduler;
pub mod setup;
pub mod timeline;

pub use embedded::{RunError, run};
pub use refusals::{Refusals, refusals};
