//! The counters of a run on a cluster: operations applied, refused, left alone or left out, and lateness.
//!
//! Everything that talks to the cluster shares the counters. Messages are bounded: a fixed number of different ones is
//! kept, the rest is counted as one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Serialize;
use sk_core::ObjectRef;
use sk_record::{Warning, WarningKind};

use super::lateness::{Figures, Lateness};
use super::virtualise::LeftOut;

/// How many different messages of one sort are kept; the rest is counted as one. At most 20 × 1 KiB each.
const MAX_MESSAGES: usize = 20;
/// How much of a message is kept: the API server's longest are lists of field errors.
const MAX_MESSAGE_CHARS: usize = 1_000;

/// An operation that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    /// When it was to be done.
    pub(crate) at: Instant,
    /// Is it one of the trace's, and not one that the plan has added?
    pub(crate) is_event: bool,
}

/// Counters of a run, shared. Clones are the same counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    totals: Totals,
    lateness: Lateness,
    refused: BTreeMap<String, u64>,
    left_alone: BTreeMap<String, u64>,
    left_out: BTreeMap<LeftOut, u64>,
    missing_rights: BTreeMap<String, u64>,
    namespaces_lost: BTreeMap<String, u64>,
}

/// The totals of a run, as in `cluster.json` beside the record's tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Operations that were carried out: the trace's events, and the namespaces that were made for them.
    pub operations: u64,
    /// Those of them that the trace has.
    pub events: u64,
    /// Objects that the API server refused.
    pub refused: u64,
    /// Objects that were there before, or stand in a namespace that was.
    pub left_alone: u64,
    /// Objects of kinds that are not replayed on a cluster.
    pub left_out: u64,
    /// Requests that were tried again.
    pub retries: u64,
    /// Pods that were seen.
    pub pods: u64,
    /// Pods that the webhook did not see, and whose delays and lives came later.
    pub pods_without_webhook: u64,
    /// Requests of the run that waited because the API server did not reach the webhook.
    pub webhook_failures: u64,
    /// For how long the API server did not reach the webhook, as precisely as looks every few seconds show it.
    pub webhook_outage_secs: f64,
    /// Volumes that were made for claims.
    pub volumes: u64,
    /// Namespaces of the run that somebody else deleted.
    pub namespaces_lost: u64,
    /// How often the run was paused or resumed.
    pub pauses: u64,
    /// Pods without an owner that were interrupted and made again.
    pub rescheduled: u64,
    /// CronJobs, which the cluster fires by its own clock.
    pub cron_jobs: u64,
    /// Objects of a watch that could not be parsed and are missing in the record.
    pub unreadable: u64,
    /// Operations that were not carried out, because the run was stopped.
    pub abandoned: u64,
    /// How late operations were.
    pub lateness: Figures,
}

