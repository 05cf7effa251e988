//! The resources on a real API server: it takes the definitions, fills defaults in, and refuses what makes no sense
//! with words that say what to do.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use sk_api::simulation::{Simulation, crds};
use sk_testkit::Options;
use sk_testkit::control_plane::{ControlPlane, eventually};

const LIMIT: Duration = Duration::from_secs(120);

async fn cluster_with_crds() -> ControlPlane {
    let cluster = ControlPlane::start(Options::api_only()).await.expect("a control plane");
    let api: Api<CustomResourceDefinition> = Api::all(cluster.client());
    for crd in crds() {
        let name = crd.metadata.name.clone().expect("a definition has a name");
        let patch = PatchParams::apply("test").validation_strict();
        api.patch(&name, &patch, &Patch::Apply(&crd)).await.expect("the definition is accepted");
        eventually(&format!("{name} to be established"), LIMIT, || async {
            let conditions = api.get(&name).await?.status.and_then(|status| status.conditions).unwrap_or_default();
            // Says "non-structural schema" and why, if that is what the schema is.
            let wrong: Vec<_> =
                conditions.iter().filter(|condition| condition.type_ == "NonStructuralSchema").collect();
            assert!(wrong.is_empty(), "{wrong:?}");
            Ok(conditions.iter().any(|found| found.type_ == "Established" && found.status == "True").then_some(()))
        })
        .await
        .expect("the definition is established");
    }
    cluster
}

/// As people write them: untyped, so that the server sees what the types would not let through.
fn simulations(cluster: &ControlPlane) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("simkube.io", "v1", "Simulation");
    Api::all_with(cluster.client(), &ApiResource::from_gvk_with_plural(&kind, "simulations"))
}

