//! The embedded target: replays a plan on the engine in virtual time.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::Value;
use sk_core::limits::{self, TooManyPods};
use sk_core::{ObjectKey, ObjectRef, SimDuration, SimTime};
use sk_engine::api::{Answer, ApiError, Change, DeleteOptions, Expired, Object, Reason, Request};
use sk_engine::kinds::{NAMESPACE, NODE};
use sk_engine::{Engine, Event, PassedThrough, PodsPassed};
use sk_record::{Engine as EngineName, RunMeta, Staged, Warning, WarningKind, Writer};
use sk_store::trace::{Record, Trace, TraceError};

use crate::assumptions::assumptions;
use crate::control_plane_events::ControlPlaneEvents;
use crate::fingerprint::Fingerprint;
use crate::initial_state::InitialState;
use crate::nodes::{BadNode, Inventory, NodeChange};
use crate::plan::{Action, Content, Operation, Overlay, Plan, Start, Window};
use crate::progress::Progress;
use crate::record::{Recorder, Seen, about};
use crate::refusals::rules_of;
use crate::setup::Setup;
use crate::timeline::Disruptions;

/// The Kubernetes whose rules the engine follows.
pub const KUBERNETES: &str = "1.36";
/// The recorder reads the log at least this often: half of what the log keeps, so that nothing is ever missed.
const CHANGES_PER_STEP: u64 = (sk_engine::api::store::LOG_CAPACITY / 2) as u64;
/// Progress is reported at least this often in simulated time, so that a quiet night can still be interrupted.
pub const LONGEST_STEP: SimDuration = SimDuration::from_mins(30);
/// How long an operation waits for a namespace that is going, and how often it looks. Emptying one takes seconds; a
/// finalizer of another controller could hold it for ever.
const NAMESPACE_PATIENCE: SimDuration = SimDuration::from_mins(2);
const NAMESPACE_LOOK: SimDuration = SimDuration::from_millis(100);
/// How many different failed deletions are listed; the rest is counted as one.
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
    /// What the caller assumed because neither trace nor scenario says it.
    pub assumptions: Vec<Warning>,
    /// Manifests that are laid over the trace.
    pub overlay: &'a Overlay,
    /// The nodes of the file that the scenario names, if it names one.
    pub nodes: &'a [Value],
    /// Progress is reported at least this often in simulated time; [`LONGEST_STEP`] unless a user watches.
    pub longest_step: SimDuration,
}

impl<'a> RunRequest<'a> {
    /// A replay of the trace as it is, of which nobody watches the progress.
    pub fn new(trace: &'a Trace, window: Window, setup: &'a Setup, scenario: &'a str, name: &'a str) -> Self {
        Self {
            trace,
            window,
            setup,
            scenario,
            name,
            version: env!("CARGO_PKG_VERSION"),
            assumptions: Vec::new(),
            overlay: Overlay::EMPTY,
            nodes: &[],
            longest_step: LONGEST_STEP,
        }
    }
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
    /// The scenario wants recorded nodes.
    #[error("the trace has no recorded nodes; write `cluster: {{nodes: groups}}`, or record the trace with sk-tracer")]
    NoRecordedNodes,
    /// The scenario wants recorded places.
    #[error("the trace does not record the nodes of its pods; write `begin: {{placement: schedule}}`")]
    NoRecordedPlaces,
    /// A file of nodes cannot be used.
    #[error(transparent)]
    BadNode(#[from] BadNode),
    /// A node cannot be made.
    #[error("cannot create node {node}: {problem}")]
    Node {
        /// Which.
        node: String,
        /// The API server's error.
        problem: String,
    },
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] sk_record::Error),
    /// The recorder lost sight of the engine: a bug, and not to be hidden.
    #[error("the recorder fell behind the engine, so the record would be incomplete: {0}; please report this")]
    Behind(#[from] Expired),
    /// A component of the engine never settles: a bug, which must not be hidden.
    #[error("{} does more within one second than a cluster of this size has reason to ({} events at {}); please report this", .0.component, .0.events, .0.at)]
    Spins(sk_engine::Spinning),
}

impl RunRequest<'_> {
    /// The id of the run, `nginx-3fa91c`: its name and the first digits of a hash of its inputs, so the same inputs have
    /// the same id.
    pub fn run_id(&self) -> Result<String, TraceError> {
        let digest = self.trace.digest()?;
        let Window { start, end, includes_end } = self.window;
        let (seed, start, end) = (self.setup.settings.seed.to_le_bytes(), start.as_micros(), end.as_micros());
        let (start, end) = (start.to_le_bytes(), end.to_le_bytes());
        let includes_end = [u8::from(includes_end)];
        let mut parts: Vec<&[u8]> = vec![
            self.version.as_bytes(),
            digest.as_bytes(),
            self.scenario.as_bytes(),
            &seed,
            &start,
            &end,
            &includes_end,
        ];
        let overlay = self.overlay.digest().to_string();
        if !self.overlay.is_empty() {
            parts.push(overlay.as_bytes());
        }
        let nodes: Vec<String> = self.nodes.iter().map(Value::to_string).collect();
        parts.extend(nodes.iter().map(String::as_bytes));
        Ok(format!("{}-{}", self.name, Fingerprint::of(&parts).short()))
    }
}

