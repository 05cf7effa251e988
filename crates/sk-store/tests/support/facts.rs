//! Facts as a tracer would make them, for tests of the log.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use serde_json::{Value, json};
use sk_core::{Gvk, ObjectKey, ObjectRef, OwnerReference, SimTime, StableHash};
use sk_store::log::{Applied, Attribution, Deleted, Entry, Fact, Item, Link, Log, Options, PodFacts, Reader, Watched};
use sk_store::trace::Trace;

/// So many seconds after a moment that is easily read.
pub(crate) fn at(secs: i64) -> SimTime {
    SimTime::from_secs(1_767_603_600 + secs)
}

/// `apps/v1.Deployment default/web`, or `v1.Node n` without a namespace.
pub(crate) fn object(text: &str) -> ObjectRef {
    let (gvk, key) = text.split_once(' ').unwrap();
    ObjectRef::new(gvk.parse().unwrap(), key.parse().unwrap())
}

/// The body of an object.
pub(crate) fn body(object: &ObjectRef, version: u64) -> Value {
    let mut metadata = json!({"name": object.key.name, "labels": {"app": object.key.name}});
    if let Some(namespace) = &object.key.namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({"apiVersion": object.gvk.api_version(), "kind": object.gvk.kind, "metadata": metadata,
        "spec": {"replicas": version}})
}

/// A version of an object; its uid is made of its name.
pub(crate) fn applied(text: &str, version: u64) -> Applied {
    let object = object(text);
    let body = body(&object, version);
    Applied { uid: uid_of(text), owners: Vec::new(), body: body.to_string().into(), object }
}

pub(crate) fn uid_of(text: &str) -> sk_core::SmolStr {
    format!("uid of {text}").into()
}

pub(crate) fn apply(text: &str, version: u64) -> Fact {
    Fact::Applied(applied(text, version))
}

pub(crate) fn delete(text: &str) -> Fact {
    Fact::Deleted(Deleted { object: object(text), uid: uid_of(text) })
}

/// A reference to the object of that name, by its uid.
pub(crate) fn owned_by(text: &str) -> OwnerReference {
    let ObjectRef { gvk, key } = object(text);
    OwnerReference { gvk, name: key.name, uid: uid_of(text), controller: true, block_owner_deletion: true }
}

pub(crate) fn link(text: &str, owner: &str) -> Fact {
    Fact::Link(Link { object: object(text), uid: uid_of(text), owners: vec![owned_by(owner)] })
}

/// A pod in `default` that is bound and runs, if it is given a node.
pub(crate) fn pod(name: &str, owner: Option<&str>, created: SimTime, node: Option<&str>) -> PodFacts {
    PodFacts {
        uid: uid_of(name),
        pod: ObjectKey::namespaced("default", name),
        owners: owner.map(owned_by).into_iter().collect(),
        attributions: Vec::new(),
        pod_hash: Some(StableHash::new(7)),
        created,
        scheduled: node.map(|_| created),
        started: node.map(|_| created),
        finished: None,
        deleted: None,
        guessed: false,
        exit_code: None,
        node: node.map(Into::into),
        waits: Vec::new(),
        requests: [("cpu".into(), "250m".to_owned()), ("memory".into(), "64Mi".to_owned())].into(),
    }
}

pub(crate) fn attribution(text: &str) -> Attribution {
    Attribution {
        owner: object(text),
        uid: uid_of(text),
        template: Some("/spec/template@0123456789abcdef".parse().unwrap()),
        track_lifecycle: true,
    }
}

pub(crate) fn watched(kind: &str, version: &str) -> Fact {
    Fact::Watched(Watched { kind: kind.parse::<Gvk>().unwrap(), version: version.into(), seen: None })
}

/// Opens a log that must open.
pub(crate) fn open(folder: &std::path::Path) -> Log {
    Log::open(folder, Options::default()).unwrap().0
}

/// The entries of a log, without the state that it begins with.
pub(crate) fn entries(reader: &Reader) -> Vec<Entry> {
    let entry = |item| match item {
        Item::Entry(entry) => Some(entry),
        _ => None,
    };
    reader.items().filter_map(entry).collect()
}

/// What happens in a trace, a line each, marks included.
pub(crate) fn story(trace: &Trace) -> Vec<String> {
    trace.records().unwrap().map(|record| record.unwrap().to_string()).collect()
}
