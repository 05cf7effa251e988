//! `skctl describe | logs | pause | resume | delete NAME` and `list --cluster`: the Simulations in a cluster.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, ListParams, LogParams};
use sk_api::simulation::{Simulation, SimulationStatus, names};
use sk_store::location::shown;

use crate::cli::{DescribeArgs, Global, LogsArgs, NamedArgs, ObjectFormat};
use crate::cluster::installation::CONTROLLER;
use crate::cluster::simulation::trace_of;
use crate::cluster::simulations::{Simulations, event_time, state_name};
use crate::cluster::{self, Cluster};
use crate::failure::Outcome;
use crate::output;
use crate::progress::Progress;

/// How much of a log is shown: of a driver that is gone there are its last 256 KiB, and of a pod that is there this much.
const MAX_LOG_BYTES: usize = 4 << 20;
/// How often is looked whether a deleted Simulation is gone.
const LOOK: Duration = Duration::from_millis(500);

/// The Simulations in the cluster, oldest first.
pub(crate) fn list(format: ObjectFormat, global: &Global) -> Result<Outcome> {
    let found = cluster::block_on(async {
        let cluster = Cluster::connect(global).await?;
        Ok((Simulations::of(&cluster).list().await?, cluster))
    });
    let (simulations, cluster) = found?;
    match format {
        ObjectFormat::Json => output::print_json(&simulations)?,
        ObjectFormat::Yaml => output::print_yaml(&simulations)?,
        ObjectFormat::Table if simulations.is_empty() => {
            output::print(&format!("no Simulations in {cluster}; `skctl run TRACE --cluster` makes one\n"))?;
        }
        ObjectFormat::Table => output::print(&table(&simulations))?,
    }
    Ok(Outcome::Good)
}

fn table(simulations: &[Simulation]) -> String {
    let mut text = format!("{:<24} {:<13} {:>4} {:>6}  {:<20}  TRACE\n", "NAME", "STATE", "%", "RUNS", "STARTED");
    for simulation in simulations {
        let status = simulation.status.clone().unwrap_or_default();
        let percent = status.progress.as_ref().map_or_else(|| "–".to_owned(), |progress| progress.percent.to_string());
        let runs = format!("{}/{}", status.completed_runs.unwrap_or(0), simulation.spec.repetitions);
        let started = status.start_time.as_ref().map_or_else(|| "–".to_owned(), time);
        let name = simulation.metadata.name.as_deref().unwrap_or_default();
        let (state, trace) = (state_name(status.state), trace_of(simulation));
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{name:<24} {state:<13} {percent:>4} {runs:>6}  {started:<20}  {trace}");
    }
    text
}

pub(crate) fn describe(args: &DescribeArgs, global: &Global) -> Result<Outcome> {
    let (simulation, events) = cluster::block_on(async {
        let cluster = Cluster::connect(global).await?;
        let simulations = Simulations::of(&cluster);
        let simulation = simulations.get(&args.name).await?;
        let events = simulations.events(&simulation).await.map_err(|error| error.to_string());
        Ok((simulation, events))
    })?;
    match args.output {
        ObjectFormat::Json => output::print_json(&simulation)?,
        ObjectFormat::Yaml => output::print_yaml(&[&simulation])?,
        ObjectFormat::Table => output::print(&description(&simulation, events.as_deref()))?,
    }
    Ok(Outcome::Good)
}