fn named(name: &str, spec: &Value) -> DynamicObject {
    let text = json!({"apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(text).expect("an object")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_fills_defaults_in_and_refuses_what_makes_no_sense() {
    let cluster = cluster_with_crds().await;
    let api = simulations(&cluster);
    let strict = PatchParams::apply("test").validation_strict();
    let driver = json!({"tracePath": "s3://traces/a.sktrace"});

    let small = named("small", &json!({"driver": driver, "hooks": {"preStartHooks": [{"cmd": "true"}]}}));
    let made = api.patch("small", &strict, &Patch::Apply(small)).await.unwrap();
    assert_eq!(
        made.data["spec"],
        json!({
            "driver": {
                "tracePath": "s3://traces/a.sktrace", "namespace": "simkube", "port": 8888, "virtualNsPrefix": "virtual",
            },
            "hooks": {"preStartHooks": [{
                "cmd": "true", "sendSim": false, "ignoreFailure": false, "timeoutSeconds": 300,
            }]},
            "repetitions": 1, "speed": 1,
        })
    );
    let typed: Simulation = Api::all(cluster.client()).get("small").await.unwrap();
    assert_eq!(typed.spec.driver.port, 8888);

    let long = "a".repeat(50);
    for (name, spec, words) in [
        ("wrong", json!({}), "spec.driver: Required value"),
        ("wrong", json!({"driver": {}}), "spec.driver.tracePath: Required value"),
        ("wrong", json!({"driver": {"tracePath": "traces/a"}}), "spec.driver.tracePath in body should match"),
        ("wrong", json!({"driver": driver, "speed": 0}), "the speed is a factor of at least 0.001"),
        ("wrong", json!({"driver": driver, "repetitions": 0}), "spec.repetitions in body should be greater than"),
        ("wrong", json!({"driver": driver, "duration": "soon"}), "spec.duration in body should match"),
        ("wrong", json!({"driver": driver, "sped": 2}), ".spec.sped: field not declared in schema"),
        (
            "wrong",
            json!({"driver": {"tracePath": "/a", "port": 80}}),
            "spec.driver.port in body should be greater than",
        ),
        ("a.b", json!({"driver": driver}), "it becomes part of the names of its Job and Service"),
        (&long, json!({"driver": driver}), "at most 49"),
    ] {
        let patch = Patch::Apply(named(name, &spec));
        let refusal = api.patch(name, &strict, &patch).await.expect_err("it is refused").to_string();
        assert!(refusal.contains(words), "{spec}: {refusal}");
    }

    for (change, words) in [
        (json!({"driver": {"tracePath": "/other"}}), "what a simulation replays cannot be changed"),
        (json!({"duration": "1h"}), "the duration of a simulation cannot be changed"),
        (json!({"speed": 2}), "the speed of a simulation cannot be changed"),
        (json!({"repetitions": 2}), "the number of repetitions cannot be changed"),
        (json!({"hooks": {"postStopHooks": [{"cmd": "true"}]}}), "the hooks of a simulation cannot be changed"),
        (json!({"hooks": null}), "the hooks of a simulation cannot be changed"),
        (json!({"metrics": {}}), "the metrics of a simulation cannot be changed"),
        (json!({"lifecycleParams": {"imagePullDelay": 1}}), "pods take to start cannot be changed"),
        (json!({"rescheduleInterruptedBarePods": true}), "rescheduleInterruptedBarePods cannot be changed"),
        (json!({"record": {"path": "s3://records/a"}}), "where the record of a simulation goes cannot be changed"),
    ] {
        let patch = Patch::Merge(json!({"spec": change}));
        let refusal = api.patch("small", &PatchParams::default(), &patch).await.expect_err("it is refused").to_string();
        assert!(refusal.contains(words), "{change}: {refusal}");
    }
    let pause = json!({"spec": {"pausedTime": "2026-11-10T14:00:00Z", "record": {"ttlSecondsAfterFinished": 60}}});
    api.patch("small", &PatchParams::default(), &Patch::Merge(pause))
        .await
        .expect("pausing is a change that is allowed");

    // One that has everything can be paused and resumed as well: what the rules compare is found to be the same.
    let all = json!({
        "driver": driver, "hooks": {"preRunHooks": [{"cmd": "true", "args": ["a"]}]}, "lifecycleParams": {"imagePullDelay": 1},
        "metrics": {"remoteWriteConfigs": [{"url": "https://example.com", "queueConfig": {"capacity": 1}}]},
        "rescheduleInterruptedBarePods": true, "record": {"path": "s3://records/a"}, "duration": "1h",
    });
    api.patch("all", &strict, &Patch::Apply(named("all", &all))).await.unwrap();
    for paused in [json!("2026-11-10T14:00:00Z"), Value::Null] {
        let patch = Patch::Merge(json!({"spec": {"pausedTime": paused, "record": {"ttlSecondsAfterFinished": 60}}}));
        api.patch("all", &PatchParams::default(), &patch).await.expect("pausing is a change that is allowed");
    }
    let patch = Patch::Merge(json!({"spec": {"metrics": {"namespace": "other"}}}));
    let refusal = api.patch("all", &PatchParams::default(), &patch).await.expect_err("it is refused").to_string();
    assert!(refusal.contains("the metrics of a simulation cannot be changed"), "{refusal}");

    two_writers_share_a_status(&api).await;
}

/// The controller and the driver each write their own fields, and neither takes the other's away.
async fn two_writers_share_a_status(api: &Api<DynamicObject>) {
    let apply = |manager: &'static str, status: Value| {
        let text = json!({
            "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "small"}, "status": status,
        });
        async move {
            let applied = api.patch_status("small", &PatchParams::apply(manager).force(), &Patch::Apply(text)).await;
            applied.expect("a status that the schema allows")
        }
    };
    apply("sk-driver", json!({"progress": {"percent": 5, "eventsDone": 1, "eventsTotal": 20}})).await;
    let condition = json!({
        "type": "DriverStarted", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-11-10T14:00:00Z",
    });
    let seen = apply("sk-ctrl", json!({"state": "Running", "conditions": [condition]})).await;
    assert_eq!(seen.data["status"]["progress"]["percent"], 5);
    assert_eq!(seen.data["status"]["state"], "Running");
}
