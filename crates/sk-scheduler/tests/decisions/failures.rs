//! A class that found no node is not compared with every node again until something has changed that matters to it: work
//! is counted in comparisons ([`sk_scheduler::Scheduler::looks`]), and every answer is compared with that of a scheduler
//! that remembers nothing.

use serde_json::{Value, json};
use sk_core::rng::Stream;
use sk_scheduler::{Decision, PodId};

use crate::incremental::{APPS, Draw, disturb, random_node, random_spec, shown};
use crate::support::{World, all, asks, in_zone, node, pod, selector};

impl World {
    /// Tries a pod; what a scheduler without a memory says must be the same. Also: how many comparisons it took.
    fn tried(&mut self, pod: PodId) -> (Decision, u64) {
        let mut fresh = self.scheduler.fork();
        let expected = fresh.schedule(pod);
        let before = self.scheduler.looks();
        let decision = self.scheduler.schedule(pod);
        assert_eq!(shown(&self.scheduler, &decision), shown(&fresh, &expected));
        (decision, self.scheduler.looks() - before)
    }

    /// Tries a pod that is to find no node; how many comparisons that took.
    fn fails(&mut self, pod: PodId) -> u64 {
        let (decision, looks) = self.tried(pod);
        assert!(matches!(decision, Decision::Unschedulable(_)), "{}", shown(&self.scheduler, &decision));
        looks
    }

    fn called(&self, name: &str) -> PodId {
        self.pods[name]
    }
}

fn plain(name: &str) -> Value {
    pod(name, json!({"app": "web"}), asks("250m", "256Mi"))
}

const NODES: usize = 200;

fn nodes() -> World {
    World::new((0..NODES).map(|n| in_zone(&format!("n{n}"), &format!("z{}", n % 3))))
}

/// Each of the waiting pods is tried 50 times, and after every try a pod comes and one goes.
fn work_of_waiting(world: &mut World, waiting: &[Value]) -> (u64, usize) {
    let waiting: Vec<PodId> = waiting.iter().map(|pod| world.create(pod)).collect();
    let (mut looks, mut changes, mut alive) = (0, 0, std::collections::VecDeque::new());
    for round in 0..50 {
        for pod in &waiting {
            looks += world.fails(*pod);
            let name = format!("w{changes}");
            world.place(&plain(&name));
            alive.push_back(world.called(&name));
            if round > 2
                && let Some(gone) = alive.pop_front()
            {
                world.cluster().drop_pod(gone);
            }
            changes += 2;
        }
    }
    (looks, changes)
}

#[test]
fn pods_that_never_fit_are_not_compared_with_every_node_again() {
    let mut world = nodes();
    let large = |n: usize| pod(&format!("large{n}"), json!({}), asks(&format!("{}", 8 + n % 3), "1Gi"));
    let (looks, changes) = work_of_waiting(&mut world, &(0..6).map(large).collect::<Vec<_>>());
    // A class is compared with each node when it is first seen and when its column is made, and then with what changed.
    let expected = (3 * 2 * NODES + 3 * changes) as u64;
    assert!(looks <= expected, "{looks} comparisons for 300 tries in vain; {expected} would do");
}

#[test]
fn pods_kept_apart_are_not_compared_with_every_node_while_only_others_come_and_go() {
    let mut world = nodes();
    let apart = |name: String| {
        let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}});
        let rule = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        pod(&name, json!({"app": "db"}), all([asks("100m", "64Mi"), json!({"affinity": rule})]))
    };
    for n in 0..NODES {
        world.place(&apart(format!("db{n}")));
    }
    let (looks, changes) = work_of_waiting(&mut world, &[apart("one".to_owned()), apart("more".to_owned())]);
    let expected = (3 * NODES + changes) as u64;
    assert!(looks <= expected, "{looks} comparisons for 100 tries in vain; {expected} would do");
}

