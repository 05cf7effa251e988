//! What keeps a pod off, in kube-scheduler's words.

use serde_json::json;
use sk_core::SmolStr;
use sk_scheduler::cluster::objects::{StorageClass, Volume, VolumeClaim};

use crate::support::{World, all, asks, in_zone, no_victims, node, not_helpful, pod};

#[test]
fn each_filter_says_why_in_kube_schedulers_words() {
    let taint = json!([{"key": "k", "effect": "NoSchedule"}]);
    let cases = [
        (json!({"spec": {"unschedulable": true}}), json!({}), "node(s) were unschedulable"),
        (json!({"spec": {"taints": taint}}), json!({}), "node(s) had untolerated taint(s)"),
        (json!({}), json!({"nodeSelector": {"disk": "ssd"}}), "node(s) didn't match Pod's node affinity/selector"),
        (json!({}), json!({"nodeName": "other"}), "node(s) didn't match the requested node name"),
        (json!({"status": {"allocatable": {"cpu": "1"}}}), asks("2", "1Gi"), "Insufficient cpu"),
    ];
    for (node_with, spec, words) in cases {
        let mut world = World::new([node("a", node_with)]);
        let said = world.place(&pod("p", json!({}), spec));
        assert_eq!(said, format!("0/1 nodes are available: 1 {words}.{}", not_helpful(1)));
    }
}

#[test]
fn everything_that_is_missing_is_named_and_counted() {
    let small = json!({"status": {"allocatable": {"cpu": "4", "memory": "1Gi", "pods": "0"}}});
    let mut world = World::new([node("a", small), node("b", json!({}))]);
    let mut wish = asks("2", "2Gi");
    wish["containers"][0]["resources"]["requests"]["example.com/gpu"] = json!("1");
    wish["containers"][0]["resources"]["requests"]["ephemeral-storage"] = json!("1Gi");
    let said = world.place(&pod("p", json!({}), wish));
    let words =
        "1 Insufficient memory, 1 Too many pods, 2 Insufficient ephemeral-storage, 2 Insufficient example.com/gpu";
    assert_eq!(said, format!("0/2 nodes are available: {words}.{}", not_helpful(2)));
}

#[test]
fn init_containers_sidecars_overhead_and_limits_count_as_kubernetes_counts_them() {
    let container = |cpu: &str| json!({"name": cpu, "image": "x", "resources": {"requests": {"cpu": cpu}}});
    let mut sidecar = container("500m");
    sidecar["restartPolicy"] = json!("Always");
    let limit = json!({"name": "l", "image": "x", "resources": {"limits": {"cpu": "2"}}});
    let cases = [
        // The largest init container with the sidecar before it: 500m + 3 against 500m + 1.
        (json!({"containers": [container("1")], "initContainers": [sidecar, container("3")]}), 3500),
        (json!({"containers": [container("1")], "initContainers": [container("3")]}), 3000),
        (json!({"containers": [container("1"), container("1")], "overhead": {"cpu": "250m"}}), 2250),
        (json!({"containers": [limit]}), 2000),
        (json!({"containers": [container("1")], "resources": {"requests": {"cpu": "3"}}}), 3000),
    ];
    for (spec, expected) in cases {
        let class = sk_scheduler::PodClass::from_pod(&pod("p", json!({}), spec.clone())).unwrap();
        assert_eq!(class.shape.requests.cpu, expected, "{spec}");
    }
}

