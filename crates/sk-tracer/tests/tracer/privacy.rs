//! A reviewer's question: what of my secrets is in the tracer's folder? They are planted wherever people put them, and
//! looked for in every byte, packed and unpacked.

use std::path::Path;

use serde_json::json;
use sk_testkit::Options;
use sk_testkit::control_plane::ControlPlane;

use crate::support::{self, apply, config, define, entries, export, now, record};

const CONFIG: &str = "
trackedObjects:
  v1.ConfigMap: {}
  v1.Secret: {}
  v1.Pod: {}
  apps/v1.Deployment: {}
  example.com/v1.Widget: {}
namespaces: {exclude: [hidden]}
keep: [/metadata/annotations/team]
";

/// Planted in values. Each has its place in its name.
const PLANTED: [&str; 9] = [
    "planted-env-value",
    "planted-argument",
    "planted-command",
    "planted-config-map",
    "planted-annotation",
    "planted-custom-resource",
    "planted-probe-path",
    "planted-in-hidden-namespace",
    // Base64 of "planted-secret!" without its padding.
    "cGxhbnRlZC1zZWNyZXQh",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_planted_secret_is_found_in_the_data_folder_or_in_an_export() {
    let cluster = ControlPlane::start(Options::api_only()).await.expect("a control plane starts");
    let client = cluster.client();
    let data = tempfile::tempdir().unwrap();
    let began_before = now();
    define(&client, "Widget", "widgets", "Namespaced").await;
    apply(&client, "namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "hidden"}}))
        .await;
    let tracer = record(&cluster, config(CONFIG), data.path()).await;
    let began = now();
    assert!(began > began_before);

    let metadata = |name: &str| {
        let annotations = json!({"note": "planted-annotation", "team": "kept-by-choice"});
        json!({"name": name, "namespace": "default", "annotations": annotations})
    };
    let pod = json!({"containers": [{
        "name": "main", "image": "nginx",
        "command": ["planted-command"], "args": ["--password=planted-argument"],
        "env": [{"name": "TOKEN", "value": "planted-env-value"}],
        "livenessProbe": {"httpGet": {"path": "/planted-probe-path", "port": 80}},
    }]});
    let template =
        json!({"metadata": {"labels": {"app": "web"}, "annotations": {"a": "planted-annotation"}}, "spec": pod});
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template});
    apply(
        &client,
        "deployments",
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("web"), "spec": spec}),
    )
    .await;
    apply(&client, "pods", json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata("bare"), "spec": pod})).await;
    let data_of = json!({"key": "planted-config-map"});
    apply(
        &client,
        "configmaps",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("settings"), "data": data_of}),
    )
    .await;
    let secret = json!({"key": "cGxhbnRlZC1zZWNyZXQh"});
    apply(
        &client,
        "secrets",
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata("password"), "data": secret}),
    )
    .await;
    let free = json!({"list": [{"text": "planted-custom-resource"}]});
    apply(
        &client,
        "widgets",
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata("w"), "spec": free}),
    )
    .await;
    let hidden = json!({"name": "planted-in-hidden-namespace", "namespace": "hidden"});
    apply(&client, "configmaps", json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": hidden})).await;

    let trace = export(&tracer, began).await;
    let story = support::story(&trace);
    for object in [
        "Deployment default/web",
        "Pod default/bare",
        "ConfigMap default/settings",
        "Secret default/password",
        "Widget default/w",
    ] {
        assert!(story.contains(&format!("+ {object}")), "{object} is recorded: {story:#?}");
    }
    let unpacked = format!("{:?}", entries(&tracer.reader()).iter().map(readable).collect::<Vec<_>>());
    let exported: String = trace.records().unwrap().map(|record| format!("{:?}", record.unwrap())).collect();
    let rows: String = trace.observations().unwrap().map(|row| format!("{:?}", row.unwrap())).collect();
    tracer.shutdown().await.unwrap();
    for planted in PLANTED {
        assert!(!unpacked.contains(planted), "{planted} is in the log");
        assert!(!exported.contains(planted) && !rows.contains(planted), "{planted} is in the trace");
        for file in files(data.path()) {
            let bytes = std::fs::read(&file).unwrap();
            let found = bytes.windows(planted.len()).any(|window| window == planted.as_bytes());
            assert!(!found, "{planted} is in {}", file.display());
        }
    }
    assert!(exported.contains("kept-by-choice"), "what the configuration keeps is kept, so this test can see");
    assert!(unpacked.contains("nginx"), "and so is what placement needs");
}

/// An entry with its bytes as text.
fn readable(entry: &sk_store::log::Entry) -> String {
    use sk_store::log::Fact;
    match &entry.fact {
        Fact::Applied(applied) => format!("{:?} {}", applied.object, String::from_utf8_lossy(&applied.body)),
        Fact::Node(name, Some(body)) => format!("{name} {}", String::from_utf8_lossy(body)),
        other => format!("{other:?}"),
    }
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder reads").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}