#[test]
fn words_that_are_the_same_are_shared() {
    let mut world = nodes();
    let large: Vec<PodId> =
        (0..2).map(|n| world.create(&pod(&format!("l{n}"), json!({}), asks("64", "1Gi")))).collect();
    let mut told = |pod: PodId| match world.scheduler.schedule(pod) {
        Decision::Unschedulable(diagnosis) => diagnosis,
        other => panic!("{other:?}"),
    };
    let (one, other) = (told(large[0]), told(large[1]));
    assert!(std::sync::Arc::ptr_eq(&one, &other));
    assert_eq!(one.message(), one.to_string());
}

/// What a pod waits for comes, and it is placed, although its class is known to have failed.
#[test]
fn a_failure_ends_with_its_cause() {
    type Case = (&'static str, Value, fn(&mut World));
    let anti = |app: &str| {
        let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}});
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    };
    let near = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "late"}}}]}});
    let spread = json!([{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}}]);
    let cases: [Case; 8] = [
        ("room", asks("4", "1Gi"), |world| world.scheduler.cluster.drop_pod(world.called("a0"))),
        ("a larger node", asks("6", "1Gi"), |world| {
            world.set_node(&node("c", json!({"status": {"allocatable": {"cpu": "8"}}})));
        }),
        ("a label", json!({"nodeSelector": {"disk": "ssd"}}), |world| {
            world.set_node(&node("b", json!({"metadata": {"labels": {"disk": "ssd"}}})));
        }),
        ("one that it keeps away from goes", json!({"affinity": anti("web")}), |world| {
            world.scheduler.cluster.drop_pod(world.called("b0"));
        }),
        ("one that it keeps away from is relabelled", json!({"affinity": anti("web")}), |world| {
            let class = world.create(&pod("model", json!({"app": "other"}), asks("1", "1Gi")));
            let class = world.scheduler.cluster.pod(class).class;
            let relabelled = world.called("b0");
            world.cluster().update_pod(relabelled, |pod| pod.class = class);
        }),
        ("one that it wants to be near comes", json!({"affinity": near}), |world| {
            world.bind("a", &pod("late", json!({"app": "late"}), asks("1", "1Gi")));
        }),
        (
            "the other domain fills up",
            all([json!({"topologySpreadConstraints": spread}), asks("3500m", "1Gi")]),
            |world| {
                // With one of its kind more on each node its own may go onto the one that has room.
                world.scheduler.cluster.drop_pod(world.called("a0"));
            },
        ),
        ("somebody less important comes", all([asks("2500m", "1Gi"), json!({"priority": 5})]), |world| {
            world.scheduler.cluster.drop_pod(world.called("a0"));
            world.bind("a", &pod("low", json!({}), all([asks("2", "1Gi"), json!({"priority": 1})])));
        }),
    ];
    for (what, spec, happens) in cases {
        let mut world = World::new([node("a", json!({})), node("b", json!({}))]);
        for name in ["a", "b"] {
            let labels = json!({"app": "web"});
            world.bind(name, &pod(&format!("{name}0"), labels, all([asks("2", "1Gi"), json!({"priority": 9})])));
        }
        let waiting = world.create(&pod("waiting", json!({"app": "waits"}), spec));
        for _ in 0..3 {
            world.fails(waiting);
            world.place(&pod("passer-by", json!({}), asks("10m", "1Mi")));
            let gone = world.called("passer-by");
            world.cluster().drop_pod(gone);
        }
        happens(&mut world);
        let (decision, _) = world.tried(waiting);
        assert!(!matches!(decision, Decision::Unschedulable(_)), "{what}: {}", shown(&world.scheduler, &decision));
    }
}

#[test]
fn where_the_next_search_starts_is_the_same_with_and_without_a_memory() {
    let mut world = World::new((0..150).map(|n| node(&format!("n{n}"), json!({}))));
    let large = world.create(&pod("large", json!({}), asks("64", "1Gi")));
    for round in 0..40 {
        world.fails(large);
        let id = world.create(&plain(&format!("p{round}")));
        let (decision, _) = world.tried(id);
        let Decision::Placed { node, .. } = decision else { panic!("there is room") };
        world.put(id, node);
        if round % 10 == 5 {
            let node = world.node(&format!("n{round}"));
            world.cluster().remove_node(node);
        }
    }
}

