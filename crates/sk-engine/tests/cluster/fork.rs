//! A forked engine goes on as the unforked one would, whatever is done to its twin.

use serde_json::{Value, json};
use sk_core::rng::Stream;
use sk_core::{ObjectKey, ObjectRef, SimDuration, SimTime};
use sk_engine::api::{AdmitPod, DeleteOptions, Object, Request};
use sk_engine::kinds::{DEPLOYMENT, Directives};
use sk_engine::{Engine, Settings, Timing};

use crate::harness::{START, deployment, group};

const SECONDS: i64 = 900;

/// Draws a number for every pod, so that a fork must carry its state along.
#[derive(Clone)]
struct Draws(Stream);

impl AdmitPod for Draws {
    fn admit(&mut self, pod: &mut Object, _now: SimTime) {
        let mut span = |most: u64| SimDuration::from_micros(i64::try_from(self.0.below(most)).expect("small"));
        let directives = Directives {
            create_delay: span(5_000_000),
            ready_delay: span(5_000_000),
            lifetime: Some(span(400_000_000)),
            exit_code: None,
            sequence: None,
        };
        pod.pod_mut().expect("the hook sees pods").directives = Some(directives);
    }

    fn fork(&self) -> Box<dyn AdmitPod> {
        Box::new(self.clone())
    }
}

/// An engine with the history that was read from it so far.
#[derive(Clone)]
struct Run {
    engine: Engine,
    history: String,
    read: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let groups = vec![group("a", "2", 1, 6), group("b", "8", 0, 3)];
        let timing = if seed.is_multiple_of(2) { Timing::real_like() } else { Timing::ideal() };
        let mut engine = Engine::new(&Settings { seed, timing, groups, ..Settings::default() }, START);
        engine.set_pod_hook(Box::new(Draws(Stream::new(seed, "hook"))));
        Self { engine, history: String::new(), read: 0 }
    }

    /// Lets a second pass and then does what is asked for in it.
    fn step(&mut self, second: i64, requests: &[(i64, Value)]) {
        self.engine.advance_to(START + SimDuration::from_secs(second));
        for (_, request) in requests.iter().filter(|(at, _)| *at == second) {
            // A deletion of what is not there is refused, and that is part of the history.
            let answer = match request["delete"].as_str() {
                Some(name) => self.engine.handle(Request::Delete {
                    target: ObjectRef::new(DEPLOYMENT.clone(), ObjectKey::namespaced("default", name)),
                    options: DeleteOptions::default(),
                }),
                None => {
                    Object::from_json(request.clone()).and_then(|object| self.engine.handle(Request::apply(object)))
                }
            };
            self.history += &format!("{:?}\n", answer.map_err(|error| error.message));
        }
        for event in self.engine.watch(self.read).expect("a second's changes stay within the log") {
            self.history += &format!("{:?} {:?} {}\n", event.at, event.change, event.object.to_json());
            self.read = event.object.resource_version;
        }
    }
}

/// Random deployments that grow, shrink and go.
fn requests(draw: &mut Stream) -> Vec<(i64, Value)> {
    let one = |_| {
        let at = i64::try_from(draw.below(SECONDS as u64)).expect("small");
        let name = format!("d{}", draw.below(5));
        let cpu = format!("{}m", 100 + 100 * draw.below(15));
        let request = match draw.below(5) {
            0 => json!({"delete": name}),
            _ => deployment(&name, i64::try_from(draw.below(12)).expect("small"), Some(&cpu)),
        };
        (at, request)
    };
    (0..40).map(one).collect()
}

#[test]
fn a_fork_equals_an_unforked_run_byte_for_byte_while_its_twin_is_given_other_requests() {
    for seed in 1..=6 {
        let mut draw = Stream::new(seed, "requests");
        let (planned, others) = (requests(&mut draw), requests(&mut draw));
        let forked_at = 1 + i64::try_from(draw.below(SECONDS as u64 - 1)).expect("small");
        let mut unforked = Run::new(seed);
        (1..=SECONDS).for_each(|second| unforked.step(second, &planned));

        let mut one = Run::new(seed);
        (1..=forked_at).for_each(|second| one.step(second, &planned));
        let mut twin = one.clone();
        for second in forked_at + 1..=SECONDS {
            twin.step(second, &others);
            one.step(second, &planned);
        }
        assert!(one.history == unforked.history, "seed {seed}, forked at {forked_at} s: the fork went another way");
        assert!(twin.history != one.history, "seed {seed}: the twin was asked for something else");
    }
}

#[test]
fn an_engine_can_be_sent_to_another_thread() {
    fn sendable<T: Send + Clone>(_: &T) {}
    sendable(&Run::new(1).engine);
}
