//! What the controller keeps: records and logs, taken from drivers and given to people; traces, taken from people and
//! given to drivers. Over HTTPS, to whom the cluster allows it.
//!
//! | request | who | what |
//! |---|---|---|
//! | `PUT /records/<simulation>/<repetition>` | may `update` `simulations/record` | a tar of the run folder |
//! | `GET /records/<simulation>` | may `get` `simulations/record` | the repetitions that there are, as JSON |
//! | `GET /records/<simulation>/<repetition>` | the same | the tar |
//! | `PUT`, `GET /logs/<simulation>` | the same two | the driver's last log |
//! | `PUT /traces/<sha256>` | may `create` `simulations/trace` | a trace, named by its SHA-256 |
//! | `HEAD /traces/<sha256>` | the same | whether it is there; if so, it stays for another hour |
//! | `GET /traces/<sha256>` | may `get` `simulations/trace` | the trace |
//! | `GET /healthz` | everybody | `ok` |
//!
//! Whoever asks shows a token for the audience `simkube-ctrl`; the API server says whose it is and what they may do. All
//! that is kept is written beside its place and renamed, so that it is whole or not there, and leaves some of the volume
//! free. Records and logs go with their Simulation, traces when no Simulation names them any more.

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
