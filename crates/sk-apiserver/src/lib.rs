//! The API server's semantics as a synchronous state machine: a request in, the committed object or an error out.
//!
//! No IO, no thread and no clock of its own: the caller passes `now`. Every change goes through one function,
//! [`store::Store::commit`], and the resource version it hands out is the order of the run.
//!
//! ```text
//! Request ──► server (verbs) ──► admission ──► store::commit ──► watch log ──► informers
//!    ▲             │
//!    └── ApiError ─┘
//! ```
//!
//! Read in this order: [`object`] (what is stored), [`kinds`] (the bodies that are understood; every other kind is kept
//! as it came), [`request`], [`server`], [`store`].
//!
//! Not here yet: patches other than apply, field managers, webhooks, quota, conversion between versions.

pub mod admission;
pub mod error;
mod json;
pub mod kinds;
pub mod object;
pub mod request;
pub mod server;
pub mod store;

pub use admission::{AdmitPod, Notice};
pub use error::{ApiError, Reason};
pub use object::{Body, Deletion, Labels, Meta, Object, OwnerRef, Uid};
pub use request::{DeleteOptions, Propagation, Request};
pub use server::ApiServer;
pub use store::{Change, Expired, WatchEvent};
