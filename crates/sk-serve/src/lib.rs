//! HTTP servers for unauthenticated clients inside a cluster: the tracer's exports and the controller's records.
//!
//! Everybody in a cluster can open a connection, and an idle connection costs its sender nothing. So an idle connection
//! is closed when a new one needs its slot; connections that are doing work are not. TokenReviews are rate-limited.
//!
//! ```text
//!  accept ──▶ Places::enter (who makes room?) ──▶ TLS ──▶ request ──▶ Router ──▶ Reviewer::check (who is it, may they?)
//!                  ▲                                         │                          │
//!                  └── overstayed, pushed out ◀── Standing ◀─┴── Standing::work ◀───────┘
//! ```
//!
//! | module | what it owns |
//! |---|---|
//! | [`limits`] | how many, how long, with the arithmetic |
//! | `places` | who has a place, and who makes room for whom. Pure |
//! | `standing` | one connection's state: silent, asking, at work |
//! | `server` | the loop that accepts, and each connection's task |
//! | [`body`] | request bodies within bounds, and hearing out whom one refuses |
//! | [`review`] | TokenReviews and SubjectAccessReviews, remembered and rationed |
//! | `budget` | the ration. Pure |
//!
//! It knows no paths and no permissions of either program, and stores nothing on disk.

pub mod body;
mod budget;
pub mod limits;
mod places;
pub mod review;
mod server;
mod standing;

pub use limits::Limits;
pub use review::{Refusal, Reviewer};
pub use server::serve;
pub use standing::{Crowded, Standing, Work};
