//! The tracer's installation and exports: found, forwarded to, trusted, and refused to who may not.

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, DeleteParams};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use sk_testkit::control_plane::eventually;
use sk_testkit::objects;
use sk_tracer::install;

use super::fixture::{Fixture, LIMIT};

#[tokio::test(flavor = "multi_thread")]
async fn an_installed_tracer_is_found_trusted_and_exported_from_and_who_may_not_is_told_so() {
    let fixture = Fixture::start().await;

    // Before: the doctor says what is missing, and an export says what to do.
    let sick = fixture.skctl().args(["doctor", "tracer"]).assert().code(1);
    sick.stdout(contains("OK    server").and(contains("FAIL  objects")).and(contains("skctl install tracer")));
    let out = fixture.skctl().args(["export", "-s", "-1h", "-O", "no.sktrace"]).assert().code(2);
    out.stderr(contains("there is no tracer in namespace simkube").and(contains("skctl install tracer")));

    // A dry run changes nothing; an installation makes everything; a second one nothing more.
    let dry = fixture.skctl().args(["install", "tracer", "-c", "tracer.yaml", "--dry-run"]).assert().success();
    dry.stdout(contains("created   Namespace simkube")).stderr(contains("nothing was changed"));
    fixture.skctl().args(["doctor", "tracer"]).assert().code(1).stdout(contains("Namespace simkube"));
    fixture.install_tracer().await;
    let again = fixture.skctl().args(["install", "tracer", "-c", "tracer.yaml", "--no-wait"]).assert();
    again.stdout(contains("created").not().and(contains("unchanged")));

    let tracer = fixture.start_tracer().await;
    fixture.until_well("tracer").await;
    let well = fixture.skctl().args(["doctor", "tracer", "-o", "json"]).assert().success();
    let findings: Value = serde_json::from_slice(&well.get_output().stdout).expect("JSON");
    let subjects: Vec<&str> =
        findings.as_array().expect("a list").iter().filter_map(|f| f["subject"].as_str()).collect();
    assert_eq!(subjects, ["server", "rights", "objects", "pod", "recording", "disk", "memory"]);

    // Through the API server and KWOK's kubelet, with a token and the published certificate.
    fixture.cluster.create(&objects::deployment().name("web").replicas(2)).await.expect("a Deployment can be made");
    let out = fixture.skctl().args(["export", "-s", "-2d", "-t", "-1d", "-O", "a.sktrace"]).assert().code(2);
    out.stderr(contains("kept"));
    let out = fixture.skctl().args(["export", "-s", "-1d", "-O", "a.sktrace"]).assert().success();
    out.stderr(contains("gaps in the recording"));
    export_until(&fixture, "a.sktrace", "web").await;
    let names: Vec<String> = std::fs::read_dir(fixture.dir.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("sktrace"))
        .collect();
    assert_eq!(names, ["a.sktrace"], "nothing else is left");

    who_may_not_export_is_told_so(&fixture).await;
    another_certificate_is_not_trusted(&fixture).await;
    tracer.shutdown().await.expect("the tracer ends");
}

/// Exports until the trace holds what was made a moment ago.
async fn export_until(fixture: &Fixture, file: &str, wanted: &str) {
    let began = std::time::Instant::now();
    loop {
        fixture.skctl().args(["export", "-s", fixture.since(), "-O", file]).assert().success();
        let shown = fixture.skctl().args(["trace", "convert", file, "-"]).assert().success();
        if String::from_utf8_lossy(&shown.get_output().stdout).contains(&format!(r#""name":"{wanted}""#)) {
            return;
        }
        assert!(began.elapsed() < LIMIT, "{wanted} is never in the export");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

/// Two ways not to be allowed: the account has no right to export; the person has no right to be that account.
async fn who_may_not_export_is_told_so(fixture: &Fixture) {
    let bindings: Api<ClusterRoleBinding> = Api::all(fixture.cluster.client());
    bindings.delete(install::EXPORTER_ROLE, &DeleteParams::default()).await.expect("the binding was there");
    eventually("the right to be gone", LIMIT, || async {
        Ok(bindings.get_opt(install::EXPORTER_ROLE).await?.is_none().then_some(()))
    })
    .await
    .expect("it goes");
    let began = std::time::Instant::now();
    loop {
        // The API server's authorizer learns of it a moment later.
        let out =
            fixture.skctl().args(["export", "-s", fixture.since(), "-O", "no.sktrace"]).output().expect("skctl runs");
        if !out.status.success() {
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            assert_eq!(out.status.code(), Some(2), "{said}");
            assert!(said.contains("403") && said.contains("may not create exports.simkube.io"), "{said}");
            break;
        }
        std::fs::remove_file(fixture.path("no.sktrace")).expect("it was exported");
        assert!(began.elapsed() < LIMIT, "an export without the right to it goes on");
    }
    assert!(!fixture.path("no.sktrace").exists());

    let nobody = fixture.kubeconfig_of("default", "nobody").await;
    let out = fixture.skctl_as(&nobody).args(["export", "-s", "-1m", "-O", "no.sktrace"]).assert().code(2);
    out.stderr(contains("forbidden").or(contains("may not")));
    let out = fixture.skctl_as(&nobody).args(["doctor", "tracer"]).assert();
    out.stdout(contains("FAIL  rights").and(contains("create serviceaccounts/token")));
}

/// Whoever sits where the tracer should, without its key, gets nothing.
async fn another_certificate_is_not_trusted(fixture: &Fixture) {
    let other = sk_testkit::control_plane::Authority::new().expect("an authority").certificate();
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> =
        Api::namespaced(fixture.cluster.client(), install::NAMESPACE);
    let patch = kube::api::Patch::Merge(json!({"data": {install::CERTIFICATE_KEY: other}}));
    maps.patch(install::CERTIFICATE, &kube::api::PatchParams::default(), &patch).await.expect("it can be changed");
    let out = fixture.skctl().args(["export", "-s", "-1m", "-O", "no.sktrace"]).assert().code(2);
    out.stderr(contains("shows a certificate that is not the published one"));
}
