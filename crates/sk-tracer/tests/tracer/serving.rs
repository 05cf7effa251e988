//! The tracer as it is installed: the manifests are applied for real, the tracer runs with exactly the rights they give
//! it, and exports go to whoever may have them and nobody else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use serde_json::{Value, json};
use sk_api::tracer::Config;
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_testkit::{Options, objects};
use sk_tracer::install::{self, CERTIFICATE, CERTIFICATE_KEY, EXPORTER, NAME};
use sk_tracer::{auth, tls};

use crate::support::{self, LIMIT, Process, answered, apply, config, define, now};

const CONFIG: &str = "
trackedObjects:
  v1.ConfigMap: {}
  v1.Namespace: {}
  apps/v1.Deployment: {}
  batch/v1.CronJob: {}
  networking.k8s.io/v1.NetworkPolicy: {}
  example.com/v1.Mouse: {}
";

/// Applies a manifest as `skctl install` does.
async fn install(client: &Client, manifest: &Value) {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (version, kind) = (text("/apiVersion"), text("/kind"));
    let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
    let wanted = GroupVersionKind::gvk(group, version, &kind);
    let (resource, capabilities) = discovery::pinned_kind(client, &wanted).await.expect("Kubernetes serves the kind");
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), &text("/metadata/namespace"), &resource),
    };
    let params =
        PatchParams { field_validation: Some(kube::api::ValidationDirective::Strict), ..PatchParams::apply("skctl") };
    let applied = api.patch(&text("/metadata/name"), &params, &Patch::Apply(manifest)).await;
    applied.unwrap_or_else(|error| panic!("{kind} {} is refused: {error}", text("/metadata/name")));
}

/// A token of a ServiceAccount, for an audience or for the API server itself.
async fn token(client: &Client, account: &str, audience: Option<&str>) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), install::NAMESPACE);
    let audiences = audience.map(|audience| vec![audience.to_owned()]);
    let spec = TokenRequestSpec { audiences, expiration_seconds: Some(600), bound_object_ref: None };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let made = accounts.create_token_request(account, &PostParams::default(), &request).await;
    made.expect("the account may have a token").status.and_then(|status| status.token).expect("a token is made")
}

/// A kubeconfig like the administrator's, but for somebody with this token.
fn kubeconfig_for(token: &str, admin: &Path, folder: &Path) -> PathBuf {
    let text = std::fs::read_to_string(admin).expect("the kubeconfig is there");
    let mut kubeconfig: Value = serde_json::from_str(&text).expect("it is JSON");
    kubeconfig["users"][0]["user"] = json!({"token": token});
    let path = folder.join("tracer.kubeconfig");
    std::fs::write(&path, kubeconfig.to_string()).expect("the folder can be written");
    path
}

/// Somebody who calls the tracer over TLS, trusting only the certificate that it has published.
struct Caller {
    client: Client,
}

impl Caller {
    async fn new(cluster: &Client, port: u16, token: Option<String>) -> Self {
        let published: Api<ConfigMap> = Api::namespaced(cluster.clone(), install::NAMESPACE);
        let certificate = eventually("the certificate to be published", LIMIT, || async {
            Ok(published.get(CERTIFICATE).await?.data.and_then(|mut data| data.remove(CERTIFICATE_KEY)))
        });
        let certificate = certificate.await.expect("the tracer publishes it");
        let mut config = kube::Config::new(format!("https://127.0.0.1:{port}").parse().expect("a URL"));
        config.root_cert = Some(vec![der(&certificate)]);
        config.tls_server_name = Some(tls::SERVER_NAME.to_owned());
        config.auth_info.token = token.map(Into::into);
        Self { client: Client::try_from(config).expect("a client can be made") }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let request = http::Request::get(path).body(kube::client::Body::empty()).expect("a request");
        answered(self.client.send(request).await.expect("the tracer answers")).await.expect("it answers whole")
    }

