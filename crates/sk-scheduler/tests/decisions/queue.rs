//! Which pod is tried when.

use serde_json::{Value, json};
use sk_core::{SimDuration, SimTime};
use sk_scheduler::framework::plugin::{PluginId, PluginSet};
use sk_scheduler::queue::{Event, PodAction, QueueSettings};
use sk_scheduler::{Decision, PodClass, PodId, Queue};

use crate::support::{World, all, asks, merge, node, pod};

struct Waiting {
    world: World,
    queue: Queue,
}

fn at(secs: i64) -> SimTime {
    SimTime::from_secs(secs)
}

impl Waiting {
    fn new(nodes: impl IntoIterator<Item = Value>) -> Self {
        Self { world: World::new(nodes), queue: Queue::new(QueueSettings::default(), at(0)) }
    }

    fn add(&mut self, secs: i64, pod: &Value) -> PodId {
        let id = self.world.create(pod);
        self.queue.add(at(secs), id, &self.world.scheduler);
        id
    }

    fn pop(&mut self, secs: i64) -> Option<String> {
        let pod = self.queue.pop(at(secs))?;
        Some(self.world.scheduler.cluster.pod(pod).name.to_string())
    }

    /// Pops a pod, tries it, and tells the queue.
    fn cycle(&mut self, secs: i64) -> Option<String> {
        let pod = self.queue.pop(at(secs))?;
        let name = self.world.scheduler.cluster.pod(pod).name.to_string();
        match self.world.scheduler.schedule(pod) {
            Decision::Placed { node, .. } => {
                self.world.put(pod, node);
                self.queue.remove(pod);
                Some(format!("{name}: placed"))
            }
            Decision::Unschedulable(diagnosis) => {
                self.queue.failed(at(secs), pod, diagnosis.plugins(), &self.world.scheduler);
                Some(format!("{name}: waits"))
            }
            other => panic!("{other:?}"),
        }
    }

    fn set_node(&mut self, secs: i64, node: &Value) {
        let spec = sk_scheduler::NodeSpec::from_json(node).unwrap();
        let change = self.world.cluster().set_node(spec);
        for event in Event::of_node(&change) {
            self.queue.happened(at(secs), &event, &self.world.scheduler);
        }
    }
}

#[test]
fn priority_goes_first_and_age_next() {
    let mut waiting = Waiting::new([]);
    for (name, secs, priority) in [("late", 3, 0), ("early", 1, 0), ("high", 5, 9)] {
        waiting.add(secs, &pod(name, json!({}), json!({"priority": priority})));
    }
    let order: Vec<String> = std::iter::from_fn(|| waiting.pop(6)).collect();
    assert_eq!(order, ["high", "early", "late"]);
}

#[test]
fn a_new_node_helps_only_those_who_fit_it() {
    let large = all([asks("6", "1Gi"), json!({})]);
    let mut waiting = Waiting::new([node("a", json!({}))]);
    waiting.add(0, &pod("large", json!({}), large.clone()));
    waiting.add(0, &pod("picky", json!({}), json!({"nodeSelector": {"disk": "ssd"}})));
    assert_eq!(waiting.cycle(0).unwrap(), "large: waits");
    assert_eq!(waiting.cycle(0).unwrap(), "picky: waits");
    assert!(!waiting.queue.is_ready());
    waiting.set_node(20, &node("b", json!({})));
    assert!(!waiting.queue.is_ready(), "it is too small and has no disk");
    let mut ssd = node("b", json!({"metadata": {"labels": {"disk": "ssd"}}}));
    waiting.set_node(21, &ssd);
    assert_eq!(waiting.cycle(21).unwrap(), "picky: placed");
    assert!(!waiting.queue.is_ready());
    merge(&mut ssd, json!({"status": {"allocatable": {"cpu": "16"}}}));
    waiting.set_node(22, &ssd);
    assert_eq!(waiting.cycle(22).unwrap(), "large: placed");
}

