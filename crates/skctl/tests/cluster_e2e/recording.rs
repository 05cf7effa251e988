//! Without a tracer in the cluster: a snapshot, and a recording in the foreground.

use std::io::{BufRead, BufReader};
use std::process::Child;

use predicates::str::contains;
use serde_json::Value;
use sk_testkit::objects;

use super::fixture::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_and_a_recording_need_no_tracer_in_the_cluster() {
    let fixture = Fixture::start().await;
    fixture.cluster.create(&objects::deployment().name("before").replicas(2)).await.expect("a Deployment can be made");
    fixture.until_running("before", 2).await;
    fixture.skctl().args(["snapshot", "-O", "now.sktrace"]).assert().success().stderr(contains("wrote now.sktrace"));
    let kinds = kinds(&fixture, "now.sktrace");
    assert_eq!(kinds, ["apps/v1.Deployment", "scheduling.k8s.io/v1.PriorityClass"], "owners alone");

    let mut child = fixture.spawn(&["record", "-c", "tracer.yaml", "-O", "rec.sktrace"]);
    let said = until_said(&mut child, "recording context");
    fixture.cluster.create(&objects::deployment().name("during").replicas(3)).await.expect("a Deployment can be made");
    fixture.until_running("during", 3).await;
    assert!(fixture.path("rec.sktrace.recording").is_dir(), "what is recorded is kept: {said}");

    // A crash, and the same again: what was recorded is still there.
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let mut child = fixture.spawn(&["record", "-c", "tracer.yaml", "-O", "rec.sktrace"]);
    let said = until_said(&mut child, "recording context");
    assert!(said.contains("continuing the recording"), "{said}");
    fixture.cluster.create(&objects::deployment().name("after").replicas(1)).await.expect("a Deployment can be made");
    fixture.until_running("after", 1).await;
    interrupt(&child);
    let mut rest = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().expect("it was piped"), &mut rest).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{rest}");
    assert!(rest.contains("wrote rec.sktrace"), "{rest}");
    assert!(!fixture.path("rec.sktrace.recording").exists(), "nothing else is left");

    let shown = fixture.skctl().args(["trace", "show", "rec.sktrace"]).assert().success();
    shown.stdout(contains("Deployment"));
    let lines = fixture.skctl().args(["trace", "convert", "rec.sktrace", "-"]).assert().success();
    let lines = String::from_utf8_lossy(&lines.get_output().stdout).into_owned();
    for name in ["before", "during", "after"] {
        assert!(lines.contains(&format!(r#""name":"{name}""#)), "{name} is missing");
    }
    fixture.skctl().args(["validate", "rec.sktrace"]).assert().success();
}

/// The kinds that a trace has objects of.
fn kinds(fixture: &Fixture, trace: &str) -> Vec<String> {
    let shown = fixture.skctl().args(["trace", "show", trace, "-o", "json"]).assert().success();
    let summary: Value = serde_json::from_slice(&shown.get_output().stdout).expect("JSON");
    summary["kinds"].as_object().expect("a summary has kinds").keys().cloned().collect()
}

/// Reads what it says until it says this; all of it.
pub(crate) fn until_said(child: &mut Child, wanted: &str) -> String {
    let mut said = String::new();
    let mut lines = BufReader::with_capacity(1, child.stderr.as_mut().expect("it was piped"));
    while !said.contains(wanted) {
        assert!(lines.read_line(&mut said).expect("text") > 0, "it ended before it said `{wanted}`: {said}");
    }
    said
}

pub(crate) fn interrupt(child: &Child) {
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
}
