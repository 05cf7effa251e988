//! Beside Karpenter with its KWOK provider: it makes nodes for what is replayed and removes them when the replay is over,
//! and the two leave each other's nodes alone.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use sk_api::Scenario;
use sk_api::simulation::names;
use sk_record::Run;
use sk_testkit::control_plane::eventually;
use sk_testkit::{Component, Options, objects};

use super::fixture::{Fixture, LIMIT};
use super::recording::interrupt;
use super::simulation::stages;

/// Karpenter's pool; the record calls the group of its nodes so.
const POOL: &str = "spare";
const POOL_LABEL: &str = "karpenter.sh/nodepool";

/// One node of SimKube's own, with room for one of the replayed pods.
const SCENARIO: &str = "apiVersion: simkube.io/v1
kind: Scenario
cluster:
  groups:
    simkubes-own: {min: 1, max: 1, cpu: 1, memory: 4Gi, ready: 0s}
";
const OWN_GROUP: &str = "simkubes-own";
const OWN_NODE: &str = "simkubes-own-1";

const REPLICAS: u32 = 6;

/// The driver as a program of this machine; killed when the story is over, however it ends.
struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn karpenter_makes_nodes_for_a_replay_and_removes_them_when_it_is_over() {
    // SimKube's kinds are there already, as after an installation; the driver would bring them otherwise.
    let kinds = sk_api::simulation::crds().into_iter().map(|kind| serde_json::to_value(kind).expect("JSON"));
    let options = Options::default().karpenter().kinds(kinds).service_account_admission();
    let fixture = Fixture::start_with(options, &stages()).await;
    let scenario = Scenario::parse("own.yaml", SCENARIO).expect("the scenario is well-formed");
    let own = sk_driver::nodes::from_scenario(&scenario).into_iter().map(objects::object);
    fixture.cluster.create_nodes(own).await.expect("KWOK makes SimKube's node ready");
    for object in [node_class(), node_pool()] {
        fixture.cluster.create(&objects::object(object)).await.expect("Karpenter's kinds are served");
    }

    let mut driver = start_driver(&fixture);
    let mut placed = placed(&fixture).await;
    assert_eq!(placed.remove(OWN_NODE), Some(1), "SimKube's node is full: {placed:?}");
    let nodes: Api<Node> = Api::all(fixture.cluster.client());
    for name in placed.keys() {
        let node = nodes.get(name).await.expect("a node with pods stays");
        let labels = node.metadata.labels.as_ref().expect("nodes have labels");
        assert_eq!(labels.get(POOL_LABEL).map(String::as_str), Some(POOL), "{name} is Karpenter's");
        assert!(!labels.contains_key("simkube.io/node-group"), "{name} is not taken for one of SimKube's");
        assert_eq!(taints(&node), [names::NODE_TAINT], "{name} is for replayed pods alone");
    }

    // The replay would go on for an hour; what there was to see has been seen.
    interrupt(&driver.0);
    assert_eq!(driver.0.wait().expect("it ends").code(), Some(130));
    the_record_tells_whose_nodes_the_pods_were_on(&fixture, placed.keys());

    let of_karpenter = ListParams::default().labels(&format!("{POOL_LABEL}={POOL}"));
    eventually("Karpenter to remove its nodes", LIMIT, || async {
        Ok(nodes.list(&of_karpenter).await?.items.is_empty().then_some(()))
    })
    .await
    .expect("nodes without pods go");
    let own = nodes.get(OWN_NODE).await.expect("SimKube's node is not Karpenter's to remove");
    assert_eq!(taints(&own), [names::NODE_TAINT]);
    let log = std::fs::read_to_string(fixture.cluster.log(Component::Karpenter)).expect("Karpenter has a log");
    assert!(!log.contains(OWN_NODE), "Karpenter leaves SimKube's node alone");
}

