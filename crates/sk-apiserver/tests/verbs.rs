//! The verbs as a client sees them: what is answered, what is committed, what watchers are told.

use serde_json::{Value, json};
use sk_apiserver::kinds::{DEPLOYMENT, NAMESPACE, POD, PodPhase};
use sk_apiserver::{
    AdmitPod, ApiError, ApiServer, Change, DeleteOptions, Notice, Object, Propagation, Reason, Request,
};
use sk_core::{Gvk, ObjectKey, ObjectRef, SimTime};

const NOW: SimTime = SimTime::from_secs(1_000);

fn object(json: Value) -> Object {
    Object::from_json(json).expect("the test's object is well-formed")
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    })
}

fn deployment(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}},
        },
    })
}

/// A server with the namespace `shop`.
fn server() -> ApiServer {
    let mut server = ApiServer::new(1);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    server.handle(NOW, Request::create(object(namespace))).expect("a namespace needs nothing else");
    server
}

fn create(server: &mut ApiServer, json: Value) -> Result<std::sync::Arc<Object>, ApiError> {
    server.handle(NOW, Request::create(object(json)))
}

fn delete(server: &mut ApiServer, gvk: &Gvk, name: &str, options: DeleteOptions) -> Result<bool, ApiError> {
    let key = if *gvk == NAMESPACE { ObjectKey::cluster(name) } else { ObjectKey::namespaced("shop", name) };
    let target = ObjectRef::new(gvk.clone(), key);
    server.handle(NOW, Request::Delete { target: target.clone(), options })?;
    Ok(server.store().get(&target.gvk, &target.key).is_none())
}

fn last_change(server: &ApiServer) -> Change {
    server.store().watch(0).expect("the log reaches back").last().expect("something happened").change
}

#[test]
fn a_second_object_of_the_same_name_is_refused() {
    let mut server = server();
    let first = create(&mut server, pod("a")).unwrap();
    assert_eq!((first.created, first.meta.generation), (NOW, 1));
    let error = create(&mut server, pod("a")).unwrap_err();
    assert_eq!((error.reason, error.message.as_str()), (Reason::AlreadyExists, "pods \"a\" already exists"));
    assert_eq!(error.to_json()["code"], 409);
}

#[test]
fn an_object_needs_its_namespace_and_one_that_is_not_going() {
    let mut server = ApiServer::new(1);
    let error = create(&mut server, pod("a")).unwrap_err();
    assert_eq!((error.reason, error.message.as_str()), (Reason::NotFound, "namespaces \"shop\" not found"));

    let mut server = self::server();
    create(&mut server, pod("a")).unwrap();
    assert!(!delete(&mut server, &NAMESPACE, "shop", DeleteOptions::default()).unwrap(), "it is emptied first");
    let error = create(&mut server, pod("b")).unwrap_err();
    assert_eq!(error.reason, Reason::Forbidden);
    assert!(error.message.contains("because it is being terminated"), "{error}");
    assert!(error.is_namespace_terminating(), "{error:?}");
    server.handle(NOW, Request::FinalizeNamespace { name: "shop".into() }).unwrap();
    assert!(server.store().get(&NAMESPACE, &ObjectKey::cluster("shop")).is_none());
}

#[test]
fn generated_names_differ_and_follow_from_the_seed() {
    let names = |seed| {
        let mut server = ApiServer::new(seed);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        create(&mut server, namespace).unwrap();
        let mut generated = pod("");
        generated["metadata"] = json!({"generateName": "web-", "namespace": "shop"});
        let mut make = || create(&mut server, generated.clone()).unwrap().key.name.clone();
        [make(), make()]
    };
    let [one, two] = names(1);
    assert!(one.starts_with("web-") && one.len() == 9 && one != two, "{one} {two}");
    assert_eq!(names(1), [one.clone(), two]);
    assert_ne!(names(2)[0], one);
}

#[test]
fn the_generation_counts_changes_of_desire_only() {
    let mut server = server();
    let first = create(&mut server, deployment(2)).unwrap();

    let mut status = Object::clone(&first);
    if let sk_apiserver::Body::Deployment(deployment) = &mut status.body {
        deployment.status.replicas = 2;
    }
    let second = server.handle(NOW, Request::update_status(status)).unwrap();
    assert_eq!((second.meta.generation, second.deployment().unwrap().status.replicas), (1, 2));

    let third = server.handle(NOW, Request::apply(object(deployment(5)))).unwrap();
    let body = third.deployment().unwrap();
    assert_eq!((third.meta.generation, body.spec.replicas, body.status.replicas), (2, 5, 2), "the status stays");

    let before = server.store().resource_version();
    server.handle(NOW, Request::apply(object(deployment(5)))).unwrap();
    assert_eq!(server.store().resource_version(), before, "saying the same again changes nothing");
}

#[test]
fn an_update_of_an_old_version_is_a_conflict() {
    let mut server = server();
    let first = create(&mut server, deployment(2)).unwrap();
    server.handle(NOW, Request::apply(object(deployment(5)))).unwrap();
    let error = server.handle(NOW, Request::update(Object::clone(&first))).unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
    assert!(error.message.contains("the object has been modified"), "{error}");
}

