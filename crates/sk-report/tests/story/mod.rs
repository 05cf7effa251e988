//! The founding story as rows, worked out by hand: a Deployment of 1-CPU pods is created with 2, scaled to 10 at 5:00,
//! to 5 at 15:00 and deleted at 25:00; 1-CPU nodes follow, 60 s after the autoscaler's next look, and leave when they
//! were unneeded for 10 minutes. Two request-less workloads run beside it.

#![allow(dead_code, reason = "each test takes what it needs of the story")]

use sk_core::{SimDuration, SimTime};
use sk_record::{
    Autoscaler, DecisionRow, EndedBy, Engine, Explained, Group, NodeRow, Outcome, PodRow, RunMeta, SeriesRow, Trace,
};
use sk_report::Tables;

pub(crate) const OWNER: &str = "default/Deployment/nginx";
const START: i64 = 1_764_576_000;
const REFUSAL: &str = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No \
                       preemption victims found for incoming pod.";

/// `secs` after the run's start.
pub(crate) fn at(secs: i64) -> SimTime {
    SimTime::from_secs(START + secs)
}

pub(crate) fn meta() -> RunMeta {
    RunMeta {
        run_id: "nginx-3fa91c".into(),
        name: "nginx".into(),
        version: "0.1.0".into(),
        engine: Engine::Embedded,
        kubernetes: "1.36".into(),
        seed: 1,
        trace: Trace {
            name: "example:nginx".into(),
            digest: "5d1c".into(),
            format: "v2".into(),
            start: at(0),
            end: at(2_400),
            recorded: false,
        },
        start: at(0),
        end: at(2_400),
        scenario_digest: "77aa".into(),
        currency: "USD".into(),
        groups: vec![group("small")],
        autoscaler: Some(Autoscaler {
            scan_interval_s: 10.0,
            scale_down_unneeded_time_s: 600.0,
            scale_down_utilization_threshold: 0.5,
        }),
        warnings: vec![],
        missing: vec![],
        timeline: vec![],
        partial: false,
    }
}

pub(crate) fn group(name: &str) -> Group {
    Group { name: name.into(), min: 1, max: 10, cpu_m: 1_000, memory_bytes: 4 << 30, price_per_hour: Some(0.05) }
}

/// A pod of the Deployment: created, bound and deleted at these seconds.
pub(crate) fn pod(number: usize, created: i64, bound: i64, deleted: i64) -> PodRow {
    PodRow {
        namespace: "default".into(),
        name: format!("nginx-7c5ddbdf54-{number:05}"),
        uid: format!("00000000-0000-4000-8000-{number:012}"),
        owner: OWNER.into(),
        created: at(created),
        scheduled: Some(at(bound)),
        started: Some(at(bound) + SimDuration::from_secs(2)),
        finished: None,
        deleted: Some(at(deleted)),
        node: Some(format!("small-{number}")),
        group: Some("small".into()),
        cpu_m: 1_000,
        memory_bytes: 1 << 30,
        phase: "Running".into(),
        waited_for: (bound > created).then(|| REFUSAL.into()),
        ended_by: Some(EndedBy::Deleted),
    }
}

/// A request-less pod that runs on the first node from start to end.
pub(crate) fn small_pod(namespace: &str, kind: &str, name: &str) -> PodRow {
    PodRow {
        namespace: namespace.into(),
        name: format!("{name}-0"),
        uid: format!("uid-{name}"),
        owner: format!("{namespace}/{kind}/{name}"),
        deleted: None,
        node: Some("small-1".into()),
        cpu_m: 0,
        memory_bytes: 0,
        ended_by: None,
        ..pod(0, 0, 0, 0)
    }
}

pub(crate) fn node(number: usize, created: i64, ready: i64, deleted: Option<i64>) -> NodeRow {
    NodeRow {
        name: format!("small-{number}"),
        group: Some("small".into()),
        created: at(created),
        ready: Some(at(ready)),
        deleted: deleted.map(at),
        cpu_m: 1_000,
        memory_bytes: 4 << 30,
        pods: 110,
        price_per_hour: Some(0.05),
    }
}

pub(crate) fn replicas(secs: i64, value: Option<f64>) -> SeriesRow {
    SeriesRow { time: at(secs), series: SeriesRow::REPLICAS.into(), key: OWNER.into(), value }
}

