//! `skctl lab`: a cluster of processes from nothing to nothing, and on it what holds for every installation: one trace, three
//! ways, the same record; and accounts that can do no more than they should.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use sk_api::simulation::names;
use sk_record::{EndedBy, Run, Warning, WarningKind};
use sk_testkit::control_plane::{Binaries, eventually};
use sk_testkit::{Component, objects};
use tempfile::TempDir;

use super::fixture::LIMIT;

const SCENARIO: &str = "apiVersion: simkube.io/v1
kind: Scenario
cluster:
  groups:
    small: {min: 2, max: 2, cpu: 4, memory: 16Gi, ready: 1m}
assert:
  - pods.created == 5
  - unschedulable.pods == 0
";

/// A lab in a folder of its own; ended when the story is, however that ends.
struct Lab {
    dir: TempDir,
}

impl Lab {
    fn up() -> Self {
        let lab = Self { dir: TempDir::new().expect("there is room for a temporary folder") };
        let out = lab.skctl().args(["lab", "up", "--dir", "lab"]).assert().success();
        out.stdout(contains("export KUBECONFIG=").and(contains("skctl lab down")));
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.path("lab/plane/admin.kubeconfig")
    }

    fn skctl(&self) -> Command {
        let mut command = Command::cargo_bin("skctl").expect("the binary of this crate is built");
        command.current_dir(self.dir.path()).env("NO_COLOR", "1").env("KUBECONFIG", self.kubeconfig());
        command.env("KUBEBUILDER_ASSETS", assets()).timeout(LIMIT * 3);
        command
    }

    async fn client(&self) -> Client {
        let config = Kubeconfig::read_from(self.kubeconfig()).expect("a kubeconfig");
        client_of(config).await
    }

    /// A client with the rights of an account, and no more.
    async fn client_as(&self, namespace: &str, account: &str) -> Client {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await, namespace);
        let request = TokenRequest::default();
        let answer = accounts.create_token_request(account, &PostParams::default(), &request).await.expect("a token");
        let token = answer.status.and_then(|status| status.token).expect("there is a token in it");
        let mut config: Value =
            serde_json::from_slice(&std::fs::read(self.kubeconfig()).expect("a kubeconfig")).expect("JSON");
        config["users"][0]["user"] = json!({"token": token});
        client_of(serde_json::from_value(config).expect("a kubeconfig")).await
    }

    fn status(&self) -> Value {
        let out = self.skctl().args(["lab", "status", "--dir", "lab", "-o", "json"]).output().expect("skctl runs");
        serde_json::from_slice(&out.stdout).expect("JSON")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.path("lab/lab.log")).unwrap_or_default();
            eprintln!("--- the lab's supervisor said:\n{log}");
        }
        let _ = self.skctl().args(["lab", "down", "--dir", "lab"]).output();
    }
}

/// The folder with the control plane's programs.
fn assets() -> PathBuf {
    let binaries = Binaries::from_env().expect("a cache folder");
    let etcd = binaries.component(Component::Etcd).expect("run `make control-plane`");
    etcd.parent().expect("a program is in a folder").to_owned()
}

async fn client_of(config: Kubeconfig) -> Client {
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.expect("a configuration");
    Client::try_from(config).expect("a client")
}

fn alive(pid: i64) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim_start().starts_with('Z'))
}

