//! Logs problems with the API server once per cause and minute.
//!
//! A missing permission, or an unreachable API server, affects every watcher at every retry. One line for each would be
//! hundreds, and nobody would find the one that matters. So watchers report a problem here under its cause. A moment
//! later one line is logged for all watchers that have reported it; another one follows for each minute that the
//! problem lasts, with the number of watchers and attempts; and one when it is over. `/readyz` says what each kind
//! waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sk_core::SmolStr;

use crate::access::Access;

/// How long a new cause is gathered before it is logged: watchers fail together, within a second.
const GATHER: Duration = Duration::from_secs(1);
/// Between two lines of one cause.
const REPEAT: Duration = Duration::from_secs(60);
/// How often due lines are logged.
const TICK: Duration = Duration::from_millis(500);
/// How many watchers a line names; the rest is counted.
const MAX_NAMED: usize = 8;

/// Why requests fail, as far as somebody can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// No response.
    Unreachable,
    /// The credentials are not accepted.
    Unauthorised,
    /// A right is missing.
    Forbidden,
    /// The server throttles.
    Busy,
    /// The server refuses, with this status.
    Refused(u16),
    /// The response is not Kubernetes' JSON.
    Garbled,
}

impl Cause {
    /// The cause behind an HTTP status.
    pub(crate) fn of_status(code: u16) -> Self {
        match code {
            401 => Self::Unauthorised,
            403 => Self::Forbidden,
            429 => Self::Busy,
            code => Self::Refused(code),
        }
    }

    /// The cause of a failed request.
    pub(crate) fn of(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_status(status.code),
            kube::Error::SerdeError(_) => Self::Garbled,
            _ => Self::Unreachable,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => f.write_str("the API server cannot be reached"),
            Self::Unauthorised => f.write_str("the API server rejects the credentials (401); reading them again"),
            Self::Forbidden => {
                f.write_str("the tracer lacks permissions (403); `skctl manifests tracer` prints those that it needs")
            }
            Self::Busy => f.write_str("the API server throttles requests (429)"),
            Self::Refused(code) => write!(f, "the API server answers {code}"),
            Self::Garbled => f.write_str("cannot parse the API server's response"),
        }
    }
}

/// Failures, by cause.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<BTreeMap<Cause, Failure>>);

#[derive(Debug)]
struct Failure {
    since: Instant,
    said: Option<Instant>,
    /// The watchers that still have the problem.
    affected: BTreeSet<SmolStr>,
    /// The watchers that have reported it since the last log line.
    met: BTreeSet<SmolStr>,
    tries: u64,
    /// The last error.
    example: String,
}

/// One log line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    cause: Cause,
    stage: Stage,
    lasts: Duration,
    names: String,
    tries: u64,
    example: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    Lasting,
    Over,
}

impl Failures {
    /// A watcher's request failed.
    pub(crate) fn note(&self, who: &str, cause: Cause, problem: &dyn fmt::Display) {
        self.note_at(Instant::now(), who, cause, problem);
    }

    fn note_at(&self, now: Instant, who: &str, cause: Cause, problem: &dyn fmt::Display) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A watcher has one problem at a time.
        for (other, failure) in failures.iter_mut() {
            if *other != cause {
                failure.affected.remove(who);
            }
        }
        let failure = failures.entry(cause).or_insert_with(|| Failure {
            since: now,
            said: None,
            affected: BTreeSet::new(),
            met: BTreeSet::new(),
            tries: 0,
            example: String::new(),
        });
        failure.affected.insert(who.into());
        failure.met.insert(who.into());
        failure.tries += 1;
        failure.example = problem.to_string();
    }

    /// A watcher's request succeeded.
    pub(crate) fn recovered(&self, who: &str) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for failure in failures.values_mut() {
            failure.affected.remove(who);
        }
    }

    /// The lines that are due now.
    fn due(&self, now: Instant) -> Vec<Report> {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reports = Vec::new();
        failures.retain(|cause, failure| {
            let stage = match failure.said {
                None if now < failure.since + GATHER => return true,
                None => Stage::New,
                Some(_) if failure.affected.is_empty() => Stage::Over,
                Some(said) if now < said + REPEAT => return true,
                // Every watcher retries within half a minute, and none has failed.
                Some(_) if failure.tries == 0 => Stage::Over,
                Some(_) => Stage::Lasting,
            };
            reports.push(failure.report(*cause, stage, now));
            // A failure that was over before its first line is reported as over next.
            stage != Stage::Over
        });
        reports
    }
}

