//! `skctl snapshot -O OUT`: writes the current state of the cluster as a trace.

use anyhow::Result;
use sk_tracer::snapshot::{Snapshot, snapshot};

use crate::cli::{Global, SnapshotArgs};
use crate::cluster::installation;
use crate::cluster::recording::{self, access};
use crate::cluster::{self, Cluster};
use crate::failure::Outcome;
use crate::output;
use crate::outputs::Destination;
use crate::progress::Progress;

pub(crate) fn run(args: &SnapshotArgs, global: &Global) -> Result<Outcome> {
    let destination = Destination::beside_an_answer(&args.out, None)?;
    let mut config = installation::tracer_config(args.config.as_deref(), global)?;
    config.namespaces.exclude.extend(args.excluded_namespaces.iter().map(Into::into));
    let snapshot = cluster::block_on(async {
        let cluster = Cluster::connect(global).await?;
        let progress = Progress::of_unknown_length(format!("listing {cluster}"), global.quiet)?;
        let access = access(global).await?;
        Ok(progress.waiting(snapshot(access, config, destination.format())).await??)
    })?;
    let Snapshot { trace, not_served } = snapshot;
    recording::save(trace, &destination, global)?;
    if !not_served.is_empty() {
        let kinds: Vec<String> = not_served.iter().map(ToString::to_string).collect();
        output::say(global, &format!("the cluster does not have: {}", kinds.join(", ")));
    }
    Ok(Outcome::Good)
}
