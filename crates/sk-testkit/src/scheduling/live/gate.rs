//! A proxy between the scheduler and the API server that holds watch events of pods until they are released.
//!
//! The real scheduler's informers and its scheduling loop are separate goroutines. Whether an event comes before or
//! after an attempt depends on the machine, and no log shows it afterwards. So the scheduler reaches the API server
//! through this proxy, and a pod's event reaches it only when the scheduler is idle. Then there is one order, on a
//! busy machine as on a quiet one.
//!
//! The fence (see `rest`) passes at once: nothing depends on it. Events of one pod stay in order.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::tracker::FENCE;
use crate::scheduling::attempt::name_of;

/// Where the scheduler watches pods.
const PODS: &str = "/api/v1/pods";

type Body = UnsyncBoxBody<Bytes, kube::Error>;

/// The proxy, and what it holds.
pub(super) struct Gate {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    /// The way to the API server, once it has started.
    server: OnceLock<Client>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: VecDeque<Held>,
    /// The newest resource version that has come from the API server. A watch that begins again repeats what is held.
    newest: u64,
    /// The watch of pods, as long as it lasts, and which one in order it is.
    watch: Option<UnboundedSender<Bytes>>,
    watches: u64,
    /// How many messages of its watch each other collection has got.
    passed: BTreeMap<String, u64>,
}

/// An event of a pod that waits at the gate.
struct Held {
    line: Bytes,
    /// It tells a pod that waits for a node what is in its own status.
    is_own_status: bool,
}

