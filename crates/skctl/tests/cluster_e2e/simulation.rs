//! Simulations from an empty cluster to the report: installed, marked and given nodes by who may do everything; sent,
//! run, followed, fetched, left, broken and deleted by somebody who is a user and no more.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
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

/// How the simulator is installed here; whoever waits for it to be ready does so with the doctor.
const INSTALL: [&str; 5] = ["install", "sim", "--driver-image", DRIVER_IMAGE, "--no-wait"];

/// The largest trace that the controller takes here.
const MAX_TRACE_BYTES: usize = 1 << 20;

/// Only what two Deployments that stay to the end make must be there: how far the third one comes between its changes,
/// seconds apart at the speed of these runs, is this machine's business.
const SCENARIO: &str = "apiVersion: simkube.io/v1
kind: Scenario
cluster:
  groups:
    virtual: {min: 3, max: 3, cpu: 8, memory: 32Gi, ready: 0s}
assert:
  - pods.created >= 2
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
async fn somebody_with_the_role_of_a_user_simulates_on_a_cluster_and_leaves_nothing_there() {
    let options = Options::default().webhook_routing().service_account_admission();
    let fixture = Fixture::start_with(options, &stages()).await;
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/nginx.sktrace");
    std::fs::copy(trace, fixture.path("nginx.sktrace")).expect("the example is there");
    std::fs::write(fixture.path("nodes.yaml"), SCENARIO).expect("a temporary folder can be written to");
    nothing_is_done_on_a_cluster_that_is_not_marked(&fixture);

    let _runner = install(&fixture).await;
    let _controller = start_controller(&fixture).await;
    let out = fixture.skctl().args(["nodes", "apply", "-f", "nodes.yaml"]).assert().success();
    out.stdout(contains("3 of 3 nodes created").and(contains("all of them are ready after")));
    fixture.skctl().args(["nodes", "apply", "-f", "nodes.yaml"]).assert().success().stdout(contains("0 of 3 nodes"));
    fixture.until_well("sim").await;
    the_doctor_sees_what_would_spoil_a_run(&fixture).await;

    let user = User::new(&fixture).await;
    let before = fixture.cluster.everything().await.expect("all kinds can be listed");
    user.skctl().args(["doctor", "sim"]).assert().success().stdout(contains("FAIL").not());
    a_trace_that_is_too_large_is_not_taken(&user);
    a_local_trace_is_sent_and_ends_with_the_report(&user);
    a_bundled_trace_is_run_twice(&user);
    what_was_run_can_be_looked_at(&user);
    a_run_that_is_left_goes_on_and_another_waits_for_it(&user).await;
    for name in ["whole", "twice", "broken"] {
        user.skctl().args(["rm", name]).assert().success().stderr(contains(format!("deleted {name}")));
    }
    user.skctl().args(["list", "--cluster", "-o", "json"]).assert().success().stdout("[]\n");
    nothing_is_left_but(&fixture, &before).await;

    nodes_of_a_trace_are_made_by_who_may(&user);
    let out = fixture.skctl().args(["nodes", "apply", "-f", "nodes.yaml", "--delete"]).assert().success();
    out.stdout(contains("3 of 3 nodes removed"));
    foreign_nodes_are_left_alone(&fixture).await;
}

/// Somebody who is bound to the role for users, and to nothing else.
struct User<'a> {
    fixture: &'a Fixture,
    kubeconfig: PathBuf,
}

impl<'a> User<'a> {
    async fn new(fixture: &'a Fixture) -> Self {
        let kubeconfig = fixture.kubeconfig_of("default", "alice").await;
        let subjects = json!([{"kind": "ServiceAccount", "name": "alice", "namespace": "default"}]);
        let bindings = [
            ("ClusterRoleBinding", "ClusterRole", json!({"name": "alice"})),
            ("RoleBinding", "Role", json!({"name": "alice", "namespace": names::NAMESPACE})),
        ];
        for (kind, role, metadata) in bindings {
            let binding = objects::object(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "subjects": subjects,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": names::USER_ROLE},
            }));
            fixture.cluster.create(&binding).await.expect("a role can be bound");
        }
        let user = Self { fixture, kubeconfig };
        // The API server's authorizer learns of it a moment later.
        let began = std::time::Instant::now();
        while !user.skctl().args(["list", "--cluster"]).output().expect("skctl runs").status.success() {
            assert!(began.elapsed() < LIMIT, "the role does not let her list Simulations");
        }
        user
    }

    fn skctl(&self) -> assert_cmd::Command {
        self.fixture.skctl_as(&self.kubeconfig)
    }

    /// `skctl run … --cluster`, whose driver listens where no other test's does.
    fn run(&self, words: &[&str]) -> assert_cmd::Command {
        let mut command = self.skctl();
        command.args(self.words_of_run(words));
        command
    }

    /// The same, and it goes on by itself.
    fn spawn_run(&self, words: &[&str]) -> Child {
        self.fixture.spawn_as(&self.kubeconfig, &self.words_of_run(words))
    }

    fn words_of_run(&self, words: &[&str]) -> Vec<String> {
        let port = self.fixture.driver_port.to_string();
        ["run", "--cluster", "--driver-port", &port].iter().chain(words).map(|word| (*word).to_owned()).collect()
    }
}

