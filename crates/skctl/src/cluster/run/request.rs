//! Builds the Simulation for `skctl run --cluster` from its flags.
//!
//! A flag that a real cluster cannot honour is refused by name, never ignored, and what the API server would refuse is
//! refused here already, before a trace is uploaded.

use anyhow::{Context, Result, bail};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use sk_api::scenario::{Assertion, Assignment, Holds, Path as ScenarioPath, Scenario};
use sk_api::simulation::spec::{DriverSpec, LifecycleParams, RecordSpec, SimulationSpec};
use sk_api::simulation::{Simulation, names};
use sk_core::SimDuration;
use sk_store::Location;

use super::simkube2;
use crate::cli::{RunArgs, TableFormat};
use crate::scenarios::Resolved;
use crate::times::Asked;
use crate::traces;

/// Speeds that the definition of Simulations takes.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=10_000.0;
/// A record that goes sooner than this might be gone before it is fetched.
const MIN_TTL: SimDuration = SimDuration::from_mins(1);
/// The longest that the definition of Simulations takes: a year.
const MAX_TTL: SimDuration = SimDuration::from_mins(365 * 24 * 60);
/// A scenario that travels with its Simulation. All annotations of an object may have 256 KiB.
pub(super) const MAX_SCENARIO_BYTES: usize = 128 << 10;
/// What of a scenario means something on a real cluster; `--set` of anything else is refused.
const USED: [&[&str]; 9] = [
    &["assert"],
    &["name"],
    &["repetitions"],
    &["trace", "from"],
    &["trace", "duration"],
    &["timing", "imagePullDelay"],
    &["timing", "imagePullJitter"],
    &["timing", "podStartupDelay"],
    &["timing", "podStartupJitter"],
];

/// What a real cluster cannot do is refused by name.
pub(super) fn refuse_what_makes_no_sense(args: &RunArgs) -> Result<()> {
    if let Some(text) = &args.request.part.start {
        if text.parse::<f64>().is_ok() {
            bail!("{text} is not a time; did you mean --speed {text}? (-s is --start)");
        }
        bail!("--start is not for --cluster: a replay begins where the trace does; cut it with `skctl trace slice`");
    }
    if args.request.part.end.is_some() {
        bail!("--end is not for --cluster: use -D");
    }
    let others = [
        ("--vary", !args.request.vary.is_empty(), "one Simulation is one run; create one for each value"),
        ("--overlay", !args.request.overlay.is_empty(), "the driver replays the trace as it is"),
        ("--baseline", args.baseline.is_some(), "fetch the record with `skctl report NAME --cluster` first"),
        ("--jobs", args.jobs.is_some(), "a cluster runs one Simulation at a time"),
        ("--junit", args.junit.is_some(), "each run's folder has a junit.xml"),
        ("--output json", args.output == TableFormat::Json, "use `skctl report NAME --cluster -o json`"),
        ("--dry-run", args.dry_run, "`skctl validate TRACE` checks the trace"),
    ];
    if let Some((flag, _, why)) = others.iter().find(|(_, is_typed, _)| *is_typed) {
        bail!("{flag} is not for --cluster: {why}");
    }
    if args.request.seed.is_some() {
        bail!("--seed is not for --cluster: a real cluster has no seed");
    }
    if args.speed.is_some_and(|speed| !speed.is_finite() || speed <= 0.0) {
        bail!("--speed must be more than 0: 1 is as recorded, 2 is twice as fast");
    }
    if let Some(speed) = args.speed.filter(|speed| !SPEEDS.contains(speed)) {
        bail!("--speed {speed}: must be from {} to {}", SPEEDS.start(), SPEEDS.end());
    }
    let most = names::MAX_REPETITIONS;
    if let Some(repetitions) = args.request.repetitions.filter(|repetitions| !(1..=most).contains(repetitions)) {
        bail!("--repetitions {repetitions}: must be from 1 to {most}");
    }
    args.request.set.iter().try_for_each(|text| refuse_unused(text))
}

