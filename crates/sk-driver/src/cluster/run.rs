//! One repetition of a Simulation on a cluster, from its root to its record.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::{Value, json};
use sk_api::simulation::{LifecycleParams, Simulation};
use sk_core::{Gvk, SimDuration, SimTime, SmolStr};
use sk_record::{Engine as EngineName, RunMeta, Staged, Warning, Writer};
use sk_store::trace::{Head, Trace, TraceError, What};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

use super::clock::Clock;
use super::context::{Context, RecorderMessage};
use super::counters::{Counters, Totals};
use super::error::RunError;
use super::hooks;
use super::judge::{Judge, Judged};
use super::kinds::Kinds;
use super::pace::Pace;
use super::replay::{self, Ended};
use super::request::{RetryPolicy, with_retries};
use super::role_binding::RoleBinder;
use super::root::Roots;
use super::serving::{self, Webhook};
use super::status::SimulationStatus;
use super::stop::Stop;
use super::upload::{Destination, UploadError};
use super::virtualise::{Root, Virtualiser};
use super::volumes;
use super::watch;
use super::webhook::Admission;
use sk_replay::embedded::gaps;
use sk_replay::fingerprint::Fingerprint;
use sk_replay::mutate::{Mutator, StartDelays};
use sk_replay::plan::{Window, is_replayed};
use sk_replay::record::{Recorder, about};

/// Changes that wait for the recorder: below 10 KB each, so 80 MB at most. A watch that fills it waits.
const MAX_WAITING_CHANGES: usize = 8_192;
/// The watch is a few milliseconds behind; what happened at the very end is waited for so long.
const LAST_LOOK: Duration = Duration::from_millis(500);

/// The version in the record if the cluster's is unknown.
const UNKNOWN_VERSION: &str = "unknown";

/// How long the first list of pods and nodes may take.
const LIST_PATIENCE: Duration = Duration::from_secs(30);

/// How a simulation is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which of its repetitions this is, from 0.
    pub repetition: u32,
    /// Which part of the trace.
    pub window: Window,
    /// Where all randomness of the run comes from.
    pub seed: u64,
    /// Stop at the first object that the API server refuses?
    pub stop_on_refusal: bool,
    /// Kinds that are replayed although they change the cluster itself.
    pub listed: BTreeSet<Gvk>,
    /// How the API server reaches the driver.
    pub webhook: Webhook,
    /// The destination of the record.
    pub destination: Destination,
    /// What the run is judged by, where no controller keeps its record for somebody else to judge.
    pub judge: Option<Arc<Judge>>,
    /// Is the Simulation in the cluster, so that its spec is watched and its status written?
    pub in_cluster: bool,
    /// May the Simulation's hooks run? In a cluster, whoever installed the controller decides that.
    pub allow_hooks: bool,
    /// The program's version; part of the run's identity.
    pub version: String,
    /// How long a run that is asked to stop may take to end: a tenth of it for what it is at, six tenths until the record
    /// is delivered, the whole until what it made in the cluster is removed.
    pub stop_within: Duration,
}

/// What a run that was asked to stop has time for.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    Replay,
    Record,
    CleanUp,
}

impl Options {
    pub(super) fn grace(&self, phase: Phase) -> Duration {
        match phase {
            Phase::Replay => self.stop_within / 10,
            Phase::Record => self.stop_within * 6 / 10,
            Phase::CleanUp => self.stop_within,
        }
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What was counted.
    pub totals: Totals,
    /// Why it ended early, if it did. The record is marked partial then.
    pub stopped: Option<String>,
    /// Where the record is.
    pub record: String,
    /// How it was judged, if there was somebody to judge it.
    pub judged: Option<Judged>,
}

/// One repetition.
pub(super) struct Run<'r> {
    pub(super) client: Client,
    pub(super) name: String,
    pub(super) simulation: &'r Simulation,
    pub(super) trace: Arc<Trace>,
    pub(super) options: &'r Options,
    pub(super) stop: Stop,
}

/// The thread that writes rows; it gives the writer back when there is nothing more to record.
type Recording = JoinHandle<Result<Writer, sk_record::Error>>;

