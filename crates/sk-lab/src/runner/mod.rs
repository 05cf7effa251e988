//! Runs selected pods as local processes and reports their status, in place of a kubelet.
//!
//! A runner is a node of its own that KWOK ignores. Of the pods bound to that node it runs those that match its label
//! selector: the command of the first container (or the program that stands for its image), with its arguments,
//! environment, volumes and ServiceAccount. `KUBECONFIG` points the process to the API server with that account.
//! Restart policy, exit codes, grace period and deletion follow the kubelet.
//!
//! Pods have the address of this machine, so the API server reaches a webhook in one through its Service.
//!
//! It refuses, in the pod's status, what a local process cannot do: several containers, init containers, and volumes
//! that are not files. It isolates nothing: use it for programs that you trust.

mod expand;
mod life;
mod prepare;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::access::{create_value, until_nodes_ready};
use crate::child_process::Supervision;
use crate::control_plane::ControlPlane;
use crate::error::ControlError;
use crate::folder::Connection;
use crate::options::Component;

/// Pods of one runner, counted until they are deleted. A shell or one of our programs takes a few megabytes, so that
/// these are about one gigabyte at most; a test has a handful, and more than this is a loop that creates pods.
const MAX_PODS: usize = 256;
/// A quarter of the 40 s that a kubelet's lease lasts.
const LEASE_RENEWAL: Duration = Duration::from_secs(10);
const LEASE_SECS: u32 = 40;

/// Which pods are run, where and how.
#[derive(Clone, Debug)]
pub struct RunnerOptions {
    /// The name of the runner's node.
    pub node: String,
    /// A label selector, such as `app=driver`: pods on the node that it does not choose are left alone.
    pub selector: String,
    /// Programs, with their first words, that stand for images, for containers without a command.
    pub programs: BTreeMap<String, Vec<OsString>>,
    /// Where PersistentVolumeClaims are folders; without it, pods with such volumes are refused.
    pub claims: Option<PathBuf>,
    /// Where a kubelet serves that forwards the ports of the node's pods: KWOK's, if it was told how.
    pub kubelet_port: Option<u16>,
}

impl RunnerOptions {
    /// Runs the pods with these labels on a node called `process-runner`.
    pub fn for_pods(selector: &str) -> Self {
        Self {
            node: "process-runner".to_owned(),
            selector: selector.to_owned(),
            programs: BTreeMap::new(),
            claims: None,
            kubelet_port: None,
        }
    }

    /// A program that is run for an image whose container has no command.
    pub fn program(self, image: &str, program: &Path) -> Self {
        self.words(image, vec![program.into()])
    }

    /// A program and its first words that are run for an image whose container has no command.
    pub fn words(mut self, image: &str, words: Vec<OsString>) -> Self {
        self.programs.insert(image.to_owned(), words);
        self
    }
}

/// A running process runner. Its processes end when it is dropped.
pub struct ProcessRunner {
    logs: PathBuf,
    task: JoinHandle<()>,
    heartbeat: JoinHandle<()>,
    /// Folders of pods; outlives the processes in them.
    _folder: TempDir,
}

/// What all pods of a runner share.
#[derive(Clone)]
struct Context {
    client: Client,
    connection: Connection,
    supervision: Supervision,
    programs: BTreeMap<String, Vec<OsString>>,
    claims: Option<PathBuf>,
    folder: PathBuf,
    logs: PathBuf,
    /// The pods' address: this machine's own, which the API server may take for an endpoint.
    address: String,
}

/// Orders to the task of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Go on.
    Run,
    /// The pod is being deleted: end in its grace, then remove it.
    End,
    /// The pod is gone: end at once.
    Kill,
}

impl ProcessRunner {
    /// Registers the runner's node and begins to run pods.
    pub async fn start(cluster: &ControlPlane, options: RunnerOptions) -> Result<Self, ControlError> {
        let folder = tempfile::tempdir().map_err(ControlError::Folder)?;
        let logs = cluster.logs_dir().join("pods");
        fs::create_dir_all(&logs).map_err(ControlError::Folder)?;
        let context = Context {
            client: cluster.client(),
            connection: cluster.connection(),
            supervision: cluster.supervision().clone(),
            programs: options.programs,
            claims: options.claims,
            folder: folder.path().to_owned(),
            logs: logs.clone(),
            address: host_address()?.to_string(),
        };
        renew_lease(&context.client, &options.node).await?;
        create_value(cluster.client(), &node(&options.node, options.kubelet_port)).await?;
        let untaints = cluster.options().runs(Component::ControllerManager);
        until_nodes_ready(cluster.client(), std::slice::from_ref(&options.node), untaints).await?;
        let heartbeat = tokio::spawn(keep_alive(context.clone(), options.node.clone()));
        let task = tokio::spawn(run_pods(context, options.node, options.selector));
        Ok(Self { logs, task, heartbeat, _folder: folder })
    }

    /// What a pod's process has written, in its first run (`restart` 0) or after so many restarts.
    pub fn log(&self, namespace: &str, pod: &str, restart: u32) -> PathBuf {
        log_file(&self.logs, namespace, pod, restart)
    }
}

impl Drop for ProcessRunner {
    fn drop(&mut self) {
        self.task.abort();
        self.heartbeat.abort();
    }
}

impl Context {
    fn pod_folder(&self, pod: &Pod) -> PathBuf {
        self.folder.join(pod.metadata.uid.as_deref().unwrap_or("no-uid"))
    }

