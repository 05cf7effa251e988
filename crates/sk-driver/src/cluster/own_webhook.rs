//! The webhook configuration of a run without a controller: the driver makes it, and it goes with the run's root.
//!
//! It calls the driver for new pods in namespaces of this simulation only, and fails open: a driver that is not reachable
//! must not keep pods from being made; they get their delays and lives late, and that is counted.

use std::time::{Duration, Instant};

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sk_api::simulation::{SimulationRoot, names};

use super::dress::Root;
use super::request::{Refusal, patiently};
use super::tally::Tally;

/// The API server learns of a new configuration within a second or two.
const EFFECT_PATIENCE: Duration = Duration::from_secs(10);
const EFFECT_LOOK: Duration = Duration::from_millis(100);
/// How long the API server waits for an answer.
const TIMEOUT_SECONDS: u32 = 5;

/// Creates the configuration and waits until the API server calls `url`, as far as that can be seen from here.
pub(crate) async fn install(
    client: &Client,
    tally: &Tally,
    simulation: &str,
    root: &Root,
    url: &str,
    authority: &str,
) -> Result<(), Refusal> {
    let configuration: MutatingWebhookConfiguration =
        serde_json::from_value(configuration(simulation, root, url, authority)).expect("this is a configuration");
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let parameters = PostParams::default();
    match patiently(tally, || api.create(&parameters, &configuration)).await {
        // The first try's answer was lost: an earlier driver's went with its root.
        Err(refusal) if !refusal.is_already_there() => return Err(refusal),
        _ => {}
    }
    wait_for_effect(client, root).await;
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
    let roots = json!({
        "apiGroups": [names::GROUP], "apiVersions": ["v1"], "resources": ["simulationroots"], "operations": ["UPDATE"],
    });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {
            "name": names::webhook(simulation),
            "labels": {names::SIMULATION_LABEL: simulation, names::COMPONENT_LABEL: names::DRIVER},
            "ownerReferences": [{
                "apiVersion": "simkube.io/v1", "kind": "SimulationRoot", "name": root.name, "uid": root.uid,
                "blockOwnerDeletion": true,
            }],
        },
        "webhooks": [
            webhook("mutatepods.simkube.io", pods, json!({"namespaceSelector": selector})),
            // Only to see when the configuration is in force: the driver changes its root, dry.
            webhook("probe.simkube.io", roots, json!({"objectSelector": selector})),
        ],
    })
}

/// Changes the root, dry, until the answer shows that the webhook was asked. Gives up without a word but in the log:
/// pods that come too early are seen by the watch.
async fn wait_for_effect(client: &Client, root: &Root) {
    let api: Api<SimulationRoot> = Api::all(client.clone());
    let parameters = PatchParams { dry_run: true, ..PatchParams::default() };
    let patch = json!({"metadata": {"annotations": {PROBE: "asked"}}});
    let began = Instant::now();
    while began.elapsed() < EFFECT_PATIENCE {
        let answer = api.patch(&root.name, &parameters, &Patch::Merge(&patch)).await;
        let seen = answer.is_ok_and(|root| {
            root.metadata.annotations.is_some_and(|annotations| annotations.get(PROBE).is_some_and(|word| word == SEEN))
        });
        if seen {
            return;
        }
        tokio::time::sleep(EFFECT_LOOK).await;
    }
    tracing::warn!("the API server does not call the webhook; is its address reachable from there? See --webhook-url");
}

/// Annotation on the root in a dry request: whether the webhook was asked.
pub(crate) const PROBE: &str = "simkube.io/webhook-probe";
/// What the webhook makes of it.
pub(crate) const SEEN: &str = "seen";
