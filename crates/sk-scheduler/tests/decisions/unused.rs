//! Classes that nothing uses are freed, with everything that was derived from them, and nobody notices.

use serde_json::{Value, json};
use sk_core::SimTime;
use sk_core::rng::Stream;
use sk_scheduler::queue::{Event, PodAction, QueueSettings};
use sk_scheduler::{Decision, PodId, Queue, Scheduler};

use crate::incremental::{APPS, Draw, disturb, random_node, random_spec, shown};
use crate::support::{World, all, asks, in_zone, merge, node, pod};

/// So many classes come and go.
const CHURNED: usize = 2_500;
/// The least that any build holds before it looks who uses them, and those in use.
const MOST_HELD: usize = 1_024 + 64;

/// A pod like no other: its labels, its image, its terms and its constraints name its number.
fn one_off(number: usize) -> Value {
    let own = json!({"matchLabels": {"id": format!("v{number}")}});
    let near = json!({"topologyKey": "topology.kubernetes.io/zone", "labelSelector": own});
    let spread = json!({"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "labelSelector": own,
        "whenUnsatisfiable": if number.is_multiple_of(2) { "DoNotSchedule" } else { "ScheduleAnyway" }});
    let cpu = if number.is_multiple_of(5) { "900" } else { "100m" };
    let spec = all([
        asks(cpu, "1Mi"),
        json!({"nodeSelector": {"topology.kubernetes.io/zone": "x"}, "topologySpreadConstraints": [spread]}),
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}}),
    ]);
    let mut made = pod(&format!("p{number}"), json!({"app": "x", "id": format!("v{number}")}), spec);
    made["spec"]["containers"][0]["image"] = json!(format!("app:{number}"));
    made
}

#[test]
fn what_is_held_is_bounded_by_what_lives_and_not_by_what_has_lived() {
    let mut world = World::new((0..4).map(|n| in_zone(&format!("n{n}"), ["x", "y"][n % 2])));
    let mut living = Vec::new();
    for number in 0..CHURNED {
        if world.scheduler.has_many_classes() {
            world.scheduler.free_classes([]);
        }
        // Twice, because the second pod of a shape is worth a column.
        for _ in 0..2 {
            let id = world.create(&one_off(number));
            world.try_again(id);
            living.push(id);
        }
        if living.len() > 20 {
            living.drain(..2).for_each(|pod| world.scheduler.cluster.drop_pod(pod));
        }
        let kept = world.scheduler.kept();
        let most = [kept.classes, kept.shapes, kept.columns, kept.counters, kept.failures, kept.of_plugins];
        assert!(most.iter().all(|held| *held <= 4 * MOST_HELD), "{kept:?} after {number} classes");
        assert!(kept.classes <= MOST_HELD, "{kept:?} after {number} classes");
    }
    world.scheduler.free_classes([]);
    let kept = world.scheduler.kept();
    assert!(kept.classes <= 11 && kept.shapes <= 11 && kept.columns <= 11, "{kept:?} of ten classes with pods");
    assert!(kept.failures <= 11 && kept.of_plugins <= 33 && kept.counters <= 44, "{kept:?} of ten classes with pods");
    living.into_iter().for_each(|pod| world.scheduler.cluster.drop_pod(pod));
    world.scheduler.free_classes([]);
    assert_eq!(world.scheduler.kept(), sk_scheduler::framework::Kept::default(), "nothing lives, so nothing is held");
}

/// Two schedulers that see the same. One of them frees what it can before every `every`th pod.
struct Pair {
    freeing: World,
    keeping: World,
    placed: [Vec<PodId>; 2],
}

impl Pair {
    fn new(draw: &mut Draw, nodes: u64) -> Self {
        let nodes: Vec<Value> = (0..nodes).map(|n| random_node(draw, &format!("n{n}"))).collect();
        let mut pair =
            Self { freeing: World::new(nodes.clone()), keeping: World::new(nodes), placed: [Vec::new(), Vec::new()] };
        for world in [&mut pair.freeing, &mut pair.keeping] {
            for (name, team) in [("default", "a"), ("other", "b")] {
                world.cluster().objects.set_namespace(name, Some([("team".into(), team.into())].into()));
            }
            let selector = crate::support::selector(json!({"app": "web"}));
            world.cluster().objects.set_service("default", "web", Some(selector));
        }
        pair
    }

    /// The same disturbance for both.
    fn disturb(&mut self, draw: &mut Draw, number: usize) {
        let mut again = Draw(draw.0.clone());
        disturb(&mut again, &mut self.keeping, &mut self.placed[1], number);
        disturb(draw, &mut self.freeing, &mut self.placed[0], number);
    }

    fn decide(&mut self, wanted: &Value) -> (String, String) {
        let [freed, kept] = &mut self.placed;
        (decide(&mut self.freeing, freed, wanted), decide(&mut self.keeping, kept, wanted))
    }
}

fn decide(world: &mut World, placed: &mut Vec<PodId>, wanted: &Value) -> String {
    let id = world.create(wanted);
    let decision = world.scheduler.schedule(id);
    let words = shown(&world.scheduler, &decision);
    match decision {
        Decision::Placed { node, .. } => {
            world.put(id, node);
            placed.push(id);
        }
        Decision::Nominated { victims, .. } => {
            victims.iter().for_each(|victim| world.cluster().drop_pod(*victim));
            placed.retain(|pod| !victims.contains(pod));
            world.cluster().drop_pod(id);
        }
        Decision::Unschedulable(_) | Decision::NoProfile => world.cluster().drop_pod(id),
    }
    words
}

