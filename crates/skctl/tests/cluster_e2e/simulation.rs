//! A whole simulation, from an empty cluster to the report: installed, marked, given nodes, run, followed, fetched.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use sk_api::simulation::{Simulation, State, names};
use sk_testkit::control_plane::eventually;
use sk_testkit::options::DEFAULT_STAGES;
use sk_testkit::process_runner::{ProcessRunner, RunnerOptions};
use sk_testkit::{Options, objects};

use super::fixture::{Fixture, LIMIT};
use super::recording::{interrupt, until_said};

/// What the installation calls the driver here; the process runner knows what it is.
const DRIVER_IMAGE: &str = "sk-driver:real";

const SCENARIO: &str = "apiVersion: simkube.io/v1
kind: Scenario
cluster:
  groups:
    virtual: {min: 3, max: 3, cpu: 8, memory: 32Gi}
assert:
  - pods.created >= 10
  - unschedulable.pods == 0
";

/// Kills the controller when the story is over, however it ends.
struct Controller(Child);

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulation_is_run_from_an_empty_cluster_to_the_report() {
    let options = Options::default().webhook_routing().service_account_admission();
    let fixture = Fixture::start_with(options, &stages()).await;
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/nginx.sktrace");
    std::fs::copy(trace, fixture.path("nginx.sktrace")).expect("the example is there");
    std::fs::write(fixture.path("nodes.yaml"), SCENARIO).expect("a temporary folder can be written to");

    // Nobody has said that this cluster is one for simulations.
    let out = fixture.skctl().args(["run", "nginx.sktrace", "--cluster"]).assert().code(2);
    out.stderr(contains("is not marked").and(contains("skctl --context testkit install sim")));
    fixture.skctl().args(["list", "--cluster"]).assert().code(2).stderr(contains("skctl install sim"));
    fixture.skctl().args(["doctor", "sim"]).assert().code(1).stdout(contains("FAIL  mark"));

    let _runner = install(&fixture).await;
    let _controller = start_controller(&fixture).await;
    let out = fixture.skctl().args(["nodes", "apply", "-f", "nodes.yaml"]).assert().success();
    out.stdout(contains("3 of 3 nodes created"));
    fixture.skctl().args(["nodes", "apply", "-f", "nodes.yaml"]).assert().success().stdout(contains("0 of 3 nodes"));
    fixture.until_well("sim").await;

    a_run_ends_with_the_report(&fixture);
    what_was_run_can_be_looked_at(&fixture);
    a_run_that_is_left_goes_on_and_can_be_paused_and_deleted(&fixture).await;

    let out = fixture.skctl().args(["nodes", "apply", "-f", "nodes.yaml", "--delete"]).assert().success();
    out.stdout(contains("3 of 3 nodes removed"));
    foreign_nodes_are_left_alone(&fixture).await;
}

fn a_run_ends_with_the_report(fixture: &Fixture) {
    let words = ["run", "nginx.sktrace", "--cluster", "--name", "whole", "--speed", "240", "-f", "nodes.yaml"];
    let out = fixture.skctl().args(words).assert().success();
    out.stdout(contains("PASS   2 of 2 assertions")).stderr(contains("Simulation whole on context testkit"));
    for file in ["summary.json", "run.json", "scenario.yaml", "report.html", "junit.xml", "pods.parquet"] {
        assert!(fixture.path("runs/whole").join(file).is_file(), "{file} is missing");
    }
    let run: Value = serde_json::from_slice(&std::fs::read(fixture.path("runs/whole/run.json")).expect("it is there"))
        .expect("JSON");
    assert_eq!(run["engine"], "cluster");
    fixture.skctl().args(["report", "whole"]).assert().success().stdout(contains("PASS"));
    let out = fixture.skctl().args(words).assert().code(2);
    out.stderr(contains("there is a Simulation whole already"));
}

fn what_was_run_can_be_looked_at(fixture: &Fixture) {
    let out = fixture.skctl().args(["list", "--cluster"]).assert().success();
    out.stdout(contains("whole").and(contains("Finished")));
    let out = fixture.skctl().args(["describe", "whole"]).assert().success();
    out.stdout(contains("state        Finished").and(contains("totals")).and(contains("record")));
    let out = fixture.skctl().args(["describe", "whole", "-o", "json"]).assert().success();
    let simulation: Simulation = serde_json::from_slice(&out.get_output().stdout).expect("a Simulation in JSON");
    assert_eq!(simulation.spec.speed, 240.0);
    fixture.skctl().args(["describe", "whole", "-o", "yaml"]).assert().success().stdout(contains("speed: 240"));
    fixture.skctl().args(["logs", "whole"]).assert().success().stdout(predicate::str::is_empty().not());
    fixture.skctl().args(["pause", "whole"]).assert().code(2).stderr(contains("there is nothing to pause"));
    fixture.skctl().args(["describe", "nobody"]).assert().code(2).stderr(contains("there is no Simulation nobody"));
    fixture.skctl().args(["rm", "whole"]).assert().success().stderr(contains("deleted whole"));
    fixture.skctl().args(["list", "--cluster", "-o", "json"]).assert().success().stdout("[]\n");
}

