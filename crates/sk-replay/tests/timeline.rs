//! Faults and changes during a run: what a machine that is lost, a cloud that has no more, a slow API server and a changed
//! field do to pods and nodes, and when.

use std::ops::ControlFlow;

use serde_json::{Value, json};
use sk_api::Scenario;
use sk_core::{SimDuration, SimTime};
use sk_record::{AutoscalerRow, Decided, EndedBy, EventRow, NodeRow, PodRow, RunMeta};
use sk_replay::embedded::{self, RunRequest};
use sk_replay::plan::Window;
use sk_replay::scheduler;
use sk_replay::setup::Setup;
use sk_replay::timeline::Timeline;
use sk_store::trace;

const START: &str = "2026-01-05T09:00:00Z";
/// Two nodes in two zones, four cores each, without an autoscaler that would change their number.
const TWO_ZONES: &str = "cluster: {groups: {
  east: {min: 1, max: 1, cpu: 4, memory: 16Gi, ready: 60s, labels: {topology.kubernetes.io/zone: east}},
  west: {min: 1, max: 1, cpu: 4, memory: 16Gi, ready: 60s, labels: {topology.kubernetes.io/zone: west}}}}";

fn start() -> SimTime {
    SimTime::parse_rfc3339(START).expect("a time")
}

/// Seconds after the start.
fn secs(at: Option<SimTime>) -> Option<i64> {
    at.map(|at| at.since(start()).as_micros().div_euclid(1_000_000))
}

fn deployment(name: &str, replicas: i64, cpu: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]},
            },
        },
    })
}

/// An hour of these objects, each applied so many seconds after the start.
fn hour(objects: &[(i64, Value)]) -> String {
    let head = json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {"apps/v1.Deployment": {}}}});
    let line = |(secs, object): &(i64, Value)| {
        json!({"at": (start() + SimDuration::from_secs(*secs)).to_string(), "apply": object}).to_string()
    };
    let lines: Vec<String> = objects.iter().map(line).collect();
    let end = json!({"at": (start() + SimDuration::from_mins(60)).to_string(), "mark": "moment"});
    format!("{head}\n{}\n{end}\n", lines.join("\n"))
}

struct Ran {
    meta: RunMeta,
    pods: Vec<PodRow>,
    nodes: Vec<NodeRow>,
    autoscaler: Vec<AutoscalerRow>,
    events: Vec<EventRow>,
}

impl Ran {
    fn node(&self, name: &str) -> &NodeRow {
        self.nodes.iter().find(|node| node.name == name).unwrap_or_else(|| panic!("{name}: {:?}", self.nodes))
    }

    fn ended(&self, by: EndedBy) -> usize {
        self.pods.iter().filter(|pod| pod.ended_by == Some(by)).count()
    }

    /// Pods that run at so many seconds after the start, by the simulated nodes' words.
    fn running(&self, second: i64) -> usize {
        let is = |pod: &&PodRow| {
            secs(pod.started).is_some_and(|at| at <= second) && secs(pod.deleted).is_none_or(|at| at > second)
        };
        self.pods.iter().filter(is).count()
    }

    fn happened(&self) -> Vec<&str> {
        self.meta.timeline.iter().map(|happened| happened.what.as_str()).collect()
    }
}