impl Gate {
    /// Listens; requests are answered once there is a server.
    pub(super) async fn open() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Ok(Self { address, shared, accepting })
    }

    /// Where the scheduler finds what it takes for the API server.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests go to this server from now on.
    pub(super) fn lead_to(&self, server: Client) {
        // There is one server for each gate.
        let _ = self.shared.server.set(server);
    }

    /// Lets one event through, if there is any. What a waiting pod's own status says comes first: the scheduler
    /// compares the status that it is about to write with the one that it knows, and must know the last one that it
    /// wrote.
    pub(super) fn let_one_through(&self) -> bool {
        let mut state = self.shared.state();
        let own_status = state.held.iter().position(|held| held.is_own_status);
        let Some(held) = state.held.remove(own_status.unwrap_or(0)) else { return false };
        state.send(held.line);
        true
    }

    /// How many messages the watch of a collection has passed on; `None`: nobody watches it.
    pub(super) fn passed(&self, collection: &str) -> Option<u64> {
        self.shared.state().passed.get(collection).copied()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn send(&self, line: Bytes) {
        // A scheduler that has gone lists anew when it comes back.
        let _ = self.watch.as_ref().map(|watch| watch.send(line));
    }

    /// The API server has told something of a pod.
    fn take(&mut self, line: Bytes) {
        let Ok(event) = serde_json::from_slice::<Value>(&line) else { return self.send(line) };
        let object = &event["object"];
        let version = object["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
        match (event["type"].as_str(), version) {
            (Some("ADDED" | "MODIFIED" | "DELETED"), Some(version)) if version > self.newest => {
                self.newest = version;
                if name_of(object) == FENCE {
                    return self.send(line);
                }
                let is_own_status = event["type"] == "MODIFIED" && object["spec"]["nodeName"].is_null();
                self.held.push_back(Held { line, is_own_status });
            }
            // What is repeated is held already, or was let through. A bookmark is ahead of what is held.
            (Some("ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK"), _) => {}
            _ => self.send(line),
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        let service = service_fn(move |request| {
            let shared = shared.clone();
            async move { Ok::<_, Infallible>(shared.forward(request).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // A connection that breaks is the scheduler's to open again.
        tokio::spawn(async move { drop(connection.await) });
    }
}

impl Shared {
    async fn forward(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (path, is_watch) = (request.uri().path().to_owned(), is_watch(&request));
        if path == PODS && request.method() == http::Method::GET && !is_watch {
            // The list shows what the events would have told.
            let mut state = self.state();
            (state.held, state.newest) = (VecDeque::new(), 0);
        }
        let answered = match (self.server.get(), sent_on(request).await) {
            (Some(server), Some(request)) => server.send(request).await.ok(),
            _ => None,
        };
        let Some(mut answered) = answered else { return unavailable() };
        // How a message is cut into pieces is for each side to say.
        answered.headers_mut().remove(header::TRANSFER_ENCODING);
        if !is_watch || !answered.status().is_success() {
            return answered.map(BodyExt::boxed_unsync);
        }
        let (head, body) = answered.into_parts();
        let messages = if path == PODS { self.hold(body) } else { self.count(path, body) };
        Response::from_parts(head, messages)
    }

    /// A watch of pods: its events are held.
    fn hold(self: Arc<Self>, body: kube::client::Body) -> Body {
        let (sender, receiver) = unbounded_channel();
        let number = {
            let mut state = self.state();
            state.watches += 1;
            state.watch = Some(sender);
            state.watches
        };
        tokio::spawn(async move {
            let mut frames = BodyStream::new(body);
            let mut unfinished = Vec::new();
            while let Some(Ok(frame)) = frames.next().await {
                unfinished.extend_from_slice(frame.data_ref().map_or(&[], Bytes::as_ref));
                while let Some(end) = unfinished.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = unfinished.drain(..=end).collect();
                    self.state().take(line.into());
                }
            }
            let mut state = self.state();
            if state.watches == number {
                state.watch = None;
            }
        });
        let lines =
            futures::stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
        streamed(lines.map(|line| Ok(Frame::data(line))))
    }

    /// A watch of anything else: its messages pass, and are counted.
    fn count(self: Arc<Self>, path: String, body: kube::client::Body) -> Body {
        self.state().passed.entry(path.clone()).or_default();
        streamed(BodyStream::new(body).inspect(move |_| *self.state().passed.entry(path.clone()).or_default() += 1))
    }
}

fn streamed(frames: impl Stream<Item = Result<Frame<Bytes>, kube::Error>> + Send + 'static) -> Body {
    StreamBody::new(frames).boxed_unsync()
}

fn is_watch<B>(request: &Request<B>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1"))
}

/// The request as the API server gets it: our own client says who asks, and to whom.
async fn sent_on(request: Request<Incoming>) -> Option<Request<kube::client::Body>> {
    let (mut head, body) = request.into_parts();
    for name in [header::HOST, header::AUTHORIZATION, header::CONNECTION, header::CONTENT_LENGTH] {
        head.headers.remove(name);
    }
    head.uri = head.uri.path_and_query()?.as_str().parse().ok()?;
    let body = body.collect().await.ok()?.to_bytes().to_vec();
    Some(Request::from_parts(head, body.into()))
}

fn unavailable() -> Response<Body> {
    let mut response =
        Response::new(Full::new(Bytes::new()).map_err(|never: Infallible| match never {}).boxed_unsync());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(kind: &str, name: &str, version: u64, node: Option<&str>) -> Bytes {
        let (namespace, name) = name.split_once('/').unwrap();
        let metadata = json!({"namespace": namespace, "name": name, "resourceVersion": version.to_string()});
        let mut object = json!({"metadata": metadata, "spec": {}});
        if let Some(node) = node {
            object["spec"]["nodeName"] = node.into();
        }
        format!("{}\n", json!({"type": kind, "object": object})).into_bytes().into()
    }

    #[tokio::test]
    async fn pods_wait_their_own_status_goes_first_and_the_fence_passes() {
        let gate = Gate::open().await.unwrap();
        let (sender, mut receiver) = unbounded_channel();
        gate.shared.state().watch = Some(sender);
        let bound = line("MODIFIED", "x/p", 5, Some("n"));
        let status = line("MODIFIED", "x/q", 6, None);
        let fence = line("MODIFIED", FENCE, 7, Some("fence"));
        for line in [&bound, &status, &fence, &bound] {
            gate.shared.state().take(line.clone());
        }
        assert_eq!(receiver.try_recv().unwrap(), fence);
        assert!(receiver.try_recv().is_err(), "the others are held");
        assert!(gate.let_one_through() && gate.let_one_through());
        assert_eq!((receiver.try_recv().unwrap(), receiver.try_recv().unwrap()), (status, bound));
        assert!(!gate.let_one_through(), "what came twice is held once");
    }
}
