//! A real control plane with our stages and virtual nodes, and small simulations to run on it.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sk_api::Scenario;
use sk_api::simulation::{Simulation, SimulationRoot, crds, names};
use sk_core::SimTime;
use sk_driver::cluster::{Destination, Options, Outcome, RunError, Stop, Webhook, run};
use sk_record::Run;
use sk_replay::plan::Window;
use sk_store::trace::{self, Trace};
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_testkit::objects;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::broadcast;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{self, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// How long anything may take on a machine that many tests share.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
/// default, kube-node-lease, kube-public and kube-system.
const BUILT_IN_NAMESPACES: usize = 4;
pub(crate) const START: &str = "2026-01-05T09:00:00Z";

/// A cluster as our users have it: accounts, webhooks, KWOK with the stages that we ship, and three virtual nodes.
pub(crate) async fn cluster() -> ControlPlane {
    let options =
        sk_testkit::Options::default().stages(&sk_driver::stages_yaml()).webhook_routing().service_account_admission();
    let cluster = ControlPlane::start(options).await.expect("the control plane starts");
    let text = "apiVersion: simkube.io/v1\nkind: Scenario\ncluster:\n  groups:\n    \
                small: {min: 3, max: 3, cpu: 8, memory: 16Gi, ready: 0s}\n";
    let scenario = Scenario::parse("test.yaml", text).expect("the test's scenario is well-formed");
    let nodes = sk_driver::nodes::from_scenario(&scenario).into_iter().map(objects::object);
    cluster.create_nodes(nodes).await.expect("the virtual nodes are ready");
    settled(&cluster).await;
    cluster
}

/// Waits for what a new cluster makes by itself in each of its namespaces, so that nobody takes it for a run's.
async fn settled(cluster: &ControlPlane) {
    let (accounts, maps): (Api<ServiceAccount>, Api<ConfigMap>) =
        (Api::all(cluster.client()), Api::all(cluster.client()));
    eventually("a new cluster to settle", LIMIT, || async {
        let named = |name: &str| ListParams::default().fields(&format!("metadata.name={name}"));
        let accounts = accounts.list(&named("default")).await?.items.len();
        let maps = maps.list(&named("kube-root-ca.crt")).await?.items.len();
        Ok((accounts >= BUILT_IN_NAMESPACES && maps >= BUILT_IN_NAMESPACES).then_some(()))
    })
    .await
    .expect("a new cluster settles");
}

/// Brings our kinds, as an installation does, and waits until they are served.
pub(crate) async fn install_kinds(cluster: &ControlPlane) {
    let kinds: Api<CustomResourceDefinition> = Api::all(cluster.client());
    for kind in crds() {
        kinds.create(&PostParams::default(), &kind).await.expect("the kind is accepted");
    }
    let (simulations, roots): (Api<Simulation>, Api<SimulationRoot>) =
        (Api::all(cluster.client()), Api::all(cluster.client()));
    eventually("our kinds to be served", LIMIT, || async {
        simulations.list(&ListParams::default()).await?;
        roots.list(&ListParams::default()).await.map(Some)
    })
    .await
    .expect("our kinds are served");
}

/// The root that a controller makes before it starts a driver.
pub(crate) async fn create_metaroot(client: &Client, simulation: &str) {
    let root = json!({
        "apiVersion": "simkube.io/v1", "kind": "SimulationRoot", "metadata": {"name": names::metaroot(simulation)},
        "spec": {},
    });
    let root: SimulationRoot = serde_json::from_value(root).expect("a SimulationRoot");
    let roots: Api<SimulationRoot> = Api::all(client.clone());
    roots.create(&PostParams::default(), &root).await.expect("the root is accepted");
}

/// A webhook as the controller makes it, which must be reached (`Fail`), by a URL that the test chooses.
pub(crate) struct Installed {
    folder: TempDir,
    authority: String,
    pub(crate) port: u16,
    simulation: String,
    client: Client,
}

impl Installed {
    pub(crate) async fn new(cluster: &ControlPlane, simulation: &str) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a temporary folder");
        let serving = cluster.authority().serving(&["127.0.0.1"]).expect("a certificate");
        fs::write(folder.path().join("tls.crt"), serving.certificate).expect("there is room");
        fs::write(folder.path().join("tls.key"), serving.key).expect("there is room");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let authority = cluster.authority().certificate();
        let (simulation, client) = (simulation.to_owned(), cluster.client());
        let webhook = Self { folder, authority, port, simulation, client };
        webhook.lead_to(port).await;
        webhook
    }

    /// Has the API server call this port from now on.
    pub(crate) async fn lead_to(&self, port: u16) {
        let url = format!("https://127.0.0.1:{port}/");
        let webhook = |name: &str, resource: &str| {
            json!({
                "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "NoneOnDryRun", "failurePolicy": "Fail",
                "timeoutSeconds": 5,
                "namespaceSelector": {"matchLabels": {names::SIMULATION_LABEL: self.simulation}},
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE"],
                }],
                "clientConfig": {"url": url, "caBundle": ByteString(self.authority.clone().into_bytes())},
            })
        };
        let name = names::webhook(&self.simulation);
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [
                webhook("mutatepods.simkube.io", "pods"),
                webhook("claims.simkube.io", "persistentvolumeclaims"),
            ],
        });
        let api: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let parameters = PatchParams::apply("test").force();
        api.patch(&name, &parameters, &Patch::Apply(configuration)).await.expect("the configuration is accepted");
    }

    /// What the driver is told of it.
    pub(crate) fn told(&self, retry: Duration) -> Webhook {
        let bind = ([127, 0, 0, 1], self.port).into();
        Webhook::Installed { certificate: self.folder.path().to_owned(), bind, retry }
    }
}

