//! The connection to the API server, and its renewal when credentials have expired.
//!
//! A client reads its token file and runs its credential plugin by itself, but it does not notice that a kubeconfig has
//! new credentials. So a watcher that gets a 401 requests a renewal, which reads the kubeconfig again. If many watchers
//! get a 401 at once, the kubeconfig is read once.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};

use crate::error_reporter::{Cause, Failures};

/// Credentials are read again at most this often, so that a wrong token does not become a busy loop.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// Why the tracer cannot connect to a cluster.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// No configuration was found or it cannot be read.
    #[error("find the cluster: {0}; set --kubeconfig or KUBECONFIG, or run inside a cluster")]
    Config(String),
    /// The configuration is invalid.
    #[error("make a client for the cluster: {0}")]
    Client(#[source] Box<kube::Error>),
}

/// A cluster as the user names it.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The kubeconfig; by default `KUBECONFIG`, `~/.kube/config` or the pod's ServiceAccount.
    pub kubeconfig: Option<PathBuf>,
    /// The context; by default the current one.
    pub context: Option<String>,
}

impl Place {
    async fn config(&self) -> Result<Config, AccessError> {
        let options = KubeConfigOptions { context: self.context.clone(), ..Default::default() };
        let failed = |error: &dyn fmt::Display| AccessError::Config(error.to_string());
        match &self.kubeconfig {
            Some(path) => {
                let kubeconfig = Kubeconfig::read_from(path).map_err(|error| failed(&error))?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| failed(&error))
            }
            None if self.context.is_some() => Config::from_kubeconfig(&options).await.map_err(|error| failed(&error)),
            None => Config::infer().await.map_err(|error| failed(&error)),
        }
    }

    async fn connect(&self) -> Result<(Client, String), AccessError> {
        let config = self.config().await?;
        let server = config.cluster_url.to_string();
        let client = Client::try_from(config).map_err(|error| AccessError::Client(Box::new(error)))?;
        Ok((client, server))
    }
}

/// A client that can be renewed.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

struct Inner {
    client: RwLock<Client>,
    place: Option<Place>,
    began: Instant,
    /// Milliseconds after `began` at which the last renewal was begun, plus one; 0 for never.
    renewed: AtomicU64,
    /// Failed requests.
    failures: Failures,
}

impl From<Client> for Access {
    /// A client that the caller renews.
    fn from(client: Client) -> Self {
        Self::new(client, None)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("place", &self.0.place).finish_non_exhaustive()
    }
}

impl Access {
    fn new(client: Client, place: Option<Place>) -> Self {
        let inner = Inner {
            client: RwLock::new(client),
            place,
            began: Instant::now(),
            renewed: AtomicU64::new(0),
            failures: Failures::default(),
        };
        Self(Arc::new(inner))
    }

    /// Connects, and remembers the place for renewals. Returns the server's URL too.
    pub async fn to(place: Place) -> Result<(Self, String), AccessError> {
        let (client, server) = place.connect().await?;
        Ok((Self::new(client, Some(place)), server))
    }

    /// The client as it is now.
    pub(crate) fn client(&self) -> Client {
        self.0.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Failed requests to the API server, to be logged.
    pub(crate) fn failures(&self) -> &Failures {
        &self.0.failures
    }

    /// Reads the credentials again, unless somebody has just done so.
    pub(crate) async fn renew(&self) {
        let Some(place) = &self.0.place else { return };
        let now = u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        let last = self.0.renewed.load(Ordering::Relaxed);
        let recent = last != 0 && now.saturating_sub(last) < RENEWAL_INTERVAL.as_millis() as u64;
        let won = || self.0.renewed.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if recent || !won() {
            return;
        }
        match place.connect().await {
            Ok((client, _)) => *self.0.client.write().unwrap_or_else(PoisonError::into_inner) = client,
            Err(error) => self.failures().note("the kubeconfig", Cause::Unauthorised, &error),
        }
    }
}
