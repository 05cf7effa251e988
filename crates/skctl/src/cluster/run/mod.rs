//! `skctl run TRACE --cluster`: replays on a real cluster, in wall-clock time.
//!
//! A local trace is uploaded to the controller. Then skctl creates a Simulation, follows it until it is over and
//! fetches its record; the folder in ./runs and the printed summary are those of an embedded run. Only the Simulation
//! is changed here. Ctrl-C leaves the Simulation running, because it may have run for hours, and prints how to continue
//! or delete it. The record of a failed run is fetched too.

mod request;
mod simkube2;

use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use kube::ResourceExt;
use sk_api::simulation::{Simulation, State, names};
use sk_core::SimDuration;
use sk_record::Staged;
use sk_replay::setup::Setup;
use sk_report::Scope;
use sk_store::Location;

use self::request::{MAX_SCENARIO_BYTES, asked};
use crate::cli::{Global, RunArgs};
use crate::cluster::simulation::{Followed, follow, name_of, trace_of, why_it_failed};
use crate::cluster::simulations::Simulations;
use crate::cluster::upload::TraceFile;
use crate::cluster::{self as clusters, Cluster, record};
use crate::commands::run::conclude::{self, Judge};
use crate::commands::run::{for_report, hint_for_the_old_form, in_file, span};
use crate::confined::assertions::{self, Checked};
use crate::failure::Outcome;
use crate::scenarios::{self, Resolved};
use crate::times::{self, Clock};
use crate::{examples, output, runs, traces};

pub(crate) fn run(args: &RunArgs, global: &Global) -> Result<Outcome> {
    request::refuse_what_makes_no_sense(args)?;
    let resolved = scenarios::resolve(args).map_err(|error| hint_for_the_old_form(args, error))?;
    request::refuse_what_is_written(&resolved)?;
    let checked = check(&resolved, args)?;
    let Source { place, trace_file, assumed } = source(args, &resolved, global)?;
    let simulation = request::simulation(args, &resolved, &place, assumed)?;
    say_what_is_not_used(args, global);
    say_what_does_not_travel(&simulation, global);
    if let Some(assumed) = assumed {
        output::say(global, &format!("{} has no duration: replaying {assumed}; set yours with -D", resolved.trace));
    }
    let terms = conclude::terms(&resolved.scenario, args);
    let judge = Judge { checked: &checked, terms: &terms, baseline: None };
    let began = Instant::now();
    let ended = clusters::block_on(async {
        let cluster = Cluster::connect(global).await?;
        replay(&cluster, simulation, trace_file, args, global).await
    })?;
    match ended {
        Ended::Left => Ok(Outcome::Interrupted),
        Ended::Finished(staged) => judge_all(args, &resolved, staged, judge, began.elapsed().as_secs_f64()),
        Ended::Failed { name, why, staged } => {
            keep_all(&resolved, staged, judge, global)?;
            bail!("Simulation {name} failed: {why}; `{} logs {name}` shows the driver's log", global.again())
        }
    }
}

/// The assertions, found to be well-formed before anything runs.
fn check(resolved: &Resolved, args: &RunArgs) -> Result<Checked> {
    let scenario = &resolved.scenario;
    let checked = assertions::check(for_report(&scenario.assertions), &Setup::new(scenario).groups(), Scope::default());
    checked.map_err(|error| in_file(scenario, args.request.assert.len(), error))
}

/// The trace, from the driver's point of view.
struct Source {
    /// The Simulation's `tracePath`.
    place: String,
    /// What has to travel before, unless the driver can fetch it itself.
    trace_file: Option<TraceFile>,
    /// How long a trace without any length is replayed.
    assumed: Option<SimDuration>,
}

/// A URL is the driver's to fetch, and `file://` a path on its node. Everything else is read here and goes along.
fn source(args: &RunArgs, resolved: &Resolved, global: &Global) -> Result<Source> {
    let typed = &resolved.trace;
    if !typed.starts_with(examples::PREFIX) {
        let location: Location = typed.parse()?;
        if matches!(location, Location::Remote(_)) || typed.starts_with("file://") {
            return Ok(Source { place: typed.clone(), trace_file: None, assumed: None });
        }
    }
    let trace = traces::open(typed, global).map_err(|error| hint_for_a_nodes_path(typed, error))?;
    let (window, is_assumed) = times::window(&asked(args, resolved)?, span(&trace), &Clock::of(global))?;
    let trace_file = TraceFile::pack(typed, &trace)?;
    Ok(Source {
        place: names::uploaded_trace_path(&trace_file.sha256),
        trace_file: Some(trace_file),
        assumed: is_assumed.then(|| window.end.since(window.start)),
    })
}

/// Somebody may mean a path that only the cluster's node has.
fn hint_for_a_nodes_path(typed: &str, error: anyhow::Error) -> anyhow::Error {
    if typed.starts_with('/') && !std::path::Path::new(typed).exists() {
        return anyhow!("{error:#}; if it is on the node of the cluster, write file://{typed}");
    }
    error
}

/// The parts of a scenario that the real cluster decides by itself.
fn say_what_is_not_used(args: &RunArgs, global: &Global) {
    if args.request.scenario.is_some() {
        let text = "of the scenario, timing, duration and assertions are used: nodes, autoscaler and scheduler are the \
                    cluster's own (`skctl nodes apply` makes nodes)";
        output::say(global, text);
    }
}