fn the_record_tells_whose_nodes_the_pods_were_on<'n>(fixture: &Fixture, hosts: impl Iterator<Item = &'n String>) {
    let run = Run::open(&fixture.path("run")).expect("the record is whole");
    let mut pods: BTreeMap<_, u32> = BTreeMap::new();
    for pod in run.pods().expect("pods are in it").map(|row| row.expect("a row")) {
        assert!(pod.started.is_some(), "{pod:?}");
        *pods.entry(pod.group).or_default() += 1;
    }
    let expected = [(OWN_GROUP, 1), (POOL, REPLICAS - 1)].map(|(group, count)| (Some(group.to_owned()), count));
    assert_eq!(pods, BTreeMap::from(expected));
    let groups: BTreeMap<_, _> =
        run.nodes().expect("nodes are in it").map(|row| row.expect("a row")).map(|row| (row.name, row.group)).collect();
    for host in hosts {
        assert_eq!(groups.get(host), Some(&Some(POOL.to_owned())), "{groups:?}");
    }
}

/// Replays a Deployment that does not fit on SimKube's node.
fn start_driver(fixture: &Fixture) -> Driver {
    let web = objects::deployment().name("web").namespace("shop").replicas(REPLICAS).requests("1", "64Mi");
    let (start, end) = ("2026-01-05T09:00:00Z", "2026-01-05T10:00:00Z");
    let lives = json!([{"lives": [{"start": start, "end": end}]}]);
    let lines = [
        json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {}}}),
        json!({"at": start, "apply": web.as_value()}),
        json!({"at": end, "mark": "moment"}),
        json!({"lives": {"owner": {"gvk": "apps/v1.Deployment", "key": "shop/web"}, "templates": lives}}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(fixture.path("trace.jsonl"), text).expect("a temporary folder can be written to");
    let simulation = json!({
        "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "beside-karpenter"},
        "spec": {"driver": {"tracePath": fixture.path("trace.jsonl")}},
    });
    std::fs::write(fixture.path("simulation.yaml"), simulation.to_string()).expect("a temporary folder");
    let program = sk_testkit::programs::built("sk-driver", &assert_cmd::cargo::cargo_bin("skctl"));
    let child = Command::new(program)
        .current_dir(fixture.dir.path())
        .args(["run", "--webhook-url", "https://127.0.0.1", "--bind", "127.0.0.1:0", "-f", "simulation.yaml"])
        .args(["--out", "run", "--kubeconfig"])
        .arg(fixture.cluster.kubeconfig())
        .stdout(Stdio::null())
        .spawn();
    Driver(child.expect("the driver starts"))
}

/// Waits until all replayed pods run and the driver, who then writes when they will end, has seen it; how many are on
/// which node.
async fn placed(fixture: &Fixture) -> BTreeMap<String, u32> {
    let pods: Api<Pod> = Api::namespaced(fixture.cluster.client(), "virtual-shop");
    let seen_running = ListParams::default().labels(&format!("{}=true", names::COMPLETE_LABEL));
    eventually("all replayed pods to run", LIMIT, || async {
        let mut placed = BTreeMap::new();
        for pod in pods.list(&seen_running).await?.items {
            let node = pod.spec.and_then(|spec| spec.node_name).expect("a pod that runs is on a node");
            *placed.entry(node).or_default() += 1;
        }
        Ok((placed.values().sum::<u32>() == REPLICAS).then_some(placed))
    })
    .await
    .expect("Karpenter makes nodes for those that find none")
}

fn taints(node: &Node) -> Vec<&str> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.into_iter().flatten().map(|taint| taint.key.as_str()).collect()
}

fn node_class() -> Value {
    json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}})
}

/// What docs/cluster.md tells users to give a pool: the label and the taint of virtual nodes.
fn node_pool() -> Value {
    let (label, virtual_node) = names::NODE_SELECTOR;
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": POOL},
        "spec": {
            "template": {
                "metadata": {"labels": {label: virtual_node}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                    "taints": [{"key": names::NODE_TAINT, "value": "true", "effect": "NoSchedule"}],
                    "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}],
                },
            },
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s"},
        },
    })
}
