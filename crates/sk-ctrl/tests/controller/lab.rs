//! A control plane with an installation of ours, a controller as a child process, and a runner for its drivers.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sk_api::simulation::{Simulation, SimulationStatus, State, names};
use sk_core::Gvk;
use sk_ctrl::install::{self, Options};
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_testkit::process_runner::{ProcessRunner, RunnerOptions};
use sk_testkit::{Component, objects};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// How long anything may take on a machine that many tests share.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);

/// Where nodes renew their leases, which come and go: nothing of it is listed.
const NODE_LEASES: &str = "kube-node-lease";

/// Drivers that are scripts: an image, and what is run for it.
const SCRIPTS: [(&str, &str); 7] = [
    ("driver:quick", "exit 0"),
    ("driver:short", "sleep 1"),
    // Runs until the file is there; is polite when it is asked to stop.
    ("driver:waits", "trap 'exit 0' TERM; while [ ! -e \"$1\" ]; do sleep 0.1; done"),
    ("driver:fails", "echo 'TraceMissing: s3://traces/a is not there' > \"$SIMKUBE_TERMINATION_LOG\"; exit 2"),
    ("driver:speechless", "echo 'this is all that I logged' >&2; exit 3"),
    ("driver:keyed", "[ \"$KEY\" = k ]"),
    ("driver:killed", "sleep 0.$(( $$ % 10 )); kill -9 $$"),
];

/// A cluster with an installation of ours.
pub(crate) struct Lab {
    pub(crate) cluster: ControlPlane,
    pub(crate) folder: TempDir,
    pub(crate) port: u16,
    /// Where a real driver's webhook listens.
    pub(crate) driver_port: u16,
    options: Options,
    _runner: ProcessRunner,
}

/// A controller that runs. It is killed when it is dropped.
pub(crate) struct Controller {
    process: Child,
    log: PathBuf,
}

impl Lab {
    /// A cluster whose drivers are the scripts, and whose installation is as told.
    pub(crate) async fn start(options: Options) -> Self {
        Self::start_with(sk_testkit::Options::default(), options, &[]).await
    }

    pub(crate) async fn start_with(plane: sk_testkit::Options, options: Options, programs: &[(&str, &Path)]) -> Self {
        let options = Options { local_traces: true, driver_image: "driver:quick".to_owned(), ..options };
        let plane = plane.webhook_routing().service_account_admission();
        let mut cluster =
            ControlPlane::start(plane.without(Component::ControllerManager)).await.expect("a control plane");
        install(&cluster, &options).await;
        // A garbage collector looks for new kinds every half minute; one that starts now knows ours.
        cluster.restart(Component::ControllerManager).await.expect("a controller manager");
        let folder = tempfile::tempdir().expect("a folder");
        let mut runner = RunnerOptions::for_pods(&format!("{}={}", names::COMPONENT_LABEL, names::DRIVER));
        for (image, script) in SCRIPTS {
            let path = folder.path().join(image.replace(':', "-"));
            // The arguments `run --simulation NAME` are for the real one.
            fs::write(&path, format!("#!/bin/sh\nshift 3\n{script}\n")).expect("a script");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script that can be run");
            runner = runner.program(image, &path);
        }
        for (image, program) in programs {
            runner = runner.program(image, program);
        }
        let runner = ProcessRunner::start(&cluster, runner).await.expect("a process runner");
        let [port, driver_port] = free_ports();
        Self { cluster, folder, port, driver_port, options, _runner: runner }
    }

    /// Starts a controller as the installation's account. However busy the machine is, it waits for its drivers.
    pub(crate) async fn controller(&self) -> Controller {
        self.controller_that_waits(LIMIT).await
    }