/// A trace written as text: changes at so many seconds after the start, and how long pods lived.
pub(crate) struct Story {
    text: String,
    length: u32,
}

impl Story {
    pub(crate) fn of_secs(length: u32) -> Self {
        let head = json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {}}});
        let mut story = Self { text: head.to_string(), length };
        story.line(0, &json!({"mark": "moment"}));
        story
    }

    fn line(&mut self, at: u32, content: &Value) {
        let mut line = json!({"at": moment(at)});
        line.as_object_mut().expect("a map").extend(content.as_object().cloned().expect("a map"));
        self.text += &format!("\n{line}");
    }

    pub(crate) fn apply(mut self, at: u32, object: &Value) -> Self {
        self.line(at, &json!({"apply": object}));
        self
    }

    pub(crate) fn delete(mut self, at: u32, object: &Value) -> Self {
        self.line(at, &json!({"delete": object}));
        self
    }

    /// Pods of this owner (`batch/v1.Job:shop/j`) lived so long.
    pub(crate) fn lives(mut self, owner: &str, seconds: &[u32]) -> Self {
        let (gvk, key) = owner.split_once(':').expect("kind and name");
        let lives: Vec<_> = seconds.iter().map(|length| json!({"start": moment(0), "end": moment(*length)})).collect();
        let row = json!({"lives": {"owner": {"gvk": gvk, "key": key}, "templates": [{"lives": lives}]}});
        self.text += &format!("\n{row}");
        self
    }

    pub(crate) fn text(&self) -> String {
        format!("{}\n{}\n", self.text, json!({"at": moment(self.length), "mark": "moment"}))
    }

    pub(crate) fn trace(&self) -> Arc<Trace> {
        Arc::new(trace::from_bytes("test", self.text().into_bytes()).expect("the test's trace opens"))
    }
}

fn moment(seconds: u32) -> String {
    let start = SimTime::parse_rfc3339(START).expect("a time");
    (start + sk_core::SimDuration::from_secs(seconds.into())).to_rfc3339_secs()
}

pub(crate) fn simulation(name: &str, speed: f64) -> Simulation {
    let json = json!({
        "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": name},
        "spec": {"driver": {"tracePath": "/none"}, "speed": speed},
    });
    serde_json::from_value(json).expect("a Simulation")
}

/// A run in this process.
pub(crate) struct Play {
    pub(crate) simulation: Simulation,
    pub(crate) trace: Arc<Trace>,
    pub(crate) options: Options,
    pub(crate) stop: Stop,
    folder: TempDir,
}

impl Play {
    pub(crate) fn new(name: &str, speed: f64, story: &Story) -> Self {
        Self::of(name, speed, story.trace())
    }

    pub(crate) fn of(name: &str, speed: f64, trace: Arc<Trace>) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a temporary folder");
        let (start, end) = trace.span().expect("records");
        let options = Options {
            repetition: 0,
            window: Window { start, end, includes_end: true },
            seed: 1,
            stop_on_refusal: false,
            listed: BTreeSet::new(),
            webhook: Webhook::Own { bind: ([127, 0, 0, 1], 0).into(), url: "https://127.0.0.1".into() },
            destination: Destination::Folder(folder.path().join("run")),
            judge: None,
            in_cluster: false,
            allow_hooks: true,
            version: "0".into(),
            stop_within: LIMIT,
        };
        Self { simulation: simulation(name, speed), trace, options, stop: Stop::default(), folder }
    }

    pub(crate) async fn run(&self, client: Client) -> Result<Outcome, RunError> {
        run(client, &self.simulation, self.trace.clone(), &self.options, self.stop.clone()).await
    }

    /// Makes the Simulation and its root in the cluster, as a user and the controller do.
    pub(crate) async fn announce(&mut self, client: &Client) {
        self.options.in_cluster = true;
        create_metaroot(client, self.simulation.metadata.name.as_deref().expect("a name")).await;
        let simulations: Api<Simulation> = Api::all(client.clone());
        let made = eventually("the Simulation to be created", LIMIT, || async {
            simulations.create(&PostParams::default(), &self.simulation).await.map(Some)
        });
        made.await.expect("the Simulation is created");
    }

    pub(crate) fn record(&self) -> Run {
        Run::open(&self.folder.path().join("run")).expect("the record is whole")
    }
}