/// Nobody has said that this cluster is one for simulations.
fn nothing_is_done_on_a_cluster_that_is_not_marked(fixture: &Fixture) {
    for words in [&["run", "nginx.sktrace", "--cluster"][..], &["nodes", "apply", "-f", "nodes.yaml"]] {
        let out = fixture.skctl().args(words).assert().code(2);
        out.stderr(contains("is not marked").and(contains("skctl --context testkit install sim")));
    }
    fixture.skctl().args(["list", "--cluster"]).assert().code(2).stderr(contains("skctl install sim"));
    fixture.skctl().args(["doctor", "sim"]).assert().code(1).stdout(contains("FAIL  mark"));
}

/// A stage that plays every pod, and a role that an older installation left.
async fn the_doctor_sees_what_would_spoil_a_run(fixture: &Fixture) {
    let running = json!({"key": ".status.phase", "operator": "In", "values": ["Pending"]});
    let spec = json!({
        "resourceRef": {"apiGroup": "v1", "kind": "Pod"}, "selector": {"matchExpressions": [running]},
    });
    let stage = json!({"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "spec": spec});
    let named = |mut stage: Value| {
        stage["metadata"] = json!({"name": "pod-ready"});
        objects::object(stage)
    };
    fixture.cluster.create(&named(stage)).await.expect("a stage can be made");
    let roles: Api<ClusterRole> = Api::all(fixture.cluster.client());
    let older = Patch::Merge(json!({"rules": []}));
    roles.patch(names::RECORD_READER, &PatchParams::default(), &older).await.expect("a role can be changed");
    let out = fixture.skctl().args(["doctor", "sim"]).assert().code(1);
    out.stdout(
        contains("FAIL  other stages")
            .and(contains("kubectl delete stages.kwok.x-k8s.io pod-ready"))
            .and(contains("FAIL  grants"))
            .and(contains("get simulations/record.simkube.io")),
    );
    let stages = "kwok.x-k8s.io/v1alpha1.Stage".parse().expect("a kind");
    let stages = fixture.cluster.api(&stages, None).await.expect("the kind is there");
    stages.delete("pod-ready", &DeleteParams::default()).await.expect("a stage can be deleted");
    fixture.skctl().args(INSTALL).arg("--force").assert().stdout(contains("changed   ClusterRole sk-record-reader"));
    fixture.until_well("sim").await;
}

/// A manifest may be a trace, and this one has more bytes than the controller takes; no Simulation is made for it.
fn a_trace_that_is_too_large_is_not_taken(user: &User<'_>) {
    let text = "x".repeat(4 * MAX_TRACE_BYTES);
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: big}}\ndata: {{big: {text}}}\n");
    std::fs::write(user.fixture.path("big.yaml"), map).expect("a temporary folder can be written to");
    let out = user.skctl().args(["run", "big.yaml", "--cluster", "-D", "1m"]).assert().code(2);
    out.stderr(contains("cannot send big.yaml to the controller").and(contains("--max-trace-bytes")));
    user.skctl().args(["list", "--cluster", "-o", "json"]).assert().success().stdout("[]\n");
}

fn a_local_trace_is_sent_and_ends_with_the_report(user: &User<'_>) {
    let words = ["nginx.sktrace", "--name", "whole", "--speed", "120", "-f", "nodes.yaml"];
    let out = user.run(&words).assert().success();
    let out = out.stdout(contains("PASS   2 of 2 assertions"));
    out.stderr(contains("sent nginx.sktrace").and(contains("Simulation whole on context testkit")));
    let dir = user.fixture.path("runs/whole");
    for file in ["summary.json", "run.json", "scenario.yaml", "report.html", "junit.xml", "pods.parquet"] {
        assert!(dir.join(file).is_file(), "{file} is missing");
    }
    let run: Value = serde_json::from_slice(&std::fs::read(dir.join("run.json")).expect("it is there")).expect("JSON");
    assert_eq!(run["engine"], "cluster");
    user.skctl().args(["report", "whole"]).assert().success().stdout(contains("PASS"));
    let out = user.run(&words).assert().code(2);
    out.stderr(contains("there is a Simulation whole already").and(contains("skctl report whole --cluster")));

    // From anywhere else: the record comes from the controller, and what must hold with the Simulation.
    std::fs::remove_dir_all(&dir).expect("it was there");
    let out = user.skctl().args(["report", "whole", "--cluster"]).assert().success();
    out.stdout(contains("PASS   2 of 2 assertions"));
    assert!(dir.join("summary.json").is_file(), "it is a run like any other");
}

