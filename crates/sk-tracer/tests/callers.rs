//! How the tracer bears callers with bad manners, and what it says of them and of its own troubles. Hermetic: the API server is
//! the test's own, and everything is on loopback.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "tracer/fake.rs"]
mod fake;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use axum::response::{IntoResponse, Response};
use fake::{Asked, Fake, list, refuse};
use kube::Client;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use sk_api::tracer::Config;
use sk_tracer::access::Place;
use sk_tracer::{Access, Options, Security, Serving, Tracer, auth, tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tracing_subscriber::fmt::MakeWriter;

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

/// What was logged in this process, by all tests.
static LOG: LazyLock<Log> = LazyLock::new(|| {
    let log = Log::default();
    tracing_subscriber::fmt().with_ansi(false).with_max_level(tracing::Level::INFO).with_writer(log.clone()).init();
    log
});

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.0.lock().unwrap()).lines().map(str::to_owned).collect()
    }

    fn lines_with(&self, part: &str) -> Vec<String> {
        self.lines().into_iter().filter(|line| line.contains(part)).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Knows the tokens `good`, of jane who may export, and `poor`, of joe who may not.
fn review(asked: &Asked) -> Option<Response> {
    let mut answer = asked.body.clone();
    answer["status"] = match asked.plural.as_str() {
        "tokenreviews" => match asked.body["spec"]["token"].as_str() {
            Some("good") => json!({"authenticated": true, "audiences": [auth::AUDIENCE], "user": {"username": "jane"}}),
            Some("poor") => json!({"authenticated": true, "audiences": [auth::AUDIENCE], "user": {"username": "joe"}}),
            _ => json!({"authenticated": false}),
        },
        "subjectaccessreviews" => json!({"allowed": asked.body["spec"]["user"] == "jane"}),
        _ => return None,
    };
    Some(axum::Json(answer).into_response())
}

/// A tracer that serves with its own certificate, and where.
async fn serving(server: &Fake, folder: &Path) -> (Tracer, SocketAddr) {
    let place = Place { kubeconfig: Some(server.kubeconfig(folder, "t")), context: None };
    let (access, _) = Access::to(place).await.expect("the kubeconfig is right");
    let config =
        Config::parse("test", "trackedObjects: {v1.ConfigMap: {}, apps/v1.Deployment: {}}\n").expect("it is right");
    let address = "127.0.0.1:0".parse().expect("an address");
    let options = Options {
        data_dir: Some(folder.join("data")),
        serving: Some(Serving { address, security: Security::OwnCertificate, publish: None }),
        ..Options::default()
    };
    let tracer = Tracer::start(access, config, options).await.expect("the tracer starts");
    let address = tracer.address().expect("it serves");
    (tracer, address)
}

/// Somebody who trusts the tracer's certificate and shows this token.
fn caller(address: SocketAddr, folder: &Path, token: Option<&str>) -> Client {
    let pem = std::fs::read(folder.join("data/tls.crt")).expect("the certificate is there");
    let mut config = kube::Config::new(format!("https://{address}").parse().expect("a URL"));
    config.root_cert = Some(vec![CertificateDer::from_pem_slice(&pem).expect("a certificate").to_vec()]);
    config.tls_server_name = Some(tls::SERVER_NAME.to_owned());
    config.auth_info.token = token.map(|token| token.to_owned().into());
    Client::try_from(config).expect("a client can be made")
}

async fn answer(client: &Client, request: http::Request<kube::client::Body>) -> (u16, String) {
    let response = tokio::time::timeout(LIMIT, client.send(request)).await.expect("in time").expect("an answer");
    let status = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.expect("the answer is whole");
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

async fn export(client: &Client, body: String) -> (u16, String) {
    let request = http::Request::post("/export").body(kube::client::Body::from(body.into_bytes()));
    answer(client, request.expect("a request")).await
}

async fn get(client: &Client, path: &str) -> (u16, String) {
    answer(client, http::Request::get(path).body(kube::client::Body::empty()).expect("a request")).await
}

/// A connection that has said this and no more; none if it is pushed out meanwhile.
async fn said(address: SocketAddr, words: &[u8]) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(words).await.ok().map(|()| stream)
}

/// The same, after a handshake, with the beginning of a request.
async fn half_a_request(address: SocketAddr, folder: &Path) -> Option<TlsStream<TcpStream>> {
    let pem = std::fs::read(folder.join("data/tls.crt")).expect("the certificate is there");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).expect("a certificate")).expect("it can be trusted");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("there are some")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = tls::SERVER_NAME.try_into().expect("it is a name");
    let stream = said(address, b"").await?;
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()?;
    stream.write_all(b"POST /export HTTP/1.1\r\nHost: x\r\nContent-Le").await.ok()?;
    stream.flush().await.ok().map(|()| stream)
}

