//! The next step for a Simulation, given the observed state of the cluster. Pure: no clock, no client.
//!
//! ```text
//! claim ─► turn ─► preStart hooks ─► root, namespace, account, certificate, Service, webhook, metrics, Job
//!                                                          │
//!   rest ◄─ release the turn ◄─ finish ◄─ tear down ◄─ postStop hooks ◄─ conclude ◄─ follow the driver
//! ```
//!
//! [`decide`] returns one step. The cluster is observed again before the next one, so a controller that was killed
//! continues where it was: what is done is visible in the cluster, and what is not visible there (which hooks have run,
//! how the run ended) is in the Simulation's status before it is acted on.

use std::time::Duration;

use jiff::Timestamp;
use sk_api::simulation::{Hook, State, names};
use sk_core::SimDuration;

use crate::driver::Driver;
use crate::job;
use crate::observed::{LeaseHolder, Observed, Offer, Part, SecretRefusal, Seen, Turn, Verdict};
use crate::settings::Settings;

/// Requeue interval without a watch event: watches break, and time limits expire without one.
const REQUEUE: Duration = Duration::from_secs(10);
/// Requeue interval while an object is being deleted. Its end does not always cause a watch event.
const REQUEUE_DELETION: Duration = Duration::from_secs(1);

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Do this, then look again.
    Do(Action),
    /// Wait until the cluster changes, or for this long.
    Wait(Duration),
    /// Nothing until the cluster changes.
    Rest,
}

/// One thing that can be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put the finalizer on, so that nothing is lost when it is deleted.
    Claim,
    /// Take the Lease.
    TakeTurn,
    /// Write down that it has begun.
    Begin,
    /// Run a hook, and write down that it was begun and how it ended.
    RunHook(Stage, usize),
    /// Write down that a hook has ended, and perhaps that the simulation fails by that.
    EndHook(Stage, usize, Option<Verdict>),
    /// Make a part of the run.
    Make(Part),
    /// Renew a part of the run.
    Renew(Part),
    /// Write the status.
    Report(Report),
    /// Write down how the run ended.
    Conclude(Verdict),
    /// Delete the root, and with it everything of the run.
    TearDown,
    /// Delete the Secret that cert-manager has made; it belongs to no root.
    DropSecret,
    /// Write down the end.
    Finish(Verdict),
    /// Give the Lease back.
    ReleaseTurn,
    /// Delete the Simulation, because its time is over.
    Expire,
    /// Delete the record and the log that the controller keeps.
    Forget,
    /// Take the finalizer off.
    LetGo,
}

/// When a hook is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before anything is made.
    PreStart,
    /// When all is over.
    PostStop,
}

/// The phase of a Simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its state.
    pub state: State,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// Repetitions that are done, once there is a driver.
    pub completed: Option<u32>,
}

/// The next step.
pub fn decide(observed: &Observed, settings: &Settings) -> Step {
    if observed.simulation.metadata.deletion_timestamp.is_some() {
        return part_with(observed, settings);
    }
    if observed.status().state.is_some_and(State::is_final) {
        return after_the_end(observed);
    }
    match observed.verdict() {
        Some(verdict) => wind_down(observed, settings, &verdict),
        None => run(observed, settings),
    }
}

/// Towards a running driver, and then along with it.
fn run(observed: &Observed, settings: &Settings) -> Step {
    if !observed.is_claimed() {
        return Step::Do(Action::Claim);
    }
    if let Err(verdict) = check(observed, settings) {
        return Step::Do(Action::Conclude(verdict));
    }
    let began = observed.status().start_time.is_some();
    match (&observed.turn, &observed.other_driver) {
        (Turn::Blocked { by }, _) => return blocked(observed, by),
        // Looked for once more after the turn is taken: a driver takes its Lease first too, and then looks for ours, so
        // that of the two at least one sees the other. What has begun goes on; the driver gives way.
        (_, Some(other_driver)) if !began => return blocked_by_driver(observed, other_driver),
        (Turn::Free, _) => return Step::Do(Action::TakeTurn),
        (Turn::Mine, _) if !began => return Step::Do(Action::Begin),
        (Turn::Mine, _) => {}
    }
    next_hook(observed, settings, Stage::PreStart)
        .or_else(|| next_part(observed, settings))
        .unwrap_or_else(|| follow(observed))
}

