//! A user's own KubeSchedulerConfiguration: in the scenario, in a file, on the command line.

mod support;

use std::collections::BTreeMap;

use predicates::str::contains;
use support::{folder, skctl, write};
use tempfile::TempDir;

/// Two nodes, whatever happens.
const NODES: &str = "apiVersion: simkube.io/v1
kind: Scenario
cluster:
  groups:
    fixed: {min: 2, max: 2, cpu: 8, memory: 32Gi}
";

/// Packs instead of spreading. The leader election has no meaning here.
const PACKER: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true}
profiles:
  - schedulerName: default-scheduler
    plugins: {score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit}]}}
    pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
";

fn deployment(name: &str, scheduler: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: shop}}
spec:
  replicas: 4
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      schedulerName: {scheduler}
      containers: [{{name: main, image: x, resources: {{requests: {{cpu: '1', memory: 1Gi}}}}}}]
---
"
    )
}

/// A folder with a trace of one deployment for each of these schedulers.
fn shop(schedulers: &[&str]) -> TempDir {
    let dir = folder();
    let trace: String = schedulers.iter().map(|name| deployment(&format!("web-{name}"), name)).collect();
    write(&dir, "shop.yaml", trace);
    write(&dir, "nodes.yaml", NODES);
    write(&dir, "packer.yaml", PACKER);
    dir
}

fn run(dir: &TempDir, more: &[&str]) -> assert_cmd::assert::Assert {
    let args = ["run", "shop.yaml", "-D", "5m", "-O", "runs/shop", "-f"];
    skctl(dir).args(args).args(more).assert()
}

/// How many pods of the deployments that were for this scheduler were on each node.
fn spread(dir: &TempDir, scheduler: &str) -> Vec<usize> {
    let run = sk_record::Run::open(&dir.path().join("runs/shop")).expect("the run is there");
    let mut nodes: BTreeMap<String, usize> = BTreeMap::new();
    for pod in run.pods().expect("it has pods").map(|row| row.expect("a row")) {
        if let Some(node) = pod.node.filter(|_| pod.owner.ends_with(&format!("web-{scheduler}"))) {
            *nodes.entry(node).or_default() += 1;
        }
    }
    nodes.into_values().collect()
}

/// The run as a whole.
fn meta(dir: &TempDir) -> sk_record::RunMeta {
    sk_record::Run::open(&dir.path().join("runs/shop")).expect("the run is there").meta().clone()
}

#[test]
fn a_scheduler_configuration_beside_the_scenario_decides_where_pods_go() {
    let dir = shop(&["default-scheduler"]);
    run(&dir, &["nodes.yaml"]).success();
    assert_eq!(spread(&dir, "default-scheduler"), [2, 2]);
    std::fs::create_dir(dir.path().join("what-if")).unwrap();
    write(&dir, "what-if/packed.yaml", format!("{NODES}scheduler: packer.yaml\n"));
    write(&dir, "what-if/packer.yaml", PACKER);
    std::fs::remove_file(dir.path().join("packer.yaml")).unwrap();
    run(&dir, &["what-if/packed.yaml"]).success();
    assert_eq!(spread(&dir, "default-scheduler"), [4]);
    let warnings = format!("{:?}", meta(&dir).warnings);
    assert!(warnings.contains("leaderElection: there is one scheduler"), "{warnings}");
    let own = std::fs::read_to_string(dir.path().join("runs/shop/scenario.yaml")).unwrap();
    assert!(own.contains("MostAllocated"), "the run's own scenario says all: {own}");
}

#[test]
fn a_scheduler_configuration_can_be_set_on_the_command_line_and_in_place() {
    let dir = shop(&["default-scheduler"]);
    run(&dir, &["nodes.yaml", "--set", "scheduler=packer.yaml"]).success();
    assert_eq!(spread(&dir, "default-scheduler"), [4]);
    let weight =
        "scheduler={profiles: [{plugins: {score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality}]}}}]}";
    run(&dir, &["nodes.yaml", "--set", weight]).success();
    assert_eq!(spread(&dir, "default-scheduler").iter().sum::<usize>(), 4);
}

#[test]
fn several_profiles_each_place_their_own_pods_and_others_wait_and_are_counted() {
    let dir = shop(&["default-scheduler", "packer", "volcano"]);
    let second = PACKER.replace(
        "  - schedulerName: default-scheduler\n",
        "  - schedulerName: default-scheduler\n  - schedulerName: packer\n",
    );
    write(&dir, "packer.yaml", second);
    run(&dir, &["nodes.yaml", "--set", "scheduler=packer.yaml"]).stdout(contains("INCOMPLETE"));
    assert_eq!(spread(&dir, "default-scheduler"), [2, 2]);
    assert_eq!(spread(&dir, "packer"), [4]);
    assert!(spread(&dir, "volcano").is_empty(), "nobody runs it");
    let missing = format!("{:?}", meta(&dir).missing);
    assert!(missing.contains("volcano") && !missing.contains("web-packer"), "{missing}");
}

#[test]
fn a_mistake_in_a_scheduler_configuration_is_named_with_file_line_and_column() {
    let dir = shop(&["default-scheduler"]);
    write(&dir, "packer.yaml", PACKER.replace("name: NodeResourcesFit}]}}", "name: Coscheduling}]}}"));
    let words =
        "packer.yaml:6:65: profiles[0].plugins.score.enabled[0].name: the plugin `Coscheduling` is not built in";
    run(&dir, &["nodes.yaml", "--set", "scheduler=packer.yaml"]).failure().stderr(contains(words));
    write(&dir, "inline.yaml", format!("{NODES}scheduler:\n  extenders: [{{urlPrefix: http://x}}]\n"));
    run(&dir, &["inline.yaml"]).failure().stderr(contains("inline.yaml:7:15: scheduler.extenders[0]: extenders are"));
    run(&dir, &["nodes.yaml", "--set", "scheduler=nowhere.yaml"]).failure().stderr(contains("nowhere.yaml"));
}
