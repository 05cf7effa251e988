//! Records over HTTPS: who may send and read them, and how long they stay.

use std::fs;

use http::{Method, Request, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::config::{AuthInfo, Config};
use kube::{Client, Error};
use serde_json::json;
use sk_api::simulation::{State, names};
use sk_ctrl::install::Options;
use sk_testkit::control_plane::eventually;

use crate::lab::{LIMIT, Lab};

/// The SHA-256 of `abc`.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// A client of the controller's endpoint that trusts what its ConfigMap says.
pub(crate) async fn caller(lab: &Lab, token: &str) -> Client {
    let maps: Api<ConfigMap> = Api::namespaced(lab.cluster.client(), names::NAMESPACE);
    let map = eventually("the controller's authority", LIMIT, || maps.get_opt(names::CONTROLLER_CA)).await.expect("it");
    let pem = map.data.expect("data")[names::CA_KEY].clone();
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {
            "server": lab.records_url(), "certificate-authority-data": k8s_openapi::ByteString(pem.into_bytes()),
        }}],
        "users": [{"name": "c", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    let file = lab.folder.path().join("caller.kubeconfig");
    fs::write(&file, kubeconfig.to_string()).expect("a kubeconfig");
    let read = kube::config::Kubeconfig::read_from(&file).expect("a kubeconfig");
    let mut config = Config::from_custom_kubeconfig(read, &Default::default()).await.expect("a configuration");
    if token.is_empty() {
        config.auth_info = AuthInfo::default();
    }
    Client::try_from(config).expect("a client")
}

pub(crate) async fn ask(client: &Client, method: Method, path: &str, body: &str) -> Result<String, StatusCode> {
    let request = Request::builder().method(method).uri(path).body(body.as_bytes().to_vec()).expect("a request");
    match client.request_text(request).await {
        Ok(text) => Ok(text),
        Err(Error::Api(status)) => Err(StatusCode::from_u16(status.code).expect("a status")),
        Err(error) => panic!("{path}: {error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_kept_for_those_who_may_read_them_as_long_as_their_simulation_is_there() {
    let lab = Lab::start(Options::default()).await;
    let controller = lab.controller().await;
    let go = lab.folder.path().join("go");
    lab.simulate("kept", "driver:waits", &json!({"driver": {"args": [go.to_string_lossy()]}})).await;
    lab.reaches("kept", State::Running).await;

    let audience = Some(names::CONTROLLER_AUDIENCE);
    let driver = caller(&lab, &lab.token(names::DRIVER_ACCOUNT, audience).await).await;
    let reader = caller(&lab, &lab.token(names::RECORD_READER, audience).await).await;
    let elsewhere = caller(&lab, &lab.token(names::RECORD_READER, None).await).await;
    let nobody = caller(&lab, "").await;

    ask(&driver, Method::PUT, "/records/kept/0", "a tar").await.expect("the driver may send its record");
    ask(&driver, Method::PUT, "/logs/kept", "it went well\n").await.expect("the driver may send its log");
    for (client, method, path, refused) in [
        (&nobody, Method::GET, "/records/kept/0", StatusCode::UNAUTHORIZED),
        (&elsewhere, Method::GET, "/records/kept/0", StatusCode::UNAUTHORIZED),
        (&driver, Method::GET, "/records/kept/0", StatusCode::FORBIDDEN),
        (&reader, Method::PUT, "/records/kept/0", StatusCode::FORBIDDEN),
        (&driver, Method::PUT, "/records/unknown/0", StatusCode::NOT_FOUND),
        (&reader, Method::GET, "/records/kept/7", StatusCode::NOT_FOUND),
        (&driver, Method::PUT, "/records/..%2Fkept/0", StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(ask(client, method.clone(), path, "x").await, Err(refused), "{method} {path}");
    }
    assert_eq!(ask(&reader, Method::GET, "/records/kept/0", "").await.as_deref(), Ok("a tar"));

    // Traces go the other way: people send them under their own hash, drivers fetch them.
    let trace = format!("/traces/{ABC}");
    assert_eq!(ask(&reader, Method::HEAD, &trace, "").await, Err(StatusCode::NOT_FOUND));
    assert_eq!(ask(&reader, Method::PUT, &trace, "abd").await, Err(StatusCode::BAD_REQUEST));
    assert_eq!(ask(&driver, Method::GET, &trace, "").await, Err(StatusCode::NOT_FOUND));
    ask(&reader, Method::PUT, &trace, "abc").await.expect("people may send traces");
    for (client, method, path, refused) in [
        (&nobody, Method::PUT, trace.as_str(), StatusCode::UNAUTHORIZED),
        (&driver, Method::PUT, &trace, StatusCode::FORBIDDEN),
        (&driver, Method::HEAD, &trace, StatusCode::FORBIDDEN),
        (&reader, Method::GET, &trace, StatusCode::FORBIDDEN),
        (&reader, Method::PUT, "/traces/..%2Fkept", StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(ask(client, method.clone(), path, "abc").await, Err(refused), "{method} {path}");
    }
    ask(&reader, Method::HEAD, &trace, "").await.expect("it is there");
    assert_eq!(ask(&driver, Method::GET, &trace, "").await.as_deref(), Ok("abc"));

    // They survive the controller, and the end of their simulation.
    controller.kill().await;
    let _controller = lab.controller().await;
    fs::write(&go, "").expect("a file");
    let status = lab.ends("kept").await;
    assert_eq!((status.state, status.record_path.as_deref()), (Some(State::Finished), Some("/records/kept")));
    assert_eq!(ask(&reader, Method::GET, "/records/kept", "").await.as_deref(), Ok("[0]"));
    assert_eq!(ask(&reader, Method::GET, "/logs/kept", "").await.as_deref(), Ok("it went well\n"));
    assert_eq!(ask(&driver, Method::GET, &trace, "").await.as_deref(), Ok("abc"));
    lab.delete("kept").await;
    assert_eq!(ask(&reader, Method::GET, "/logs/kept", "").await, Err(StatusCode::NOT_FOUND));
    assert!(!lab.folder.path().join("records/kept").exists());
    lab.assert_nothing_was_forbidden();
}
