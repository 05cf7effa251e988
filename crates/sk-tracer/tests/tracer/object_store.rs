//! The tracer writes to an object store by itself: to the places that its configuration names, with its own credentials,
//! and nowhere else.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::{Value, json};
use sk_store::trace;

use crate::fake::{Fake, config_map, list};
use crate::s3_server::serve_s3;
use crate::support::{PROGRAM, Process, export_answer, post, story, until_ready};

const CONFIG: &str = "trackedObjects: {v1.ConfigMap: {}}\nexportTo: [s3://traces/prod/]\n";

/// The tracer's program, which reaches object stores only through its environment.
fn with_credentials(server: SocketAddr, secret: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env("AWS_ENDPOINT", format!("http://{server}")).env("AWS_ALLOW_HTTP", "true");
    command.env("AWS_REGION", "us-east-1").env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", secret);
    command
}

async fn export(tracer: &Process, place: &str) -> (u16, String) {
    let request = json!({"start_ts": 0, "end_ts": 4e9, "format": "native", "export_path": place});
    let (status, body) = post(tracer.port().await, &request).await.expect("the tracer answers");
    let reason = |body: Value| body["error"].as_str().map(str::to_owned);
    let said = String::from_utf8(body).expect("no trace comes back");
    (status, serde_json::from_str(&said).ok().and_then(reason).unwrap_or(said))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_goes_to_an_allowed_place_in_an_object_store_and_to_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let buckets = folder.path().join("buckets");
    std::fs::create_dir_all(buckets.join("traces")).unwrap();
    let store = serve_s3(&buckets);
    let server = Fake::start(|asked| {
        (asked.path == "/api/v1/configmaps" && asked.watch.is_none()).then(|| list(1, &[config_map("a", 1, "x")]))
    })
    .await;
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, CONFIG).unwrap();
    let kubeconfig = server.kubeconfig(folder.path(), "t");
    let start = |secret: &str| {
        let data = folder.path().join(format!("data-{secret}"));
        Process::start_with(with_credentials(store, secret), &config, &data, &kubeconfig, &["--insecure"])
    };
    let tracer = start("secret");
    until_ready(&tracer).await;

    assert_eq!(export(&tracer, "s3://traces/prod/eu/week.sktrace").await, (200, String::new()));
    let written = trace::open(&buckets.join("traces/prod/eu/week.sktrace")).unwrap();
    assert_eq!(story(&written), ["+ ConfigMap default/a"]);

    // Whoever reads the trace there is told as much as who gets it as the answer.
    let port = tracer.port().await;
    for place in ["s3://traces/prod/eu/day.sktrace", ""] {
        let request = json!({"start_ts": 0, "end_ts": 4e9, "format": "native", "export_path": place});
        let answer = export_answer(port, &request).await.expect("the tracer answers");
        assert!(answer.headers().contains_key("x-simkube-gaps"), "{place}: it was not there in 1970: {answer:?}");
    }

    let (status, reason) = export(&tracer, "s3://traces/other/week.sktrace").await;
    assert!(status == 400 && reason.contains("exportTo"), "{status}: {reason}");
    assert!(!buckets.join("traces/other").exists(), "nothing is there");
    assert!(tracer.stop().success());

    let stranger = start("wrong");
    until_ready(&stranger).await;
    let (status, reason) = export(&stranger, "s3://traces/prod/month.sktrace").await;
    assert!(status == 502 && reason.contains("s3://traces/prod/month.sktrace"), "{status}: {reason}");
    assert!(!buckets.join("traces/prod/month.sktrace").exists(), "nothing is there");
    assert!(stranger.stop().success());
}
