//! HTTP to the tracer or the controller: through the API server to a pod, or directly to an address.
//!
//! One connection and one request at a time is all that `skctl` needs. To a pod it is always HTTPS, because the API
//! server forwards bytes and the node could read them. To an address it is what the URL says; a token is never sent
//! over plain HTTP.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;

use super::token::Token;
use super::trust::{self, TrustError};
use super::{Cluster, words};

/// How long connecting and shaking hands may take, each.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// How much of a refusal is read: reasons are a sentence, and a page of HTML is none.
const MAX_REASON_BYTES: usize = 64 << 10;

/// Why a server of ours cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    #[error(
        "the API server does not forward to pod {pod}: {reason}; you need `create` on pods/portforward in its namespace"
    )]
    Forward { pod: String, reason: String },
    #[error("nothing answers at {address}: {source}; check the address, and that it runs")]
    Connect { address: String, source: std::io::Error },
    #[error("{peer} did not answer within {limit} s; try again, or look at its logs", limit = CONNECT_LIMIT.as_secs())]
    Slow { peer: String },
    #[error("{0}")]
    Trust(#[from] TrustError),
    #[error("{peer} shows a certificate that is not the published one: {source}; nothing was sent to it")]
    Tls { peer: String, source: std::io::Error },
    #[error("{peer} does not speak HTTP: {source}")]
    Handshake { peer: String, source: hyper::Error },
    #[error("`{address}` is not an address: {reason}; write it like http://localhost:7777")]
    Address { address: String, reason: String },
    #[error("cannot ask {peer} for {path}: {source}")]
    Send { peer: String, path: String, source: hyper::Error },
    #[error("{peer} refuses {path}: {reason} ({status})")]
    Refused { peer: String, path: String, status: StatusCode, reason: String },
    #[error("{peer} closed the connection while it answered {path}: {reason}; try again")]
    Broken { peer: String, path: String, reason: String },
}

/// What is sent: all at once, or as it is read from a file.
pub(crate) type Content = UnsyncBoxBody<Bytes, std::io::Error>;

/// An open connection to a server of ours.
pub(crate) struct Channel {
    sender: SendRequest<Content>,
    /// For messages.
    peer: String,
    host: String,
    token: Option<Token>,
}

/// Which certificates are trusted, and where they were published.
#[derive(Clone, Debug)]
pub(crate) struct Authority {
    pub(crate) pem: Vec<u8>,
    pub(crate) place: String,
    /// What the server is called in its certificate.
    pub(crate) name: String,
}

impl Channel {
    /// To a port of a pod, through the API server.
    pub(crate) async fn to_pod(
        cluster: &Cluster,
        pod: &str,
        port: u16,
        authority: &Authority,
        token: Option<Token>,
    ) -> Result<Self, ChannelError> {
        let peer = format!("pod {}/{pod}", cluster.namespace);
        let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        let refused = |reason: String| ChannelError::Forward { pod: format!("{}/{pod}", cluster.namespace), reason };
        let forwarded = limited(&peer, pods.portforward(pod, &[port])).await?;
        let mut forwarder = forwarded.map_err(|error| refused(words(&error)))?;
        let stream = forwarder.take_stream(port).ok_or_else(|| refused("it gave no stream".to_owned()))?;
        let error = forwarder.take_error(port);
        let secured = secure(stream, &peer, authority);
        // What the kubelet has to say comes on a stream of its own, while the handshake waits for ever.
        let stream = match error {
            Some(error) => tokio::select! {
                secured = secured => secured?,
                Some(reason) = error => return Err(refused(reason)),
            },
            None => secured.await?,
        };
        Self::over(stream, peer, authority.name.clone(), token).await
    }

    /// To an address. Over plain HTTP the token stays here.
    pub(crate) async fn to_address(
        address: &str,
        authority: Option<&Authority>,
        token: Option<Token>,
    ) -> Result<Self, ChannelError> {
        let wrong = |reason: &str| ChannelError::Address { address: address.to_owned(), reason: reason.to_owned() };
        let url = Url::parse(address).map_err(|error| wrong(&error.to_string()))?;
        let host = url.host_str().ok_or_else(|| wrong("it has no host"))?.to_owned();
        let port = url.port_or_known_default().ok_or_else(|| wrong("it has no port"))?;
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let connected = limited(address, TcpStream::connect((bare.as_str(), port))).await?;
        let stream = connected.map_err(|source| ChannelError::Connect { address: address.to_owned(), source })?;
        let peer = address.trim_end_matches('/').to_owned();
        match (url.scheme(), authority) {
            ("http", _) => Self::over(stream, peer, format!("{host}:{port}"), None).await,
            ("https", Some(authority)) => {
                let authority = Authority { name: bare, ..authority.clone() };
                let stream = secure(stream, &peer, &authority).await?;
                Self::over(stream, peer, format!("{host}:{port}"), token).await
            }
            ("https", None) => Err(wrong("its certificate is not trusted")),
            _ => Err(wrong("it is neither http:// nor https://")),
        }
    }

