//! Carries out a decision: one action, one change of the cluster, one Kubernetes Event.
//!
//! Every action is idempotent, because the controller can be killed between acting and recording that it has. If the
//! API server refuses permanently, that is not an error of the controller: the Simulation fails, with the API server's
//! message.

use std::time::Duration;

use jiff::Timestamp;
use kube::Resource;
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::runtime::events::{Event, EventType, Recorder};
use serde_json::{Value, json};
use sk_api::simulation::{Simulation, State, names};
use sk_cluster::certificate::{Authority, SERVING_DAYS};
use sk_cluster::hook;
use tracing::{info, warn};

use crate::cluster::{Cluster, ClusterError, holder};
use crate::decide::{Action, Report, Stage, hook_failure};
use crate::observe::{authorities, root_uid, secret};
use crate::observed::{CONCLUDED, Observed, Offer, Part, Verdict};
use crate::parts::Plan;
use crate::records::Store;
use crate::settings::Settings;

/// The longest text of an Event.
const MAX_NOTE: usize = 1000;

/// How often something has to be refused to be so. An API server that has just started refuses for a moment what it
/// allows, until it has read who may do what.
const REFUSALS: u32 = 3;
/// Between two of them.
const REFUSAL_PAUSE: Duration = Duration::from_secs(2);

/// What carries decisions out.
pub(crate) struct Executor {
    pub(crate) cluster: Cluster,
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    pub(crate) recorder: Recorder,
    /// The certificate authority that drivers trust when they upload records, as PEM.
    pub(crate) authority: String,
}

impl Executor {
    /// Carries one action out.
    pub(crate) async fn execute(&self, observed: &Observed, action: &Action) -> Result<(), ClusterError> {
        // Only before the end: a clean-up that is refused has to be tried again until somebody allows it.
        let final_word = matches!(action, Action::Make(_) | Action::TakeTurn);
        for patience in (0..REFUSALS).rev() {
            let Err(error) = self.attempt(observed, action).await else { return Ok(()) };
            match error.refusal().filter(|_| final_word) {
                Some(_) if patience > 0 => tokio::time::sleep(REFUSAL_PAUSE).await,
                Some((reason, words)) => return self.conclude(observed, &Verdict::failure(reason, words)).await,
                None => return Err(error),
            }
        }
        Ok(())
    }

    async fn attempt(&self, observed: &Observed, action: &Action) -> Result<(), ClusterError> {
        let name = observed.name();
        match action {
            Action::Claim => self.set_finalizers(&observed.simulation, true).await,
            Action::TakeTurn => self.cluster.take_lease(&self.settings.namespace, name).await,
            Action::Begin => self.begin(observed).await,
            Action::RunHook(stage, index) => self.run_hook(observed, *stage, *index).await,
            Action::EndHook(stage, index, failure) => self.end_hook(observed, *stage, *index, failure.as_ref()).await,
            Action::Make(part) => self.make(observed, *part).await,
            Action::Renew(part) => self.renew(observed, *part).await,
            Action::Report(report) => self.report(observed, report).await,
            Action::Conclude(verdict) => self.conclude(observed, verdict).await,
            Action::TearDown => self.tear_down(observed).await,
            Action::DropSecret => self.drop_secret(observed).await,
            Action::Finish(verdict) => self.finish(observed, verdict).await,
            Action::ReleaseTurn => self.release_turn(name).await,
            Action::Expire => self.expire(observed).await,
            Action::Forget => Ok(self.store.remove(name).await?),
            Action::LetGo => self.set_finalizers(&observed.simulation, false).await,
        }
    }

    async fn begin(&self, observed: &Observed) -> Result<(), ClusterError> {
        let now = Timestamp::now();
        let words = "its turn has come";
        let status = json!({
            "state": State::Initializing, "startTime": seconds(now), "reason": "Started", "message": words,
            "observedGeneration": observed.simulation.metadata.generation,
        });
        self.patch_status(observed, status).await?;
        self.tell(&observed.simulation, EventType::Normal, "Started", words).await;
        if let Some(words) = metrics_skipped(observed) {
            self.tell(&observed.simulation, EventType::Warning, "MetricsSkipped", words).await;
        }
        Ok(())
    }

