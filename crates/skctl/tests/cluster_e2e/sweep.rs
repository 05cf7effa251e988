//! A sweep as an Indexed Job on a real control plane: three nodes whose pods are processes, records in a real S3 server.
//!
//! Twelve runs, one of which cannot be made, and one pod that is killed. The records are the same bytes as those of the same
//! plan on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use assert_cmd::Command;
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use predicates::str::contains;
use serde_json::{Value, json};
use sk_testkit::Options;
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_testkit::objects;
use sk_testkit::process_runner::{ProcessRunner, RunnerOptions};
use tempfile::TempDir;

use crate::s3_server::{serve_s3, serve_s3_on};

/// Retries of an index begin after ten seconds, and the machine may have other things to do.
const LIMIT: Duration = Duration::from_secs(400);
const IMAGE: &str = "skctl:e2e";
/// The run that somebody breaks.
const BROKEN: usize = 5;

const PACK: &str = include_str!("../support/pack.yaml");

struct Place {
    dir: TempDir,
    store: Vec<(&'static str, String)>,
}

impl Place {
    fn new() -> Self {
        let dir = TempDir::new().expect("a temporary folder");
        fs::create_dir_all(dir.path().join("buckets/runs")).expect("a bucket");
        fs::write(dir.path().join("pack.yaml"), PACK).expect("a scenario");
        let address = serve_s3(&dir.path().join("buckets"));
        let store = vec![
            ("AWS_ENDPOINT", format!("http://{address}")),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "key".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ];
        Self { dir, store }
    }

    fn skctl(&self) -> Command {
        let mut command = Command::cargo_bin("skctl").expect("the binary of this crate is built");
        command.current_dir(self.dir.path()).env("NO_COLOR", "1").envs(self.store.iter().cloned()).timeout(LIMIT);
        command
    }

    fn plan(&self, words: &[&str]) {
        let vary = "cluster.groups.small.max=10,7,4";
        let plan = ["sweep", "plan", "example:nginx", "-f", "pack.yaml", "--vary", vary, "-N", "4"];
        self.skctl().args(plan).args(words).assert().success().stdout(contains("12 runs of 3 variants"));
    }

    fn run_ids(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("sweeps/pack/runs.jsonl")).expect("a plan");
        let line = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["runId"].as_str().map(str::to_owned);
        text.lines().filter_map(line).collect()
    }
}

/// The files of a record.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let file = |entry: fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("a file of a record"))
    };
    entries.map(|entry| file(entry.expect("an entry"))).collect()
}

/// The objects of job.yaml, in which one run has become another.
fn broken_job(place: &Place) -> Vec<Value> {
    let text = fs::read_to_string(place.dir.path().join("sweeps/pack/job.yaml")).expect("a job");
    let (id, other) = (&place.run_ids()[BROKEN], "pack-max-7-000000");
    assert!(text.contains(id.as_str()), "the plan is in the job");
    serde_saphyr::from_multiple(&text.replace(id.as_str(), other)).expect("YAML")
}

async fn start_runners(cluster: &ControlPlane) -> Vec<ProcessRunner> {
    let mut runners = Vec::new();
    for number in 1..=3 {
        let program = assert_cmd::cargo::cargo_bin("skctl");
        let mut options = RunnerOptions::for_pods("simkube.io/sweep=pack").program(IMAGE, &program);
        options.node = format!("runner-{number}");
        runners.push(ProcessRunner::start(cluster, options).await.expect("a process runner"));
    }
    runners
}

/// Deletes the first pod that runs, as a node that goes away would, and says which index it had.
async fn kill_one(cluster: &ControlPlane) -> String {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let running = |pod: &Pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
    let killed = eventually("a pod that runs", LIMIT, || async {
        let listed = pods.list(&ListParams::default().labels("simkube.io/sweep=pack")).await?;
        Ok(listed.items.into_iter().find(running))
    })
    .await
    .expect("pods of a Job run");
    let name = killed.metadata.name.clone().expect("a name");
    pods.delete(&name, &DeleteParams::default().grace_period(0)).await.expect("it can be deleted");
    let labels = killed.metadata.labels.expect("labels");
    labels["batch.kubernetes.io/job-completion-index"].clone()
}

