//! One repetition of a simulation, from its root to its record.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::{Value, json};
use sk_api::simulation::{LifecycleParams, Simulation};
use sk_core::{Gvk, SimDuration, SimTime, SmolStr};
use sk_record::{Engine as EngineName, RunMeta, Staged, Warning, Writer};
use sk_store::trace::{Trace, TraceError, What};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use super::clock::Clock;
use super::context::{Context, Sighting};
use super::deliver::{DeliverError, Destination};
use super::dress::{Dress, Root};
use super::hooks::{self, HookError};
use super::kinds::Kinds;
use super::own_webhook;
use super::pace::Pace;
use super::replay::{self, Ended};
use super::request::{Refusal, patiently};
use super::root::{RootError, Roots};
use super::status::Told;
use super::stop::Stop;
use super::tally::{Tally, Totals};
use super::tls::{Certificate, Served, TlsError, TlsListener};
use super::watch;
use super::webhook::Admission;
use crate::embedded::gaps;
use crate::fingerprint::Fingerprint;
use crate::mutate::{Mutator, StartDelays};
use crate::plan::Window;
use crate::record::{Recorder, about};

/// Changes that wait for the recorder: below 10 KB each, so 80 MB at most. A watch that fills it waits.
const MAX_SIGHTINGS: usize = 8_192;
/// The watch is a few milliseconds behind; what happened at the very end is waited for so long.
const LAST_LOOK: Duration = Duration::from_millis(500);

/// What a record says where the cluster did not tell its version.
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
    /// Where the record goes.
    pub destination: Destination,
    /// Is the Simulation in the cluster, to be watched and told of progress?
    pub in_cluster: bool,
    /// May the Simulation's hooks run? In a cluster, whoever installed the controller decides that.
    pub allow_hooks: bool,
    /// The program's version; part of the run's identity.
    pub version: String,
}

/// How the API server reaches the driver's webhook.
#[derive(Clone, Debug)]
pub enum Webhook {
    /// The controller has made certificate, Service and configuration.
    Installed {
        /// The folder with `tls.crt` and `tls.key`.
        certificate: PathBuf,
        /// Where to listen.
        bind: SocketAddr,
    },
    /// The driver makes its own, and takes them away again.
    Own {
        /// Where to listen.
        bind: SocketAddr,
        /// Where the API server finds it: `https://host:port`; without a port, the one that is listened on.
        url: String,
    },
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was counted.
    pub totals: Totals,
    /// Why it ended early, if it did. The record is marked partial then.
    pub stopped: Option<String>,
    /// Where the record is.
    pub record: String,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The root could not be made or removed.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The webhook cannot be served.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The webhook's configuration was refused.
    #[error("cannot configure the admission webhook: {0}")]
    Webhook(#[source] Refusal),
    /// The webhook's address is none.
    #[error("`{0}` is no address of a webhook: write it like https://host:port")]
    WebhookUrl(String),
    /// A hook failed.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] sk_record::Error),
    /// The record could not be delivered.
    #[error(transparent)]
    Deliver(#[from] DeliverError),
    /// No folder for it.
    #[error("cannot make a temporary folder: {0}; check that there is room (TMPDIR)")]
    Scratch(#[source] std::io::Error),
    /// There are hooks, and they may not run.
    #[error(
        "the Simulation has preRun or postRun hooks, and this installation does not allow them; \
         remove them, or install with --allow-hooks"
    )]
    HooksNotAllowed,
    /// The recorder broke off: a bug.
    #[error("the recorder broke off; please report this")]
    Recorder,
    /// The Simulation has no name.
    #[error("the Simulation has no metadata.name")]
    NoName,
}

impl RunError {
    /// One word for it, which the Simulation's status shows as the reason.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Trace(_) => "TraceUnreadable",
            Self::Root(RootError::Lingers { .. }) => "CleanupFailed",
            Self::Root(_) => "RootFailed",
            Self::Tls(_) | Self::Webhook(_) | Self::WebhookUrl(_) => "WebhookFailed",
            Self::Hook(_) => "HookFailed",
            Self::HooksNotAllowed => "HooksNotAllowed",
            Self::Record(_) | Self::Scratch(_) | Self::Recorder => "RecordFailed",
            Self::Deliver(_) => "RecordNotDelivered",
            Self::NoName => "InvalidSimulation",
        }
    }
}