    async fn run_hook(&self, observed: &Observed, stage: Stage, index: usize) -> Result<(), ClusterError> {
        let hooks = &observed.simulation.spec.hooks;
        let list = match stage {
            Stage::PreStart => &hooks.pre_start_hooks,
            Stage::PostStop => &hooks.post_stop_hooks,
        };
        let Some(hook) = list.get(index) else { return Ok(()) };
        if !self.begin_hook(observed, stage, index).await? {
            return Ok(());
        }
        info!(simulation = observed.name(), ?stage, index, cmd = hook.cmd, "hook started");
        let result = hook::run(hook, &observed.simulation).await.map_err(|failure| failure.to_string());
        let failure = result.as_ref().err().and_then(|words| hook_failure(hook, words));
        match &result {
            Ok(_) => {
                let words = format!("{stage:?} hook `{}` is done", hook.cmd);
                self.tell(&observed.simulation, EventType::Normal, "HookDone", &words).await;
            }
            Err(words) => {
                let ignored = if hook.ignore_failure { " (ignored)" } else { "" };
                let words = format!("{stage:?} hook `{}`: {words}{ignored}", hook.cmd);
                self.tell(&observed.simulation, EventType::Warning, "HookFailed", &words).await;
            }
        }
        self.end_hook(observed, stage, index, failure.as_ref()).await
    }

    /// Writes down that a hook is about to run, if nothing about the Simulation has changed since it was looked at: of two
    /// controllers that both find it due, because a lost one lives on, only one runs it.
    async fn begin_hook(&self, observed: &Observed, stage: Stage, index: usize) -> Result<bool, ClusterError> {
        let (started, _) = progress_fields(stage);
        let seen = &observed.simulation.metadata;
        let patch = Patch::Merge(json!({
            "metadata": {"uid": seen.uid, "resourceVersion": seen.resource_version},
            "status": {"hooks": {started: index + 1}},
        }));
        match self.cluster.simulations().patch_status(observed.name(), &patch_params(), &patch).await {
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
            result => {
                let step = format!("write down that a hook of Simulation {} begins", observed.name());
                result.map(|_| true).map_err(ClusterError::request(step))
            }
        }
    }

    /// That a hook has ended and what follows from it is written in one piece. A run that has failed already keeps its
    /// reason.
    async fn end_hook(
        &self,
        observed: &Observed,
        stage: Stage,
        index: usize,
        failure: Option<&Verdict>,
    ) -> Result<(), ClusterError> {
        let (started, ended) = progress_fields(stage);
        let mut status = json!({"hooks": {started: index + 1, ended: index + 1}});
        let decided = observed.verdict().is_some_and(|verdict| !verdict.success);
        if let Some(failure) = failure.filter(|_| !decided) {
            status["conditions"] = json!([condition(observed, failure)]);
        }
        self.patch_status(observed, status).await
    }

    async fn make(&self, observed: &Observed, part: Part) -> Result<(), ClusterError> {
        let root_uid = root_uid(&self.cluster, &observed.simulation, &self.settings).await?;
        let plan = Plan { simulation: &observed.simulation, settings: &self.settings, root_uid: &root_uid };
        let object = match part {
            Part::Root => plan.root(),
            Part::Namespace => plan.own_namespace(),
            Part::Account => plan.account(),
            Part::Binding => plan.binding(),
            Part::Trust => plan.trust(&self.authority),
            Part::Certificate => match &observed.simulation.spec.driver.cert_manager_issuer {
                Some(issuer) => plan.ordered_certificate(issuer),
                None => self.new_certificate(&plan).await?,
            },
            Part::Service => plan.service(),
            Part::Webhook => plan.webhook(&self.trusted(&plan).await?),
            Part::Metrics => plan.metrics().unwrap_or_default(),
            Part::Job => plan.job(),
        };
        self.cluster.make(&plan, part, object).await?;
        let words = format!("{} is made", plan.place(part));
        self.tell(&observed.simulation, EventType::Normal, &format!("{part:?}Made"), &words).await;
        Ok(())
    }

