//! Does every field survive? The examples of all types that Kubernetes' own API module ships (`k8s.io/api/testdata`) go into
//! the server and come out equal.
//!
//! An example fills every field of its type with an invented word or number, so that a field that nobody keeps is missing in
//! what comes out. They are not valid objects: a server that keeps all rules would refuse them, so the server here is
//! the one of a replay, which stores what comes. Where a typed body reads a word of a fixed set, the example gets one of the
//! set (`WORDS`); what a server allots itself is compared where objects are read and written, and not where they are created
//! (`ALLOTTED`); what is known not to come back is named with its reason (`LOST`, `ADMITTED`, `REFUSED`).

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test reads files and asks Go where they are"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sk_apiserver::rest::{Call, Method};
use sk_apiserver::{ApiServer, Object, Request};
use sk_core::registry::{self, Scope};
use sk_core::{Gvk, SimTime};

const NOW: SimTime = SimTime::from_secs(1_800_000_000);
const UID: &str = "6f1b5c7e-93a4-4c55-9a3b-0d4f86a6a001";
const VERSION: &str = "7";

/// Fields of metadata that a new object gets from the server, whatever its client sent.
const ALLOTTED: [&str; 7] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
];

/// Words that are read, by the ends of their paths, where the example's own word is none that an object may have.
const WORDS: &[(&str, &str)] = &[
    ("/tolerations/operator", "Exists"),
    ("/tolerations/effect", "NoSchedule"),
    ("/taints/effect", "NoSchedule"),
    ("/conditions/status", "True"),
    ("/concurrencyPolicy", "Forbid"),
    ("/podFailurePolicy/rules/action", "Ignore"),
    ("/podFailurePolicy/rules/onExitCodes/operator", "In"),
    ("/onPodConditions/status", "True"),
    ("/matchExpressions/operator", "NotIn"),
    ("/completionMode", "Indexed"),
    ("/podReplacementPolicy", "Failed"),
    ("/podManagementPolicy", "Parallel"),
    ("/updateStrategy/type", "RollingUpdate"),
    ("/strategy/type", "RollingUpdate"),
    ("/whenDeleted", "Delete"),
    ("/whenScaled", "Delete"),
    ("/succeededIndexes", "1-3"),
    ("/uncountedTerminatedPods/succeeded", UID),
    ("/uncountedTerminatedPods/failed", UID),
];

/// The same for single kinds.
const WORDS_OF: &[(&str, &str, &str)] =
    &[("Pod", "/status/phase", "Running"), ("Namespace", "/status/phase", "Terminating")];

/// Selectors must select the labels of the template that stands beside them.
const SELECTORS: [(&str, &str); 3] = [
    ("/spec/selector/matchLabels", "/spec/template/metadata/labels"),
    ("/spec/jobTemplate/spec/selector/matchLabels", "/spec/jobTemplate/spec/template/metadata/labels"),
    ("/spec/selector", "/spec/template/metadata/labels"),
];

/// What does not come back, by kind and the beginning of the path, and why.
const LOST: &[(&str, &str, &str)] =
    &[("core.v1.Namespace", "/metadata/deletionGracePeriodSeconds", "a namespace ends when it is empty")];

/// What a new object gets that its client did not send, by kind and the beginning of the path, and from whom.
const ADMITTED: &[(&str, &str, &str)] = &[
    ("core.v1.Secret", "/stringData", "a server writes it into `data`"),
    ("core.v1.Secret", "/data/stringDataKey", "there it is"),
    ("core.v1.Pod", "/spec/tolerations", "default tolerations"),
    ("core.v1.Pod", "/spec/containers/resources/requests/limitsKey", "requests default to limits"),
    ("core.v1.Pod", "/spec/initContainers/resources/requests/limitsKey", "requests default to limits"),
    ("core.v1.Namespace", "/spec/finalizers", "every new namespace has the server's own"),
];

/// Examples whose fields exclude each other, so that even a replay's server refuses them: what its controller could not bear.
/// They are compared where objects are read and written.
const REFUSED: &[(&str, &str)] = &[
    ("batch.v1.CronJob", "spec.schedule: Invalid value"),
    ("batch.v1.Job", "must be less than or equal to completions"),
    // A real server binds to nodes alone, too.
    ("core.v1.Binding", "target.kind: Unsupported value"),
];

/// The folder of the examples, in Go's module cache; fetched if it is not there.
fn examples() -> PathBuf {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/control-plane");
    let asked = Command::new("go").args(["mod", "download", "-json", "k8s.io/api"]).current_dir(module).output();
    let asked = asked.expect("Go is installed: docs/testing.md says what this tier needs");
    assert!(asked.status.success(), "go mod download: {}", String::from_utf8_lossy(&asked.stderr));
    let answer: Value = serde_json::from_slice(&asked.stdout).unwrap();
    Path::new(answer["Dir"].as_str().expect("a module that was fetched has a folder")).join("testdata/HEAD")
}

/// An example by the name of its file, made readable.
fn read_all() -> BTreeMap<String, Value> {
    let files = fs::read_dir(examples()).unwrap().map(|entry| entry.unwrap().path());
    let json = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let read = |path: PathBuf| {
        let mut example: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        make_readable(&mut example, "");
        let kind = example["kind"].clone();
        for (_, pointer, word) in WORDS_OF.iter().filter(|(of, _, _)| kind == *of) {
            *example.pointer_mut(pointer).unwrap() = (*word).into();
        }
        if let Some(metadata) = example["metadata"].as_object_mut().filter(|metadata| metadata.contains_key("name")) {
            metadata.insert("name".to_owned(), "name".into());
            metadata.insert("namespace".to_owned(), "namespace".into());
        }
        for (selector, labels) in SELECTORS {
            let labels = example.pointer(labels).cloned();
            if let (Some(selector), Some(labels)) = (example.pointer_mut(selector), labels)
                && selector.as_object().is_some_and(|selector| !selector.contains_key("matchLabels"))
            {
                *selector = labels;
            }
        }
        if is_object(&example) && registry::scope(&gvk_of(&example)) == Some(Scope::Cluster) {
            example["metadata"].as_object_mut().unwrap().remove("namespace");
        }
        (path.file_stem().unwrap().to_string_lossy().into_owned(), example)
    };
    json.map(read).collect()
}