#[test]
fn an_idle_scheduler_takes_a_pod_from_its_backoff_and_a_busy_one_does_not() {
    let mut waiting = Waiting::new([node("a", json!({}))]);
    waiting.add(10, &pod("p", json!({}), asks("6", "1Gi")));
    waiting.cycle(10);
    waiting.set_node(10, &node("b", json!({"status": {"allocatable": {"cpu": "5"}}})));
    assert_eq!(waiting.queue.sizes(), (0, 0, 1), "five cores are too few");
    waiting.set_node(10, &node("b", json!({"status": {"allocatable": {"cpu": "7"}}})));
    assert_eq!(waiting.queue.sizes(), (0, 1, 0), "it backs off for a second");
    waiting.add(10, &pod("q", json!({}), json!({})));
    assert_eq!(waiting.pop(10).unwrap(), "q");
    assert_eq!(waiting.pop(10).unwrap(), "p");
}

#[test]
fn backoff_doubles_up_to_its_longest() {
    let mut waiting = Waiting::new([node("a", json!({}))]);
    let id = waiting.add(100, &pod("p", json!({}), asks("6", "1Gi")));
    let fit: PluginSet = [PluginId::NodeResourcesFit].into_iter().collect();
    // It fails at 100, 200, …; an event comes at once; when is the backoff over?
    for (attempt, backoff) in [1, 2, 4, 8, 10, 10].into_iter().enumerate() {
        let now = 100 * (attempt as i64 + 1);
        assert_eq!(waiting.queue.pop(at(now)), Some(id));
        waiting.queue.failed(at(now), id, fit, &waiting.world.scheduler);
        let event = Event::PlacedPod {
            action: PodAction::Delete,
            before: Some(waiting.world.scheduler.cluster.pod(id).class),
            after: None,
        };
        waiting.queue.happened(at(now), &event, &waiting.world.scheduler);
        assert_eq!(waiting.queue.sizes().1, 1);
        // Another pod shows whether the first is active again: it is younger.
        let probe = |waiting: &mut Waiting, name: &str, secs: i64| {
            let other = waiting.add(secs, &pod(name, json!({}), json!({})));
            let first = waiting.queue.clone().pop(at(secs));
            waiting.queue.remove(other);
            first == Some(id)
        };
        assert!(!probe(&mut waiting, "early", now + backoff), "after {backoff} s it still backs off");
        assert!(probe(&mut waiting, "late", now + backoff + 1), "in the second after it does not");
    }
}

#[test]
fn what_happens_during_an_attempt_is_not_lost() {
    let mut waiting = Waiting::new([node("a", json!({}))]);
    let id = waiting.add(0, &pod("p", json!({}), asks("6", "1Gi")));
    assert_eq!(waiting.queue.pop(at(0)), Some(id));
    let Decision::Unschedulable(diagnosis) = waiting.world.scheduler.schedule(id) else { panic!("it is too large") };
    waiting.set_node(0, &node("b", json!({"status": {"allocatable": {"cpu": "8"}}})));
    waiting.queue.failed(at(0), id, diagnosis.plugins(), &waiting.world.scheduler);
    assert_eq!(waiting.queue.sizes(), (0, 1, 0));
    assert_eq!(waiting.cycle(1).unwrap(), "p: placed");
}

#[test]
fn a_gated_pod_waits_until_its_last_gate_is_gone() {
    let mut waiting = Waiting::new([node("a", json!({}))]);
    let gated = pod("p", json!({}), json!({"schedulingGates": [{"name": "quota"}]}));
    let id = waiting.add(0, &gated);
    assert!(!waiting.queue.is_ready());
    waiting.set_node(1, &node("b", json!({})));
    assert!(!waiting.queue.is_ready(), "a node opens no gate");
    let mut open = gated;
    open["spec"]["schedulingGates"] = json!([]);
    let before = waiting.world.scheduler.cluster.pod(id).class;
    let class = waiting.world.cluster().intern(PodClass::from_pod(&open).unwrap());
    waiting.world.cluster().update_pod(id, |pod| pod.class = class);
    waiting.queue.updated(at(2), id, before, &waiting.world.scheduler);
    assert_eq!(waiting.cycle(2).unwrap(), "p: placed");
}

