//! A cluster whose pods can be forwarded to, and `skctl` in a folder of its own.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use assert_cmd::Command;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};
use sk_api::tracer::Config;
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_testkit::options::DEFAULT_STAGES;
use sk_testkit::{Options, objects};
use sk_tracer::{Publication, Security, Serving, Tracer, install};
use tempfile::TempDir;

/// How long anything may take on a machine that has other things to do.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// What the stories record: workloads, in full, because what is compared are the objects themselves.
pub(crate) const CONFIG: &str = "trackedObjects:
  apps/v1.Deployment: {}
  apps/v1.StatefulSet: {}
  batch/v1.Job: {trackLifecycle: true}
privacy: full
namespaces: {exclude: [simkube]}
";

/// A control plane, and the ports that are nobody else's on this machine, where other tests run at the same time.
pub(crate) struct Fixture {
    pub(crate) cluster: ControlPlane,
    /// Where a tracer is to listen, so that the port of its pod leads there.
    pub(crate) tracer_port: u16,
    /// The same for a controller.
    pub(crate) controller_port: u16,
    /// Where drivers are to listen, one after the other.
    pub(crate) driver_port: u16,
    /// What nodes say about their kubelet, so that the API server finds it.
    kubelet: Value,
    pub(crate) dir: TempDir,
    /// From when on the tracer has seen everything.
    since: OnceLock<String>,
}

impl Fixture {
    /// Starts a control plane with two KWOK nodes for all pods.
    pub(crate) async fn start() -> Self {
        let fixture = Self::start_with(Options::default(), DEFAULT_STAGES).await;
        let nodes = ["node-1", "node-2"].map(|name| fixture.node(name));
        fixture.cluster.create_nodes(nodes).await.expect("KWOK makes nodes ready");
        fixture
    }

    /// Starts a control plane whose kubelet, which KWOK plays, forwards our servers' ports to this machine.
    pub(crate) async fn start_with(options: Options, stages: &str) -> Self {
        // Held until the control plane has found its own.
        let held = [(); 3].map(|()| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("there is a free port"));
        let [tracer_port, controller_port, driver_port] =
            held.each_ref().map(|listener| listener.local_addr().expect("it listens").port());
        let forward = |port: u16, to: u16| json!({"ports": [port], "target": {"port": to, "address": "127.0.0.1"}});
        let forwards = [forward(install::PORT, tracer_port), forward(sk_ctrl::install::PORT, controller_port)];
        let forward = json!({
            "apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterPortForward", "metadata": {"name": "simkube"},
            "spec": {"selector": {"matchNamespaces": [install::NAMESPACE]}, "forwards": forwards},
        });
        let options = options.stages(&format!("{stages}\n---\n{forward}\n"));
        let cluster = ControlPlane::start(options).await.expect("a control plane starts");
        drop(held);
        let dir = TempDir::new().expect("there is room for a temporary folder");
        std::fs::write(dir.path().join("tracer.yaml"), CONFIG).expect("a temporary folder can be written to");
        let kubelet = json!({"kubeletEndpoint": {"Port": cluster.kubelet_port()}});
        Self { cluster, tracer_port, controller_port, driver_port, kubelet, dir, since: OnceLock::new() }
    }

    /// A node whose pods can be forwarded to.
    pub(crate) fn node(&self, name: &str) -> objects::Object {
        objects::node()
            .name(name)
            .capacity("16", "64Gi", "110")
            .set("/status/addresses", json!([{"type": "InternalIP", "address": "127.0.0.1"}]))
            .set("/status/daemonEndpoints", self.kubelet.clone())
    }

    /// `skctl` as whoever may do everything.
    pub(crate) fn skctl(&self) -> Command {
        self.skctl_as(&self.cluster.kubeconfig())
    }

    /// `skctl` with this kubeconfig.
    pub(crate) fn skctl_as(&self, kubeconfig: &Path) -> Command {
        let mut command = Command::cargo_bin("skctl").expect("the binary of this crate is built");
        command.current_dir(self.dir.path()).env("NO_COLOR", "1").arg("--kubeconfig").arg(kubeconfig);
        command.timeout(LIMIT * 2);
        command
    }

    /// `skctl` that goes on by itself, as whoever may do everything.
    pub(crate) fn spawn(&self, words: &[&str]) -> Child {
        self.spawn_as(&self.cluster.kubeconfig(), words)
    }