    /// Starts a controller that gives a driver so long to start.
    pub(crate) async fn controller_that_waits(&self, limit: Duration) -> Controller {
        let token = self.token(names::CONTROLLER_NAME, None).await;
        let admin = fs::read_to_string(self.cluster.kubeconfig()).expect("a kubeconfig");
        let mut kubeconfig: Value = serde_json::from_str(&admin).expect("a kubeconfig in JSON");
        kubeconfig["users"][0]["user"] = json!({"token": token});
        let file = self.folder.path().join("controller.kubeconfig");
        fs::write(&file, kubeconfig.to_string()).expect("a kubeconfig");
        let log = self.folder.path().join("controller.log");
        let appended = fs::OpenOptions::new().create(true).append(true).open(&log).expect("a log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_sk-ctrl"));
        command
            .arg("--kubeconfig")
            .arg(&file)
            .arg("--records-dir")
            .arg(self.folder.path().join("records"))
            .args([format!("--bind=127.0.0.1:{}", self.port), format!("--records-url={}", self.records_url())])
            .arg(format!("--driver-start-limit={}", limit.as_secs()))
            .args([
                "--driver-image=driver:quick",
                "--allow-driver-image=driver",
                "--allow-driver-image=sk-driver",
                "--verbosity=sk_ctrl=debug,kube=info,info",
            ])
            .stdout(Stdio::null())
            .stderr(appended)
            .kill_on_drop(true);
        command.args(self.options.allow_hooks.then_some("--allow-hooks"));
        command.args(self.options.any_namespace.then_some("--any-namespace"));
        command.args(self.options.local_traces.then_some("--local-traces"));
        Controller { process: command.spawn().expect("the controller starts"), log }
    }

    pub(crate) fn records_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// A token of one of the installation's accounts.
    pub(crate) async fn token(&self, account: &str, audience: Option<&str>) -> String {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.cluster.client(), names::NAMESPACE);
        let audiences: Vec<_> = audience.into_iter().collect();
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": audiences},
        });
        let answer: Value = accounts
            .create_subresource("token", account, &PostParams::default(), &request)
            .await
            .unwrap_or_else(|error| panic!("a token of {account}: {error}"));
        answer["status"]["token"].as_str().expect("a token").to_owned()
    }

    pub(crate) fn simulations(&self) -> Api<Simulation> {
        Api::all(self.cluster.client())
    }

    /// Creates a Simulation whose driver is a script.
    pub(crate) async fn simulate(&self, name: &str, image: &str, change: &Value) {
        let mut simulation = json!({
            "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": name},
            "spec": {"driver": {"tracePath": "s3://traces/a", "image": image}},
        });
        merge(&mut simulation["spec"], change);
        let simulation = serde_json::from_value(simulation).expect("a Simulation");
        self.simulations().create(&PostParams::default(), &simulation).await.expect("the Simulation is accepted");
    }

    pub(crate) async fn change(&self, name: &str, spec: &Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.simulations().patch(name, &PatchParams::default(), &patch).await.expect("the change is accepted");
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.simulations().delete(name, &DeleteParams::default()).await.expect("the Simulation can be deleted");
        self.gone(name).await;
    }

    pub(crate) async fn gone(&self, name: &str) {
        let simulations = self.simulations();
        eventually(&format!("Simulation {name} to be gone"), LIMIT, || async {
            Ok(simulations.get_opt(name).await?.is_none().then_some(()))
        })
        .await
        .expect("the Simulation goes");
    }

    pub(crate) async fn reaches(&self, name: &str, state: State) -> SimulationStatus {
        self.until(name, &format!("{state:?}"), |status| status.state == Some(state)).await
    }

    pub(crate) async fn ends(&self, name: &str) -> SimulationStatus {
        self.until(name, "its end", |status| status.state.is_some_and(State::is_final)).await
    }

    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&SimulationStatus) -> bool,
    ) -> SimulationStatus {
        let simulations = self.simulations();
        let last = std::sync::Mutex::new(None);
        let what = format!("Simulation {name} to reach {what}");
        let found = eventually(&what, LIMIT, || async {
            let status = simulations.get(name).await?.status.unwrap_or_default();
            *last.lock().expect("nobody panics with it") = Some(status.clone());
            Ok(wanted(&status).then_some(status))
        });
        match found.await {
            Ok(status) => status,
            Err(error) => panic!("{error}; its status: {last:?}; the controller said:\n{}", self.log()),
        }
    }

    /// Everything that the controller has said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("controller.log")).unwrap_or_default()
    }

    /// The controller has never been refused anything.
    pub(crate) fn assert_nothing_was_forbidden(&self) {
        let log = self.log();
        let forbidden: Vec<_> = log.lines().filter(|line| line.to_lowercase().contains("forbidden")).collect();
        assert!(forbidden.is_empty(), "{forbidden:#?}");
    }

    /// Every object of every kind, but what comes and goes by itself, and Simulations.
    pub(crate) async fn everything(&self) -> BTreeSet<String> {
        let mut all = self.cluster.everything().await.expect("every kind can be listed");
        all.retain(|object| !object.starts_with("Simulation "));
        all
    }

    /// What is there once nothing more comes: new namespaces, Services and Deployments get company from Kubernetes itself.
    pub(crate) async fn settled(&self) -> BTreeSet<String> {
        let mut before = self.everything().await;
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.everything().await;
            if now == before && has_company(&now) {
                return now;
            }
            before = now;
        }
    }

    /// Nothing is there that was not there before, and nothing is missing.
    pub(crate) async fn assert_nothing_left(&self, before: &BTreeSet<String>) {
        let began = Instant::now();
        let mut now = self.everything().await;
        while now != *before && began.elapsed() < LIMIT {
            tokio::time::sleep(Duration::from_millis(200)).await;
            now = self.everything().await;
        }
        let left: Vec<_> = now.difference(before).collect();
        let lost: Vec<_> = before.difference(&now).collect();
        assert!(left.is_empty() && lost.is_empty(), "left: {left:#?}, lost: {lost:#?}");
    }

    pub(crate) async fn create(&self, object: Value) {
        self.cluster.create(&objects::object(object)).await.expect("the object is accepted");
    }
}