/// What stands when a run begins: the parts that all share, and the tasks that go on beside the replay.
struct Begun {
    context: Arc<Context>,
    recorder: Recording,
    tasks: JoinSet<()>,
    /// Ends only if the webhook does.
    serving: AbortHandle,
}

impl Run<'_> {
    /// Makes the root, performs, and removes the root with all that it owns.
    pub(super) async fn under_a_root(&self, begin: &RetryPolicy, clean_up: &RetryPolicy) -> Result<Outcome, RunError> {
        let roots = |retry| Roots { client: &self.client, retry, simulation: &self.name };
        roots(begin).remove_leftovers(self.options.in_cluster).await?;
        let root = roots(begin).create(self.options.repetition, self.options.in_cluster).await?;
        tracing::info!(simulation = self.name, repetition = self.options.repetition, "the run begins");
        // The webhook answers until nothing of the run is left: operators make pods as long as there is a namespace.
        let mut servers = JoinSet::new();
        let outcome = self.perform(&root, begin, &mut servers).await;
        let removed = roots(clean_up).remove(&root).await;
        servers.shutdown().await;
        // What failed first is what matters.
        let outcome = outcome?;
        match removed {
            Ok(()) => Ok(outcome),
            Err(error) => Err(RunError::LeftBehind { record: outcome.record, error: Box::new(error) }),
        }
    }

    async fn perform(&self, root: &Root, begin: &RetryPolicy, servers: &mut JoinSet<()>) -> Result<Outcome, RunError> {
        let hooks = &self.simulation.spec.hooks;
        hooks::run_all("preRun", &hooks.pre_run_hooks, self.simulation, begin).await?;
        let scratch = tempfile::tempdir().map_err(RunError::Scratch)?;
        let kubernetes = self.kubernetes(begin).await;
        let Begun { context, recorder, mut tasks, serving } = self.begin(scratch.path(), root, servers).await?;
        let status = self.status().await?;
        let operations = replay::read(self.trace.clone(), self.options.window);
        // The clock starts last: whatever is prepared after it would make the first operations late.
        if self.simulation.spec.paused_time.is_none() {
            context.pace.set_paused(false);
        }
        if let Some(status) = &status {
            tasks.spawn(status.clone().follow(context.clone()));
            tasks.spawn(status.clone().write_progress(context.clone()));
        }
        let replayed = replay::replay(&context, operations, self.options.window.end).await;
        tokio::time::sleep(LAST_LOOK).await;
        let end = context.pace.now().min(self.options.window.end);
        let has_died = serving.is_finished();
        tasks.shutdown().await;
        let partial = !matches!(replayed, Ok(Ended::Whole));
        let staged = self.finish(&context, recorder, end, partial, kubernetes).await?;
        let (staged, judged) = self.judge(staged).await?;
        let retry = RetryPolicy::new(&context.counters, &self.stop, self.options.grace(Phase::Record)).in_need();
        let hooked = hooks::run_all("postRun", &hooks.post_run_hooks, self.simulation, &retry).await;
        let totals = context.counters.totals();
        let telling = async {
            if let Some(status) = &status {
                status.write_totals(&context, &retry, &totals, partial).await;
            }
        };
        // At once: an API server that is away must not use up the time that a stopped run has for its record.
        let (record, ()) = tokio::join!(self.upload(staged, scratch, &retry), telling);
        let record = record?;
        tracing::info!(record, "the record is complete");
        let ended = replayed?;
        hooked?;
        if has_died {
            return Err(RunError::WebhookDied);
        }
        let stopped = self.stop.reason().filter(|_| ended == Ended::Stopped);
        Ok(Outcome { totals, stopped, record, judged })
    }

    /// Judges the run and makes its record whole, in a thread of its own: a large record takes seconds to read, and the
    /// webhook has to answer meanwhile.
    async fn judge(&self, mut staged: Staged) -> Result<(Staged, Option<Judged>), RunError> {
        let Some(judge) = self.options.judge.clone() else { return Ok((staged, None)) };
        let completing = tokio::task::spawn_blocking(move || {
            let judged = judge.complete(&mut staged)?;
            Ok::<_, RunError>((staged, Some(judged)))
        });
        completing.await.map_err(|_| RunError::Recorder)?
    }

    /// Uploads the record. If that fails, it is kept where it was written.
    async fn upload(&self, staged: Staged, scratch: TempDir, retry: &RetryPolicy) -> Result<String, RunError> {
        let destination = &self.options.destination;
        let folder = destination.folder(scratch.path());
        let delivered = destination.upload(staged, &self.name, self.options.repetition, retry).await;
        delivered.map_err(|error| match error {
            // It was not even put together.
            UploadError::Record(error) => RunError::Record(error),
            error => {
                let _ = scratch.keep();
                RunError::Deliver { error: Box::new(error), kept: folder }
            }
        })
    }

    /// Makes what all parts share, and starts recorder, webhook and watches. The clock stands still.
    async fn begin(&self, scratch: &Path, root: &Root, servers: &mut JoinSet<()>) -> Result<Begun, RunError> {
        let (changes, received) = mpsc::channel(MAX_WAITING_CHANGES);
        let recorder = self.record(scratch, received)?;
        let context = self.share(root, changes, self.role_binder().await?);
        let mut tasks = JoinSet::new();
        let lives = self.trace.lives()?.collect::<Result<Vec<_>, _>>()?;
        let delays = delays(&self.simulation.spec.lifecycle_params);
        let seed = self.options.seed.wrapping_add(self.options.repetition.into());
        let mutator = Arc::new(Mutex::new(Mutator::new(seed, delays, lives)));
        let admission = Admission::new(context.clone(), mutator.clone());
        let serving = serving::start(&self.options.webhook, &context, admission, servers, &mut tasks).await?;
        let (listed, mut seen) = mpsc::channel(watch::FOLLOWED);
        tasks.spawn(watch::follow(context.clone(), mutator, listed));
        tasks.spawn(volumes::provide(context.clone()));
        for _ in 0..watch::FOLLOWED {
            // A cluster whose watches do not begin will be heard of when the first object is applied.
            tokio::select! {
                _ = tokio::time::timeout(LIST_PATIENCE, seen.recv()) => {}
                () = self.stop.asked() => break,
            }
        }
        Ok(Begun { context, recorder, tasks, serving })
    }

    /// Begins the record, and starts the thread that writes it.
    fn record(&self, scratch: &Path, messages: mpsc::Receiver<RecorderMessage>) -> Result<Recording, RunError> {
        let mut writer = Writer::create(&self.options.destination.folder(scratch), &self.run_id()?)?;
        writer.add_file("simulation.json", &serde_json::to_vec_pretty(&self.request()).unwrap_or_default())?;
        let (stop, end) = (self.stop.clone(), self.options.window.end);
        Ok(tokio::task::spawn_blocking(move || record(writer, messages, end, &stop)))
    }

    /// A controller's driver has its installation's rights, and binds them in each namespace; others have their own.
    async fn role_binder(&self) -> Result<RoleBinder, RunError> {
        if !self.options.in_cluster {
            return Ok(RoleBinder::default());
        }
        let retry = RetryPolicy::new(&Counters::default(), &self.stop, self.options.grace(Phase::Replay)).in_need();
        RoleBinder::of_account(&self.client, &retry).await.map_err(RunError::RoleBinder)
    }

    /// Makes what all parts share.
    fn share(&self, root: &Root, recorder: mpsc::Sender<RecorderMessage>, role_binder: RoleBinder) -> Arc<Context> {
        let spec = &self.simulation.spec;
        let counters = Counters::default();
        Arc::new(Context {
            client: self.client.clone(),
            virtualiser: Virtualiser {
                prefix: spec.driver.virtual_ns_prefix.as_str().into(),
                simulation: self.name.as_str().into(),
                root: root.clone(),
                listed: self.options.listed.clone(),
            },
            role_binder,
            config: self.trace.config().clone(),
            kinds: Kinds::new(self.client.clone()),
            retry: RetryPolicy::new(&counters, &self.stop, self.options.grace(Phase::Replay)),
            counters,
            parted: Mutex::default(),
            pace: Pace::new(Clock::paused(self.options.window.start, spec.speed, Instant::now())),
            stop: self.stop.clone(),
            recorder,
            stop_on_refusal: self.options.stop_on_refusal,
            bare_pods: spec.reschedule_interrupted_bare_pods.then(|| Mutex::new(BTreeMap::new())),
        })
    }

    /// The status of the Simulation in the cluster, if it is there. Counts the whole trace.
    async fn status(&self) -> Result<Option<SimulationStatus>, RunError> {
        if !self.options.in_cluster {
            return Ok(None);
        }
        let (trace, window) = (self.trace.clone(), self.options.window);
        let counted = tokio::task::spawn_blocking(move || count(&trace, window)).await;
        let events = counted.map_err(|_| RunError::Recorder)??;
        Ok(Some(SimulationStatus::new(self.client.clone(), &self.name, window, events)))
    }

    /// The cluster's version. Asked for at the beginning: a record is not lost because nobody answers at the end.
    async fn kubernetes(&self, retry: &RetryPolicy) -> String {
        match with_retries(retry, || self.client.apiserver_version()).await {
            Ok(version) => format!("{}.{}", version.major, version.minor),
            Err(refusal) => {
                tracing::warn!("cannot read the version of the cluster: {refusal}");
                UNKNOWN_VERSION.to_owned()
            }
        }
    }

    /// Ends the record.
    async fn finish(
        &self,
        context: &Context,
        recorder: Recording,
        end: SimTime,
        partial: bool,
        kubernetes: String,
    ) -> Result<Staged, RunError> {
        let _ = context.recorder.send(RecorderMessage::End).await;
        let mut writer = recorder.await.map_err(|_| RunError::Recorder)??;
        let totals = serde_json::to_vec_pretty(&context.counters.totals()).unwrap_or_default();
        writer.add_file("cluster.json", &totals)?;
        let mut warnings = gaps(&self.trace)?;
        warnings.extend(context.counters.warnings(self.simulation.spec.speed));
        let meta = self.meta(end, partial, kubernetes, warnings)?;
        Ok(writer.finish(&meta)?)
    }

    /// The spec of the Simulation without paths and pause times, because a record holds no path and no wall time.
    fn request(&self) -> Value {
        let mut spec = serde_json::to_value(&self.simulation.spec).unwrap_or_default();
        if let Some(fields) = spec.as_object_mut() {
            fields.remove("pausedTime");
            fields.remove("record");
        }
        if let Some(driver) = spec["driver"].as_object_mut() {
            driver.remove("tracePath");
        }
        json!({"apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": self.name}, "spec": spec})
    }

    /// The same inputs have the same id everywhere; each repetition has an id of its own.
    fn run_id(&self) -> Result<String, TraceError> {
        let Window { start, end, includes_end } = self.options.window;
        let request = self.request().to_string();
        let hash = Fingerprint::of(&[
            self.options.version.as_bytes(),
            self.trace.digest()?.as_bytes(),
            b"cluster",
            request.as_bytes(),
            &self.options.seed.to_le_bytes(),
            &self.options.repetition.to_le_bytes(),
            &start.as_micros().to_le_bytes(),
            &end.as_micros().to_le_bytes(),
            &[u8::from(includes_end)],
        ]);
        Ok(format!("{}-{}", self.name, hash.short()))
    }

    fn meta(
        &self,
        end: SimTime,
        partial: bool,
        kubernetes: String,
        warnings: Vec<Warning>,
    ) -> Result<RunMeta, RunError> {
        let window = self.options.window;
        Ok(RunMeta {
            run_id: self.run_id()?,
            name: self.name.clone(),
            version: self.options.version.clone(),
            engine: EngineName::Cluster,
            kubernetes,
            seed: self.options.seed,
            trace: about(&self.trace, window)?,
            start: window.start,
            end,
            scenario_digest: Fingerprint::of(&[self.request().to_string().as_bytes()]).to_string(),
            currency: "USD".to_owned(),
            groups: Vec::new(),
            autoscaler: None,
            warnings,
            missing: Vec::new(),
            timeline: Vec::new(),
            partial,
        })
    }
}