/// A scenario that an annotation cannot hold stays here, and only this command can judge by it.
fn say_what_does_not_travel(simulation: &Simulation, global: &Global) {
    if !simulation.annotations().contains_key(names::SCENARIO_ANNOTATION) {
        let most = MAX_SCENARIO_BYTES >> 10;
        let text = format!(
            "the scenario has more than {most} KiB, so it does not travel with the Simulation: this run is judged by it, \
             but `skctl report {} --cluster` will know of no assertions",
            name_of(simulation)
        );
        output::say(global, &text);
    }
}

/// How it ended, with the records that there are.
enum Ended {
    Finished(Vec<Staged>),
    Failed {
        name: String,
        why: String,
        staged: Vec<Staged>,
    },
    /// The user pressed Ctrl-C; it continues.
    Left,
}

/// Sends the trace, creates the Simulation, follows it and fetches its records.
async fn replay(
    cluster: &Cluster,
    simulation: Simulation,
    trace_file: Option<TraceFile>,
    args: &RunArgs,
    global: &Global,
) -> Result<Ended> {
    let name = name_of(&simulation);
    let simulations = Simulations::of(cluster);
    simulations.check_mark().await?;
    if let Some(trace_file) = trace_file {
        // Checked before gigabytes are uploaded for nothing; a race is reported by the server.
        simulations.check_free(&name).await?;
        trace_file.send(cluster, &trace_of(&simulation), global).await?;
    }
    simulations.create(&simulation).await?;
    output::say(global, &format!("Simulation {name} on {cluster}"));
    let over = match follow(&simulations, &name, global).await? {
        Followed::Over(over) => *over,
        Followed::LeftRunning => {
            output::say(global, &farewell(&name, global));
            return Ok(Ended::Left);
        }
    };
    let is_finished = over.status.as_ref().is_some_and(|status| status.state == Some(State::Finished));
    let kept = if is_finished { Ok((0..over.spec.repetitions).collect()) } else { record::kept(cluster, &over).await };
    let repetitions: Vec<u32> = kept.unwrap_or_else(|error| {
        output::say(global, &format!("cannot find out whether it has left a record: {error:#}"));
        Vec::new()
    });
    let mut staged = Vec::new();
    for repetition in repetitions {
        let dir = runs::of_repetition(args.out.as_deref(), &name, over.spec.repetitions, repetition);
        match record::fetch(cluster, &over, repetition, &dir, global).await {
            Ok(record) => staged.push(record),
            Err(error) if is_finished => return Err(error),
            // What the simulation failed of matters more than what could not be fetched of it.
            Err(error) => output::say(global, &format!("repetition {repetition} has no record: {error:#}")),
        }
    }
    Ok(if is_finished { Ended::Finished(staged) } else { Ended::Failed { why: why_it_failed(&over), name, staged } })
}

/// What the user can do later.
fn farewell(name: &str, global: &Global) -> String {
    let again = global.again();
    format!(
        "Simulation {name} keeps running.\n  how far it is:  {again} describe {name}\n  when it is over:  {again} report {name} \
         --cluster\n  to end it:  {again} delete {name}"
    )
}

/// Judges and prints each repetition; all of them must be good.
fn judge_all(
    args: &RunArgs,
    resolved: &Resolved,
    staged: Vec<Staged>,
    judge: Judge<'_>,
    wall_s: f64,
) -> Result<Outcome> {
    let text = resolved.scenario.to_yaml();
    let mut all = Outcome::Good;
    for mut staged in staged {
        staged.add_file("scenario.yaml", text.as_bytes())?;
        let concluded = conclude::publish(staged, judge, &text)?;
        conclude::print(args, &resolved.trace, &concluded, wall_s)?;
        let outcome = conclude::outcome(&concluded);
        if outcome != Outcome::Good {
            all = outcome;
        }
    }
    Ok(all)
}

/// Stores the record of a failed simulation and prints where; its figures are not this command's result.
fn keep_all(resolved: &Resolved, staged: Vec<Staged>, judge: Judge<'_>, global: &Global) -> Result<()> {
    let text = resolved.scenario.to_yaml();
    for mut staged in staged {
        staged.add_file("scenario.yaml", text.as_bytes())?;
        let concluded = conclude::publish(staged, judge, &text)?;
        let partial = if concluded.analysis.meta.partial { ", which is partial" } else { "" };
        let dir = concluded.dir.display();
        output::say(global, &format!("kept the record{partial}: {dir}; `skctl report {dir}` shows it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn source_of(typed: &str) -> Result<Source> {
        let cli = Cli::try_parse_from(["skctl", "run", typed, "--cluster"]).unwrap();
        let Command::Run(args) = cli.command else { panic!("it is a run") };
        source(&args, &scenarios::resolve(&args)?, &cli.global)
    }

    #[test]
    fn only_what_the_driver_cannot_fetch_travels() {
        for typed in ["s3://bucket/week.sktrace", "https://host/week.sktrace", "file:///traces/week.sktrace"] {
            let source = source_of(typed).unwrap();
            assert_eq!(source.place, typed);
            assert!(source.trace_file.is_none() && source.assumed.is_none());
        }
        let example = source_of("example:nginx").unwrap();
        let trace_file = example.trace_file.expect("it is only here");
        assert_eq!(names::uploaded_trace(&example.place), Some(trace_file.sha256.as_str()));
        assert!(example.assumed.is_none(), "it has a length of its own");
    }

    #[test]
    fn who_means_a_path_on_the_node_is_told_how_to_write_it() {
        let refused = |typed: &str| format!("{:#}", source_of(typed).err().expect("there is no such file"));
        assert!(refused("/no/such.sktrace").contains("file:///no/such.sktrace"));
        assert!(!refused("no-such.sktrace").contains("file://"));
    }
}