fn pids(status: &Value) -> Vec<i64> {
    let processes = status["processes"].as_array().expect("processes").iter();
    processes.map(|process| process["pid"].as_i64().expect("a number")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_leaves_the_same_record_through_a_labs_controller_by_the_driver_alone_and_embedded() {
    let lab = Lab::up();
    lab.skctl().args(["lab", "status", "--dir", "lab"]).assert().success().stdout(contains("up: Kubernetes v1."));
    lab.skctl().args(["lab", "up", "--dir", "lab"]).assert().success().stderr(contains("the lab is already up"));
    std::fs::write(lab.path("scenario.yaml"), SCENARIO).expect("a temporary folder can be written to");
    std::fs::write(lab.path("trace.jsonl"), trace()).expect("a temporary folder can be written to");
    let out = lab.skctl().args(["nodes", "apply", "-f", "scenario.yaml"]).assert().success();
    out.stdout(contains("2 of 2 nodes created").and(contains("all of them are ready after")));

    let run = ["run", "trace.jsonl", "-f", "scenario.yaml", "--name", "three-ways"];
    lab.skctl().args(run).args(["-O", "embedded"]).assert().success().stdout(contains("PASS   2 of 2"));
    let out = lab.skctl().args(run).args(["--cluster", "-O", "controller"]).assert().success();
    out.stdout(contains("PASS   2 of 2 assertions"));
    the_driver_alone_leaves_a_whole_run(&lab);
    let told = ["embedded", "controller", "alone"].map(|name| story(&lab.path(name)));
    assert_eq!(told[1], told[0], "through the controller (left) and embedded (right)");
    assert_eq!(told[2], told[0], "by the driver alone (left) and embedded (right)");
    let totals: Value =
        serde_json::from_slice(&std::fs::read(lab.path("controller/cluster.json")).expect("it is there"))
            .expect("JSON");
    assert_eq!((&totals["pods"], &totals["podsWithoutWebhook"]), (&json!(5), &json!(0)), "{totals}");
    assert_eq!(totals["events"], 5, "namespaces that were made are no events: {totals}");

    the_accounts_can_do_nothing_outside_of_runs(&lab).await;
    let processes = pids(&lab.status());
    lab.skctl()
        .args(["lab", "down", "--dir", "lab"])
        .assert()
        .success()
        .stdout(contains("stopped the lab and deleted "));
    assert!(processes.iter().all(|pid| !alive(*pid)), "all of {processes:?} are gone");
    assert!(!lab.path("lab").exists());
    lab.skctl().args(["lab", "status", "--dir", "lab"]).assert().code(1).stdout(contains("there is no lab"));
}

/// A Deployment that shrinks, one that goes, and a pod that ends by itself.
fn trace() -> String {
    let at = |seconds: u32| format!("2026-01-05T09:00:{seconds:02}Z");
    let web = |replicas| {
        let web = objects::deployment().name("web").namespace("shop").replicas(replicas).requests("500m", "64Mi");
        web.as_value().clone()
    };
    let gone = objects::deployment().name("gone").namespace("shop").replicas(1).requests("100m", "64Mi");
    let short = objects::pod().name("short").namespace("batch").pod_field("restartPolicy", "Never");
    let lives = json!([{"lives": [{"start": at(0), "end": at(3)}]}]);
    let lines = [
        json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {}}}),
        json!({"at": at(0), "apply": web(3)}),
        json!({"at": at(0), "apply": gone.as_value()}),
        json!({"at": at(1), "apply": short.as_value()}),
        json!({"at": at(40), "apply": web(2)}),
        json!({"at": at(50), "delete": gone.as_value()}),
        json!({"at": at(59), "mark": "moment"}),
        json!({"lives": {"owner": {"gvk": "v1.Pod", "key": "batch/short"}, "templates": lives}}),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// How many pods of each owner ended how.
type Ends = BTreeMap<(String, Option<EndedBy>), u32>;

/// What a record tells that must not depend on who replayed: pods by owner and what ended them, and what limits trust.
fn story(folder: &Path) -> (Ends, Vec<String>) {
    let run = Run::open(folder).expect("the record is whole");
    let mut pods = BTreeMap::new();
    for pod in run.pods().expect("pods").map(|row| row.expect("a row")) {
        *pods.entry((pod.owner, pod.ended_by)).or_default() += 1;
    }
    // What the embedded engine does not model is its own, and how late a busy machine is, the machine's.
    let is_shared = |warning: &&Warning| warning.kind != WarningKind::Unmodelled && warning.code != "lateness";
    (pods, run.meta().warnings.iter().filter(is_shared).map(|warning| warning.code.clone()).collect())
}

/// `sk-driver run -f` without a controller: everything that `skctl report` reads, and a judgement.
fn the_driver_alone_leaves_a_whole_run(lab: &Lab) {
    let simulation = json!({
        "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "alone"},
        "spec": {"driver": {"tracePath": lab.path("trace.jsonl")}},
    });
    std::fs::write(lab.path("simulation.yaml"), simulation.to_string()).expect("a temporary folder");
    let driver = |more: &[&str]| {
        let mut command = lab.skctl();
        command.args(["lab", "driver", "--", "run", "-f", "simulation.yaml", "--webhook-url", "https://127.0.0.1"]);
        command.args(["--bind", "127.0.0.1:0", "--out", "alone", "--kubeconfig"]).arg(lab.kubeconfig()).args(more);
        command
    };
    let strict = SCENARIO.replace("pods.created == 5", "pods.created == 6");
    std::fs::write(lab.path("strict.yaml"), strict).expect("a temporary folder can be written to");
    let out = driver(&["--scenario", "strict.yaml", "--end", "+3s"]).assert().code(1);
    out.stdout(contains("FAIL")).stderr(contains("AssertionFailed: pods.created == 6"));
    driver(&["--scenario", "scenario.yaml"]).assert().success().stdout(contains("PASS   2 of 2 assertions"));
    for file in ["summary.json", "run.json", "scenario.yaml", "report.html", "junit.xml", "pods.parquet"] {
        assert!(lab.path("alone").join(file).is_file(), "{file} is missing");
    }
    lab.skctl().args(["report", "alone"]).assert().success().stdout(contains("PASS   2 of 2 assertions"));
}

/// With the tokens of an installation's own accounts: what somebody could do who has taken them over.
async fn the_accounts_can_do_nothing_outside_of_runs(lab: &Lab) {
    let driver = lab.client_as(names::NAMESPACE, names::DRIVER_ACCOUNT).await;
    let pod = objects::pod().name("intruder").namespace("default");
    let pod: Pod = serde_json::from_value(pod.as_value().clone()).expect("a pod");
    let pods: Api<Pod> = Api::namespaced(driver.clone(), "default");
    refused(pods.create(&PostParams::default(), &pod).await, "cannot create resource \"pods\"");
    let namespaces: Api<Namespace> = Api::all(driver.clone());
    let label =
        Patch::Merge(json!({"metadata": {"labels": {names::VIRTUAL_LABEL: "true", names::SIMULATION_LABEL: "x"}}}));
    let taken = namespaces.patch("kube-system", &PatchParams::default(), &label).await;
    refused(taken, "a driver changes and deletes only what a run has made");
    refused(namespaces.delete(names::NAMESPACE, &Default::default()).await, "only what a run has made");
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": names::DRIVER_REPLAY_ROLE});
    let subject = json!({"kind": "ServiceAccount", "name": names::DRIVER_ACCOUNT, "namespace": names::NAMESPACE});
    let binding = json!({"metadata": {"name": "mine"}, "roleRef": role, "subjects": [subject]});
    let bindings: Api<DynamicObject> =
        Api::namespaced_with(driver, "kube-system", &resource("rbac.authorization.k8s.io", "RoleBinding"));
    let binding: DynamicObject = serde_json::from_value(binding).expect("a binding");
    refused(
        bindings.create(&PostParams::default(), &binding).await,
        "a driver binds roles only in namespaces of a run",
    );

    let controller = lab.client_as(names::NAMESPACE, names::CONTROLLER_NAME).await;
    let webhooks: Api<DynamicObject> =
        Api::all_with(controller, &resource("admissionregistration.k8s.io", "MutatingWebhookConfiguration"));
    let of_a_run = json!({"matchLabels": {names::VIRTUAL_LABEL: "true", names::SIMULATION_LABEL: "a"}});
    let attempts = [
        ("spy", "secrets", json!({}), "only the webhook configurations of runs"),
        ("sk-a-mutatepods", "pods", json!({}), "namespaces of a run only"),
        ("sk-a-mutatepods", "secrets", of_a_run.clone(), "new pods and claims only"),
        // Kubernetes asks a webhook about cluster-scoped objects whatever its namespaceSelector says.
        ("sk-a-mutatepods", "nodes", of_a_run, "new pods and claims only"),
    ];
    for (name, resource, namespaces, words) in attempts {
        let webhook = json!({
            "name": "spy.simkube.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:1"}, "namespaceSelector": namespaces,
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE"]}],
        });
        let webhook = json!({"metadata": {"name": name}, "webhooks": [webhook]});
        let webhook: DynamicObject = serde_json::from_value(webhook).expect("a configuration");
        refused(webhooks.create(&PostParams::default(), &webhook).await, words);
    }
}