/// Writes rows until there is nothing more to record. If that fails the run stops: without a record it is for nothing.
fn record(
    writer: Writer,
    mut messages: mpsc::Receiver<RecorderMessage>,
    end: SimTime,
    stop: &Stop,
) -> Result<Writer, sk_record::Error> {
    let mut recorder = Recorder::new(writer, BTreeMap::<SmolStr, f64>::new());
    while let Some(RecorderMessage::Change(mut event)) = messages.blocking_recv() {
        event.at = event.at.min(end);
        if let Err(error) = recorder.see(&event) {
            stop.ask(&format!("the record cannot be written: {error}"));
            return Err(error);
        }
    }
    recorder.finish()
}

/// Hooks are commands of the Simulation's author, run with the driver's permissions.
pub(super) fn may_run_hooks(simulation: &Simulation, allowed: bool) -> Result<(), RunError> {
    let hooks = &simulation.spec.hooks;
    let has_ours = !hooks.pre_run_hooks.is_empty() || !hooks.post_run_hooks.is_empty();
    if has_ours && !allowed { Err(RunError::HooksNotAllowed) } else { Ok(()) }
}

fn delays(written: &LifecycleParams) -> StartDelays {
    let millis = |millis: u32| SimDuration::from_millis(millis.into());
    StartDelays {
        image_pull: millis(written.image_pull_delay),
        image_pull_jitter: millis(written.image_pull_jitter),
        startup: millis(written.pod_startup_delay),
        startup_jitter: millis(written.pod_startup_jitter),
    }
}