/// The same bytes as the file that was sent before: they do not travel again.
fn a_bundled_trace_is_run_twice(user: &User<'_>) {
    let words = ["example:nginx", "--name", "twice", "-N", "2", "--speed", "960", "--ttl", "1d"];
    let out = user.run(&words).args(["--assert", "pods.created >= 10"]).output().expect("skctl runs");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    // The example's own assertions are about its own nodes and may fail here; both runs were judged all the same.
    assert!(matches!(out.status.code(), Some(0 | 1)), "{said}");
    assert!(said.contains("the controller already has"), "{said}");
    for repetition in 0..2 {
        assert!(user.fixture.path(&format!("runs/twice.{repetition}/run.json")).is_file(), "{repetition} is missing");
    }
    let out = user.skctl().args(["report", "twice", "--cluster", "--repetition", "2"]).assert().code(2);
    out.stderr(contains("no record of repetition 2; it has: 0, 1"));
    let out = user.skctl().args(["report", "twice", "--cluster", "-o", "json"]).output().expect("skctl runs");
    assert!(String::from_utf8_lossy(&out.stderr).contains("repetition 1 of 0, 1"));
    serde_json::from_slice::<Value>(&out.stdout).expect("a report in JSON");
}

fn what_was_run_can_be_looked_at(user: &User<'_>) {
    let out = user.skctl().args(["list", "--cluster"]).assert().success();
    out.stdout(
        contains("whole").and(contains("Finished")).and(contains("nginx.sktrace")).and(contains("example:nginx")),
    );
    let out = user.skctl().args(["describe", "whole"]).assert().success();
    let out = out.stdout(contains("state        Finished").and(contains("totals")).and(contains("record")));
    out.stdout(contains("trace        nginx.sktrace  (uploaded:"));
    let out = user.skctl().args(["describe", "whole", "-o", "json"]).assert().success();
    let simulation: Simulation = serde_json::from_slice(&out.get_output().stdout).expect("a Simulation in JSON");
    assert_eq!(simulation.spec.speed, 120.0);
    user.skctl().args(["describe", "whole", "-o", "yaml"]).assert().success().stdout(contains("speed: 120"));
    user.skctl().args(["logs", "whole"]).assert().success().stdout(predicate::str::is_empty().not());
    user.skctl().args(["pause", "whole"]).assert().code(2).stderr(contains("there is nothing to pause"));
    user.skctl().args(["describe", "nobody"]).assert().code(2).stderr(contains("there is no Simulation nobody"));
}

async fn a_run_that_is_left_goes_on_and_another_waits_for_it(user: &User<'_>) {
    let fixture = user.fixture;
    let mut left = user.spawn_run(&["nginx.sktrace", "--name", "left"]);
    until_said(&mut left, "Simulation left on");
    reaches(fixture, "left", State::Running).await;
    interrupt(&left);
    let (code, said) = ends(left);
    assert_eq!(code, Some(130), "{said}");
    for command in ["describe left", "report left --cluster", "delete left"] {
        assert!(said.contains(command), "{command}: {said}");
    }
    let mut broken = user.spawn_run(&["nginx.sktrace", "--name", "broken"]);
    until_said(&mut broken, "Simulation broken on");
    reaches(fixture, "broken", State::Blocked).await;
    user.skctl().args(["pause", "left"]).assert().success();
    reaches(fixture, "left", State::Paused).await;
    user.skctl().args(["resume", "left"]).assert().success();
    reaches(fixture, "left", State::Running).await;
    let out = user.skctl().args(["report", "left", "--cluster"]).assert().code(2);
    out.stderr(contains("Simulation left has not finished: Running")).stdout("");
    user.skctl().args(["delete", "left"]).assert().success();
    a_failed_run_leaves_what_it_has(user, broken).await;
}