    async fn over<S>(stream: S, peer: String, host: String, token: Option<Token>) -> Result<Self, ChannelError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shaken = limited(&peer, http1::handshake(TokioIo::new(stream))).await?;
        let (sender, connection) = shaken.map_err(|source| ChannelError::Handshake { peer: peer.clone(), source })?;
        // It ends with the sender; what goes wrong in it shows in the request.
        tokio::spawn(connection);
        Ok(Self { sender, peer, host, token })
    }

    /// The server, for messages.
    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    /// A request with JSON, or with nothing. Whatever is not a success is an error with the server's own reason.
    pub(crate) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        json: Option<Vec<u8>>,
    ) -> Result<Response<Incoming>, ChannelError> {
        let mut request = self.request(method, path);
        if json.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let content = Full::new(Bytes::from(json.unwrap_or_default())).map_err(|never| match never {});
        self.send(path, request, content.boxed_unsync()).await
    }

    /// Is there something at this path?
    pub(crate) async fn has(&mut self, path: &str) -> Result<bool, ChannelError> {
        match self.ask(Method::HEAD, path, None).await {
            Ok(_) => Ok(true),
            Err(ChannelError::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends so many bytes to a path, as they are read.
    pub(crate) async fn put(&mut self, path: &str, length: u64, content: Content) -> Result<(), ChannelError> {
        let request = self.request(Method::PUT, path).header(CONTENT_TYPE, "application/octet-stream");
        self.send(path, request.header(CONTENT_LENGTH, length), content).await.map(drop)
    }

    fn request(&self, method: Method, path: &str) -> http::request::Builder {
        let request = Request::builder().method(method).uri(path).header(HOST, &self.host);
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, token.bearer()),
            None => request,
        }
    }

    async fn send(
        &mut self,
        path: &str,
        request: http::request::Builder,
        content: Content,
    ) -> Result<Response<Incoming>, ChannelError> {
        let broken = |reason: String| ChannelError::Broken { peer: self.peer.clone(), path: path.to_owned(), reason };
        let request = request.body(content).map_err(|error| broken(error.to_string()))?;
        let (peer, path) = (self.peer.clone(), path.to_owned());
        let sent = async {
            self.sender.ready().await?;
            self.sender.send_request(request).await
        };
        let response = sent.await.map_err(|source| ChannelError::Send { peer, path: path.clone(), source })?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(&path, response).await) }
    }

    /// A short answer, whole.
    pub(crate) async fn text(&mut self, path: &str, max_bytes: usize) -> Result<String, ChannelError> {
        let response = self.ask(Method::GET, path, None).await?;
        let broken = |reason: String| ChannelError::Broken { peer: self.peer.clone(), path: path.to_owned(), reason };
        let body = Limited::new(response.into_body(), max_bytes).collect().await;
        let bytes = body.map_err(|error| broken(error.to_string()))?.to_bytes();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn refusal(&self, path: &str, response: Response<Incoming>) -> ChannelError {
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_REASON_BYTES).collect().await;
        let bytes = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        ChannelError::Refused { peer: self.peer.clone(), path: path.to_owned(), status, reason: reason(&bytes) }
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Channel({})", self.peer)
    }
}

/// Our servers say `{"error": "…"}`; others say what they like.
fn reason(body: &[u8]) -> String {
    let ours = serde_json::from_slice::<serde_json::Value>(body).ok();
    let said = ours.and_then(|body| body.get("error")?.as_str().map(str::to_owned));
    let said = said.unwrap_or_else(|| String::from_utf8_lossy(body).trim().chars().take(500).collect());
    if said.is_empty() { "it does not say why".to_owned() } else { said }
}

async fn secure<S>(
    stream: S,
    peer: &str,
    authority: &Authority,
) -> Result<tokio_rustls::client::TlsStream<S>, ChannelError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let connector = TlsConnector::from(trust::client_config(&authority.pem, &authority.place)?);
    let name = ServerName::try_from(authority.name.clone());
    let name =
        name.map_err(|error| ChannelError::Address { address: authority.name.clone(), reason: error.to_string() })?;
    let secured = limited(peer, connector.connect(name, stream)).await?;
    secured.map_err(|source| ChannelError::Tls { peer: peer.to_owned(), source })
}

async fn limited<T>(peer: &str, work: impl Future<Output = T>) -> Result<T, ChannelError> {
    tokio::time::timeout(CONNECT_LIMIT, work).await.map_err(|_| ChannelError::Slow { peer: peer.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_servers_own_words() {
        assert_eq!(reason(br#"{"error": "the window is empty"}"#), "the window is empty");
        assert_eq!(reason(b"<html>no</html>\n"), "<html>no</html>");
        assert_eq!(reason(b""), "it does not say why");
    }
}
