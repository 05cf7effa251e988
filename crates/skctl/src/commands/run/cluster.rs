//! `skctl run TRACE --cluster`: the same question to a real cluster, in wall time.
//!
//! A Simulation is created, followed until it is over, and its record fetched; what then lies in ./runs and what is
//! printed is what an embedded run leaves. Nothing but the Simulation is touched here. Ctrl-C leaves it running, because
//! it may have taken hours to come this far, and says how to go on or to end it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use sk_api::scenario::Scenario;
use sk_api::simulation::spec::{DriverSpec, LifecycleParams, SimulationSpec};
use sk_api::simulation::{Simulation, State, names};
use sk_core::SimDuration;
use sk_report::Checked;
use sk_store::Location;

use super::{check, conclude, hint_for_the_old_form};
use crate::cli::{Global, RunArgs};
use crate::cluster::simulations::Simulations;
use crate::cluster::{self as clusters, Cluster};
use crate::failure::Outcome;
use crate::scenarios::{self, Resolved};
use crate::simulation::{Followed, fetch, follow};
use crate::times::Asked;
use crate::{answer, examples, runs, traces};

pub(super) fn run(args: &RunArgs, global: &Global) -> Result<Outcome> {
    refuse_what_makes_no_sense(args)?;
    let resolved = scenarios::resolve(args).map_err(|error| hint_for_the_old_form(args, error))?;
    let checked = check(&resolved, args)?;
    let simulation = simulation(args, &resolved)?;
    say_what_is_not_used(args, global);
    let began = Instant::now();
    let name = simulation.metadata.name.clone().unwrap_or_default();
    let dirs = clusters::block_on(async {
        let cluster = Cluster::connect(global).await?;
        replay(&cluster, &simulation, &name, args, global).await
    })?;
    let Some(staged) = dirs else { return Ok(Outcome::Interrupted) };
    judge_all(args, &resolved, staged, &checked, began.elapsed().as_secs_f64())
}

/// What a real cluster cannot do is refused by name.
fn refuse_what_makes_no_sense(args: &RunArgs) -> Result<()> {
    if let Some(text) = &args.part.start {
        if text.parse::<f64>().is_ok() {
            bail!("{text} is no time; did you mean --speed {text}? (-s is the start everywhere)");
        }
        bail!("--start is not for --cluster: a replay begins where the trace does; cut it with `skctl trace slice`");
    }
    if args.part.end.is_some() {
        bail!("--end is not for --cluster: say how long with -D");
    }
    if args.seed.is_some() {
        bail!("--seed is not for --cluster: a real cluster has no seed");
    }
    if args.speed.is_some_and(|speed| !speed.is_finite() || speed <= 0.0) {
        bail!("--speed must be more than 0: 1 is as recorded, 2 is twice as fast");
    }
    Ok(())
}

/// The parts of a scenario that the real cluster decides by itself.
fn say_what_is_not_used(args: &RunArgs, global: &Global) {
    if args.scenario.is_some() {
        let text = "of the scenario, timing, duration and assertions are used: nodes, autoscaler and scheduler are the \
                    cluster's own (`skctl nodes apply` makes nodes)";
        answer::say(global, text);
    }
}

/// What the controller is asked to do.
fn simulation(args: &RunArgs, resolved: &Resolved) -> Result<Simulation> {
    let scenario = &resolved.scenario;
    let asked = Asked::of_run(&args.part, &scenario.trace)?;
    if asked.start.is_some() || asked.end.is_some() {
        bail!("{}: trace.start and trace.end are not for --cluster; use trace.duration", resolved.file);
    }
    let smallest = json!({"driver": {"tracePath": trace_path(&resolved.trace)?}});
    let smallest: SimulationSpec = serde_json::from_value(smallest).context("please report this")?;
    let spec = SimulationSpec {
        driver: DriverSpec { image: args.driver_image.clone(), ..smallest.driver },
        lifecycle_params: lifecycle(scenario),
        duration: asked.duration.map(|duration| format!("{}ms", duration.as_micros() / 1_000)),
        repetitions: args.repetitions.unwrap_or(smallest.repetitions),
        speed: args.speed.unwrap_or(smallest.speed),
        reschedule_interrupted_bare_pods: args.reschedule_interrupted_bare_pods,
        paused_time: args.start_paused.then(|| Time(k8s_openapi::jiff::Timestamp::now())),
        ..smallest
    };
    Ok(Simulation::new(&name(args, resolved)?, spec))
}

fn lifecycle(scenario: &Scenario) -> LifecycleParams {
    let millis = |span: SimDuration| u32::try_from(span.as_micros() / 1_000).unwrap_or(u32::MAX);
    let timing = &scenario.timing;
    LifecycleParams {
        image_pull_delay: millis(timing.image_pull_delay),
        image_pull_jitter: millis(timing.image_pull_jitter),
        pod_startup_delay: millis(timing.pod_startup_delay),
        pod_startup_jitter: millis(timing.pod_startup_jitter),
    }
}

