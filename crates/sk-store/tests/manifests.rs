//! Plain manifests as a trace.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use std::fmt::Write as _;
use std::fs;

use serde_json::json;
use sk_core::SimTime;
use sk_store::trace::{Change, Format, Trace, convert, from_bytes, open};
use support::story;

const CHART: &str = "
# Source: chart/templates/web.yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  template: &template
    spec: {volumes: [{configMap: {name: c, defaultMode: 0644}}]}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {on: \"1\"}}
---
{\"apiVersion\": \"apps/v1\", \"kind\": \"DeploymentList\", \"items\": [{\"metadata\": {\"name\": \"listed\"}}]}
";

fn objects(trace: &Trace) -> Vec<serde_json::Value> {
    let records = trace.records().unwrap().map(Result::unwrap);
    records
        .map(|record| match record.change {
            Change::Apply(object) => object.into_value(),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn everything_is_created_at_time_0_in_order() {
    let trace = support::open(CHART);
    assert_eq!(trace.format(), Format::Manifests);
    assert_eq!(trace.span(), Some((SimTime::EPOCH, SimTime::EPOCH)));
    assert_eq!(
        story(&trace),
        [
            "1970-01-01T00:00:00Z apply Deployment default/web",
            "1970-01-01T00:00:00Z apply Namespace shop",
            "1970-01-01T00:00:00Z apply ConfigMap shop/c",
            "1970-01-01T00:00:00Z apply Deployment default/listed",
        ]
    );
    let web = &objects(&trace)[0];
    assert_eq!(web.pointer("/spec/template/spec/volumes/0/configMap/defaultMode"), Some(&json!(0o644)));
    assert_eq!(trace.config().tracked().len(), 3, "what is there is what was tracked");
    let (native, _) = convert(&trace, Format::Native, Vec::new()).unwrap();
    assert_eq!(story(&support::open(native)), story(&trace));
}

#[test]
fn a_custom_resource_lives_where_its_definition_says() {
    let trace = support::open(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: robots.example.com}
spec: {group: example.com, scope: Cluster, names: {kind: Robot}}
---
{apiVersion: example.com/v1, kind: Robot, metadata: {name: r}}
---
{apiVersion: example.com/v1, kind: Arm, metadata: {name: a}}
",
    );
    assert!(story(&trace)[1].ends_with("apply Robot r"));
    assert!(story(&trace)[2].ends_with("apply Arm default/a"), "a kind that nobody defines is taken as namespaced");
}

#[test]
fn a_folder_is_read_in_the_order_of_its_paths() {
    let folder = tempfile::tempdir().unwrap();
    let object = |name: &str| format!("{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}}}");
    fs::create_dir(folder.path().join("b")).unwrap();
    fs::write(folder.path().join("b/1.yml"), object("second")).unwrap();
    fs::write(folder.path().join("a.yaml"), object("first")).unwrap();
    fs::write(
        folder.path().join("c.json"),
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"third\"}}",
    )
    .unwrap();
    fs::write(folder.path().join("README.md"), "not a manifest").unwrap();
    fs::write(folder.path().join(".hidden.yaml"), "neither").unwrap();
    let trace = open(folder.path()).unwrap();
    let names: Vec<_> = objects(&trace).iter().map(|object| object["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["first", "second", "third"]);
    let before = trace.digest().unwrap();
    fs::rename(folder.path().join("b/1.yml"), folder.path().join("b/2.yml")).unwrap();
    assert_ne!(open(folder.path()).unwrap().digest().unwrap(), before);
}

#[test]
fn what_is_no_object_is_refused_by_document_and_line() {
    let refuse = |text: &str| from_bytes("x.yaml", text.to_owned()).unwrap_err().to_string();
    for (text, expected) in [
        ("# a comment\n\nkind: Pod\nmetadata: {name: a}\n", "x.yaml, document 1, line 3: "),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\napiVersion: v1\nkind: Pod\n", "document 2, line 3"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n", "`metadata.name`"),
        ("just words\n", "it is a text"),
        ("a: [1\nb: 2\n", "document 1, line "),
        ("a: 1\na: 2\n", "occurs twice"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {x: .nan}\n", "document 1"),
    ] {
        let error = refuse(text);
        assert!(error.contains(expected) && error.contains("correct"), "{text}: {error}");
    }
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}", level - 1);
        writeln!(bomb, "a{level}: &a{level} [{}]", [below.as_str(); 10].join(", ")).unwrap();
    }
    let error = from_bytes("bomb.yaml", bomb).unwrap_err().to_string();
    assert!(error.contains("bomb.yaml, document 1"), "{error}");
    let deep = "[".repeat(100_000);
    assert!(from_bytes("deep.yaml", deep).is_err());
}