/// A request for everything since the log began.
async fn everything(tracer: &Tracer) -> Value {
    tracer.ready().await;
    tracer.flush().await.expect("the store works");
    let (from, _) = tracer.reader().kept().expect("something is recorded");
    json!({"start_ts": from.as_micros() as f64 / 1e6, "end_ts": 4e9, "until_now": true, "format": "native"})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_line_names_who_was_refused_and_what_they_asked_for() {
    let (log, folder) = (LOG.clone(), tempfile::tempdir().unwrap());
    let server = Fake::start(review).await;
    let (tracer, address) = serving(&server, folder.path()).await;
    let mut request = everything(&tracer).await;
    for (token, status, caller_is) in [
        (Some("good"), 200, "authenticated=true caller=jane "),
        (Some("poor"), 403, "authenticated=true caller=joe "),
        (Some("made-up"), 401, "authenticated=false caller= "),
        (None, 401, "authenticated=false caller= "),
    ] {
        // The audit line is known again by its filter.
        let mark = format!("audited-{}", token.unwrap_or("nothing"));
        request["filters"] = json!({"excluded_namespaces": [mark.clone()], "excluded_labels": []});
        let (answered, body) = export(&caller(address, folder.path(), token), request.to_string()).await;
        assert_eq!(answered, status, "{body}");
        let lines = log.lines_with(&mark);
        let [line] = lines.as_slice() else { panic!("one audit line for {token:?}: {lines:?}") };
        for part in [caller_is, "start_ts", &format!("status={status}")] {
            assert!(line.contains(part), "`{part}` is not in {line}");
        }
        assert!(token.is_none_or(|token| !line.contains(&format!("Bearer {token}"))), "{line}");
    }
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_answered_413_however_large_it_is() {
    let (log, folder) = (LOG.clone(), tempfile::tempdir().unwrap());
    let server = Fake::start(review).await;
    let (tracer, address) = serving(&server, folder.path()).await;
    let client = caller(address, folder.path(), Some("good"));
    // Beyond what fits into the buffers of both ends: whoever answers without reading on cuts the connection.
    for megabytes in [1, 32] {
        let (status, body) = export(&client, format!("\"{}\"", "x".repeat(megabytes << 20))).await;
        assert_eq!(status, 413, "{body}");
        assert!(body.contains("larger than 262144 bytes"), "{body}");
    }
    assert!(!log.lines_with("status=413").is_empty(), "and it leaves an audit line");
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn during_an_export_a_thousand_slow_connections_keep_no_probe_from_its_answer_nor_the_export_from_its_end() {
    let _log = LOG.clone();
    let folder = tempfile::tempdir().unwrap();
    // The first lists are at 10 and later ones at 20, and no watch says anything: an export waits for ten seconds.
    let listed = Mutex::new(std::collections::BTreeSet::new());
    let server = Fake::start(move |asked| match asked.watch {
        None if !asked.path.ends_with("/v1") && !asked.path.contains("kube-system") && asked.body.is_null() => {
            Some(list(if listed.lock().unwrap().insert(asked.plural.clone()) { 10 } else { 20 }, &[]))
        }
        _ => review(asked),
    })
    .await;
    let (tracer, address) = serving(&server, folder.path()).await;
    let request = everything(&tracer).await;
    let exporting = caller(address, folder.path(), Some("good"));
    let exported = tokio::spawn(async move { export(&exporting, request.to_string()).await });
    tokio::time::sleep(Duration::from_millis(500)).await;

    // Half a request, the beginning of a handshake, and nothing at all.
    let (mut halves, mut others) = (Vec::new(), Vec::new());
    for number in 0..1_000 {
        match number % 3 {
            0 => halves.extend(half_a_request(address, folder.path()).await),
            1 => others.extend(said(address, b"\x16\x03\x01").await),
            _ => others.extend(said(address, b"").await),
        }
        if number % 200 == 199 {
            let kubelet = caller(address, folder.path(), None);
            assert_eq!(get(&kubelet, "/healthz").await.0, 200, "after {number} connections");
        }
    }
    let (status, body) = exported.await.expect("it is asked");
    assert_eq!(status, 200, "whoever is known is not pushed out: {body}");
    let kubelet = caller(address, folder.path(), None);
    assert_eq!(get(&kubelet, "/readyz").await.0, 200);
    drop((halves, others));
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_request_is_waited_for_for_seconds_and_not_for_minutes() {
    let _log = LOG.clone();
    let folder = tempfile::tempdir().unwrap();
    let server = Fake::start(review).await;
    let (tracer, address) = serving(&server, folder.path()).await;
    let mut half = half_a_request(address, folder.path()).await.expect("nobody pushes it out");
    let mut nothing = Vec::new();
    let ended = tokio::time::timeout(LIMIT, half.read_to_end(&mut nothing)).await;
    assert!(ended.is_ok() && nothing.is_empty(), "it is still waited for after {LIMIT:?}");
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_one_line_for_all_kinds_and_not_one_for_each_and_every_try() {
    let (log, folder) = (LOG.clone(), tempfile::tempdir().unwrap());
    let tries = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&tries);
    let server = Fake::start(move |asked| {
        (!asked.path.ends_with("/v1") && !asked.path.contains("kube-system")).then(|| {
            *counted.lock().unwrap() += 1;
            refuse(403, "not-yours-to-list")
        })
    })
    .await;
    let (tracer, _) = serving(&server, folder.path()).await;
    // Six kinds, each tried four times.
    let began = Instant::now();
    while *tries.lock().unwrap() < 24 || log.lines_with("not-yours-to-list").is_empty() {
        assert!(began.elapsed() < LIMIT, "nothing is said of a missing right");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let lines = log.lines_with("not-yours-to-list");
    let most = 1 + usize::try_from(began.elapsed().as_secs() / 60).expect("it is soon");
    assert!(lines.len() <= most, "{} lines for {} tries: {lines:#?}", lines.len(), *tries.lock().unwrap());
    for part in ["WARN", "the tracer lacks permissions", "apps/v1.Deployment", "v1.ConfigMap", "v1.Pod"] {
        assert!(lines[0].contains(part), "`{part}` is not in {}", lines[0]);
    }
    tracer.shutdown().await.unwrap();
}
