//! What is kept between pods must not change a decision: a long-lived scheduler is compared, before every pod, with one
//! that knows the same cluster and has kept nothing.

use serde_json::{Value, json};
use sk_core::SimTime;
use sk_core::rng::Stream;
use sk_scheduler::{Decision, PodId, Scheduler};

use crate::support::{World, all, asks, in_zone, merge, node, pod, selector};

/// Numbers from a seed.
pub(crate) struct Draw(pub(crate) Stream);

impl Draw {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    pub(crate) fn one_in(&mut self, chance: u64) -> bool {
        self.below(chance) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

const ZONES: [&str; 3] = ["x", "y", "z"];
pub(crate) const APPS: [&str; 4] = ["web", "db", "cache", "job"];

pub(crate) fn random_node(draw: &mut Draw, name: &str) -> Value {
    let cpu = draw.pick(&["2", "4", "8"]).to_owned();
    let mut made = node(name, json!({"status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "12"}}}));
    if !draw.one_in(6) {
        made["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!(draw.pick(&ZONES));
    }
    if draw.one_in(4) {
        made["metadata"]["labels"]["disk"] = json!("ssd");
    }
    if draw.one_in(5) {
        let effect = draw.pick(&["NoSchedule", "PreferNoSchedule"]);
        made["spec"]["taints"] = json!([{"key": "k", "effect": effect}]);
    }
    if draw.one_in(3) {
        made["status"]["images"] = json!([{"names": ["app:1"], "sizeBytes": 700 << 20}]);
    }
    made["spec"]["unschedulable"] = json!(draw.one_in(12));
    made
}

fn term(draw: &mut Draw) -> Value {
    let key = draw.pick(&["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
    let mut term = json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": draw.pick(&APPS)}}});
    if draw.one_in(4) {
        term["namespaceSelector"] = json!({"matchLabels": {"team": "a"}});
    }
    term
}

pub(crate) fn random_spec(draw: &mut Draw) -> Value {
    let (cpu, memory) = (*draw.pick(&["100m", "500m", "1500m"]), *draw.pick(&["128Mi", "1Gi"]));
    let mut spec = asks(cpu, memory);
    let weighted = |draw: &mut Draw| json!([{"weight": 1 + draw.below(50), "podAffinityTerm": term(draw)}]);
    let parts = [
        json!({}),
        json!({"tolerations": [{"key": "k", "operator": "Exists"}]}),
        json!({"nodeSelector": {"disk": "ssd"}}),
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(draw)]}}}),
        json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(draw)]}}}),
        json!({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted(draw)}}}),
        json!({"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted(draw)}}}),
        json!({"topologySpreadConstraints": [spread(draw)]}),
        json!({"topologySpreadConstraints": [spread(draw), spread(draw)]}),
        json!({"priority": 100 * draw.below(4)}),
        json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 10, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}]}}}),
    ];
    for _ in 0..2 {
        let part = draw.pick(&parts).clone();
        merge(&mut spec, part);
    }
    if draw.one_in(8) {
        spec["containers"][0]["ports"] = json!([{"hostPort": 80 + draw.below(2), "containerPort": 1}]);
    }
    spec
}

