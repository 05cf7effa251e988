//! What a server asks of objects from outside: rules, quotas and limit ranges, in its words.

use serde_json::{Value, json};
use sk_apiserver::quota::RESOURCE_QUOTA;
use sk_apiserver::{ApiError, ApiServer, Notice, Object, Reason, Request, Rules};
use sk_core::{Gvk, ObjectKey, SimTime};

const NOW: SimTime = SimTime::from_secs(1_000);

fn object(json: Value) -> Object {
    Object::from_json(json).expect("the test's object is well-formed")
}

fn server(rules: Rules) -> ApiServer {
    let mut server = ApiServer::new(1);
    server.set_rules(rules);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    send(&mut server, Request::create(object(namespace))).expect("a namespace needs nothing else");
    server
}

/// As whoever stands outside sends it: judged first.
fn send(server: &mut ApiServer, request: Request) -> Result<std::sync::Arc<Object>, ApiError> {
    server.judge(&request)?;
    server.handle(NOW, request)
}

fn apply(server: &mut ApiServer, json: Value) -> Result<std::sync::Arc<Object>, ApiError> {
    send(server, Request::apply(object(json)))
}

fn refused(answer: Result<std::sync::Arc<Object>, ApiError>) -> String {
    answer.expect_err("a real server refuses it").message
}

fn deployment(spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}},
        },
    });
    for (name, value) in spec.as_object().expect("the test gives fields") {
        object["spec"][name] = value.clone();
    }
    object
}

fn pod(name: &str, resources: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [{"name": "main", "image": "i", "resources": resources}]},
    })
}

#[test]
fn what_a_server_refuses_is_refused_before_it_is_stored_and_the_rest_is_stored_as_it_came() {
    for rules in [Rules::Recorded, Rules::Written] {
        let mut server = server(rules);
        let stuck = deployment(&json!({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}));
        assert_eq!(
            refused(apply(&mut server, stuck)),
            "Deployment.apps \"web\" is invalid: spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 \
             when `maxSurge` is 0"
        );
        let both = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "shop"},
            "spec": {"minAvailable": 1, "maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
        assert!(refused(apply(&mut server, both)).contains("minAvailable and maxUnavailable cannot be both set"));
        let stored = apply(&mut server, deployment(&json!({"replicas": 3}))).unwrap();
        assert_eq!(stored.to_json()["spec"]["progressDeadlineSeconds"], Value::Null, "no default is written");
        let other = deployment(&json!({"selector": {"matchLabels": {"app": "other"}}}));
        let words = refused(apply(&mut server, other));
        assert!(words.contains("does not match template `labels`") && words.contains("field is immutable"), "{words}");
    }
}

#[test]
fn a_recording_may_lack_what_a_manifest_must_say() {
    let bare = || {
        deployment(
            &json!({"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}}}),
        )
    };
    assert!(apply(&mut server(Rules::Recorded), bare()).is_ok());
    let words = refused(apply(&mut server(Rules::Written), bare()));
    assert!(words.contains("spec.template.spec.containers[0].image: Required value"), "{words}");
    assert!(apply(&mut server(Rules::Bearable), bare()).is_ok());
}

#[test]
fn pods_of_manifests_need_their_service_account_and_their_priority_class() {
    let mut needy = pod("p", &json!({}));
    needy["spec"]["serviceAccountName"] = "robot".into();
    let mut ranked = pod("q", &json!({}));
    ranked["spec"]["priorityClassName"] = "high".into();
    for (needs, words) in [
        (
            &needy,
            "pods \"p\" is forbidden: error looking up service account shop/robot: serviceaccount \"robot\" not found",
        ),
        (&ranked, "pods \"q\" is forbidden: no PriorityClass with name high was found"),
    ] {
        assert_eq!(refused(apply(&mut server(Rules::Written), needs.clone())), words);
        assert!(apply(&mut server(Rules::Recorded), needs.clone()).is_ok());
    }
    let mut recorded = server(Rules::Recorded);
    apply(&mut recorded, needy.clone()).unwrap();
    let named = Notice::UnknownServiceAccount("shop/robot".into());
    assert_eq!(recorded.notices().get(&named), Some(&1), "what is taken for granted is named");
    let mut server = server(Rules::Written);
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "shop"}});
    apply(&mut server, account).unwrap();
    assert!(apply(&mut server, needy).is_ok());
}