fn decisions(pods: &[PodRow]) -> Vec<DecisionRow> {
    let row = |pod: &PodRow, time, outcome| DecisionRow {
        time,
        namespace: pod.namespace.clone(),
        pod: pod.name.clone(),
        owner: pod.owner.clone(),
        outcome,
        node: (outcome == Outcome::Scheduled).then(|| pod.node.clone()).flatten(),
        message: (outcome == Outcome::Unschedulable).then(|| REFUSAL.into()),
        explained: Explained::default(),
    };
    let refused = |pod: &PodRow| pod.waited_for.as_ref().map(|_| row(pod, pod.created, Outcome::Unschedulable));
    let bound = |pod: &PodRow| pod.scheduled.map(|time| row(pod, time, Outcome::Scheduled));
    let mut decisions: Vec<_> = pods.iter().filter_map(refused).chain(pods.iter().filter_map(bound)).collect();
    decisions.sort_by_key(|decision| decision.time);
    decisions
}

/// The whole story.
pub(crate) fn nginx() -> Tables {
    let mut pods = vec![pod(1, 0, 0, 1_500), pod(2, 0, 70, 1_500)];
    pods.extend((3..=5).map(|number| pod(number, 300, 370, 1_500)));
    pods.extend((6..=10).map(|number| pod(number, 300, 370, 900)));
    pods.push(small_pod("monitoring", "StatefulSet", "agent"));
    pods.push(small_pod("web", "Deployment", "hello"));
    let mut nodes = vec![node(1, 0, 0, None), node(2, 10, 70, Some(2_110))];
    nodes.extend((3..=5).map(|number| node(number, 310, 370, Some(2_110))));
    nodes.extend((6..=10).map(|number| node(number, 310, 370, Some(1_510))));
    let series = vec![
        replicas(0, Some(2.0)),
        replicas(300, Some(10.0)),
        replicas(900, Some(5.0)),
        replicas(1_500, None),
        SeriesRow { key: "web/Deployment/hello".into(), ..replicas(0, Some(1.0)) },
    ];
    Tables { meta: meta(), decisions: decisions(&pods), pods, nodes, series, autoscaler: Vec::new() }
}

/// A week of five groups and a daily rhythm, with a shortage on the third day: for looking at, and for sizes.
pub(crate) fn week(owners: usize) -> Tables {
    const DAY: i64 = 86_400;
    let groups: Vec<Group> = ["general", "spot", "gpu", "batch", "edge"].map(group).into();
    let (mut pods, mut nodes, mut series) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..200_usize {
        let (place, cohort) = (number % 5, (number / 5) as i64);
        let created = (cohort % 7) * DAY + (cohort / 7) * 3_600;
        let deleted = created + (14 + cohort % 9) * 3_600;
        let name = format!("{}-{number}", groups[place].name);
        let group = Some(groups[place].name.clone());
        let deleted = (number % 6 > 0).then_some(deleted);
        nodes.push(NodeRow { name, group, ..node(number, created, created + 60, deleted) });
    }
    for number in 0..owners * 14 {
        let (owner, turn) = (number % owners, (number / owners) as i64);
        let created = turn * DAY / 2 + (owner as i64 * 977) % 20_000;
        let short = turn == 5 && owner.is_multiple_of(3);
        let wait = if short { 1_200 + (owner as i64 % 40) * 30 } else { (owner as i64 % 4) * 20 };
        let row = pod(number, created, created + wait, created + 36_000 + (owner as i64 % 7) * 3_000);
        let node = (owner + turn as usize * 10) % 200;
        pods.push(PodRow {
            namespace: format!("team-{}", owner % 23),
            owner: format!("team-{}/Deployment/service-{owner}", owner % 23),
            cpu_m: 100 + (owner as i64 % 8) * 100,
            node: Some(nodes[node].name.clone()),
            ..row
        });
    }
    for hour in 0..7 * 12 {
        let value = 6.0 + (hour % 12) as f64;
        series.push(SeriesRow { key: "team-0/Deployment/service-0".into(), ..replicas(hour * 7_200, Some(value)) });
    }
    let mut meta = RunMeta { groups, end: at(7 * DAY), ..meta() };
    meta.trace.end = at(7 * DAY);
    meta.trace.name = "week.sktrace".into();
    meta.trace.recorded = true;
    Tables { meta, decisions: decisions(&pods), pods, nodes, series, autoscaler: Vec::new() }
}