/// What the schema cannot see.
fn check(observed: &Observed, settings: &Settings) -> Result<(), Verdict> {
    let spec = &observed.simulation.spec;
    if !spec.hooks.is_empty() && !settings.allow_hooks {
        let words = "the simulation has hooks, and this installation does not run any: remove spec.hooks, or have the \
                     controller started with --allow-hooks";
        return Err(Verdict::failure("HooksNotAllowed", words));
    }
    if spec.driver.namespace != settings.namespace && !settings.any_namespace {
        let words = format!(
            "the driver is to run in namespace {}, and this installation runs drivers in {} only: remove \
             spec.driver.namespace, or have the controller installed for any namespace",
            spec.driver.namespace, settings.namespace
        );
        return Err(Verdict::failure("NamespaceNotAllowed", words));
    }
    let duration = spec.duration.as_deref().map(str::parse::<SimDuration>);
    match duration {
        Some(Err(error)) => return Err(Verdict::failure("BadSpec", format!("spec.duration: {error}"))),
        Some(Ok(SimDuration::ZERO)) => {
            return Err(Verdict::failure("BadSpec", "spec.duration is 0: remove it to replay all of the trace"));
        }
        _ => {}
    }
    check_driver(observed, settings).and_then(|()| check_cert_manager(observed))
}

/// What runs as the driver has its account's rights, and what it is handed it can send anywhere.
fn check_driver(observed: &Observed, settings: &Settings) -> Result<(), Verdict> {
    let driver = &observed.simulation.spec.driver;
    if let Some(image) = driver.image.as_ref().filter(|image| !settings.allows_image(image)) {
        let words = format!(
            "spec.driver.image is `{image}`, and this installation runs `{}` only: remove it, or have the controller \
             started with --allow-driver-image={image}",
            settings.driver_image
        );
        return Err(Verdict::failure("ImageNotAllowed", words));
    }
    if job::local_path(&driver.trace_path).is_some() && !settings.local_traces {
        let words = format!(
            "spec.driver.tracePath is `{}`, a file of a node, and this installation mounts none: send it with `skctl \
             run`, name its URL, or install with `skctl install sim --local-traces`",
            driver.trace_path
        );
        return Err(Verdict::failure("LocalTraceNotAllowed", words));
    }
    match observed.refused_secrets.first_key_value() {
        // A driver that is there has them already.
        Some((name, refusal)) if observed.seen(Part::Job) == Seen::Absent => {
            Err(secret_refused(&driver.namespace, name, *refusal))
        }
        _ => Ok(()),
    }
}

fn secret_refused(namespace: &str, name: &str, refusal: SecretRefusal) -> Verdict {
    let label = format!("kubectl -n {namespace} label secret {name} {}=true", names::DRIVER_SECRET_LABEL);
    match refusal {
        SecretRefusal::Missing => Verdict::failure(
            "SecretMissing",
            format!("spec.driver.secrets names Secret {namespace}/{name}, which is not there: create it, then {label}"),
        ),
        SecretRefusal::Unlabelled => Verdict::failure(
            "SecretNotAllowed",
            format!("spec.driver.secrets names Secret {namespace}/{name}, which drivers may not use: {label}"),
        ),
    }
}

