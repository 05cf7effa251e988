//! What the sieve lets through: sanitised, in the order it came, the same whatever way it came.

use proptest::prelude::*;
use serde_json::{Value, json};
use sk_ingest::{PrivacyKey, Role, Rules, SieveError};
use sk_store::log::Fact;
use sk_testkit::objects::{deployment, node, object, pod};

use crate::recording::{
    CONFIG_MAP, DEPLOYMENT, NODE, POD, Recording, applied_once, body, config, kind, rules, served, sieve,
};

const ALL: &str = "{trackedObjects: {apps/v1.Deployment: {}, v1.Pod: {}, v1.ConfigMap: {}}, privacy: full}";

#[test]
fn what_a_server_allots_and_counts_is_left_out() {
    let mut seen = served(deployment().name("web").annotation("note", "kept"), "u1");
    for (field, value) in [
        ("generation", json!(4)),
        ("managedFields", json!([{"manager": "kubectl"}])),
        ("deletionTimestamp", json!("2026-01-01T00:00:00Z")),
        ("deletionGracePeriodSeconds", json!(30)),
        ("selfLink", json!("/apis")),
    ] {
        seen["metadata"][field] = value;
    }
    seen["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!("3");
    seen["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!("{}");
    seen["status"] = json!({"replicas": 3});
    let expected = deployment().name("web").annotation("note", "kept").into_value();
    assert_eq!(body(ALL, &DEPLOYMENT, &seen), expected);
}

#[test]
fn a_list_item_gives_the_same_bytes_as_a_watch_event() {
    let seen = served(deployment().name("web"), "u1");
    let mut item = seen.clone();
    item.as_object_mut().unwrap().retain(|field, _| field != "apiVersion" && field != "kind");
    let (event, item) = (applied_once(ALL, &DEPLOYMENT, &seen), applied_once(ALL, &DEPLOYMENT, &item));
    assert_eq!(event.body, item.body);
    assert!(event.body.starts_with(br#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"#));
}

#[test]
fn a_pods_node_is_not_part_of_the_pod() {
    let bound = body(ALL, &POD, &served(pod().node_name("node-1"), "u1"));
    assert_eq!(bound, pod().into_value());
}

#[test]
fn a_node_is_recorded_with_what_it_offers_and_without_heartbeats() {
    let mut seen =
        served(node().name("n1").taint("gpu", "yes", "NoSchedule").set("/spec/providerID", "aws://i-1"), "u1");
    seen["spec"]["unschedulable"] = json!(true);
    seen["status"]["nodeInfo"] = json!({"kernelVersion": "6.1"});
    seen["status"]["conditions"] = json!([{
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting",
        "lastHeartbeatTime": "2026-01-01T00:00:10Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    let mut recording = Recording::new(ALL);
    let facts = recording.applied(0, &NODE, &seen);
    let [Fact::Node(name, Some(record))] = facts.as_slice() else { panic!("{facts:?}") };
    let record: Value = serde_json::from_slice(record).unwrap();
    assert_eq!(name, "n1");
    assert_eq!(record["spec"], json!({"taints": seen["spec"]["taints"], "unschedulable": true}));
    let condition = json!({"type": "Ready", "status": "True", "reason": "KubeletReady",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    assert_eq!(record["status"]["conditions"], json!([condition]));
    assert_eq!(record["status"]["capacity"], seen["status"]["capacity"]);
    seen["status"]["conditions"][0]["lastHeartbeatTime"] = json!("2026-01-01T00:00:20Z");
    assert!(recording.applied(1, &NODE, &seen).is_empty(), "a heartbeat is no change");
    seen["spec"]["taints"] = json!([]);
    assert_eq!(recording.applied(2, &NODE, &seen).len(), 1);
}

#[test]
fn nothing_of_a_namespace_that_is_left_out_comes_through() {
    let rules =
        rules("{trackedObjects: {v1.ConfigMap: {}, v1.Namespace: {}}, namespaces: {exclude: [hr, 'secret-*']}}");
    let of = |namespace: &str| served(object(json!({"metadata": {"name": "c", "namespace": namespace}})), "u");
    assert!(sieve(&rules, &CONFIG_MAP, Role::Tracked, &of("default")).is_some());
    for namespace in ["hr", "secret-plans"] {
        assert!(sieve(&rules, &CONFIG_MAP, Role::Tracked, &of(namespace)).is_none(), "{namespace}");
        assert!(sieve(&rules, &POD, Role::Pod, &of(namespace)).is_none(), "{namespace}");
        let itself = served(object(json!({"metadata": {"name": namespace}})), "u");
        assert!(sieve(&rules, &kind("v1.Namespace"), Role::Tracked, &itself).is_none(), "{namespace}");
    }
}

#[test]
fn an_object_that_is_not_one_is_refused_with_what_it_lacks() {
    let rules = rules(ALL);
    let refuse = |json: &str| rules.sieve(&DEPLOYMENT, Role::Tracked, json.as_bytes()).unwrap_err();
    assert!(matches!(refuse("{"), SieveError::Malformed { .. }));
    for (json, lacks) in [
        ("{}", "metadata"),
        ("[]", "metadata"),
        (r#"{"metadata": 3}"#, "a name"),
        (r#"{"metadata": {"name": "x"}}"#, "a uid"),
        (r#"{"metadata": {"name": 7, "uid": "u"}}"#, "a name"),
    ] {
        let refused = refuse(json).to_string();
        assert!(refused.contains(lacks) && refused.contains("apps/v1.Deployment"), "{json}: {refused}");
    }
}

/// JSON that resembles objects: the keys that rules know, in places where they belong and where they do not.
fn any_object() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "spec",
        "metadata",
        "template",
        "containers",
        "env",
        "value",
        "name",
        "labels",
        "annotations",
        "status",
        "data",
        "ownerReferences",
        "volumes",
        "conditions",
        "containerStatuses",
        "state",
        "resources",
        "requests",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let inner = leaf.prop_recursive(6, 64, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..5)
                .prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    });
    (inner.clone(), inner.clone(), inner).prop_map(|(spec, status, data)| {
        json!({"metadata": {"name": "x", "namespace": "n", "uid": "u", "annotations": data.clone(),
            "ownerReferences": data.clone()}, "spec": spec, "status": status, "data": data})
    })
}

proptest! {
    #[test]
    fn whatever_comes_is_taken_or_refused_and_sieving_twice_is_sieving_once(seen in any_object(), full in any::<bool>()) {
        let privacy = if full { "full" } else { "minimal" };
        let yaml = format!("{{trackedObjects: {{apps/v1.Deployment: {{}}, v1.Pod: {{}}, v1.Secret: {{}}, \
            x.io/v1.Thing: {{podSpecTemplatePaths: [/spec/template]}}}}, privacy: {privacy}}}");
        for kind in ["apps/v1.Deployment", "v1.Pod", "v1.Secret", "x.io/v1.Thing"].map(kind) {
            let mut recording = Recording::new(&yaml);
            let facts = recording.applied(0, &kind, &seen);
            let Some(Fact::Applied(applied)) = facts.first() else { panic!("{facts:?}") };
            let mut again: Value = serde_json::from_slice(&applied.body).unwrap();
            again["metadata"]["uid"] = json!("u");
            let Some(Fact::Applied(twice)) = Recording::new(&yaml).applied(0, &kind, &again).into_iter().next() else {
                panic!("the same object")
            };
            prop_assert_eq!(&twice.body, &applied.body);
            recording.deleted(1, &kind, &seen);
        }
    }

    #[test]
    fn rubbish_is_refused_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let rules = Rules::new(&config(ALL), PrivacyKey::new([0; 16]));
        for role in [Role::Tracked, Role::Pod, Role::Node, Role::Link] {
            let _ = rules.sieve(&POD, role, &bytes);
        }
    }
}