/// A Simulation for people: spec, status and Events; or why the Events cannot be read.
fn description(simulation: &Simulation, events: Result<&[Event], &String>) -> String {
    let (spec, status) = (&simulation.spec, simulation.status.clone().unwrap_or_default());
    let mut text = String::new();
    let mut line = |what: &str, value: String| {
        let _ = writeln!(text, "{what:<12} {value}");
    };
    line("name", simulation.metadata.name.clone().unwrap_or_default());
    line("state", state_line(&status));
    line("trace", trace_line(simulation));
    let duration = spec.duration.as_ref().map(|duration| format!(", {duration} of it")).unwrap_or_default();
    line("replay", format!("speed {}, {} times{duration}", spec.speed, spec.repetitions));
    if let Some(progress) = &status.progress {
        let at = progress.simulated_time.as_ref().map(|at| format!(", at {}", time(at))).unwrap_or_default();
        let (done, total) = (progress.events_done, progress.events_total);
        line("progress", format!("{}%, {done} of {total} events{at}", progress.percent));
    }
    if let Some(start) = &status.start_time {
        let end = status.end_time.as_ref().map(|end| format!(" to {}", time(end))).unwrap_or_default();
        line(
            "ran",
            format!("{}{end}, {} of {} runs", time(start), status.completed_runs.unwrap_or(0), spec.repetitions),
        );
    }
    if let Some(totals) = &status.totals {
        let (refused, left_alone) = (totals.refused, totals.left_alone);
        line(
            "totals",
            format!("{} events, {} pods, {refused} refused, {left_alone} left alone", totals.events, totals.pods),
        );
        if let Some(late) = &totals.lateness {
            line("lateness", format!("p50 {} ms, p99 {} ms, max {} ms", late.p50_ms, late.p99_ms, late.max_ms));
        }
    }
    if let Some(path) = &status.record_path {
        line("record", shown(path));
    }
    for condition in &status.conditions {
        let since = time(&condition.last_transition_time);
        line("condition", format!("{}={} since {since}  {}", condition.type_, condition.status, condition.message));
    }
    if let Err(why) = events {
        line("events", why.clone());
    }
    for event in events.unwrap_or_default() {
        let at = event_time(event).as_ref().map(time).unwrap_or_default();
        let (reason, message) = (event.reason.clone().unwrap_or_default(), event.message.clone().unwrap_or_default());
        line("event", format!("{at}  {reason}  {message}"));
    }
    text
}

/// As it was typed, and where the driver gets it.
fn trace_line(simulation: &Simulation) -> String {
    let (name, place) = (trace_of(simulation), shown(&simulation.spec.driver.trace_path));
    if name == place { name } else { format!("{name}  ({place})") }
}

fn state_line(status: &SimulationStatus) -> String {
    let why = [&status.reason, &status.message].into_iter().flatten().cloned().collect::<Vec<_>>().join(": ");
    let colon = if why.is_empty() { "" } else { "  " };
    format!("{}{colon}{why}", state_name(status.state))
}

fn time(time: &Time) -> String {
    time.0.strftime("%FT%TZ").to_string()
}

/// The driver's log: live, or the last lines.
pub(crate) fn logs(args: &LogsArgs, global: &Global) -> Result<Outcome> {
    let text = cluster::block_on(async {
        let cluster = Cluster::connect(global).await?;
        let simulation = Simulations::of(&cluster).get(&args.name).await?;
        if let Some(text) = log_of_pod(&cluster, &simulation, &args.name).await {
            return Ok(text);
        }
        let mut controller = CONTROLLER.open(&cluster).await?;
        Ok(controller.text(&format!("/logs/{}", args.name), MAX_LOG_BYTES).await?)
    })?;
    output::print(&text)?;
    Ok(Outcome::Good)
}

/// The log of the driver's newest pod, as long as there is one that has something to say.
async fn log_of_pod(cluster: &Cluster, simulation: &Simulation, name: &str) -> Option<String> {
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &simulation.spec.driver.namespace);
    let params = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={}", names::driver_job(name)));
    let pods = api.list(&params).await.ok()?.items;
    let newest = pods.into_iter().max_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0))?;
    let limit = i64::try_from(MAX_LOG_BYTES).ok();
    let params = LogParams { limit_bytes: limit, ..LogParams::default() };
    let text = api.logs(&newest.metadata.name?, &params).await.ok()?;
    (!text.is_empty()).then_some(text)
}

