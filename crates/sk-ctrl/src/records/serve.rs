//! The HTTPS endpoint: routes, and the loop that accepts connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::stream;
use http::{HeaderMap, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use kube::Client;
use kube::api::Api;
use rustls::ServerConfig;
use sk_api::simulation::{Simulation, names};
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info, warn};

use super::auth::{Guard, Refusal, Right};
use super::disk::StoreError;
use super::store::{Store, checked};
use super::traces::Traces;

/// Connections at a time: one driver and a few people. Each may hold a buffer of [`CHUNK_BYTES`] and a file.
const MAX_CONNECTIONS: usize = 64;
/// How long a client may take to greet.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// How long a connection lives. Sixteen gigabytes at the speed of a slow network take an hour.
const CONNECTION_LIMIT: Duration = Duration::from_secs(2 * 3600);
/// What is read of a file at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Why records cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken, or not this machine's.
    #[error("listen on {address}: {source}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

/// A bound endpoint.
pub struct Server {
    listener: TcpListener,
    routes: Router,
}

impl Server {
    /// Binds the endpoint.
    pub async fn bind(address: SocketAddr, client: Client, store: Store, traces: Traces) -> Result<Self, ServeError> {
        let listener = TcpListener::bind(address).await.map_err(|source| ServeError::Bind { address, source })?;
        Ok(Self { listener, routes: routes(Desk { guard: Guard::new(client.clone()), client, store, traces }) })
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves until it is dropped, with the newest of `identities`.
    pub async fn serve(self, identities: watch::Receiver<Arc<ServerConfig>>) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let socket = match self.listener.accept().await {
                Ok((socket, _)) => socket,
                Err(error) => {
                    // Out of file descriptors, most likely: others have to close theirs first.
                    warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            let acceptor = TlsAcceptor::from(Arc::clone(&identities.borrow()));
            let routes = self.routes.clone();
            tokio::spawn(async move {
                let _ = tokio::time::timeout(CONNECTION_LIMIT, converse(socket, acceptor, routes)).await;
                drop(place);
            });
        }
    }
}

async fn converse(socket: TcpStream, acceptor: TlsAcceptor, routes: Router) {
    let stream = match tokio::time::timeout(HANDSHAKE_LIMIT, acceptor.accept(socket)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!(%error, "a handshake failed"),
        Err(_) => return debug!("a handshake took too long"),
    };
    let service = TowerToHyperService::new(routes);
    if let Err(error) = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await {
        debug!(error = %error, "a connection broke off");
    }
}

#[derive(Clone)]
struct Desk {
    guard: Guard,
    client: Client,
    store: Store,
    traces: Traces,
}

/// An answer that is no success: its status and a sentence.
struct No(StatusCode, String);

impl IntoResponse for No {
    fn into_response(self) -> Response {
        (self.0, self.1 + "\n").into_response()
    }
}

impl From<Refusal> for No {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::Unknown(_) => StatusCode::UNAUTHORIZED,
            Refusal::Forbidden { .. } => StatusCode::FORBIDDEN,
            Refusal::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self(status, refusal.to_string())
    }
}

