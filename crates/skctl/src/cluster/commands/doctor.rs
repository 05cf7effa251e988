//! `skctl doctor [tracer|sim]`: checks an installation and the user's permissions.

use std::fmt::Write as _;

use anyhow::Result;

use crate::cli::{DoctorArgs, Global, TableFormat};
use crate::cluster::doctor::{self, Finding, State};
use crate::cluster::{self, Cluster};
use crate::failure::Outcome;
use crate::output;
use crate::progress::Progress;

pub(crate) fn run(args: &DoctorArgs, global: &Global) -> Result<Outcome> {
    let findings = cluster::block_on(async {
        let progress = Progress::of_unknown_length("looking at the cluster".to_owned(), global.quiet)?;
        let cluster = Cluster::connect(global).await?;
        progress.waiting(doctor::examine(&cluster, args.part)).await?
    })?;
    match args.output {
        TableFormat::Table => output::print(&text(&findings))?,
        TableFormat::Json => output::print_json(&findings)?,
    }
    Ok(outcome(&findings))
}

/// One line for each finding, and its advice below.
pub(crate) fn text(findings: &[Finding]) -> String {
    findings.iter().fold(String::new(), |mut text, finding| {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{finding}");
        text
    })
}

/// Bad if something is missing; a warning is none.
pub(crate) fn outcome(findings: &[Finding]) -> Outcome {
    if findings.iter().any(|finding| finding.state == State::Fail) { Outcome::Bad } else { Outcome::Good }
}