/// Is shown the cluster now and then; when it breaks, the run ends early.
pub type ProgressCallback<'a> = dyn FnMut(Progress<'_>) -> ControlFlow<()> + 'a;

/// Runs the simulation and leaves its record beside `dir`, to be published there. When `progress` breaks, the record is
/// marked partial.
pub fn run(request: &RunRequest<'_>, dir: &Path, progress: &mut ProgressCallback<'_>) -> Result<Staged, RunError> {
    let mut running = Running::begin(request, dir)?;
    while running.step(progress)? {}
    running.finish()
}

/// The trace's records, as a plan takes them.
type Records<'a> = Box<dyn Iterator<Item = Result<Record, TraceError>> + Send + 'a>;

/// A simulation under way: what is still to be done, the cluster, and the record so far.
pub struct Running<'a> {
    request: &'a RunRequest<'a>,
    run_id: String,
    plan: Plan<'a, Records<'a>>,
    replay: Replay,
    /// Nothing is left to do; partial if the user ended it early.
    ended: Option<ControlFlow<()>>,
    /// Warnings about its start.
    warnings: Vec<Warning>,
}

impl<'a> Running<'a> {
    /// Puts up the cluster; its record will be published as the folder `dir`.
    pub fn begin(request: &'a RunRequest<'a>, dir: &Path) -> Result<Self, RunError> {
        let run_id = request.run_id()?;
        let mut writer = Writer::create(dir, &run_id)?;
        writer.add_file("scenario.yaml", request.scenario.as_bytes())?;
        let start = Start::of(request.trace, request.window.start, request.setup.placement.is_some())?;
        let schedulers = request.setup.settings.scheduler.profiles.iter().map(|profile| profile.scheduler_name.clone());
        let mut plan = Plan::new(records(request)?, request.trace.config(), request.window)
            .for_schedulers(schedulers)
            .judged_by(rules_of(request.trace))
            .keep_volumes()
            .for_engine()
            .starting(start);
        let mut initial = InitialState::of(request, &start, plan.gather()?)?;
        plan.begin_at(initial.at);
        let replay = Replay::new(request, writer, &mut initial)?;
        Ok(Self { request, run_id, plan, replay, ended: None, warnings: initial.warnings })
    }

    /// Lets the cluster live until the next operation is due and performs it; after the last one, until the end. `false`:
    /// nothing is left to do.
    pub fn step(&mut self, progress: &mut ProgressCallback<'_>) -> Result<bool, RunError> {
        if self.ended.is_some() {
            return Ok(false);
        }
        let Some(operation) = self.plan.next() else {
            self.ended = Some(self.replay.advance(self.request.window.end, progress)?);
            return Ok(false);
        };
        let operation = operation?;
        check_pods(&operation)?;
        if self.replay.advance(operation.at, progress)?.is_break() {
            self.ended = Some(ControlFlow::Break(()));
            return Ok(false);
        }
        if let Some((object, error)) = self.replay.perform(operation)? {
            self.plan.refused(&object, &error.to_string());
        }
        Ok(true)
    }

    /// A second simulation that goes on from here by itself under the id `run_id`: the cluster, its record so far, which
    /// will be published as the folder `dir`, and what is still to be done.
    pub fn fork(&mut self, dir: &Path, run_id: &str) -> Result<Self, RunError> {
        Ok(Self {
            request: self.request,
            run_id: run_id.to_owned(),
            plan: self.plan.fork(records(self.request)?),
            replay: self.replay.fork(dir, run_id)?,
            ended: self.ended,
            warnings: self.warnings.clone(),
        })
    }

    /// Asks the cluster for something that the trace does not, now.
    pub fn handle(&mut self, request: Request) -> Result<Answer, RunError> {
        let answer = self.replay.engine.handle(request);
        self.replay.catch_up()?;
        Ok(answer)
    }

    /// The simulated time.
    pub fn now(&self) -> SimTime {
        self.replay.engine.now()
    }