impl Failure {
    fn report(&mut self, cause: Cause, stage: Stage, now: Instant) -> Report {
        let met = std::mem::take(&mut self.met);
        let mut names = met.iter().take(MAX_NAMED).map(SmolStr::as_str).collect::<Vec<_>>().join(", ");
        if met.len() > MAX_NAMED {
            names += &format!(" and {} more", met.len() - MAX_NAMED);
        }
        self.said = Some(now);
        let (tries, example) = (std::mem::take(&mut self.tries), self.example.clone());
        Report { cause, stage, lasts: now.saturating_duration_since(self.since), names, tries, example }
    }
}

impl Report {
    fn log(&self) {
        let Self { cause, lasts, names, tries, example, .. } = self;
        let lasts = lasts.as_secs();
        match self.stage {
            Stage::New => tracing::warn!(names, tries, example, "{cause}; retrying"),
            Stage::Lasting => tracing::warn!(names, tries, lasts, example, "still failing: {cause}; retrying"),
            Stage::Over => tracing::info!(lasts, "recovered: {cause}"),
        }
    }
}

/// Logs failures for as long as the tracer runs.
pub(crate) async fn run(access: Access) {
    loop {
        tokio::time::sleep(TICK).await;
        access.failures().due(Instant::now()).iter().for_each(Report::log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once_for_everybody_once_a_minute_while_it_lasts_and_when_it_is_over() {
        let (failures, start) = (Failures::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        for kind in ["v1.Pod", "v1.Node", "apps/v1.Deployment"] {
            failures.note_at(start, kind, Cause::Forbidden, &"no");
        }
        assert_eq!(failures.due(start), [], "others may be about to meet it");
        let [first] = &failures.due(at(1))[..] else { panic!("one line for all") };
        assert_eq!((first.names.as_str(), first.tries), ("apps/v1.Deployment, v1.Node, v1.Pod", 3));
        for second in 2..61 {
            failures.note_at(at(second), "v1.Pod", Cause::Forbidden, &"no");
            assert_eq!(failures.due(at(second)), [], "after {second} s");
        }
        let [summary] = &failures.due(at(61))[..] else { panic!("a summary each minute") };
        assert_eq!((summary.names.as_str(), summary.tries, summary.lasts.as_secs()), ("v1.Pod", 59, 61));
        ["v1.Pod", "v1.Node"].iter().for_each(|kind| failures.recovered(kind));
        assert_eq!(failures.due(at(70)), [], "one is still affected");
        failures.recovered("apps/v1.Deployment");
        let [over] = &failures.due(at(71))[..] else { panic!("it is over") };
        assert_eq!(over.stage, Stage::Over);
        assert_eq!(failures.due(at(500)), [], "and forgotten");
    }

    #[test]
    fn whoever_meets_another_problem_has_got_past_the_first_and_both_are_said() {
        let (failures, start) = (Failures::default(), Instant::now());
        failures.note_at(start, "v1.Pod", Cause::Unreachable, &"refused");
        assert_eq!(failures.due(start + GATHER).len(), 1);
        failures.note_at(start + GATHER, "v1.Pod", Cause::Forbidden, &"no");
        let reports = failures.due(start + 2 * GATHER);
        let stages: Vec<_> = reports.iter().map(|report| (report.cause, report.stage)).collect();
        assert_eq!(stages, [(Cause::Unreachable, Stage::Over), (Cause::Forbidden, Stage::New)]);
    }

    #[test]
    fn a_line_names_a_few_and_counts_the_rest() {
        let (failures, start) = (Failures::default(), Instant::now());
        for number in 0..20 {
            failures.note_at(start, &format!("kind-{number:02}"), Cause::Unreachable, &"refused");
        }
        let names = failures.due(start + GATHER).remove(0).names;
        assert!(names.starts_with("kind-00, kind-01") && names.ends_with("and 12 more"), "{names}");
    }
}
