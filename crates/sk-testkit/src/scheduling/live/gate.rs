//! A proxy between the scheduler and the API server that holds watch events of pods until they are released.
//!
//! The real scheduler's informers and its scheduling loop are separate goroutines. Whether an event comes before or
//! after an attempt depends on the machine, and no log shows it afterwards. So the scheduler reaches the API server
//! through this proxy, and a pod's event reaches it only when the scheduler is idle. Then there is one order, on a
//! busy machine as on a quiet one.
//!
//! The fence (see `rest`) is an event that only the gate makes: it costs the API server nothing. Events of one pod stay in
//! their order.
//!
//! The gate also knows what is still under way to it: each write that the scheduler makes passes here, and what the API
//! server answers says which event will tell of it. It remembers what the API server last said of each pod's condition, so
//! that nobody has to ask for that. And it takes the scheduler's Events itself, which nobody reads.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::api::{is_of_pods, version_of};
use super::tracker::FENCE;
use crate::scheduling::attempt::{name_of, pod_name};

/// Where the scheduler watches pods.
const PODS: &str = "/api/v1/pods";
/// Where it says what it did.
const EVENTS: &str = "/apis/events.k8s.io/";

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
    /// The newest resource version that the scheduler has written of a pod.
    written: u64,
    /// Pods that the scheduler has bound, or is about to, whose event has not come.
    bound: BTreeSet<String>,
    /// Of each pod that is there: the message of its condition `PodScheduled`, as the API server last had it.
    conditions: BTreeMap<String, String>,
    /// The same as the scheduler knows it.
    told: BTreeMap<String, String>,
    /// Writes of the scheduler without an answer.
    under_way: usize,
    /// The scheduler deleted a pod: no answer tells which event is the last of it.
    deleted: bool,
    /// The resource version that the fence had last.
    fence: u64,
    /// The watch of pods, as long as it lasts, and which one in order it is.
    watch: Option<UnboundedSender<Bytes>>,
    watches: u64,
    /// How many messages of its watch each other collection has got.
    passed: BTreeMap<String, u64>,
}

/// An event of a pod that waits at the gate.
struct Held {
    line: Bytes,
    pod: String,
    /// The message of the pod's condition; `None`: it is gone.
    condition: Option<String>,
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
        match held.condition {
            Some(message) => drop(state.told.insert(held.pod, message)),
            None => drop(state.told.remove(&held.pod)),
        }
        state.send(held.line);
        true
    }

    /// Sends the scheduler the fence with this mark. Its resource version is as new as what has come, so that a watch that
    /// begins again goes on there, and never the one that it had last, which the scheduler would take for no change.
    pub(super) fn fence(&self, fence: &Value, mark: u64) {
        let mut state = self.shared.state();
        let version = if state.newest == state.fence { state.newest.saturating_sub(1) } else { state.newest };
        state.fence = version;
        let mut object = fence.clone();
        object["metadata"]["resourceVersion"] = version.to_string().into();
        object["metadata"]["annotations"] = json!({"moved": mark.to_string()});
        state.send(format!("{}\n", json!({"type": "MODIFIED", "object": object})).into_bytes().into());
    }

    /// Has the scheduler deleted a pod since this was last asked?
    pub(super) fn take_deleted(&self) -> bool {
        std::mem::take(&mut self.shared.state().deleted)
    }

    /// Has it, without asking for good?
    pub(super) fn has_deleted(&self) -> bool {
        self.shared.state().deleted
    }

    /// Does a write of the scheduler wait for its answer?
    pub(super) fn is_writing(&self) -> bool {
        self.shared.state().under_way > 0
    }

    /// Has all come that the scheduler wrote, and what somebody else wrote up to this resource version?
    pub(super) fn has_all(&self, version: u64) -> bool {
        let state = self.shared.state();
        state.under_way == 0 && state.bound.is_empty() && state.newest >= version.max(state.written)
    }

    /// The message of a pod's condition `PodScheduled`, as the API server last had it; `None`: the pod is not there.
    pub(super) fn condition(&self, pod: &str) -> Option<String> {
        self.shared.state().conditions.get(pod).cloned()
    }

    /// The same as the scheduler knows it: it does not write what it takes for written.
    pub(super) fn told(&self, pod: &str) -> Option<String> {
        self.shared.state().told.get(pod).cloned()
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
                    return;
                }
                if event["type"] == "DELETED" || !object["spec"]["nodeName"].is_null() {
                    self.bound.remove(&name_of(object));
                }
                let (pod, condition) = (name_of(object), (event["type"] != "DELETED").then(|| message_of(object)));
                match condition.clone() {
                    Some(message) => drop(self.conditions.insert(pod.clone(), message)),
                    None => drop(self.conditions.remove(&pod)),
                }
                let is_own_status = event["type"] == "MODIFIED" && object["spec"]["nodeName"].is_null();
                self.held.push_back(Held { line, pod, condition, is_own_status });
            }
            // What is repeated is held already, or was let through. A bookmark is ahead of what is held.
            (Some("ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK"), _) => {}
            _ => self.send(line),
        }
    }
}