    /// Ends the record, which says that it is partial if anything was left to do.
    pub fn finish(self) -> Result<Staged, RunError> {
        let Self { request, run_id, plan, replay, ended, warnings: begun } = self;
        let is_partial = ended.is_none_or(|ended| ended.is_break());
        let mut warnings = request.assumptions.clone();
        warnings.extend(request.overlay.warning());
        warnings.extend(begun);
        warnings.extend(gaps(request.trace)?);
        let findings = plan.unmodelled().findings().filter(|(finding, _)| !finding.is_of_pods());
        warnings.extend(findings.map(|(finding, count)| Warning {
            code: finding.code.to_owned(),
            kind: WarningKind::Unmodelled,
            message: finding.message.to_owned(),
            count,
        }));
        let gaps = plan.into_gaps();
        let lives = request.trace.lives()?.collect::<Result<Vec<_>, _>>()?;
        let mut meta = meta(request, run_id, replay.engine.now(), is_partial)?;
        meta.missing = gaps.into_missing(&lives, request.window);
        replay.finish(meta, warnings)
    }
}

/// The records of a run from the beginning, with what is laid over them.
fn records<'a>(request: &'a RunRequest<'a>) -> Result<Records<'a>, TraceError> {
    Ok(Box::new(request.overlay.over(request.trace.records()?, request.window.start)))
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
    /// How long pods of Jobs run if it is unknown.
    job_duration: SimDuration,
    longest_step: SimDuration,
    /// What happens to nodes that no group makes.
    nodes: Inventory,
    /// What else happens.
    disruptions: Disruptions,
    /// Reused: Events and decisions since the recorder last read them.
    said: Vec<Event>,
}

impl Replay {
    fn new(request: &RunRequest<'_>, writer: Writer, initial: &mut InitialState) -> Result<Self, RunError> {
        let mut engine = initial.engine(request)?;
        let lives = request.trace.lives()?.collect::<Result<Vec<_>, _>>()?;
        engine.set_pod_hook(Box::new(initial.mutator(request, lives)));
        let prices = request.setup.groups.iter().filter_map(|group| Some((group.name.clone(), group.price_per_hour?)));
        let mut recorder = Recorder::new(writer, prices.collect());
        let mut cursor = 0;
        if !initial.nodes.is_empty() || engine.watch(cursor).is_err() {
            // Nodes of groups that recorded ones have replaced never were; and of a cluster that begins with more nodes than
            // the log holds changes, the first are no longer in it.
            for node in engine.list(&NODE) {
                recorder.see(&Seen { at: initial.at, change: Change::Added, object: node.clone() })?;
            }
            cursor = engine.resource_version();
        }
        let longest_step = request.longest_step;
        let nodes = std::mem::take(&mut initial.nodes);
        let job_duration = request.setup.settings.timing.job_duration;
        let disruptions = Disruptions::new(&request.setup.timeline, request.setup);
        Ok(Self {
            engine,
            recorder,
            cursor,
            refusals: BTreeMap::new(),
            late: 0,
            job_duration,
            longest_step,
            nodes,
            disruptions,
            said: Vec::new(),
        })
    }

    /// An independent copy of the replay.
    fn fork(&mut self, dir: &Path, run_id: &str) -> Result<Self, RunError> {
        Ok(Self {
            engine: self.engine.clone(),
            recorder: self.recorder.fork(dir, run_id)?,
            cursor: self.cursor,
            refusals: self.refusals.clone(),
            late: self.late,
            job_duration: self.job_duration,
            longest_step: self.longest_step,
            nodes: self.nodes.clone(),
            disruptions: self.disruptions.clone(),
            said: Vec::new(),
        })
    }

    /// Lets the cluster live until `until`, its nodes come and go, and happen what the timeline says.
    fn advance(&mut self, until: SimTime, progress: &mut ProgressCallback<'_>) -> Result<ControlFlow<()>, RunError> {
        let next = |replay: &Self| replay.nodes.next_at().into_iter().chain(replay.disruptions.next_at()).min();
        while let Some(at) = next(self).filter(|at| *at <= until) {
            if self.live(at, progress)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            while let Some((_, change)) = self.nodes.next_by(at) {
                self.change_node(change)?;
            }
            if self.disruptions.next_at().is_some_and(|due| due <= at) {
                self.disruptions.happen(&mut self.engine);
                self.recorder.set_prices(self.disruptions.prices());
                self.catch_up()?;
            }
        }
        self.live(until, progress)
    }

    /// A node that cannot be changed stays as it is: it went with the group that it was taken for.
    fn change_node(&mut self, change: NodeChange) -> Result<(), RunError> {
        match change {
            NodeChange::Gone(name) => {
                self.disruptions.forget(&name);
                let target = ObjectRef::new(NODE.clone(), ObjectKey::cluster(name));
                let options = DeleteOptions { grace_secs: Some(0), ..DeleteOptions::default() };
                if let Err(error) = self.engine.handle(Request::Delete { target: target.clone(), options })
                    && !is_gone_already(&target, &error)
                {
                    self.not_deleted(&target, &error);
                }
            }
            NodeChange::Put(node) => self.put_node(*node)?,
            NodeChange::Drain(node) => {
                let name = node.key.name.clone();
                self.put_node(*node)?;
                self.disruptions.drain(name, &mut self.engine);
            }
        }
        self.catch_up()
    }