/// Its driver is taken away in the middle, as when a node is drained.
async fn a_failed_run_leaves_what_it_has(user: &User<'_>, running: Child) {
    let fixture = user.fixture;
    has_begun(fixture, "broken").await;
    let pods: Api<Pod> = Api::namespaced(fixture.cluster.client(), names::NAMESPACE);
    let drivers =
        ListParams::default().labels(&format!("batch.kubernetes.io/job-name={}", names::driver_job("broken")));
    for pod in pods.list(&drivers).await.expect("pods can be listed") {
        let name = pod.metadata.name.expect("a pod has a name");
        pods.delete(&name, &DeleteParams::default()).await.expect("a pod can be deleted");
    }
    let (code, said) = ends(running);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("Simulation broken failed: ") && said.contains("logs broken"), "{said}");
    assert!(said.contains("kept the record, which is partial: runs/broken"), "{said}");
    fixture.skctl().args(["report", "broken"]).assert().stdout(contains("broken"));
    user.skctl().args(["describe", "broken"]).assert().success().stdout(contains("state        Failed"));
    user.skctl().args(["logs", "broken"]).assert().success().stdout(predicate::str::is_empty().not());
}

/// How it ended, and the rest of what it said.
fn ends(mut child: Child) -> (Option<i32>, String) {
    let mut said = String::new();
    child.stderr.as_mut().expect("it was piped").read_to_string(&mut said).expect("text");
    (child.wait().expect("it ends").code(), said)
}

async fn nothing_is_left_but(fixture: &Fixture, before: &BTreeSet<String>) {
    let mut now = BTreeSet::new();
    let began = std::time::Instant::now();
    while began.elapsed() < LIMIT {
        now = fixture.cluster.everything().await.expect("all kinds can be listed");
        if now == *before {
            return;
        }
    }
    let (left, lost): (Vec<_>, Vec<_>) = (now.difference(before).collect(), before.difference(&now).collect());
    panic!("left: {left:#?}, lost: {lost:#?}");
}

/// Nodes are an administrator's: the role for users has no right to them, and says so.
fn nodes_of_a_trace_are_made_by_who_may(user: &User<'_>) {
    let fixture = user.fixture;
    let node = |name: &str| {
        let object = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"}},
        });
        json!({"node": {"at": "2026-01-05T09:00:00Z", "node": name, "object": object}}).to_string()
    };
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/nginx.jsonl");
    let trace = std::fs::read_to_string(trace).expect("the example is there");
    let trace = format!("{trace}\n{}\n{}\n", node("fleet-a"), node("fleet-b"));
    std::fs::write(fixture.path("fleet.jsonl"), trace).expect("a temporary folder can be written to");
    let out = user.skctl().args(["nodes", "apply", "fleet.jsonl"]).assert().code(2);
    out.stderr(contains("cannot list nodes in context testkit").and(contains("who may create nodes")));
    let out = fixture.skctl().args(["nodes", "apply", "fleet.jsonl"]).assert().success();
    out.stdout(contains("2 of 2 nodes created"));
    let out = fixture.skctl().args(["nodes", "apply", "fleet.jsonl", "--delete"]).assert().success();
    out.stdout(contains("2 of 2 nodes removed"));
}

/// A node that has the name of one of the scenario's, but is somebody's own.
async fn foreign_nodes_are_left_alone(fixture: &Fixture) {
    fixture.cluster.create(&objects::node().name("virtual-2").label("team", "theirs")).await.expect("a node");
    for words in [&["nodes", "apply", "-f", "nodes.yaml"][..], &["nodes", "apply", "-f", "nodes.yaml", "--delete"]] {
        let out = fixture.skctl().args(words).assert().code(2);
        out.stderr(contains("a node virtual-2 that is not SimKube's"));
    }
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(fixture.cluster.client());
    assert!(nodes.get_opt("virtual-1").await.expect("the server answers").is_none(), "nothing was done");
    assert!(nodes.get_opt("virtual-2").await.expect("the server answers").is_some(), "it is still there");
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

/// Waits until a Simulation has replayed something, so that there is something to be left.
async fn has_begun(fixture: &Fixture, name: &str) {
    let simulations: Api<Simulation> = Api::all(fixture.cluster.client());
    eventually(&format!("Simulation {name} to have replayed something"), LIMIT, || async {
        let status = simulations.get(name).await?.status.unwrap_or_default();
        Ok(status.progress.filter(|progress| progress.events_done > 0).map(|_| ()))
    })
    .await
    .expect("it begins");
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
    let out = fixture.skctl().args(INSTALL).assert();
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
        .args([format!("--driver-image={DRIVER_IMAGE}"), format!("--max-trace-bytes={MAX_TRACE_BYTES}")])
        .arg("--verbosity=debug")
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    Controller(child.expect("the controller starts"))
}

fn built(program: &str) -> PathBuf {
    sk_testkit::programs::built(program, &assert_cmd::cargo::cargo_bin("skctl"))
}