/// A write of the scheduler to a pod.
enum Write {
    Binding(String),
    Deletion,
    Other,
}

impl Write {
    fn of(method: &Method, path: &str) -> Option<Self> {
        if !is_of_pods(path) || *method == Method::GET {
            return None;
        }
        let parts: Vec<&str> = path.split('/').collect();
        Some(match parts.as_slice() {
            [.., namespace, "pods", name, "binding"] => Self::Binding(pod_name(namespace, name)),
            _ if *method == Method::DELETE => Self::Deletion,
            _ => Self::Other,
        })
    }
}

impl State {
    /// A write goes to the API server. Its event may be here before its answer.
    fn begin(&mut self, write: &Write) {
        self.under_way += 1;
        if let Write::Binding(pod) = write {
            self.bound.insert(pod.clone());
        }
    }

    /// The API server has answered, perhaps with the object that it has now.
    fn end(&mut self, write: &Write, is_done: bool, object: Option<&Value>) {
        self.under_way -= 1;
        match write {
            Write::Binding(pod) if !is_done => drop(self.bound.remove(pod)),
            Write::Binding(_) => {}
            Write::Deletion => self.deleted = true,
            Write::Other if is_done => {
                let Some((object, version)) = object.and_then(|object| Some((object, version_of(object)?))) else {
                    return;
                };
                self.written = self.written.max(version);
                // Otherwise its event has come, and perhaps later ones.
                if version > self.newest {
                    self.conditions.insert(name_of(object), message_of(object));
                }
            }
            Write::Other => {}
        }
    }
}