    /// What happens in an export for which every watch has caught up, which on a busy machine may take a second try.
    async fn story(&self, request: &Value) -> Vec<String> {
        eventually("an export that is behind in nothing", LIMIT, || async {
            let (status, bytes, behind) = self.export_and_behind(request).await;
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&bytes));
            let trace = sk_store::trace::from_bytes("exported", bytes).expect("it is a trace");
            Ok((!behind).then(|| support::story(&trace)))
        })
        .await
        .expect("the API server says how far it is")
    }

    async fn export(&self, request: &Value) -> (u16, Vec<u8>) {
        let (status, bytes, _) = self.export_and_behind(request).await;
        (status, bytes)
    }

    async fn export_and_behind(&self, request: &Value) -> (u16, Vec<u8>, bool) {
        let request = http::Request::post("/export").body(kube::client::Body::from(request.to_string().into_bytes()));
        let answer = self.client.send(request.expect("a request")).await.expect("the tracer answers");
        let status = answer.status().as_u16();
        let length = answer.headers().get(http::header::CONTENT_LENGTH).cloned();
        let behind = answer.headers().contains_key("x-simkube-behind");
        let bytes = answer.into_body().collect_bytes().await.expect("the answer is whole").to_vec();
        assert_eq!(length.expect("the length is said").to_str().expect("a number"), bytes.len().to_string());
        (status, bytes, behind)
    }
}

/// The first certificate in a PEM text.
fn der(pem: &str) -> Vec<u8> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("it is a certificate").to_vec()
}

fn seconds(time: sk_core::SimTime) -> f64 {
    time.as_micros() as f64 / 1e6
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installed_tracer_has_the_rights_it_needs_and_exports_to_those_who_may() {
    let cluster = ControlPlane::start(Options::default()).await.expect("a control plane starts");
    let client = cluster.client();
    let folder = tempfile::tempdir().unwrap();
    define(&client, "Mouse", "mice", "Namespaced").await;

    // Applied twice: the second time changes nothing and is refused by nobody.
    let tracked: Config = config(CONFIG);
    let names = install::names(&client, &tracked).await.unwrap();
    let manifests = install::manifests(&tracked, &install::Options::default(), &names);
    for manifest in manifests.iter().chain(&manifests) {
        install(&client, manifest).await;
    }
    pod_passes_restricted_enforcement(&client, &manifests).await;
    until_rights_are_known(&client, &manifests).await;

    let own = token(&client, NAME, None).await;
    let kubeconfig = kubeconfig_for(&own, &cluster.kubeconfig(), folder.path());
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, CONFIG).unwrap();
    let publish = format!("--publish-certificate={}/{CERTIFICATE}", install::NAMESPACE);
    let tracer =
        Process::start(&file, &folder.path().join("data"), &kubeconfig, &[&publish, "-v", "info,sk_tracer=debug"]);
    let (port, shown) = (tracer.port().await, token(&client, EXPORTER, Some(auth::AUDIENCE)).await);
    let may = Caller::new(&client, port, Some(shown.clone())).await;
    eventually("the tracer to be ready", LIMIT, || async { Ok((may.get("/readyz").await.0 == 200).then_some(())) })
        .await
        .unwrap();
    let began = now();

    // One object of each kind while it records, exported while it goes on recording.
    cluster.create(&objects::deployment().name("web").replicas(0)).await.unwrap();
    cluster.create(&objects::cron_job().name("nightly").set("/spec/schedule", "0 0 1 1 *")).await.unwrap();
    let of = |api_version: &str, kind: &str, name: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"}});
    let mut policy = of("networking.k8s.io/v1", "NetworkPolicy", "closed");
    policy["spec"] = json!({"podSelector": {}});
    apply(&client, "networkpolicies", policy).await;
    apply(&client, "configmaps", of("v1", "ConfigMap", "settings")).await;
    apply(&client, "mice", of("example.com/v1", "Mouse", "jerry")).await;
    cluster.create(&objects::namespace().name("new")).await.unwrap();
    let window =
        |from: f64, to: f64| json!({"start_ts": from, "end_ts": to, "format": "native", "export_path": "x.sktrace"});
    let all = window(seconds(began), seconds(now()) + 60.0);
    let expected = [
        "Deployment default/web",
        "CronJob default/nightly",
        "NetworkPolicy default/closed",
        "ConfigMap default/settings",
        "Mouse default/jerry",
        "Namespace new",
    ];
    let story = may.story(&all).await;
    for object in expected {
        assert!(story.contains(&format!("+ {object}")), "{object} is not in {story:#?}");
    }
    let words = tracer.words();
    assert!(!words.contains("forbidden"), "the manifests give every right that is needed:\n{words}");

    // v2 is what the request means unless it says otherwise.
    let (status, bytes) = may.export(&json!({"start_ts": seconds(began), "end_ts": seconds(now())})).await;
    assert_eq!((status, sk_store::trace::from_bytes("v2", bytes).unwrap().format().name()), (200, "v2"));

    leaves_an_audit_line(&may, &tracer, seconds(began)).await;
    let mut tokens = refuses_strangers(&client, port, &all).await;
    refuses_nonsense(&may, began).await;

    let metrics = may.get("/metrics").await.1;
    for name in [
        "simkube_tracer_events_total{kind=\"v1.ConfigMap\"}",
        "simkube_tracer_recording 1",
        "simkube_tracer_export_bytes_total",
        "simkube_tracer_exports_total{code=\"403\"} 1",
        "simkube_tracer_log_bytes",
        "simkube_tracer_lag_seconds",
    ] {
        assert!(metrics.contains(name), "{name} is not in\n{metrics}");
    }
    assert_eq!(may.get("/healthz").await.0, 200);
    assert_eq!(may.get("/nothing").await.0, 404);
    let words = tracer.words();
    assert!(words.contains("system:serviceaccount:simkube:simkube-exporter"), "an audit line says who:\n{words}");
    tokens.extend([own, shown]);
    for token in tokens {
        assert!(!words.contains(&token), "no token is ever written down, the tracer's own or a caller's");
    }
    assert!(!words.contains("hidden-in-a-body"), "and nothing of a request that nobody understands");
    assert!(tracer.stop().success());
}