/// A crowd of pods of a few kinds on few nodes: most tries are in vain, and all are compared.
fn crowd(seed: u64) -> (usize, usize) {
    let mut draw = Draw(Stream::new(seed, "crowd"));
    let made: Vec<Value> = (0..6 + seed).map(|n| random_node(&mut draw, &format!("n{n}"))).collect();
    let mut world = World::new(made);
    for (name, team) in [("default", "a"), ("other", "b")] {
        world.cluster().objects.set_namespace(name, Some([("team".into(), team.into())].into()));
    }
    world.cluster().objects.set_service("default", "web", Some(selector(json!({"app": "web"}))));
    let kinds: Vec<Value> = (0..8)
        .map(|number| {
            let spec = random_spec(&mut draw);
            let mut kind = pod("", json!({"app": draw.pick(&APPS)}), spec);
            kind["metadata"]["namespace"] = json!(draw.pick(&["default", "default", "other"]));
            if number % 4 == 0 {
                kind["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("16");
            }
            kind
        })
        .collect();
    let (mut placed, mut waiting): (Vec<PodId>, Vec<PodId>) = (Vec::new(), Vec::new());
    let (mut in_vain, mut remembered) = (0, 0);
    for number in 0..160 {
        if draw.one_in(3) {
            disturb(&mut draw, &mut world, &mut placed, number);
        }
        let mut new = draw.pick(&kinds).clone();
        new["metadata"]["name"] = json!(format!("p{number}"));
        waiting.push(world.create(&new));
        for _ in 0..4 {
            let at = draw.below(waiting.len() as u64) as usize;
            let id = waiting[at];
            let (decision, looks) = world.tried(id);
            match decision {
                Decision::Placed { node, .. } => {
                    waiting.swap_remove(at);
                    world.cluster().withdraw(id);
                    world.put(id, node);
                    placed.push(id);
                }
                Decision::Nominated { node, victims, .. } => {
                    world.cluster().nominate(id, node);
                    world.cluster().update_pod(id, |pod| pod.nominated = Some(node));
                    for victim in &victims {
                        world.cluster().remove_pod(*victim);
                    }
                    placed.retain(|pod| !victims.contains(pod));
                }
                Decision::Unschedulable(_) => {
                    in_vain += 1;
                    remembered += usize::from(looks == 0);
                    if draw.one_in(6) {
                        world.cluster().withdraw(id);
                        world.cluster().update_pod(id, |pod| pod.nominated = None);
                    }
                }
                Decision::NoProfile => panic!("all pods are for the default scheduler"),
            }
            if waiting.is_empty() {
                break;
            }
        }
    }
    (in_vain, remembered)
}

#[test]
fn what_is_remembered_of_failures_changes_no_decision() {
    let (mut in_vain, mut remembered) = (0, 0);
    for seed in 0..12 {
        let (tries, without_a_look) = crowd(seed);
        in_vain += tries;
        remembered += without_a_look;
    }
    assert!(in_vain > 2_000 && remembered > 1_000, "{remembered} of {in_vain} tries in vain show too little");
}

#[test]
fn a_shape_that_comes_back_after_many_others_is_soon_compared_with_what_changed_alone() {
    let mut world = nodes();
    let of = |size: &str, n: usize| pod(&format!("of-{size}-{n}"), json!({}), asks(size, "16Mi"));
    (0..3).for_each(|n| drop(world.place(&of("10m", n))));
    (0..2 * NODES).for_each(|n| drop(world.place(&of("15m", n))));
    let before = world.scheduler.looks();
    const AGAIN: usize = 40;
    for n in 0..AGAIN {
        let pod = world.create(&of("10m", 3 + n));
        let (decision, _) = world.tried(pod);
        let Decision::Placed { node, .. } = decision else { panic!("there is room for it") };
        world.cluster().add_pod(pod, node);
    }
    let looks = world.scheduler.looks() - before;
    // Once node by node, once to make its column anew, and then the node of the pod before.
    let expected = (2 * NODES + 2 * AGAIN) as u64;
    assert!(looks <= expected, "{looks} comparisons for {AGAIN} pods; {expected} would do");
}