#[test]
fn a_host_port_is_taken_once_unless_addresses_differ() {
    let port = |ip: &str, number: i64| json!({"containers": [{"name": "m", "image": "x", "ports": [{"hostPort": number, "hostIP": ip, "containerPort": 1}]}]});
    let mut world = World::new([node("a", json!({}))]);
    assert_eq!(world.place(&pod("first", json!({}), port("10.0.0.1", 80))), "a");
    assert_eq!(world.place(&pod("other-address", json!({}), port("10.0.0.2", 80))), "a");
    assert_eq!(world.place(&pod("other-port", json!({}), port("", 81))), "a");
    let said = world.place(&pod("every-address", json!({}), port("", 80)));
    let words = "1 node(s) didn't have free ports for the requested pod ports";
    assert_eq!(said, format!("0/1 nodes are available: {words}.{}", no_victims(1)));
    let first = world.pods["first"];
    world.cluster().remove_pod(first);
    assert_eq!(world.place(&pod("again", json!({}), port("10.0.0.1", 80))), "a");
}

#[test]
fn terms_that_name_nodes_limit_the_search_to_them() {
    let by_name = |names: &[&str]| {
        let terms: Vec<_> = names
            .iter()
            .map(|name| json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}))
            .collect();
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
    };
    let mut world = World::new([node("a", json!({})), node("b", json!({}))]);
    assert_eq!(world.place(&pod("p", json!({}), by_name(&["b"]))), "b");
    let said = world.place(&pod("q", json!({}), by_name(&["c"])));
    assert_eq!(
        said,
        format!("0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity].{}", not_helpful(2))
    );
    let mut world = World::new([node("a", json!({"status": {"allocatable": {"cpu": "1"}}})), node("b", json!({}))]);
    let said = world.place(&pod("r", json!({}), all([by_name(&["a"]), asks("2", "1Gi")])));
    let words = "1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]";
    assert_eq!(said, format!("0/2 nodes are available: {words}.{}", not_helpful(2)));
}

fn claimed(name: &str) -> serde_json::Value {
    json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]})
}

fn claim(volume: Option<&str>, class: Option<&str>) -> VolumeClaim {
    let text = |text: Option<&str>| text.map(SmolStr::from);
    VolumeClaim { volume: text(volume), bound: volume.is_some(), storage_class: text(class), ..VolumeClaim::default() }
}

#[test]
fn a_bound_claim_keeps_its_pod_where_its_volume_is() {
    let mut world = World::new([in_zone("a", "x"), in_zone("b", "y")]);
    let key = |name: &str| ("default".into(), name.into());
    let zonal = Volume { labels: [("topology.kubernetes.io/zone".into(), "y".into())].into(), ..Volume::default() };
    world.cluster().objects.set_volume("zonal", Some(zonal));
    world.cluster().objects.set_claim(key("zonal"), Some(claim(Some("zonal"), None)));
    world.cluster().objects.set_claim(key("lost"), Some(claim(Some("nowhere"), None)));
    world.cluster().objects.set_claim(key("later"), Some(claim(None, Some("wait"))));
    world.cluster().objects.set_claim(key("now"), Some(claim(None, Some("immediate"))));
    let wait = StorageClass { waits_for_consumer: true, ..StorageClass::default() };
    world.cluster().objects.set_storage_class("wait", Some(wait));
    world.cluster().objects.set_storage_class("immediate", Some(StorageClass::default()));
    assert_eq!(world.place(&pod("p", json!({}), claimed("zonal"))), "b");
    assert_eq!(world.place(&pod("q", json!({}), claimed("later"))), "a");
    let cases = [
        ("now", "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."),
        ("missing", "0/2 nodes are available: persistentvolumeclaim \"missing\" not found."),
        ("lost", "0/2 nodes are available: persistentvolume \"nowhere\" not found."),
    ];
    for (name, words) in cases {
        // DynamicResources had no turn at PreFilter, does not find its state after it, and says so.
        assert_eq!(world.place(&pod(name, json!({}), claimed(name))), format!("{words} not found"));
    }
}

#[test]
fn without_nodes_there_is_nothing_to_say_but_that() {
    let mut world = World::new([]);
    assert_eq!(world.place(&pod("p", json!({}), json!({}))), "no nodes available to schedule pods");
    assert_eq!(world.place(&pod("q", json!({}), json!({"schedulerName": "other"}))), "no profile");
}
