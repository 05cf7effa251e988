//! What-if questions leave no trace.

use serde_json::json;
use sk_scheduler::Scheduler;

use crate::support::{World, asks, node, pod};

/// Everything that can be seen of the pods on nodes.
fn seen(world: &World) -> String {
    let cluster = &world.scheduler.cluster;
    let on = |node| cluster.pods_on(node).iter().map(|pod| cluster.pod(*pod).name.to_string()).collect::<Vec<_>>();
    format!("{:?}", cluster.search_order().iter().map(|node| on(*node)).collect::<Vec<_>>())
}

#[test]
fn a_rollback_restores_every_pod_to_its_place() {
    let mut world = World::new([node("a", json!({})), node("b", json!({}))]);
    for n in 0..6 {
        world.place(&pod(&format!("p{n}"), json!({}), asks("500m", "512Mi")));
    }
    let (before, a, b) = (seen(&world), world.node("a"), world.node("b"));
    let outer = world.cluster().checkpoint();
    let (first, second, third) = (world.pods["p0"], world.pods["p3"], world.pods["p1"]);
    world.cluster().remove_pod(first);
    let inner = world.cluster().checkpoint();
    world.cluster().add_pod(second, b);
    world.cluster().add_pod(first, a);
    world.cluster().update_pod(second, |pod| pod.preempted = true);
    world.cluster().update_pod(third, |pod| pod.preempted = true);
    world.cluster().rollback(inner);
    world.cluster().add_pod(second, a);
    world.cluster().rollback(outer);
    assert_eq!(seen(&world), before);
    let wish = pod("big", json!({}), asks("2500m", "1Gi"));
    let expected = {
        let mut fork = World::new([]);
        fork.scheduler = world.scheduler.fork();
        fork.place(&wish)
    };
    assert_eq!(world.place(&wish), expected);
}

#[test]
fn a_fork_does_not_touch_what_it_came_from() {
    let mut world = World::new([node("a", json!({}))]);
    let wish = world.create(&pod("p", json!({}), asks("8", "1Gi")));
    let mut fork = world.scheduler.fork();
    let big = sk_scheduler::NodeSpec::new("big", 16_000, 1 << 34, 110);
    let big = fork.cluster.set_node(big).node;
    assert!(fork.check(wish, big).is_ok());
    assert!(
        fork.check(wish, world.node("a"))
            .unwrap_err()
            .to_string()
            .starts_with("0/1 nodes are available: 1 Insufficient cpu.")
    );
    assert_eq!(world.scheduler.cluster.node_count(), 1);
}

#[test]
fn a_scheduler_can_be_sent_to_another_thread() {
    fn is_send<T: Send + Clone>() {}
    is_send::<Scheduler>();
    is_send::<sk_scheduler::Cluster>();
    is_send::<sk_scheduler::Queue>();
}

#[test]
fn a_node_that_comes_back_finds_its_pods_and_its_place() {
    let mut world = World::new([node("a", json!({})), node("b", json!({})), node("c", json!({}))]);
    world.place(&pod("p0", json!({}), json!({})));
    let b = world.node("b");
    world.bind("b", &pod("stays", json!({}), asks("3500m", "1Gi")));
    world.cluster().remove_node(b);
    world.set_node(&node("b", json!({})));
    assert_eq!(world.node("b"), b, "within one cycle it is the same node");
    let said = world.place(&pod("p1", json!({}), json!({"nodeName": "b"})));
    assert_eq!(said, "b");
    let order: Vec<String> = world.scheduler.cluster.search_order().iter().map(|node| world.name(*node)).collect();
    assert_eq!(order, ["a", "b", "c"]);
    world.cluster().remove_node(b);
    assert!(world.place(&pod("p2", json!({}), asks("1", "1Gi"))).len() == 1);
    world.set_node(&node("b", json!({})));
    let order: Vec<String> = {
        world.place(&pod("p3", json!({}), json!({})));
        world.scheduler.cluster.search_order().iter().map(|node| world.name(*node)).collect()
    };
    assert_eq!(order, ["a", "c", "b"], "after a cycle without it, it comes last");
    let b = world.node("b");
    assert!(world.scheduler.cluster.pods_on(b).len() >= 2, "its pods are still counted");
}
