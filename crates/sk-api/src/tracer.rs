//! The tracer configuration and the export request.
//!
//! The configuration is read as a scenario is, so that a mistake is named by file, line and column. Everything in it
//! that keeps data inside the cluster (`namespaces`, `privacy`, `keep`, `exportTo`) is an allow-list whose default
//! allows the least.

mod config;
mod export;
mod keep;

pub use config::{Config, Namespaces, Privacy, Retention, TrackedObject};
pub use export::{ExportRequest, Filters};
pub use keep::{Keep, ParseKeepError};
