//! A client of the controller, which stores records and logs, and serves uploaded traces.
//!
//! Large bodies are streams: a record is packed while it is sent, a trace is hashed while it is written, and neither is
//! ever complete in memory. A failed attempt starts again from the first byte.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::StreamExt;
use http::{Method, Request, Response};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt;
use kube::core::Status;
use sha2::{Digest, Sha256};
use sk_record::archive;
use sk_store::trace::{self, OpenError, Trace};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use super::request::{ANSWER_LIMIT, Refusal, RetryPolicy, whole_story, with_retries};

/// A record is packed in pieces of this size, of which so many wait for the network: 1 MiB.
const CHUNK_BYTES: usize = 64 << 10;
const MAX_CHUNKS: usize = 16;
/// The slowest network that is waited for: 1 MB a second.
const SLOWEST_BYTES_PER_SEC: u64 = 1_000_000;
/// The whole of a trace may take so long: the controller takes at most 4 GiB, by default, which is an hour at that speed.
const TRACE_LIMIT: Duration = Duration::from_secs(2 * 3600);
/// Of what a server answers instead of what was asked for, so much is read.
const MAX_WORDS_BYTES: usize = 64 << 10;
/// The log is sent once, now and then; the next one comes anyway.
const LOG_LIMIT: Duration = Duration::from_secs(10);

/// How the controller is reached.
#[derive(Clone, Debug)]
pub struct Controller {
    /// Its address, without a path.
    pub url: String,
    /// The file with the authority to trust.
    pub ca: PathBuf,
    /// The file with the token to show; it is renewed in place.
    pub token: PathBuf,
}

/// Why the controller did not take or give something.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The controller refused the request, or did not respond.
    #[error("the controller did not {did} {what}: {refusal}")]
    Refused {
        /// `take` or `give`.
        did: &'static str,
        /// `the record`, `the log` or `the trace`.
        what: &'static str,
        /// What it said.
        refusal: Refusal,
    },
    /// The trace could not be written down.
    #[error("cannot store the trace: {0}; check that there is disk space for temporary files (TMPDIR)")]
    Disk(#[source] io::Error),
    /// Something else came than was asked for.
    #[error("the controller sent another trace than {0}: it was changed in transit or on its disk; upload it again")]
    Changed(String),
    /// What came is not a trace.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl ControllerError {
    /// One word for a trace that did not come.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Refused { refusal, .. } if refusal.is_not_found() => "TraceMissing",
            Self::Refused { .. } | Self::Disk(_) => "TraceNotFetched",
            Self::Changed(_) | Self::Open(_) => "TraceUnreadable",
        }
    }
}

impl Controller {
    /// Sends the end of the driver's log, once.
    pub(crate) async fn send_log_once(&self, simulation: &str, log: String) -> Result<(), String> {
        let path = log_path(simulation);
        let sending = self.send(Method::PUT, &path, Body::from(log));
        match tokio::time::timeout(LOG_LIMIT, sending).await {
            Ok(sent) => sent.map(drop).map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {LOG_LIMIT:?}")),
        }
    }

    /// Sends the end of the driver's log, with_retries.
    pub(crate) async fn send_log(
        &self,
        simulation: &str,
        log: String,
        retry: &RetryPolicy,
    ) -> Result<(), ControllerError> {
        let (path, log) = (log_path(simulation), Bytes::from(log));
        let sent = with_retries(retry, || self.send(Method::PUT, &path, Body::from(log.clone()))).await;
        sent.map(drop).map_err(|refusal| ControllerError::Refused { did: "take", what: "the log", refusal })
    }

    /// Sends the record in `folder`, which has so many bytes.
    pub(crate) async fn send_record(
        &self,
        path: &str,
        folder: &Path,
        bytes: u64,
        retry: &RetryPolicy,
    ) -> Result<(), ControllerError> {
        let limit = ANSWER_LIMIT + Duration::from_secs(bytes / SLOWEST_BYTES_PER_SEC);
        let sent = retry.within(limit, || self.send(Method::PUT, path, packed(folder.to_owned()))).await;
        sent.map(drop).map_err(|refusal| ControllerError::Refused { did: "take", what: "the record", refusal })
    }

    /// Fetches an uploaded trace. Messages and the record call it `name`.
    pub(crate) async fn fetch_trace(
        &self,
        sha256: &str,
        name: &str,
        retry: &RetryPolicy,
    ) -> Result<Trace, ControllerError> {
        let path = format!("/traces/{sha256}");
        let file = tempfile::NamedTempFile::new().map_err(ControllerError::Disk)?;
        let fetched = retry.within(TRACE_LIMIT, || async {
            // Whoever takes the request and says nothing is not waited for as long as a whole trace may take.
            let Ok(answer) = tokio::time::timeout(ANSWER_LIMIT, self.send(Method::GET, &path, Body::empty())).await
            else {
                return Err(kube::Error::Service(format!("no answer within {ANSWER_LIMIT:?}").into()));
            };
            write_down(answer?.into_body(), file.path()).await
        });
        let hash = fetched.await;
        let hash = hash.map_err(|refusal| ControllerError::Refused { did: "give", what: "the trace", refusal })?;
        if hash? != sha256 {
            return Err(ControllerError::Changed(sha256.to_owned()));
        }
        Ok(trace::open_temporary(name, file.into_temp_path())?)
    }

