//! `skctl version`

use std::io::Write;

use anyhow::Result;

use crate::failure::Outcome;

pub(crate) fn run() -> Result<Outcome> {
    let kubernetes = sk_replay::embedded::KUBERNETES;
    writeln!(std::io::stdout(), "skctl {} (rules of Kubernetes {kubernetes})", env!("CARGO_PKG_VERSION"))?;
    Ok(Outcome::Good)
}
