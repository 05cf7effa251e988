//! Turns, repetitions, pauses, deletion: the ordinary life of Simulations.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use sk_api::simulation::{State, names};
use sk_ctrl::install::Options;
use sk_testkit::control_plane::eventually;
use tokio::task::JoinHandle;

use crate::lab::{LIMIT, Lab};

/// The drivers' Jobs as they come and go, by a watch, which misses none.
struct Succession {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    follows: bool,
    there: BTreeSet<String>,
    most_at_once: usize,
    order: Vec<String>,
}

impl Succession {
    /// Follows from now on: when this returns, nothing that comes is missed.
    async fn follow(lab: &Lab) -> Self {
        let jobs: Api<Job> = Api::namespaced(lab.cluster.client(), names::NAMESPACE);
        let seen = Arc::new(Mutex::new(Seen::default()));
        let kept = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut events = watcher(jobs, watcher::Config::default()).default_backoff().boxed();
            while let Some(event) = events.next().await {
                kept.lock().expect("nobody panics with it").note(event);
            }
        });
        let following = Self { seen, task };
        let listed = eventually("a list of Jobs", LIMIT, || async { Ok(following.seen().follows.then_some(())) });
        listed.await.expect("Jobs can be watched");
        following
    }

    fn seen(&self) -> Seen {
        self.seen.lock().expect("nobody panics with it").clone()
    }
}

impl Drop for Succession {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Seen {
    fn note(&mut self, event: watcher::Result<watcher::Event<Job>>) {
        match event {
            Ok(watcher::Event::Apply(job) | watcher::Event::InitApply(job)) => {
                self.there.insert(job.name_any());
                if !self.order.contains(&job.name_any()) {
                    self.order.push(job.name_any());
                }
                self.most_at_once = self.most_at_once.max(self.there.len());
            }
            Ok(watcher::Event::Delete(job)) => {
                self.there.remove(&job.name_any());
            }
            // A watch that broke begins with a new list: what is not on it has gone.
            Ok(watcher::Event::Init) => self.there.clear(),
            Ok(watcher::Event::InitDone) => self.follows = true,
            Err(_) => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn simulations_run_one_after_the_other_can_be_paused_and_leave_nothing() {
    let lab = Lab::start(Options::default()).await;
    let mut controller = lab.controller().await;
    let before = lab.settled().await;

    // Two at once: the second waits for the first, and says so.
    let go = lab.folder.path().join("go");
    let waits = json!({"driver": {"args": [go.to_string_lossy()]}});
    lab.simulate("first", "driver:waits", &waits).await;
    lab.reaches("first", State::Running).await;
    lab.simulate("second", "driver:short", &json!({"repetitions": 2})).await;
    let blocked = lab.reaches("second", State::Blocked).await;
    assert_eq!(blocked.message.as_deref(), Some("simulation first is before this one; one runs at a time"));

    // A pause is seen, and so is its end.
    lab.change("first", &json!({"pausedTime": "2026-11-10T14:00:00Z"})).await;
    lab.reaches("first", State::Paused).await;
    lab.change("first", &json!({"pausedTime": null})).await;
    lab.reaches("first", State::Running).await;

    fs::write(&go, "").expect("a file");
    let first = lab.ends("first").await;
    assert_eq!((first.state, first.completed_runs), (Some(State::Finished), Some(1)));
    assert_eq!(first.message.as_deref(), Some("1 of 1 repetitions are done"));
    let second = lab.ends("second").await;
    assert_eq!((second.state, second.completed_runs), (Some(State::Finished), Some(2)));
    let (end, start) = (first.end_time.expect("an end"), second.start_time.expect("a start"));
    assert!(start.0 >= end.0, "the second began at {} before the first ended at {}", start.0, end.0);
    lab.assert_nothing_left(&before).await;

    // Deleted in the middle of its run, with another in line: everything goes, and the other gets its turn.
    fs::remove_file(&go).expect("a file");
    lab.simulate("third", "driver:waits", &waits).await;
    lab.reaches("third", State::Running).await;
    lab.simulate("fourth", "driver:waits", &waits).await;
    lab.simulate("fifth", "driver:quick", &json!({})).await;
    lab.reaches("fourth", State::Blocked).await;
    lab.reaches("fifth", State::Blocked).await;
    lab.delete("fourth").await;
    lab.delete("third").await;
    assert_eq!(lab.ends("fifth").await.state, Some(State::Finished));

    nothing_begins_beside_a_driver_without_a_controller(&lab).await;

    // Five at once run one after the other, in their order, and none beside another.
    let drivers = Succession::follow(&lab).await;
    let five = ["five-a", "five-b", "five-c", "five-d", "five-e"];
    for name in five {
        lab.simulate(name, "driver:short", &json!({})).await;
    }
    for name in five {
        assert_eq!(lab.ends(name).await.state, Some(State::Finished));
    }
    let succession = drivers.seen();
    assert_eq!(succession.most_at_once, 1, "{succession:?}");
    assert_eq!(succession.order, five.map(|name| format!("sk-{name}-driver")), "{succession:?}");

    // One whose time is over goes by itself.
    lab.simulate("brief", "driver:quick", &json!({"record": {"ttlSecondsAfterFinished": 1}})).await;
    lab.gone("brief").await;
    lab.assert_nothing_left(&before).await;
    lab.assert_nothing_was_forbidden();
    controller.assert_alive();
}

async fn nothing_begins_beside_a_driver_without_a_controller(lab: &Lab) {
    let now = jiff::Timestamp::now();
    lab.create(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": names::LEASE, "namespace": names::DRIVER_LEASE_NAMESPACE},
        "spec": {"holderIdentity": "demo-1", "renewTime": format!("{now:.6}"), "leaseDurationSeconds": 3600},
    }))
    .await;
    lab.simulate("beside", "driver:quick", &json!({})).await;
    let blocked = lab.reaches("beside", State::Blocked).await;
    let words = "driver demo-1 runs on this cluster without a controller (Lease default/sk-lease); this one begins when \
                 that has ended";
    assert_eq!((blocked.message.as_deref(), blocked.start_time), (Some(words), None));
    let leases: Api<Lease> = Api::namespaced(lab.cluster.client(), names::DRIVER_LEASE_NAMESPACE);
    leases.delete(names::LEASE, &DeleteParams::default()).await.expect("the Lease can be deleted");
    assert_eq!(lab.ends("beside").await.state, Some(State::Finished));
}