    /// Sends one request. A client of our own, because Kubernetes' sends no streams; it trusts the one authority, and the
    /// token is read anew each time.
    async fn send(&self, method: Method, path: &str, body: Body) -> Result<Response<Body>, kube::Error> {
        let wrong = |problem: String| kube::Error::Service(problem.into());
        let url = format!("{}{path}", self.url.trim_end_matches('/'));
        let mut config = kube::Config::new(self.url.parse().map_err(|error| wrong(format!("{}: {error}", self.url)))?);
        config.root_cert_file = Some(self.ca.clone());
        let token = fs::read_to_string(&self.token);
        let token = token.map_err(|error| wrong(format!("{}: {error}", self.token.display())))?;
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header(http::header::AUTHORIZATION, format!("Bearer {}", token.trim()))
            .header(http::header::CONTENT_TYPE, "application/octet-stream")
            .body(body);
        let request = request.map_err(kube::Error::HttpError)?;
        let client = legacy::Client::builder(TokioExecutor::new()).build(config.rustls_https_connector()?);
        let response = client.request(request).await.map_err(|error| wrong(whole_story(&error)))?;
        successful(response.map(Body::new)).await
    }
}

fn log_path(simulation: &str) -> String {
    format!("/logs/{simulation}")
}

/// The answer, if it is a success; otherwise an error with the server's words.
async fn successful(response: Response<Body>) -> Result<Response<Body>, kube::Error> {
    let code = response.status();
    if code.is_success() {
        return Ok(response);
    }
    let words = axum::body::to_bytes(response.into_body(), MAX_WORDS_BYTES).await.unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    let words = if words.trim().is_empty() { code.to_string() } else { words.trim().to_owned() };
    Err(kube::Error::Api(Status::failure(&words, code.as_str()).with_code(code.as_u16()).boxed()))
}

