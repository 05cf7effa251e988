//! The records endpoint: drivers upload records and logs, users download them; users upload traces, drivers download them.
//! HTTPS only, and only for callers that the API server authorises.
//!
//! | request | permission | content |
//! |---|---|---|
//! | `PUT /records/<simulation>/<repetition>` | `update` on `simulations/record` | a tar of the run folder |
//! | `GET /records/<simulation>` | `get` on `simulations/record` | the stored repetitions, as JSON |
//! | `GET /records/<simulation>/<repetition>` | the same | the tar |
//! | `PUT`, `GET /logs/<simulation>` | the same two | the driver's last log |
//! | `PUT /traces/<sha256>` | `create` on `simulations/trace` | a trace, named by its SHA-256 |
//! | `HEAD /traces/<sha256>` | the same | whether it is stored; if so, it is kept for another hour |
//! | `GET /traces/<sha256>` | `get` on `simulations/trace` | the trace |
//! | `GET /healthz` | none | `ok` |
//!
//! A caller presents a token for the audience `simkube-ctrl`; a TokenReview and a SubjectAccessReview decide. Everything is
//! written to a temporary file and renamed, so a file is complete or absent, and part of the volume always stays free.
//! Records and logs are deleted with their Simulation, traces when no Simulation refers to them any more.

mod auth;
mod disk;
mod serve;
mod store;
mod tls;
mod traces;

pub use disk::StoreError;
pub use serve::{ServeError, Server};
pub use store::Store;
pub use tls::{Identity, IdentityError};
pub use traces::{DEFAULT_MAX_TRACE_BYTES, KEPT_UNNAMED, Traces};