/// Runs one repetition. Whatever happens, what the run made in the cluster is removed again.
pub async fn run(
    client: Client,
    simulation: &Simulation,
    trace: Arc<Trace>,
    options: &Options,
    stop: Stop,
) -> Result<Outcome, RunError> {
    let name = simulation.metadata.name.clone().ok_or(RunError::NoName)?;
    may_run_hooks(simulation, options.allow_hooks)?;
    // What is counted before the run begins is not the run's.
    let tally = Tally::default();
    let roots = Roots { client: &client, tally: &tally, simulation: &name };
    if !options.in_cluster {
        roots.need_kind().await?;
    }
    roots.remove_leftovers().await?;
    let root = roots.create(options.repetition, options.in_cluster).await?;
    tracing::info!(simulation = name, repetition = options.repetition, "the run begins");
    let run = Run { client: client.clone(), name: name.clone(), simulation, trace, options, root: root.clone(), stop };
    let outcome = run.perform().await;
    let removed = roots.remove(&root).await;
    let released = if removed.is_ok() && !options.in_cluster { roots.release_kind().await } else { Ok(()) };
    // What failed first is what matters.
    let outcome = outcome?;
    removed.and(released)?;
    Ok(outcome)
}

struct Run<'r> {
    client: Client,
    name: String,
    simulation: &'r Simulation,
    trace: Arc<Trace>,
    options: &'r Options,
    root: Root,
    stop: Stop,
}