fn run(objects: &[(i64, Value)], scenario: &str) -> Ran {
    let trace = trace::from_bytes("test", hour(objects).into_bytes()).expect("the test's trace opens");
    let scenario = format!("apiVersion: simkube.io/v1\nkind: Scenario\n{scenario}\n");
    let scenario = Scenario::parse("test.yaml", &scenario).unwrap_or_else(|error| panic!("{error}"));
    let window = Window { start: start(), end: start() + SimDuration::from_mins(60), includes_end: true };
    let timeline = Timeline::of(&scenario, window, start()).unwrap_or_else(|error| panic!("{error}"));
    let scheduler = scheduler::of(&scenario).expect("the test's scheduler is well-formed");
    let setup = Setup::new(&scenario).with_scheduler(scheduler).with_timeline(timeline);
    let text = scenario.to_yaml();
    let request = RunRequest::new(&trace, window, &setup, &text, "test");
    let dir = tempfile::tempdir().expect("a folder");
    let staged = embedded::run(&request, &dir.path().join("run"), &mut |_| ControlFlow::Continue(()));
    let staged = staged.unwrap_or_else(|error| panic!("{error}"));
    let run = staged.run().expect("a record");
    let (pods, nodes) = (run.pods().expect("pods"), run.nodes().expect("nodes"));
    let (autoscaler, events) = (run.autoscaler().expect("decisions"), run.events().expect("events"));
    Ran {
        meta: run.meta().clone(),
        autoscaler: autoscaler.collect::<Result<_, _>>().expect("rows"),
        events: events.collect::<Result<_, _>>().expect("rows"),
        pods: pods.collect::<Result<_, _>>().expect("rows"),
        nodes: nodes.collect::<Result<_, _>>().expect("rows"),
    }
}

#[test]
fn a_machine_that_is_gone_for_good_is_found_missing_and_replaced_by_its_group() {
    let ran = run(
        &[(0, deployment("web", 2, "2"))],
        "cluster: {groups: {small: {min: 2, max: 2, cpu: 4, memory: 16Gi, ready: 90s}}}\n\
         timeline: [{at: +10m, loseNodes: {names: [small-1]}}]",
    );
    assert_eq!(ran.happened(), ["loseNodes: small-1"]);
    assert_eq!(secs(ran.node("small-1").deleted), Some(655), "50 s of silence, and 5 s until the cloud looks");
    let new = ran.node("small-1.2");
    assert_eq!((secs(Some(new.created)), secs(new.ready)), (Some(600), Some(690)), "asked for when it was lost");
    assert_eq!(ran.ended(EndedBy::NodeLost), 1);
    assert_eq!((ran.running(599), ran.running(3_000)), (2, 2), "its pod runs elsewhere");
}

#[test]
fn a_machine_that_is_silent_for_a_while_loses_its_pods_after_their_tolerations() {
    let lost = "timeline: [{at: +10m, loseNodes: {group: east, for: 20m}}]";
    let ran = run(&[(0, deployment("web", 2, "2"))], &format!("{TWO_ZONES}\n{lost}"));
    assert_eq!(ran.happened(), ["loseNodes: east-1"]);
    assert_eq!(secs(ran.node("east-1").deleted), None, "it comes back");
    let left = ran.pods.iter().find(|pod| pod.node.as_deref() == Some("east-1") && pod.deleted.is_some());
    let left = left.unwrap_or_else(|| panic!("{:?}", ran.pods));
    assert_eq!(secs(left.deleted), Some(1_800), "nobody on a silent machine says that the pod has ended");
    let new = ran.pods.iter().find(|pod| secs(Some(pod.created)).is_some_and(|at| at > 900));
    let new = new.unwrap_or_else(|| panic!("{:?}", ran.pods));
    assert!(
        (950..=952).contains(&secs(Some(new.created)).unwrap_or_default()),
        "50 s of silence and 300 s of patience"
    );
    assert_eq!(new.node.as_deref(), Some("west-1"));
}

#[test]
fn a_short_silence_is_not_noticed() {
    let lost = "timeline: [{at: +10m, loseNodes: {group: east, for: 40s}}]";
    let ran =
        run(&[(0, deployment("web", 2, "2")), (610, deployment("late", 2, "1"))], &format!("{TWO_ZONES}\n{lost}"));
    assert_eq!(ran.pods.iter().filter(|pod| pod.ended_by.is_some()).count(), 0);
    let on_east = |pod: &&PodRow| pod.owner.ends_with("late") && pod.node.as_deref() == Some("east-1");
    let late = ran.pods.iter().find(on_east).unwrap_or_else(|| panic!("{:?}", ran.pods));
    assert_eq!(secs(late.scheduled), Some(610), "the scheduler does not know");
    assert_eq!(secs(late.started), Some(640), "it starts when the machine is heard again");
}