fn make_readable(value: &mut Value, path: &str) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                make_readable(field, &format!("{path}/{name}"));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| make_readable(item, path)),
        Value::String(text) if text == "uidValue" => *text = UID.to_owned(),
        Value::String(text) if text == "resourceVersionValue" => *text = VERSION.to_owned(),
        Value::String(text) => {
            if let Some((_, word)) = WORDS.iter().find(|(end, _)| path.ends_with(end)) {
                *text = (*word).to_owned();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Every path at which the two differ.
fn differences(path: &str, sent: &Value, came: &Value, all: &mut Vec<String>) {
    match (sent, came) {
        (Value::Object(sent), Value::Object(came)) => {
            let names: BTreeSet<_> = sent.keys().chain(came.keys()).collect();
            for name in names {
                let of = |fields: &serde_json::Map<String, Value>| fields.get(name).cloned().unwrap_or(Value::Null);
                differences(&format!("{path}/{name}"), &of(sent), &of(came), all);
            }
        }
        (Value::Array(sent), Value::Array(came)) if sent.len() == came.len() => {
            for (sent, came) in sent.iter().zip(came) {
                differences(path, sent, came, all);
            }
        }
        (sent, came) if sent == came => {}
        (sent, came) => all.push(format!("{path}: {sent} came back as {came}")),
    }
}

/// What is wrong with what came back, but for what is `known`.
fn lost(name: &str, sent: &Value, came: &Value, known: &[(&str, &str, &str)]) -> Vec<String> {
    let mut all = Vec::new();
    differences("", sent, came, &mut all);
    all.retain(|one| !known.iter().any(|(kind, path, _)| *kind == name && one.starts_with(path)));
    all.into_iter().map(|one| format!("{name}: {one}")).collect()
}

fn is_object(example: &Value) -> bool {
    example["metadata"]["name"].is_string()
}

fn gvk_of(example: &Value) -> Gvk {
    let text = |name: &str| example[name].as_str().unwrap();
    Gvk::from_api_version(text("apiVersion"), text("kind")).unwrap()
}

fn server() -> ApiServer {
    let mut server = ApiServer::new(1);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "namespace"}});
    server.handle(NOW, Request::create(Object::from_json(namespace).unwrap())).unwrap();
    server
}

fn without_allotted(mut value: Value) -> Value {
    let metadata = value["metadata"].as_object_mut().unwrap();
    metadata.retain(|name, _| !ALLOTTED.contains(&name.as_str()));
    value
}

#[test]
fn every_example_is_read_and_written_without_a_loss() {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for (name, example) in read_all().into_iter().filter(|(_, example)| is_object(example)) {
        compared += 1;
        match Object::from_json(example.clone()) {
            Ok(object) => wrong.extend(lost(&name, &example, &object.to_json(), LOST)),
            Err(error) => wrong.push(format!("{name}: {}", error.message)),
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared >= 160, "only {compared} examples were compared");
}

/// Creates an example and writes its status, as a client does over HTTP; what is then read.
fn through_the_api(example: &Value) -> Result<Value, String> {
    let (mut server, gvk) = (server(), gvk_of(example));
    let info = registry::find(&gvk).expect("the caller looks only at kinds that are served");
    let group = if gvk.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", gvk.group) };
    let within = if info.scope == Scope::Namespaced { "/namespaces/namespace" } else { "" };
    let many = format!("{group}/{}{within}/{}", gvk.version, info.plural);
    let one = format!("{many}/{}", example["metadata"]["name"].as_str().unwrap());
    let sent = without_allotted(example.clone());
    let mut call = |method, path: String, body: &Value| {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let call = Call { method, path, content_type: "application/json".to_owned(), body };
        let reply = server.serve(NOW, &call);
        if reply.code < 300 { Ok(reply.body) } else { Err(format!("{} {}", reply.code, reply.body["message"])) }
    };
    let created = call(Method::Post, many, &sent)?;
    if sent.get("status").is_some() && info.has_subresource("status") {
        let mut status = sent.clone();
        // Some kinds are not updated without it.
        status["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
        call(Method::Put, format!("{one}/status"), &status)?;
    }
    call(Method::Get, one, &Value::Null)
}

#[test]
fn every_example_of_a_served_kind_comes_out_of_the_api_as_it_went_in() {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    let known = [LOST, ADMITTED].concat();
    let is_served = |example: &Value| {
        let gvk = gvk_of(example);
        registry::find(&gvk).is_some_and(|info| info.versions.contains(&gvk.version.as_str()))
    };
    for (name, example) in read_all().into_iter().filter(|(_, example)| is_object(example) && is_served(example)) {
        compared += 1;
        match through_the_api(&example) {
            Ok(came) => wrong.extend(lost(&name, &without_allotted(example), &without_allotted(came), &known)),
            Err(error) if REFUSED.iter().any(|(kind, why)| *kind == name && error.contains(why)) => {}
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared >= 90, "only {compared} examples were compared");
}
