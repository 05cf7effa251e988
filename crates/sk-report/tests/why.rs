//! What `why` and the page tell of the autoscaler's decisions: which groups were considered, which was chosen, and which
//! would have fitted.

mod story;

use sk_record::{AutoscalerRow, Decided, DecisionRow, Explained, Group, Outcome, Trigger};
use sk_report::step::Window;
use sk_report::why::{Subject, Waited, Why, render};
use sk_report::{Analysis, Tables};
use story::{OWNER, at, group, nginx};

const OPTIONS: &str = "small: 8 nodes for 8 pods, waste 0.75, chosen by least-waste; large: 1 node for 8 pods, waste 1.25; \
                       guarded: node(s) had untolerated taint(s)";

/// A decision of the loop at 5:10.
fn decision(decision: Decided, options: &str) -> AutoscalerRow {
    AutoscalerRow {
        time: at(310),
        loop_number: 31,
        trigger: Trigger::Timer,
        decision,
        namespace: None,
        pod: None,
        owner: None,
        node: None,
        group: None,
        nodes_before: None,
        nodes_after: None,
        pods: Some(8),
        options: Some(options.into()),
        event: None,
        message: None,
    }
}

fn about_pods(story: &Tables, row: &AutoscalerRow) -> Vec<AutoscalerRow> {
    let pods = story.pods.iter().filter(|pod| pod.created == at(300));
    let of_pod = |name: &String| AutoscalerRow {
        namespace: Some("default".into()),
        pod: Some(name.clone()),
        owner: Some(OWNER.into()),
        ..row.clone()
    };
    pods.map(|pod| of_pod(&pod.name)).collect()
}

/// The story with three groups, of which one is tainted.
fn with_groups() -> Tables {
    let mut story = nginx();
    let larger = |name: &str, cpu_m: i64| Group { cpu_m, memory_bytes: 64 << 30, ..group(name) };
    story.meta.groups.extend([larger("large", 8_000), larger("guarded", 16_000)]);
    story
}

/// The wait of the eight pods that came at 5:00.
fn wait(story: &Tables) -> Waited {
    let waits = asked(story, &Subject::Object(OWNER.into())).waits;
    waits.into_iter().find(|wait| wait.pods == 8).expect("eight pods waited together")
}

fn asked(story: &Tables, subject: &Subject) -> Why {
    Why::of(story, subject, Window::new(at(0), at(2_400))).expect("the story can be read")
}

#[test]
fn a_wait_tells_what_was_considered_and_offers_no_group_that_repels_the_pods() {
    let mut story = with_groups();
    let offered = |story: &Tables| wait(story).would_have_fitted.join(" ");
    assert!(offered(&story).contains("guarded +1 node"), "nothing is known of taints: {}", offered(&story));
    let (before, after) = (Some(2), Some(10));
    let grown = AutoscalerRow { nodes_before: before, nodes_after: after, ..decision(Decided::ScaleUp, OPTIONS) };
    let helped = AutoscalerRow { message: Some("pod triggered scale-up".into()), ..grown.clone() };
    story.autoscaler.push(AutoscalerRow { group: Some("small".into()), ..grown });
    story.autoscaler.extend(about_pods(&story, &helped));
    let why = asked(&story, &Subject::Object(OWNER.into()));
    assert_eq!(wait(&story).considered[0].message, OPTIONS);
    assert!(render(&why, 400).contains(&format!("  considered {OPTIONS} (×8)\n")), "{}", render(&why, 400));
    let offered = offered(&story);
    assert!(offered.contains("small +8") && offered.contains("large +1") && !offered.contains("guarded"), "{offered}");
    let group = render(&asked(&story, &Subject::Group("small".into())), 400);
    assert!(group.contains(&format!("autoscaler: scale up from 2 to 10 ({OPTIONS})")), "{group}");
    let scalings = Analysis::of(&story).expect("the story can be read").scalings;
    let told = scalings.texts.in_order();
    assert!(told.contains(&format!("from 2 to 10 nodes; considered: {OPTIONS}").as_str()), "{told:?}");
}

#[test]
fn a_group_that_may_not_grow_is_offered_and_where_all_repel_that_is_told() {
    let mut story = with_groups();
    let options =
        "small: max node group size reached; large: Insufficient memory; guarded: node(s) had untolerated taint(s)";
    story.autoscaler = about_pods(&story, &decision(Decided::NoScaleUp, options));
    let offered = |story: &Tables| wait(story).would_have_fitted;
    assert_eq!(offered(&story), ["small +8 nodes (its max is 10)"]);
    let options = options.replace("max node group size reached", "node(s) didn't match Pod's node affinity/selector");
    story.autoscaler = about_pods(&story, &decision(Decided::NoScaleUp, &options));
    assert_eq!(offered(&story), [format!("no group: {options}")]);
}

#[test]
fn a_pod_that_preempts_others_tells_whom_where_and_why_them() {
    let mut story = nginx();
    let pod = story.pods.iter().find(|pod| pod.created == at(300)).expect("pods came at 5:00").clone();
    story.decisions.push(DecisionRow {
        time: at(301),
        namespace: pod.namespace.clone(),
        pod: pod.name.clone(),
        owner: pod.owner.clone(),
        outcome: Outcome::Unschedulable,
        node: None,
        message: Some("0/3 nodes are available: 3 Insufficient cpu.".into()),
        explained: Explained {
            scores: Some("n-2, one of 3 candidates, chosen for the fewest victims; could stay: default/c".into()),
            victims: Some("default/a, default/b".into()),
            ..Explained::default()
        },
    });
    let subject = Subject::Object(format!("{}/{}", pod.namespace, pod.name));
    let told = render(&asked(&story, &subject), 400);
    let expected = "makes room by preempting default/a, default/b on n-2, one of 3 candidates, chosen for the fewest \
                    victims; could stay: default/c";
    assert!(told.contains(expected), "{told}");
}