#[test]
fn a_workload_that_would_run_wild_is_invalid() {
    let mut server = server();
    let error = create(&mut server, deployment(-1)).unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    assert!(error.message.starts_with("Deployment.apps \"web\" is invalid: spec.replicas"), "{error}");

    let mut stranger = deployment(1);
    stranger["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    let error = create(&mut server, stranger).unwrap_err();
    assert!(error.message.contains("`selector` does not match template `labels`"), "{error}");
}

#[test]
fn a_pod_is_bound_once() {
    let mut server = server();
    let uid = create(&mut server, pod("a")).unwrap().uid;
    let bind = |node: &str| Request::Bind { pod: ObjectKey::namespaced("shop", "a"), uid, node: node.into() };
    let bound = server.handle(NOW, bind("n1")).unwrap();
    let body = bound.pod().unwrap();
    assert_eq!(body.node_name.as_deref(), Some("n1"));
    assert!(body.status.condition("PodScheduled").unwrap().is_true());
    let error = server.handle(NOW, bind("n2")).unwrap_err();
    assert!(error.message.contains("is already assigned to node \"n1\""), "{error}");
}

#[test]
fn bound_pods_get_the_zone_and_the_region_of_their_node_and_share_them() {
    let mut server = server();
    let labels = json!({"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r", "disk": "ssd"});
    let node = |name: &str, labels: &Value| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
    create(&mut server, node("n1", &labels)).unwrap();
    create(&mut server, node("n2", &labels)).unwrap();
    create(&mut server, node("plain", &json!({}))).unwrap();
    let labels: sk_apiserver::Labels = [("app".into(), "web".into())].into_iter().collect();
    let mut bound = Vec::new();
    for (name, node) in [("a", "n1"), ("b", "n2"), ("c", "plain"), ("d", "nowhere")] {
        let mut made = object(pod(name));
        made.meta.labels = labels.clone();
        let uid = server.handle(NOW, Request::create(made)).unwrap().uid;
        let key = ObjectKey::namespaced("shop", name);
        bound.push(server.handle(NOW, Request::Bind { pod: key, uid, node: node.into() }).unwrap());
    }
    let zone = |at: usize| bound[at].meta.labels.get("topology.kubernetes.io/zone").map(sk_core::SmolStr::as_str);
    assert_eq!([zone(0), zone(1), zone(2), zone(3)], [Some("a"), Some("a"), None, None]);
    assert_eq!(bound[0].meta.labels.len(), 3, "app, zone and region");
    assert!(bound[0].meta.labels.is_same(&bound[1].meta.labels), "pods of a template in one zone hold one map");
    assert!(bound[2].meta.labels.is_same(&labels));
}

#[test]
fn a_placed_pod_gets_grace_and_an_unplaced_one_goes_at_once() {
    let mut server = server();
    create(&mut server, pod("unplaced")).unwrap();
    assert!(delete(&mut server, &POD, "unplaced", DeleteOptions::default()).unwrap());
    assert_eq!(last_change(&server), Change::Deleted);

    let uid = create(&mut server, pod("placed")).unwrap().uid;
    let key = ObjectKey::namespaced("shop", "placed");
    server.handle(NOW, Request::Bind { pod: key.clone(), uid, node: "n1".into() }).unwrap();
    assert!(!delete(&mut server, &POD, "placed", DeleteOptions::default()).unwrap());
    let deletion = server.store().get(&POD, &key).unwrap().meta.deletion.unwrap();
    assert_eq!((deletion.grace_secs, deletion.at), (30, SimTime::from_secs(1_030)));

    let at_once = DeleteOptions { grace_secs: Some(0), ..DeleteOptions::default() };
    assert!(delete(&mut server, &POD, "placed", at_once).unwrap());
}

#[test]
fn an_evicted_pod_says_so() {
    let mut server = server();
    let uid = create(&mut server, pod("a")).unwrap().uid;
    let key = ObjectKey::namespaced("shop", "a");
    server.handle(NOW, Request::Bind { pod: key.clone(), uid, node: "n1".into() }).unwrap();
    let evicted = server.handle(NOW, Request::Evict { pod: key }).unwrap();
    assert!(evicted.is_deleting());
    let pod = evicted.pod().unwrap();
    assert_eq!(pod.status.phase, PodPhase::Pending);
    assert_eq!(pod.status.condition("DisruptionTarget").unwrap().reason(), "EvictionByEvictionAPI");
}

#[test]
fn finalizers_hold_an_object_until_the_last_is_gone() {
    let mut server = server();
    create(&mut server, deployment(1)).unwrap();
    let foreground = DeleteOptions { propagation: Propagation::Foreground, ..DeleteOptions::default() };
    assert!(!delete(&mut server, &DEPLOYMENT, "web", foreground).unwrap());
    let key = ObjectKey::namespaced("shop", "web");
    let mut held = Object::clone(server.store().get(&DEPLOYMENT, &key).unwrap());
    assert_eq!(*held.meta.finalizers, ["foregroundDeletion"]);
    held.meta.finalizers = [].into();
    server.handle(NOW, Request::update(held)).unwrap();
    assert!(server.store().get(&DEPLOYMENT, &key).is_none());
    assert_eq!(last_change(&server), Change::Deleted);
}

#[test]
fn a_deletion_meant_for_an_earlier_object_is_refused() {
    let mut server = server();
    let old = create(&mut server, pod("a")).unwrap().uid;
    delete(&mut server, &POD, "a", DeleteOptions::default()).unwrap();
    create(&mut server, pod("a")).unwrap();
    let options = DeleteOptions { uid: Some(old), ..DeleteOptions::default() };
    assert_eq!(delete(&mut server, &POD, "a", options).unwrap_err().reason, Reason::Conflict);
    assert_eq!(delete(&mut server, &POD, "b", options).unwrap_err().reason, Reason::NotFound);
}

#[test]
fn pods_get_the_defaults_that_placement_depends_on() {
    let mut server = server();
    let mut json = pod("a");
    json["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "2"}, "requests": {"memory": "1Gi"}});
    let pod = create(&mut server, json).unwrap();
    let spec = &pod.pod().unwrap().spec;
    assert_eq!(spec.requests().cpu_milli, 2000, "a limit without a request is the request");
    assert_eq!(spec.priority, Some(0));
    assert_eq!(spec.tolerations.len(), 2);
}

#[test]
fn a_priority_class_decides_unless_it_is_unknown_and_then_that_is_said() {
    let mut server = server();
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000,
    });
    create(&mut server, class).unwrap();
    let mut with_class = |name: &str, class: &str| {
        let mut json = pod(name);
        json["spec"]["priorityClassName"] = json!(class);
        create(&mut server, json).unwrap().pod().unwrap().spec.priority
    };
    assert_eq!(with_class("a", "high"), Some(1000));
    assert_eq!(with_class("b", "system-node-critical"), Some(2_000_001_000));
    assert_eq!(with_class("c", "missing"), Some(0));
    assert_eq!(server.notices().get(&Notice::UnknownPriorityClass("missing".into())), Some(&1));
}