#[test]
fn a_zone_that_is_lost_makes_no_nodes_until_it_is_back() {
    let groups = "cluster: {groups: {
      east: {min: 1, max: 5, cpu: 4, memory: 16Gi, ready: 60s, labels: {topology.kubernetes.io/zone: east}}}}";
    let lost = "timeline: [{at: +10m, loseZone: {zone: east, for: 15m}}]";
    let ran = run(&[(0, deployment("web", 1, "3")), (700, deployment("more", 3, "3"))], &format!("{groups}\n{lost}"));
    assert_eq!(ran.happened(), ["loseZone: east, 1 nodes"]);
    let new: Vec<_> = ran.nodes.iter().filter(|node| node.name != "east-1").collect();
    assert!(!new.is_empty() && new.iter().all(|node| secs(Some(node.created)) >= Some(1_500)), "{new:?}");
    assert_eq!(ran.running(3_500), 4, "in the end all of them run");
}

#[test]
fn a_cloud_that_has_no_more_nodes_leaves_pods_waiting() {
    let groups = "cluster: {groups: {small: {min: 1, max: 5, cpu: 4, memory: 16Gi, ready: 60s}}}";
    let burst = [(0, deployment("web", 1, "3")), (300, deployment("more", 2, "3"))];
    let calm = run(&burst, groups);
    let short = run(&burst, &format!("{groups}\ntimeline: [{{at: +4m, stockout: {{group: small, for: 20m}}}}]"));
    let ready = |ran: &Ran| ran.nodes.iter().filter_map(|node| secs(node.ready)).max().expect("a node");
    assert!(ready(&calm) < 500, "{}", ready(&calm));
    assert!(ready(&short) >= 240 + 1_200, "{}", ready(&short));
    assert_eq!((calm.running(600), short.running(600)), (3, 1));
    assert_eq!(short.running(3_500), 3);
}

#[test]
fn nodes_that_are_reclaimed_with_notice_are_emptied_before_they_go() {
    let groups = "cluster: {groups: {spot: {min: 2, max: 4, cpu: 4, memory: 16Gi, ready: 60s}}}";
    let reclaim =
        |notice: &str| format!("{groups}\ntimeline: [{{at: +10m, reclaim: {{group: spot, share: 0.5{notice}}}}}]");
    let told = run(&[(0, deployment("web", 2, "1"))], &reclaim(", notice: 2m"));
    assert_eq!((told.ended(EndedBy::Evicted), told.ended(EndedBy::NodeLost)), (1, 0), "{:?}", told.happened());
    let gone = told.nodes.iter().find(|node| node.deleted.is_some()).expect("one of two");
    assert_eq!(secs(gone.deleted), Some(600 + 120 + 55));
    let untold = run(&[(0, deployment("web", 2, "1"))], &reclaim(""));
    assert_eq!((untold.ended(EndedBy::Evicted), untold.ended(EndedBy::NodeLost)), (0, 1), "{:?}", untold.happened());
    assert!(told.nodes.iter().any(|node| node.name.ends_with(".2")), "the group keeps its size");
}

#[test]
fn a_slow_api_server_makes_everybody_slower_for_a_while() {
    let scenario = "cluster: {groups: {big: {min: 1, max: 1, cpu: 64, memory: 256Gi}}}\n\
                    timeline: [{at: +10m, slowApi: {latency: 2s, for: 5m}}]";
    let objects =
        [(60, deployment("before", 1, "1")), (660, deployment("during", 1, "1")), (1_200, deployment("after", 1, "1"))];
    let ran = run(&objects, scenario);
    let latency = |owner: &str| {
        let pod = ran.pods.iter().find(|pod| pod.owner.ends_with(owner)).expect("it was made");
        pod.started.expect("it ran").since(pod.created)
    };
    // The binding is a request; what the node writes afterwards says when the pod started by the node's own clock.
    assert!(latency("during") >= latency("before") + SimDuration::from_secs(2));
    assert_eq!(latency("after"), latency("before"));
    assert_eq!(ran.happened(), ["slowApi: requests take 2s longer"]);
}