fn resource(group: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind))
}

fn refused<T: std::fmt::Debug>(answer: Result<T, kube::Error>, words: &str) {
    match answer {
        Err(kube::Error::Api(status)) => assert!(status.code == 403 && status.message.contains(words), "{status:?}"),
        other => panic!("it was not refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_lab_leaves_is_found_and_ended() {
    let lab = Lab::up();
    let before = lab.status();
    assert_eq!(before["up"], true, "{before}");
    let processes = pids(&before);
    let supervisor = before["processes"][0]["pid"].as_i64().expect("the supervisor comes first");
    let killed = std::process::Command::new("kill").args(["-KILL", &supervisor.to_string()]).status();
    assert!(killed.expect("there is a kill").success());
    // A killed process ends when the kernel gets round to it, which on a busy machine is a moment later.
    eventually("the supervisor to be gone", LIMIT, || async { Ok((!alive(supervisor)).then_some(())) })
        .await
        .expect("nobody survives that");
    lab.skctl().args(["lab", "status", "--dir", "lab"]).assert().code(1).stdout(contains("broken"));
    lab.skctl().args(["lab", "down", "--dir", "lab"]).assert().success();
    eventually("everything to be gone", LIMIT, || async { Ok(processes.iter().all(|pid| !alive(*pid)).then_some(())) })
        .await
        .expect("nothing of it is left");
    assert!(!lab.path("lab").exists());
}
