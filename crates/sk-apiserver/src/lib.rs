//! The API server's semantics as a synchronous state machine: a request in, the committed object or an error out.
//!
//! No IO, no thread and no clock of its own: the caller passes `now`. Every change goes through one function,
//! `Store::commit`, and the resource version it hands out is the order of the run.
//!
//! ```text
//! Request ──► server (verbs) ──► admission ──► store: commit ──► log ──► whoever reads it, as of a cursor (view)
//!    ▲             │
//!    └── ApiError ─┘
//! ```
//!
//! Read in this order: [`object`] (what is stored), [`kinds`] (the bodies that are understood; every other kind is kept
//! as it came), [`request`], [`server`], [`store`], [`view`]. All of it is `Clone + Send`: a server can be forked.
//!
//! Not here yet: patches other than apply, field managers, webhooks, quota, conversion between versions.

pub mod admission;
pub mod directives;
pub mod error;
mod eviction;
mod index;
mod json;
pub mod kinds;
mod labels;
pub mod object;
pub mod request;
pub mod server;
pub mod store;
pub mod view;

pub use admission::{AdmitPod, Notice};
pub use error::{ApiError, Reason};
pub use kinds::{Body, KindTag};
pub use labels::Labels;
pub use object::{Deletion, GvkRef, Identity, Meta, Object, OwnerRef, Uid, UidText};
pub use request::{Answer, DeleteOptions, Propagation, Request, Verb};
pub use server::ApiServer;
pub use store::{Change, Expired, ObjectId, Store, WatchEvent};
pub use view::View;
