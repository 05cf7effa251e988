//! The queue beside the plainest one that keeps the same rules: a list that is searched from end to end.

use std::cmp::Reverse;

use serde_json::json;
use sk_core::rng::Stream;
use sk_core::{SimDuration, SimTime};
use sk_scheduler::framework::plugin::{PluginId, PluginSet};
use sk_scheduler::queue::{Event, QueueSettings};
use sk_scheduler::{NodeSpec, PodId, Queue};

use crate::support::{World, node, pod};

/// So many labels that pods wait for.
const LABELS: usize = 3;

#[derive(Clone, Debug, PartialEq)]
enum Place {
    Active,
    Backoff(SimTime),
    ErrorBackoff(SimTime),
    Waiting,
    /// And what has happened since.
    InFlight(Vec<usize>),
}

#[derive(Clone, Debug)]
struct Pod {
    id: PodId,
    label: usize,
    priority: i32,
    since: SimTime,
    number: u64,
    failures: u32,
    errors: u32,
    flushed: SimTime,
    place: Place,
}

fn second(time: SimTime) -> i64 {
    time.as_micros().div_euclid(1_000_000)
}

impl Pod {
    fn rank(&self) -> (Reverse<i32>, SimTime, u64) {
        (Reverse(self.priority), self.since, self.number)
    }

    fn helped(&mut self, now: SimTime) {
        let count = if self.errors > 0 { self.errors } else { self.failures };
        let backoff = if count == 0 { 0 } else { (1_i64 << (count - 1).min(10)).min(10) };
        let end = SimTime::from_secs(second(self.since + SimDuration::from_secs(backoff)));
        self.place = match (count > 0 && second(end) >= second(now), self.errors > 0) {
            (false, _) => Place::Active,
            (true, false) => Place::Backoff(end),
            (true, true) => Place::ErrorBackoff(end),
        };
    }
}

#[derive(Default)]
struct Model(Vec<Pod>);

impl Model {
    fn of(&mut self, id: PodId) -> &mut Pod {
        self.0.iter_mut().find(|pod| pod.id == id).expect("the pod is there")
    }

    fn pop(&mut self, now: SimTime) -> Option<PodId> {
        for pod in &mut self.0 {
            match pod.place {
                Place::Backoff(end) | Place::ErrorBackoff(end) if second(end) < second(now) => {
                    pod.place = Place::Active;
                }
                _ => {}
            }
        }
        let active = self.0.iter().filter(|pod| pod.place == Place::Active).min_by_key(|pod| pod.rank());
        let backing_off = self.0.iter().filter_map(|pod| match pod.place {
            Place::Backoff(end) => Some((end, pod.rank(), pod.id)),
            _ => None,
        });
        let id = active.map(|pod| pod.id).or_else(|| backing_off.min().map(|(_, _, id)| id))?;
        self.of(id).place = Place::InFlight(Vec::new());
        Some(id)
    }

    fn failed(&mut self, id: PodId, now: SimTime, rejected: bool) {
        let pod = self.of(id);
        let Place::InFlight(missed) = pod.place.clone() else { panic!("it was not tried") };
        (pod.failures, pod.errors) = if rejected { (pod.failures + 1, 0) } else { (pod.failures, pod.errors + 1) };
        (pod.since, pod.flushed) = (now, now);
        if !rejected || missed.contains(&pod.label) {
            pod.helped(now);
        } else {
            pod.place = Place::Waiting;
        }
    }

    fn happened(&mut self, label: usize, now: SimTime) {
        for pod in &mut self.0 {
            match &mut pod.place {
                Place::InFlight(missed) => missed.push(label),
                Place::Waiting if pod.label == label => pod.helped(now),
                _ => {}
            }
        }
    }

    fn flush(&mut self, now: SimTime) {
        for pod in self.0.iter_mut().filter(|pod| pod.place == Place::Waiting) {
            if now.since(pod.flushed.max(pod.since)) > SimDuration::from_mins(5) {
                pod.flushed = now;
                pod.helped(now);
            }
        }
    }

    fn sizes(&self) -> (usize, usize, usize) {
        let count = |is: fn(&Place) -> bool| self.0.iter().filter(|pod| is(&pod.place)).count();
        let backs_off = |place: &Place| matches!(place, Place::Backoff(_) | Place::ErrorBackoff(_));
        (count(|place| *place == Place::Active), count(backs_off), count(|place| *place == Place::Waiting))
    }
}

/// A node gets the label that some pods wait for.
fn label_comes(label: usize) -> Event {
    let mut world = World::new([node("n", json!({}))]);
    let labelled = node("n", json!({"metadata": {"labels": {"wanted": label.to_string()}}}));
    let change = world.cluster().set_node(NodeSpec::from_json(&labelled).unwrap());
    Event::of_node(&change).remove(0)
}

#[test]
fn random_pods_leave_the_queue_as_they_leave_the_plainest_one() {
    let mut draw = Stream::new(11, "queue");
    let events: Vec<Event> = (0..LABELS).map(label_comes).collect();
    let fit: PluginSet = [PluginId::NodeAffinity].into_iter().collect();
    let mut world = World::new([]);
    let (mut queue, mut model) = (Queue::new(QueueSettings::default(), SimTime::from_secs(0)), Model::default());
    let (mut now, mut flying) = (SimTime::from_secs(0), Vec::new());
    for number in 1..6_000_u64 {
        now += SimDuration::from_millis(draw.below(700) as i64);
        match draw.below(20) {
            0..=3 => {
                let (label, priority) = (draw.below(LABELS as u64) as usize, draw.below(3) as i32);
                let spec = json!({"nodeSelector": {"wanted": label.to_string()}, "priority": priority});
                let id = world.create(&pod(&format!("p{number}"), json!({}), spec));
                queue.add(now, id, &world.scheduler);
                let place = Place::Active;
                let (since, flushed, failures, errors) = (now, now, 0, 0);
                model.0.push(Pod { id, label, priority, since, number, failures, errors, flushed, place });
            }
            4..=11 => {
                let popped = queue.pop(now);
                assert_eq!(popped, model.pop(now), "at {number}");
                flying.extend(popped);
            }
            12..=15 if !flying.is_empty() => {
                let id = flying.swap_remove(draw.below(flying.len() as u64) as usize);
                let rejected = draw.below(5) > 0;
                queue.failed(now, id, if rejected { fit } else { PluginSet::EMPTY }, &world.scheduler);
                model.failed(id, now, rejected);
            }
            16 if !model.0.is_empty() => {
                let id = model.0.swap_remove(draw.below(model.0.len() as u64) as usize).id;
                flying.retain(|flying| *flying != id);
                queue.remove(id);
                world.cluster().drop_pod(id);
            }
            17 => {
                queue.flush(now, &world.scheduler);
                model.flush(now);
            }
            _ => {
                let label = draw.below(LABELS as u64) as usize;
                queue.happened(now, &events[label], &world.scheduler);
                model.happened(label, now);
            }
        }
        assert_eq!(queue.sizes(), model.sizes(), "at {number}");
        let retries = model.0.iter().filter_map(|pod| match pod.place {
            Place::ErrorBackoff(end) => Some(SimTime::from_secs(second(end) + 1)),
            _ => None,
        });
        assert_eq!(queue.next_retry(), retries.min(), "at {number}");
    }
    assert!(model.0.len() > 100, "many wait at a time: {}", model.0.len());
}
