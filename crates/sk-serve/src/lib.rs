//! HTTP servers for unauthenticated clients inside a cluster: the tracer's exports and the controller's records.
//!
//! Everybody in a cluster can open a connection, and an idle connection costs its sender nothing. So an idle connection
//! is closed when a new one needs its slot; connections that are doing work are not. TokenReviews are rate-limited.
//!
//! ```text
//!  accept ──▶ Connections::enter (evicts whom?) ──▶ TLS ──▶ request ──▶ Router ──▶ Reviewer::check (who is it, may they?)
//!                  ▲                                                                  │
//!                  └── expired or evicted ◀── Connection ◀── ConnectionHandle::work ◀─┘
//! ```
//!
//! | module | what it owns |
//! |---|---|
//! | [`limits`] | how many, how long, with the arithmetic |
//! | `slots` | which connection has a slot, and which is evicted for a new one. Pure |
//! | `connection` | one connection's state: idle, sending a request, at work |
//! | `server` | the accept loop, and each connection's task |
//! | [`body`] | request bodies within bounds, and reading the rest of one that is refused |
//! | [`review`] | TokenReviews and SubjectAccessReviews, cached and rate-limited |
//! | `budget` | the rate limit. Pure |
//!
//! It knows no paths and no permissions of either program, and stores nothing on disk.

pub mod body;
mod budget;
mod connection;
pub mod limits;
pub mod review;
mod server;
mod slots;

pub use connection::{ConnectionHandle, TooBusy, Work};
pub use limits::Limits;
pub use review::{Refusal, Reviewer};
pub use server::serve;
