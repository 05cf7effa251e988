//! One file per command.

pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod install;
pub(crate) mod lab;
pub(crate) mod list;
pub(crate) mod manifests;
pub(crate) mod nodes;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scenario;
pub(crate) mod simulations;
pub(crate) mod snapshot;
pub(crate) mod sweep;
pub(crate) mod trace;
pub(crate) mod validate;
pub(crate) mod version;
pub(crate) mod why;