fn check_cert_manager(observed: &Observed) -> Result<(), Verdict> {
    let asked = observed.simulation.spec.driver.cert_manager_issuer.is_some();
    match observed.offers.cert_manager {
        Offer::Absent if asked => {
            let words = "spec.driver.certManagerIssuer asks for cert-manager, which is not installed here: remove it, \
                         and the controller makes the certificate itself";
            Err(Verdict::failure("CertManagerMissing", words))
        }
        Offer::Forbidden if asked => {
            let words = "spec.driver.certManagerIssuer asks for cert-manager, which the controller may not use: remove \
                         it, and the controller makes the certificate itself, or have the controller installed with \
                         --cert-manager";
            Err(Verdict::failure("CertManagerForbidden", words))
        }
        _ => Ok(()),
    }
}

fn blocked(observed: &Observed, by: &str) -> Step {
    let message = format!("simulation {by} is before this one; one runs at a time");
    let report = Report { state: State::Blocked, reason: "Blocked".to_owned(), message, completed: None };
    report_or_wait(observed, report, REQUEUE)
}

fn blocked_by_driver(observed: &Observed, other_driver: &LeaseHolder) -> Step {
    let message = format!(
        "driver {} runs on this cluster without a controller (Lease {}/{}); this one begins when that has ended",
        other_driver.holder,
        other_driver.namespace,
        names::LEASE
    );
    let report = Report { state: State::Blocked, reason: "Blocked".to_owned(), message, completed: None };
    // Nobody announces the end of such a driver here.
    report_or_wait(observed, report, REQUEUE_DELETION)
}

/// The hook that is due, if one is. One that was begun and whose end nobody saw is not run a second time. Where hooks are
/// not allowed none is ever due, also not those of a simulation that has failed for having some.
fn next_hook(observed: &Observed, settings: &Settings, stage: Stage) -> Option<Step> {
    if !settings.allow_hooks {
        return None;
    }
    let (progress, hooks) = (observed.hooks(), &observed.simulation.spec.hooks);
    let (hooks, started, ended) = match stage {
        Stage::PreStart => (&hooks.pre_start_hooks, progress.pre_start_started, progress.pre_start_ended),
        Stage::PostStop => (&hooks.post_stop_hooks, progress.post_stop_started, progress.post_stop_ended),
    };
    let index = usize::try_from(ended).unwrap_or(usize::MAX);
    let hook = hooks.get(index)?;
    if started <= ended {
        return Some(Step::Do(Action::RunHook(stage, index)));
    }
    let words =
        format!("the controller was restarted while it ran, and whether `{}` did its work is not known", hook.cmd);
    Some(Step::Do(Action::EndHook(stage, index, hook_failure(hook, &words))))
}

/// The verdict over a simulation whose hook has failed; none if that does not matter.
pub fn hook_failure(hook: &Hook, words: &str) -> Option<Verdict> {
    (!hook.ignore_failure).then(|| Verdict::failure("HookFailed", format!("hook `{}`: {words}", hook.cmd)))
}

/// The first part that is not as it should be.
fn next_part(observed: &Observed, settings: &Settings) -> Option<Step> {
    wanted(observed, settings).into_iter().find_map(|part| match (part, observed.seen(part)) {
        (_, Seen::Ours) | (Part::Namespace | Part::Account, Seen::Foreign) => None,
        (Part::Root, Seen::Absent | Seen::Going) if observed.status().completed_runs.is_some() => {
            let words = format!(
                "SimulationRoot {} was deleted, and with it everything of the run",
                names::metaroot(observed.name())
            );
            Some(Step::Do(Action::Conclude(Verdict::failure("RootGone", words))))
        }
        (Part::Job, Seen::Absent) if observed.status().completed_runs.is_some() => {
            let words = "the driver's Job was deleted";
            Some(Step::Do(Action::Conclude(Verdict::failure("DriverGone", words))))
        }
        (part, Seen::Absent) => Some(Step::Do(Action::Make(part))),
        (part, Seen::Stale) => Some(Step::Do(Action::Renew(part))),
        (part, Seen::Foreign) => {
            let words = format!(
                "what is called like the simulation's {part:?} was not made by it, and is left alone: delete it, or \
                 give the simulation another name"
            );
            Some(Step::Do(Action::Conclude(Verdict::failure("NameTaken", words))))
        }
        (_, Seen::Going) => Some(Step::Wait(REQUEUE_DELETION)),
        // A driver that is there has its certificate; what becomes of the order no longer matters.
        (_, Seen::Pending { .. }) if observed.seen(Part::Job) != Seen::Absent => None,
        (_, Seen::Pending { since }) => Some(await_certificate(observed, settings, since)),
    })
}

