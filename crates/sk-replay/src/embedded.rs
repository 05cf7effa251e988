//! The embedded target: replays a plan on the engine in virtual time.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use sk_core::limits::{self, TooManyPods};
use sk_core::{ObjectKey, ObjectRef, SimDuration, SimTime};
use sk_engine::Engine;
use sk_engine::api::{ApiError, DeleteOptions, Expired, Notice, Request};
use sk_engine::kinds::NAMESPACE;
use sk_record::{Engine as EngineName, RunMeta, Staged, Warning, WarningKind, Writer};
use sk_store::trace::{Trace, TraceError};

use crate::fingerprint::Fingerprint;
use crate::mutate::Mutator;
use crate::plan::{Action, Content, Operation, Plan, Window};
use crate::record::{Recorder, about};
use crate::setup::Setup;

/// The Kubernetes whose rules the engine follows.
pub const KUBERNETES: &str = "1.36";
/// The recorder reads the log at least this often: half of what the log keeps, so that nothing is ever missed.
const CHANGES_PER_STEP: u64 = (sk_engine::api::store::LOG_CAPACITY / 2) as u64;
/// Progress is reported at least this often in simulated time, so that a quiet night can still be interrupted.
const LONGEST_STEP: SimDuration = SimDuration::from_mins(30);
/// How long an operation waits for a namespace that is going, and how often it looks. Emptying one takes seconds; a
/// finalizer of somebody else's could hold it for ever.
const NAMESPACE_PATIENCE: SimDuration = SimDuration::from_mins(2);
const NAMESPACE_LOOK: SimDuration = SimDuration::from_millis(100);
/// How many different deletions that failed are told apart; the rest is counted as one.
const MAX_REFUSALS: usize = 20;

/// What is replayed, and what to call it.
pub struct RunRequest<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Which part of it.
    pub window: Window,
    /// How the cluster is set up.
    pub setup: &'a Setup,
    /// The resolved scenario as text; part of the run's identity, and kept in the run folder.
    pub scenario: &'a str,
    /// How the run is called; fit for a folder's name.
    pub name: &'a str,
    /// The program's version; part of the run's identity.
    pub version: &'a str,
    /// What the caller assumed because nobody said it.
    pub assumptions: Vec<Warning>,
}

/// Why a run did not end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The trace could not be read to its end.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// An object of the trace asks for more than a simulated cluster can hold.
    #[error("{object}: {problem}; lower the number with `skctl trace transform`, or leave the object out")]
    TooManyPods {
        /// Which.
        object: String,
        /// What it asks for.
        problem: TooManyPods,
    },
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] sk_record::Error),
    /// The recorder lost sight of the engine: a bug, and not to be hidden.
    #[error("the recorder fell behind the engine, so the record would not be whole: {0}; please report this")]
    Behind(#[from] Expired),
}

impl RunRequest<'_> {
    /// What the run is called everywhere, `nginx-3fa91c`: its name and the first digits of what it is made of, so the
    /// same question has the same id.
    pub fn run_id(&self) -> Result<String, TraceError> {
        let digest = self.trace.digest()?;
        let Window { start, end, includes_end } = self.window;
        let hash = Fingerprint::of(&[
            self.version.as_bytes(),
            digest.as_bytes(),
            self.scenario.as_bytes(),
            &self.setup.settings.seed.to_le_bytes(),
            &start.as_micros().to_le_bytes(),
            &end.as_micros().to_le_bytes(),
            &[u8::from(includes_end)],
        ]);
        Ok(format!("{}-{}", self.name, hash.short()))
    }
}

