//! Pods per second, against a plain loop in the same run: `cargo bench -p sk-scheduler --bench placement`.
//!
//! The loop is what one would write first: columns of numbers, and for each pod one pass over all nodes with Fit,
//! LeastAllocated and BalancedAllocation. Where both model the same (all nodes looked at, nothing but requests) every
//! placement is compared. Pods come and go, so that the cluster is about half full throughout.
//!
//! `PODS=n` asks for another number of pods; `-- loop`, `-- others` or `-- never` for one part alone.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and reads its size"
)]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sk_core::rng::Stream;
use sk_core::{SimDuration, SimTime};
use sk_scheduler::class::Requests;
use sk_scheduler::queue::{Event, PodAction, QueueSettings};
use sk_scheduler::{Cluster, Decision, NodeSpec, PodClass, PodId, Profile, Queue, Scheduler};

/// Measures time on the processor where the system tells it (Linux), so that a busy machine measures the same; elsewhere
/// the wall clock.
struct Watch {
    began: Instant,
    on_cpu: Option<u64>,
}

impl Watch {
    fn start() -> Self {
        Self { on_cpu: Self::on_cpu(), began: Instant::now() }
    }

    fn on_cpu() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').next()?.parse().ok()
    }

    fn elapsed(&self) -> Duration {
        match (self.on_cpu, Self::on_cpu()) {
            (Some(before), Some(after)) => Duration::from_nanos(after - before),
            _ => self.began.elapsed(),
        }
    }
}

const CPU: i64 = 32_000;
const MEMORY: i64 = 128 << 30;
const MAX_PODS: i64 = 110;
/// So many pods per node are there at once.
const PODS_PER_NODE: usize = 20;

/// What a pod asks for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    cpu: i64,
    memory: i64,
}

/// Pods of a few sizes, or each of its own.
fn workload(pods: usize, sizes: Option<u64>) -> Vec<Asked> {
    let mut draw = Stream::new(7, "bench");
    let mut one = || Asked { cpu: 50 + draw.below(1_500) as i64, memory: (64 << 20) + (draw.below(6 << 30) as i64) };
    match sizes {
        None => (0..pods).map(|_| one()).collect(),
        Some(count) => {
            let kinds: Vec<Asked> = (0..count).map(|_| one()).collect();
            let mut pick = Stream::new(8, "pick");
            (0..pods).map(|_| kinds[pick.below(count) as usize]).collect()
        }
    }
}

/// The plain loop.
struct Loop {
    used_cpu: Vec<i64>,
    used_memory: Vec<i64>,
    pods: Vec<i64>,
    totals: Vec<(usize, i64)>,
}

impl Loop {
    fn new(nodes: usize) -> Self {
        Self { used_cpu: vec![0; nodes], used_memory: vec![0; nodes], pods: vec![0; nodes], totals: Vec::new() }
    }

    fn place(&mut self, pod: Asked) -> Option<usize> {
        let least = |used: i64, total: i64| (total - used) * 100 / total;
        let balance = |cpu: i64, memory: i64| {
            let distance = (cpu as f64 / CPU as f64 - memory as f64 / MEMORY as f64).abs();
            ((1.0 - distance / 2.0) * 100.0) as i64
        };
        self.totals.clear();
        for node in 0..self.pods.len() {
            let (cpu, memory) = (self.used_cpu[node] + pod.cpu, self.used_memory[node] + pod.memory);
            if cpu > CPU || memory > MEMORY || self.pods[node] >= MAX_PODS {
                continue;
            }
            let fit = (least(cpu, CPU) + least(memory, MEMORY)) / 2;
            let balanced = 50 + (50 + balance(cpu, memory) - balance(self.used_cpu[node], self.used_memory[node])) / 2;
            self.totals.push((node, fit + balanced));
        }
        let best = self.totals.iter().map(|(_, total)| *total).max()?;
        // Among equals the first in pre-order of the heap that Kubernetes makes of the list.
        let mut winner: Option<usize> = None;
        for (at, _) in self.totals.iter().enumerate().filter(|(_, (_, total))| *total == best) {
            let comes_first = |known: usize| {
                let (later, earlier) = (at + 1, known + 1);
                (later >> (earlier.leading_zeros() - later.leading_zeros())) < earlier
            };
            if winner.is_none_or(comes_first) {
                winner = Some(at);
            }
        }
        winner.map(|at| self.totals[at].0)
    }