#[test]
fn a_pod_that_waited_five_minutes_is_tried_whatever_happens() {
    let mut waiting = Waiting::new([node("a", json!({}))]);
    waiting.add(7, &pod("p", json!({}), asks("6", "1Gi")));
    waiting.cycle(7);
    // 7 s and five minutes, then the next of the looks that come every 30 s.
    let due = waiting.queue.next_flush().unwrap();
    assert_eq!(due, at(330));
    waiting.queue.flush(at(307), &waiting.world.scheduler);
    assert!(!waiting.queue.is_ready());
    waiting.queue.flush(due, &waiting.world.scheduler);
    assert_eq!(waiting.cycle(330).unwrap(), "p: waits");
    assert_eq!(waiting.queue.next_flush(), Some(at(330) + SimDuration::from_secs(330)));
}

#[test]
fn ten_thousand_pods_that_wait_for_the_same_are_judged_as_one() {
    let mut waiting = Waiting::new([node("a", json!({}))]);
    let hopeless = pod("p", json!({}), asks("600", "1Gi"));
    for _ in 0..10_000 {
        waiting.add(0, &hopeless);
    }
    let first = waiting.queue.pop(at(0)).unwrap();
    let Decision::Unschedulable(diagnosis) = waiting.world.scheduler.schedule(first) else { panic!("it is too large") };
    waiting.queue.failed(at(0), first, diagnosis.plugins(), &waiting.world.scheduler);
    while let Some(pod) = waiting.queue.pop(at(0)) {
        waiting.queue.failed(at(0), pod, diagnosis.plugins(), &waiting.world.scheduler);
    }
    // A million judgements in a debug build would take minutes.
    for n in 0..1_000 {
        waiting.set_node(20, &node("b", json!({"status": {"allocatable": {"cpu": (n % 7 + 1).to_string()}}})));
    }
    assert_eq!(waiting.queue.sizes(), (0, 0, 10_000));
}

#[test]
fn a_nomination_that_ends_is_news_to_pods_that_are_not_more_important() {
    let mut waiting = Waiting::new([node("a", json!({}))]);
    let large = |priority: i32| all([asks("6", "1Gi"), json!({"priority": priority})]);
    let low = waiting.add(0, &pod("low", json!({}), large(1)));
    waiting.add(0, &pod("high", json!({}), large(9)));
    assert_eq!(waiting.cycle(0).unwrap(), "high: waits");
    assert_eq!(waiting.cycle(0).unwrap(), "low: waits");
    let before = Some(waiting.world.scheduler.cluster.pod(low).class);
    let event = Event::PlacedPod { action: PodAction::Delete, before, after: None };
    waiting.queue.happened_to(5, at(20), &event, &waiting.world.scheduler);
    assert_eq!(waiting.pop(20).as_deref(), Some("low"));
    assert_eq!(waiting.pop(20), None);
}

#[test]
fn a_pod_is_taken_out_of_turn_and_the_others_keep_theirs() {
    let mut waiting = Waiting::new([node("a", json!({}))]);
    let first = waiting.add(0, &pod("first", json!({}), json!({})));
    let second = waiting.add(1, &pod("second", json!({}), json!({})));
    assert!(waiting.queue.pop_this(at(2), second), "its turn would have come");
    assert!(!waiting.queue.pop_this(at(2), second), "it is being tried");
    assert_eq!(waiting.pop(2).as_deref(), Some("first"));
    let mut rejectors = PluginSet::EMPTY;
    rejectors.insert(PluginId::NodeAffinity);
    waiting.queue.failed(at(2), first, rejectors, &waiting.world.scheduler);
    assert!(!waiting.queue.pop_this(at(3), first), "nothing has happened that helps it");
}
