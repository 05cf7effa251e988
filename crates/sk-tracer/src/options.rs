//! The options of a tracer, as plain data.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::tls::Files;

/// How often the log is synced to disk by default: what a crash may lose.
const SYNC_INTERVAL: Duration = Duration::from_millis(100);

/// How long a kind must not be served before its objects count as gone, by default. Custom resources are not served for
/// a moment after an API server has started.
const GONE_AFTER: Duration = Duration::from_secs(60);

/// How a tracer is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The folder of the log; by default a temporary one that is removed at the end.
    pub data_dir: Option<PathBuf>,
    /// How often the log is put on disk.
    pub sync_interval: Duration,
    /// What it serves, if anything.
    pub serving: Option<Serving>,
    /// How long a kind must not be served before its objects count as gone.
    pub gone_after: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { data_dir: None, sync_interval: SYNC_INTERVAL, serving: None, gone_after: GONE_AFTER }
    }
}

/// How a tracer serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Where; port 0 for any free one.
    pub address: SocketAddr,
    /// TLS and authentication.
    pub security: Security,
    /// Where the certificate is written, for clients to trust.
    pub publish: Option<Publication>,
}

/// TLS and authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// TLS with a certificate that the tracer makes and keeps in its data folder; tokens.
    OwnCertificate,
    /// TLS with this certificate; tokens.
    Certificate(Files),
    /// Neither. Only on a loopback address.
    Insecure,
}

/// A ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Publication {
    /// Reads `namespace/name`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(format!("`{text}` names no ConfigMap; write it like simkube/sk-tracer-certificate")),
        }
    }
}
