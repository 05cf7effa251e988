//! Polls a component over HTTP until it is ready.

use std::path::Path;
use std::time::{Duration, Instant};

use kube::{Client, Config};

use crate::child_process::ChildProcess;
use crate::error::StartError;
use crate::logs;
use crate::options::Component;
use crate::ports::Ports;

/// Another process that has taken the port can accept connections and never respond.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(25);

/// Asks one component whether it is ready.
pub(crate) struct Probe {
    component: Component,
    client: Client,
    path: &'static str,
}

impl Probe {
    /// A probe for a component that serves on one of these ports with a certificate of this authority.
    pub(crate) fn new(component: Component, ports: &Ports, authority_pem: &Path) -> Result<Self, StartError> {
        let (scheme, port, path) = match component {
            Component::Etcd => ("http", ports.etcd, "/health"),
            Component::ApiServer => ("https", ports.api_server, "/readyz"),
            // Its /healthz turns ok before its controllers have synced, which is as ready as it ever says it is.
            Component::ControllerManager => ("https", ports.controller_manager, "/healthz"),
            // Not /healthz: /readyz waits until the scheduler has seen all nodes and pods.
            Component::Scheduler => ("https", ports.scheduler, "/readyz"),
            Component::Kwok => ("http", ports.kwok, "/readyz"),
            Component::Karpenter => ("http", ports.karpenter, "/readyz"),
        };
        let wrong = |error: &dyn std::fmt::Display| StartError::Client(error.to_string());
        let url = format!("{scheme}://127.0.0.1:{port}").parse().map_err(|error| wrong(&error))?;
        let mut config = Config::new(url);
        config.root_cert_file = Some(authority_pem.to_owned());
        let client = Client::try_from(config).map_err(|error| wrong(&error))?;
        Ok(Self { component, client, path })
    }

    /// Waits until the component is ready, or has ended, or has had its time.
    pub(crate) async fn until_ready(
        &self,
        process: &mut ChildProcess,
        log: &Path,
        limit: Duration,
    ) -> Result<(), StartError> {
        let began = Instant::now();
        loop {
            let last = match tokio::time::timeout(ANSWER_LIMIT, self.ask()).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it does not answer".to_owned(),
            };
            if let Some(status) = process.ended() {
                return Err(StartError::of_ended(self.component, status, log));
            }
            if began.elapsed() > limit {
                let tail = logs::tail(log);
                return Err(StartError::NotReady { component: self.component, waited: limit, last, tail });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn ask(&self) -> Result<(), kube::Error> {
        let request = http::Request::get(self.path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        self.client.request_text(request).await.map(drop)
    }
}
