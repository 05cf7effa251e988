//! The HTTPS endpoint: routes and permissions. [`sk_serve`] bounds the connections; authenticated callers keep theirs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::ExtensionRejection;
use axum::extract::{DefaultBodyLimit, Extension, FromRequestParts, Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::stream;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use kube::Client;
use kube::api::Api;
use rustls::ServerConfig;
use sk_api::simulation::{Simulation, names};
use sk_serve::body::hear_out;
use sk_serve::{ConnectionHandle, Limits, TooBusy, Work};
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tracing::{info, warn};

use super::auth::{Guard, Right, words};
use super::disk::StoreError;
use super::store::{Store, checked};
use super::traces::Traces;

/// One driver and a few people: 48 of 64 may send and fetch at a time. Each holds a buffer of [`CHUNK_BYTES`] and a file.
/// Idle timeout of a body: a sender of a record never pauses for a minute.
const LIMITS: Limits = Limits { stall: std::time::Duration::from_secs(60), ..Limits::new(64, 48) };
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
        Ok(Self {
            listener,
            routes: routes(Handler { guard: Arc::new(Guard::new(client.clone())), client, store, traces }),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves until it is dropped, with the newest of `identities`.
    pub async fn serve(self, identities: watch::Receiver<Arc<ServerConfig>>) {
        let newest = || Some(TlsAcceptor::from(Arc::clone(&identities.borrow())));
        sk_serve::serve(self.listener, newest, self.routes, LIMITS, std::future::pending()).await;
    }
}

#[derive(Clone)]
struct Handler {
    guard: Arc<Guard>,
    client: Client,
    store: Store,
    traces: Traces,
}

/// The caller, from the headers of the request.
struct Caller {
    headers: HeaderMap,
    connection: ConnectionHandle,
}

impl FromRequestParts<Handler> for Caller {
    type Rejection = ExtensionRejection;

    async fn from_request_parts(parts: &mut Parts, handler: &Handler) -> Result<Self, Self::Rejection> {
        let Extension(connection) = Extension::from_request_parts(parts, handler).await?;
        Ok(Self { headers: parts.headers.clone(), connection })
    }
}

/// An authorised request in progress.
struct Admitted {
    user: String,
    work: Work,
}

/// An error response: its status and a message.
struct No(StatusCode, String);

impl IntoResponse for No {
    fn into_response(self) -> Response {
        (self.0, self.1 + "\n").into_response()
    }
}

impl From<TooBusy> for No {
    fn from(busy: TooBusy) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, busy.to_string())
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

fn routes(handler: Handler) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/records/{simulation}", get(list_records))
        .route("/records/{simulation}/{repetition}", get(get_record).put(put_record))
        .route("/logs/{simulation}", get(get_log).put(put_log))
        .route("/traces/{sha256}", get(get_trace).head(head_trace).put(put_trace))
        // The store counts bytes as they come; nothing is held in memory.
        .layer(DefaultBodyLimit::disable())
        .with_state(handler)
}

async fn put_record(
    State(handler): State<Handler>,
    Path((simulation, repetition)): Path<(String, u32)>,
    caller: Caller,
    body: Body,
) -> Result<StatusCode, No> {
    let Admitted { user, work: _work } = handler.admit(&caller, "update", &simulation).await?;
    handler.expects(&simulation).await?;
    let bytes = handler.store.put_record(&simulation, repetition, body.into_data_stream()).await?;
    info!(simulation, repetition, bytes, user, "record kept");
    Ok(StatusCode::NO_CONTENT)
}

async fn put_log(
    State(handler): State<Handler>,
    Path(simulation): Path<String>,
    caller: Caller,
    body: Body,
) -> Result<StatusCode, No> {
    let Admitted { user, work: _work } = handler.admit(&caller, "update", &simulation).await?;
    handler.expects(&simulation).await?;
    let bytes = handler.store.put_log(&simulation, body.into_data_stream()).await?;
    info!(simulation, bytes, user, "log kept");
    Ok(StatusCode::NO_CONTENT)
}

async fn list_records(
    State(handler): State<Handler>,
    Path(simulation): Path<String>,
    caller: Caller,
) -> Result<axum::Json<Vec<u32>>, No> {
    handler.admit(&caller, "get", &simulation).await?;
    Ok(axum::Json(handler.store.repetitions(&simulation).await?))
}

async fn get_record(
    State(handler): State<Handler>,
    Path((simulation, repetition)): Path<(String, u32)>,
    caller: Caller,
) -> Result<Response, No> {
    let Admitted { user, work } = handler.admit(&caller, "get", &simulation).await?;
    let file = handler.store.record(&simulation, repetition).await?;
    let missing =
        || No(StatusCode::NOT_FOUND, format!("there is no record of repetition {repetition} of {simulation}"));
    let file = file.ok_or_else(missing)?;
    info!(simulation, repetition, user, "record given");
    Ok(work.until_sent(send(file, "application/x-tar").await?))
}

async fn get_log(
    State(handler): State<Handler>,
    Path(simulation): Path<String>,
    caller: Caller,
) -> Result<Response, No> {
    let Admitted { work, .. } = handler.admit(&caller, "get", &simulation).await?;
    let missing = || No(StatusCode::NOT_FOUND, format!("there is no log of {simulation}"));
    let file = handler.store.log(&simulation).await?.ok_or_else(missing)?;
    Ok(work.until_sent(send(file, "text/plain; charset=utf-8").await?))
}

async fn put_trace(
    State(handler): State<Handler>,
    Path(sha256): Path<String>,
    caller: Caller,
    body: Body,
) -> Result<StatusCode, No> {
    let Admitted { user, work: _work } = handler.admit_to_traces(&caller, "create").await?;
    let mut body = body.into_data_stream();
    let kept = handler.traces.put(&sha256, &mut body).await;
    if kept.is_err() {
        tokio::spawn(hear_out(body));
    }
    let bytes = kept?;
    info!(sha256, bytes, user, "trace kept");
    Ok(StatusCode::NO_CONTENT)
}

/// Is a trace there already? Whoever may send it may ask, and has then the time to name it in a Simulation.
async fn head_trace(
    State(handler): State<Handler>,
    Path(sha256): Path<String>,
    caller: Caller,
) -> Result<StatusCode, No> {
    handler.admit_to_traces(&caller, "create").await?;
    let there = handler.traces.claim(&sha256, SystemTime::now()).await?;
    Ok(if there { StatusCode::OK } else { StatusCode::NOT_FOUND })
}

async fn get_trace(State(handler): State<Handler>, Path(sha256): Path<String>, caller: Caller) -> Result<Response, No> {
    let Admitted { user, work } = handler.admit_to_traces(&caller, "get").await?;
    let missing = || No(StatusCode::NOT_FOUND, format!("there is no trace {sha256}: send it again"));
    let file = handler.traces.get(&sha256).await?.ok_or_else(missing)?;
    info!(sha256, user, "trace given");
    Ok(work.until_sent(send(file, "application/octet-stream").await?))
}

impl Handler {
    /// Authorises access to the records of a Simulation. Returns the user.
    async fn admit(&self, caller: &Caller, verb: &'static str, simulation: &str) -> Result<Admitted, No> {
        let right = Right { verb, subresource: names::RECORD_SUBRESOURCE, simulation: Some(checked(simulation)?) };
        self.authorise(caller, right).await
    }

    /// Authorises access to traces, which belong to no Simulation. Returns the user.
    async fn admit_to_traces(&self, caller: &Caller, verb: &'static str) -> Result<Admitted, No> {
        let right = Right { verb, subresource: names::TRACE_SUBRESOURCE, simulation: None };
        self.authorise(caller, right).await
    }

    async fn authorise(&self, caller: &Caller, right: Right<'_>) -> Result<Admitted, No> {
        let checked = self.guard.check(caller.connection.from(), &caller.headers, right).await;
        let user = checked.map_err(|refusal| {
            let (status, sentence) = words(&refusal, right);
            No(status, sentence)
        })?;
        Ok(Admitted { user, work: caller.connection.work()? })
    }

    /// Refuses a record of a Simulation that does not exist: it would never be removed.
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
