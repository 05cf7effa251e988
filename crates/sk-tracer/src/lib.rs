//! The tracer: watches a cluster, stores the events in a durable log, and exports traces from it.
//!
//! ```text
//!  API server ──▶ watch/ (a task per kind; bytes → sk_ingest::Rules) ──bounded channel──▶ store (a thread)
//!      ▲                                                                 sk_ingest::Ledger → sk_store::Log
//!      └───────────── lookup (owners without a watch) ◀─────────────────────┘        │ Reader
//!                                                     serve/ ◀── export ◀───────────┘
//! ```
//!
//! Start with [`Tracer::start`]. sk-ingest decides what is kept of an object, and sk-store how it is stored; this crate
//! does the I/O: the API server, the disk, the HTTP server. It never writes to the cluster, except its own certificate to
//! one ConfigMap if the options ask for it.
//!
//! | module | what it owns |
//! |---|---|
//! | [`access`] | the client of the API server, and new credentials when they expire |
//! | `watch` | one watcher per kind: discovery, lists, watches, relists |
//! | `store` | the thread that owns ledger and log |
//! | `error_reporter` | problems with the API server, logged once per cause and minute |
//! | `lookup` | lookups of owners |
//! | `pod_reread` | reads pods again that arrived before their owners |
//! | `cluster_identity` | checks that the data folder belongs to this cluster |
//! | `parts` | builds a tracer from its parts |
//! | `export` | a window of the log as a file |
//! | `serve` | HTTP: export, probes, metrics |
//! | [`auth`] | who may export |
//! | [`tls`] | the certificate |
//! | [`install`] | manifests and their rights |
//! | [`mod@snapshot`] | the current state of a cluster as a trace |
//! | [`cli`] | the flags |

pub mod access;
pub mod auth;
pub mod cli;
mod clock;
mod cluster_identity;
mod error_reporter;
mod export;
mod folder;
mod health;
pub mod install;
mod lookup;
mod metrics;
mod options;
mod parts;
mod pod_reread;
mod resume;
mod serve;
pub mod snapshot;
mod store;
pub mod tls;
mod tracer;
mod watch;

pub use access::Access;
pub use export::{ExportError, Spooled};
pub use health::Readiness;
pub use options::{Options, Publication, Security, Serving};
pub use serve::ExportRequestError;
pub use store::StoreError;
pub use tracer::{Counts, StartError, Tracer};