async fn a_run_that_is_left_goes_on_and_can_be_paused_and_deleted(fixture: &Fixture) {
    let mut child = fixture.spawn(&["run", "nginx.sktrace", "--cluster", "--name", "left", "--speed", "10"]);
    until_said(&mut child, "Simulation left on");
    reaches(fixture, "left", State::Running).await;
    interrupt(&child);
    let mut said = String::new();
    child.stderr.as_mut().expect("it was piped").read_to_string(&mut said).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{said}");
    assert!(said.contains("skctl delete left"), "{said}");
    fixture.skctl().args(["pause", "left"]).assert().success();
    reaches(fixture, "left", State::Paused).await;
    fixture.skctl().args(["resume", "left"]).assert().success();
    reaches(fixture, "left", State::Running).await;
    fixture.skctl().args(["delete", "left"]).assert().success();
}

/// A node that has the name of one of the scenario's, but is somebody's own.
async fn foreign_nodes_are_left_alone(fixture: &Fixture) {
    fixture.cluster.create(&objects::node().name("virtual-1").label("team", "theirs")).await.expect("a node");
    for words in [&["nodes", "apply", "-f", "nodes.yaml"][..], &["nodes", "apply", "-f", "nodes.yaml", "--delete"]] {
        let out = fixture.skctl().args(words).assert().code(2);
        out.stderr(contains("a node virtual-1 that is not SimKube's"));
    }
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(fixture.cluster.client());
    assert!(nodes.get_opt("virtual-0").await.expect("the server answers").is_none(), "nothing was done");
    assert!(nodes.get_opt("virtual-1").await.expect("the server answers").is_some(), "it is still there");
}

async fn reaches(fixture: &Fixture, name: &str, state: State) {
    let simulations: Api<Simulation> = Api::all(fixture.cluster.client());
    eventually(&format!("Simulation {name} to be {state:?}"), LIMIT, || async {
        let status = simulations.get(name).await?.status.unwrap_or_default();
        Ok((status.state == Some(state)).then_some(()))
    })
    .await
    .expect("it gets there");
}

/// KWOK plays everything that is not a simulation's by the testkit's stages, and simulations by those that are shipped.
pub(crate) fn stages() -> String {
    let ours = [names::SIMULATION_LABEL, "simkube.io/node-group"];
    let others: String = ours
        .map(|label| format!("      - jq: {{key: '.metadata.labels[\"{label}\"]', operator: DoesNotExist}}\n"))
        .concat();
    let rest = DEFAULT_STAGES.replace("    matchExpressions:\n", &format!("    matchExpressions:\n{others}"));
    format!("{rest}\n---\n{}", sk_driver::stages_yaml())
}

/// Installs the simulator, with a node for the controller's pod and a runner for the drivers'.
async fn install(fixture: &Fixture) -> ProcessRunner {
    let system = fixture.node("system").label("system", "true").taint("system", "true", "NoSchedule");
    fixture.cluster.create_nodes([system]).await.expect("KWOK makes a node ready");
    fixture.create_volume().await;
    fixture.cluster.create(&objects::object(kind_of_stages())).await.expect("KWOK's kind can be made");
    let words = ["install", "sim", "--local-traces", "--driver-image", DRIVER_IMAGE, "--no-wait"];
    let out = fixture.skctl().args(words).assert();
    out.stdout(contains("created   CustomResourceDefinition simulations.simkube.io").and(contains("created   Stage ")));
    // The controller's pod is played by KWOK, so that it can be forwarded to; the controller is a process of this machine.
    let deployments: Api<Deployment> = Api::namespaced(fixture.cluster.client(), names::NAMESPACE);
    let placed = json!({"spec": {"template": {"spec": {
        "nodeSelector": {"system": "true"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
    }}}});
    let patched = deployments.patch(names::CONTROLLER_NAME, &PatchParams::default(), &Patch::Merge(placed)).await;
    patched.expect("the Deployment can be changed");
    // Only now, or the controller's first pod would be on the runner's node, where nobody plays it or ends it.
    let drivers = format!("{}={}", names::COMPONENT_LABEL, names::DRIVER);
    let runner = RunnerOptions::for_pods(&drivers).program(DRIVER_IMAGE, &built("sk-driver"));
    ProcessRunner::start(&fixture.cluster, runner).await.expect("a process runner")
}

/// KWOK's kind, without its schema: here it reads its stages from a file.
fn kind_of_stages() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "stages.kwok.x-k8s.io"},
        "spec": {
            "group": "kwok.x-k8s.io", "scope": "Cluster",
            "names": {"kind": "Stage", "plural": "stages", "singular": "stage", "listKind": "StageList"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// The real controller, with the rights of its installation and no more.
async fn start_controller(fixture: &Fixture) -> Controller {
    let kubeconfig = fixture.kubeconfig_of(names::NAMESPACE, names::CONTROLLER_NAME).await;
    let log = std::fs::File::create(fixture.path("controller.log")).expect("a log");
    let port = fixture.controller_port;
    let child = Process::new(built("sk-ctrl"))
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("--records-dir")
        .arg(fixture.path("records"))
        .args([format!("--bind=127.0.0.1:{port}"), format!("--records-url=https://127.0.0.1:{port}")])
        .args([format!("--driver-image={DRIVER_IMAGE}"), "--verbosity=debug".to_owned()])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    Controller(child.expect("the controller starts"))
}

fn built(program: &str) -> PathBuf {
    sk_testkit::programs::built(program, &assert_cmd::cargo::cargo_bin("skctl"))
}