    async fn renew(&self, observed: &Observed, part: Part) -> Result<(), ClusterError> {
        let root_uid = root_uid(&self.cluster, &observed.simulation, &self.settings).await?;
        let plan = Plan { simulation: &observed.simulation, settings: &self.settings, root_uid: &root_uid };
        let object = match part {
            Part::Certificate => self.new_certificate(&plan).await?,
            Part::Webhook => plan.webhook(&self.trusted(&plan).await?),
            // Nothing else grows old.
            _ => return Ok(()),
        };
        self.cluster.renew(&plan, part, object).await?;
        let words = format!("{} is renewed", plan.place(part));
        self.tell(&observed.simulation, EventType::Normal, &format!("{part:?}Renewed"), &words).await;
        Ok(())
    }

    /// A new certificate, trusted together with the one that is there.
    async fn new_certificate(&self, plan: &Plan<'_>) -> Result<Value, ClusterError> {
        let now = Timestamp::now();
        let authority = Authority::new(&names::driver_certificate(plan.name()), now)?;
        let serving = authority.serving(&plan.webhook_names(), now, SERVING_DAYS)?;
        let before = authorities(secret(&self.cluster, plan).await?.as_ref()).unwrap_or_default();
        // Of those before, the last one only: two are good at a time.
        let before = String::from_utf8_lossy(&before);
        let newest = before.split_inclusive("-----END CERTIFICATE-----").next().map(str::trim).unwrap_or_default();
        let trusted = if newest.is_empty() {
            authority.certificate.clone()
        } else {
            format!("{}{newest}\n", authority.certificate)
        };
        Ok(plan.own_certificate(&serving, &trusted))
    }

    async fn trusted(&self, plan: &Plan<'_>) -> Result<String, ClusterError> {
        let bytes = authorities(secret(&self.cluster, plan).await?.as_ref());
        let missing = || ClusterError::Unexpected {
            step: format!("read {}", plan.secret()),
            what: format!("it has no {}", names::CA_KEY),
        };
        Ok(String::from_utf8_lossy(&bytes.ok_or_else(missing)?).into_owned())
    }

    async fn report(&self, observed: &Observed, report: &Report) -> Result<(), ClusterError> {
        let mut status = json!({
            "state": report.state, "reason": report.reason, "message": report.message,
            "observedGeneration": observed.simulation.metadata.generation,
        });
        if let Some(completed) = report.completed {
            status["completedRuns"] = completed.into();
        }
        self.patch_status(observed, status).await?;
        if observed.status().state != Some(report.state) {
            self.tell(&observed.simulation, EventType::Normal, &format!("{:?}", report.state), &report.message).await;
        }
        Ok(())
    }

    async fn conclude(&self, observed: &Observed, verdict: &Verdict) -> Result<(), ClusterError> {
        info!(simulation = observed.name(), reason = verdict.reason, message = verdict.message, "concluded");
        self.patch_status(observed, json!({"conditions": [condition(observed, verdict)]})).await
    }

    async fn tear_down(&self, observed: &Observed) -> Result<(), ClusterError> {
        let plan = Plan { simulation: &observed.simulation, settings: &self.settings, root_uid: "" };
        let place = plan.place(Part::Root);
        if let Some(root) = self.cluster.find(&place).await? {
            self.cluster.delete(&place, root.uid()).await?;
            self.tell(&observed.simulation, EventType::Normal, "CleaningUp", "everything of the run is being deleted")
                .await;
        }
        Ok(())
    }

    async fn drop_secret(&self, observed: &Observed) -> Result<(), ClusterError> {
        let plan = Plan { simulation: &observed.simulation, settings: &self.settings, root_uid: "" };
        match self.cluster.find(&plan.secret()).await?.filter(|found| is_of(observed, found)) {
            Some(secret) => self.cluster.delete(&plan.secret(), secret.uid()).await,
            None => Ok(()),
        }
    }

    async fn finish(&self, observed: &Observed, verdict: &Verdict) -> Result<(), ClusterError> {
        let state = if verdict.success { State::Finished } else { State::Failed };
        let status = json!({
            "state": state, "reason": verdict.reason, "message": verdict.message, "recordPath": observed.record_path(),
            "endTime": seconds(Timestamp::now()), "observedGeneration": observed.simulation.metadata.generation,
        });
        self.patch_status(observed, status).await?;
        let kind = if verdict.success { EventType::Normal } else { EventType::Warning };
        self.tell(&observed.simulation, kind, &format!("{state:?}"), &verdict.message).await;
        Ok(())
    }