/// Waits for cert-manager, as long as for a driver: the holder of the Lease blocks all others.
fn await_certificate(observed: &Observed, settings: &Settings, since: Timestamp) -> Step {
    let waited: Duration = observed.now.duration_since(since).try_into().unwrap_or_default();
    let certificate = names::driver_certificate(observed.name());
    let issuer = observed.simulation.spec.driver.cert_manager_issuer.as_deref().unwrap_or_default();
    if waited >= settings.start_limit {
        let words = format!(
            "cert-manager did not deliver Certificate {certificate} within {} s: look at ClusterIssuer {issuer}, or \
             remove spec.driver.certManagerIssuer, and the controller makes the certificate itself",
            settings.start_limit.as_secs()
        );
        return Step::Do(Action::Conclude(Verdict::failure("CertificateNotDelivered", words)));
    }
    let message = format!("cert-manager (ClusterIssuer {issuer}) has still to deliver Certificate {certificate}");
    let reason = "CertificatePending".to_owned();
    let report = Report { state: State::Initializing, reason, message, completed: None };
    report_or_wait(observed, report, REQUEUE_DELETION)
}

/// The parts that this run needs, in order.
pub fn wanted(observed: &Observed, settings: &Settings) -> Vec<Part> {
    let spec = &observed.simulation.spec;
    let elsewhere = spec.driver.namespace != settings.namespace;
    // An account that was there before has the rights that it has.
    let own_account = elsewhere && observed.seen(Part::Account) != Seen::Foreign;
    let metrics = spec.metrics.is_some() && observed.offers.prometheus == Offer::Open;
    Part::ALL
        .into_iter()
        .filter(|part| match part {
            Part::Account => elsewhere,
            Part::Binding => own_account,
            Part::Metrics => metrics,
            _ => true,
        })
        .collect()
}

/// Reports the state of the driver.
fn follow(observed: &Observed) -> Step {
    let report = |state, reason: &str, message: String, completed| {
        let report = Report { state, reason: reason.to_owned(), message, completed: Some(completed) };
        report_or_wait(observed, report, REQUEUE)
    };
    let paused = observed.simulation.spec.paused_time.is_some();
    match &observed.driver {
        Driver::Absent => Step::Wait(REQUEUE_DELETION),
        Driver::Starting { completed, waits_for } => {
            let words = waits_for.clone().unwrap_or_else(|| "the driver is being started".to_owned());
            let begun = observed.status().state.filter(|state| *completed > 0 && *state != State::Blocked);
            report(begun.unwrap_or(State::Initializing), "DriverStarting", words, *completed)
        }
        Driver::Running { completed } if paused => {
            report(State::Paused, "Paused", "spec.pausedTime is set; remove it to continue".to_owned(), *completed)
        }
        Driver::Running { completed } => {
            let words = format!("{completed} of {} repetitions are done", observed.simulation.spec.repetitions);
            report(State::Running, "Replaying", words, *completed)
        }
        Driver::Ended { completed, .. } if observed.status().completed_runs != Some(*completed) => {
            let state = observed.status().state.unwrap_or(State::Initializing);
            report(state, "DriverEnded", "the driver has ended".to_owned(), *completed)
        }
        Driver::Ended { verdict, .. } => Step::Do(Action::Conclude(verdict.clone())),
    }
}

