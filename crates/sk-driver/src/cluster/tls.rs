//! Serves over TLS: handshakes run concurrently, and a certificate that is renewed on disk is loaded.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use sk_cluster::certificate::{self, Authority, LASTING_DAYS};
use sk_cluster::tls;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Handshakes under way at a time; the API server keeps its connections, so a handful is usual.
const MAX_HANDSHAKES: usize = 64;
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// How often a certificate on disk is looked at. Renewals overlap by days.
const RELOAD: Duration = Duration::from_secs(60);

/// Why the webhook cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No usable certificate.
    #[error("the webhook's certificate {} cannot be used: {problem}", path.display())]
    Certificate {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// None could be made.
    #[error("cannot make a certificate for the webhook: {0}")]
    Make(#[from] certificate::Error),
    /// The port is taken, or not ours to take.
    #[error("cannot listen on {address}: {source}; choose another port")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// A certificate and its key as PEM, and whom to trust for it.
#[derive(Clone)]
pub(crate) struct Certificate {
    pub(crate) chain: String,
    pub(crate) key: String,
    pub(crate) authority: String,
}

impl Certificate {
    /// A new one for this host, from an authority that nobody else will ever use.
    pub(crate) fn for_host(host: &str) -> Result<Self, TlsError> {
        let now = jiff::Timestamp::now();
        let authority = Authority::new("sk-driver", now)?;
        let serving = authority.serving(&[host.to_owned()], now, LASTING_DAYS)?;
        Ok(Self { chain: serving.certificate, key: serving.key, authority: authority.certificate })
    }
}

/// The certificate that is served: it may be exchanged while connections come in.
pub(crate) struct Served(RwLock<Arc<CertifiedKey>>);

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Served")
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl Served {
    /// One that stays.
    pub(crate) fn fixed(certificate: &Certificate) -> Result<Arc<Self>, TlsError> {
        let key = certified(Path::new("made by sk-driver"), &certificate.chain, &certificate.key)?;
        Ok(Arc::new(Self(RwLock::new(key))))
    }

    /// `tls.crt` and `tls.key` of a folder, read again now and then.
    pub(crate) fn from_folder(folder: &Path) -> Result<Arc<Self>, TlsError> {
        let served = Arc::new(Self(RwLock::new(read_folder(folder)?)));
        let (weak, folder) = (Arc::downgrade(&served), folder.to_owned());
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(RELOAD).await;
                let Some(served) = weak.upgrade() else { return };
                match read_folder(&folder) {
                    Ok(key) => *served.0.write().unwrap_or_else(PoisonError::into_inner) = key,
                    Err(error) => tracing::warn!("{error}; the one before is kept"),
                }
            }
        });
        Ok(served)
    }
}

fn read_folder(folder: &Path) -> Result<Arc<CertifiedKey>, TlsError> {
    let read = |name: &str| {
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path);
        text.map_err(|error| TlsError::Certificate { path, problem: error.to_string() })
    };
    certified(&folder.join("tls.crt"), &read("tls.crt")?, &read("tls.key")?)
}

fn certified(path: &Path, chain: &str, key: &str) -> Result<Arc<CertifiedKey>, TlsError> {
    let wrong = |problem: String| TlsError::Certificate { path: path.to_owned(), problem };
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| wrong(format!("{error:?}")))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| wrong(format!("{error:?}")))?;
    let provider = rustls::crypto::ring::default_provider();
    let certified = CertifiedKey::from_der(chain, key, &provider).map_err(|error| wrong(error.to_string()))?;
    Ok(Arc::new(certified))
}

/// Connections that have shaken hands.
pub(crate) struct TlsListener {
    streams: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl TlsListener {
    /// Listens at `address` with this certificate. The task that is returned takes connections; it ends only by a bug or
    /// with the listener.
    pub(crate) async fn bind(address: SocketAddr, served: Arc<Served>) -> Result<(Self, JoinHandle<()>), TlsError> {
        let refuse = |source| TlsError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(refuse)?;
        let bound = listener.local_addr().map_err(refuse)?;
        let config = tls::server_config_resolving(served).map_err(|error| refuse(io::Error::other(error)))?;
        let (sender, streams) = mpsc::channel(MAX_HANDSHAKES);
        let accepting = tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), sender));
        Ok((Self { streams, address: bound }, accepting))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Accepts connections until the receiver is dropped.
async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    sender: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let places = Arc::new(Semaphore::new(MAX_HANDSHAKES));
    loop {
        let accepted = tokio::select! {
            () = sender.closed() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((socket, peer)) = accepted else {
            // Out of file descriptors, most likely: others have to close theirs first.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let (acceptor, sender) = (acceptor.clone(), sender.clone());
        tokio::spawn(async move {
            let _place = place;
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_LIMIT, acceptor.accept(socket)).await {
                let _ = sender.send((stream, peer)).await;
            }
        });
    }
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.streams.recv().await {
            Some(stream) => stream,
            // Whoever holds the accepting task hears of its end.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
