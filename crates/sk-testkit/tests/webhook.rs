//! A webhook in the test's own process, reached by the API server through a Service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use sk_testkit::control_plane::{Certified, ControlPlane, eventually};
use sk_testkit::{Options, objects};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

const LIMIT: Duration = Duration::from_secs(120);

/// Admits everything and adds a label: `[{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]`.
const PATCH: &str = "W3sib3AiOiAiYWRkIiwgInBhdGgiOiAiL21ldGFkYXRhL2xhYmVscyIsICJ2YWx1ZSI6IHsic2VlbiI6ICJ5ZXMifX1d";

fn acceptor(certified: &Certified) -> TlsAcceptor {
    let chain = CertificateDer::from_pem_slice(certified.certificate.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(certified.key.as_bytes()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![chain], key));
    TlsAcceptor::from(Arc::new(config.expect("a key that belongs to the certificate")))
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor) {
    while let Ok((socket, _)) = listener.accept().await {
        if let Ok(stream) = acceptor.accept(socket).await {
            tokio::spawn(answer_one(stream));
        }
    }
}

/// Reads one HTTP/1.1 request and admits it.
async fn answer_one(stream: impl AsyncRead + AsyncWrite + Unpin) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let (name, value) = line.trim().split_once(": ").unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let review: Value = serde_json::from_slice(&body).ok()?;
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": PATCH},
    })
    .to_string();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", answer.len());
    stream.write_all((head + &answer).as_bytes()).await.ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_reached_through_its_service() {
    let cluster = ControlPlane::start(Options::api_only().webhook_routing()).await.unwrap();
    let listener = TcpListener::bind(SocketAddr::new(ControlPlane::host_address().unwrap(), 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let certified = cluster.authority().serving(&["hook.default.svc"]).unwrap();
    tokio::spawn(serve(listener, acceptor(&certified)));
    cluster.route_service("default", "hook", port).await.unwrap();
    let authority: Vec<u8> = cluster.authority().certificate().into_bytes();
    cluster
        .create(&objects::object(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "hook"},
            "webhooks": [{
                "name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "failurePolicy": "Fail",
                "clientConfig": {
                    "service": {"namespace": "default", "name": "hook", "path": "/"},
                    "caBundle": k8s_openapi::ByteString(authority),
                },
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
            }],
        })))
        .await
        .unwrap();

    let config_maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let with_any_name = ConfigMap {
        metadata: ObjectMeta { generate_name: Some("c-".to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    // The API server learns of a new webhook a moment later.
    let labels = eventually("a ConfigMap with the webhook's label", LIMIT, || async {
        Ok(config_maps.create(&PostParams::default(), &with_any_name).await?.metadata.labels)
    });
    assert_eq!(labels.await.unwrap().get("seen").map(String::as_str), Some("yes"));
}