    fn count(&mut self, node: usize, pod: Asked, by: i64) {
        self.used_cpu[node] += by * pod.cpu;
        self.used_memory[node] += by * pod.memory;
        self.pods[node] += by;
    }
}

fn by_loop(nodes: usize, pods: &[Asked]) -> (Vec<Option<usize>>, Duration) {
    let mut plain = Loop::new(nodes);
    let (mut placed, mut alive) = (Vec::with_capacity(pods.len()), VecDeque::new());
    let start = Watch::start();
    for pod in pods {
        let node = plain.place(*pod);
        if let Some(node) = node {
            plain.count(node, *pod, 1);
            alive.push_back((node, *pod));
        }
        if alive.len() > nodes * PODS_PER_NODE
            && let Some((node, pod)) = alive.pop_front()
        {
            plain.count(node, pod, -1);
        }
        placed.push(node);
    }
    (placed, start.elapsed())
}

fn cluster(nodes: usize) -> Cluster {
    let mut cluster = Cluster::default();
    for node in 0..nodes {
        let mut spec = NodeSpec::new(format!("n{node}"), CPU, MEMORY, MAX_PODS);
        spec.labels.insert("kubernetes.io/hostname".into(), spec.name.clone());
        cluster.set_node(spec);
    }
    cluster
}

fn class(pod: Asked) -> PodClass {
    let mut class =
        PodClass { namespace: "default".into(), scheduler_name: "default-scheduler".into(), ..PodClass::default() };
    class.shape.requests = Requests {
        cpu: pod.cpu,
        memory: pod.memory,
        nonzero_cpu: pod.cpu,
        nonzero_memory: pod.memory,
        scored_cpu: pod.cpu,
        scored_memory: pod.memory,
        ..Requests::default()
    };
    class.shape.containers = 1;
    class
}

/// Feeds pods to the library; the classes are made beforehand, as the loop's numbers are.
fn by_library(
    scheduler: &mut Scheduler,
    classes: Vec<PodClass>,
    alive_at_once: usize,
) -> (Vec<Option<usize>>, Duration) {
    let (mut placed, mut alive) = (Vec::with_capacity(classes.len()), VecDeque::<PodId>::new());
    let start = Watch::start();
    for class in classes {
        let class = scheduler.cluster.intern(class);
        let pod = scheduler.cluster.new_pod(class, "");
        let node = match scheduler.schedule(pod) {
            Decision::Placed { node, .. } => {
                scheduler.cluster.add_pod(pod, node);
                alive.push_back(pod);
                Some(node.index())
            }
            _ => {
                scheduler.cluster.drop_pod(pod);
                None
            }
        };
        if alive.len() > alive_at_once
            && let Some(pod) = alive.pop_front()
        {
            scheduler.cluster.drop_pod(pod);
        }
        placed.push(node);
    }
    (placed, start.elapsed())
}

fn line(what: &str, nodes: usize, pods: usize, took: Duration, against: Option<Duration>) {
    let nanos = took.as_nanos() as f64 / pods as f64;
    let ratio = against.map_or_else(String::new, |other| {
        format!("  {:5.2} times the loop's speed", other.as_secs_f64() / took.as_secs_f64())
    });
    let rate = pods as f64 / took.as_secs_f64();
    println!("{what:<44} {rate:>10.0} pods/s {nanos:>9.0} ns/pod {:>6.2} ns/pod·node{ratio}", nanos / nodes as f64);
}