pub(crate) fn pause(args: &NamedArgs, global: &Global) -> Result<Outcome> {
    set_paused(args, Some(Time(k8s_openapi::jiff::Timestamp::now())), global)?;
    output::say(global, &format!("paused; `skctl resume {}` resumes it", args.name));
    Ok(Outcome::Good)
}

pub(crate) fn resume(args: &NamedArgs, global: &Global) -> Result<Outcome> {
    set_paused(args, None, global)?;
    output::say(global, "resumed");
    Ok(Outcome::Good)
}

fn set_paused(args: &NamedArgs, since: Option<Time>, global: &Global) -> Result<()> {
    cluster::block_on(async {
        let cluster = Cluster::connect(global).await?;
        Ok(Simulations::of(&cluster).set_paused(&args.name, since).await?)
    })
}

pub(crate) fn delete(args: &NamedArgs, global: &Global) -> Result<Outcome> {
    cluster::block_on(async {
        let cluster = Cluster::connect(global).await?;
        let simulations = Simulations::of(&cluster);
        simulations.delete(&args.name).await?;
        let progress = Progress::of_unknown_length(format!("{} is being cleaned up", args.name), global.quiet)?;
        let gone = progress.waiting(async {
            while simulations.api.get_metadata_opt(&args.name).await?.is_some() {
                tokio::time::sleep(LOOK).await;
            }
            Ok::<_, kube::Error>(())
        });
        if gone.await.is_err() {
            output::say(global, "no longer waiting; the controller cleans up and then removes it");
            return Ok(Outcome::Interrupted);
        }
        output::say(global, &format!("deleted {} with everything it made", args.name));
        Ok(Outcome::Good)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn simulation() -> Simulation {
        serde_json::from_value(json!({
            "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "week"},
            "spec": {"driver": {"tracePath": "s3://traces/week.sktrace"}, "speed": 10.0, "duration": "1d"},
            "status": {
                "state": "Failed", "reason": "TraceMissing", "message": "there is nothing at s3://traces/week.sktrace",
                "startTime": "2026-11-10T14:00:00Z", "progress": {"percent": 40, "eventsDone": 4, "eventsTotal": 10},
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_failed_simulation_says_why_in_its_second_line() {
        let text = description(&simulation(), Ok(&[]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "state        Failed  TraceMissing: there is nothing at s3://traces/week.sktrace");
        assert!(text.contains("40%, 4 of 10 events"), "{text}");
        assert!(text.contains("speed 10, 1 times, 1d of it"), "{text}");
    }

    #[test]
    fn who_may_not_list_events_is_told_so_in_one_line_and_everything_else() {
        let text = description(&simulation(), Err(&"you may not list its Events".to_owned()));
        assert!(text.contains("state        Failed"), "{text}");
        assert!(text.ends_with("events       you may not list its Events\n"), "{text}");
    }

    #[test]
    fn an_uploaded_trace_is_shown_by_the_name_that_was_typed() {
        let mut simulation = simulation();
        simulation.spec.driver.trace_path = "uploaded:abc".to_owned();
        let name = (names::TRACE_NAME_ANNOTATION.to_owned(), "week.sktrace".to_owned());
        simulation.metadata.annotations = Some([name].into());
        assert!(table(&[simulation.clone()]).trim_end().ends_with("week.sktrace"));
        assert!(description(&simulation, Ok(&[])).contains("trace        week.sktrace  (uploaded:abc)\n"));
    }

    #[test]
    fn where_the_record_lies_is_said_without_what_lets_people_in() {
        let mut simulation = simulation();
        let status = simulation.status.as_mut().unwrap();
        status.record_path = Some("https://me:s3cr3t@host/runs/week".to_owned());
        assert!(description(&simulation, Ok(&[])).contains("record       https://host/runs/week\n"));
    }

    #[test]
    fn the_table_has_a_line_for_each_simulation() {
        let text = table(&[simulation()]);
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("week") && line.contains("Failed")), "{text}");
    }
}