/// A quota that its controller has looked at.
fn with_quota(hard: &Value) -> ApiServer {
    let mut server = server(Rules::Recorded);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "shop"},
        "spec": {"hard": hard}});
    apply(&mut server, quota.clone()).expect("the test's quota is well-formed");
    let used: serde_json::Map<String, Value> = hard
        .as_object()
        .expect("the test's quota is well-formed")
        .keys()
        .map(|name| (name.clone(), json!("0")))
        .collect();
    let mut known = quota;
    known["status"] = json!({"hard": hard, "used": used});
    server.handle(NOW, Request::update_status(object(known))).expect("the test's quota is well-formed");
    server
}

fn used(server: &ApiServer, name: &str) -> String {
    let quota = server
        .store()
        .get(&RESOURCE_QUOTA, &ObjectKey::namespaced("shop", "q"))
        .expect("the test's quota is well-formed")
        .to_json();
    quota["status"]["used"][name].as_str().unwrap_or_default().to_owned()
}

#[test]
fn what_a_quota_has_no_room_for_is_refused_and_what_it_has_room_for_is_charged() {
    let mut server = with_quota(&json!({"pods": "2", "requests.cpu": "1"}));
    let half = json!({"requests": {"cpu": "600m"}});
    apply(&mut server, pod("a", &half)).unwrap();
    assert_eq!((used(&server, "pods"), used(&server, "requests.cpu")), ("1".to_owned(), "600m".to_owned()));
    let answer = apply(&mut server, pod("b", &half));
    assert_eq!(answer.as_ref().map_err(|error| error.reason).err(), Some(Reason::Forbidden));
    assert_eq!(
        refused(answer),
        "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: \
         requests.cpu=1"
    );
    assert_eq!(used(&server, "pods"), "1", "a refusal costs nothing");
    let words = refused(apply(&mut server, pod("c", &json!({}))));
    assert_eq!(words, "pods \"c\" is forbidden: failed quota: q: must specify requests.cpu for: main");
    let told = |notice: &Notice| matches!(notice, Notice::RefusedPod(words) if words.contains("exceeded quota: q"));
    assert!(server.notices().keys().any(told), "{:?}", server.notices());
}

#[test]
fn a_service_that_becomes_a_load_balancer_and_a_claim_that_grows_are_charged_for_what_is_more() {
    let hard =
        json!({"services": "1", "services.loadbalancers": "0", "services.nodeports": "1", "requests.storage": "5Gi"});
    let mut server = with_quota(&hard);
    let service = |kind: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "shop"},
            "spec": {"type": kind, "ports": [{"port": 80}]}})
    };
    apply(&mut server, service("ClusterIP")).unwrap();
    assert_eq!(
        refused(apply(&mut server, service("LoadBalancer"))),
        "services \"s\" is forbidden: exceeded quota: q, requested: services.loadbalancers=1, used: \
         services.loadbalancers=0, limited: services.loadbalancers=0"
    );
    apply(&mut server, service("NodePort")).unwrap();
    assert_eq!((used(&server, "services"), used(&server, "services.nodeports")), ("1".to_owned(), "1".to_owned()));
    let claim = |storage: &str| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "shop"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}})
    };
    apply(&mut server, claim("2Gi")).unwrap();
    apply(&mut server, claim("4Gi")).unwrap();
    assert_eq!(used(&server, "requests.storage"), "4Gi");
    assert_eq!(
        refused(apply(&mut server, claim("6Gi"))),
        "persistentvolumeclaims \"c\" is forbidden: exceeded quota: q, requested: requests.storage=2Gi, used: \
         requests.storage=4Gi, limited: requests.storage=5Gi"
    );
    // What a claim was given is charged when it is known, whether there is room or not.
    let mut given = claim("4Gi");
    given["status"] = json!({"allocatedResources": {"storage": "7Gi"}});
    server.handle(NOW, Request::update_status(object(given))).unwrap();
    assert_eq!(used(&server, "requests.storage"), "7Gi");
}