/// The Deployment's pod is taken by a namespace that enforces `restricted`, as the manifests make theirs.
async fn pod_passes_restricted_enforcement(client: &Client, manifests: &[Value]) {
    let deployment = manifests.iter().find(|manifest| manifest["kind"] == "Deployment").expect("there is one");
    let mut pod = deployment["spec"]["template"].clone();
    pod["metadata"]["name"] = json!("try");
    let pod: Pod = serde_json::from_value(pod).expect("the template is a pod's");
    let pods: Api<Pod> = Api::namespaced(client.clone(), install::NAMESPACE);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    eventually("the pod to be taken", LIMIT, || async { pods.create(&dry, &pod).await.map(Some) })
        .await
        .expect("the pod is as restricted as its namespace");
    let mut lax = pod;
    lax.spec.as_mut().expect("it has one").containers[0].security_context = None;
    let refused = pods.create(&dry, &lax).await.expect_err("the namespace enforces what it says").to_string();
    assert!(refused.contains("restricted"), "{refused}");
}

/// Waits until the API server grants what the manifests' roles say: it learns of roles a moment after it has taken them.
async fn until_rights_are_known(client: &Client, manifests: &[Value]) {
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let of_people = |role: &Value| role["kind"] == "Role" && role["metadata"]["name"] == install::EXPORTER_ROLE;
    for role in manifests.iter().filter(|manifest| manifest["rules"].is_array() && !of_people(manifest)) {
        let account = if role["metadata"]["name"] == install::EXPORTER_ROLE { EXPORTER } else { NAME };
        for rule in role["rules"].as_array().expect("it is a list") {
            let attributes = ResourceAttributes {
                group: text(&rule["apiGroups"][0]),
                resource: text(&rule["resources"][0]),
                verb: text(&rule["verbs"][0]),
                name: text(&rule["resourceNames"][0]),
                namespace: text(&role["metadata"]["namespace"]),
                ..ResourceAttributes::default()
            };
            let user = Some(format!("system:serviceaccount:{}:{account}", install::NAMESPACE));
            let spec = SubjectAccessReviewSpec { user, resource_attributes: Some(attributes), ..Default::default() };
            let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
            eventually(&format!("{account} to have {rule}"), LIMIT, || async {
                let answer = reviews.create(&PostParams::default(), &review).await?;
                Ok(answer.status.is_some_and(|status| status.allowed).then_some(()))
            })
            .await
            .expect("the manifests give the right");
        }
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Who, which window, which filters, how many bytes.
async fn leaves_an_audit_line(may: &Caller, tracer: &Process, from: f64) {
    let filters = json!({"excluded_namespaces": ["left-out-by-the-caller"], "excluded_labels": []});
    let (status, bytes) = may.export(&json!({"start_ts": from, "end_ts": 4e9, "filters": filters})).await;
    assert_eq!(status, 200);
    let words = tracer.words();
    let line = words.lines().find(|line| line.contains("sk_tracer::audit") && line.contains("left-out-by-the-caller"));
    let line = line.unwrap_or_else(|| panic!("there is no audit line in\n{words}"));
    let (window, size) = (format!("start_ts\\\":{}", json!(from)), format!("bytes={} ", bytes.len()));
    for part in ["serviceaccount:simkube:simkube-exporter", &window, "end_ts", &size, "status=200"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
}

/// The tokens that were shown.
async fn refuses_strangers(cluster: &Client, port: u16, request: &Value) -> Vec<String> {
    let status = async |token: Option<String>| Caller::new(cluster, port, token).await.export(request).await;
    let (code, body) = status(None).await;
    assert_eq!(code, 401, "{}", String::from_utf8_lossy(&body));
    assert!(String::from_utf8_lossy(&body).contains("kubectl create token"), "it says what to do");
    let rubbish = "rubbish-that-is-no-token".to_owned();
    assert_eq!(status(Some(rubbish.clone())).await.0, 401);
    let for_somebody_else = token(cluster, EXPORTER, None).await;
    assert_eq!(
        status(Some(for_somebody_else.clone())).await.0,
        401,
        "a token for the API server is none for the tracer"
    );
    let without_the_right = token(cluster, NAME, Some(auth::AUDIENCE)).await;
    let (code, body) = status(Some(without_the_right.clone())).await;
    assert_eq!(code, 403, "{}", String::from_utf8_lossy(&body));
    assert!(String::from_utf8_lossy(&body).contains(install::EXPORTER_ROLE), "it says what is missing");
    vec![rubbish, for_somebody_else, without_the_right]
}

async fn refuses_nonsense(may: &Caller, began: sk_core::SimTime) {
    let (from, to) = (seconds(began), seconds(now()));
    let wrong = [
        (json!({"start_ts": to, "end_ts": from}), 400, "after start_ts"),
        (json!({"start_ts": 10, "end_ts": 20}), 416, "history is kept from"),
        (json!({"start_ts": from, "end_ts": to, "export_path": "s3://elsewhere/x"}), 400, "exportTo"),
        (json!({"start_ts": from, "end_ts": to, "filters": {"excluded_labels": ["a=b"]}}), 400, "excluded_labels[0]"),
        (json!({"start_ts": from, "end_ts": to, "format": "xml"}), 400, "native or v2"),
        (json!(["no", "request"]), 400, "not an export request"),
        (json!({"start_ts": from, "end_ts": to, "hidden-in-a-body": 1}), 400, "not an export request"),
        (json!("x".repeat(300 << 10)), 413, ""),
    ];
    let mut codes = BTreeSet::new();
    for (request, code, reason) in wrong {
        let (status, body) = may.export(&request).await;
        let body = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(status, code, "{body}");
        let error = serde_json::from_str::<Value>(&body).expect("errors are JSON")["error"].as_str().map(str::to_owned);
        assert!(error.is_some_and(|error| error.contains(reason)), "{body}");
        codes.insert(status);
    }
    assert_eq!(codes.len(), 3);
}

#[tokio::test]
async fn a_tracer_that_believes_everybody_is_refused_an_address_that_everybody_can_reach() {
    let folder = tempfile::tempdir().unwrap();
    let (file, kubeconfig) = (folder.path().join("config.yaml"), folder.path().join("kubeconfig"));
    std::fs::write(&file, "trackedObjects: {v1.ConfigMap: {}}\n").unwrap();
    let nobody = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "x", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    });
    std::fs::write(&kubeconfig, nobody.to_string()).unwrap();
    let mut tracer = Process::start(&file, &folder.path().join("data"), &kubeconfig, &["--insecure", "--bind=0.0.0.0"]);
    eventually("the tracer to refuse", LIMIT, || std::future::ready(Ok(tracer.ended().then_some(())))).await.unwrap();
    assert!(tracer.words().contains("only for a loopback address"), "{}", tracer.words());
}
