//! Reads the Simulation (is it paused?) and writes its progress.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};
use sk_api::simulation::{Simulation, names, status};

use super::context::Context;
use super::counters::Totals;
use super::request::{RetryPolicy, whole_story, with_retries};
use sk_replay::plan::Window;

/// Progress is written at most so often.
const EVERY: Duration = Duration::from_secs(1);

/// The Simulation in the cluster: read for pauses, written for progress.
#[derive(Clone)]
pub(crate) struct SimulationStatus {
    api: Api<Simulation>,
    name: String,
    window: Window,
    events_total: u64,
}

impl SimulationStatus {
    pub(crate) fn new(client: Client, name: &str, window: Window, events_total: u64) -> Self {
        Self { api: Api::all(client), name: name.to_owned(), window, events_total }
    }

    /// Follows `spec.pausedTime` and pauses or resumes the run. A Simulation that is deleted stops it.
    pub(crate) async fn follow(self, context: Arc<Context>) {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let mut events = watcher(self.api, config).default_backoff().boxed();
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::InitApply(simulation) | watcher::Event::Apply(simulation)) => {
                    if simulation.metadata.deletion_timestamp.is_some() {
                        context.stop.ask("the Simulation was deleted");
                    }
                    if context.pace.set_paused(simulation.spec.paused_time.is_some()) {
                        context.counters.count(|totals| totals.pauses += 1);
                    }
                }
                Ok(watcher::Event::Delete(_)) => context.stop.ask("the Simulation was deleted"),
                Ok(watcher::Event::Init | watcher::Event::InitDone) => {}
                Err(error) => {
                    context.retry.note_watch(&error);
                    tracing::warn!(
                        "the watch of the Simulation was interrupted and starts again: {}",
                        whole_story(&error)
                    );
                }
            }
        }
    }

    /// Writes the progress periodically.
    pub(crate) async fn write_progress(self, context: Arc<Context>) {
        let mut last = Value::Null;
        loop {
            let progress = self.progress(&context);
            if progress != last {
                self.write(&context.retry, json!({"progress": progress})).await;
                last = progress;
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Writes the final progress and totals.
    pub(crate) async fn write_totals(&self, context: &Context, retry: &RetryPolicy, totals: &Totals, partial: bool) {
        let totals = final_totals(totals, partial);
        self.write(retry, json!({"progress": self.progress(context), "totals": totals})).await;
    }

    fn progress(&self, context: &Context) -> Value {
        let now = context.pace.now().min(self.window.end);
        let whole = self.window.end.since(self.window.start).as_secs_f64();
        let share = if whole > 0.0 { now.since(self.window.start).as_secs_f64() / whole } else { 1.0 };
        json!({
            "percent": (share * 100.0).clamp(0.0, 100.0) as u32,
            "simulatedTime": now.to_rfc3339_secs(),
            "eventsDone": context.counters.events(),
            "eventsTotal": self.events_total,
        })
    }

    /// The status is for people; a run does not fail because it cannot be written.
    async fn write(&self, retry: &RetryPolicy, status: Value) {
        let patch = Patch::Apply(json!({
            "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": self.name}, "status": status,
        }));
        let parameters = PatchParams::apply(names::DRIVER_MANAGER).force();
        let written = with_retries(retry, || self.api.patch_status(&self.name, &parameters, &patch)).await;
        if let Err(refusal) = written {
            tracing::warn!("progress was not written: {refusal}");
        }
    }
}

/// Totals as the Simulation's status has them.
fn final_totals(totals: &Totals, partial: bool) -> status::Totals {
    let lateness = &totals.lateness;
    let millis = |figure: f64| figure.ceil().max(0.0) as u64;
    status::Totals {
        events: totals.events,
        refused: totals.refused,
        left_alone: totals.left_alone,
        pods: totals.pods,
        lateness: Some(status::Lateness {
            p50_ms: millis(lateness.p50_ms),
            p99_ms: millis(lateness.p99_ms),
            max_ms: millis(lateness.max_ms),
        }),
        partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_stopped_says_so_in_its_totals() {
        let totals = Totals { operations: 9, events: 7, pods: 3, ..Totals::default() };
        for partial in [true, false] {
            let told = json!(final_totals(&totals, partial));
            assert_eq!((&told["partial"], &told["events"], &told["pods"]), (&json!(partial), &json!(7), &json!(3)));
        }
    }
}
