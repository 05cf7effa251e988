//! An API server of one test: it knows discovery, empty lists and whatever the test lets it answer. For what the real one
//! cannot be made to do on demand, and where starting it would be too much.

#![allow(dead_code, reason = "each test uses its part of this")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt};
use serde_json::{Value, json};

/// Kinds that it serves: path, kind, plural.
const SERVED: [(&str, &str, &str); 6] = [
    ("/api/v1", "Pod", "pods"),
    ("/api/v1", "Node", "nodes"),
    ("/api/v1", "ConfigMap", "configmaps"),
    ("/apis/apps/v1", "Deployment", "deployments"),
    ("/apis/apps/v1", "ReplicaSet", "replicasets"),
    ("/apis/batch/v1", "Job", "jobs"),
];

/// What is asked.
pub(crate) struct Asked {
    /// The path; without a plural at its end it asks which kinds are served there.
    pub(crate) path: String,
    /// The plural of the kind.
    pub(crate) plural: String,
    /// Is it a watch? From which version?
    pub(crate) watch: Option<String>,
    /// The token that was shown.
    pub(crate) token: String,
    /// What was sent; null if that is no JSON.
    pub(crate) body: Value,
}

type Answer = dyn Fn(&Asked) -> Option<Response> + Send + Sync;

/// A running one.
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
}

impl Fake {
    /// Starts one. What the test does not answer is discovery, a list of nothing, or a watch in which nothing happens.
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Option<Response> + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let address = listener.local_addr().expect("it listens");
        let answer: Arc<Answer> = Arc::new(answer);
        let router = Router::new().fallback(reply).with_state(answer);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address }
    }

    /// A kubeconfig for it, in this folder, with this token.
    pub(crate) fn kubeconfig(&self, folder: &Path, token: &str) -> PathBuf {
        let path = folder.join("kubeconfig");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "x", "user": {"token": token}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        });
        std::fs::write(&path, text.to_string()).expect("the folder can be written");
        path
    }
}

async fn reply(State(answer): State<Arc<Answer>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let pairs: Vec<_> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let value = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    let token = request.headers().get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = token.unwrap_or_default().trim_start_matches("Bearer ").to_owned();
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap_or_default();
    let asked = Asked {
        plural: path.rsplit('/').next().unwrap_or_default().to_owned(),
        path,
        watch: value("watch").and_then(|_| value("resourceVersion")),
        token,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let default = || match asked.watch {
        None if SERVED.iter().any(|(base, ..)| *base == asked.path) => discovery(&asked.path),
        Some(_) => watch(futures::stream::empty()),
        None => list(1, &[]),
    };
    answer(&asked).unwrap_or_else(default)
}

fn discovery(path: &str) -> Response {
    let of_path: Vec<_> = SERVED.iter().filter(|(base, ..)| *base == path).copied().collect();
    kinds(path, &of_path)
}

/// The answer to the question which kinds are served at a path.
pub(crate) fn kinds(path: &str, served: &[(&str, &str, &str)]) -> Response {
    let resource = |(_, kind, plural): &(&str, &str, &str)| json!({"name": plural, "singularName": "", "namespaced": *kind != "Node", "kind": kind, "verbs": ["list", "watch"]});
    let resources: Vec<_> = served.iter().map(resource).collect();
    let version = path.trim_start_matches("/apis/").trim_start_matches("/api/");
    let body = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources});
    axum::Json(body).into_response()
}

/// A list of these objects at a version.
pub(crate) fn list(version: u64, items: &[Value]) -> Response {
    axum::Json(json!({"kind": "List", "metadata": {"resourceVersion": version.to_string()}, "items": items}))
        .into_response()
}

/// A watch that brings these lines and then stays open.
pub(crate) fn watch(lines: impl Stream<Item = String> + Send + 'static) -> Response {
    let lines = lines.map(|line| Ok::<_, std::io::Error>(line + "\n"));
    Body::from_stream(lines.chain(futures::stream::pending())).into_response()
}

/// A watch that brings these lines and ends.
pub(crate) fn short_watch(text: String) -> Response {
    Body::from(text).into_response()
}

/// One object, after a while.
pub(crate) fn late(object: &Value, after: Duration) -> Response {
    let text = object.to_string();
    let body = async move {
        tokio::time::sleep(after).await;
        Ok::<_, std::io::Error>(text)
    };
    Body::from_stream(futures::stream::once(body)).into_response()
}

/// A refusal as Kubernetes words it.
pub(crate) fn refuse(code: u16, reason: &str) -> Response {
    let status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason});
    let code = http::StatusCode::from_u16(code).expect("a status code");
    (code, axum::Json(status)).into_response()
}

/// One line of a watch.
pub(crate) fn event(what: &str, object: &Value) -> String {
    json!({"type": what, "object": object}).to_string()
}

/// A ConfigMap at a version.
pub(crate) fn config_map(name: &str, version: u64, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value},
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": version.to_string()},
    })
}