    fn put_node(&mut self, node: Object) -> Result<(), RunError> {
        if self.disruptions.holds(&self.engine, &node.key.name) {
            return Ok(());
        }
        let put = if self.engine.get(&NODE, &node.key).is_some() {
            let updated = self.engine.handle(Request::update(node.clone()));
            updated.and_then(|_| self.engine.handle(Request::update_status(node)))
        } else {
            self.engine.handle(Request::create(node))
        };
        put.map(drop).map_err(|error| node_error(&error))
    }

    /// Lets the cluster live until `until`.
    fn live(&mut self, until: SimTime, progress: &mut ProgressCallback<'_>) -> Result<ControlFlow<()>, RunError> {
        loop {
            let step = until.min(self.engine.now() + self.longest_step);
            let reached = self.engine.advance(step, CHANGES_PER_STEP);
            if let Some(spinning) = self.engine.spinning() {
                return Err(RunError::Spins(spinning.clone()));
            }
            self.catch_up()?;
            if progress(Progress(&self.engine)).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if reached && step == until {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    fn catch_up(&mut self) -> Result<(), RunError> {
        self.engine.take_explained().into_iter().for_each(|explained| self.recorder.explain(explained));
        // Decisions and events between the changes before and after them, so that pods and nodes are known by their names.
        let mut told = ControlPlaneEvents::of(&mut self.engine, &mut self.said);
        for event in self.engine.watch(self.cursor)? {
            told.before(Some(event.at), &mut self.recorder)?;
            self.recorder.see_event(event)?;
            self.cursor = event.object.resource_version;
        }
        told.before(None, &mut self.recorder)?;
        self.engine.forget(self.cursor);
        Ok(())
    }

    /// Performs an operation; the object and the server's words if it was refused. The run goes on all the same. What has
    /// changed is recorded with what the cluster does next.
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
                if let Err(error) = self.engine.handle(Request::Delete { target: target.clone(), options })
                    && !is_gone_already(&target, &error)
                {
                    self.not_deleted(&target, &error);
                }
            }
        }
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

    fn finish(mut self, mut meta: RunMeta, mut warnings: Vec<Warning>) -> Result<Staged, RunError> {
        self.catch_up()?;
        let assumed = assumptions(self.engine.notices(), self.job_duration);
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
        let left_out = self.engine.dropped_decisions() + self.recorder.undecided();
        if left_out > 0 {
            warnings.push(Warning {
                code: "autoscaler-rows".to_owned(),
                kind: WarningKind::Gap,
                message: "decisions of the autoscaler beyond the first million are not in the record".to_owned(),
                count: left_out,
            });
        }
        let untold = self.engine.dropped_events() + self.recorder.untold();
        if untold > 0 {
            warnings.push(Warning {
                code: "event-rows".to_owned(),
                kind: WarningKind::Gap,
                message: "events beyond the first two million are not in the record".to_owned(),
                count: untold,
            });
        }
        warnings.extend(assumed);
        warnings.extend(self.engine.passed_through().iter().map(|(need, pods)| passed_through(*need, pods)));
        let (timeline, without_effect) = self.disruptions.into_record();
        warnings.extend(without_effect);
        meta.timeline = timeline;
        meta.warnings = warnings;
        Ok(self.recorder.finish()?.finish(&meta)?)
    }
}

/// What placement left out of account, and for which pods.
fn passed_through(need: PassedThrough, pods: &PodsPassed) -> Warning {
    let named: Vec<String> = pods.named.iter().map(ToString::to_string).collect();
    let others = match pods.count.saturating_sub(named.len() as u64) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let message = format!("{}: {}{others}", need.message(), named.join(", "));
    Warning { code: need.code().to_owned(), kind: WarningKind::Unmodelled, message, count: pods.count }
}

fn node_error(error: &ApiError) -> RunError {
    RunError::Node { node: "of the recording".to_owned(), problem: error.to_string() }
}

/// Was it removed before by a controller, as its TTL or its CronJob's history asks for? Then nothing is left to do.
fn is_gone_already(target: &ObjectRef, error: &ApiError) -> bool {
    target.gvk.kind == "Job" && error.reason == Reason::NotFound
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
        start: (request.window.start + setup.warmup).min(end),
        end,
        scenario_digest: Fingerprint::of(&[request.scenario.as_bytes()]).to_string(),
        currency: setup.currency.clone(),
        groups: setup.groups(),
        autoscaler: Some(setup.autoscaler()),
        warnings: Vec::new(),
        missing: Vec::new(),
        timeline: Vec::new(),
        partial,
    })
}
