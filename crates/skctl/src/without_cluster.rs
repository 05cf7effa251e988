//! Replaces `cluster` in a build without that feature (docs/dependencies.md): the same functions, each of which prints how to
//! install the complete skctl.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use serde_json::Value;
use sk_core::SmolStr;

use crate::cli::{Cli, ClusterCommand, Global, ObjectFormat, ReportArgs, RunArgs};
use crate::failure::Outcome;

/// What a command that needs a cluster answers.
const ABSENT: &str = "this build of skctl cannot talk to a cluster; to install all of skctl, run `cargo install --path \
                      crates/skctl --locked` in its source folder";

pub(crate) fn begin(_: &Cli) -> Option<ExitCode> {
    None
}

pub(crate) fn run(_: &ClusterCommand, _: &Global) -> Result<Outcome> {
    bail!(ABSENT)
}

pub(crate) fn replay(_: &RunArgs, _: &Global) -> Result<Outcome> {
    bail!(ABSENT)
}

pub(crate) fn fetch_record(_: &ReportArgs, _: &Global) -> Result<PathBuf> {
    bail!(ABSENT)
}

pub(crate) fn list(_: ObjectFormat, _: &Global) -> Result<Outcome> {
    bail!(ABSENT)
}

pub(crate) fn nodes(_: &Global) -> Result<BTreeMap<SmolStr, Value>> {
    bail!(ABSENT)
}

pub(crate) fn apply(_: &[Value], _: &Global) -> Result<String> {
    bail!(ABSENT)
}
