//! How slow the rig was: measured in the recordings, and the player is as slow.
//!
//! The recorder saw things to the tenth of a second. The mean of many spans between two things is exact all the same: what
//! rounding adds to one span it takes from another. Each span is made of requests and watches, so it tells how long one of
//! them took. Longer spans than [`SHORT`] are left out: there a pod waited for its turn in the scheduler's queue.

use sk_testkit::autoscaling::{self, Observation};

use crate::allowed::{Allowed, POD_RACE_MS};
use crate::outcome::Outcome;
use crate::player::Rig;
use crate::{SEED, compare, outcome, player};

/// In seconds.
const SHORT: f64 = 0.45;
/// What the third span asks for: the way of a node that becomes ready was the slowest of all.
const SLOWEST_MS: i64 = 18;

/// Mean and standard error, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Mean {
    millis: f64,
    error: f64,
}

impl Mean {
    fn of(spans: &[f64]) -> Self {
        let spans: Vec<f64> = spans.iter().copied().filter(|span| *span < SHORT).collect();
        let count = spans.len() as f64;
        assert!(count > 50.0, "{count} spans are too few");
        let mean = spans.iter().sum::<f64>() / count;
        let variance = spans.iter().map(|span| (span - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Self { millis: mean * 1000.0, error: (variance / count).sqrt() * 1000.0 }
    }

    /// Is the other as far from it as chance allows?
    fn is_near(self, other: Self) -> bool {
        (self.millis - other.millis).abs() <= 2.0 * self.error
    }
}

/// The spans of all scenarios.
#[derive(Default)]
struct Spans {
    /// From a step that creates a Deployment to its first pod: two watches and two requests.
    step_to_pod: Vec<f64>,
    /// From a pod to its place: a watch and a request.
    created_to_bound: Vec<f64>,
    /// From a node's being ready to the places of pods that waited: its taint goes in between.
    ready_to_bound: Vec<f64>,
}

impl Spans {
    fn add(&mut self, seen: &Observation, pending: impl Fn(&str) -> Option<f64>, took: &autoscaling::Took) {
        for step in seen.steps.iter().filter(|step| step["op"] == "deploy") {
            let (name, at) = (step["name"].as_str().unwrap_or_default(), step["at"].as_f64().unwrap_or_default());
            self.step_to_pod.extend(pending(name).map(|first| first - at));
        }
        self.created_to_bound.extend(&took.created_to_bound);
        self.ready_to_bound.extend(&took.ready_to_bound);
    }
}

/// One kind of spans among them.
type Of = fn(&Spans) -> &[f64];

fn recorded(all: &[Observation]) -> Spans {
    let mut spans = Spans::default();
    for seen in all {
        let first = |name: &str| seen.pods.get(name)?.iter().find(|row| row.1 > 0).map(|row| row.0);
        spans.add(seen, first, &seen.took);
    }
    spans
}

fn run(seen: &Observation, seed: u64, latency_ms: i64) -> Outcome {
    outcome::of(player::play(seen, seed, Rig { latency_ms, ..Rig::default() }, |_| {}))
}

/// The same of the engine with that latency.
fn played(all: &[Observation], latency_ms: i64) -> Spans {
    let mut spans = Spans::default();
    for seen in all {
        let run = run(seen, SEED, latency_ms);
        let first = |name: &str| run.pods.get(name)?[0].iter().find(|(_, count)| *count > 0).map(|(at, _)| *at);
        spans.add(seen, first, &run.took);
    }
    spans
}

#[test]
fn the_player_is_as_slow_as_the_recordings_show_the_rig_to_have_been() {
    let all = autoscaling::all();
    let (seen, ours, idle) = (recorded(&all), played(&all, Rig::default().latency_ms), played(&all, 0));
    let spans: [(&str, Of); 2] = [
        ("from a Deployment to its first pod", |spans| &spans.step_to_pod),
        ("from a pod to its place", |spans| &spans.created_to_bound),
    ];
    for (what, of) in spans {
        let (seen, ours, idle) = (Mean::of(of(&seen)), Mean::of(of(&ours)), Mean::of(of(&idle)));
        println!("{what}: seen {seen:?}, here {ours:?}, on an idle machine {idle:?}");
        assert!(seen.is_near(ours), "{what}: {seen:?} were seen, here {ours:?}");
        assert!(!seen.is_near(idle), "{what}: {seen:?} were seen, on an idle machine {idle:?}");
    }
    // This way was slower in the rig than others; the player has one latency for all, and here it is too quick.
    let slowest = played(&all, SLOWEST_MS);
    let of = |spans: &Spans| Mean::of(&spans.ready_to_bound);
    println!("from a node to the places on it: seen {:?}, here {:?}, {:?}", of(&seen), of(&ours), of(&slowest));
    assert!(of(&seen).is_near(of(&slowest)), "{:?} were seen, here {:?}", of(&seen), of(&slowest));
}

#[test]
fn a_race_of_milliseconds_comes_out_as_recorded_around_what_was_measured() {
    let all = autoscaling::all();
    // Whether a loop finds a node ready and still without its DaemonSet's pod. On an idle machine it falls the other way.
    let (scenario, seed) = ("k1-daemonset-in-template", 3);
    let seen = all.iter().find(|seen| seen.scenario == scenario).expect("the scenario is there");
    let is_as_seen =
        |latency_ms: i64| compare::differences(seen, &run(seen, seed, latency_ms), &Allowed::default()).is_empty();
    let measured = Rig::default().latency_ms;
    let around = measured / 2..=measured * 3 / 2;
    assert!(around.clone().all(is_as_seen), "{scenario}: as recorded from {around:?} ms");
    assert!(!is_as_seen(0), "{scenario}: not on an idle machine");
}

#[test]
fn the_race_of_the_informers_scatters_no_more_than_a_watch_and_a_request_did() {
    let spans = recorded(&autoscaling::all()).created_to_bound;
    let spans: Vec<f64> = spans.into_iter().filter(|span| *span < SHORT).map(|span| span * 1000.0).collect();
    let count = spans.len() as f64;
    let mean = spans.iter().sum::<f64>() / count;
    let variance = spans.iter().map(|span| (span - mean).powi(2)).sum::<f64>() / count;
    // Both ends of a span are rounded to 100 ms, and each rounding adds the variance of an even spread.
    let even = |width: f64| width * width / 12.0;
    let scatter = (variance - 2.0 * even(100.0)).sqrt();
    let race = even(2.0 * POD_RACE_MS as f64).sqrt();
    println!("a watch and a request: {scatter:.0} ms; the race: {race:.0} ms");
    assert!((race..2.0 * race).contains(&scatter), "{race} ms are drawn, {scatter} ms were measured");
}