#[test]
fn the_driver_may_annotate_a_pod_before_it_is_stored() {
    struct Stamp;
    impl AdmitPod for Stamp {
        fn admit(&mut self, pod: &mut Object, now: SimTime) {
            let annotations = pod.meta.annotations.make_mut();
            annotations.insert("stamped".into(), now.to_string().into());
        }

        fn fork(&self) -> Box<dyn AdmitPod> {
            Box::new(Self)
        }
    }
    let mut server = server();
    server.set_pod_hook(Box::new(Stamp));
    let pod = create(&mut server, pod("a")).unwrap();
    assert_eq!(pod.meta.annotations["stamped"], "1970-01-01T00:16:40Z");
}

#[test]
fn a_pod_applied_again_keeps_what_admission_made_of_it() {
    let mut server = server();
    let mut json = pod("a");
    json["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "2"}});
    let first = server.handle(NOW, Request::apply(object(json.clone()))).unwrap();
    let again = server.handle(NOW, Request::apply(object(json.clone()))).unwrap();
    assert_eq!(again.resource_version, first.resource_version, "saying the same again changes nothing");
    json["metadata"]["labels"] = json!({"team": "a"});
    let labelled = server.handle(NOW, Request::apply(object(json))).unwrap();
    assert_eq!(labelled.pod().unwrap().spec.requests().cpu_milli, 2000);
    assert_eq!(labelled.meta.labels["team"], "a");
}

#[test]
fn a_namespace_applied_again_still_waits_for_its_content() {
    let mut server = server();
    let json = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "a"}}});
    server.handle(NOW, Request::apply(object(json))).unwrap();
    assert!(!delete(&mut server, &NAMESPACE, "shop", DeleteOptions::default()).unwrap(), "it is emptied first");
}

#[test]
fn names_and_requests_that_cannot_be_are_invalid() {
    let mut server = server();
    for name in ["Upper", "a/b", "-a", &"a".repeat(300)] {
        assert_eq!(create(&mut server, pod(name)).unwrap_err().reason, Reason::Invalid, "{name}");
    }
    let mut json = pod("a");
    json["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "-1"}});
    let error = create(&mut server, json).unwrap_err();
    assert!(error.message.contains("must be greater than or equal to 0"), "{error}");
}

#[test]
fn a_full_store_refuses_instead_of_growing_for_ever() {
    let mut server = server();
    let template = object(json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"generateName": "w", "namespace": "shop"},
    }));
    let refused = (0..2_000_000).find_map(|number: u32| {
        let widget = template.clone().with_key(ObjectKey::namespaced("shop", number.to_string()));
        server.handle(NOW, Request::create(widget)).err()
    });
    let error = refused.expect("the bound is below two million");
    assert_eq!(error.reason, Reason::Forbidden);
    assert!(error.message.contains("at most 1048576 objects"), "{error}");
    assert_eq!(server.store().all().count(), 1 << 20);
}
