//! One file per command that needs no cluster; `cluster::commands` has the others.

pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod list;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scenario;
pub(crate) mod sweep;
pub(crate) mod trace;
pub(crate) mod validate;
pub(crate) mod version;
pub(crate) mod why;
