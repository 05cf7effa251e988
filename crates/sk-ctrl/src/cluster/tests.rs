//! Tests against an API server that answers from a table and records the changes.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::json;

use super::*;
use crate::settings::Settings;

/// What was changed: the method, the path, the body.
type Changes = Arc<Mutex<Vec<(Method, String, Value)>>>;

/// An API server that knows these paths: a body, or the code of a refusal. Whatever else is read is not there, and every
/// change succeeds.
fn cluster(known: &[(&str, Result<Value, u16>)]) -> (Cluster, Changes) {
    let known: Vec<_> = known.iter().map(|(path, answer)| ((*path).to_owned(), answer.clone())).collect();
    let changes = Changes::default();
    let written = changes.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (known, written) = (known.clone(), written.clone());
        async move {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            if method != Method::GET {
                let body = request.into_body().collect_bytes().await.unwrap();
                let body: Value = serde_json::from_slice(&body).unwrap();
                let echo =
                    if method == Method::POST { body.clone() } else { json!({"kind": "Status", "status": "Success"}) };
                written.lock().unwrap().push((method, path, body));
                return Ok::<_, Infallible>(answer(200, &echo));
            }
            let found = known.iter().find(|(known, _)| *known == path).map_or(Err(404), |(_, answer)| answer.clone());
            Ok(found.map_or_else(refusal, |body| answer(200, &body)))
        }
    });
    (Cluster::new(Client::new(service, "default")), changes)
}

fn refusal(code: u16) -> Response<Body> {
    let reason = if code == 403 { "Forbidden" } else { "NotFound" };
    let body = json!({"kind": "Status", "status": "Failure", "message": "no", "reason": reason, "code": code});
    answer(code, &body)
}

fn answer(code: u16, body: &Value) -> Response<Body> {
    Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap()
}

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/simkube/leases/sk-lease";
const HOLDER: &str = "/apis/simkube.io/v1/simulations/b";

fn held_by_b() -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "sk-lease", "uid": "u", "resourceVersion": "7"}, "spec": {"holderIdentity": "b"},
    })
}

#[tokio::test]
async fn a_lease_whose_holder_exists_is_never_dropped() {
    let metadata = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "b"}});
    let (cluster, changes) = cluster(&[(LEASE, Ok(held_by_b())), (HOLDER, Ok(metadata))]);
    cluster.take_lease("simkube", "a").await.unwrap();
    assert_eq!(*changes.lock().unwrap(), []);
}

#[tokio::test]
async fn a_lease_whose_holder_is_gone_is_dropped_only_as_it_was_seen() {
    let (cluster, changes) = cluster(&[(LEASE, Ok(held_by_b()))]);
    cluster.take_lease("simkube", "a").await.unwrap();
    let changes = changes.lock().unwrap();
    let [(first, _, dropped), (second, _, taken)] = &changes[..] else { panic!("two changes, not {changes:?}") };
    assert_eq!((first, second), (&Method::DELETE, &Method::POST));
    assert_eq!(dropped["preconditions"], json!({"uid": "u", "resourceVersion": "7"}));
    assert_eq!(taken["spec"]["holderIdentity"], "a");
}

#[tokio::test]
async fn a_lease_that_a_driver_renews_is_not_dropped_and_the_driver_is_named() {
    let now = micro_now();
    let held = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "sk-lease", "uid": "u", "resourceVersion": "7"},
        "spec": {"holderIdentity": "demo-1", "renewTime": now, "leaseDurationSeconds": 15},
    });
    let theirs = "/apis/coordination.k8s.io/v1/namespaces/default/leases/sk-lease";
    for (path, namespace) in [(LEASE, "simkube"), (theirs, "default")] {
        let (cluster, changes) = cluster(&[(path, Ok(held.clone()))]);
        let wanted = LeaseHolder { holder: "demo-1".to_owned(), namespace: namespace.to_owned() };
        assert_eq!(cluster.other_driver("simkube").await.unwrap(), Some(wanted));
        if path == LEASE {
            cluster.take_lease("simkube", "a").await.unwrap();
        }
        assert_eq!(*changes.lock().unwrap(), []);
    }
    let (nobody, _) = cluster(&[(LEASE, Ok(held_by_b()))]);
    assert_eq!(nobody.other_driver("simkube").await.unwrap(), None);
}

#[tokio::test]
async fn what_a_driver_without_a_controller_has_made_is_not_the_simulations() {
    let object = |name: &str, uid: &str, owner: Option<&str>| {
        let owner = owner.map(|uid| json!({"apiVersion": "v1", "kind": "SimulationRoot", "name": "r", "uid": uid}));
        let labels = json!({names::SIMULATION_LABEL: "a", names::COMPONENT_LABEL: names::DRIVER});
        let metadata = json!({"name": name, "uid": uid, "labels": labels, "ownerReferences": Vec::from_iter(owner)});
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata})
    };
    let list = |items: Vec<Value>| json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": items});
    let roots = list(vec![object("theirs", "1", None), object("ours", "2", Some("gone"))]);
    let namespaces = list(vec![object("of-theirs", "3", Some("1")), object("of-ours", "4", Some("2"))]);
    let known = [("/apis/simkube.io/v1/simulationroots", Ok(roots)), ("/api/v1/namespaces", Ok(namespaces))];
    let (cluster, _) = cluster(&known);
    let left: Vec<_> = cluster.left("a").await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(left, ["SimulationRoot ours", "Namespace of-ours"]);
}

#[tokio::test]
async fn what_the_controller_has_no_right_to_is_not_offered() {
    let simulation = json!({
        "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "a"},
        "spec": {"driver": {"tracePath": "/a", "certManagerIssuer": "i"}, "metrics": {"namespace": "m"}},
    });
    let simulation = serde_json::from_value(simulation).unwrap();
    let settings = Settings::in_namespace("simkube", "sk-driver:1");
    let plan = Plan { simulation: &simulation, settings: &settings, root_uid: "" };
    let (group, prometheus) =
        ("/apis/monitoring.coreos.com/v1", "/apis/monitoring.coreos.com/v1/namespaces/m/prometheuses/sk-a-prom");
    let kinds = json!({"kind": "APIResourceList", "groupVersion": "monitoring.coreos.com/v1", "resources": []});
    for (known, wanted) in [
        (vec![], Offer::Absent),
        (vec![(group, Ok(kinds.clone()))], Offer::Open),
        (vec![(group, Ok(kinds)), (prometheus, Err(403))], Offer::Forbidden),
    ] {
        let (cluster, _) = cluster(&known);
        assert_eq!(cluster.offers(&plan, Part::Metrics).await.unwrap(), wanted);
    }
}
