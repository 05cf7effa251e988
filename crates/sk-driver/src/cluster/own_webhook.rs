//! The webhook configuration of a run without a controller: the driver makes it, and it goes with the run's root.
//!
//! It calls the driver for new pods in namespaces of this simulation only, and fails open: a driver that is not reachable
//! must not keep pods from being made; they get their delays and lives late, and that is counted. Claims of volumes that
//! the run has not written itself fail closed.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use sk_api::simulation::names;

use super::dress::{Root, owner};
use super::request::{Patience, Refusal, patiently};

/// The API server learns of a new configuration within a second or two.
pub(crate) const EFFECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long the API server waits for an answer.
const TIMEOUT_SECONDS: u32 = 5;

/// Creates the configuration.
pub(crate) async fn install(
    client: &Client,
    patience: &Patience,
    simulation: &str,
    root: &Root,
    url: &str,
    authority: &str,
) -> Result<(), Refusal> {
    let configuration: MutatingWebhookConfiguration =
        serde_json::from_value(configuration(simulation, root, url, authority)).expect("this is a configuration");
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let parameters = PostParams::default();
    match patiently(patience, || api.create(&parameters, &configuration)).await {
        // The first try's answer was lost: an earlier driver's went with its root.
        Err(refusal) if !refusal.is_already_there() => return Err(refusal),
        _ => {}
    }
    Ok(())
}

fn configuration(simulation: &str, root: &Root, url: &str, authority: &str) -> Value {
    let selector = json!({"matchLabels": {names::SIMULATION_LABEL: simulation}});
    let client = json!({"url": url, "caBundle": ByteString(authority.as_bytes().to_vec())});
    let webhook = |name: &str, rule: Value, more: Value| {
        let mut webhook = json!({
            "name": name, "clientConfig": client, "rules": [rule], "sideEffects": "NoneOnDryRun",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore", "timeoutSeconds": TIMEOUT_SECONDS,
        });
        webhook
            .as_object_mut()
            .into_iter()
            .for_each(|fields| fields.extend(more.as_object().cloned().unwrap_or_default()));
        webhook
    };
    let pods = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]});
    let claims = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["persistentvolumeclaims"], "operations": ["CREATE"],
    });
    // What the run has written says so already. What others write must not reach a provisioner, driver or no driver.
    let foreign = json!({"matchExpressions": [{"key": names::SIMULATION_LABEL, "operator": "DoesNotExist"}]});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {
            "name": names::webhook(simulation),
            "labels": {names::SIMULATION_LABEL: simulation, names::COMPONENT_LABEL: names::DRIVER},
            "ownerReferences": [owner(root)],
        },
        "webhooks": [
            webhook("mutatepods.simkube.io", pods, json!({"namespaceSelector": selector})),
            webhook(
                "claims.simkube.io",
                claims,
                json!({"namespaceSelector": selector, "objectSelector": foreign, "failurePolicy": "Fail"}),
            ),
        ],
    })
}