#[test]
fn fields_that_are_set_hold_from_then_on() {
    let groups = "cluster: {groups: {small: {min: 1, max: 1, cpu: 4, memory: 16Gi, ready: 60s, price: 1}}}";
    let set = "timeline:\n  - {at: +20m, set: {cluster.groups.small.max: 3, cluster.groups.small.price: 2}}\n  \
               - {at: +20m, set: {timing.podStartupDelay: 30s}}";
    let ran = run(&[(0, deployment("web", 3, "3"))], &format!("{groups}\n{set}"));
    assert_eq!((ran.running(1_190), ran.running(3_500)), (1, 3));
    let new: Vec<_> = ran.nodes.iter().filter(|node| node.name != "small-1").collect();
    assert!(new.iter().all(|node| secs(Some(node.created)) >= Some(1_200) && node.price_per_hour == Some(2.0)));
    assert_eq!(new.len(), 2);
    let late = ran.pods.iter().filter_map(|pod| pod.started?.since(pod.scheduled?).into()).max();
    assert!(late < Some(SimDuration::from_secs(3)), "delays are given to pods when they are made: {late:?}");
    assert_eq!(
        ran.happened(),
        ["set: cluster.groups.small.max=3, cluster.groups.small.price=2", "set: timing.podStartupDelay=\"30s\""]
    );
}

#[test]
fn a_scheduler_that_is_configured_anew_starts_anew_and_loses_nothing() {
    let scenario = "cluster: {groups: {small: {min: 2, max: 2, cpu: 8, memory: 32Gi}}}\n\
                    timeline:\n  - at: +20m\n    set:\n      scheduler: {profiles: [{schedulerName: default-scheduler, \
                    pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, \
                    resources: [{name: cpu, weight: 100}]}}}]}]}";
    let mut objects = vec![(0, deployment("first", 1, "1")), (600, deployment("full", 1, "20"))];
    // Pods of one owner would be spread.
    objects.extend((0..4).map(|number| (1_800 + number, deployment(&format!("later-{number}"), 1, "1"))));
    let ran = run(&objects, scenario);
    let node = |pod: &&PodRow| pod.node.clone();
    let first = ran.pods.iter().find(|pod| pod.owner.ends_with("first")).and_then(|pod| node(&pod));
    let later: Vec<_> =
        ran.pods.iter().filter(|pod| pod.owner.contains("later-")).map(|pod| pod.node.clone()).collect();
    assert_eq!(later.len(), 4);
    assert!(later.iter().all(|node| *node == first), "packed beside the first: {later:?}");
    let full = ran.pods.iter().find(|pod| pod.owner.ends_with("full")).expect("it was made");
    assert!(full.scheduled.is_none() && full.waited_for.is_some(), "what waited still waits");
}

#[test]
fn what_lies_outside_of_the_run_is_said() {
    let ran = run(
        &[(0, deployment("web", 1, "1"))],
        &format!("{TWO_ZONES}\ntimeline: [{{at: +3d, loseZone: {{zone: east, for: 5m}}}}]"),
    );
    assert_eq!(ran.happened(), Vec::<&str>::new());
    let said = ran.meta.warnings.iter().find(|warning| warning.code == "timeline-outside").expect("it is said");
    assert_eq!(said.message, "timeline[0] never happened: not within the part that was replayed");
}