/// Applies the manifests as `skctl install sim` does.
async fn install(cluster: &ControlPlane, options: &Options) {
    for manifest in install::manifests(options) {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
        let gvk = Gvk::from_api_version(text("/apiVersion").expect("a version"), text("/kind").expect("a kind"))
            .expect("a kind of the API");
        let name = text("/metadata/name").expect("a name");
        let api = cluster.api(&gvk, text("/metadata/namespace")).await.expect("a kind that is served");
        let parameters = PatchParams::apply("skctl").validation_strict();
        api.patch(name, &parameters, &Patch::Apply(&manifest))
            .await
            .unwrap_or_else(|error| panic!("{gvk} {name} is accepted: {error}"));
    }
    let simulations: Api<Simulation> = Api::all(cluster.client());
    eventually("our kinds to be served", LIMIT, || async { simulations.list(&ListParams::default()).await.map(Some) })
        .await
        .expect("our kinds are served");
    until_rights_are_known(&cluster.client(), &install::manifests(options)).await;
}

/// Two ports that nobody has: both are held until both are known.
fn free_ports() -> [u16; 2] {
    let held = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    held.each_ref().map(|free| free.local_addr().expect("its address").port())
}

/// Waits until the API server has read who may do what, one right of every rule: until then it refuses what it allows.
async fn until_rights_are_known(client: &Client, manifests: &[Value]) {
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    for binding in manifests.iter().filter(|object| object["roleRef"].is_object()) {
        let (role, namespace) = (&binding["roleRef"], &binding["metadata"]["namespace"]);
        let account = &binding["subjects"][0];
        let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let user = format!("system:serviceaccount:{}:{}", words(&account["namespace"]), words(&account["name"]));
        let bound = manifests.iter().filter(|object| {
            let metadata = &object["metadata"];
            object["kind"] == role["kind"] && metadata["name"] == role["name"] && metadata["namespace"] == *namespace
        });
        for rule in bound.flat_map(|role| role["rules"].as_array().expect("rules")) {
            let resource = words(&rule["resources"][0]);
            let (resource, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": user, "resourceAttributes": {
                    "namespace": namespace, "group": rule["apiGroups"][0], "resource": resource,
                    "subresource": subresource, "verb": rule["verbs"][0], "name": rule["resourceNames"][0],
                }},
            });
            let review: SubjectAccessReview = serde_json::from_value(review).expect("a question");
            eventually(&format!("{user} to have {rule}"), LIMIT, || async {
                let answer = reviews.create(&PostParams::default(), &review).await?;
                Ok(answer.status.is_some_and(|status| status.allowed).then_some(()))
            })
            .await
            .expect("the right is known");
        }
    }
}

/// Has everything come that Kubernetes and the controller make by themselves beside an installation?
fn has_company(all: &BTreeSet<String>) -> bool {
    let ours = ["Pod simkube/sk-ctrl-", "EndpointSlice simkube/sk-ctrl-", "Secret simkube/sk-ctrl-cert"];
    let namespaces = all.iter().filter_map(|name| name.strip_prefix("Namespace ")).filter(|name| *name != NODE_LEASES);
    let furnished = |namespace: &str| {
        let company =
            [format!("ServiceAccount {namespace}/default"), format!("ConfigMap {namespace}/kube-root-ca.crt")];
        company.iter().all(|name| all.contains(name))
    };
    ours.iter().all(|start| all.iter().any(|name| name.starts_with(start)))
        && all.contains("ConfigMap simkube/sk-ctrl-ca")
        && all.contains("Lease simkube/sk-ctrl")
        && namespaces.into_iter().all(furnished)
}

impl Controller {
    /// SIGKILL, and waits until it is gone.
    pub(crate) async fn kill(mut self) {
        self.process.kill().await.expect("the controller can be killed");
    }

    /// It has not ended by itself.
    pub(crate) fn assert_alive(&mut self) {
        let ended = self.process.try_wait().expect("the controller can be asked about");
        assert!(
            ended.is_none(),
            "the controller has ended: {ended:?}\n{}",
            fs::read_to_string(&self.log).unwrap_or_default()
        );
    }
}

pub(crate) fn merge(into: &mut Value, change: &Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change.clone(),
    }
}