fn against_the_loop(nodes: usize, pods: usize) {
    println!("\n{nodes} nodes, {pods} pods");
    for (what, sizes) in [("of 20 classes", Some(20)), ("each of its own class", None)] {
        let asked = workload(pods, sizes);
        let (expected, loop_took) = by_loop(nodes, &asked);
        line(&format!("loop, pods {what}"), nodes, pods, loop_took, None);
        for (how, percentage) in [("all nodes", 100), ("default sampling", 0)] {
            let profile = Profile { percentage_of_nodes_to_score: percentage, ..Profile::default() };
            let mut scheduler = Scheduler::new(cluster(nodes), vec![profile]);
            let classes = asked.iter().map(|pod| class(*pod)).collect();
            let (placed, took) = by_library(&mut scheduler, classes, nodes * PODS_PER_NODE);
            line(&format!("library, pods {what}, {how}"), nodes, pods, took, Some(loop_took));
            if percentage == 100 {
                let differing = placed.iter().zip(&expected).filter(|(one, other)| one != other).count();
                assert_eq!(differing, 0, "{differing} of {pods} placements differ from the loop's");
            }
        }
    }
}

/// Pods that look at other pods. The real scheduler places 263 pods per second on 5,000 nodes.
fn with_other_pods(nodes: usize, pods: usize) {
    println!("\n{nodes} nodes in 3 zones, {pods} pods of 20 kinds, default sampling");
    let selects = |app: usize| json!({"matchLabels": {"app": format!("a{app}")}});
    let term = |app: usize, key: &str| json!({"topologyKey": key, "labelSelector": selects(app)});
    let spread = |app: usize, how: &str| {
        json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": how, "labelSelector": selects(app)}]})
    };
    let affinity = |half: &str, app: usize, key: &str| json!({"affinity": {half: {"requiredDuringSchedulingIgnoredDuringExecution": [term(app, key)]}}});
    type Kind<'a> = (&'a str, Box<dyn Fn(usize) -> Value + 'a>);
    let kinds: [Kind<'_>; 6] = [
        ("plain", Box::new(|_| json!({}))),
        ("spread by default (Service)", Box::new(|_| json!({}))),
        ("spread over zones, required", Box::new(|app| spread(app, "DoNotSchedule"))),
        ("spread over zones, preferred", Box::new(|app| spread(app, "ScheduleAnyway"))),
        ("near their own kind, by zone", Box::new(|app| affinity("podAffinity", app, "topology.kubernetes.io/zone"))),
        (
            "not beside their own kind, by host",
            Box::new(|app| affinity("podAntiAffinity", app, "kubernetes.io/hostname")),
        ),
    ];
    for (what, spec) in kinds {
        let mut cluster = cluster(nodes);
        for node in 0..nodes {
            let mut spec = cluster.node(sk_scheduler::NodeId(node as u32)).as_ref().clone();
            spec.labels.insert("topology.kubernetes.io/zone".into(), format!("z{}", node % 3).into());
            cluster.set_node(spec);
        }
        if what.contains("Service") {
            for app in 0..20 {
                let selector = sk_core::LabelSelector::from_json(&selects(app)).expect("a selector");
                cluster.objects.set_service("default", format!("s{app}"), Some(selector));
            }
        }
        let one = |number: usize| {
            let app = number % 20;
            let mut spec = spec(app);
            let requests = json!({"cpu": "250m", "memory": "512Mi"});
            spec["containers"] = json!([{"name": "main", "image": "app:1", "resources": {"requests": requests}}]);
            let metadata = json!({"labels": {"app": format!("a{app}")}});
            PodClass::from_json("default", &metadata, &spec).expect("a pod")
        };
        let kinds: Vec<PodClass> = (0..20).map(one).collect();
        let classes = (0..pods).map(|number| kinds[number % 20].clone()).collect();
        let mut scheduler = Scheduler::new(cluster, vec![Profile::default()]);
        let (_, took) = by_library(&mut scheduler, classes, nodes * PODS_PER_NODE);
        line(what, nodes, pods, took, None);
    }
}

