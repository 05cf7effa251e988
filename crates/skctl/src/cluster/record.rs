//! The record of a Simulation: fetched from the controller, or from the object store that the spec names.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use http::Method;
use http_body_util::BodyExt;
use sk_api::simulation::names::SCENARIO_ANNOTATION;
use sk_api::simulation::{Simulation, State};
use sk_record::{Staged, archive};
use sk_report::Analysis;

use super::installation::CONTROLLER;
use super::simulation::{name_of, why_it_failed, words};
use super::simulations::Simulations;
use super::{Cluster, block_on};
use crate::cli::{Global, NEWEST, ReportArgs};
use crate::commands::report::check;
use crate::commands::run::conclude::{self, Judge};
use crate::progress::Progress;
use crate::records::{from_store, object, spool};
use crate::scenarios::ASSUMED;
use crate::{output, runs};

/// A list of the most repetitions, 1,000 numbers, has 4 KB.
const MAX_LIST_BYTES: usize = 64 << 10;

/// The folder of a Simulation's record, which is fetched and put there.
pub(crate) fn fetch_record(args: &ReportArgs, global: &Global) -> Result<PathBuf> {
    if args.run == NEWEST {
        bail!("no Simulation given: `{} list --cluster` shows them; then `report NAME --cluster`", global.again());
    }
    let (simulation, mut staged) = block_on(async {
        let cluster = Cluster::connect(global).await?;
        let simulation = Simulations::of(&cluster).get(&args.run).await?;
        refuse_unfinished(&simulation)?;
        let kept = kept(&cluster, &simulation).await?;
        let repetition = choose(args, &simulation, &kept, global)?;
        let fetch = async |repetition| {
            let dir = runs::of_repetition(None, &args.run, simulation.spec.repetitions, repetition);
            fetch(&cluster, &simulation, repetition, &dir, global).await
        };
        let staged = match (fetch(repetition).await, another(args, &simulation, repetition)) {
            (Err(error), Some(before)) => {
                output::say(
                    global,
                    &format!("repetition {repetition} has no record: {error:#}; showing repetition {before}"),
                );
                fetch(before).await?
            }
            (fetched, _) => fetched?,
        };
        Ok((simulation, staged))
    })?;
    let annotations = simulation.metadata.annotations.as_ref();
    // A Simulation that was written by hand carries none: then nothing must hold.
    let scenario = annotations.and_then(|all| all.get(SCENARIO_ANNOTATION)).map_or(ASSUMED, String::as_str);
    staged.add_file("scenario.yaml", scenario.as_bytes())?;
    let name = format!("annotation {SCENARIO_ANNOTATION} of Simulation {}", args.run);
    let (checked, terms) = check(&name, scenario, &Analysis::of(&staged.run()?)?, false)?;
    Ok(conclude::publish(staged, Judge { checked: &checked, terms: &terms, baseline: None }, scenario)?.dir)
}

/// A running Simulation is reported with its progress.
fn refuse_unfinished(simulation: &Simulation) -> Result<()> {
    let status = simulation.status.clone().unwrap_or_default();
    if !status.state.is_some_and(State::is_final) {
        let (name, state) = (name_of(simulation), words(&status));
        bail!("Simulation {name} has not finished: {state}; its report comes when it has");
    }
    Ok(())
}

/// The repetition to show where this one, which nobody asked for, turns out to have failed before it wrote a record.
fn another(args: &ReportArgs, simulation: &Simulation, repetition: u32) -> Option<u32> {
    let failed = simulation.status.as_ref().is_some_and(|status| status.state == Some(State::Failed));
    let is_open = failed && args.repetition.is_none() && is_guessed(simulation, repetition);
    repetition.checked_sub(1).filter(|_| is_open)
}

