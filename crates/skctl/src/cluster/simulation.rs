//! Follows one Simulation on a cluster until it is over, and reads its status.

use std::time::Duration;

use anyhow::{Result, bail};
use futures::StreamExt;
use indicatif::HumanCount;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use sk_api::simulation::{Simulation, SimulationStatus, State, names};
use sk_store::location::shown;

use crate::cli::Global;
use crate::cluster::simulations::{Simulations, state_name};
use crate::progress::Progress;

/// How often the bar is drawn and Ctrl-C is looked for, even if nothing happens.
const TICK: Duration = Duration::from_millis(200);

/// How following ended.
pub(crate) enum Followed {
    /// The Simulation is over, well or not.
    Over(Box<Simulation>),
    /// The user pressed Ctrl-C; the Simulation continues.
    LeftRunning,
}

/// Shows the progress until the Simulation is over. It watches and does not poll.
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
pub(crate) fn words(status: &SimulationStatus) -> String {
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

/// The name of a Simulation.
pub(crate) fn name_of(simulation: &Simulation) -> String {
    simulation.metadata.name.clone().unwrap_or_default()
}

/// What people call the trace that it replays: an uploaded one has no name of its own but a hash, and a URL is shown
/// without what may let others in.
pub(crate) fn trace_of(simulation: &Simulation) -> String {
    let typed = simulation.metadata.annotations.as_ref().and_then(|all| all.get(names::TRACE_NAME_ANNOTATION));
    typed.cloned().unwrap_or_else(|| shown(&simulation.spec.driver.trace_path))
}

/// Why it failed, in the controller's words.
pub(crate) fn why_it_failed(simulation: &Simulation) -> String {
    let status = simulation.status.as_ref();
    let why = status.and_then(|status| status.message.as_ref().or(status.reason.as_ref()));
    why.cloned().unwrap_or_else(|| "it does not say why".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_trace_is_called_as_it_was_typed() {
        let simulation = |annotations| -> Simulation {
            let metadata = json!({"name": "a", "annotations": annotations});
            let spec = json!({"driver": {"tracePath": "uploaded:abc"}});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
        };
        let typed = simulation(json!({names::TRACE_NAME_ANNOTATION: "week.sktrace"}));
        assert_eq!(trace_of(&typed), "week.sktrace");
        assert_eq!(trace_of(&simulation(json!({}))), "uploaded:abc");
        let mut secret = simulation(json!({}));
        secret.spec.driver.trace_path = "https://me:s3cr3t@host/week.sktrace".to_owned();
        assert_eq!(trace_of(&secret), "https://host/week.sktrace");
    }

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
