//! The flags of `sk-ctrl`, and its start: connect, load the certificate, serve records, reconcile Simulations.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use clap::Parser;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::events::{Recorder, Reporter};
use kube::{Client, Config, ResourceExt};
use sk_api::simulation::{Simulation, names};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::cluster::Cluster;
use crate::execute::Executor;
use crate::leader_election::LeaderElection;
use crate::reconcile;
use crate::records::{DEFAULT_MAX_TRACE_BYTES, Identity, Server, Store, Traces};
use crate::settings::{DEFAULT_START_LIMIT, Settings};

/// How often it is looked whether the certificate has to be renewed.
const IDENTITY_CHECK: Duration = Duration::from_secs(12 * 3600);

/// How often traces are swept that no Simulation names.
const TRACE_SWEEP: Duration = Duration::from_secs(600);

/// The controller of Simulations: creates a driver Job for each, one at a time, keeps the records and cleans up.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Example: sk-ctrl --kubeconfig ~/.kube/config --records-dir /var/lib/simkube/records --driver-image sk-driver:0.1.0"
)]
pub struct Arguments {
    /// The controller's own namespace, with its Lease and the drivers.
    #[arg(long, env = "SIMKUBE_NAMESPACE", default_value = names::NAMESPACE)]
    pub namespace: String,
    /// The identity of this controller in leader election; in a cluster, the name of its pod.
    #[arg(long, env = "HOSTNAME", default_value = names::CONTROLLER_NAME)]
    pub identity: String,
    /// The image of drivers, unless a Simulation names another.
    #[arg(long, default_value = concat!("sk-driver:", env!("CARGO_PKG_VERSION")))]
    pub driver_image: String,
    /// The ServiceAccount of drivers.
    #[arg(long, default_value = names::DRIVER_ACCOUNT)]
    pub driver_service_account: String,
    /// Run drivers in any namespace that a Simulation names. The controller needs permissions there.
    #[arg(long)]
    pub any_namespace: bool,
    /// Run the hooks of Simulations. Everyone who can create a Simulation can then run commands in this container.
    #[arg(long)]
    pub allow_hooks: bool,
    /// Mount file:// traces from the node into the driver. Everyone who can create a Simulation can then make a driver
    /// read any file of a node.
    #[arg(long)]
    pub local_traces: bool,
    /// The folder for records.
    #[arg(long, default_value = "/var/lib/simkube/records")]
    pub records_dir: PathBuf,
    /// The largest trace that users may upload, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_TRACE_BYTES)]
    pub max_trace_bytes: u64,
    /// Allow Simulations to use this driver image too: a full name, or a prefix that ends before a `/`, `:` or `@`; may be
    /// repeated.
    #[arg(long, value_name = "PREFIX", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub allow_driver_image: Vec<String>,
    /// Serve records and traces on this address.
    #[arg(long, default_value = "0.0.0.0:8443")]
    pub bind: SocketAddr,
    /// The URL at which drivers reach it; by default the Service of the installation.
    #[arg(long, value_name = "URL")]
    pub records_url: Option<String>,
    /// Give up a driver that does not run after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_START_LIMIT.as_secs())]
    pub driver_start_limit: u64,
    /// The kubeconfig file; by default the pod's own ServiceAccount.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use.
    #[arg(long)]
    pub context: Option<String>,
    /// Log level: error, warn, info, debug, trace, or a filter such as `sk_ctrl=debug,kube=info`.
    #[arg(short, long, value_name = "LEVEL", default_value = "info")]
    pub verbosity: String,
}

impl Arguments {
    fn settings(&self) -> Settings {
        let installed = Settings::in_namespace(&self.namespace, &self.driver_image);
        Settings {
            driver_account: self.driver_service_account.clone(),
            any_namespace: self.any_namespace,
            allow_hooks: self.allow_hooks,
            local_traces: self.local_traces,
            allowed_images: self.allow_driver_image.clone(),
            start_limit: Duration::from_secs(self.driver_start_limit),
            records_url: self.records_url.clone().unwrap_or_else(|| installed.records_url.clone()),
            ..installed
        }
    }
}

/// Runs the controller until it is asked to stop.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_new(&arguments.verbosity)
        .with_context(|| format!("--verbosity {} is not a log filter", arguments.verbosity))?;
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(std::io::stderr).init();
    let client = connect(&arguments).await?;
    let settings = arguments.settings();
    let store = Store::open(&arguments.records_dir).await.context("open the folder of records (--records-dir)")?;
    let traces =
        Traces::open(&arguments.records_dir, arguments.max_trace_bytes).await.context("open the traces' folder")?;
    sweep(&client, &store).await?;

    let identity = Identity::establish(&client, &settings.namespace, &more_names(&settings)).await?;
    let (identities, newest) = watch::channel(identity.server_config()?);
    let server = Server::bind(arguments.bind, client.clone(), store.clone(), traces.clone()).await?;
    info!(version = env!("CARGO_PKG_VERSION"), address = ?server.address(), ?settings, "started");
    let executor = Arc::new(Executor {
        cluster: Cluster::new(client.clone()),
        recorder: Recorder::new(
            client.clone(),
            Reporter { controller: names::CONTROLLER_NAME.to_owned(), instance: None },
        ),
        authority: identity.authority().to_owned(),
        settings: settings.clone(),
        store,
    });
    let leader_election = LeaderElection::new(client.clone(), &settings.namespace, &arguments.identity);
    tokio::select! {
        () = act(executor, leader_election, stop()?.boxed().shared()) => Ok(()),
        () = server.serve(newest) => Ok(()),
        () = sweep_traces(client.clone(), traces) => Ok(()),
        () = keep_identity(client, settings, identity, identities) => Ok(()),
    }
}

