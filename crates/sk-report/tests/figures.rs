//! The figures of the founding story, each worked out by hand.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod story;

use sk_core::{SimDuration, SimTime};
use sk_record::{EndedBy, NodeRow, PodRow};
use sk_report::causes::Ending;
use sk_report::{Analysis, Summary, Tables};

fn summary(tables: &Tables) -> Summary {
    Analysis::of(tables).unwrap().summary
}

fn secs(count: i64) -> SimDuration {
    SimDuration::from_secs(count)
}

#[test]
fn pods_of_the_story_are_counted() {
    let figures = summary(&story::nginx());
    assert_eq!((figures.pods.created, figures.pods.ran), (12, 12));
    assert_eq!((figures.pods.running_max, figures.pods.running_end), (12, 2));
    assert_eq!((figures.pending.pods, figures.pending.max, figures.pending.longest), (9, 8, secs(70)));
    assert_eq!(figures.unschedulable.pods, 0);
    let latency = figures.start_latency;
    assert_eq!([latency.p50, latency.p90, latency.p99, latency.max], [72, 72, 72, 72].map(secs));
    assert_eq!(latency.mean, SimDuration::from_millis((9 * 72_000 + 3 * 2_000) / 12));
}

#[test]
fn what_happens_in_the_window_to_pods_from_before_it_counts() {
    let mut tables = story::nginx();
    let (start, end) = (tables.meta.start, tables.meta.end);
    tables.meta.start = start + secs(600);
    let before = |number| story::pod(number, -60, 0, 1_000);
    let words = Some("0/1 nodes are available: 1 Insufficient cpu.".into());
    tables.pods = vec![
        PodRow { ended_by: Some(EndedBy::Evicted), ..before(1) },
        PodRow { ended_by: Some(EndedBy::Preempted), deleted: Some(start + secs(300)), ..before(2) },
        PodRow {
            scheduled: None,
            started: None,
            node: None,
            deleted: None,
            ended_by: None,
            waited_for: words,
            ..before(3)
        },
    ];
    let analysis = Analysis::of(&tables).unwrap();
    let figures = &analysis.summary;
    assert_eq!((figures.pods.created, figures.evicted.pods, figures.preempted.pods), (0, 1, 0));
    assert_eq!(figures.unschedulable.pods, 1, "it waits all the time");
    assert_eq!(figures.owners[story::OWNER].unschedulable.pods, 1);
    let waited: Vec<_> =
        analysis.pending_causes.iter().map(|cause| (cause.pods, cause.ending.clone(), cause.longest)).collect();
    assert_eq!(waited, [(1, Ending::Never, end.since(start) - secs(600))]);
}

#[test]
fn nodes_of_the_story_are_counted_and_paid_for() {
    let figures = summary(&story::nginx());
    // Node 1 all of 2,400 s, node 2 from 10 to 2,110, three from 310 to 2,110, five from 310 to 1,510.
    let node_seconds = 2_400 + 2_100 + 3 * 1_800 + 5 * 1_200;
    // Node 1 from 1,500 on, four nodes from 1,500 to 2,110, five from 900 to 1,510.
    let empty_seconds = 900 + 4 * 610 + 5 * 610;
    let hours = |seconds: i32| f64::from(seconds) / 3_600.0;
    assert_eq!((figures.nodes.min, figures.nodes.max, figures.nodes.end), (1, 10, 1));
    assert_eq!((figures.nodes.created, figures.nodes.removed, figures.churn.nodes), (9, 9, 18));
    assert_eq!(figures.nodes.mean, f64::from(node_seconds) / 2_400.0);
    assert_eq!(figures.node_hours.total, hours(node_seconds));
    assert_eq!(figures.node_hours.empty, hours(empty_seconds));
    let cost = figures.cost.unwrap();
    assert!((cost.total - hours(node_seconds) * 0.05).abs() < 1e-12);
    assert!((cost.empty - hours(empty_seconds) * 0.05).abs() < 1e-12);
    // Pods were bound for as long as their nodes were ready and not empty.
    let ready_seconds = 2_400 + (2_110 - 70) + 3 * (2_110 - 370) + 5 * (1_510 - 370);
    let share = f64::from(ready_seconds - empty_seconds) / f64::from(ready_seconds);
    assert!((figures.requested.cpu - share).abs() < 1e-12);
    assert!((figures.requested.memory - share / 4.0).abs() < 1e-12);
    assert_eq!(figures.groups["small"].nodes, figures.nodes);
}