/// What the scenario asks for and a real cluster cannot do is refused by name too.
pub(super) fn refuse_what_is_written(resolved: &Resolved) -> Result<()> {
    let Scenario { trace, begin, timeline, variants, assertions, repetitions, .. } = &resolved.scenario;
    let of_several = |assertion: &Assertion| matches!(assertion.holds, Holds::Any | Holds::Mean);
    let written = [
        ("variants", !variants.is_empty()),
        ("begin.placement", begin.placement.is_some()),
        ("begin.warmup", begin.warmup > SimDuration::ZERO),
        ("timeline", !timeline.is_empty()),
        ("trace.overlay", !trace.overlay.is_empty()),
        ("trace.transform", trace.transform.is_some()),
        ("assert with `for: any` or `for: mean`", *repetitions > 1 && assertions.iter().any(of_several)),
    ];
    match written.iter().find(|(_, is_written)| *is_written) {
        Some((field, _)) => {
            bail!("{}: {field} is not for --cluster: take it out, or run without --cluster", resolved.file)
        }
        None => Ok(()),
    }
}

/// A field that the cluster decides about by itself must not look as if it had been changed.
fn refuse_unused(text: &str) -> Result<()> {
    let assignment: Assignment = text.parse()?;
    let steps = assignment.path().steps();
    let is_used = USED.iter().any(|used| {
        let used = ScenarioPath::of(used.iter().copied());
        steps.starts_with(used.steps())
    });
    if is_used {
        return Ok(());
    }
    bail!(
        "--set {}: not for --cluster: nodes, autoscaler, scheduler and chance are the cluster's own; change them there \
         (`skctl nodes apply -f SCENARIO` makes nodes)",
        assignment.path()
    )
}

/// What the controller is asked to do. `place` is where the driver finds the trace, `assumed` how long a trace without
/// any length is replayed.
pub(super) fn simulation(
    args: &RunArgs,
    resolved: &Resolved,
    place: &str,
    assumed: Option<SimDuration>,
) -> Result<Simulation> {
    let scenario = &resolved.scenario;
    let asked = asked(args, resolved)?;
    let smallest = json!({"driver": {"tracePath": place}});
    let smallest: SimulationSpec = serde_json::from_value(smallest).context("please report this")?;
    let driver = DriverSpec {
        image: args.driver_image.clone(),
        port: args.driver_port.unwrap_or(smallest.driver.port),
        secrets: args.driver_secrets.clone(),
        ..smallest.driver.clone()
    };
    let mut spec = SimulationSpec {
        driver,
        lifecycle_params: lifecycle(scenario),
        duration: asked.duration.or(assumed).map(|duration| format!("{}ms", duration.as_micros() / 1_000)),
        repetitions: scenario.repetitions,
        speed: args.speed.unwrap_or(smallest.speed),
        reschedule_interrupted_bare_pods: args.reschedule_interrupted_bare_pods,
        paused_time: args.start_paused.then(|| Time(k8s_openapi::jiff::Timestamp::now())),
        record: RecordSpec { path: record_path(args)?, ttl_seconds_after_finished: ttl(args)? },
        ..smallest
    };
    simkube2::apply(&args.old, &mut spec)?;
    let mut simulation = Simulation::new(&name(args, resolved)?, spec);
    simulation.metadata.annotations = Some(annotations(resolved, place).into_iter().collect());
    Ok(simulation)
}

/// Which part of the trace; only its length can be said.
pub(super) fn asked(args: &RunArgs, resolved: &Resolved) -> Result<Asked> {
    let asked = Asked::of_run(&args.request.part, &resolved.scenario.trace)?;
    if asked.start.is_some() || asked.end.is_some() {
        bail!("{}: trace.start and trace.end are not for --cluster; use trace.duration", resolved.file);
    }
    Ok(asked)
}