async fn end_of_job(cluster: &ControlPlane) -> JobStatus {
    let jobs: Api<Job> = Api::default_namespaced(cluster.client());
    eventually("the Job to end", LIMIT, || async {
        let status = jobs.get("pack").await?.status.unwrap_or_default();
        let is_over =
            |kind: &str| status.conditions.iter().flatten().any(|found| found.type_ == kind && found.status == "True");
        Ok((is_over("Complete") || is_over("Failed")).then_some(status))
    })
    .await
    .expect("a Job ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_runs_as_an_indexed_job_and_leaves_the_records_of_a_local_one() {
    let place = Place::new();
    place.plan(&["--to", "s3://runs/pack", "--image", IMAGE, "--secret", "s3", "--parallelism", "3"]);
    let cluster = ControlPlane::start(Options::default().service_account_admission()).await.expect("a control plane");
    let _runners = start_runners(&cluster).await;
    let secrets: Api<Secret> = Api::default_namespaced(cluster.client());
    let data: BTreeMap<_, _> = place.store.iter().cloned().collect();
    let secret = json!({"metadata": {"name": "s3"}, "stringData": data});
    let secret = serde_json::from_value(secret).expect("a Secret");
    secrets.create(&PostParams::default(), &secret).await.expect("a Secret can be made");
    for object in broken_job(&place) {
        cluster.create(&objects::object(object)).await.expect("the server takes what the plan asks for");
    }
    let killed = kill_one(&cluster).await;
    let status = end_of_job(&cluster).await;
    assert_eq!(status.failed_indexes.as_deref(), Some(BROKEN.to_string().as_str()), "{status:?}");
    assert_eq!(status.completed_indexes.as_deref(), Some("0-4,6-11"), "index {killed} was tried again: {status:?}");

    let said = place.skctl().args(["sweep", "status", "sweeps/pack"]).assert().code(1);
    said.stdout(contains("11 of 12 runs done"));
    place.skctl().args(["sweep", "fetch", "sweeps/pack", "-O", "fetched"]).assert().success();

    // Records are read where they are, of most only the summary.
    let compared = |words: &[&str]| {
        let out = place.skctl().arg("compare").args(words).args(["-o", "json"]).output().expect("skctl runs");
        serde_json::from_slice::<Value>(&out.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&out.stderr)))
    };
    let there = compared(&["sweeps/pack"]);
    assert_eq!(there["columns"].as_array().map(Vec::len), Some(3), "three variants");
    assert_eq!(compared(&["s3://runs/pack"])["study"], compared(&["fetched"])["study"]);
    let first = format!("s3://runs/pack/{}", place.run_ids()[0]);
    place.skctl().args(["report", &first]).assert().success();
    let listed = place.skctl().args(["list", "s3://runs/pack", "-o", "json"]).output().expect("skctl runs");
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(listed.as_array().map(Vec::len), Some(11));

    // The same plan, made here.
    fs::rename(place.dir.path().join("sweeps"), place.dir.path().join("sweeps-of-the-job")).expect("it can be renamed");
    place.plan(&["--to", "local"]);
    place.skctl().args(["sweep", "run", "sweeps/pack"]).assert().success();
    for (index, run) in place.run_ids().iter().enumerate().filter(|(index, _)| *index != BROKEN) {
        let (fetched, local) = (place.dir.path().join("fetched").join(run), place.dir.path().join("local").join(run));
        assert!(contents(&fetched) == contents(&local), "index {index}, {run}, differs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_applied_is_a_job_in_the_kubeconfigs_namespace() {
    let place = Place::new();
    let cluster = ControlPlane::start(Options::default()).await.expect("a control plane");
    let kubeconfig = cluster.kubeconfig().display().to_string();
    place.plan(&["--to", "s3://runs/pack", "--image", IMAGE, "--apply", "--kubeconfig", &kubeconfig]);
    let jobs: Api<Job> = Api::namespaced(cluster.client(), "default");
    let job = jobs.get("pack").await.expect("the Job was made");
    assert_eq!(job.spec.and_then(|spec| spec.completions), Some(12));
}

#[test]
fn an_object_store_that_refuses_is_named_and_nothing_is_written() {
    let place = Place::new();
    place.plan(&["--to", "s3://nobucket/pack"]);
    let refused = place.skctl().args(["sweep", "run", "sweeps/pack", "--index", "0"]).assert().code(2);
    refused.stderr(contains("s3://nobucket/pack"));
    let mut with_another_key = place.skctl();
    with_another_key.env("AWS_SECRET_ACCESS_KEY", "wrong").args(["sweep", "status", "sweeps/pack"]);
    with_another_key.assert().code(2).stderr(contains("credentials"));
    assert!(!place.dir.path().join("buckets/nobucket").exists());
    let mut without = place.skctl();
    without.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY").args([
        "sweep",
        "status",
        "sweeps/pack",
    ]);
    without.assert().code(2).stderr(contains("AWS_ACCESS_KEY_ID"));
}

#[test]
fn an_object_store_that_is_away_is_waited_for_and_named() {
    let mut place = Place::new();
    let away = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = away.local_addr().expect("an address");
    // Nobody listens there from now on.
    drop(away);
    place.store[0].1 = format!("http://{address}");
    place.plan(&["--to", "s3://runs/pack"]);
    let mut sweep = std::process::Command::new(assert_cmd::cargo::cargo_bin("skctl"));
    sweep.args(["--quiet", "sweep", "run", "sweeps/pack", "--index", "0"]).current_dir(place.dir.path());
    sweep.envs(place.store.iter().cloned()).stderr(Stdio::piped());
    let mut sweep = sweep.spawn().expect("skctl runs");
    let mut said = BufReader::new(sweep.stderr.take().expect("it is piped")).lines();
    let first = said.next().expect("it says why it waits").expect("text");
    assert!(first.contains("does not answer") && first.contains("s3://runs/pack"), "{first}");
    assert!(!place.dir.path().join("buckets/runs/pack").exists(), "nothing is half-written");
    serve_s3_on(&place.dir.path().join("buckets"), TcpListener::bind(address).expect("the port is still free"));
    assert!(sweep.wait().expect("it ends").success(), "{:?}", said.collect::<Vec<_>>());
    assert!(place.dir.path().join("buckets/runs/pack").join(&place.run_ids()[0]).join("run.json").exists());
}