#[test]
fn namespaces_and_owners_have_their_own_figures() {
    let figures = summary(&story::nginx());
    assert_eq!(figures.namespaces.keys().collect::<Vec<_>>(), ["default", "monitoring", "web"]);
    assert_eq!(figures.owners[story::OWNER].pods.created, 10);
    assert_eq!(figures.owners[story::OWNER].pending.longest, secs(70));
    assert_eq!(figures.owners["web/Deployment/hello"].pending.longest, SimDuration::ZERO);
}

#[test]
fn the_bare_pods_of_a_namespace_are_one_owner() {
    let mut tables = story::nginx();
    let bare = |number: usize| {
        let pod = story::pod(number, 0, 0, 100);
        PodRow { owner: format!("default/Pod/{}", pod.name), ..pod }
    };
    tables.pods.extend((100..107).map(bare));
    // A pod whose owner is another pod is not bare.
    tables.pods.push(PodRow { owner: "default/Pod/parent".into(), ..bare(107) });
    let figures = summary(&tables);
    assert_eq!(figures.owners["default/Pod/*"].pods.created, 7);
    assert_eq!(figures.owners["default/Pod/parent"].pods.created, 1);
    assert_eq!(figures.owners.len(), summary(&story::nginx()).owners.len() + 2);
}

#[test]
fn causes_are_told_in_plain_words() {
    let analysis = Analysis::of(&story::nginx()).unwrap();
    let cause = &analysis.pending_causes[0];
    assert_eq!((cause.pods, cause.reason.as_str()), (9, "Insufficient cpu"));
    assert_eq!(cause.ending, Ending::NodeReady("small".into()));
    let incidents: Vec<_> = analysis.incidents.iter().map(|one| (one.pods, one.from, one.longest)).collect();
    assert_eq!(incidents, [(8, story::at(300), secs(70)), (1, story::at(0), secs(70))]);
    let refusals = analysis.events.answers.iter().filter(|answer| answer.node.is_none()).count();
    assert_eq!(refusals, 9, "every pod that waited was refused");
    let empty = &analysis.empty_causes[0];
    assert_eq!(empty.reason, "scale-down-unneeded-time 10m");
    let stretches: Vec<_> = empty.stretches.iter().map(|stretch| (stretch.nodes, stretch.window.start)).collect();
    assert_eq!(stretches, [(5, story::at(900)), (4, story::at(1_500))]);
    let marks = analysis.marks.unwrap();
    assert_eq!(marks.owner, story::OWNER);
    assert_eq!(
        marks.changes.iter().map(|change| change.1).collect::<Vec<_>>(),
        [Some(2.0), Some(10.0), Some(5.0), None]
    );
}

#[test]
fn without_a_price_there_is_no_cost_rather_than_a_cost_of_zero() {
    let mut tables = story::nginx();
    tables.nodes[3].price_per_hour = None;
    assert_eq!(summary(&tables).cost, None);
    let mut tables = story::nginx();
    tables.meta.groups.push(sk_record::Group { price_per_hour: None, ..story::group("spare") });
    let figures = summary(&tables);
    assert_eq!(figures.cost, None, "a group that never had a node could have had one");
    assert!(figures.groups["small"].cost.is_some());
    assert_eq!(figures.groups["spare"].cost, None);
}

#[test]
fn a_pod_that_never_fitted_is_unschedulable_and_waited_to_the_end() {
    let mut tables = story::nginx();
    let giant = PodRow { scheduled: None, started: None, node: None, deleted: None, ..story::pod(77, 600, 601, 0) };
    tables.pods.push(PodRow { ended_by: None, ..giant });
    let analysis = Analysis::of(&tables).unwrap();
    assert_eq!(analysis.summary.unschedulable.pods, 1);
    assert_eq!(analysis.summary.pending.longest, secs(1_800));
    assert_eq!(analysis.incidents[0].ending, Ending::Never);
    assert_eq!(analysis.curves.pending.last(), 1);
}