/// What people call a trace that is a hash to the controller, and what must hold: `skctl report NAME --cluster` judges by
/// it, wherever it is typed.
fn annotations(resolved: &Resolved, place: &str) -> Vec<(String, String)> {
    let mut annotations = Vec::new();
    if names::uploaded_trace(place).is_some() {
        annotations.push((names::TRACE_NAME_ANNOTATION.to_owned(), resolved.trace.clone()));
    }
    let scenario = resolved.scenario.to_yaml();
    if scenario.len() <= MAX_SCENARIO_BYTES {
        annotations.push((names::SCENARIO_ANNOTATION.to_owned(), scenario));
    }
    annotations
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

/// A folder of an object store: what the driver writes on its own disk is gone with its pod.
fn record_path(args: &RunArgs) -> Result<Option<String>> {
    let Some(path) = &args.record_path else { return Ok(None) };
    match path.parse::<Location>().context("--record-path")? {
        Location::Remote(_) => Ok(Some(path.trim_end_matches('/').to_owned())),
        _ => bail!("--record-path {path}: the driver's disk is deleted with its pod; use s3://, gs:// or azure://"),
    }
}

fn ttl(args: &RunArgs) -> Result<Option<u32>> {
    let Some(text) = &args.ttl else { return Ok(None) };
    let ttl: SimDuration = text.parse().context("--ttl")?;
    if !(MIN_TTL..=MAX_TTL).contains(&ttl) {
        bail!(
            "--ttl {text}: must be from {MIN_TTL} to {MAX_TTL}; sooner, the record might be deleted before it is fetched"
        );
    }
    Ok(u32::try_from(ttl.as_micros() / 1_000_000).ok())
}

/// The Simulation's name: as typed, or after the trace with something that makes it the only one.
fn name(args: &RunArgs, resolved: &Resolved) -> Result<String> {
    if let Some(name) = &args.request.name {
        let dns = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
        if name.is_empty() || !name.chars().all(dns) || name.starts_with('-') || name.ends_with('-') {
            bail!("--name {name}: on a cluster a name has lower-case letters, digits and dashes only");
        }
        let most = names::MAX_SIMULATION_NAME;
        if name.len() > most {
            bail!("--name {name}: it has {} characters, and on a cluster a name has at most {most}", name.len());
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

#[cfg(test)]
mod tests {
    use clap::Parser;
    use sk_api::simulation::spec::DEFAULT_PORT;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::scenarios;

    /// What these flags ask for, of `example:nginx`.
    fn ask(line: &str) -> Result<Simulation> {
        let words = ["skctl", "run", "example:nginx", "--cluster"].into_iter().chain(line.split_whitespace());
        let Command::Run(args) = Cli::try_parse_from(words).unwrap().command else { panic!("it is a run") };
        refuse_what_makes_no_sense(&args)?;
        simulation(&args, &scenarios::resolve(&args)?, &names::uploaded_trace_path(&"0".repeat(64)), None)
    }

    #[test]
    fn a_name_becomes_a_dns_label_that_is_short_enough_for_what_is_made_from_it() {
        assert_eq!(unique("Week 46", 255), "week-46-ff");
        assert_eq!(unique("…", 1), "run-1");
        assert!(unique(&"x".repeat(200), u64::MAX).len() <= names::MAX_SIMULATION_NAME);
    }

    #[test]
    fn flags_become_fields() {
        let line = "--name a --record-path s3://runs/a/ --ttl 1d --driver-secret s3 --driver-secret ca -N 2 -D 90s";
        let line = format!("{line} --driver-port 10250");
        let Simulation { metadata, spec, .. } = ask(&line).unwrap();
        assert_eq!(metadata.name.as_deref(), Some("a"));
        assert_eq!(spec.record.path.as_deref(), Some("s3://runs/a"));
        assert_eq!(spec.record.ttl_seconds_after_finished, Some(86_400));
        assert_eq!(spec.driver.secrets, ["s3", "ca"]);
        assert_eq!((spec.driver.port, ask("").unwrap().spec.driver.port), (10_250, DEFAULT_PORT));
        assert_eq!((spec.repetitions, spec.duration.as_deref()), (2, Some("90000ms")));
        let annotations = metadata.annotations.unwrap();
        assert_eq!(annotations[names::TRACE_NAME_ANNOTATION], "example:nginx");
        let scenario = Scenario::parse("annotation", &annotations[names::SCENARIO_ANNOTATION]).unwrap();
        assert!(!scenario.assertions.is_empty(), "what must hold travels along");
    }

    #[test]
    fn what_the_cluster_cannot_do_is_refused_by_name() {
        for (line, words) in [
            ("--set cluster.groups.small.max=3", "--set cluster.groups.small.max: not for --cluster"),
            ("--set seed=7", "--set seed: not for --cluster"),
            ("--set timing.profile=ideal", "--set timing.profile: not for --cluster"),
            ("--record-path runs/a", "is deleted with its pod"),
            ("--ttl 1s", "might be deleted before it is fetched"),
            ("--ttl soon", "--ttl"),
            ("-N 0", "from 1 to 1000"),
            ("--speed 20000", "from 0.001 to 10000"),
        ] {
            let refused = format!("{:#}", ask(line).unwrap_err());
            assert!(refused.contains(words), "{line}: {refused}");
        }
        let long = format!("--name {}", "a".repeat(50));
        assert!(ask(&long).unwrap_err().to_string().contains("at most 49"));
        let set = ask("--set timing.podStartupDelay=3s").unwrap();
        assert_eq!(set.spec.lifecycle_params.pod_startup_delay, 3_000);
    }
}