/// Deletes everything of the run; its status stays.
fn wind_down(observed: &Observed, settings: &Settings, verdict: &Verdict) -> Step {
    let hook = next_hook(observed, settings, Stage::PostStop).filter(|_| observed.status().start_time.is_some());
    hook.or_else(|| take_down(observed)).unwrap_or_else(|| Step::Do(Action::Finish(verdict.clone())))
}

/// What is still to be taken down.
fn take_down(observed: &Observed) -> Option<Step> {
    match observed.seen(Part::Root) {
        Seen::Absent | Seen::Foreign => {}
        Seen::Going => return Some(wait_for_the_end(observed, "everything that the run has made")),
        Seen::Ours | Seen::Stale | Seen::Pending { .. } => return Some(Step::Do(Action::TearDown)),
    }
    // Whoever deletes the root without waiting leaves its parts to the garbage collector.
    let by_issuer = observed.simulation.spec.driver.cert_manager_issuer.is_some();
    let orphan = Part::ALL.into_iter().find(|part| {
        let ours = matches!(observed.seen(*part), Seen::Ours | Seen::Going | Seen::Stale);
        observed.seen(Part::Root) == Seen::Absent && ours && !(*part == Part::Certificate && by_issuer)
    });
    if let Some(orphan) = orphan {
        return Some(wait_for_the_end(observed, &format!("the simulation's {orphan:?}")));
    }
    if let Some(first) = observed.left.first() {
        return Some(wait_for_the_end(observed, &first.to_string()));
    }
    (observed.seen(Part::Certificate) != Seen::Absent && by_issuer).then_some(Step::Do(Action::DropSecret))
}

fn wait_for_the_end(observed: &Observed, of: &str) -> Step {
    let status = observed.status();
    let report = Report {
        state: status.state.unwrap_or(State::Initializing),
        reason: "CleaningUp".to_owned(),
        message: format!("waiting until {of} is gone"),
        completed: status.completed_runs,
    };
    report_or_wait(observed, report, REQUEUE_DELETION)
}

fn after_the_end(observed: &Observed) -> Step {
    if observed.turn == Turn::Mine {
        return Step::Do(Action::ReleaseTurn);
    }
    let status = observed.status();
    let (Some(seconds), Some(end)) = (observed.simulation.spec.record.ttl_seconds_after_finished, status.end_time)
    else {
        return Step::Rest;
    };
    let passed = observed.now.duration_since(end.0);
    let left = Duration::from_secs(seconds.into()).saturating_sub(passed.try_into().unwrap_or_default());
    if left.is_zero() { Step::Do(Action::Expire) } else { Step::Wait(left) }
}

/// The Simulation is being deleted: nothing of it stays.
fn part_with(observed: &Observed, settings: &Settings) -> Step {
    if !observed.is_claimed() {
        return Step::Rest;
    }
    // It has begun, so that it also gets its last hooks; they cannot fail it any more.
    let began = observed.status().start_time.is_some() && observed.status().end_time.is_none();
    let hook = next_hook(observed, settings, Stage::PostStop).filter(|_| began);
    let last = match observed.turn {
        Turn::Mine => Action::ReleaseTurn,
        _ if observed.kept => Action::Forget,
        _ => Action::LetGo,
    };
    hook.or_else(|| take_down(observed)).unwrap_or(Step::Do(last))
}

/// Writes a report down if it says something new.
fn report_or_wait(observed: &Observed, report: Report, again: Duration) -> Step {
    let status = observed.status();
    let known = status.state == Some(report.state)
        && status.reason.as_deref() == Some(&report.reason)
        && status.message.as_deref() == Some(&report.message)
        && (report.completed.is_none() || status.completed_runs == report.completed)
        && status.observed_generation == observed.simulation.metadata.generation;
    if known { Step::Wait(again) } else { Step::Do(Action::Report(report)) }
}

#[cfg(test)]
mod tests;