/// Where the driver finds the trace. What only this process can read is refused.
fn trace_path(typed: &str) -> Result<String> {
    let advice = "the driver in the cluster cannot read it; put it where it can: \
                  `skctl trace convert TRACE s3://bucket/name.sktrace`, or a path on its node";
    if typed == "-" || typed.starts_with(examples::PREFIX) {
        bail!("{typed} is only here; {advice}");
    }
    match typed.parse::<Location>()? {
        Location::Remote(_) => Ok(typed.to_owned()),
        Location::StandardInput => bail!("{typed} is only here; {advice}"),
        Location::File(path) if path.is_dir() => bail!("{typed} is a folder; {advice}"),
        Location::File(path) => {
            let absolute = std::path::absolute(&path).with_context(|| format!("cannot find {typed}"))?;
            let text = absolute.to_str().ok_or_else(|| anyhow!("{typed} is no path that YAML can hold"))?;
            Ok(text.to_owned())
        }
    }
}

/// The Simulation's name: as typed, or after the trace with something that makes it the only one.
fn name(args: &RunArgs, resolved: &Resolved) -> Result<String> {
    if let Some(name) = &args.name {
        let dns = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
        if name.is_empty() || !name.chars().all(dns) || name.starts_with('-') || name.ends_with('-') {
            bail!("--name {name}: on a cluster a name is lower-case letters, digits and dashes");
        }
        return Ok(name.clone());
    }
    let given = resolved.scenario.name.as_ref().map(ToString::to_string);
    let given = given.unwrap_or_else(|| traces::default_name(&resolved.trace));
    let seconds = k8s_openapi::jiff::Timestamp::now().as_second();
    Ok(unique(&given, u64::try_from(seconds).unwrap_or(0)))
}

/// A DNS label from any name and a number.
fn unique(name: &str, number: u64) -> String {
    let suffix = format!("{number:x}");
    let plain: String = name
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '-' })
        .take(names::MAX_SIMULATION_NAME - suffix.len() - 1)
        .collect();
    let plain = plain.trim_matches('-');
    format!("{}-{suffix}", if plain.is_empty() { "run" } else { plain })
}

/// Creates it, follows it and fetches its records; `None` if somebody lost patience.
async fn replay(
    cluster: &Cluster,
    simulation: &Simulation,
    name: &str,
    args: &RunArgs,
    global: &Global,
) -> Result<Option<Vec<sk_record::Staged>>> {
    let simulations = Simulations::of(cluster);
    simulations.check_mark().await?;
    simulations.create(simulation).await?;
    answer::say(global, &format!("Simulation {name} on {cluster}"));
    let over = match follow(&simulations, name, global).await? {
        Followed::Over(over) => over,
        Followed::LeftRunning => {
            let text = format!(
                "{name} goes on without you. See it: skctl describe {name}; let it wait: skctl pause {name}; end it: \
                 skctl delete {name}"
            );
            answer::say(global, &text);
            return Ok(None);
        }
    };
    let status = over.status.unwrap_or_default();
    if status.state != Some(State::Finished) {
        let why = status.message.or(status.reason).unwrap_or_else(|| "it does not say why".to_owned());
        bail!("Simulation {name} failed: {why}; `skctl logs {name}` shows what the driver said last");
    }
    let mut fetched = Vec::new();
    for repetition in 0..simulation.spec.repetitions {
        let dir = folder(args.out.as_deref(), name, simulation.spec.repetitions, repetition);
        fetched.push(fetch(cluster, name, repetition, &dir, global).await?);
    }
    Ok(Some(fetched))
}

/// The folder of one repetition.
fn folder(out: Option<&Path>, name: &str, repetitions: u32, repetition: u32) -> PathBuf {
    let dir = out.map_or_else(|| runs::default_dir(name), Path::to_owned);
    if repetitions == 1 {
        return dir;
    }
    let last = dir.file_name().map(|last| last.to_string_lossy().into_owned()).unwrap_or_default();
    dir.with_file_name(format!("{last}.{repetition}"))
}

/// Judges and prints each repetition; all of them must be good.
fn judge_all(
    args: &RunArgs,
    resolved: &Resolved,
    staged: Vec<sk_record::Staged>,
    checked: &Checked,
    wall_s: f64,
) -> Result<Outcome> {
    let text = resolved.scenario.to_yaml();
    let mut all = Outcome::Good;
    for mut staged in staged {
        staged.add_file("scenario.yaml", text.as_bytes())?;
        let outcome = conclude::conclude(args, &resolved.trace, staged, checked, &text, wall_s)?;
        if outcome != Outcome::Good {
            all = outcome;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_a_dns_label_that_is_short_enough_for_what_is_made_from_it() {
        assert_eq!(unique("Week 46", 255), "week-46-ff");
        assert_eq!(unique("…", 1), "run-1");
        assert!(unique(&"x".repeat(200), u64::MAX).len() <= names::MAX_SIMULATION_NAME);
    }

    #[test]
    fn a_trace_that_only_this_process_can_read_is_refused() {
        assert!(trace_path("example:nginx").unwrap_err().to_string().contains("cannot read it"));
        assert!(trace_path("-").is_err());
        assert_eq!(trace_path("s3://bucket/week.sktrace").unwrap(), "s3://bucket/week.sktrace");
        assert_eq!(trace_path("/traces/week.sktrace").unwrap(), "/traces/week.sktrace");
        assert!(trace_path("week.sktrace").unwrap().starts_with('/'));
    }

    #[test]
    fn repetitions_lie_side_by_side() {
        assert_eq!(folder(None, "week-1", 1, 0), Path::new("runs/week-1"));
        assert_eq!(folder(None, "week-1", 3, 2), Path::new("runs/week-1.2"));
        assert_eq!(folder(Some(Path::new("out/here")), "week-1", 3, 0), Path::new("out/here.0"));
    }
}
