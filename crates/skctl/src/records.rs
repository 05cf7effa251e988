//! Fetches the record of a Simulation from the controller, or from the object store that the spec names.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;

use anyhow::{Context, Result, bail};
use http::Method;
use http_body_util::BodyExt;
use sk_api::simulation::Simulation;
use sk_record::{Staged, archive};
use sk_store::Location;
use sk_store::location::shown;

use crate::cli::Global;
use crate::cluster::Cluster;
use crate::installation::CONTROLLER;
use crate::progress::Progress;
use crate::simulation::name_of;

/// A list of the most repetitions, 1,000 numbers, has 4 KB.
const MAX_LIST_BYTES: usize = 64 << 10;

/// The repetitions of which there is a record, in order. An object store cannot be asked: there it is those that are
/// done, and the one after them, of which it is a guess.
pub(crate) async fn kept(cluster: &Cluster, simulation: &Simulation) -> Result<Vec<u32>> {
    if simulation.spec.record.path.is_some() {
        return Ok((0..(done(simulation) + 1).min(simulation.spec.repetitions)).collect());
    }
    let path = format!("/records/{}", name_of(simulation));
    let text = CONTROLLER.open(cluster).await?.text(&path, MAX_LIST_BYTES).await?;
    serde_json::from_str(&text).context("the controller's list of records is none; is it older than this skctl?")
}

/// Is it only guessed that there is a record of this repetition? It may have failed before it wrote any.
pub(crate) fn is_guessed(simulation: &Simulation, repetition: u32) -> bool {
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
        let data = frame.context("the controller broke off; run it again to fetch the record")?.into_data();
        let data = data.unwrap_or_default();
        spool.write_all(&data).context("cannot keep the record in the temporary folder; is there room?")?;
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

/// A record in an object store is a folder of objects; those of these names are fetched.
pub(crate) fn from_store(place: &str, names: &[String], dir: &Path) -> Result<Staged> {
    let mut record = tar::Builder::new(spool()?);
    for name in names {
        let mut file = spool()?;
        object(place, name, &mut file)?;
        let mut header = tar::Header::new_ustar();
        header.set_size(file.stream_position()?);
        header.set_mode(0o644);
        file.rewind()?;
        record.append_data(&mut header, name, file)?;
    }
    let mut record: File = record.into_inner().context("cannot keep the record in the temporary folder")?;
    record.rewind()?;
    Ok(archive::stage(record, dir)?)
}

/// Copies one object of a record into a file.
fn object(place: &str, name: &str, to: &mut File) -> Result<()> {
    let Location::Remote(url) = format!("{place}/{name}").parse()? else {
        bail!("the record is at {}, which only the driver can read; fetch it from there", shown(place));
    };
    url.fetch(to).with_context(|| {
        let place = shown(place);
        format!("the record is at {place} and cannot be fetched from here; credentials come from the environment")
    })
}

/// A file without a name: it is gone with the process, however that ends.
fn spool() -> io::Result<File> {
    tempfile::tempfile()
}