#[test]
fn what_hits_nobody_is_said() {
    let ran = run(
        &[(0, deployment("web", 1, "1"))],
        &format!(
            "{TWO_ZONES}\ntimeline: [{{at: +1m, loseZone: {{zone: nowhere, for: 5m}}}}, \
             {{at: +2m, loseNodes: {{names: [nobody]}}}}, {{at: +3m, loseZone: {{zone: east, for: 5m}}}}]"
        ),
    );
    let said = ran.meta.warnings.iter().find(|warning| warning.code == "timeline-missed").expect("it is said");
    assert_eq!(said.message, "timeline[0], timeline[1] hit no node: there was none of that zone, group or name");
}

#[test]
fn the_seed_decides_who_is_hit_and_nothing_else_does() {
    let scenario = |seed: u64| {
        format!(
            "seed: {seed}\ncluster: {{groups: {{spot: {{min: 12, max: 12, cpu: 4, memory: 16Gi, ready: {{p50: 55s, p99: \
             140s}}}}}}}}\ntimeline: [{{every: 10m, reclaim: {{group: spot, share: 0.3}}}}]"
        )
    };
    let lost = |seed: u64| {
        let ran = run(&[(0, deployment("web", 12, "2"))], &scenario(seed));
        let ready: Vec<_> = ran.nodes.iter().filter_map(|node| node.ready.map(|at| at.since(node.created))).collect();
        (ran.happened().iter().map(ToString::to_string).collect::<Vec<_>>(), ready)
    };
    assert_eq!(lost(1), lost(1));
    assert_ne!(lost(1).0, lost(2).0);
    let delays: std::collections::BTreeSet<_> = lost(1).1.into_iter().collect();
    assert!(delays.len() > 5, "no two machines take the same time: {delays:?}");
}

/// Two groups, of which the first has no stock for a while; a pod that fits nowhere; and nodes that are no longer needed.
fn stock_out() -> Ran {
    run(
        &[
            (0, deployment("web", 6, "1500m")),
            (60, deployment("giant", 1, "64")),
            (1200, deployment("web", 1, "1500m")),
        ],
        "autoscaler: {expander: priority, priorities: {50: [first], 10: [second]}, scale-down-delay-after-add: 2m, \
         scale-down-unneeded-time: 5m}
cluster: {groups: {first: {min: 0, max: 5, cpu: 4, memory: 16Gi, ready: 60s},
                   second: {min: 0, max: 5, cpu: 4, memory: 16Gi, ready: 60s}}}
timeline: [{at: +0s, stockout: {group: first, for: 30m}}]",
    )
}

#[test]
fn a_cluster_that_begins_with_more_nodes_than_the_log_holds_is_recorded_whole() {
    const NODES: usize = 16_500;
    let group = format!("{{min: {NODES}, max: {NODES}, cpu: 4, memory: 16Gi}}");
    let ran = run(&[(0, deployment("web", 2, "3"))], &format!("cluster: {{groups: {{vast: {group}}}}}"));
    assert_eq!(ran.nodes.len(), NODES);
    assert!(ran.pods.len() == 2 && ran.pods.iter().all(|pod| pod.scheduled.is_some()), "{:?}", ran.pods);
}