/// Runs the simulation and leaves its record beside `dir`, to be published there. `progress` is told the simulated time
/// now and then; when it breaks, the run ends early and its record is marked partial.
pub fn run(
    request: &RunRequest<'_>,
    dir: &Path,
    progress: &mut dyn FnMut(SimTime) -> ControlFlow<()>,
) -> Result<Staged, RunError> {
    let run_id = request.run_id()?;
    let mut writer = Writer::create(dir, &run_id)?;
    writer.add_file("scenario.yaml", request.scenario.as_bytes())?;
    let mut replay = Replay::new(request, writer)?;
    let mut plan = Plan::new(request.trace.records()?, request.trace.config(), request.window).for_engine();
    let mut finished = ControlFlow::Continue(());
    while let Some(operation) = plan.next() {
        let operation = operation?;
        check_pods(&operation)?;
        finished = replay.advance(operation.at, progress)?;
        if finished.is_break() {
            break;
        }
        if let Some((object, error)) = replay.perform(operation)? {
            plan.refused(&object, &error.to_string());
        }
    }
    if finished.is_continue() {
        finished = replay.advance(request.window.end, progress)?;
    }
    let end = replay.engine.now();
    let mut warnings = request.assumptions.clone();
    warnings.extend(gaps(request.trace)?);
    warnings.extend(plan.unmodelled().findings().map(|(finding, count)| Warning {
        code: finding.code.to_owned(),
        kind: WarningKind::Unmodelled,
        message: finding.message.to_owned(),
        count,
    }));
    let gaps = plan.into_gaps();
    let lives = request.trace.lives()?.collect::<Result<Vec<_>, _>>()?;
    let mut meta = meta(request, run_id, end, finished.is_break())?;
    meta.missing = gaps.into_missing(&lives, request.window);
    replay.finish(meta, warnings)
}

/// A replay under way.
struct Replay {
    engine: Engine,
    recorder: Recorder,
    /// The version up to which the recorder has seen everything.
    cursor: u64,
    /// Deletions that it refused, and how often.
    refusals: BTreeMap<String, u64>,
    /// Operations that came later than they were recorded.
    late: u64,
    /// How long pods of Jobs run when nobody says.
    job_duration: SimDuration,
}

impl Replay {
    fn new(request: &RunRequest<'_>, writer: Writer) -> Result<Self, RunError> {
        let setup = request.setup;
        let mut engine = Engine::new(&setup.settings, request.window.start);
        let lives = request.trace.lives()?.collect::<Result<Vec<_>, _>>()?;
        engine.set_pod_hook(Box::new(Mutator::new(setup.settings.seed, setup.delays, lives)));
        let prices = setup.settings.groups.iter().filter_map(|group| Some((group.name.clone(), group.price_per_hour?)));
        let recorder = Recorder::new(writer, prices.collect());
        Ok(Self {
            engine,
            recorder,
            cursor: 0,
            refusals: BTreeMap::new(),
            late: 0,
            job_duration: setup.settings.timing.job_duration,
        })
    }