    /// `skctl` that goes on by itself, with this kubeconfig.
    pub(crate) fn spawn_as(&self, kubeconfig: &Path, words: &[impl AsRef<OsStr>]) -> Child {
        std::process::Command::new(assert_cmd::cargo::cargo_bin("skctl"))
            .current_dir(self.dir.path())
            .env("NO_COLOR", "1")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(words)
            .stderr(Stdio::piped())
            .spawn()
            .expect("skctl starts")
    }

    /// A volume for an installation to claim.
    pub(crate) async fn create_volume(&self) {
        let volume = objects::object(json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "for-an-installation"},
            "spec": {
                "capacity": {"storage": "100Gi"}, "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/nowhere"},
            },
        }));
        self.cluster.create(&volume).await.expect("a volume can be made");
    }

    /// Installs the tracer with `skctl`.
    pub(crate) async fn install_tracer(&self) {
        self.create_volume().await;
        // The doctor who comes after it finds no tracer yet, so that its exit code is not good.
        let out = self.skctl().args(["install", "tracer", "-c", "tracer.yaml", "--no-wait"]).assert();
        out.stdout(predicates::str::contains("created   Deployment simkube/sk-tracer"));
    }

    /// A tracer in this process, where the forwarded port leads, which publishes its certificate as the installed one does.
    pub(crate) async fn start_tracer(&self) -> Tracer {
        let serving = Serving {
            address: (Ipv4Addr::LOCALHOST, self.tracer_port).into(),
            security: Security::OwnCertificate,
            publish: Some(Publication {
                namespace: install::NAMESPACE.to_owned(),
                name: install::CERTIFICATE.to_owned(),
            }),
        };
        let config = Config::parse("tracer.yaml", CONFIG).expect("the configuration is one");
        let options = sk_tracer::Options {
            data_dir: Some(self.dir.path().join("tracer-data")),
            serving: Some(serving),
            ..sk_tracer::Options::default()
        };
        let tracer = Tracer::start(self.cluster.client(), config, options).await.expect("a tracer starts");
        tokio::time::timeout(LIMIT, tracer.ready()).await.expect("the tracer sees everything");
        let now = jiff::Timestamp::now().to_string();
        self.since.set(now).expect("a story has one tracer");
        tracer
    }

    /// The first moment that can be exported.
    pub(crate) fn since(&self) -> &str {
        self.since.get().expect("a tracer was started")
    }

    /// A kubeconfig for an account, which is made if it is not there and then has no rights.
    pub(crate) async fn kubeconfig_of(&self, namespace: &str, account: &str) -> PathBuf {
        let api: Api<ServiceAccount> = Api::namespaced(self.cluster.client(), namespace);
        if api.get_opt(account).await.expect("the server answers").is_none() {
            let new = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}});
            let new = serde_json::from_value(new).expect("it is an account");
            api.create(&PostParams::default(), &new).await.expect("an account can be made");
        }
        let request = TokenRequest::default();
        let answer = api.create_token_request(account, &PostParams::default(), &request).await.expect("a token");
        let token = answer.status.and_then(|status| status.token).expect("there is a token in it");
        let text = std::fs::read_to_string(self.cluster.kubeconfig()).expect("the admin has one");
        let mut config: Value = serde_json::from_str(&text).expect("it is JSON");
        config["users"][0]["user"] = json!({"token": token});
        let path = self.path(&format!("{account}.kubeconfig"));
        std::fs::write(&path, config.to_string()).expect("a temporary folder can be written to");
        path
    }

    /// Waits until the doctor has nothing to complain of.
    pub(crate) async fn until_well(&self, part: &str) {
        let began = std::time::Instant::now();
        loop {
            let found = self.skctl().args(["doctor", part]).output().expect("the doctor comes");
            if found.status.success() {
                return;
            }
            let said = String::from_utf8_lossy(&found.stdout).into_owned();
            assert!(began.elapsed() < LIMIT, "the {part} does not get well:\n{said}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Waits until an app in the default namespace has so many pods, and all of them run.
    pub(crate) async fn until_running(&self, app: &str, wanted: usize) {
        let pods: Api<Pod> = Api::default_namespaced(self.cluster.client());
        let labels = ListParams::default().labels(&format!("app={app}"));
        eventually(&format!("{wanted} running pods of {app}"), LIMIT, || async {
            let listed = pods.list(&labels).await?.items;
            let runs = |pod: &Pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
            Ok((listed.len() == wanted && listed.iter().all(runs)).then_some(()))
        })
        .await
        .expect("they run");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}
