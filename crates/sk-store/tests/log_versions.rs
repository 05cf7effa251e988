//! Logs that older versions wrote open and export the same. `tests/log-v1/` was written by the first version, which knew
//! of no lost watches, and is never written again; a version that changes the format adds a folder of its own beside it,
//! made by running this test with `SK_STORE_LOG_FIXTURE=FOLDER`. Only what is expected of an export may change, when
//! traces tell more.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "support/facts.rs"]
mod facts;

use std::fs;
use std::path::Path;

use facts::{applied, apply, at, attribution, delete, link, owned_by, pod, watched};
use serde_json::json;
use sk_core::{ObjectRef, SimTime};
use sk_store::log::{Fact, Log, Options, Query, Watched};
use sk_store::trace::{Format, Gap, TracerConfig, Wait};

const WEB: &str = "apps/v1.Deployment default/web";
const WEB_X: &str = "apps/v1.ReplicaSet default/web-x";

/// What was exported when the log was written.
const EXPORT: &str = "export.jsonl";

/// One of everything, and enough of it for several segments.
fn story() -> Vec<(SimTime, Fact)> {
    let mut owned = applied("batch/v1.Job default/report-1", 1);
    owned.owners.push(owned_by("batch/v1.CronJob default/report"));
    let mut waiting = pod("web-x-1", Some(WEB_X), at(4), None);
    waiting.attributions.push(attribution(WEB));
    let message = "0/1 nodes are available: 1 Insufficient cpu.".to_owned();
    waiting.waits.push(Wait { at: at(4), reason: "Unschedulable".into(), message });
    let mut running = waiting.clone();
    running.node = Some("n1".into());
    (running.scheduled, running.started) = (Some(at(6)), Some(at(7)));
    let mut gone = running.clone();
    (gone.finished, gone.deleted, gone.guessed) = (Some(at(40)), Some(at(41)), true);
    let node = |ready: bool| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "ready": ready});
    let gap = Gap { from: at(20), to: at(25), kind: Some("v1.Pod".parse().unwrap()), reason: "410 Gone".into() };
    let mut facts = vec![
        apply("v1.Namespace default", 1),
        apply(WEB, 1),
        link(WEB_X, WEB),
        Fact::Node("n1".into(), Some(node(false).to_string().into())),
        Fact::Pod(Box::new(waiting)),
        Fact::Pod(Box::new(pod("static", None, at(0), Some("n1")))),
        Fact::Node("n1".into(), Some(node(true).to_string().into())),
        Fact::Pod(Box::new(running)),
        Fact::Applied(owned),
        apply("batch/v1.CronJob default/report", 1),
        watched("apps/v1.Deployment", "1234"),
        Fact::Gap(gap),
    ];
    facts.extend((2..20).map(|version| apply(WEB, version)));
    facts.extend([
        Fact::Unlinked(facts::uid_of(WEB_X)),
        delete(WEB),
        Fact::Pod(Box::new(gone)),
        Fact::Node("n1".into(), None),
        apply(WEB, 20),
        // Since version 2.
        watched("v1.Pod", "1300"),
        Fact::Lost("v1.Pod".parse().unwrap()),
        // Since version 3.
        Fact::Watched(Watched { kind: "v1.Node".parse().unwrap(), version: "1301".into(), seen: Some(at(30)) }),
    ]);
    (0..).zip(facts).map(|(secs, fact)| (at(secs), fact)).collect()
}

fn write(folder: &Path) {
    let (mut log, _) = Log::open(folder, Options { segment_bytes: 1_500, ..Options::default() }).unwrap();
    for (at, fact) in story() {
        log.append(at, fact).unwrap();
    }
    log.sync().unwrap();
    assert!(log.stats().segments > 1);
}

fn export(log: &Log) -> String {
    let kinds: Vec<_> = log.state().objects().map(|(ObjectRef { gvk, .. }, _)| gvk.clone()).collect();
    let query = Query { config: TracerConfig::of_kinds(&kinds), ..Query::window(at(9), at(60)) };
    let mut text = Vec::new();
    let exported = log.reader().export(&query, Format::JsonLines, &mut text).unwrap();
    assert_eq!((exported.damages.len(), exported.unreadable), (0, 0));
    String::from_utf8(text).unwrap()
}

/// Opens a copy of a fixture whose newest entry has this number, and writes on.
fn check(fixture: &str, entries: u64, newest: SimTime) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture);
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(&fixture).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let (mut log, recovered) = Log::open(folder.path(), Options::default()).unwrap();
    assert_eq!((recovered.cut_bytes, recovered.put_aside.len()), (0, 0));
    assert_eq!(recovered.newest, Some((entries, newest)));
    let expected = fs::read_to_string(fixture.join(EXPORT)).unwrap();
    assert_eq!(export(&log), expected);
    assert_eq!(log.append(at(70), apply(WEB, 21)).unwrap(), entries + 1, "and it is written on");
    log.sync().unwrap();
    assert_eq!(export(&log), expected);
}

#[test]
fn a_log_of_the_first_version_opens_and_exports_what_it_did() {
    check("tests/log-v1", 35, at(34));
}

#[test]
fn a_log_of_the_second_version_opens_and_exports_what_it_did() {
    check("tests/log-v2", 37, at(36));
}

#[test]
fn a_log_of_the_third_version_opens_and_exports_what_it_did() {
    check("tests/log-v3", 38, at(37));
}

#[test]
fn a_log_of_the_fourth_version_opens_and_exports_what_it_did() {
    check("tests/log-v4", 38, at(37));
}

#[test]
fn this_version_exports_the_same_of_what_it_writes_itself() {
    let folder = match std::env::var("SK_STORE_LOG_FIXTURE") {
        Ok(folder) => folder.into(),
        Err(_) => tempfile::tempdir().unwrap().keep(),
    };
    write(&folder);
    let log = facts::open(&folder);
    let expected = include_str!("log-v3/export.jsonl");
    let exported = export(&log);
    drop(log);
    fs::write(folder.join(EXPORT), &exported).unwrap();
    if std::env::var("SK_STORE_LOG_FIXTURE").is_err() {
        fs::remove_dir_all(&folder).unwrap();
    }
    assert_eq!(exported, expected);
}