/// The repetition that was asked for, or the last one that there is.
fn choose(args: &ReportArgs, simulation: &Simulation, kept: &[u32], global: &Global) -> Result<u32> {
    let (name, last) = (&args.run, kept.last().copied());
    let Some(last) = last else {
        let failed = simulation.status.as_ref().is_some_and(|status| status.state == Some(State::Failed));
        let why = if failed { format!(": it failed: {}", why_it_failed(simulation)) } else { String::new() };
        bail!("Simulation {name} has no record{why}");
    };
    let listed = || kept.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match args.repetition {
        Some(repetition) if kept.contains(&repetition) => Ok(repetition),
        Some(repetition) => bail!("Simulation {name} has no record of repetition {repetition}; it has: {}", listed()),
        None => {
            if kept.len() > 1 {
                output::say(global, &format!("repetition {last} of {}; --repetition N shows another", listed()));
            }
            Ok(last)
        }
    }
}

/// The repetitions of which there is a record, in order. An object store cannot be asked: there it is those that are
/// done, and the one after them, of which it is a guess.
pub(crate) async fn kept(cluster: &Cluster, simulation: &Simulation) -> Result<Vec<u32>> {
    if simulation.spec.record.path.is_some() {
        return Ok((0..(done(simulation) + 1).min(simulation.spec.repetitions)).collect());
    }
    let path = format!("/records/{}", name_of(simulation));
    let text = CONTROLLER.open(cluster).await?.text(&path, MAX_LIST_BYTES).await?;
    serde_json::from_str(&text)
        .context("cannot read the controller's list of records; is the controller older than this skctl?")
}

/// Is it only guessed that there is a record of this repetition? It may have failed before it wrote any.
fn is_guessed(simulation: &Simulation, repetition: u32) -> bool {
    simulation.spec.record.path.is_some() && repetition >= done(simulation)
}

fn done(simulation: &Simulation) -> u32 {
    simulation.status.as_ref().and_then(|status| status.completed_runs).unwrap_or(0)
}

/// Fetches the record of one repetition. It takes the name `dir` when it is published.
pub(crate) async fn fetch(
    cluster: &Cluster,
    simulation: &Simulation,
    repetition: u32,
    dir: &Path,
    global: &Global,
) -> Result<Staged> {
    let name = name_of(simulation);
    let progress = Progress::of_bytes(None, format!("fetching the record of {name}"), global.quiet)?;
    let dir = dir.to_owned();
    let Some(place) = place_in_store(simulation, repetition) else {
        let spool = from_controller(cluster, &format!("/records/{name}/{repetition}"), &progress).await?;
        return Ok(tokio::task::spawn_blocking(move || archive::stage(spool, &dir)).await??);
    };
    let staged = move || from_store(&place, &names_in(&place)?, &dir);
    progress.waiting(tokio::task::spawn_blocking(staged)).await??
}

async fn from_controller(cluster: &Cluster, path: &str, progress: &Progress) -> Result<File> {
    let mut controller = CONTROLLER.open(cluster).await?;
    let mut body = controller.ask(Method::GET, path, None).await?.into_body();
    let mut spool = spool()?;
    let mut bytes = 0;
    while let Some(frame) = progress.waiting(body.frame()).await? {
        let data = frame.context("the controller closed the connection; run it again to fetch the record")?.into_data();
        let data = data.unwrap_or_default();
        spool.write_all(&data).context("cannot keep the record in the temporary folder; is there disk space?")?;
        bytes += data.len() as u64;
        progress.bytes(bytes);
    }
    spool.rewind().context("cannot read the record again")?;
    Ok(spool)
}

/// Where the driver has put the record of one repetition; `None` if the controller has it.
fn place_in_store(simulation: &Simulation, repetition: u32) -> Option<String> {
    let path = simulation.spec.record.path.as_ref()?.trim_end_matches('/');
    Some(if simulation.spec.repetitions > 1 { format!("{path}/{repetition}") } else { path.to_owned() })
}

/// The files that the record at `place` must have, as its `run.json` tells.
fn names_in(place: &str) -> Result<Vec<String>> {
    let dir = tempfile::tempdir().context("cannot make a temporary folder for the record")?;
    object(place, "run.json", &mut File::create(dir.path().join("run.json"))?)?;
    let tables = archive::tables(dir.path())?;
    Ok(tables.into_iter().chain(["run.json".to_owned()]).collect())
}