    async fn release_turn(&self, name: &str) -> Result<(), ClusterError> {
        let lease = self.cluster.lease(&self.settings.namespace).await?;
        match lease.filter(|lease| holder(lease) == Some(name)) {
            Some(lease) => self.cluster.drop_lease(&self.settings.namespace, &lease).await,
            None => Ok(()),
        }
    }

    async fn expire(&self, observed: &Observed) -> Result<(), ClusterError> {
        let deleted = self.cluster.simulations().delete(observed.name(), &DeleteParams::default()).await;
        match deleted {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            result => result.map(drop).map_err(ClusterError::request(format!("delete Simulation {}", observed.name()))),
        }
    }

    /// Puts our finalizer on or takes it off. The version guards against changes of others in between.
    async fn set_finalizers(&self, simulation: &Simulation, on: bool) -> Result<(), ClusterError> {
        let name = simulation.name_any();
        let mut finalizers: Vec<_> =
            simulation.finalizers().iter().filter(|finalizer| *finalizer != names::FINALIZER).cloned().collect();
        if on {
            finalizers.push(names::FINALIZER.to_owned());
        }
        let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": simulation.resource_version()}});
        let patched = self.cluster.simulations().patch_metadata(&name, &patch_params(), &Patch::Merge(patch)).await;
        match patched {
            Err(kube::Error::Api(status)) if status.is_not_found() && !on => Ok(()),
            result => {
                result.map(drop).map_err(ClusterError::request(format!("change the finalizers of Simulation {name}")))
            }
        }
    }

    async fn patch_status(&self, observed: &Observed, status: Value) -> Result<(), ClusterError> {
        let patch = Patch::Merge(json!({"metadata": {"uid": observed.simulation.metadata.uid}, "status": status}));
        let patched = self.cluster.simulations().patch_status(observed.name(), &patch_params(), &patch).await;
        let step = format!("write the status of Simulation {}", observed.name());
        patched.map(drop).map_err(ClusterError::request(step))
    }

    /// An Event is for people; that one is missing stops nothing.
    async fn tell(&self, simulation: &Simulation, type_: EventType, reason: &str, words: &str) {
        info!(simulation = simulation.name_any(), reason, "{words}");
        let note = words.chars().take(MAX_NOTE).collect();
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(note),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &simulation.object_ref(&())).await {
            warn!(simulation = simulation.name_any(), %error, "an Event could not be published");
        }
    }
}

fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(names::CONTROLLER_MANAGER.to_owned()), ..PatchParams::default() }
}

/// Does an object carry the simulation's label?
fn is_of(observed: &Observed, object: &DynamicObject) -> bool {
    object.labels().get(names::SIMULATION_LABEL).is_some_and(|label| label == observed.name())
}

/// Why a run that asks for a Prometheus continues without one.
fn metrics_skipped(observed: &Observed) -> Option<&'static str> {
    observed.simulation.spec.metrics.as_ref()?;
    match observed.offers.prometheus {
        Offer::Open => None,
        Offer::Absent => Some(
            "spec.metrics asks for a Prometheus, but the Prometheus operator is not installed here: the run goes on \
             without",
        ),
        Offer::Forbidden => Some(
            "spec.metrics asks for a Prometheus, but the controller may not make one: the run goes on without; \
             `skctl install sim --metrics` gives it the right",
        ),
    }
}

fn progress_fields(stage: Stage) -> (&'static str, &'static str) {
    match stage {
        Stage::PreStart => ("preStartStarted", "preStartEnded"),
        Stage::PostStop => ("postStopStarted", "postStopEnded"),
    }
}

fn condition(observed: &Observed, verdict: &Verdict) -> Value {
    json!({
        "type": CONCLUDED, "status": if verdict.success { "True" } else { "False" },
        "reason": verdict.reason, "message": verdict.message, "lastTransitionTime": seconds(Timestamp::now()),
        "observedGeneration": observed.simulation.metadata.generation,
    })
}

/// As Kubernetes writes times in a status.
fn seconds(at: Timestamp) -> String {
    at.strftime("%FT%TZ").to_string()
}