impl Run<'_> {
    async fn perform(self) -> Result<Outcome, RunError> {
        let hooks = &self.simulation.spec.hooks;
        hooks::run_all("preRun", &hooks.pre_run_hooks, self.simulation).await?;
        let scratch = tempfile::tempdir().map_err(RunError::Scratch)?;
        let kubernetes = self.kubernetes().await;
        let (context, recorder) = self.begin(scratch.path()).await?;
        let mut tasks = JoinSet::new();
        self.start(&context, &mut tasks).await?;
        let told = self.told().await?;
        let operations = replay::read(self.trace.clone(), self.options.window);
        // The clock starts last: whatever is prepared after it would make the first operations late.
        if self.simulation.spec.paused_time.is_none() {
            context.pace.set_paused(false);
        }
        if let Some(told) = &told {
            tasks.spawn(told.clone().follow(context.clone()));
            tasks.spawn(told.clone().tell(context.clone()));
        }
        let replayed = replay::replay(&context, operations, self.options.window.end).await;
        tokio::time::sleep(LAST_LOOK).await;
        let end = context.pace.now().min(self.options.window.end);
        tasks.shutdown().await;
        let partial = !matches!(replayed, Ok(Ended::Whole));
        let staged = self.finish(&context, recorder, end, partial, kubernetes).await?;
        let hooked = hooks::run_all("postRun", &hooks.post_run_hooks, self.simulation).await;
        let totals = context.tally.totals();
        if let Some(told) = told {
            told.tell_totals(&context, &totals, partial).await;
        }
        let record =
            self.options.destination.deliver(staged, &self.name, self.options.repetition, &context.tally).await?;
        tracing::info!(record, "the record is there");
        let ended = replayed?;
        hooked?;
        let stopped = self.stop.reason().filter(|_| ended == Ended::Stopped);
        Ok(Outcome { totals, stopped, record })
    }

    /// Makes what all parts share, and starts the recorder. The clock stands still.
    async fn begin(
        &self,
        scratch: &Path,
    ) -> Result<(Arc<Context>, JoinHandle<Result<Writer, sk_record::Error>>), RunError> {
        let spec = &self.simulation.spec;
        let run_id = self.run_id()?;
        let mut writer = Writer::create(&self.options.destination.folder(scratch), &run_id)?;
        writer.add_file("simulation.json", &serde_json::to_vec_pretty(&self.question()).unwrap_or_default())?;
        let (sightings, receiver) = mpsc::channel(MAX_SIGHTINGS);
        let recorder = tokio::task::spawn_blocking({
            let (stop, end) = (self.stop.clone(), self.options.window.end);
            move || record(writer, receiver, end, &stop)
        });
        let pace = Pace::new(Clock::paused(self.options.window.start, spec.speed, Instant::now()));
        let context = Context {
            client: self.client.clone(),
            dress: Dress {
                prefix: spec.driver.virtual_ns_prefix.as_str().into(),
                simulation: self.name.as_str().into(),
                root: self.root.clone(),
                listed: self.options.listed.clone(),
            },
            config: self.trace.config().clone(),
            kinds: Kinds::new(self.client.clone()),
            tally: Tally::default(),
            pace,
            stop: self.stop.clone(),
            sightings,
            stop_on_refusal: self.options.stop_on_refusal,
            bare_pods: spec.reschedule_interrupted_bare_pods.then(|| Mutex::new(BTreeMap::new())),
        };
        Ok((Arc::new(context), recorder))
    }

    /// Starts the webhook and the watches, and waits until all nodes that are there have been seen.
    async fn start(&self, context: &Arc<Context>, tasks: &mut JoinSet<()>) -> Result<(), RunError> {
        let lives = self.trace.lives()?.collect::<Result<Vec<_>, _>>()?;
        let delays = delays(&self.simulation.spec.lifecycle_params);
        let seed = self.options.seed.wrapping_add(self.options.repetition.into());
        let mutator = Arc::new(Mutex::new(Mutator::new(seed, delays, lives)));
        let admission = Admission::new(context.clone(), mutator.clone());
        let (listener, own) = self.listen().await?;
        tasks.spawn(async move {
            // A server over our listener ends only with its task.
            let _ = axum::serve(listener, admission.router()).await;
        });
        if let Some((url, authority)) = own {
            let installed =
                own_webhook::install(&self.client, &context.tally, &self.name, &self.root, &url, &authority).await;
            installed.map_err(RunError::Webhook)?;
        }
        let (listed, mut seen) = mpsc::channel(watch::FOLLOWED);
        tasks.spawn(watch::follow(context.clone(), mutator, listed));
        for _ in 0..watch::FOLLOWED {
            // A cluster whose watches do not begin will be heard of when the first object is applied.
            let _ = tokio::time::timeout(LIST_PATIENCE, seen.recv()).await;
        }
        Ok(())
    }

    /// Listens for the API server; of a webhook of our own, where it is found and whom to trust.
    async fn listen(&self) -> Result<(TlsListener, Option<(String, String)>), RunError> {
        match &self.options.webhook {
            Webhook::Installed { certificate, bind } => {
                Ok((TlsListener::bind(*bind, Served::from_folder(certificate)?).await?, None))
            }
            Webhook::Own { bind, url } => {
                let wrong = || RunError::WebhookUrl(url.clone());
                let mut parsed = url::Url::parse(url).map_err(|_| wrong())?;
                let host = parsed.host_str().filter(|_| parsed.scheme() == "https").ok_or_else(wrong)?;
                // An address in brackets is an IPv6 address in a URL only.
                let certificate = Certificate::for_host(host.trim_matches(['[', ']']))?;
                let listener = TlsListener::bind(*bind, Served::fixed(&certificate)?).await?;
                if parsed.port().is_none() {
                    parsed.set_port(Some(listener.address().port())).map_err(|()| wrong())?;
                }
                Ok((listener, Some((parsed.to_string(), certificate.authority))))
            }
        }
    }

    /// The Simulation in the cluster, if it is there, to be followed and told of progress. Counts the whole trace.
    async fn told(&self) -> Result<Option<Told>, RunError> {
        if !self.options.in_cluster {
            return Ok(None);
        }
        let (trace, window) = (self.trace.clone(), self.options.window);
        let counted = tokio::task::spawn_blocking(move || count(&trace, window)).await;
        let events = counted.map_err(|_| RunError::Recorder)??;
        Ok(Some(Told::new(self.client.clone(), &self.name, window, events)))
    }

    /// The cluster's version. Asked for at the beginning: a record is not lost because nobody answers at the end.
    async fn kubernetes(&self) -> String {
        match patiently(&Tally::default(), || self.client.apiserver_version()).await {
            Ok(version) => format!("{}.{}", version.major, version.minor),
            Err(refusal) => {
                tracing::warn!("the cluster does not tell its version: {refusal}");
                UNKNOWN_VERSION.to_owned()
            }
        }
    }

    /// Ends the record.
    async fn finish(
        &self,
        context: &Context,
        recorder: JoinHandle<Result<Writer, sk_record::Error>>,
        end: SimTime,
        partial: bool,
        kubernetes: String,
    ) -> Result<Staged, RunError> {
        let _ = context.sightings.send(Sighting::End).await;
        let mut writer = recorder.await.map_err(|_| RunError::Recorder)??;
        let totals = serde_json::to_vec_pretty(&context.tally.totals()).unwrap_or_default();
        writer.add_file("cluster.json", &totals)?;
        let mut warnings = gaps(&self.trace)?;
        warnings.extend(context.tally.warnings(self.simulation.spec.speed));
        let meta = self.meta(end, partial, kubernetes, warnings)?;
        Ok(writer.finish(&meta)?)
    }

    /// What was asked, without where things lie and when somebody paused: a record holds no path and no wall time.
    fn question(&self) -> Value {
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

    /// The same question has the same id, wherever it is asked; each repetition is a question of its own.
    fn run_id(&self) -> Result<String, TraceError> {
        let Window { start, end, includes_end } = self.options.window;
        let question = self.question().to_string();
        let hash = Fingerprint::of(&[
            self.options.version.as_bytes(),
            self.trace.digest()?.as_bytes(),
            b"cluster",
            question.as_bytes(),
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
            scenario_digest: Fingerprint::of(&[self.question().to_string().as_bytes()]).to_string(),
            currency: "USD".to_owned(),
            groups: Vec::new(),
            autoscaler: None,
            warnings,
            partial,
        })
    }
}

/// Writes rows until there is nothing more to record. If that fails the run stops: without a record it is for nothing.
fn record(
    writer: Writer,
    mut sightings: mpsc::Receiver<Sighting>,
    end: SimTime,
    stop: &Stop,
) -> Result<Writer, sk_record::Error> {
    let mut recorder = Recorder::new(writer, BTreeMap::<SmolStr, f64>::new());
    while let Some(Sighting::Change(mut event)) = sightings.blocking_recv() {
        event.at = event.at.min(end);
        if let Err(error) = recorder.see(&event) {
            stop.ask(&format!("the record cannot be written: {error}"));
            return Err(error);
        }
    }
    recorder.finish()
}

/// Hooks are commands of whoever wrote the Simulation, run with the driver's rights.
fn may_run_hooks(simulation: &Simulation, allowed: bool) -> Result<(), RunError> {
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

/// How many operations the window has, as far as the trace's heads tell.
fn count(trace: &Trace, window: Window) -> Result<u64, TraceError> {
    let is_operation = |head: &sk_store::trace::Head| !matches!(head.what, What::Mark) && !window.is_after(head.at);
    trace.heads()?.try_fold(0, |count, head| head.map(|head| count + u64::from(is_operation(&head))))
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
}