impl Counters {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        // Counters are whole at any moment, whatever panicked beside them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the plain counters.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Totals)) {
        change(&mut self.counts().totals);
    }

    /// An operation was answered.
    pub(crate) fn answered(&self, due: Due) {
        let mut counts = self.counts();
        counts.lateness.add(due.at.elapsed());
        counts.totals.operations += 1;
        counts.totals.events += u64::from(due.is_event);
    }

    /// The API server refused an object.
    pub(crate) fn refused(&self, object: &ObjectRef, words: &str) {
        tracing::warn!(kind = %object.gvk.kind, object = %object.key, "refused: {words}");
        let mut counts = self.counts();
        counts.totals.refused += 1;
        note(&mut counts.refused, &format!("refused: {object}: {words}"), "refused: others");
    }

    /// An object was left alone because of what was there before.
    pub(crate) fn left_alone(&self, object: &ObjectRef, why: &str) {
        tracing::warn!(kind = %object.gvk.kind, object = %object.key, "left alone: {why}");
        let mut counts = self.counts();
        counts.totals.left_alone += 1;
        note(&mut counts.left_alone, &format!("{object} was left alone: {why}"), "others were left alone");
    }

    /// An object is of a kind that is not replayed.
    pub(crate) fn left_out(&self, why: LeftOut) {
        let mut counts = self.counts();
        counts.totals.left_out += 1;
        *counts.left_out.entry(why).or_default() += 1;
    }

    /// The API server refused an object for lack of a permission; `hint` says how to grant it.
    pub(crate) fn missing_right(&self, hint: &str) {
        note(&mut self.counts().missing_rights, hint, "the driver lacks the permission to replay other kinds, too");
    }

    /// A namespace of the run was deleted, and not by the run.
    pub(crate) fn lost_namespace(&self, namespace: &str) {
        tracing::warn!(kind = "Namespace", name = namespace, "this namespace of the run was deleted");
        let message = format!("the namespace {namespace} of the run was deleted: its objects are missing");
        let mut counts = self.counts();
        counts.totals.namespaces_lost += 1;
        note(&mut counts.namespaces_lost, &message, "other namespaces of the run were deleted");
    }

    /// How many events of the trace were answered.
    pub(crate) fn events(&self) -> u64 {
        self.counts().totals.events
    }

    /// Everything so far.
    pub(crate) fn totals(&self) -> Totals {
        let counts = self.counts();
        Totals { lateness: counts.lateness.figures(), ..counts.totals.clone() }
    }

    /// What limits how far the figures can be trusted.
    pub(crate) fn warnings(&self, speed: f64) -> Vec<Warning> {
        let totals = self.totals();
        let counts = self.counts();
        let mut warnings = Vec::new();
        let mut warn = |code: &str, kind, message: String, count| {
            if count > 0 {
                warnings.push(Warning { code: code.to_owned(), kind, message, count });
            }
        };
        for (message, count) in &counts.refused {
            warn("refused", WarningKind::Gap, message.clone(), *count);
        }
        for (message, count) in &counts.left_alone {
            warn("left-alone", WarningKind::Gap, message.clone(), *count);
        }
        for (message, count) in &counts.missing_rights {
            warn("missing-right", WarningKind::Gap, message.clone(), *count);
        }
        for (message, count) in &counts.namespaces_lost {
            warn("namespace-lost", WarningKind::Gap, message.clone(), *count);
        }
        for (why, count) in &counts.left_out {
            let message = match why {
                LeftOut::Machinery => "objects that would change the cluster itself are not replayed",
                LeftOut::MadeByControllers => "objects that the cluster's own controllers create are not replayed",
                LeftOut::OpenToOutside => "objects that would accept traffic from outside are not replayed",
            };
            warn("left-out", WarningKind::Note, message.to_owned(), *count);
        }
        let Figures { p50_ms, p99_ms, max_ms, late, .. } = totals.lateness;
        let message = format!(
            "operations were more than a second late: the cluster did not keep up (p50 {p50_ms:.0} ms, \
             p99 {p99_ms:.0} ms, max {max_ms:.0} ms); replay it slower or on a larger control plane"
        );
        warn("lateness", WarningKind::Gap, message, late);
        let message = "pods bypassed the driver's webhook: their delays and lifetimes started late".to_owned();
        warn("webhook", WarningKind::Gap, message, totals.pods_without_webhook);
        let message = "seconds in which the API server did not reach the driver's webhook: pods were refused meanwhile and created late";
        let seconds = totals.webhook_outage_secs.ceil() as u64;
        warn("webhook-outage", WarningKind::Gap, message.to_owned(), seconds);
        let message = "requests of the run waited because the API server did not reach the driver's webhook".to_owned();
        warn("webhook-late", WarningKind::Gap, message, totals.webhook_failures);
        let message = "claims got empty volumes, whatever StorageClass was recorded".to_owned();
        warn("volumes", WarningKind::Assumed, message, totals.volumes);
        let message = "watched objects could not be parsed and are missing in the record".to_owned();
        warn("unreadable", WarningKind::Gap, message, totals.unreadable);
        let message = "CronJobs fire by the cluster's own clock, not at the recorded times".to_owned();
        warn("cronjob-clock", WarningKind::Assumed, message, totals.cron_jobs);
        let message = "bare pods were interrupted and created again".to_owned();
        warn("rescheduled", WarningKind::Note, message, totals.rescheduled);
        let message = format!("replayed at {speed} times the recorded speed: controllers' own timers are not scaled");
        warn("speed", WarningKind::Assumed, message, u64::from(speed != 1.0));
        warnings
    }
}

fn note(messages: &mut BTreeMap<String, u64>, message: &str, others: &str) {
    let message: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
    let fits = messages.contains_key(&message) || messages.len() < MAX_MESSAGES;
    *messages.entry(if fits { message } else { others.to_owned() }).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn object(name: &str) -> ObjectRef {
        ObjectRef::new("v1.Pod".parse().unwrap(), name.parse().unwrap())
    }

    fn due(ago: Duration, is_event: bool) -> Due {
        Due { at: Instant::now().checked_sub(ago).unwrap(), is_event }
    }

    #[test]
    fn a_namespace_that_the_plan_has_added_is_an_operation_and_no_event() {
        let counters = Counters::default();
        [true, false, true].into_iter().for_each(|is_event| counters.answered(due(Duration::ZERO, is_event)));
        assert_eq!((counters.totals().operations, counters.events()), (3, 2));
    }

    #[test]
    fn words_are_bounded_and_counted() {
        let counters = Counters::default();
        (0..50).for_each(|number| counters.refused(&object(&format!("a/p{number}")), &"x".repeat(5_000)));
        let warnings = counters.warnings(1.0);
        assert_eq!(warnings.len(), MAX_MESSAGES + 1);
        assert_eq!(warnings.iter().map(|warning| warning.count).sum::<u64>(), 50);
        assert!(warnings.iter().all(|warning| warning.message.len() <= MAX_MESSAGE_CHARS));
        assert_eq!(counters.totals().refused, 50);
    }

    #[test]
    fn a_run_that_kept_up_has_nothing_to_say_and_one_that_did_not_says_how_late_it_was() {
        let counters = Counters::default();
        counters.answered(due(Duration::from_millis(5), true));
        assert_eq!(counters.warnings(1.0), []);
        counters.answered(due(Duration::from_secs(4), true));
        let warnings = counters.warnings(50.0);
        let codes: Vec<_> = warnings.iter().map(|warning| warning.code.as_str()).collect();
        assert_eq!(codes, ["lateness", "speed"]);
        assert!(warnings[0].message.contains("max 40"), "{}", warnings[0].message);
        assert_eq!(warnings[0].count, 1);
    }
}