/// Pods that come through a queue, one every ten milliseconds, and go again; `never` others ask for more than any node
/// has and are there from the beginning. What goes makes the queue try them again, after their backoff. Also says how often
/// that was in vain.
fn through_a_queue(nodes: usize, asked: &[Asked], never: usize) -> (Duration, usize) {
    let mut scheduler = Scheduler::new(cluster(nodes), vec![Profile::default()]);
    let mut now = SimTime::from_secs(1_000);
    let mut queue = Queue::new(QueueSettings::default(), now);
    let come = |scheduler: &mut Scheduler, queue: &mut Queue, now: SimTime, asked: Asked| {
        let class = scheduler.cluster.intern(class(asked));
        let pod = scheduler.cluster.new_pod(class, "");
        queue.add(now, pod, scheduler);
    };
    for number in 0..never {
        come(&mut scheduler, &mut queue, now, Asked { cpu: 2 * CPU + (number % 20) as i64, memory: 1 << 30 });
    }
    let (mut alive, mut in_vain) = (VecDeque::<PodId>::new(), 0);
    let start = Watch::start();
    for asked in asked {
        now += SimDuration::from_millis(10);
        come(&mut scheduler, &mut queue, now, *asked);
        while let Some(pod) = queue.pop(now) {
            let class = Some(scheduler.cluster.pod(pod).class);
            match scheduler.schedule(pod) {
                Decision::Placed { node, .. } => {
                    scheduler.cluster.add_pod(pod, node);
                    queue.remove(pod);
                    let event = Event::PlacedPod { action: PodAction::Add, before: None, after: class };
                    queue.happened(now, &event, &scheduler);
                    alive.push_back(pod);
                    break;
                }
                Decision::Unschedulable(diagnosis) => {
                    queue.failed(now, pod, diagnosis.plugins(), &scheduler);
                    in_vain += 1;
                }
                other => panic!("nobody has a priority, and the profile is there: {other:?}"),
            }
        }
        if alive.len() > nodes * PODS_PER_NODE
            && let Some(pod) = alive.pop_front()
        {
            let before = Some(scheduler.cluster.pod(pod).class);
            scheduler.cluster.remove_pod(pod);
            queue.happened(now, &Event::PlacedPod { action: PodAction::Delete, before, after: None }, &scheduler);
            scheduler.cluster.drop_pod(pod);
        }
    }
    (start.elapsed(), in_vain)
}

fn beside_pods_that_never_fit(nodes: usize, pods: usize, never: usize) {
    println!("\n{nodes} nodes, {pods} pods of 20 classes through the queue, default sampling");
    let asked = workload(pods, Some(20));
    let (alone, _) = through_a_queue(nodes, &asked, 0);
    line("alone", nodes, pods, alone, None);
    let (beside, in_vain) = through_a_queue(nodes, &asked, never);
    line(&format!("beside {never} that never fit"), nodes, pods, beside, None);
    let each = beside.saturating_sub(alone).as_nanos() as f64 / in_vain.max(1) as f64;
    let times = beside.as_secs_f64() / alone.as_secs_f64();
    println!("{times:.2} times as long; {in_vain} tries in vain, {each:.0} ns each");
}

fn main() {
    let pods = std::env::var("PODS").ok().and_then(|text| text.parse().ok()).unwrap_or(50_000);
    // Cargo adds `--bench`.
    let part = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let is_wanted = |name: &str| part.as_ref().is_none_or(|part| part == name);
    if is_wanted("loop") {
        against_the_loop(1_000, pods);
        against_the_loop(5_000, pods / 2);
    }
    if is_wanted("others") {
        with_other_pods(1_000, pods / 2);
        with_other_pods(5_000, pods / 2);
    }
    if is_wanted("never") {
        beside_pods_that_never_fit(1_000, 2 * pods, pods / 5);
    }
}
