//! Objects from hell: each gets Kubernetes' own behaviour, a refusal, or a bound with a name; never a hang.

use serde_json::{Value, json};
use sk_engine::Timing;
use sk_engine::api::{Object, Propagation, Request, Rules};
use sk_engine::kinds::{JOB, POD};
use sk_engine::{Engine, Settings};

use crate::harness::{Cluster, START, deployment, group};

fn strict() -> Engine {
    Engine::new(&Settings { timing: Timing::ideal(), rules: Rules::Written, ..Settings::default() }, START)
}

fn refusal(json: Value) -> String {
    let object = match Object::from_json(json) {
        Ok(object) => object,
        Err(error) => return error.to_string(),
    };
    strict().handle(Request::apply(object)).expect_err("no server takes it").to_string()
}

fn config_map(name: &str, owner: &Object) -> Value {
    // Held up, which is where a circle could hang.
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.key.name, "uid": owner.uid.to_string(),
        "blockOwnerDeletion": true});
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": [owner]}})
}

#[test]
fn owners_in_a_circle_hold_each_other_until_one_of_them_is_deleted() {
    let mut cluster = Cluster::ideal(1, 1);
    cluster
        .until(1)
        .apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}));
    let gvk = "v1.ConfigMap".parse().unwrap();
    let find = |cluster: &Cluster, name: &str| {
        cluster.engine.list(&gvk).find(|object| object.key.name == name).map(|object| Object::clone(object))
    };
    let a = find(&cluster, "a").unwrap();
    cluster.engine.handle(Request::create(Object::from_json(config_map("b", &a)).unwrap())).unwrap();
    let b = find(&cluster, "b").unwrap();
    let circle = Object::from_json(config_map("a", &b)).unwrap();
    cluster.engine.handle(Request::update(circle)).unwrap();
    cluster.until(600);
    assert_eq!(cluster.names(&gvk), ["a", "b"], "nobody's owner is gone");
    cluster.delete("v1.ConfigMap", "a", Propagation::Foreground);
    cluster.until(1_200);
    assert!(cluster.names(&gvk).is_empty(), "{:?}", cluster.names(&gvk));
    assert!(cluster.engine.spinning().is_none());
}

#[test]
fn schedules_from_hell_are_refused_or_never_due() {
    let cron = |schedule: &str, zone: Value| {
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c", "namespace": "default"},
            "spec": {"schedule": schedule, "timeZone": zone, "jobTemplate": {"spec": {"template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}}}}}})
    };
    for schedule in ["", "* * * *", "60 * * * *", "*/0 * * * *", "5-1 * * * *", "@every", "🕐 * * * *", "-1 * * * *"]
    {
        let words = refusal(cron(schedule, Value::Null));
        assert!(words.contains("spec.schedule") && words.len() < 500_000, "{schedule:.40}: {words:.300}");
    }
    assert!(refusal(cron("1 * * * *", "Mars/Olympus".into())).contains("timeZone"));
    // The thirtieth of February never comes; a search for it must end.
    let mut engine = strict();
    engine.handle(Request::apply(Object::from_json(cron("0 0 30 2 *", Value::Null)).unwrap())).unwrap();
    engine.advance_to(START + sk_core::SimDuration::from_mins(48 * 60));
    assert_eq!(engine.list(&JOB).count(), 0);
    assert!(engine.spinning().is_none());
}

#[test]
fn counts_from_hell_are_refused_or_grow_at_the_pace_of_a_controller() {
    assert!(refusal(deployment("web", -1, None)).contains("must be greater than or equal to 0"));
    assert!(refusal(deployment("web", 1 << 31, None)).contains("2147483648"));
    // The largest number there is. A replica set makes at most 500 pods at a time, and its client sends 20 requests a second.
    let mut cluster = Cluster::new(vec![group("big", "64", 1, 1)], Timing::real_like());
    cluster.until(1).apply(deployment("web", i64::from(i32::MAX), Some("10m")));
    cluster.until(31);
    let pods = cluster.engine.list(&POD).count();
    assert!((300..=700).contains(&pods), "{pods} pods in 30 s");
}

#[test]
fn a_selector_that_matches_everything_is_refused_and_a_budgets_is_not() {
    let mut everything = deployment("web", 1, None);
    everything["spec"]["selector"] = json!({});
    assert!(refusal(everything).contains("empty selector is invalid for deployment"));
    let mut engine = strict();
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "all", "namespace": "default"}, "spec": {"minAvailable": 1, "selector": {}}});
    engine.handle(Request::apply(Object::from_json(budget).unwrap())).unwrap();
    let mut two = deployment("web", 2, None);
    two["spec"]["template"]["spec"]["nodeName"] = "nowhere".into();
    engine.handle(Request::apply(Object::from_json(two).unwrap())).unwrap();
    engine.advance_to(START + sk_core::SimDuration::from_secs(10));
    let budget = engine.list(&"policy/v1.PodDisruptionBudget".parse().unwrap()).next().unwrap().to_json();
    assert_eq!(budget["status"]["expectedPods"], 2);
}