#[test]
fn texts_of_a_secret_become_bytes_in_place_of_those_of_the_same_key() {
    let mut server = server(Rules::Recorded);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"},
        "data": {"a": "eA==", "b": "eA=="}, "stringData": {"b": "hello", "c": ""}});
    let stored = apply(&mut server, secret).unwrap().to_json();
    assert_eq!(stored["data"], json!({"a": "eA==", "b": "aGVsbG8=", "c": ""}));
    assert!(stored.get("stringData").is_none());
}

#[test]
fn a_quota_limits_nothing_before_its_controller_has_looked_and_nothing_of_other_namespaces() {
    let mut fresh = server(Rules::Recorded);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "shop"},
        "spec": {"hard": {"pods": "0"}}});
    apply(&mut fresh, quota).unwrap();
    assert!(apply(&mut fresh, pod("a", &json!({}))).is_ok());
    let mut server = with_quota(&json!({"count/deployments.apps": "0"}));
    assert!(refused(apply(&mut server, deployment(&json!({})))).contains("count/deployments.apps=1"));
    let mut elsewhere = deployment(&json!({}));
    elsewhere["metadata"]["namespace"] = "default".into();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
    apply(&mut server, namespace).unwrap();
    assert!(apply(&mut server, elsewhere).is_ok());
}

#[test]
fn a_limit_range_fills_in_what_containers_do_not_say_and_refuses_what_is_too_much() {
    let mut server = server(Rules::Recorded);
    let range = |limits: Value| {
        json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r", "namespace": "shop"},
            "spec": {"limits": [limits]}})
    };
    apply(
        &mut server,
        range(json!({"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"memory": "64Mi"}})),
    )
    .unwrap();
    let filled = apply(&mut server, pod("a", &json!({"requests": {"cpu": "500m"}}))).unwrap().to_json();
    let resources = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "500m", "memory": "64Mi"}});
    assert_eq!(filled["spec"]["containers"][0]["resources"], resources);
    assert_eq!(
        filled["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: memory request for container main; cpu limit for container main"
    );
    apply(&mut server, range(json!({"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "100m"}}))).unwrap();
    let words = refused(apply(&mut server, pod("b", &json!({"limits": {"cpu": "3"}}))));
    assert_eq!(words, "pods \"b\" is forbidden: maximum cpu usage per Container is 2, but limit is 3");
    let gone = Gvk::new_static("", "v1", "LimitRange");
    let target = sk_core::ObjectRef::new(gone, ObjectKey::namespaced("shop", "r"));
    server.handle(NOW, Request::Delete { target, options: sk_apiserver::DeleteOptions::default() }).unwrap();
    assert!(apply(&mut server, pod("b", &json!({"limits": {"cpu": "3"}}))).is_ok());
}

#[test]
fn a_changed_annotation_of_a_deployment_counts_as_a_change_and_its_revision_is_left_to_its_controller() {
    let mut server = server(Rules::Recorded);
    apply(&mut server, deployment(&json!({}))).unwrap();
    let mut revised = deployment(&json!({}));
    revised["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
    server.handle(NOW, Request::update_status(object(revised))).unwrap();
    let same = apply(&mut server, deployment(&json!({}))).unwrap();
    assert_eq!(same.meta.generation, 1);
    assert_eq!(same.to_json()["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    let mut noted = deployment(&json!({}));
    noted["metadata"]["annotations"] = json!({"contact": "them"});
    assert_eq!(apply(&mut server, noted).unwrap().meta.generation, 2);
}