#[test]
fn evicted_preempted_and_lost_pods_are_churn() {
    let mut tables = story::nginx();
    tables.pods[0].ended_by = Some(EndedBy::Evicted);
    tables.pods[1].ended_by = Some(EndedBy::Preempted);
    tables.pods[2].ended_by = Some(EndedBy::NodeLost);
    let figures = summary(&tables);
    assert_eq!((figures.evicted.pods, figures.preempted.pods, figures.churn.pods), (1, 1, 3));
}

#[test]
fn what_happened_before_the_window_is_left_out() {
    let mut tables = story::nginx();
    tables.meta.start = story::at(600);
    let figures = summary(&tables);
    assert_eq!((figures.pods.created, figures.pending.pods), (0, 0));
    assert_eq!((figures.nodes.min, figures.nodes.max, figures.nodes.created), (1, 10, 0));
    assert_eq!(figures.pods.running_max, 12);
}

#[test]
fn daemon_pods_do_not_keep_a_node_from_being_empty() {
    let mut tables = story::nginx();
    let daemon = PodRow { cpu_m: 100, ..story::small_pod("kube-system", "DaemonSet", "proxy") };
    tables.pods.push(daemon);
    assert_eq!(summary(&tables).node_hours.empty, summary(&story::nginx()).node_hours.empty);
}

#[test]
fn a_node_name_used_twice_is_two_nodes() {
    let mut tables = story::nginx();
    tables.nodes.push(NodeRow {
        created: story::at(2_200),
        ready: Some(story::at(2_260)),
        deleted: None,
        ..tables.nodes[1].clone()
    });
    let figures = summary(&tables);
    assert_eq!((figures.nodes.max, figures.nodes.end), (10, 2));
    let more = figures.node_hours.empty - summary(&story::nginx()).node_hours.empty;
    assert!((more - 140.0 / 3_600.0).abs() < 1e-9, "the second life is empty, the first is as before: {more}");
}

#[test]
fn an_empty_run_and_absurd_rows_give_figures_and_no_panic() {
    let empty = Tables { pods: vec![], nodes: vec![], series: vec![], decisions: vec![], ..story::nginx() };
    let figures = summary(&empty);
    assert_eq!(figures.nodes.mean, 0.0);
    assert_eq!(figures.cost.unwrap().total, 0.0);

    let mut absurd = story::nginx();
    let (min, max) = (SimTime::from_micros(i64::MIN), SimTime::MAX);
    absurd.meta.start = min;
    absurd.meta.end = max;
    absurd.pods[0] = PodRow {
        created: max,
        scheduled: Some(min),
        started: Some(max),
        deleted: Some(min),
        cpu_m: i64::MAX,
        ..absurd.pods[0].clone()
    };
    absurd.pods[1] = PodRow { created: min, owner: "///".into(), memory_bytes: i64::MIN, ..absurd.pods[1].clone() };
    absurd.nodes[0] = NodeRow {
        created: max,
        ready: Some(min),
        deleted: Some(min),
        cpu_m: i64::MAX,
        price_per_hour: Some(f64::NAN),
        ..absurd.nodes[0].clone()
    };
    Analysis::of(&absurd).unwrap();
    absurd.meta.end = min;
    Analysis::of(&absurd).unwrap();
}

#[test]
fn the_documentation_of_figures_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/figures.md");
    let generated = sk_report::figures::documentation();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &generated).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == generated, "docs/figures.md is out of date: UPDATE_DOCS=1 cargo test -p sk-report writes it");
}

#[test]
fn every_figure_that_is_shown_exists() {
    let documented = sk_report::figures::documentation();
    let of_pods = sk_report::figures::POD_COLUMNS.iter().map(|shown| format!("owners[name].{}", shown.path));
    let of_groups = sk_report::figures::GROUP_COLUMNS.iter().map(|shown| format!("groups[name].{}", shown.path));
    let of_runs = sk_report::figures::RUN_COLUMNS.iter().map(|shown| shown.path.to_owned());
    for path in of_runs.chain(of_pods).chain(of_groups) {
        assert!(documented.contains(&format!("| `{path}` |")), "{path}");
    }
}
