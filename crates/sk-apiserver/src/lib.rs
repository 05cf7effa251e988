//! The API server's semantics as a synchronous state machine: a request in, the committed object or an error out.
//!
//! No IO, no thread and no clock of its own: the caller passes `now`. Every change goes through one function,
//! `Store::commit`, and the resource version it hands out is the order of the run.
//!
//! ```text
//! (Call ──► rest ──►) Request ──► server (verbs) ──► admission ──► store: commit ──► log ──► whoever reads it, as of a cursor (view)
//!    ▲             │
//!    └── ApiError ─┘
//! ```
//!
//! Read in this order: [`object`] (what is stored), [`kinds`] (the bodies that are understood; every other kind is kept
//! as it came), [`request`], [`server`], [`store`], [`view`]. All of it is `Clone + Send`: a server can be forked.
//!
//! Clients that speak HTTP are answered by [`rest`], which reads by the type table (`schema`), patches (`patch`) and reads
//! (`read`). A server that is [`ApiServer::strict`] writes every default (`defaults`) and keeps every rule (`validation`).
//!
//! `judge` asks the same rules of what comes from outside into a server that is not strict (`rules`), `charge` keeps quotas
//! (`quota`) and admission keeps limit ranges (`limit_range`).
//!
//! A custom kind is treated as its definition says (`custom`), if there is one.
//!
//! Clients are the managers of the fields that they write (`managed`); requests of components have no manager.
//!
//! Not here yet: webhooks, conversion between versions.

pub mod admission;
mod base64;
mod binding;
mod custom;
mod defaults;
pub mod directives;
pub mod error;
mod eviction;
mod generation;
mod index;
mod json;
pub mod kinds;
mod labels;
mod limit_range;
mod managed;
pub mod object;
mod patch;
pub mod quota;
pub mod read;
pub mod request;
pub mod rest;
mod rules;
mod scale;
mod schema;
pub mod server;
mod service;
pub mod store;
mod topology;
mod validation;
pub mod view;

pub use admission::{AdmitPod, Notice};
pub use error::{About, ApiError, Cause, Reason};
pub use kinds::{Body, KindTag};
pub use labels::Labels;
pub use object::{Deletion, GvkRef, Identity, Meta, Object, OwnerRef, Uid, UidText};
pub use patch::Patch;
pub use read::{ListOptions, Page, Watched};
pub use request::{Answer, DeleteOptions, Propagation, Request, Subresource, Verb};
pub use rules::Rules;
pub use server::ApiServer;
pub use store::{Change, Expired, ObjectId, Store, WatchEvent};
pub use view::View;