impl From<StoreError> for No {
    fn from(error: StoreError) -> Self {
        let status = match &error {
            StoreError::Name(_) | StoreError::Hash(_) | StoreError::OtherBytes { .. } | StoreError::BrokenOff(_) => {
                StatusCode::BAD_REQUEST
            }
            StoreError::Full { .. } => StatusCode::INSUFFICIENT_STORAGE,
            StoreError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            StoreError::Disk { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            StoreError::Disk { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        warn!(%error, "a record, log or trace could not be kept or read");
        Self(status, error.to_string())
    }
}

fn routes(desk: Desk) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/records/{simulation}", get(list_records))
        .route("/records/{simulation}/{repetition}", get(get_record).put(put_record))
        .route("/logs/{simulation}", get(get_log).put(put_log))
        .route("/traces/{sha256}", get(get_trace).head(head_trace).put(put_trace))
        // The store counts bytes as they come; nothing is held in memory.
        .layer(DefaultBodyLimit::disable())
        .with_state(desk)
}

async fn put_record(
    State(desk): State<Desk>,
    Path((simulation, repetition)): Path<(String, u32)>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, No> {
    let user = desk.admit(&headers, "update", &simulation).await?;
    desk.expects(&simulation).await?;
    let bytes = desk.store.put_record(&simulation, repetition, body.into_data_stream()).await?;
    info!(simulation, repetition, bytes, user, "record kept");
    Ok(StatusCode::NO_CONTENT)
}

async fn put_log(
    State(desk): State<Desk>,
    Path(simulation): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, No> {
    let user = desk.admit(&headers, "update", &simulation).await?;
    desk.expects(&simulation).await?;
    let bytes = desk.store.put_log(&simulation, body.into_data_stream()).await?;
    info!(simulation, bytes, user, "log kept");
    Ok(StatusCode::NO_CONTENT)
}

async fn list_records(
    State(desk): State<Desk>,
    Path(simulation): Path<String>,
    headers: HeaderMap,
) -> Result<axum::Json<Vec<u32>>, No> {
    desk.admit(&headers, "get", &simulation).await?;
    Ok(axum::Json(desk.store.repetitions(&simulation).await?))
}

async fn get_record(
    State(desk): State<Desk>,
    Path((simulation, repetition)): Path<(String, u32)>,
    headers: HeaderMap,
) -> Result<Response, No> {
    let user = desk.admit(&headers, "get", &simulation).await?;
    let file = desk.store.record(&simulation, repetition).await?;
    let missing =
        || No(StatusCode::NOT_FOUND, format!("there is no record of repetition {repetition} of {simulation}"));
    let file = file.ok_or_else(missing)?;
    info!(simulation, repetition, user, "record given");
    send(file, "application/x-tar").await
}

async fn get_log(State(desk): State<Desk>, Path(simulation): Path<String>, headers: HeaderMap) -> Result<Response, No> {
    desk.admit(&headers, "get", &simulation).await?;
    let missing = || No(StatusCode::NOT_FOUND, format!("there is no log of {simulation}"));
    send(desk.store.log(&simulation).await?.ok_or_else(missing)?, "text/plain; charset=utf-8").await
}

async fn put_trace(
    State(desk): State<Desk>,
    Path(sha256): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, No> {
    let user = desk.admit_to_traces(&headers, "create").await?;
    let bytes = desk.traces.put(&sha256, body.into_data_stream()).await?;
    info!(sha256, bytes, user, "trace kept");
    Ok(StatusCode::NO_CONTENT)
}

/// Is a trace there already? Whoever may send it may ask, and has then the time to name it in a Simulation.
async fn head_trace(
    State(desk): State<Desk>,
    Path(sha256): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, No> {
    desk.admit_to_traces(&headers, "create").await?;
    let there = desk.traces.claim(&sha256, SystemTime::now()).await?;
    Ok(if there { StatusCode::OK } else { StatusCode::NOT_FOUND })
}

async fn get_trace(State(desk): State<Desk>, Path(sha256): Path<String>, headers: HeaderMap) -> Result<Response, No> {
    let user = desk.admit_to_traces(&headers, "get").await?;
    let missing = || No(StatusCode::NOT_FOUND, format!("there is no trace {sha256}: send it again"));
    let file = desk.traces.get(&sha256).await?.ok_or_else(missing)?;
    info!(sha256, user, "trace given");
    send(file, "application/octet-stream").await
}

impl Desk {
    /// Whoever sent these headers may do this to a name that can be a Simulation's. Returns who they are.
    async fn admit(&self, headers: &HeaderMap, verb: &'static str, simulation: &str) -> Result<String, No> {
        let right = Right { verb, subresource: names::RECORD_SUBRESOURCE, simulation: Some(checked(simulation)?) };
        Ok(self.guard.admit(headers, right).await?)
    }

    /// Whoever sent these headers may do this to traces, which are nobody's in particular. Returns who they are.
    async fn admit_to_traces(&self, headers: &HeaderMap, verb: &'static str) -> Result<String, No> {
        let right = Right { verb, subresource: names::TRACE_SUBRESOURCE, simulation: None };
        Ok(self.guard.admit(headers, right).await?)
    }

    /// Only for a Simulation that is there is something kept: what belongs to none would never be removed.
    async fn expects(&self, simulation: &str) -> Result<(), No> {
        let api: Api<Simulation> = Api::all(self.client.clone());
        match api.get_opt(simulation).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(No(StatusCode::NOT_FOUND, format!("there is no Simulation {simulation}"))),
            Err(error) => Err(No(StatusCode::SERVICE_UNAVAILABLE, format!("get Simulation {simulation}: {error}"))),
        }
    }
}

async fn send(file: File, kind: &'static str) -> Result<Response, No> {
    let length = file.metadata().await.map(|metadata| metadata.len());
    let length = length.map_err(|error| No(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let chunks = stream::try_unfold(file, |mut file| async move {
        let mut chunk = vec![0; CHUNK_BYTES];
        let read = file.read(&mut chunk).await?;
        chunk.truncate(read);
        Ok::<_, std::io::Error>((read > 0).then_some((chunk, file)))
    });
    let headers = [(http::header::CONTENT_TYPE, kind.to_owned()), (http::header::CONTENT_LENGTH, length.to_string())];
    Ok((headers, Body::from_stream(chunks)).into_response())
}
