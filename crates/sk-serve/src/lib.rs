//! How the programs in a cluster serve HTTP to callers whom they do not know yet: the tracer its exports, the controller its
//! records.
//!
//! Anybody in a cluster can open a connection, and one that says nothing costs its sender nothing. So a connection has a
//! place only until somebody else needs it, callers at work excepted; and the API server is asked about tokens only so often.
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
//! It knows no path and no right of either program, and keeps nothing on disk.

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