/// How many events of the trace the window has, as the plan will have them: marks are none, and nodes are not replayed.
fn count(trace: &Trace, window: Window) -> Result<u64, TraceError> {
    let is_event = |head: &Head| match &head.what {
        What::Apply(object, _) | What::Delete(object, _) => is_replayed(&object.gvk) && !window.is_after(head.at),
        What::Mark => false,
    };
    trace.heads()?.try_fold(0, |count, head| head.map(|head| count + u64::from(is_event(&head))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_run_only_where_they_are_allowed() {
        let simulation = |hooks: Value| -> Simulation {
            let spec = json!({"driver": {"tracePath": "/t"}, "hooks": hooks});
            let json = json!({"apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {}, "spec": spec});
            serde_json::from_value(json).unwrap()
        };
        let hook = json!([{"cmd": "true"}]);
        for hooks in [json!({"preRunHooks": hook}), json!({"postRunHooks": hook})] {
            let error = may_run_hooks(&simulation(hooks.clone()), false).unwrap_err();
            assert_eq!(error.reason(), "HooksNotAllowed");
            may_run_hooks(&simulation(hooks), true).unwrap();
        }
        // These are the controller's.
        may_run_hooks(&simulation(json!({"preStartHooks": hook})), false).unwrap();
    }

    #[test]
    fn the_total_of_events_is_what_the_plan_makes_of_the_trace_itself() {
        let row = |at: &str, kind: &str, name: &str, verb: &str| {
            let mut metadata = json!({"name": name});
            if kind != "Node" {
                metadata["namespace"] = json!("shop");
            }
            json!({"at": format!("2026-01-05T09:00:{at}Z"), verb: {"apiVersion": "v1", "kind": kind, "metadata": metadata}})
        };
        let mut text = json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {}}}).to_string();
        for (at, kind, name, verb) in [
            ("00", "ConfigMap", "a", "apply"),
            ("00", "Node", "n", "apply"),
            ("10", "ConfigMap", "b", "apply"),
            ("20", "ConfigMap", "a", "delete"),
            ("30", "ConfigMap", "c", "apply"),
        ] {
            text += &format!("\n{}", row(at, kind, name, verb));
        }
        let trace = sk_store::trace::from_bytes("test", text.into_bytes()).unwrap();
        let at = |seconds: &str| SimTime::parse_rfc3339(&format!("2026-01-05T09:00:{seconds}Z")).unwrap();
        for (start, end) in [("00", "30"), ("00", "25"), ("15", "30")] {
            let window = Window { start: at(start), end: at(end), includes_end: true };
            let plan = sk_replay::plan::Plan::new(trace.records().unwrap(), trace.config(), window);
            let planned: Vec<_> = plan.map(Result::unwrap).collect();
            let recorded = planned.iter().filter(|operation| operation.is_recorded).count() as u64;
            assert_eq!(count(&trace, window).unwrap(), recorded, "{start} to {end}");
            assert_eq!(planned.len() as u64, recorded + 1, "and the namespace, which the trace does not have");
        }
    }
}
