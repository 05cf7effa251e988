//! What tests do most with a control plane: create, look, wait; and forgetting etcd's history.

use std::future::Future;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use kube::{Client, Config};
use serde_json::{Value, json};
use sk_core::Gvk;

use super::{ControlError, ControlPlane};
use crate::objects::Object;
use crate::options::Component;

/// How long new nodes may take to be ready: KWOK and the node lifecycle controller need a second or two.
const NODES_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// Looks again and again until `look` finds something, at most for `limit`; `what` is for the error message.
pub async fn eventually<T, Look, Found>(what: &str, limit: Duration, mut look: Look) -> Result<T, ControlError>
where
    Look: FnMut() -> Found,
    Found: Future<Output = Result<Option<T>, kube::Error>>,
{
    let began = Instant::now();
    let mut last = None;
    while let Some(left) = limit.checked_sub(began.elapsed()) {
        // While a component restarts, errors are as good as "not yet"; the last one is shown if it stays that way.
        last = match tokio::time::timeout(left, look()).await {
            Ok(Ok(Some(found))) => return Ok(found),
            Ok(Ok(None)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("waiting for an answer".to_owned()),
        };
        tokio::time::sleep(POLL).await;
    }
    Err(ControlError::TimedOut { what: what.to_owned(), waited: limit, last })
}

/// The API of a kind that is only known by name, in one namespace if the kind has such.
pub(crate) async fn dynamic_api(
    client: Client,
    gvk: &Gvk,
    namespace: Option<&str>,
) -> Result<Api<DynamicObject>, ControlError> {
    let kind = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
    let (resource, capabilities) =
        discovery::pinned_kind(&client, &kind).await.map_err(|_| ControlError::UnknownKind(gvk.clone()))?;
    Ok(match (capabilities.scope, namespace) {
        (Scope::Cluster, _) | (Scope::Namespaced, None) => Api::all_with(client, &resource),
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client, namespace, &resource),
    })
}

/// Creates an object given as JSON; one without a namespace goes to `default`, if its kind has namespaces.
pub(crate) async fn create_value(client: Client, object: &Value) -> Result<DynamicObject, ControlError> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let refuse = || ControlError::NoObject(object.to_string().chars().take(200).collect());
    let gvk = Gvk::from_api_version(text("/apiVersion").unwrap_or_default(), text("/kind").unwrap_or_default())
        .map_err(|_| refuse())?;
    let api = dynamic_api(client, &gvk, Some(text("/metadata/namespace").unwrap_or("default"))).await?;
    let typed: DynamicObject = serde_json::from_value(object.clone()).map_err(|_| refuse())?;
    let step = format!("create {} {}", gvk.kind, text("/metadata/name").unwrap_or("with a generated name"));
    api.create(&PostParams::default(), &typed).await.map_err(ControlError::request(step))
}

impl ControlPlane {
    /// Creates an object.
    pub async fn create(&self, object: &Object) -> Result<DynamicObject, ControlError> {
        create_value(self.client(), object.as_value()).await
    }

    /// Creates nodes for KWOK to play, and waits until pods can be scheduled to them.
    pub async fn create_nodes(&self, nodes: impl IntoIterator<Item = Object>) -> Result<(), ControlError> {
        let mut names = Vec::new();
        for node in nodes {
            self.create(&node).await?;
            names.push(node.key().name);
        }
        // Admission taints a new node; only the controller-manager's node lifecycle controller takes the taint away.
        let untaints = self.options.runs(Component::ControllerManager);
        let api: Api<Node> = Api::all(self.client());
        eventually("the new nodes to be ready", NODES_LIMIT, || async {
            let listed = api.list(&ListParams::default()).await?;
            let ready = |node: &Node| is_ready(node) && !(untaints && is_tainted_not_ready(node));
            let ready_names: Vec<_> = listed
                .items
                .iter()
                .filter(|node| ready(node))
                .filter_map(|node| node.metadata.name.as_deref())
                .collect();
            Ok(names.iter().all(|name| ready_names.contains(&name.as_str())).then_some(()))
        })
        .await
    }

    /// The API of any kind, in one namespace or in all.
    pub async fn api(&self, gvk: &Gvk, namespace: Option<&str>) -> Result<Api<DynamicObject>, ControlError> {
        dynamic_api(self.client(), gvk, namespace).await
    }

    /// What the API server says its version is, such as `v1.36.4`.
    pub async fn version(&self) -> Result<String, ControlError> {
        let info = self.client().apiserver_version().await.map_err(ControlError::request("ask for the version"))?;
        Ok(info.git_version)
    }

    /// Makes etcd forget all history up to now, as a cluster does every five minutes.
    ///
    /// The API server still remembers recent changes by itself. To have a watch from an old version end with 410 Gone,
    /// also restart [`Component::ApiServer`]: it cannot fill its memory again from what etcd has forgotten.
    pub async fn compact_etcd(&self) -> Result<(), ControlError> {
        // Any key will do: the answer's header carries the current revision.
        let answer = self.etcd("/v3/kv/range", &json!({"key": "AA=="})).await?;
        let revision = answer["header"]["revision"].clone();
        self.etcd("/v3/kv/compaction", &json!({"revision": revision, "physical": true})).await.map(drop)
    }

    /// etcd's own API, over its JSON gateway.
    async fn etcd(&self, path: &str, body: &Value) -> Result<Value, ControlError> {
        let step = || ControlError::request(format!("POST {path} to etcd"));
        let url = format!("http://127.0.0.1:{}", self.ports.etcd).parse();
        let config = Config::new(url.expect("an address and a port make a URL"));
        let client = Client::try_from(config).map_err(step())?;
        let request = http::Request::post(path).body(body.to_string().into_bytes());
        let request = request.map_err(|error| step()(kube::Error::HttpError(error)))?;
        client.request(request).await.map_err(step())
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn is_tainted_not_ready(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.into_iter().flatten().any(|taint| taint.key == "node.kubernetes.io/not-ready")
}
