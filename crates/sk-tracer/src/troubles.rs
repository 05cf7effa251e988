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

/// How long a new cause is gathered before it is said: watchers fail together, within a second.
const GATHER: Duration = Duration::from_secs(1);
/// Between two lines of one cause.
const REPEAT: Duration = Duration::from_secs(60);
/// Between two looks at what is to be said.
const TICK: Duration = Duration::from_millis(500);
/// How many are named in a line; the rest is counted.
const MAX_NAMED: usize = 8;

/// Why something does not work, as far as somebody can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// Nobody answers.
    Unreachable,
    /// The credentials are not accepted.
    Unauthorised,
    /// A right is missing.
    Forbidden,
    /// The server has too much to do.
    Busy,
    /// The server refuses, with this status.
    Refused(u16),
    /// What it says is no Kubernetes.
    Garbled,
}

impl Cause {
    /// Of a status that the server has answered with.
    pub(crate) fn of_status(code: u16) -> Self {
        match code {
            401 => Self::Unauthorised,
            403 => Self::Forbidden,
            429 => Self::Busy,
            code => Self::Refused(code),
        }
    }

    /// Of a request that failed.
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
            Self::Unauthorised => f.write_str("the API server does not accept the credentials; they are read again"),
            Self::Forbidden => {
                f.write_str("the tracer lacks rights; `skctl manifests tracer` prints those that it needs")
            }
            Self::Busy => f.write_str("the API server asks to be asked less often"),
            Self::Refused(code) => write!(f, "the API server answers {code}"),
            Self::Garbled => f.write_str("what the API server says cannot be understood"),
        }
    }
}

/// What goes wrong, by cause.
#[derive(Debug, Default)]
pub(crate) struct Troubles(Mutex<BTreeMap<Cause, Trouble>>);

#[derive(Debug)]
struct Trouble {
    since: Instant,
    said: Option<Instant>,
    /// The watchers that still have the problem.
    hindered: BTreeSet<SmolStr>,
    /// The watchers that have reported it since the last log line.
    met: BTreeSet<SmolStr>,
    tries: u64,
    /// What it looked like last.
    example: String,
}

/// One line.
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

impl Troubles {
    /// Somebody has met a problem.
    pub(crate) fn note(&self, who: &str, cause: Cause, problem: &dyn fmt::Display) {
        self.note_at(Instant::now(), who, cause, problem);
    }

    fn note_at(&self, now: Instant, who: &str, cause: Cause, problem: &dyn fmt::Display) {
        let mut troubles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever is hindered by one thing is not hindered by another any more.
        for (other, trouble) in troubles.iter_mut() {
            if *other != cause {
                trouble.hindered.remove(who);
            }
        }
        let trouble = troubles.entry(cause).or_insert_with(|| Trouble {
            since: now,
            said: None,
            hindered: BTreeSet::new(),
            met: BTreeSet::new(),
            tries: 0,
            example: String::new(),
        });
        trouble.hindered.insert(who.into());
        trouble.met.insert(who.into());
        trouble.tries += 1;
        trouble.example = problem.to_string();
    }

    /// Somebody has succeeded.
    pub(crate) fn overcome(&self, who: &str) {
        let mut troubles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for trouble in troubles.values_mut() {
            trouble.hindered.remove(who);
        }
    }

    /// What is to be said now.
    fn due(&self, now: Instant) -> Vec<Report> {
        let mut troubles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reports = Vec::new();
        troubles.retain(|cause, trouble| {
            let stage = match trouble.said {
                None if now < trouble.since + GATHER => return true,
                None => Stage::New,
                Some(_) if trouble.hindered.is_empty() => Stage::Over,
                Some(said) if now < said + REPEAT => return true,
                // Everybody tries again within half a minute; nobody has met it any more.
                Some(_) if trouble.tries == 0 => Stage::Over,
                Some(_) => Stage::Lasting,
            };
            reports.push(trouble.report(*cause, stage, now));
            // One that was said and is over is forgotten; one that was over before it was said is told as over next.
            stage != Stage::Over
        });
        reports
    }
}

impl Trouble {
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
    fn say(&self) {
        let Self { cause, lasts, names, tries, example, .. } = self;
        let lasts = lasts.as_secs();
        match self.stage {
            Stage::New => tracing::warn!(%cause, names, tries, example, "a request failed; retrying"),
            Stage::Lasting => tracing::warn!(%cause, names, tries, lasts, example, "it still fails; retrying"),
            Stage::Over => tracing::info!(%cause, lasts, "it works again"),
        }
    }
}

/// Says what goes wrong for as long as the tracer runs.
pub(crate) async fn run(access: Access) {
    loop {
        tokio::time::sleep(TICK).await;
        access.troubles().due(Instant::now()).iter().for_each(Report::say);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once_for_everybody_once_a_minute_while_it_lasts_and_when_it_is_over() {
        let (troubles, start) = (Troubles::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        for kind in ["v1.Pod", "v1.Node", "apps/v1.Deployment"] {
            troubles.note_at(start, kind, Cause::Forbidden, &"no");
        }
        assert_eq!(troubles.due(start), [], "others may be about to meet it");
        let [first] = &troubles.due(at(1))[..] else { panic!("one line for all") };
        assert_eq!((first.names.as_str(), first.tries), ("apps/v1.Deployment, v1.Node, v1.Pod", 3));
        for second in 2..61 {
            troubles.note_at(at(second), "v1.Pod", Cause::Forbidden, &"no");
            assert_eq!(troubles.due(at(second)), [], "after {second} s");
        }
        let [summary] = &troubles.due(at(61))[..] else { panic!("a summary each minute") };
        assert_eq!((summary.names.as_str(), summary.tries, summary.lasts.as_secs()), ("v1.Pod", 59, 61));
        ["v1.Pod", "v1.Node"].iter().for_each(|kind| troubles.overcome(kind));
        assert_eq!(troubles.due(at(70)), [], "one is still hindered");
        troubles.overcome("apps/v1.Deployment");
        let [over] = &troubles.due(at(71))[..] else { panic!("it is over") };
        assert_eq!(over.stage, Stage::Over);
        assert_eq!(troubles.due(at(500)), [], "and forgotten");
    }

    #[test]
    fn whoever_meets_another_problem_has_got_past_the_first_and_both_are_said() {
        let (troubles, start) = (Troubles::default(), Instant::now());
        troubles.note_at(start, "v1.Pod", Cause::Unreachable, &"refused");
        assert_eq!(troubles.due(start + GATHER).len(), 1);
        troubles.note_at(start + GATHER, "v1.Pod", Cause::Forbidden, &"no");
        let reports = troubles.due(start + 2 * GATHER);
        let stages: Vec<_> = reports.iter().map(|report| (report.cause, report.stage)).collect();
        assert_eq!(stages, [(Cause::Unreachable, Stage::Over), (Cause::Forbidden, Stage::New)]);
    }

    #[test]
    fn a_line_names_a_few_and_counts_the_rest() {
        let (troubles, start) = (Troubles::default(), Instant::now());
        for number in 0..20 {
            troubles.note_at(start, &format!("kind-{number:02}"), Cause::Unreachable, &"refused");
        }
        let names = troubles.due(start + GATHER).remove(0).names;
        assert!(names.starts_with("kind-00, kind-01") && names.ends_with("and 12 more"), "{names}");
    }
}
