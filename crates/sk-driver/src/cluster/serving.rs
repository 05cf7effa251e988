//! Serves the webhook, and waits until the API server reaches it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

use super::context::Context;
use super::error::RunError;
use super::own_webhook;
use super::probe::{Probe, Reachability};
use super::stop::Stop;
use super::tls::{Certificate, Served, TlsListener};
use super::virtualise::Virtualiser;
use super::webhook::Admission;

/// Why a run without a webhook stops.
const WEBHOOK_ENDED: &str = "the driver's webhook server stopped";

/// How the API server reaches the driver's webhook.
#[derive(Clone, Debug)]
pub enum Webhook {
    /// The controller has made certificate, Service and configuration.
    Installed {
        /// The folder with `tls.crt` and `tls.key`.
        certificate: PathBuf,
        /// Where to listen.
        bind: SocketAddr,
        /// How long it may take until the API server reaches the driver.
        retry: Duration,
    },
    /// The driver makes its own, and takes them away again.
    Own {
        /// Where to listen.
        bind: SocketAddr,
        /// Where the API server finds it: `https://host:port`; without a port, the one that is listened on.
        url: String,
    },
}

/// Starts the webhook among `servers`, waits until the API server reaches it, and watches over that among `tasks`. The task
/// that is returned ends only if the webhook does, and then the run is stopped.
pub(crate) async fn start(
    webhook: &Webhook,
    context: &Arc<Context>,
    admission: Admission,
    servers: &mut JoinSet<()>,
    tasks: &mut JoinSet<()>,
) -> Result<AbortHandle, RunError> {
    let (listener, accepting, own) = listen(webhook).await?;
    let serving = servers.spawn(serve(listener, accepting, admission.router(), context.stop.clone()));
    if let Some((url, authority)) = own {
        let Virtualiser { simulation, root, .. } = &context.virtualiser;
        own_webhook::install(&context.client, &context.retry, simulation, root, &url, &authority)
            .await
            .map_err(RunError::Webhook)?;
    }
    let probe = Probe::new(context).await.map_err(RunError::Webhook)?;
    reach(webhook, context, &probe).await?;
    tasks.spawn(probe.watch_over());
    Ok(serving)
}

/// Serves until the listener ends. Nothing ends it but a bug; without a webhook, half of the run would be missing without a
/// word, so the run is stopped.
async fn serve(listener: TlsListener, accepting: JoinHandle<()>, router: Router, stop: Stop) {
    tokio::select! {
        _ = axum::serve(listener, router) => {}
        _ = accepting => {}
    }
    stop.ask(WEBHOOK_ENDED);
}

/// Waits until the API server reaches the webhook. Our own fails open, so that pods that come without it are seen by the
/// watch and counted; the controller's must answer, and a run without it would not have a single pod.
async fn reach(webhook: &Webhook, context: &Context, probe: &Probe) -> Result<(), RunError> {
    let (retry, must_answer) = match webhook {
        Webhook::Installed { retry, .. } => (*retry, true),
        Webhook::Own { .. } => (own_webhook::EFFECT_PATIENCE, false),
    };
    match probe.until_reached(retry).await {
        Ok(()) => Ok(()),
        Err(Reachability::Missed(words)) if must_answer && context.stop.reason().is_none() => {
            Err(RunError::WebhookUnreachable { waited: retry, words })
        }
        // A policy of somebody else's that refuses the probe says nothing of the webhook.
        Err(answer) => {
            tracing::warn!(
                "cannot verify that the API server reaches the webhook (see --webhook-url for its address): {answer:?}"
            );
            Ok(())
        }
    }
}

/// Listens for the API server; of a webhook of our own, where it is found and whom to trust.
async fn listen(webhook: &Webhook) -> Result<(TlsListener, JoinHandle<()>, Option<(String, String)>), RunError> {
    match webhook {
        Webhook::Installed { certificate, bind, .. } => {
            let (listener, accepting) = TlsListener::bind(*bind, Served::from_folder(certificate)?).await?;
            Ok((listener, accepting, None))
        }
        Webhook::Own { bind, url } => {
            let wrong = || RunError::WebhookUrl(url.clone());
            let mut parsed = url::Url::parse(url).map_err(|_| wrong())?;
            let host = parsed.host_str().filter(|_| parsed.scheme() == "https").ok_or_else(wrong)?;
            // An address in brackets is an IPv6 address in a URL only.
            let certificate = Certificate::for_host(host.trim_matches(['[', ']']))?;
            let (listener, accepting) = TlsListener::bind(*bind, Served::fixed(&certificate)?).await?;
            if parsed.port().is_none() {
                parsed.set_port(Some(listener.address().port())).map_err(|()| wrong())?;
            }
            Ok((listener, accepting, Some((parsed.to_string(), certificate.authority))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_listener_that_ends_stops_the_run() {
        let webhook = Webhook::Own { bind: ([127, 0, 0, 1], 0).into(), url: "https://127.0.0.1".into() };
        let (listener, accepting, own) = listen(&webhook).await.unwrap();
        assert!(own.unwrap().0.starts_with("https://127.0.0.1:"));
        let (stop, ending) = (Stop::default(), accepting.abort_handle());
        let serving = tokio::spawn(serve(listener, accepting, Router::new(), stop.clone()));
        assert_eq!(stop.reason(), None);
        ending.abort();
        serving.await.unwrap();
        assert_eq!(stop.reason().as_deref(), Some(WEBHOOK_ENDED));
        for url in ["http://127.0.0.1", "127.0.0.1", ""] {
            let webhook = Webhook::Own { bind: ([127, 0, 0, 1], 0).into(), url: url.into() };
            assert_eq!(listen(&webhook).await.err().map(|error| error.reason()), Some("WebhookFailed"), "{url}");
        }
    }
}
