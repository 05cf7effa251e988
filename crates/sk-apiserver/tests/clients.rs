//! What clients of the HTTP API see beyond the recorded requests: pages and watches that come too late, bookmarks, the two
//! events of a pod that goes at once, custom kinds in a replay.

use serde_json::{Value, json};
use sk_apiserver::rest::{Call, Method, Reply};
use sk_apiserver::{ApiServer, Notice, Object, Request, Rules};
use sk_core::{Gvk, ObjectKey, SimTime};

const NOW: SimTime = SimTime::from_secs(1_000);
const CONFIGS: &str = "/api/v1/namespaces/shop/configmaps";

fn object(json: Value) -> Object {
    Object::from_json(json).expect("the test's object is well-formed")
}

fn with_namespace(mut server: ApiServer) -> ApiServer {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    server.handle(NOW, Request::create(object(namespace))).expect("a namespace needs nothing else");
    server
}

fn strict() -> ApiServer {
    with_namespace(ApiServer::new(1).strict())
}

fn send(server: &mut ApiServer, method: Method, path: &str, body: &Value) -> Reply {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let content_type = if method == Method::Patch { "application/merge-patch+json" } else { "application/json" };
    server.serve(NOW, &Call { method, path: path.to_owned(), content_type: content_type.to_owned(), body })
}

fn get(server: &mut ApiServer, path: &str) -> Reply {
    send(server, Method::Get, path, &Value::Null)
}

fn create(server: &mut ApiServer, path: &str, body: &Value) -> Value {
    let reply = send(server, Method::Post, path, body);
    assert_eq!(reply.code, 201, "{}", reply.body);
    reply.body
}

fn config(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"a": name}}})
}

fn version(server: &ApiServer) -> u64 {
    server.store().resource_version()
}

fn types(events: &Value) -> Vec<&str> {
    events.as_array().expect("a watch answers with events").iter().filter_map(|event| event["type"].as_str()).collect()
}

#[test]
fn a_watch_and_a_page_that_come_too_late_are_told_to_list_again() {
    let mut server = strict();
    for name in ["a", "b", "c"] {
        create(&mut server, CONFIGS, &config(name));
    }
    let first = get(&mut server, &format!("{CONFIGS}?limit=1")).body;
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    create(&mut server, CONFIGS, &config("d"));
    let (since, now) = (version(&server) - 1, version(&server));
    server.reclaim(now);
    server.forget(now);
    let late = get(&mut server, &format!("{CONFIGS}?watch=true&resourceVersion={}", since - 1));
    assert_eq!((late.code, &late.body[0]["type"]), (200, &json!("ERROR")));
    let status = &late.body[0]["object"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")));
    assert!(status["message"].as_str().unwrap().starts_with("too old resource version: "), "{status}");
    let page = get(&mut server, &format!("{CONFIGS}?limit=1&continue={token}"));
    assert_eq!((page.code, &page.body["reason"]), (410, &json!("Expired")));
}

#[test]
fn a_bookmark_says_how_far_a_watch_has_come() {
    let mut server = strict();
    let since = version(&server);
    create(&mut server, CONFIGS, &config("a"));
    let path = format!("{CONFIGS}?watch=true&resourceVersion={since}");
    assert_eq!(types(&get(&mut server, &path).body), ["ADDED"]);
    let marked = get(&mut server, &format!("{path}&allowWatchBookmarks=true")).body;
    assert_eq!(types(&marked), ["ADDED", "BOOKMARK"]);
    let expected = json!({"kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"resourceVersion": version(&server).to_string()}});
    assert_eq!(marked[1]["object"], expected);
}

#[test]
fn a_pod_that_goes_at_once_is_seen_to_be_deleted_before_it_is_gone() {
    let mut server = strict();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "i"}]}});
    create(&mut server, "/api/v1/namespaces/shop/pods", &pod);
    let since = version(&server);
    assert_eq!(send(&mut server, Method::Delete, "/api/v1/namespaces/shop/pods/p", &Value::Null).code, 200);
    let events = get(&mut server, &format!("/api/v1/namespaces/shop/pods?watch=true&resourceVersion={since}")).body;
    assert_eq!(types(&events), ["MODIFIED", "DELETED"]);
    assert_eq!(events[0]["object"]["metadata"]["deletionGracePeriodSeconds"], 0);
}

#[test]
fn what_is_being_deleted_gets_no_new_finalizers() {
    let mut server = strict();
    let mut kept = config("kept");
    kept["metadata"]["finalizers"] = json!(["example.com/a"]);
    create(&mut server, CONFIGS, &kept);
    send(&mut server, Method::Delete, &format!("{CONFIGS}/kept"), &Value::Null);
    let more = json!({"metadata": {"finalizers": ["example.com/a", "example.com/b"]}});
    let refused = send(&mut server, Method::Patch, &format!("{CONFIGS}/kept"), &more);
    assert_eq!(
        refused.body["message"],
        "ConfigMap \"kept\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
         being deleted, found new finalizers []string{\"example.com/b\"}"
    );
}

#[test]
fn an_eviction_that_a_budget_does_not_allow_says_how_many_are_needed() {
    let mut server = strict();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"app": "web"}},
        "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "i"}]}});
    create(&mut server, "/api/v1/namespaces/shop/pods", &pod);
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    send(&mut server, Method::Patch, "/api/v1/namespaces/shop/pods/p/status", &running);
    let budgets = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets";
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    create(&mut server, budgets, &budget);
    let counted = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": 0, "desiredHealthy": 1,
        "currentHealthy": 1, "expectedPods": 1}});
    send(&mut server, Method::Patch, &format!("{budgets}/b/status"), &counted);
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let refused = send(&mut server, Method::Post, "/api/v1/namespaces/shop/pods/p/eviction", &eviction);
    assert_eq!(refused.code, 429);
    let cause = json!({"reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods and has 1 currently"});
    assert_eq!(refused.body["details"]["causes"], json!([cause]));
}

