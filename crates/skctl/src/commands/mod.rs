//! One file per word that people type.

pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod list;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scenario;
pub(crate) mod trace;
pub(crate) mod validate;
pub(crate) mod version;
