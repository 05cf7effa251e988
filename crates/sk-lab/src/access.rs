//! Waits for conditions of a cluster, and accesses objects by kind and name.

use std::future::Future;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use serde_json::Value;
use sk_core::Gvk;

use crate::error::ControlError;

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
pub async fn dynamic_api(
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
pub async fn create_value(client: Client, object: &Value) -> Result<DynamicObject, ControlError> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let refuse = || ControlError::NoObject(object.to_string().chars().take(200).collect());
    let gvk = Gvk::from_api_version(text("/apiVersion").unwrap_or_default(), text("/kind").unwrap_or_default())
        .map_err(|_| refuse())?;
    let api = dynamic_api(client, &gvk, Some(text("/metadata/namespace").unwrap_or("default"))).await?;
    let typed: DynamicObject = serde_json::from_value(object.clone()).map_err(|_| refuse())?;
    let step = format!("create {} {}", gvk.kind, text("/metadata/name").unwrap_or("with a generated name"));
    api.create(&PostParams::default(), &typed).await.map_err(ControlError::request(step))
}

/// Waits until pods can be scheduled to these nodes. Admission taints a new node; only the controller-manager's node
/// lifecycle controller takes the taint away, so that without one (`untaints`) it is not waited for.
pub async fn until_nodes_ready(client: Client, names: &[String], untaints: bool) -> Result<(), ControlError> {
    let api: Api<Node> = Api::all(client);
    eventually("the new nodes to be ready", NODES_LIMIT, || async {
        let listed = api.list(&ListParams::default()).await?;
        let ready = |node: &Node| is_ready(node) && !(untaints && is_tainted_not_ready(node));
        let ready_names: Vec<_> =
            listed.items.iter().filter(|node| ready(node)).filter_map(|node| node.metadata.name.as_deref()).collect();
        Ok(names.iter().all(|name| ready_names.contains(&name.as_str())).then_some(()))
    })
    .await
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn is_tainted_not_ready(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.into_iter().flatten().any(|taint| taint.key == "node.kubernetes.io/not-ready")
}
