//! The flags of `sk-tracer`: `sk-tracer -c config.yaml --data-dir /var/lib/sk-tracer`.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use sk_api::tracer::Config;
use sk_core::SimDuration;
use tokio::signal::unix::{SignalKind, signal};

use crate::access::{Access, Place};
use crate::tls::Files;
use crate::{Options, Publication, Security, Serving, Tracer};

/// Records a Kubernetes cluster: watches it, stores the events in a durable log, exports traces.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "sk-tracer",
    version,
    after_help = "Example:\n  sk-tracer -c tracer.yaml --data-dir /var/lib/sk-tracer\n\n\
    Exports need a token: kubectl create token simkube-exporter --audience simkube-tracer"
)]
pub struct Args {
    /// The tracer configuration: what to record, what to leave out, where traces may be written.
    #[arg(short, long, value_name = "FILE")]
    pub config_file: PathBuf,

    /// Serve on this port.
    #[arg(long, value_name = "PORT", default_value_t = crate::install::PORT)]
    pub server_port: u16,

    /// Serve on this address.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub bind: IpAddr,

    /// The folder of the log. Without it, the recording is lost when the tracer ends.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,

    /// Sync the log to disk this often. A crash loses at most what arrived since the last sync.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    pub sync_interval: Duration,

    /// Serve without TLS and without authentication; on a loopback address only.
    #[arg(long)]
    pub insecure: bool,

    /// The TLS certificate (PEM); by default the tracer makes one and keeps it in the data folder.
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "insecure")]
    pub tls_cert: Option<PathBuf>,

    /// The private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Write the certificate to this ConfigMap, so that clients can trust it.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = Publication::parse)]
    pub publish_certificate: Option<Publication>,

    /// The kubeconfig file; by default $KUBECONFIG, ~/.kube/config, or the pod's own ServiceAccount.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The kubeconfig context to use; by default the current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// Log level: error, warn, info, debug, trace, or a filter such as `info,sk_tracer=debug`.
    #[arg(short, long, value_name = "LEVEL", default_value = "info")]
    pub verbosity: String,
}

fn duration(text: &str) -> Result<Duration, String> {
    let span: SimDuration = text.parse().map_err(|error| format!("{error}"))?;
    let micros = u64::try_from(span.as_micros()).map_err(|_| "a time before now".to_owned())?;
    if micros == 0 { Err("must be greater than 0".to_owned()) } else { Ok(Duration::from_micros(micros)) }
}

impl Args {
    fn options(&self) -> Options {
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        let security = match (self.insecure, tls) {
            (true, _) => Security::Insecure,
            (false, None) => Security::OwnCertificate,
            (false, Some((certificate, key))) => Security::Certificate(Files { certificate, key }),
        };
        let address = SocketAddr::new(self.bind, self.server_port);
        let publish = self.publish_certificate.clone();
        Options {
            data_dir: self.data_dir.clone(),
            sync_interval: self.sync_interval,
            serving: Some(Serving { address, security, publish }),
            ..Options::default()
        }
    }
}

/// Records until SIGTERM or SIGINT.
pub async fn run(args: Args) -> Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_new(&args.verbosity).context("read --verbosity")?;
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
    let file = args.config_file.display().to_string();
    let text = std::fs::read_to_string(&args.config_file).with_context(|| format!("read {file}"))?;
    let config = Config::parse(&file, &text)?;
    if args.data_dir.is_none() {
        tracing::warn!("without --data-dir the recording is lost when the tracer ends");
    }
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let place = Place { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
    let (access, server) = Access::to(place).await?;
    tracing::info!(server, "recording");
    let tracer = Tracer::start(access, config, args.options()).await?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = tracer.failed() => bail!("the tracer cannot continue; the log lines above say why"),
    }
    tracing::info!("stopping; syncing the log to disk");
    tracer.shutdown().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_becomes_options() {
        let typed = ["sk-tracer", "-c", "x.yaml", "--sync-interval", "1s", "--insecure", "--server-port", "1"];
        let args = Args::try_parse_from(typed).unwrap();
        let options = args.options();
        assert_eq!(options.sync_interval, Duration::from_secs(1));
        let serving = options.serving.unwrap();
        assert_eq!((serving.address, serving.security), ("127.0.0.1:1".parse().unwrap(), Security::Insecure));
    }

    #[test]
    fn a_certificate_needs_its_key_and_no_time_is_no_interval() {
        assert!(Args::try_parse_from(["sk-tracer", "-c", "x", "--tls-cert", "a"]).is_err());
        assert!(Args::try_parse_from(["sk-tracer", "-c", "x", "--sync-interval", "0s"]).is_err());
        assert!(Args::try_parse_from(["sk-tracer", "-c", "x", "--publish-certificate", "nameonly"]).is_err());
    }
}
