//! A user's KubeSchedulerConfiguration.

use serde_json::json;
use sk_core::SimDuration;
use sk_scheduler::config::ClientRate;
use sk_scheduler::framework::profile::Strategy;
use sk_scheduler::{Configuration, Profile};

use crate::support::{World, asks, node, pod};

fn read(text: &str) -> Configuration {
    Configuration::from_yaml(text).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    Configuration::from_yaml(text).err().unwrap_or_else(|| panic!("{text} is read")).to_string()
}

#[test]
fn an_empty_configuration_is_kubernetes_default() {
    let empty = read("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n");
    assert_eq!(empty.profiles, [Profile::default()]);
    // Written out it is the same.
    let written = read("profiles: [{schedulerName: default-scheduler, plugins: {multiPoint: {enabled: []}}}]");
    assert_eq!(written.profiles, [Profile::default()]);
    assert!(written.ignored.is_empty());
}

#[test]
fn profiles_weights_and_arguments_are_taken_over() {
    let read = read(
        "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 4
leaderElection: {leaderElect: true}
clientConnection: {qps: 200, burst: 400}
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
percentageOfNodesToScore: 30
profiles:
  - schedulerName: default-scheduler
  - schedulerName: packer
    percentageOfNodesToScore: 100
    plugins:
      score:
        disabled: [{name: NodeResourcesBalancedAllocation}, {name: Another}]
        enabled: [{name: ImageLocality, weight: 7}]
      multiPoint: {enabled: [{name: NodeResourcesFit, weight: 5}]}
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}, {name: memory}]}
",
    );
    assert_eq!(read.client, Some(ClientRate { qps: 200.0, burst: 400 }));
    assert_eq!(read.queue.initial_backoff, SimDuration::from_secs(2));
    assert_eq!(read.queue.max_backoff, SimDuration::from_secs(20));
    let [default, packer] = read.profiles.as_slice() else { panic!("two profiles") };
    assert_eq!((default.percentage_of_nodes_to_score, packer.percentage_of_nodes_to_score), (30, 100));
    let weights: Vec<(&str, i64)> = packer.scores.iter().map(|(plugin, weight)| (plugin.name(), *weight)).collect();
    // Those written for the point come first, then the rest in the order of `multiPoint`.
    let expected = [
        ("ImageLocality", 7),
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodeResourcesFit", 5),
        ("VolumeBinding", 1),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
    ];
    assert_eq!(weights, expected);
    assert_eq!(packer.fit.strategy, Strategy::MostAllocated);
    assert_eq!(packer.fit.resources, [("cpu".into(), 3), ("memory".into(), 1)]);
    assert_eq!(read.ignored.len(), 3, "{:?}", read.ignored);
}

#[test]
fn two_profiles_place_the_same_pod_differently() {
    let text = "profiles: [{schedulerName: default-scheduler}, {schedulerName: packer, pluginConfig: \
                [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]}]";
    let mut world = World::with_profiles([node("a", json!({})), node("b", json!({}))], read(text).profiles);
    let wish = |name: &str, scheduler: &str| {
        let mut spec = asks("500m", "1Gi");
        spec["schedulerName"] = json!(scheduler);
        pod(name, json!({}), spec)
    };
    let first = world.place(&wish("p", "packer"));
    assert_eq!(world.place(&wish("q", "packer")), first);
    assert_ne!(world.place(&wish("r", "default-scheduler")), first);
}

#[test]
fn a_plugin_that_is_off_says_nothing() {
    let text =
        "profiles: [{plugins: {filter: {disabled: [{name: TaintToleration}]}, postFilter: {disabled: [{name: '*'}]}}}]";
    let tainted = node("a", json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}));
    let mut world = World::with_profiles([tainted], read(text).profiles);
    assert_eq!(world.place(&pod("p", json!({}), json!({}))), "a");
    assert_eq!(world.place(&pod("q", json!({}), asks("9", "1Gi"))), "0/1 nodes are available: 1 Insufficient cpu.");
    let bare = "profiles: [{plugins: {multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}]}}}]";
    let mut world = World::with_profiles([node("a", json!({})), node("b", json!({}))], read(bare).profiles);
    let nodes: Vec<String> = (0..3).map(|n| world.place(&pod(&format!("p{n}"), json!({}), asks("9", "1Gi")))).collect();
    assert_eq!(nodes, ["a", "b", "a"], "the first node of each search");
}

#[test]
fn what_is_unknown_or_unsupported_is_refused_by_name_line_and_column() {
    let cases = [
        ("extenders:\n  - urlPrefix: http://x\n", "line 2, column 5: `extenders[0]`", "HTTP services"),
        ("profile: []\n", "line 1, column 10: `profile`", "no field that is known here"),
        (
            "profiles:\n  - plugins:\n      score:\n        enabled: [{name: Mine}]\n",
            "line 4, column 26: `profiles[0].plugins.score.enabled[0].name`",
            "`Mine` is not built in",
        ),
        (
            "profiles: [{plugins: {filter: {enabled: [{name: ImageLocality}]}}}]",
            "`profiles[0].plugins.filter.enabled[0].name`",
            "does nothing at filter",
        ),
        ("profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]", "`profiles[0].plugins`", "PrioritySort"),
        (
            "profiles: [{plugins: {preFilter: {disabled: [{name: NodePorts}]}}}]",
            "`profiles[0].plugins`",
            "NodePorts is on at filter",
        ),
        (
            "profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: 99999999999}]}}}]",
            "weight",
            "is not from 0 to 1000000",
        ),
        ("profiles: [{schedulerName: a}, {schedulerName: a}]", "`profiles[1]`", "called `a` too"),
        ("profiles: [{}, {schedulerName: a}]", "`profiles[0]`", "schedulerName"),
        ("percentageOfNodesToScore: 101", "`percentageOfNodesToScore`", "not from 0 to 100"),
        ("podInitialBackoffSeconds: 20\npodMaxBackoffSeconds: 10", "`podMaxBackoffSeconds`", "20"),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Best}}}]}]",
            "scoringStrategy",
            "`Best` is no strategy",
        ),
        (
            "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}]}}]}]",
            "args",
            "defaultingType: List",
        ),
        (
            "profiles: [{pluginConfig: [{name: Coscheduling}]}]",
            "`profiles[0].pluginConfig[0]`",
            "`Coscheduling` is not built in",
        ),
        ("kind: Pod", "`kind`", "KubeSchedulerConfiguration"),
        ("profiles: [", "", "YAML"),
    ];
    for (text, place, words) in cases {
        let said = refused(text);
        assert!(said.contains(place) && said.contains(words), "{text}\n{said}");
    }
}