/// Follows Simulations whenever this controller is the one that acts, until it is asked to stop.
async fn act(executor: Arc<Executor>, leader_election: LeaderElection, stop: Shared<BoxFuture<'static, ()>>) {
    loop {
        tokio::select! {
            () = leader_election.acquire() => {}
            () = stop.clone() => return,
        }
        tokio::select! {
            () = reconcile::run(Arc::clone(&executor), stop.clone()) => return leader_election.release().await,
            () = leader_election.renew() => {}
        }
    }
}

async fn connect(arguments: &Arguments) -> anyhow::Result<Client> {
    let options = KubeConfigOptions { context: arguments.context.clone(), ..KubeConfigOptions::default() };
    let config = match (&arguments.kubeconfig, &arguments.context) {
        (Some(file), _) => {
            let read = Kubeconfig::read_from(file).with_context(|| format!("read {}", file.display()))?;
            Config::from_custom_kubeconfig(read, &options).await.with_context(|| format!("use {}", file.display()))?
        }
        (None, Some(_)) => Config::from_kubeconfig(&options).await.context("find a kubeconfig")?,
        (None, None) => {
            Config::infer().await.context("find a cluster: there is neither a pod's ServiceAccount nor a kubeconfig")?
        }
    };
    info!(server = %config.cluster_url, "connecting");
    Client::try_from(config).context("make a client")
}

/// Removes records whose Simulation is gone: its finalizer was taken off by hand while no controller was there.
async fn sweep(client: &Client, store: &Store) -> anyhow::Result<()> {
    let api: Api<Simulation> = Api::all(client.clone());
    let listed = api.list(&ListParams::default()).await.context("list Simulations: are the CRDs installed?")?;
    let known: Vec<_> = listed.iter().map(ResourceExt::name_any).collect();
    for name in store.names().await?.into_iter().filter(|name| !known.contains(name)) {
        warn!(simulation = name, "a record without its Simulation is removed");
        store.remove(&name).await?;
    }
    Ok(())
}

/// Removes traces that no Simulation names, for as long as the controller runs.
async fn sweep_traces(client: Client, traces: Traces) {
    let api: Api<Simulation> = Api::all(client);
    loop {
        let now = SystemTime::now();
        match api.list(&ListParams::default()).await {
            Ok(listed) => {
                let named = |simulation: &Simulation| {
                    names::uploaded_trace(&simulation.spec.driver.trace_path).map(str::to_owned)
                };
                match traces.sweep(&listed.iter().filter_map(named).collect(), now).await {
                    Ok(gone) if gone.is_empty() => {}
                    Ok(gone) => info!(?gone, "traces that no Simulation names are removed"),
                    Err(error) => warn!(%error, "traces could not be swept; retrying"),
                }
            }
            Err(error) => warn!(%error, "Simulations could not be listed to sweep traces; retrying"),
        }
        tokio::time::sleep(TRACE_SWEEP).await;
    }
}

/// The host in a records URL that is not the Service's is one more name of ours.
fn more_names(settings: &Settings) -> Vec<String> {
    let installed = Settings::in_namespace(&settings.namespace, "");
    if settings.records_url == installed.records_url {
        return Vec::new();
    }
    let host = settings.records_url.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
    host.into_iter().collect()
}

/// Renews the certificate in time, for as long as the controller runs.
async fn keep_identity(
    client: Client,
    settings: Settings,
    mut identity: Identity,
    identities: watch::Sender<Arc<rustls::ServerConfig>>,
) {
    loop {
        tokio::time::sleep(IDENTITY_CHECK).await;
        if !identity.is_due() {
            continue;
        }
        match Identity::establish(&client, &settings.namespace, &more_names(&settings)).await {
            Ok(renewed) => {
                if let Ok(config) = renewed.server_config() {
                    identities.send_replace(config);
                    info!("the controller's certificate is renewed");
                }
                identity = renewed;
            }
            Err(error) => warn!(%error, "the controller's certificate could not be renewed; retrying"),
        }
    }
}

/// Ends when the controller is asked to: SIGTERM from a kubelet, SIGINT from a keyboard.
fn stop() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
