//! One Simulation on a cluster, from its creation to its record.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use http::Method;
use http_body_util::BodyExt;
use indicatif::HumanCount;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use sk_api::simulation::{Simulation, SimulationStatus, State};
use sk_record::{Staged, archive};

use crate::cli::Global;
use crate::cluster::Cluster;
use crate::cluster::simulations::{Simulations, state_name};
use crate::installation::CONTROLLER;
use crate::progress::Progress;

/// How often the bar is drawn and Ctrl-C is looked for, even if nothing happens.
const TICK: Duration = Duration::from_millis(200);

/// How following ended.
pub(crate) enum Followed {
    /// The Simulation is over, well or not.
    Over(Box<Simulation>),
    /// Somebody pressed Ctrl-C; the Simulation goes on.
    LeftRunning,
}

/// Shows how far it is until it is over. Watches, so that it is told at once and asks for nothing meanwhile.
pub(crate) async fn follow(simulations: &Simulations<'_>, name: &str, global: &Global) -> Result<Followed> {
    let progress = Progress::of_length(100, global.quiet)?;
    let mut versions = watch_object(simulations.api.clone(), name).default_backoff().boxed();
    let mut ticks = tokio::time::interval(TICK);
    let mut last: Option<Simulation> = None;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            version = versions.next() => match version {
                Some(Ok(Some(simulation))) => last = Some(simulation),
                // The watch begins with nothing if it is quicker than the server.
                Some(Ok(None)) if last.is_none() => {}
                Some(Ok(None)) | None => bail!("Simulation {name} was deleted while it ran"),
                // The API server may be restarting; the watch tries again by itself.
                Some(Err(_)) => {}
            },
        }
        let status = last.as_ref().and_then(|simulation| simulation.status.clone()).unwrap_or_default();
        if let Some(over) = last.take_if(|_| status.state.is_some_and(State::is_final)) {
            return Ok(Followed::Over(Box::new(over)));
        }
        let percent = status.progress.as_ref().map_or(0, |progress| u64::from(progress.percent));
        if progress.at(percent, || words(&status)).is_break() {
            return Ok(Followed::LeftRunning);
        }
    }
}

/// `Running  2026-11-10T14:02:11Z  120 of 4,000 events`
fn words(status: &SimulationStatus) -> String {
    let mut words = state_name(status.state);
    if let Some(message) = status.message.as_ref().filter(|_| status.progress.is_none()) {
        words += &format!("  {message}");
    }
    if let Some(progress) = &status.progress {
        if let Some(at) = &progress.simulated_time {
            words += &format!("  {}", at.0.strftime("%FT%TZ"));
        }
        words += &format!("  {} of {} events", HumanCount(progress.events_done), HumanCount(progress.events_total));
    }
    words
}

/// Fetches the record of one repetition from the controller. It takes the name `dir` when it is published.
pub(crate) async fn fetch(
    cluster: &Cluster,
    name: &str,
    repetition: u32,
    dir: &Path,
    global: &Global,
) -> Result<Staged> {
    let mut controller = CONTROLLER.open(cluster).await?;
    let path = format!("/records/{name}/{repetition}");
    let mut body = controller.ask(Method::GET, &path, None).await?.into_body();
    let progress = Progress::of_bytes(None, format!("fetching the record of {name}"), global.quiet)?;
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
    let dir = dir.to_owned();
    Ok(tokio::task::spawn_blocking(move || archive::stage(spool, &dir)).await??)
}

/// A file without a name: it is gone with the process, however that ends.
fn spool() -> Result<File> {
    tempfile::tempfile().context("cannot make a temporary file for the record")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_bar_says_what_the_status_says() {
        let status = |value| serde_json::from_value::<SimulationStatus>(value).unwrap();
        assert_eq!(words(&status(json!({}))), "New");
        let blocked = status(json!({"state": "Blocked", "message": "another simulation runs: week"}));
        assert_eq!(words(&blocked), "Blocked  another simulation runs: week");
        let running = status(json!({
            "state": "Running",
            "progress": {"percent": 3, "eventsDone": 120, "eventsTotal": 4000, "simulatedTime": "2026-11-10T14:02:11Z"},
        }));
        assert_eq!(words(&running), "Running  2026-11-10T14:02:11Z  120 of 4,000 events");
    }
}
