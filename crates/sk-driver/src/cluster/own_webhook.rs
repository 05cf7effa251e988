//! The webhook configuration of a run without a controller. The run's root owns it.
//!
//! It calls the driver for new pods in namespaces of this run only, and fails open: an unreachable driver must not
//! block the creation of pods; they get their delays and lifetimes late, and that is counted. For pods that could be
//! scheduled to a real node, and claims that could reach a provisioner, it fails closed. This is decided by the
//! object's spec and not by its labels, because operators copy labels to pods and claims that nobody has virtualised.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use sk_api::simulation::names;

use super::request::{Refusal, RetryPolicy, with_retries};
use super::virtualise::{Root, owner};

/// The API server learns of a new configuration within a second or two.
pub(crate) const EFFECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long the API server waits for an answer.
const TIMEOUT_SECONDS: u32 = 5;

/// Creates the configuration.
pub(crate) async fn install(
    client: &Client,
    retry: &RetryPolicy,
    simulation: &str,
    root: &Root,
    url: &str,
    authority: &str,
) -> Result<(), Refusal> {
    let configuration: MutatingWebhookConfiguration =
        serde_json::from_value(configuration(simulation, root, url, authority)).expect("this is a configuration");
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let parameters = PostParams::default();
    match with_retries(retry, || api.create(&parameters, &configuration)).await {
        Err(refusal) if !refusal.is_already_there() => return Err(refusal),
        Ok(_) => return Ok(()),
        Err(_) => {}
    }
    let name = names::webhook(simulation);
    let there = with_retries(retry, || api.get(&name)).await?;
    if there.owner_references().iter().any(|owner| owner.uid == root.uid.as_str()) {
        // The first try's answer was lost.
        return Ok(());
    }
    // An earlier driver's went with its root.
    let words = format!(
        "the MutatingWebhookConfiguration {name} was there before and is somebody else's; choose another name for the \
         simulation, or delete it"
    );
    Err(Refusal::Malformed(words))
}

/// In CEL: the pod can go to virtual nodes only.
fn is_virtual_pod() -> String {
    let (label, value) = names::NODE_SELECTOR;
    format!(
        "has(object.spec.nodeSelector) && '{label}' in object.spec.nodeSelector && \
         object.spec.nodeSelector['{label}'] == '{value}' && !has(object.spec.nodeName)"
    )
}

/// In CEL: the claim asks for no class, and for the run's volumes only.
fn is_virtual_claim(simulation: &str) -> String {
    let label = names::SIMULATION_LABEL;
    format!(
        "has(object.spec.storageClassName) && object.spec.storageClassName == '' && !has(object.spec.volumeName) && \
         has(object.spec.selector) && has(object.spec.selector.matchLabels) && \
         '{label}' in object.spec.selector.matchLabels && object.spec.selector.matchLabels['{label}'] == '{simulation}'"
    )
}

fn configuration(simulation: &str, root: &Root, url: &str, authority: &str) -> Value {
    let client = json!({"url": url, "caBundle": ByteString(authority.as_bytes().to_vec())});
    let webhook = |name: &str, resource: &str, condition: String, on_failure: &str| {
        json!({
            "name": name, "clientConfig": client, "sideEffects": "NoneOnDryRun", "admissionReviewVersions": ["v1"],
            "timeoutSeconds": TIMEOUT_SECONDS, "failurePolicy": on_failure,
            "namespaceSelector": {"matchLabels": {names::SIMULATION_LABEL: simulation}},
            "matchConditions": [{"name": "concerned", "expression": condition}],
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE"]}],
        })
    };
    let (virtual_pod, virtual_claim) = (is_virtual_pod(), is_virtual_claim(simulation));
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {
            "name": names::webhook(simulation),
            "labels": {names::SIMULATION_LABEL: simulation, names::COMPONENT_LABEL: names::DRIVER},
            "ownerReferences": [owner(root)],
        },
        // In this order: a pod that the second one has virtualised must not be asked about again by the first.
        "webhooks": [
            webhook("mutatepods.simkube.io", "pods", virtual_pod.clone(), "Ignore"),
            webhook("otherpods.simkube.io", "pods", format!("!({virtual_pod})"), "Fail"),
            webhook("claims.simkube.io", "persistentvolumeclaims", format!("!({virtual_claim})"), "Fail"),
        ],
    })
}
