//! The endpoint for records and traces under callers who say nothing. All on loopback, and nobody's cluster is asked.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use kube::Client;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{RootCertStore, ServerConfig};
use sk_cluster::certificate::SelfSigned;
use sk_cluster::tls;
use sk_ctrl::records::{Server, Store, Traces};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A certificate of the test's own, and who trusts it.
fn identity() -> (Arc<ServerConfig>, TlsConnector) {
    let made = SelfSigned::new("localhost", vec!["localhost".to_owned()]).unwrap();
    let certificate = CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(made.key.as_bytes()).unwrap();
    let served = tls::server_config(vec![certificate.clone()], key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let trusting = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(served), TlsConnector::from(Arc::new(trusting)))
}

async fn probe(address: SocketAddr, tls: &TlsConnector) -> std::io::Result<String> {
    let socket = TcpStream::connect(address).await?;
    let mut stream = tls.connect(ServerName::try_from("localhost").unwrap(), socket).await?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_connections_that_send_nothing_do_not_keep_kubelet_from_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody is asked who anybody is: a probe needs no token.
    let nobody = async |_: http::Request<kube::client::Body>| Err::<http::Response<Body>, _>("nobody");
    let client = Client::new(tower::service_fn(nobody), "default");
    let store = Store::open(folder.path()).await.unwrap();
    let traces = Traces::open(folder.path(), 1 << 20).await.unwrap();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), client, store, traces).await.unwrap();
    let (address, (served, tls)) = (server.address().unwrap(), identity());
    let (_identities, newest) = watch::channel(served);
    tokio::spawn(server.serve(newest));
    let mut silent = Vec::new();
    for number in 0..1_000 {
        silent.push(TcpStream::connect(address).await.unwrap());
        if number % 250 == 249 {
            let answer = tokio::time::timeout(LIMIT, probe(address, &tls)).await;
            assert!(answer.expect("it answers in time").unwrap().ends_with("ok\n"), "after {number}");
        }
    }
}
