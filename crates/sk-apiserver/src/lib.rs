//! The API server's semantics as a synchronous state machine: a request in, the committed object or an error out.
//!
//! It does no IO, starts no thread and reads no clock: the caller passes `now`. Every write goes through one function,
//! `Store::commit`, and the resource version that it assigns is the order of the run.
//!
//! ```text
//! (Call ──► rest ──►) Request ──► server (verbs) ──► admission ──► store: commit ──► log ──► readers at their cursors (view)
//!    ▲             │
//!    └── ApiError ─┘
//! ```
//!
//! Read in this order: [`object`] (what is stored), [`kinds`] (the typed kinds; every other kind is stored as it
//! came), [`request`], [`server`], [`store`], [`view`]. All of it is `Clone + Send`: a server can be forked.
//!
//! `rest`, a feature, serves HTTP clients: it decodes by the type table (`schema`), patches (`patch`) and reads (`read`). A
//! server that is [`ApiServer::strict`] writes every default (`defaults`) and enforces every rule (`validation`).
//!
//! `judge` applies the same rules to objects from outside in a server that is not strict (`rules`), `charge` enforces
//! quotas (`quota`), and admission enforces limit ranges (`limit_range`).
//!
//! `custom` treats a custom resource as its definition says, if there is one.
//!
//! Clients are the managers of the fields that they write (`managed`); requests of the engine's components have no
//! field manager.
//!
//! Not modelled: webhooks, conversion between versions.

// Only HTTP clients use some of this, so without the feature `rest` it is dead code and is not compiled.
#![cfg_attr(not(feature = "rest"), allow(dead_code))]

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
#[cfg(feature = "rest")]
mod managed;
#[cfg(not(feature = "rest"))]
#[path = "unmanaged.rs"]
mod managed;
pub mod object;
mod patch;
pub mod quota;
pub mod read;
pub mod request;
#[cfg(feature = "rest")]
pub mod rest;
mod rules;
mod scale;
mod schema;
pub mod server;
mod service;
pub mod store;
mod syntax;
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