    /// Lets the cluster live until `until`.
    fn advance(
        &mut self,
        until: SimTime,
        progress: &mut dyn FnMut(SimTime) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, RunError> {
        loop {
            let step = until.min(self.engine.now() + LONGEST_STEP);
            let reached = self.engine.advance(step, CHANGES_PER_STEP);
            self.catch_up()?;
            if progress(self.engine.now()).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if reached && step == until {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    fn catch_up(&mut self) -> Result<(), RunError> {
        for event in self.engine.watch(self.cursor)? {
            self.recorder.see(&event.into())?;
            self.cursor = event.object.resource_version;
        }
        Ok(())
    }

    /// Performs an operation; the object and the server's words if it was refused. The run goes on all the same.
    fn perform(&mut self, operation: Operation) -> Result<Option<(ObjectRef, ApiError)>, RunError> {
        self.late += u64::from(operation.at < self.engine.now());
        let mut refused = None;
        match operation.action {
            Action::Apply { object, content } => {
                self.wait_for_namespace(&object)?;
                let answer = content.into_object().and_then(|object| self.engine.handle(Request::apply(object)));
                refused = answer.err().map(|error| (object, error));
            }
            Action::Delete(target) => {
                // What was recorded is that the object was gone, not that somebody asked for it: no grace. What went
                // with it was recorded too, or is collected.
                let options = DeleteOptions { grace_secs: Some(0), ..DeleteOptions::default() };
                if let Err(error) = self.engine.handle(Request::Delete { target: target.clone(), options }) {
                    self.not_deleted(&target, &error);
                }
            }
        }
        self.catch_up()?;
        Ok(refused)
    }

    /// A namespace that was deleted and made again is made again once the old one is gone.
    fn wait_for_namespace(&mut self, target: &ObjectRef) -> Result<(), RunError> {
        let name = if target.gvk == NAMESPACE { Some(&target.key.name) } else { target.key.namespace.as_ref() };
        let Some(key) = name.map(|name| ObjectKey::cluster(name.clone())) else { return Ok(()) };
        let give_up = self.engine.now() + NAMESPACE_PATIENCE;
        while self.engine.get(&NAMESPACE, &key).is_some_and(|namespace| namespace.is_deleting())
            && self.engine.now() < give_up
        {
            self.engine.advance_to(self.engine.now() + NAMESPACE_LOOK);
            self.catch_up()?;
        }
        Ok(())
    }

    fn not_deleted(&mut self, target: &ObjectRef, error: &ApiError) {
        let message = format!("not deleted: {target}: {error}");
        let known = self.refusals.contains_key(&message);
        let message =
            if known || self.refusals.len() < MAX_REFUSALS { message } else { "not deleted: others".to_owned() };
        *self.refusals.entry(message).or_default() += 1;
    }

    fn finish(self, mut meta: RunMeta, mut warnings: Vec<Warning>) -> Result<Staged, RunError> {
        let assumed: Vec<_> =
            self.engine.notices().iter().map(|(notice, count)| self.assumed(notice, *count)).collect();
        warnings.extend(self.refusals.into_iter().map(|(message, count)| Warning {
            code: "not-deleted".to_owned(),
            kind: WarningKind::Gap,
            message,
            count,
        }));
        if self.late > 0 {
            warnings.push(Warning {
                code: "late".to_owned(),
                kind: WarningKind::Gap,
                message: "records out of order, or held back by a namespace, were replayed late".to_owned(),
                count: self.late,
            });
        }
        warnings.extend(assumed);
        meta.warnings = warnings;
        Ok(self.recorder.finish()?.finish(&meta)?)
    }
}

impl Replay {
    /// What the engine decided without knowing.
    fn assumed(&self, notice: &Notice, count: u64) -> Warning {
        let (code, message) = match notice {
            Notice::UnknownPriorityClass(class) => (
                "priority-class",
                format!("priority class {class} is not in the trace: its pods keep their own priority, or 0"),
            ),
            Notice::AssumedJobDuration => (
                "job-duration",
                format!(
                    "nobody recorded how long these pods of Jobs run: {} assumed (timing.jobDuration, or the annotation \
                     static.simkube.io/lifetime)",
                    self.job_duration
                ),
            ),
        };
        Warning { code: code.to_owned(), kind: WarningKind::Assumed, message, count }
    }
}

/// Refuses at once what would otherwise end only when the cluster is full, a million pods later.
fn check_pods(operation: &Operation) -> Result<(), RunError> {
    let Action::Apply { object, content: Content::Json(value) } = &operation.action else { return Ok(()) };
    limits::check_pods(value).map_err(|problem| RunError::TooManyPods { object: object.to_string(), problem })
}

/// What the recording itself missed.
pub fn gaps(trace: &Trace) -> Result<Vec<Warning>, TraceError> {
    let count = trace.gaps()?.try_fold(0, |count, gap| gap.map(|_| count + 1))?;
    let message = "the tracer was not watching for a while: changes may be missing".to_owned();
    let warning = Warning { code: "gap".to_owned(), kind: WarningKind::Gap, message, count };
    Ok(if count == 0 { Vec::new() } else { vec![warning] })
}

fn meta(request: &RunRequest<'_>, run_id: String, end: SimTime, partial: bool) -> Result<RunMeta, TraceError> {
    let setup = request.setup;
    Ok(RunMeta {
        run_id,
        name: request.name.to_owned(),
        version: request.version.to_owned(),
        engine: EngineName::Embedded,
        kubernetes: KUBERNETES.to_owned(),
        seed: setup.settings.seed,
        trace: about(request.trace, request.window)?,
        start: request.window.start,
        end,
        scenario_digest: Fingerprint::of(&[request.scenario.as_bytes()]).to_string(),
        currency: setup.currency.clone(),
        groups: setup.groups(),
        autoscaler: Some(setup.autoscaler()),
        warnings: Vec::new(),
        missing: Vec::new(),
        partial,
    })
}