fn spread(draw: &mut Draw) -> Value {
    json!({
        "maxSkew": 1 + draw.below(2),
        "topologyKey": draw.pick(&["kubernetes.io/hostname", "topology.kubernetes.io/zone"]),
        "whenUnsatisfiable": draw.pick(&["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": {"matchLabels": {"app": draw.pick(&APPS)}},
        "nodeTaintsPolicy": draw.pick(&["Honor", "Ignore"]),
        "minDomains": null,
    })
}

/// A decision as text, so that a difference can be read.
pub(crate) fn shown(scheduler: &Scheduler, decision: &Decision) -> String {
    let name = |node: &sk_scheduler::NodeId| scheduler.cluster.node(*node).name.clone();
    match decision {
        Decision::Placed { node, feasible, evaluated } => format!("{} of {feasible} of {evaluated}", name(node)),
        Decision::Nominated { node, victims, diagnosis } => format!("{} {victims:?} {diagnosis}", name(node)),
        Decision::Unschedulable(diagnosis) => diagnosis.to_string(),
        Decision::NoProfile => "no profile".to_owned(),
    }
}

/// What a new scheduler would do, checked against its own scores, plugin by plugin.
fn by_a_new_one(scheduler: &Scheduler, pod: PodId) -> String {
    let explanation = scheduler.fork().explain(pod).unwrap();
    let mut fresh = scheduler.fork();
    let decision = fresh.schedule(pod);
    if let Decision::Placed { node, feasible, .. } = &decision
        && *feasible > 1
    {
        let best = explanation.nodes.iter().map(|scores| scores.total).max();
        let chosen = explanation.nodes.iter().find(|scores| scores.node == *node).unwrap();
        assert_eq!(Some(chosen.total), best, "the chosen node has the best total");
        assert_eq!(explanation.nodes.len(), *feasible);
    }
    shown(&fresh, &decision)
}

fn play(seed: u64, nodes: u64, pods: usize) -> (usize, usize) {
    let mut draw = Draw(Stream::new(seed, "incremental"));
    let made: Vec<Value> = (0..nodes).map(|n| random_node(&mut draw, &format!("n{n}"))).collect();
    let mut world = World::new(made);
    for (name, team) in [("default", "a"), ("other", "b")] {
        world.cluster().objects.set_namespace(name, Some([("team".into(), team.into())].into()));
    }
    world.cluster().objects.set_service("default", "web", Some(selector(json!({"app": "web"}))));
    let specs: Vec<Value> = (0..12).map(|_| random_spec(&mut draw)).collect();
    let mut placed: Vec<PodId> = Vec::new();
    let (mut placements, mut preemptions) = (0, 0);
    for number in 0..pods {
        disturb(&mut draw, &mut world, &mut placed, number);
        let spec = if draw.one_in(3) { random_spec(&mut draw) } else { draw.pick(&specs).clone() };
        let mut wanted = pod(&format!("p{number}"), json!({"app": draw.pick(&APPS)}), spec);
        wanted["metadata"]["namespace"] = json!(draw.pick(&["default", "default", "other"]));
        let id = world.create(&wanted);
        let expected = by_a_new_one(&world.scheduler, id);
        let decision = world.scheduler.schedule(id);
        assert_eq!(shown(&world.scheduler, &decision), expected, "seed {seed}, pod {number}: {wanted}");
        match decision {
            Decision::Placed { node, .. } => {
                world.put(id, node);
                placed.push(id);
                placements += 1;
            }
            Decision::Nominated { node, victims, .. } => {
                world.cluster().nominate(id, node);
                world.cluster().update_pod(id, |pod| pod.nominated = Some(node));
                for victim in &victims {
                    world.cluster().remove_pod(*victim);
                }
                placed.retain(|pod| !victims.contains(pod));
                preemptions += 1;
            }
            Decision::Unschedulable(_) | Decision::NoProfile => world.cluster().drop_pod(id),
        }
    }
    (placements, preemptions)
}

/// Pods end, nodes come, change and go.
pub(crate) fn disturb(draw: &mut Draw, world: &mut World, placed: &mut Vec<PodId>, number: usize) {
    if draw.one_in(4) && !placed.is_empty() {
        let at = draw.below(placed.len() as u64) as usize;
        let pod = placed.swap_remove(at);
        match draw.one_in(2) {
            true => world.cluster().drop_pod(pod),
            false => world.cluster().update_pod(pod, |pod| pod.deleting = true),
        }
    }
    if number.is_multiple_of(3) && !placed.is_empty() {
        // Its object is written: now and then with other labels, mostly without anything that is counted.
        let (pod, other) = (placed[number % placed.len()], placed[number / 3 % placed.len()]);
        let class = world.cluster().pod(other).class;
        world.cluster().update_pod(pod, |pod| match number % 30 {
            0 => pod.class = class,
            _ => pod.started = Some(SimTime::from_secs(1)),
        });
    }
    if draw.one_in(9) {
        let name = match draw.one_in(2) {
            true => format!("n{}", draw.below(20)),
            false => format!("late{number}"),
        };
        let node = random_node(draw, &name);
        world.set_node(&node);
    }
    if draw.one_in(15) {
        let nodes = world.scheduler.cluster.search_order().to_vec();
        if nodes.len() > 3 {
            let node = *draw.pick(&nodes);
            world.cluster().remove_node(node);
        }
    }
    if draw.one_in(20) {
        let team = (*draw.pick(&["a", "b"])).into();
        world.cluster().objects.set_namespace("other", Some([("team".into(), team)].into()));
    }
}

#[test]
fn what_is_kept_between_pods_changes_no_decision() {
    let (mut placements, mut preemptions) = (0, 0);
    for seed in 0..14 {
        let (placed, preempted) = play(seed, 5 + 3 * seed, 120);
        placements += placed;
        preemptions += preempted;
    }
    assert!(
        placements > 400 && preemptions > 15,
        "{placements} placements and {preemptions} preemptions show too little"
    );
}

#[test]
fn a_search_that_ends_early_goes_on_where_it_ended() {
    let (placements, _) = play(99, 240, 250);
    assert!(placements > 150);
}

#[test]
fn the_same_cluster_gives_the_same_decisions_twice() {
    let run = || {
        let mut world = World::new((0..150).map(|n| node(&format!("n{n}"), json!({}))));
        let plain = |n: usize| pod(&format!("p{n}"), json!({"app": "web"}), all([asks("250m", "256Mi")]));
        (0..300).map(|n| world.place(&plain(n))).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

/// Changes of pods that a counter had still to read were counted in the zone that the node has by then.
#[test]
fn a_node_that_changes_zone_after_its_pods_went_takes_no_count_along() {
    let spread = json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}]});
    let mut world = World::new([in_zone("a", "x"), in_zone("b", "y"), in_zone("c", "z")]);
    for number in 0..4 {
        world.place(&pod(&format!("p{number}"), json!({"app": "web"}), spread.clone()));
    }
    let on_a = world.scheduler.cluster.pods_on(world.node("a")).to_vec();
    on_a.into_iter().for_each(|pod| world.cluster().drop_pod(pod));
    world.set_node(&in_zone("a", "y"));
    let next = world.create(&pod("next", json!({"app": "web"}), spread));
    let expected = by_a_new_one(&world.scheduler, next);
    let decision = world.scheduler.schedule(next);
    assert_eq!(shown(&world.scheduler, &decision), expected);
}
