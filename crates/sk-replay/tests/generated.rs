//! A generated cluster beside its own replay: `trace generate` tells what happened to every pod, by rules of its own, and
//! the engine must come to nearly the same on the same nodes. Compared as `skctl compare TRACE RUN` does.

use std::ops::ControlFlow;

use sk_api::Scenario;
use sk_core::SimDuration;
use sk_replay::embedded::{self, RunRequest};
use sk_replay::plan::Window;
use sk_replay::recorded::Recorded;
use sk_replay::setup::Setup;
use sk_report::fidelity::Recording;
use sk_report::{Analysis, Tables};
use sk_store::trace::{self, Format};
use sk_trace::generate::{Batch, Cron, GenerateSpec, Platform, Services, generate};

/// Eight busy hours of every kind that is generated. Two of the machines are drained and replaced.
fn workload() -> GenerateSpec {
    GenerateSpec {
        seed: 8,
        start: GenerateSpec::default().start + SimDuration::from_mins(6 * 60),
        duration: SimDuration::from_mins(8 * 60),
        namespaces: 8,
        services: Services { count: 60, rollouts_per_day: 6.0, replaced_per_day: 20.0, ..Services::default() },
        batch: Batch { jobs_per_hour: 60.0, bursts_per_day: 12.0, jobs_per_burst: 10, ..Batch::default() },
        cron: Cron { count: 15, ..Cron::default() },
        platform: Some(Platform { stateful: 20, daemons: 4, machines: 80, budgets: 0.5 }),
        ..GenerateSpec::default()
    }
}

/// The generated containers start after 0.8 to 9 s, evenly spread.
const SCENARIO: &str = "apiVersion: simkube.io/v1
kind: Scenario
cluster: {nodes: recorded}
timing: {podStartupDelay: 4900ms}
";

#[test]
fn a_generated_cluster_comes_out_of_its_replay_as_it_was() {
    let bytes = generate(&workload(), Format::Native, Vec::new()).expect("it is generated").out;
    let trace = trace::from_bytes("generated", bytes).expect("it opens");
    let (start, end) = trace.span().expect("it has a span");
    let window = Window { start, end, includes_end: true };
    let scenario = Scenario::parse("test.yaml", SCENARIO).expect("the scenario is well-formed");
    let setup = Setup::new(&scenario);
    let request = RunRequest::new(&trace, window, &setup, SCENARIO, "replay");
    let dir = tempfile::tempdir().expect("there is room for a temporary folder");
    let staged = embedded::run(&request, &dir.path().join("run"), &mut |_| ControlFlow::Continue(()));
    let staged = staged.expect("it runs");
    let run = staged.run().expect("its record opens");
    let Recorded { meta, pods, nodes, series, decisions } = Recorded::of(&trace, window, "0").expect("a recording");
    let reality = Tables { meta, pods, nodes, series, decisions, autoscaler: Vec::new() };
    let was = Analysis::of(&reality).expect("what was is read").summary;
    let mut analysis = Analysis::of(&run).expect("the run is read");
    Recording::of(&reality).expect("a recording").beside(&mut analysis, &run).expect("both are read");
    let (is, fidelity) = (&analysis.summary, analysis.summary.fidelity.as_ref().expect("it is beside its recording"));

    // Rules of the generator stop short of races: when a machine is drained, which pods of a rollout are left to be moved.
    assert!(fidelity.pods.compared > 1_500 && fidelity.pods.unmatched * 100 < fidelity.pods.compared, "{fidelity:?}");
    assert!(fidelity.pods.within_5s > 0.99, "{fidelity:?}");
    assert!(fidelity.node_hours.as_ref().is_some_and(|hours| hours.error < 0.001), "{fidelity:?}");
    assert!((was.requested.cpu - is.requested.cpu).abs() < 0.01, "{:?} and {:?}", was.requested, is.requested);
    assert_eq!(is.unschedulable.pods, 0, "there was room for all, and there is");
    assert!(is.evicted.pods > 5, "machines are drained: {:?}", is.evicted);
}
