//! `skctl install tracer|sim`: applies the manifests, then runs the checks of `skctl doctor`.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use super::doctor::{outcome, text};
use crate::cli::{Global, InstallArgs, InstallPart, Part};
use crate::cluster::apply::{Applier, ApplyError, Change, Manner, name_of};
use crate::cluster::doctor::{self, Finding, State};
use crate::cluster::installation::{self, is_dispensable};
use crate::cluster::{self, Cluster};
use crate::failure::Outcome;
use crate::output;
use crate::progress::Progress;

/// How long a new pod may take to be ready before the doctor says what keeps it: an image of 20 MB and a volume.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often the doctor looks meanwhile.
const LOOK: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &InstallArgs, global: &Global) -> Result<Outcome> {
    let manager = match &args.part {
        InstallPart::Tracer(_) => "skctl-tracer",
        InstallPart::Sim(_) => "skctl-sim",
    };
    let manner = Manner { manager, dry_run: args.dry_run, force: args.force };
    cluster::block_on(async {
        let cluster = Cluster::connect(global).await?;
        let (part, objects) = match &args.part {
            InstallPart::Tracer(args) => (Part::Tracer, installation::tracer_for(&cluster, args, global).await?),
            InstallPart::Sim(args) => (Part::Sim, installation::sim_for(&cluster, args, global).await?),
        };
        output::say(global, &format!("installing in namespace {} of {cluster}", cluster.namespace));
        apply(&cluster, &objects, manner, global).await?;
        if args.dry_run {
            output::say(global, "nothing was changed: --dry-run");
            return Ok(Outcome::Good);
        }
        let findings = settle(&cluster, part, args.no_wait, global).await?;
        output::print(&text(&findings))?;
        Ok(outcome(&findings))
    })
}

/// Applies all objects and prints the outcome of each.
async fn apply(cluster: &Cluster, objects: &[Value], manner: Manner, global: &Global) -> Result<()> {
    let progress = Progress::of_unknown_length("applying".to_owned(), global.quiet)?;
    let mut applier = Applier::new(cluster, manner);
    let mut unchanged = 0;
    for object in objects {
        match progress.waiting(applier.apply(object)).await? {
            Ok(Change::Unchanged) => unchanged += 1,
            Ok(change) => output::print(&format!("{change:<9} {}\n", name_of(object)))?,
            Err(error @ ApplyError::UnknownKind { .. }) if is_dispensable(object) => {
                output::say(global, &format!("left out: {error}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if unchanged > 0 {
        output::print(&format!("unchanged {unchanged} of {}\n", objects.len()))?;
    }
    Ok(())
}

/// The doctor's findings when nothing fails any more, or at the time limit.
async fn settle(cluster: &Cluster, part: Part, no_wait: bool, global: &Global) -> Result<Vec<Finding>> {
    let progress = Progress::of_unknown_length("waiting until it is ready".to_owned(), global.quiet)?;
    let began = Instant::now();
    loop {
        let findings = progress.waiting(doctor::examine(cluster, Some(part))).await??;
        let is_well = findings.iter().all(|finding| finding.state != State::Fail);
        if is_well || no_wait || began.elapsed() > PATIENCE {
            return Ok(findings);
        }
        progress.waiting(tokio::time::sleep(LOOK)).await?;
    }
}