    fn log(&self, pod: &Pod, restart: u32) -> PathBuf {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        log_file(&self.logs, &text(&pod.metadata.namespace), &text(&pod.metadata.name), restart)
    }

    /// Writes down what went wrong where the other logs are; there is nobody else to tell.
    fn note(&self, message: &str) {
        let log = OpenOptions::new().create(true).append(true).open(self.logs.join("process-runner.log"));
        let _ = log.and_then(|mut log| writeln!(log, "{message}"));
    }
}

fn log_file(logs: &Path, namespace: &str, pod: &str, restart: u32) -> PathBuf {
    logs.join(format!("{namespace}_{pod}_{restart}.log"))
}

/// A node that is ready from the start, large enough for any pod, and not KWOK's.
fn node(name: &str, kubelet_port: Option<u16>) -> Value {
    let size = json!({"cpu": "1000", "memory": "1000Gi", "pods": MAX_PODS.to_string()});
    let mut node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "ProcessRunner"}],
            "capacity": size, "allocatable": size,
        },
    });
    if let Some(port) = kubelet_port {
        node["status"]["addresses"] = json!([{"type": "InternalIP", "address": Ipv4Addr::LOCALHOST}]);
        node["status"]["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": port}});
    }
    node
}

/// An address that is documentation only (RFC 5737). Connecting a UDP socket sends nothing, but has the system choose
/// the address that it would send from.
const ELSEWHERE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);

/// This machine's own address, which pods have: Kubernetes refuses loopback addresses as endpoints.
pub fn host_address() -> Result<IpAddr, ControlError> {
    let chosen = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(ELSEWHERE)?;
        Ok(socket.local_addr()?.ip())
    };
    match chosen() {
        Ok(address) if address.is_loopback() || address.is_unspecified() => {
            Err(ControlError::NoAddress(io::Error::other(format!("only {address}"))))
        }
        other => other.map_err(ControlError::NoAddress),
    }
}

async fn keep_alive(context: Context, node: String) {
    loop {
        tokio::time::sleep(LEASE_RENEWAL).await;
        if let Err(error) = renew_lease(&context.client, &node).await {
            context.note(&error.to_string());
        }
    }
}

/// Tells the node lifecycle controller that the node lives.
async fn renew_lease(client: &Client, node: &str) -> Result<(), ControlError> {
    let api: Api<k8s_openapi::api::coordination::v1::Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": node},
        "spec": {
            "holderIdentity": node, "leaseDurationSeconds": LEASE_SECS,
            "renewTime": jiff::Timestamp::now().strftime("%FT%T%.6fZ").to_string(),
        },
    });
    let renewed = api.patch(node, &PatchParams::apply("process-runner").force(), &Patch::Apply(lease)).await;
    renewed.map(drop).map_err(ControlError::request(format!("renew the lease of node {node}")))
}

/// Follows the node's pods, and starts and ends their lives.
async fn run_pods(context: Context, node: String, selector: String) {
    let api: Api<Pod> = Api::all(context.client.clone());
    let config = watcher::Config::default().fields(&format!("spec.nodeName={node}")).labels(&selector);
    let mut events = watcher(api, config).default_backoff().boxed();
    let mut lives = Lives { context, orders: BTreeMap::new(), listed: BTreeSet::new(), tasks: JoinSet::new() };
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => lives.listed.clear(),
            Ok(watcher::Event::InitApply(pod)) => {
                lives.listed.extend(pod.metadata.uid.clone());
                lives.see(pod);
            }
            Ok(watcher::Event::InitDone) => lives.kill_unlisted(),
            Ok(watcher::Event::Apply(pod)) => lives.see(pod),
            Ok(watcher::Event::Delete(pod)) => lives.kill(pod.metadata.uid.as_deref().unwrap_or_default()),
            Err(error) => lives.context.note(&format!("watch the pods of {node}: {error}")),
        }
    }
}

/// The pods that are being run, by uid. Dropping it ends them all.
struct Lives {
    context: Context,
    orders: BTreeMap<String, watch::Sender<Order>>,
    /// Uids seen since the watch was last restarted.
    listed: BTreeSet<String>,
    tasks: JoinSet<()>,
}

impl Lives {
    /// Begins a new pod's life, or tells a known one that its pod is being deleted.
    fn see(&mut self, pod: Pod) {
        let Some(uid) = pod.metadata.uid.clone() else { return };
        let order = if pod.metadata.deletion_timestamp.is_some() { Order::End } else { Order::Run };
        if let Some(orders) = self.orders.get(&uid) {
            orders.send_if_modified(|current| std::mem::replace(current, order) != order);
            return;
        }
        while self.tasks.try_join_next().is_some() {}
        if self.tasks.len() >= MAX_PODS {
            return self.context.note(&format!("more than {MAX_PODS} pods: {:?} is not run", pod.metadata.name));
        }
        let (sender, receiver) = watch::channel(order);
        self.orders.insert(uid, sender);
        self.tasks.spawn(life::live(self.context.clone(), pod, receiver));
    }

    fn kill(&mut self, uid: &str) {
        if let Some(orders) = self.orders.remove(uid) {
            let _ = orders.send(Order::Kill);
        }
    }

    fn kill_unlisted(&mut self) {
        let gone: Vec<_> = self.orders.keys().filter(|uid| !self.listed.contains(*uid)).cloned().collect();
        for uid in gone {
            self.kill(&uid);
        }
    }
}