pub(crate) fn codes(run: &Run) -> Vec<(String, u64)> {
    run.meta().warnings.iter().map(|warning| (warning.code.clone(), warning.count)).collect()
}

/// Every object of every kind, by kind, name and uid; without what the cluster makes and unmakes by itself.
pub(crate) async fn everything(cluster: &ControlPlane) -> BTreeSet<String> {
    let all = cluster.everything_and_uids().await.expect("all kinds can be listed");
    // Rewritten by their controller whenever it likes.
    all.into_iter().filter(|object| !object.starts_with("EndpointSlice ")).collect()
}

/// What is there now and was not before, or the other way round.
pub(crate) async fn difference(cluster: &ControlPlane, before: &BTreeSet<String>) -> Vec<String> {
    let after = everything(cluster).await;
    let new = after.difference(before).map(|object| format!("left behind: {object}"));
    let gone = before.difference(&after).map(|object| format!("gone: {object}"));
    new.chain(gone).collect()
}

/// The same, where somebody's own controllers go on making and ending pods in the namespace `shop`.
pub(crate) async fn difference_outside_shop(cluster: &ControlPlane, before: &BTreeSet<String>) -> Vec<String> {
    difference(cluster, before).await.into_iter().filter(|line| !line.contains(" shop/")).collect()
}

pub(crate) fn write_files(folder: &Path, story: &Story, name: &str, speed: f64) -> (PathBuf, PathBuf) {
    let (trace, file) = (folder.join("trace.jsonl"), folder.join("simulation.yaml"));
    fs::write(&trace, story.text()).expect("there is room");
    let mut simulation = serde_json::to_value(simulation(name, speed)).expect("JSON");
    simulation["spec"]["driver"]["tracePath"] = trace.display().to_string().into();
    fs::write(&file, simulation.to_string()).expect("there is room");
    (trace, file)
}

pub(crate) fn value(object: &objects::Object) -> Value {
    object.as_value().clone()
}

/// The program itself, without a controller; files of [`write_files`] are in `folder`.
pub(crate) fn start(cluster: &ControlPlane, folder: &Path, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_sk-driver"))
        .args(["run", "--webhook-url", "https://127.0.0.1", "--bind", "127.0.0.1:0", "-f"])
        .arg(folder.join("simulation.yaml"))
        .arg("--kubeconfig")
        .arg(cluster.kubeconfig())
        .arg("--out")
        .arg(folder.join("run"))
        .args(more)
        .env("SIMKUBE_TERMINATION_LOG", folder.join("last-words"))
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts")
}

/// Asks a program to stop.
pub(crate) fn terminate(program: &Child) {
    let pid = program.id().expect("it runs").to_string();
    let asked = std::process::Command::new("kill").args(["-TERM", &pid]).status();
    assert!(asked.expect("there is a kill").success());
}

/// Lines of the log that say what the clock of a run in this process does, with the moment of each.
pub(crate) struct ClockLines(broadcast::Receiver<(Instant, String)>);

impl ClockLines {
    /// Waits for a line, and says when it was written.
    pub(crate) async fn heard(&mut self, line: &str) -> Instant {
        let heard = async {
            loop {
                let (at, text) = self.0.recv().await.expect("the log goes on");
                if text == line {
                    return at;
                }
            }
        };
        tokio::time::timeout(LIMIT, heard).await.expect("the clock follows")
    }
}

/// Listens from now on. One test at a time pauses a run.
pub(crate) fn clock_lines() -> ClockLines {
    static LOG: OnceLock<broadcast::Sender<(Instant, String)>> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let log = broadcast::Sender::new(64);
        tracing_subscriber::registry().with(ClockLog(log.clone())).init();
        log
    });
    ClockLines(log.subscribe())
}

/// Passes on what is said of the clock.
struct ClockLog(broadcast::Sender<(Instant, String)>);

impl<S: Subscriber> Layer<S> for ClockLog {
    fn on_event(&self, event: &tracing::Event<'_>, _: layer::Context<'_, S>) {
        let mut message = Message::default();
        event.record(&mut message);
        if ["paused", "resumed"].contains(&message.0.as_str()) {
            // Nobody need listen.
            let _ = self.0.send((Instant::now(), message.0));
        }
    }
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