/// What a pod's condition `PodScheduled` says.
fn message_of(pod: &Value) -> String {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let condition = conditions.find(|condition| condition["type"] == "PodScheduled");
    condition.and_then(|condition| condition["message"].as_str()).unwrap_or_default().to_owned()
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
        let (path, method, is_watch) = (request.uri().path().to_owned(), request.method().clone(), is_watch(&request));
        if path.starts_with(EVENTS) && method == Method::POST {
            return taken(request).await;
        }
        let (lists, writes) = (path == PODS && method == Method::GET && !is_watch, Write::of(&method, &path));
        if lists {
            // The list shows what the events would have told.
            self.state().held = VecDeque::new();
        }
        writes.iter().for_each(|write| self.state().begin(write));
        let answered = match (self.server.get(), sent_on(request).await) {
            (Some(server), Some(request)) => server.send(request).await.ok(),
            _ => None,
        };
        let is_done = answered.as_ref().is_some_and(|answered| answered.status().is_success());
        let (answered, object) = if lists || writes.is_some() { whole(answered).await } else { (answered, None) };
        if let (true, Some(version)) = (lists, object.as_ref().and_then(version_of)) {
            self.state().newest = version;
        }
        writes.iter().for_each(|write| self.state().end(write, is_done, object.as_ref()));
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

/// An answer that has been read to its end, and the object in it.
async fn whole(
    answered: Option<Response<kube::client::Body>>,
) -> (Option<Response<kube::client::Body>>, Option<Value>) {
    let Some((head, body)) = answered.map(Response::into_parts) else { return (None, None) };
    let Ok(body) = body.collect().await else { return (None, None) };
    let bytes = body.to_bytes();
    let object = serde_json::from_slice(&bytes).ok();
    (Some(Response::from_parts(head, bytes.to_vec().into())), object)
}

/// What the API server would answer to whoever creates this, if it took everything.
async fn taken(request: Request<Incoming>) -> Response<Body> {
    let Ok(body) = request.into_body().collect().await else { return unavailable() };
    let mut response =
        Response::new(Full::new(body.to_bytes()).map_err(|never: Infallible| match never {}).boxed_unsync());
    *response.status_mut() = StatusCode::CREATED;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
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
        // A fence that somebody moves at the API server is a mark: it shows that all before it has come.
        let gate = Gate::open().await.unwrap();
        let (sender, mut receiver) = unbounded_channel();
        gate.shared.state().watch = Some(sender);
        let bound = line("MODIFIED", "x/p", 5, Some("n"));
        let status = line("MODIFIED", "x/q", 6, None);
        let mark = line("MODIFIED", FENCE, 7, Some("fence"));
        for line in [&bound, &status, &mark, &bound] {
            gate.shared.state().take(line.clone());
        }
        assert!(gate.has_all(7) && !gate.has_all(8));
        assert!(receiver.try_recv().is_err(), "all are held, and the mark is for nobody else");
        let fence = json!({"metadata": {"namespace": "fence", "name": "fence"}, "spec": {"nodeName": "fence"}});
        let mut versions = Vec::new();
        for mark in 1..4 {
            gate.fence(&fence, mark);
            let event: Value = serde_json::from_slice(&receiver.try_recv().unwrap()).unwrap();
            assert_eq!(event["object"]["metadata"]["annotations"]["moved"], mark.to_string());
            versions.push(version_of(&event["object"]).unwrap());
        }
        assert_eq!(versions, [7, 6, 7], "no two in a row alike, none newer than what has come");
        assert!(gate.let_one_through() && gate.let_one_through());
        assert_eq!((receiver.try_recv().unwrap(), receiver.try_recv().unwrap()), (status, bound));
        assert!(!gate.let_one_through(), "what came twice is held once");
    }
    #[tokio::test]
    async fn what_the_scheduler_writes_is_waited_for() {
        let gate = Gate::open().await.unwrap();
        let state = || gate.shared.state();
        let write = |method: &Method, path: &str| Write::of(method, path).unwrap();
        let binding = write(&Method::POST, "/api/v1/namespaces/x/pods/p/binding");
        state().begin(&binding);
        state().take(line("MODIFIED", "x/p", 5, Some("n")));
        assert!(!gate.has_all(0), "the answer is under way");
        state().end(&binding, true, None);
        assert!(gate.has_all(5), "the event may come before the answer");
        state().begin(&binding);
        state().end(&binding, true, None);
        assert!(!gate.has_all(0), "the binding has no event yet");
        state().take(line("DELETED", "x/p", 6, None));
        assert!(gate.has_all(6), "nor will it have one");
        let status = write(&Method::PATCH, "/api/v1/namespaces/x/pods/q/status");
        let answer = |version: u64, message: &str| {
            let conditions = json!([{"type": "Ready"}, {"type": "PodScheduled", "message": message}]);
            let metadata = json!({"namespace": "x", "name": "q", "resourceVersion": version.to_string()});
            json!({"metadata": metadata, "spec": {}, "status": {"conditions": conditions}})
        };
        state().begin(&status);
        assert_eq!(gate.condition("x/q"), None);
        state().end(&status, true, Some(&answer(8, "no room")));
        assert!(!gate.has_all(0));
        assert_eq!(gate.condition("x/q").unwrap(), "no room", "the answer tells it before the event");
        state().take(line("MODIFIED", "x/q", 8, None));
        assert!(gate.has_all(0) && !gate.take_deleted());
        state().begin(&status);
        state().take(format!("{}\n", json!({"type": "MODIFIED", "object": answer(10, "new")})).into_bytes().into());
        state().end(&status, true, Some(&answer(9, "old")));
        assert_eq!(gate.condition("x/q").unwrap(), "new", "an answer that is late tells nothing");
        let deletion = write(&Method::DELETE, "/api/v1/namespaces/x/pods/q");
        state().begin(&deletion);
        state().end(&deletion, true, None);
        assert!(gate.take_deleted() && !gate.take_deleted());
        state().take(line("DELETED", "x/q", 11, None));
        assert_eq!(gate.condition("x/q"), None, "it is gone");
        assert!(Write::of(&Method::PATCH, "/api/v1/nodes/n").is_none());
    }
}
