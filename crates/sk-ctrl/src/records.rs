//! Records that the controller keeps: taken from drivers and given to people, over HTTPS, to whom the cluster allows it.
//!
//! | request | who | what |
//! |---|---|---|
//! | `PUT /records/<simulation>/<repetition>` | may `update` `simulations/record` | a tar of the run folder |
//! | `GET /records/<simulation>` | may `get` `simulations/record` | the repetitions that there are, as JSON |
//! | `GET /records/<simulation>/<repetition>` | the same | the tar |
//! | `PUT`, `GET /logs/<simulation>` | the same two | the driver's last log |
//! | `GET /healthz` | everybody | `ok` |
//!
//! Whoever asks shows a token for the audience `simkube-ctrl`; the API server says whose it is and what they may do. A
//! record is written beside its place and renamed, so that it is whole or not there. It goes with its Simulation.

mod auth;
mod serve;
mod store;
mod tls;

pub use serve::{ServeError, Server};
pub use store::{Store, StoreError};
pub use tls::{Identity, IdentityError};