fn anew(scheduler: &Scheduler, wanted: &Value) -> String {
    let mut fresh = World::new([]);
    fresh.scheduler = scheduler.fork();
    decide(&mut fresh, &mut Vec::new(), wanted)
}

fn play(seed: u64, every: usize) -> (usize, usize) {
    let mut draw = Draw(Stream::new(seed, "unused"));
    let mut pair = Pair::new(&mut draw, 6 + seed);
    let specs: Vec<Value> = (0..8).map(|_| random_spec(&mut draw)).collect();
    let (mut placements, mut freed) = (0, 0);
    for number in 0..140 {
        pair.disturb(&mut draw, number);
        if number.is_multiple_of(every) {
            let before = pair.freeing.scheduler.kept().classes;
            pair.freeing.scheduler.free_classes([]);
            freed += before - pair.freeing.scheduler.kept().classes;
        }
        let spec = if draw.one_in(3) { random_spec(&mut draw) } else { draw.pick(&specs).clone() };
        let mut wanted = pod(&format!("p{number}"), json!({"app": draw.pick(&APPS)}), spec);
        if draw.one_in(2) {
            merge(&mut wanted["metadata"]["labels"], json!({"id": format!("v{number}")}));
        }
        wanted["metadata"]["namespace"] = json!(draw.pick(&["default", "default", "other"]));
        let expected = anew(&pair.freeing.scheduler, &wanted);
        let (ours, theirs) = pair.decide(&wanted);
        assert_eq!(ours, theirs, "seed {seed}, pod {number}: {wanted}");
        assert_eq!(ours, expected, "seed {seed}, pod {number}: {wanted}");
        placements += usize::from(pair.placed[0].len() > placements);
    }
    (placements, freed)
}

#[test]
fn decisions_are_those_of_a_scheduler_that_never_frees_a_class() {
    let (mut placements, mut freed) = (0, 0);
    for seed in 0..6 {
        for every in [1, 7, 40] {
            let (placed, gone) = play(seed, every);
            placements += placed;
            freed += gone;
        }
    }
    assert!(placements > 250 && freed > 500, "{placements} placements and {freed} freed classes show too little");
}

#[test]
fn a_class_stays_while_a_waiting_pod_or_an_event_that_a_pod_may_have_missed_names_it() {
    let mut world = World::new([node("n", json!({}))]);
    let mut queue = Queue::new(QueueSettings::default(), SimTime::from_secs(0));
    let there = world.bind("n", &pod("there", json!({"app": "db"}), asks("3", "1Gi")));
    let apart = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}]}}});
    let waits = world.create(&pod("waits", json!({"app": "web"}), apart));
    queue.add(SimTime::from_secs(1), waits, &world.scheduler);
    assert_eq!(queue.pop(SimTime::from_secs(1)), Some(waits));
    let Decision::Unschedulable(diagnosis) = world.scheduler.schedule(waits) else { panic!("there is a db") };
    // While the pod is being tried, the other one goes.
    let class = world.scheduler.cluster.pod(there).class;
    world.cluster().drop_pod(there);
    let gone = Event::PlacedPod { action: PodAction::Delete, before: Some(class), after: None };
    queue.happened(SimTime::from_secs(2), &gone, &world.scheduler);
    let freed = world.scheduler.free_classes(queue.classes());
    assert!(!freed.contains(class), "the event names it");
    queue.failed(SimTime::from_secs(3), waits, diagnosis.plugins(), &world.scheduler);
    assert_eq!(queue.sizes().2, 0, "the pod is tried again, because what kept it off went meanwhile");
    let freed = world.scheduler.free_classes(queue.classes());
    assert!(freed.contains(class), "nothing names it any more");
}

#[test]
fn a_class_that_was_freed_comes_back_as_if_it_were_new() {
    let mut world = World::new((0..3).map(|n| in_zone(&format!("n{n}"), ["x", "y", "z"][n])));
    let spread = json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}]});
    let web = |number: usize| pod(&format!("p{number}"), json!({"app": "web"}), spread.clone());
    let first: Vec<String> = (0..6).map(|number| world.place(&web(number))).collect();
    let pods: Vec<PodId> = world.pods.values().copied().collect();
    pods.into_iter().for_each(|pod| world.cluster().drop_pod(pod));
    world.scheduler.free_classes([]);
    assert_eq!(world.scheduler.kept().classes, 0);
    // Another class takes the id, and must not be taken for it.
    let other = world.create(&pod("other", json!({"app": "db"}), asks("1", "1Gi")));
    let others: Vec<String> = (0..2).map(|_| world.try_again(other)).collect();
    assert_eq!(others.len(), 2);
    let again: Vec<String> = (10..16).map(|number| world.place(&web(number))).collect();
    let mut zones = [first, again];
    zones.iter_mut().for_each(|zones| zones.sort());
    assert_eq!(zones[0], zones[1], "two in each zone, as before");
}