/// Writes a body into a file and says its SHA-256. An interrupted body is retried; a disk that fails is not.
async fn write_down(content: Body, to: &Path) -> Result<Result<String, ControllerError>, kube::Error> {
    let created = tokio::fs::File::create(to).await;
    let mut file = match created {
        Ok(file) => file,
        Err(error) => return Ok(Err(ControllerError::Disk(error))),
    };
    let (mut hasher, mut chunks) = (Sha256::new(), content.into_data_stream());
    loop {
        let chunk = match tokio::time::timeout(ANSWER_LIMIT, chunks.next()).await {
            Ok(Some(chunk)) => chunk.map_err(|error| kube::Error::Service(error.to_string().into()))?,
            Ok(None) => break,
            Err(_) => return Err(kube::Error::Service(format!("no data for {ANSWER_LIMIT:?}").into())),
        };
        hasher.update(&chunk);
        if let Err(error) = file.write_all(&chunk).await {
            return Ok(Err(ControllerError::Disk(error)));
        }
    }
    if let Err(error) = file.flush().await {
        return Ok(Err(ControllerError::Disk(error)));
    }
    let hash = hasher.finalize();
    Ok(Ok(hash.iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// The record as a body that is packed while it is sent.
fn packed(folder: PathBuf) -> Body {
    let (sender, mut receiver) = mpsc::channel(MAX_CHUNKS);
    tokio::task::spawn_blocking(move || {
        let to = BufWriter::with_capacity(CHUNK_BYTES, Chunks(sender.clone()));
        let packed = archive::pack(&folder, to).map_err(io::Error::other).and_then(|mut to| to.flush());
        if let Err(error) = packed {
            // Whoever was sending has ended if this is not taken, and knows why.
            let _ = sender.blocking_send(Err(error));
        }
    });
    Body::from_stream(futures::stream::poll_fn(move |context| receiver.poll_recv(context)))
}

/// What is written goes to the other side piece by piece; a writer that is too fast waits.
struct Chunks(mpsc::Sender<io::Result<Bytes>>);

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::extract::{DefaultBodyLimit, State};
    use axum::http::{HeaderMap, StatusCode, Uri};
    use axum::routing::any;

    use super::*;
    use crate::cluster::counters::Counters;
    use crate::cluster::stop::Stop;
    use crate::cluster::tls::{Certificate, Served, TlsListener};

    /// What a controller for tests has heard, and what it does.
    #[derive(Clone, Default)]
    pub(crate) struct FakeController {
        /// Method, path, authorization and length of each request.
        pub(crate) heard: Arc<Mutex<Vec<(String, String, usize)>>>,
        pub(crate) bodies: Arc<Mutex<Vec<Bytes>>>,
        /// Requests that are still refused with 503.
        pub(crate) refusals: Arc<Mutex<u32>>,
        pub(crate) trace: Bytes,
    }

    async fn answer(
        State(fake): State<FakeController>,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Response<Body> {
        let token = headers["authorization"].to_str().unwrap();
        fake.heard.lock().unwrap().push((format!("{method} {}", uri.path()), token.to_owned(), body.len()));
        fake.bodies.lock().unwrap().push(body);
        let mut refusals = fake.refusals.lock().unwrap();
        let refuse = *refusals > 0;
        *refusals = refusals.saturating_sub(1);
        let (code, content) = match method {
            _ if refuse => (StatusCode::SERVICE_UNAVAILABLE, Body::from("not now")),
            Method::GET if uri.path().ends_with("/missing") => {
                (StatusCode::NOT_FOUND, Body::from("there is no such trace"))
            }
            Method::GET => (StatusCode::OK, Body::from(fake.trace)),
            _ => (StatusCode::NO_CONTENT, Body::empty()),
        };
        Response::builder().status(code).body(content).unwrap()
    }

    /// A controller that takes everything.
    pub(crate) async fn listening(folder: &Path, fake: FakeController) -> Controller {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let certificate = Certificate::for_host("127.0.0.1").unwrap();
        let served = Served::fixed(&certificate).unwrap();
        let (listener, _) = TlsListener::bind(([127, 0, 0, 1], 0).into(), served).await.unwrap();
        let (ca, token) = (folder.join("ca.crt"), folder.join("token"));
        fs::write(&ca, certificate.authority).unwrap();
        fs::write(&token, "a-token\n").unwrap();
        let url = format!("https://{}", listener.address());
        let router = Router::new().fallback(any(answer)).layer(DefaultBodyLimit::disable()).with_state(fake);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Controller { url, ca, token }
    }

    pub(crate) fn retry() -> RetryPolicy {
        RetryPolicy::new(&Counters::default(), &Stop::default(), Duration::ZERO)
    }

    #[tokio::test]
    async fn the_controller_is_sent_the_log_with_the_token_and_asked_again_when_it_is_busy() {
        let folder = tempfile::tempdir().unwrap();
        let fake = FakeController { refusals: Arc::new(Mutex::new(2)), ..FakeController::default() };
        let controller = listening(folder.path(), fake.clone()).await;
        assert!(controller.send_log_once("s", "line\n".to_owned()).await.unwrap_err().contains("not now"));
        controller.send_log("s", "line\n".to_owned(), &retry()).await.unwrap();
        let sent = ("PUT /logs/s".to_owned(), "Bearer a-token".to_owned(), 5);
        assert_eq!(*fake.heard.lock().unwrap(), [sent.clone(), sent.clone(), sent]);
    }

    #[tokio::test]
    async fn a_controller_that_is_not_the_one_to_trust_is_sent_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let fake = FakeController::default();
        let controller = listening(folder.path(), fake.clone()).await;
        fs::write(&controller.ca, Certificate::for_host("127.0.0.1").unwrap().authority).unwrap();
        let refused = controller.send_log_once("s", String::new()).await.unwrap_err();
        assert!(refused.contains("certificate"), "{refused}");
        assert!(fake.heard.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn an_uploaded_trace_is_fetched_and_one_that_was_changed_or_is_missing_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        // Some megabytes, so that it comes in pieces.
        let head = "{\"simkube\":\"trace\",\"version\":1,\"config\":{\"trackedObjects\":{}}}\n".to_owned();
        let text = head + &"{\"at\":\"2026-01-05T09:00:00Z\",\"mark\":\"moment\"}\n".repeat(100_000);
        let fake = FakeController {
            trace: Bytes::from(text.clone()),
            refusals: Arc::new(Mutex::new(1)),
            ..FakeController::default()
        };
        let controller = listening(folder.path(), fake).await;
        let hash: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        let trace = controller.fetch_trace(&hash, "week.sktrace", &retry()).await.unwrap();
        assert_eq!((trace.name(), trace.span().is_some()), ("week.sktrace", true));
        let other = controller.fetch_trace(&"0".repeat(64), "week", &retry()).await.unwrap_err();
        assert_eq!(other.reason(), "TraceUnreadable");
        let missing = controller.fetch_trace("missing", "week", &retry()).await.unwrap_err();
        assert_eq!((missing.reason(), missing.to_string().contains("no such trace")), ("TraceMissing", true));
    }
}
