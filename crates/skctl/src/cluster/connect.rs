//! Creates a client from `--context` and `--kubeconfig`.
//!
//! A user who changes a cluster must see which one. So a [`Cluster`] carries the name of its context and the address of
//! its server, and every message about it shows both.

use std::fmt;
use std::path::{Path, PathBuf};

use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::cli::Global;

/// How a cluster is called that was not chosen from a kubeconfig.
const IN_CLUSTER: &str = "in-cluster";

/// A cluster that can be talked to.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// The context's name in the kubeconfig.
    pub(crate) context: String,
    /// Where its API server is.
    pub(crate) server: String,
    /// Where the tracer or the controller lives in it.
    pub(crate) namespace: String,
}

/// Why there is no connection to a cluster.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error(
        "there is no kubeconfig: neither $KUBECONFIG nor ~/.kube/config leads to a cluster; name one with \
         --kubeconfig FILE, or stay without a cluster: `skctl run TRACE` needs none"
    )]
    NoKubeconfig,
    #[error("cannot read the kubeconfig {path}: {source}; check --kubeconfig or $KUBECONFIG")]
    Read { path: PathBuf, source: Box<KubeconfigError> },
    #[error("cannot read the kubeconfig: {0}; check $KUBECONFIG")]
    Default(Box<KubeconfigError>),
    #[error("the kubeconfig has no context `{wanted}`; it has: {known}")]
    NoSuchContext { wanted: String, known: String },
    #[error("the kubeconfig has no current context; choose one with --context: {known}")]
    NoContext { known: String },
    #[error("context {context} of the kubeconfig cannot be used: {source}")]
    Context { context: String, source: Box<KubeconfigError> },
    #[error("cannot create a client for context {context}: {source}")]
    Client { context: String, source: Box<kube::Error> },
}

impl Cluster {
    /// The cluster that the flags, the environment or the files of this machine name. Nothing is sent yet.
    pub(crate) async fn connect(global: &Global) -> Result<Self, ConnectError> {
        let Some(kubeconfig) = kubeconfig(global.kubeconfig.as_deref())? else {
            return Self::of_the_pod_we_are_in(global);
        };
        let known = || kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect::<Vec<_>>().join(", ");
        let context = match (&global.context, &kubeconfig.current_context) {
            (Some(wanted), _) if !kubeconfig.contexts.iter().any(|context| context.name == *wanted) => {
                return Err(ConnectError::NoSuchContext { wanted: wanted.clone(), known: known() });
            }
            (Some(context), _) => context.clone(),
            (None, Some(context)) if !context.is_empty() => context.clone(),
            (None, _) if kubeconfig.contexts.is_empty() => return Self::of_the_pod_we_are_in(global),
            (None, _) => return Err(ConnectError::NoContext { known: known() }),
        };
        let options = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let config =
            config.map_err(|source| ConnectError::Context { context: context.clone(), source: Box::new(source) })?;
        Self::of_config(context, config, global)
    }

    /// For `skctl` in a pod, where a kubeconfig is neither there nor needed.
    fn of_the_pod_we_are_in(global: &Global) -> Result<Self, ConnectError> {
        match (Config::incluster(), &global.context) {
            (_, Some(wanted)) => {
                Err(ConnectError::NoSuchContext { wanted: wanted.clone(), known: "none at all".to_owned() })
            }
            (Ok(config), None) => Self::of_config(IN_CLUSTER.to_owned(), config, global),
            (Err(_), None) => Err(ConnectError::NoKubeconfig),
        }
    }

    fn of_config(context: String, config: Config, global: &Global) -> Result<Self, ConnectError> {
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = Client::try_from(config)
            .map_err(|source| ConnectError::Client { context: context.clone(), source: Box::new(source) })?;
        Ok(Self { client, context, server, namespace: global.home().to_owned() })
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "context {} ({})", self.context, self.server)
    }
}

/// The file that was named, or what the environment and the home folder have; `None` if they have nothing.
fn kubeconfig(file: Option<&Path>) -> Result<Option<Kubeconfig>, ConnectError> {
    if let Some(path) = file {
        let read = Kubeconfig::read_from(path);
        return read.map(Some).map_err(|source| ConnectError::Read { path: path.to_owned(), source: Box::new(source) });
    }
    match Kubeconfig::read() {
        Ok(kubeconfig) => Ok(Some(kubeconfig)),
        Err(KubeconfigError::FindPath) => Ok(None),
        Err(KubeconfigError::ReadConfig(error, _)) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ConnectError::Default(Box::new(error))),
    }
}
