//! Records a live cluster: watches it, keeps what it sees in a durable log, hands out traces.
//!
//! ```text
//!  API server ──▶ watch/ (a task per kind; bytes → sk_ingest::Rules) ──bounded channel──▶ store (a thread)
//!      ▲                                                                 sk_ingest::Ledger → sk_store::Log
//!      └───────────── lookup (owners nobody watches) ◀─────────────────────┘        │ Reader
//!                                                     serve/ ◀── export ◀───────────┘
//! ```
//!
//! Start with [`Tracer::start`]. What is kept of an object is decided in sk-ingest, how it lies on disk in sk-store; this
//! crate is the part that waits: for the API server, for the disk, for callers. It never writes to the cluster, except its
//! own certificate into one ConfigMap if it is told to.
//!
//! | module | what it owns |
//! |---|---|
//! | [`access`] | the way to the API server, and finding it again |
//! | `watch` | one watcher per kind: discovery, lists, watches, relists |
//! | `store` | the one owner of ledger and log |
//! | `troubles` | what goes wrong with the API server, said once per cause and minute |
//! | `lookup` | lookups of owners |
//! | `look` | another look at pods that came before their owners |
//! | `origin` | is this the cluster that the data folder is of? |
//! | `parts` | what a tracer is put together from |
//! | `export` | a window of the log as a file |
//! | `serve` | HTTP: export, probes, metrics |
//! | [`auth`] | who may export |
//! | [`tls`] | the certificate |
//! | [`install`] | manifests and their rights |
//! | [`mod@snapshot`] | the cluster now, as a trace |
//! | [`cli`] | what can be typed |

pub mod access;
pub mod auth;
pub mod cli;
mod clock;
mod export;
mod folder;
mod health;
pub mod install;
mod look;
mod lookup;
mod metrics;
mod options;
mod origin;
mod parts;
mod resume;
mod serve;
pub mod snapshot;
mod store;
pub mod tls;
mod tracer;
mod troubles;
mod watch;

pub use access::Access;
pub use export::{ExportError, Spooled};
pub use health::Readiness;
pub use options::{Options, Publication, Security, Serving};
pub use serve::WantedError;
pub use store::StoreError;
pub use tracer::{Counts, StartError, Tracer};
