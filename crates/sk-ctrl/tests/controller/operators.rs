//! What a run asks of cert-manager and of the Prometheus operator, against the real definitions of their kinds. The
//! operators themselves do not run here: the test plays cert-manager and writes the Secret, and nobody makes pods of the
//! Prometheus.

use std::fs;
use std::path::Path;

use k8s_openapi::ByteString;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sk_api::simulation::{State, names};
use sk_core::Gvk;
use sk_testkit::control_plane::{Binaries, eventually};

use crate::lab::{LIMIT, Lab};

const NAME: &str = "equipped";

/// Makes the kinds known.
pub(crate) async fn install(lab: &Lab) {
    let binaries = Binaries::from_env().expect("a cache folder");
    for file in [binaries.cert_manager_kinds(), binaries.prometheus_kinds()] {
        let file = file.expect("`make control-plane` has fetched it");
        apply(lab, &file).await;
    }
    lab.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}})).await;
}

async fn apply(lab: &Lab, file: &Path) {
    let text = fs::read_to_string(file).expect("a definition");
    let mut definition: Value = serde_saphyr::from_str(&text).expect("a definition in YAML");
    // These are templates, for a chart to fill in.
    definition["metadata"] = json!({"name": definition["metadata"]["name"]});
    let gvk = Gvk::from_api_version("apiextensions.k8s.io/v1", "CustomResourceDefinition").expect("a kind");
    let definitions = lab.cluster.api(&gvk, None).await.expect("definitions are served");
    let name = definition["metadata"]["name"].as_str().expect("a name");
    let parameters = PatchParams::apply("test");
    definitions.patch(name, &parameters, &Patch::Apply(&definition)).await.expect("the definition is accepted");
    eventually(&format!("{name} to be served"), LIMIT, || async {
        let found = definitions.get(name).await?;
        let conditions = found.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let served = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
        Ok(conditions.iter().any(served).then_some(()))
    })
    .await
    .expect("the kind is served");
}

/// What is asked for is accepted, whole: a field that the kinds do not know would be cut off.
pub(crate) async fn a_run_may_have_a_certificate_of_cert_manager_and_a_prometheus(lab: &Lab) {
    let go = lab.folder.path().join("equipped-go");
    let spec = json!({
        "driver": {"certManagerIssuer": "lab", "args": [go.to_string_lossy()]},
        "metrics": {
            "prometheusShards": 2, "podMonitorNames": ["pods"], "podMonitorNamespaces": ["monitoring"],
            "serviceMonitorNames": ["services"], "serviceMonitorNamespaces": ["monitoring", "default"],
            "remoteWriteConfigs": [{"url": "https://metrics.example.com/write"}],
        },
    });
    lab.simulate(NAME, "driver:waits", &spec).await;
    let waits = |status: &sk_api::simulation::SimulationStatus| status.reason.as_deref() == Some("CertificatePending");
    lab.until(NAME, "a certificate that is awaited", waits).await;
    let certificate = object(lab, "cert-manager.io/v1", "Certificate", "simkube", "sk-equipped-driver-cert").await;
    let host = "sk-equipped-driver-svc.simkube.svc";
    assert_eq!(
        certificate,
        json!({
            "secretName": "sk-equipped-driver-cert", "dnsNames": [host],
            "secretTemplate": {"labels": {names::SIMULATION_LABEL: NAME}},
            "issuerRef": {"kind": "ClusterIssuer", "name": "lab"},
        })
    );
    deliver(lab, host, &certificate).await;

    lab.reaches(NAME, State::Running).await;
    let prometheus = object(lab, "monitoring.coreos.com/v1", "Prometheus", "monitoring", "sk-equipped-prom").await;
    let named =
        |key: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": "In", "values": values}]});
    let (app, namespace) = ("app.kubernetes.io/name", "kubernetes.io/metadata.name");
    let wanted = json!({
        "serviceAccountName": "prometheus-k8s", "shards": 2, "externalLabels": {"simkube_simulation": NAME},
        "podMonitorSelector": named(app, json!(["pods"])),
        "podMonitorNamespaceSelector": named(namespace, json!(["monitoring"])),
        "serviceMonitorSelector": named(app, json!(["services"])),
        "serviceMonitorNamespaceSelector": named(namespace, json!(["monitoring", "default"])),
        "remoteWrite": [{"url": "https://metrics.example.com/write"}],
    });
    for (field, value) in wanted.as_object().expect("fields") {
        assert_eq!(prometheus[field], *value, "{field} of {prometheus}");
    }
    fs::write(&go, "").expect("a file");
    assert_eq!(lab.ends(NAME).await.state, Some(State::Finished));
}

/// The spec of an object, once it is there.
async fn object(lab: &Lab, version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    let gvk = Gvk::from_api_version(version, kind).expect("a kind");
    let api: Api<DynamicObject> = lab.cluster.api(&gvk, Some(namespace)).await.expect("a kind that is served");
    let found = eventually(&format!("{kind} {name}"), LIMIT, || api.get_opt(name)).await.expect("it is made");
    found.data["spec"].clone()
}

/// Does what cert-manager does with such an order.
async fn deliver(lab: &Lab, host: &str, order: &Value) {
    let authority = lab.cluster.authority();
    let serving = authority.serving(&[host]).expect("a certificate");
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {
            "name": order["secretName"], "namespace": "simkube", "labels": order["secretTemplate"]["labels"],
        },
        "data": {
            "tls.crt": bytes(&serving.certificate), "tls.key": bytes(&serving.key),
            names::CA_KEY: bytes(&authority.certificate()),
        },
    });
    let api: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(lab.cluster.client(), "simkube");
    let secret = serde_json::from_value(secret).expect("a Secret");
    api.create(&PostParams::default(), &secret).await.expect("the Secret is accepted");
}