fn definition(scope: &str, has_status: bool) -> Value {
    let subresources = if has_status { json!({"status": {}}) } else { json!({}) };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgetry.example.com"},
        "spec": {
            "group": "example.com", "scope": scope, "names": {"plural": "gadgetry", "kind": "Gadget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "size": {"type": "integer", "default": 3, "maximum": 5},
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

fn gadget(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": spec})
}

/// A replay's server, with a definition.
fn replaying(rules: Rules, definition: Value) -> ApiServer {
    let mut server = with_namespace(ApiServer::new(1));
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
    server.handle(NOW, Request::create(object(namespace))).expect("a namespace needs nothing else");
    server.set_rules(rules);
    server.handle(NOW, Request::apply(object(definition))).expect("the definition is well-formed");
    server
}

#[test]
fn a_replay_puts_custom_objects_where_their_definition_says_and_writes_its_defaults() {
    let find = |server: &ApiServer, key: ObjectKey| {
        server.store().get(&Gvk::new_static("example.com", "v1", "Gadget"), &key).map(|gadget| gadget.to_json())
    };
    let mut server = replaying(Rules::Recorded, definition("Namespaced", true));
    server.handle(NOW, Request::apply(object(gadget(&json!({"other": 1}))))).unwrap();
    let stored = find(&server, ObjectKey::namespaced("default", "g")).expect("it has a namespace now");
    assert_eq!(stored["spec"], json!({"other": 1, "size": 3}), "what was recorded is not pruned");
    let mut server = replaying(Rules::Recorded, definition("Cluster", true));
    let mut misplaced = gadget(&json!({}));
    misplaced["metadata"]["namespace"] = "shop".into();
    server.handle(NOW, Request::apply(object(misplaced))).unwrap();
    assert!(find(&server, ObjectKey::cluster("g")).is_some());
}

#[test]
fn the_status_of_a_custom_object_is_its_own_only_where_the_definition_says_so() {
    for (has_status, generation, phase) in [(true, 1, json!(null)), (false, 2, json!("Up"))] {
        let mut server = replaying(Rules::Recorded, definition("Namespaced", has_status));
        server.handle(NOW, Request::create(object(gadget(&json!({}))))).unwrap();
        let mut changed = gadget(&json!({}));
        changed["status"] = json!({"phase": "Up"});
        let updated = server.handle(NOW, Request::update(object(changed))).unwrap();
        assert_eq!((updated.meta.generation, &updated.to_json()["status"]["phase"]), (generation, &phase));
    }
}

#[test]
fn a_custom_object_that_people_wrote_is_pruned_and_refused_by_its_schema() {
    let mut server = replaying(Rules::Written, definition("Namespaced", true));
    let pruned = server.handle(NOW, Request::apply(object(gadget(&json!({"other": 1}))))).unwrap();
    assert_eq!(pruned.to_json()["spec"], json!({"size": 3}));
    let refused = server.handle(NOW, Request::apply(object(gadget(&json!({"size": 6}))))).unwrap_err();
    assert_eq!(
        refused.message,
        "Gadget.example.com \"g\" is invalid: spec.size: Invalid value: 6: spec.size in body should be less than or \
         equal to 5"
    );
}

#[test]
fn a_definition_with_rules_that_nobody_asks_is_named() {
    let mut ruled = definition("Namespaced", true);
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    ruled.pointer_mut(spec).expect("the test's definition has a spec")["x-kubernetes-validations"] =
        json!([{"rule": "self.size > 1"}]);
    let named = Notice::UnaskedRules("gadgetry.example.com".into());
    assert!(!replaying(Rules::Recorded, definition("Namespaced", true)).notices().contains_key(&named));
    assert_eq!(replaying(Rules::Recorded, ruled).notices().get(&named), Some(&1));
}

#[test]
fn what_is_only_tried_changes_nothing() {
    let mut server = strict();
    create(&mut server, CONFIGS, &config("a"));
    let before = version(&server);
    for (method, path, body) in [
        (Method::Post, format!("{CONFIGS}?dryRun=All"), config("b")),
        (Method::Patch, format!("{CONFIGS}/a?dryRun=All"), json!({"data": {"a": "b"}})),
        (Method::Delete, format!("{CONFIGS}/a?dryRun=All"), Value::Null),
        (Method::Delete, format!("{CONFIGS}/a"), json!({"dryRun": ["All"]})),
        (Method::Delete, format!("{CONFIGS}?dryRun=All"), Value::Null),
    ] {
        let reply = send(&mut server, method, &path, &body);
        assert!(reply.code < 300, "{path}: {}", reply.body);
    }
    assert_eq!(version(&server), before);
}

#[test]
fn a_custom_kind_is_called_by_the_plural_of_its_definition() {
    let mut server = strict();
    create(&mut server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition("Namespaced", true));
    let path = "/apis/example.com/v1/namespaces/shop/gadgetry";
    let missing = get(&mut server, &format!("{path}/none")).body;
    assert_eq!(missing["message"], "gadgetry.example.com \"none\" not found");
    assert_eq!(get(&mut server, path).body["kind"], "GadgetList");
}