#[test]
fn a_whole_run_keeps_every_decision_of_the_autoscaler_with_its_reason() {
    let ran = stock_out();
    let of = |decided: Decided| -> Vec<&AutoscalerRow> {
        ran.autoscaler.iter().filter(|row| row.decision == decided).collect()
    };
    let failed = of(Decided::ScaleUpFailed);
    assert_eq!(failed[0].group.as_deref(), Some("first"));
    assert!(failed[0].message.as_ref().is_some_and(|message| message.contains("OutOfResource")), "{:?}", failed[0]);
    let grown: Vec<&AutoscalerRow> = of(Decided::ScaleUp).into_iter().filter(|row| row.pod.is_none()).collect();
    assert_eq!(grown[0].group.as_deref(), Some("first"), "it is tried first");
    let second = grown.iter().find(|row| row.group.as_deref() == Some("second")).expect("the other group helps");
    assert_eq!((second.nodes_before, second.nodes_after, second.pods), (Some(0), Some(3), Some(6)));
    assert!(second.options.as_ref().is_some_and(|text| text.contains("second: 3 nodes for 6 pods")), "{second:?}");
    let helped = of(Decided::ScaleUp).into_iter().filter(|row| row.pod.is_some());
    assert!(helped.clone().all(|row| row.owner.as_deref() == Some("shop/Deployment/web")), "{:?}", ran.autoscaler);
    let refused = of(Decided::NoScaleUp);
    let giant: Vec<_> = refused.iter().filter(|row| row.owner.as_deref() == Some("shop/Deployment/giant")).collect();
    assert_eq!(giant.len(), 1, "{refused:?}");
    assert_eq!(giant[0].event.as_deref(), Some("NotTriggerScaleUp"));
    assert!(giant[0].message.as_ref().is_some_and(|message| message.contains("Insufficient cpu")), "{:?}", giant[0]);
    let why = giant[0].options.as_deref().unwrap_or_default();
    assert!(why.starts_with("first: ") && why.contains("second: Insufficient cpu"), "every group's own reason: {why}");
    let gone: Vec<_> = of(Decided::ScaleDown).into_iter().filter(|row| row.pod.is_none()).collect();
    let deleted = ran.nodes.iter().filter(|node| node.deleted.is_some()).count();
    assert_eq!(gone.len(), deleted, "{gone:?}");
    assert!(deleted > 0 && gone.iter().all(|row| row.node.is_some() && row.event.as_deref() == Some("ScaleDown")));
    assert!(!of(Decided::Unneeded).is_empty() && !of(Decided::Unremovable).is_empty());
    let loops: Vec<i64> = ran.autoscaler.iter().map(|row| row.loop_number).collect();
    assert!(loops.is_sorted() && loops[0] >= 1);
}

#[test]
fn a_whole_run_keeps_the_events_of_all_parts_of_the_control_plane() {
    let ran = stock_out();
    assert!(ran.events.iter().map(|event| event.time).is_sorted());
    let of = |source: &str, reason: &str| -> Vec<&EventRow> {
        ran.events.iter().filter(|event| event.source == source && event.reason == reason).collect()
    };
    let scheduled = of("default-scheduler", "Scheduled");
    assert_eq!(scheduled.len(), ran.pods.iter().filter(|pod| pod.scheduled.is_some()).count());
    let owners = ["shop/Deployment/web", "shop/Deployment/giant"];
    assert!(scheduled.iter().all(|event| event.kind == "Pod" && event.owner.as_deref() == Some(owners[0])));
    assert_eq!(of("replicaset-controller", "SuccessfulCreate").len(), ran.pods.len());
    assert!(of("deployment-controller", "ScalingReplicaSet").iter().all(|event| event.kind == "Deployment"));
    let waits = of("default-scheduler", "FailedScheduling");
    assert!(waits.iter().all(|event| event.is_warning && event.owner.is_some()));
    let pairs: std::collections::BTreeSet<_> = waits.iter().map(|event| (&event.name, &event.message)).collect();
    assert_eq!(pairs.len(), waits.len(), "nothing is only repeated: {waits:?}");
    for reason in ["TriggeredScaleUp", "NotTriggerScaleUp"] {
        let told = of("cluster-autoscaler", reason);
        let is_known =
            |event: &&EventRow| event.kind == "Pod" && owners.contains(&event.owner.as_deref().unwrap_or(""));
        assert!(!told.is_empty() && told.iter().all(is_known), "{told:?}");
    }
    let node = of("cluster-autoscaler", "ScaleDown")[0];
    assert_eq!((node.kind.as_str(), &node.namespace, node.is_warning), ("Node", &None, false));
    assert!(of("cluster-autoscaler", "ScaleUpFailed").iter().all(|event| event.is_warning));
}
