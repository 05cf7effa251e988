//! One request to the API server, with retries.
//!
//! Transient failures (too many requests, a server error, a conflict, a lost connection) are retried with backoff, for
//! longer than an API server needs to restart. Permanent failures are returned with the server's message. An API server
//! that has just started does not know RBAC yet for a moment, so a 403 is retried for a short while too. While a run is
//! being stopped there is less time: each part says how much of it a request may take.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::runtime::watcher;

use super::counters::Counters;
use super::stop::Stop;

/// An API server that is upgraded or restarted is back within a minute or two.
const RETRY_LIMIT: Duration = Duration::from_secs(180);
/// Timeout of a request: the API server itself ends ordinary ones after a minute.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(65);
/// For this long after it was unreachable, an API server may not have loaded RBAC yet.
const RIGHTS_RETRY_LIMIT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Why a request did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The server said no; its HTTP status, reason and words.
    #[error("{words}")]
    Server {
        /// The HTTP status.
        code: u16,
        /// Kubernetes' reason, such as `Invalid`.
        reason: String,
        /// For people.
        words: String,
    },
    /// There was no usable answer for too long.
    #[error("gave up after {RETRY_LIMIT:?}: {last}")]
    NoAnswer {
        /// What was heard last.
        last: String,
    },
    /// The run was asked to stop, and there was no usable answer in the time that it had left.
    #[error("gave up because the run was asked to stop: {last}")]
    Stopped {
        /// What was heard last.
        last: String,
    },
    /// An earlier object of that name does not go.
    #[error(
        "an earlier one of that name was deleted, but is not gone after {waited:?}: its finalizers are {finalizers}"
    )]
    StillGoing {
        /// For how long it was waited.
        waited: Duration,
        /// What holds it.
        finalizers: String,
    },
    /// The cluster does not have this kind.
    #[error("the cluster does not know the kind {kind}; install what brings it, or drop it from the trace")]
    UnknownKind {
        /// Which.
        kind: String,
    },
    /// The request itself cannot be made.
    #[error("the request cannot be made: {0}")]
    Malformed(String),
}

impl Refusal {
    /// Is the thing simply not there?
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Server { code: 404, .. })
    }

    /// Is it RBAC's message about a missing permission?
    fn is_missing_right(&self) -> bool {
        let says =
            |words: &str| ["system:serviceaccount:", " cannot ", "resource "].iter().all(|part| words.contains(part));
        matches!(self, Self::Server { code: 403, words, .. } if says(words))
    }

    /// 401 or 403? A server that has just started answers so to everybody.
    fn may_be_early(&self) -> bool {
        let says = |words: &str| words.contains(" cannot ") && words.contains("resource ");
        match self {
            Self::Server { code: 401, .. } => true,
            Self::Server { code: 403, words, .. } => says(words),
            _ => false,
        }
    }

    /// What an administrator can do about it, if anything.
    pub(crate) fn hint(&self, plural: &str, group: &str, is_namespaced: bool) -> Option<String> {
        let flag = if is_namespaced { "--also" } else { "--also-cluster" };
        let dot = if group.is_empty() { "" } else { "." };
        self.is_missing_right().then(|| {
            format!(
                "the driver lacks the permission to replay this kind; `skctl install sim {flag} {plural}{dot}{group}` grants it"
            )
        })
    }

    /// Is there already one of that name?
    pub fn is_already_there(&self) -> bool {
        matches!(self, Self::Server { code: 409, reason, .. } if reason == "AlreadyExists")
    }
}

/// How long requests are retried: until they are answered, or, once the run is being stopped, until this part's grace
/// period is over. Retries are counted.
#[derive(Clone, Debug)]
pub(crate) struct RetryPolicy {
    counters: Counters,
    stop: Stop,
    grace: Duration,
    /// When the server was last unreachable; clones share it.
    away: Arc<Mutex<Option<Instant>>>,
    in_need: bool,
}

impl RetryPolicy {
    pub(crate) fn new(counters: &Counters, stop: &Stop, grace: Duration) -> Self {
        Self { counters: counters.clone(), stop: stop.clone(), grace, away: Arc::default(), in_need: false }
    }

    /// Retries 403 for a while, for requests that are indispensable. The replay is not: a kind that it may not write is
    /// refused at once, unless the server has just been unreachable.
    pub(crate) fn in_need(self) -> Self {
        Self { in_need: true, ..self }
    }

    /// A watch was interrupted.
    pub(crate) fn note_watch(&self, error: &watcher::Error) {
        use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
        if let InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) = error
            && !matches!(error, kube::Error::Api(_))
        {
            self.note_away();
        }
    }

    /// The server was unreachable: it may have been restarted.
    fn note_away(&self) {
        *self.away.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// May the server not have loaded RBAC yet, for a request that began then?
    fn is_early(&self, began: Instant) -> bool {
        let away = *self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let since = if self.in_need { away.max(Some(began)) } else { away };
        since.is_some_and(|since| since.elapsed() < RIGHTS_RETRY_LIMIT)
    }

    /// Waits until the run was asked to stop and its grace period is over.
    pub(crate) async fn over(&self) {
        self.stop.over(self.grace).await;
    }

    /// Waits this long. `false`: the run was asked to stop, and its grace period is over.
    pub(crate) async fn pause(&self, length: Duration) -> bool {
        tokio::select! {
            () = self.over() => false,
            () = tokio::time::sleep(length) => true,
        }
    }

    /// Repeats a request until it is answered or refused; each attempt may take `limit`.
    pub(crate) async fn within<T, Fut>(&self, limit: Duration, mut request: impl FnMut() -> Fut) -> Result<T, Refusal>
    where
        Fut: Future<Output = Result<T, kube::Error>>,
    {
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut last = "no answer yet".to_owned();
        loop {
            let answer = tokio::select! {
                // An answer that is there counts, however late it is.
                biased;
                answer = tokio::time::timeout(limit, request()) => answer,
                () = self.over() => return Err(Refusal::Stopped { last }),
            };
            let asked = match answer {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => match judge(&error) {
                    Verdict::Refused(refusal) if refusal.may_be_early() && self.is_early(began) => {
                        last = refusal.to_string();
                        None
                    }
                    Verdict::Refused(refusal) => return Err(refusal),
                    Verdict::Again(asked, words) => {
                        if !matches!(error, kube::Error::Api(_)) {
                            self.note_away();
                        }
                        last = words;
                        asked
                    }
                },
                Err(_) => {
                    self.note_away();
                    last = format!("no answer within {limit:?}");
                    None
                }
            };
            if began.elapsed() >= RETRY_LIMIT {
                return Err(Refusal::NoAnswer { last });
            }
            tracing::debug!("trying again: {last}");
            let was_webhook = is_webhook_failure(&last);
            self.counters.count(|totals| {
                totals.retries += 1;
                totals.webhook_failures += u64::from(was_webhook);
            });
            if !self.pause(asked.unwrap_or(pause).min(RETRY_LIMIT)).await {
                return Err(Refusal::Stopped { last });
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// An error and its causes: a failed connection alone says little.
pub(crate) fn whole_story(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string);
    let mut parts: Vec<String> = causes.collect();
    // Many repeat what is behind them.
    parts.dedup_by(|behind, before| before.contains(behind.as_str()));
    parts.join(": ")
}

/// The API server's words for a webhook that it has to ask and does not reach.
pub(crate) fn is_webhook_failure(words: &str) -> bool {
    words.contains("failed calling webhook")
}

/// What an error means for a request.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Try again, after so long if the server said so.
    Again(Option<Duration>, String),
    Refused(Refusal),
}

/// Makes an ordinary request until it is answered or refused.
pub(crate) async fn with_retries<T, Fut>(retry: &RetryPolicy, request: impl FnMut() -> Fut) -> Result<T, Refusal>
where
    Fut: Future<Output = Result<T, kube::Error>>,
{
    retry.within(ANSWER_LIMIT, request).await
}

fn judge(error: &kube::Error) -> Verdict {
    match error {
        kube::Error::Api(status) => {
            let words = if status.message.is_empty() { status.reason.clone() } else { status.message.clone() };
            let after = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
            let after = (after > 0).then(|| Duration::from_secs(after.into()));
            let may_pass =
                matches!(status.code, 408 | 429 | 500..=599) || (status.code == 409 && status.reason == "Conflict");
            // A namespace's `default` account is made a moment after the namespace.
            let is_early = status.code == 403 && words.contains("error looking up service account");
            // Server-side apply answers a field that the kind does not have with 500, and always will.
            let is_hopeless = words.contains("failed to create typed patch object");
            if (may_pass && !is_hopeless) || is_early {
                return Verdict::Again(after, format!("{} ({})", words, status.code));
            }
            Verdict::Refused(Refusal::Server { code: status.code, reason: status.reason.clone(), words })
        }
        kube::Error::Discovery(error) => Verdict::Refused(Refusal::UnknownKind { kind: error.to_string() }),
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) | kube::Error::SerdeError(_) => {
            Verdict::Refused(Refusal::Malformed(error.to_string()))
        }
        // Connections: refused, reset, cut off in the middle of an answer.
        _ => Verdict::Again(None, whole_story(error)),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn status(code: u16, reason: &str, after: u32) -> kube::Error {
        let mut status = Status::failure("words", reason).with_code(code);
        if after > 0 {
            status.details = Some(serde_json::from_value(serde_json::json!({"retryAfterSeconds": after})).unwrap());
        }
        kube::Error::Api(status.boxed())
    }

    #[test]
    fn what_may_pass_is_tried_again_and_what_will_not_is_refused_with_the_servers_words() {
        for (code, reason) in [(429, "TooManyRequests"), (500, "InternalError"), (503, "x"), (409, "Conflict")] {
            assert!(matches!(judge(&status(code, reason, 0)), Verdict::Again(None, _)), "{code}");
        }
        let after = judge(&status(429, "TooManyRequests", 7));
        assert!(matches!(after, Verdict::Again(Some(pause), _) if pause == Duration::from_secs(7)), "{after:?}");
        for (code, reason) in
            [(400, "BadRequest"), (403, "Forbidden"), (404, "NotFound"), (409, "AlreadyExists"), (422, "Invalid")]
        {
            let Verdict::Refused(refusal) = judge(&status(code, reason, 0)) else { panic!("{code} is tried again") };
            assert_eq!(refusal.to_string(), "words");
        }
        assert!(matches!(judge(&kube::Error::Service("reset".into())), Verdict::Again(None, _)));
    }

    #[tokio::test]
    async fn tries_are_counted() {
        let counters = Counters::default();
        let retry = RetryPolicy::new(&counters, &Stop::default(), Duration::ZERO);
        let mut left = 3;
        let answer = with_retries(&retry, || {
            left -= 1;
            let answer = if left == 0 { Ok(7) } else { Err(status(503, "x", 0)) };
            async move { answer }
        });
        assert_eq!(answer.await, Ok(7));
        assert_eq!(counters.totals().retries, 2);
    }

    const NO_RIGHT: &str = "maps is forbidden: User \"u\" cannot patch resource \"maps\" in API group \"\"";

    fn no_right() -> kube::Error {
        kube::Error::Api(Status::failure(NO_RIGHT, "Forbidden").with_code(403).boxed())
    }

    /// Gives these answers one after the other, and then success.
    async fn answers(retry: &RetryPolicy, answers: Vec<kube::Error>) -> Result<(), Refusal> {
        let mut answers = answers.into_iter();
        with_retries(retry, || std::future::ready(answers.next().map_or(Ok(()), Err))).await
    }

    #[tokio::test]
    async fn a_right_that_is_missing_after_the_server_was_away_is_asked_for_again() {
        let retry = RetryPolicy::new(&Counters::default(), &Stop::default(), Duration::ZERO);
        let refused = answers(&retry, vec![no_right()]).await;
        assert!(matches!(refused, Err(Refusal::Server { code: 403, .. })), "the server was there: {refused:?}");
        let away = || kube::Error::Service("connection refused".into());
        assert_eq!(answers(&retry, vec![away(), no_right(), status(401, "Unauthorized", 0)]).await, Ok(()));
        assert_eq!(answers(&retry.clone(), vec![no_right()]).await, Ok(()), "clones know of it");
        let quota = answers(&retry, vec![status(403, "Forbidden", 0)]).await;
        assert!(quota.is_err(), "what is no right does not pass");
        let needy = RetryPolicy::new(&Counters::default(), &Stop::default(), Duration::ZERO).in_need();
        assert_eq!(answers(&needy, vec![no_right(), status(401, "Unauthorized", 0)]).await, Ok(()));
        assert!(!needy.is_early(Instant::now().checked_sub(RIGHTS_RETRY_LIMIT).unwrap()), "not for ever");
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_not_waited_for_when_the_run_is_asked_to_stop() {
        let stop = Stop::default();
        let retry = RetryPolicy::new(&Counters::default(), &stop, Duration::from_millis(50));
        let silent = with_retries(&retry, std::future::pending::<Result<(), kube::Error>>);
        let refused = retry.within(ANSWER_LIMIT, || async { Err::<(), _>(status(429, "TooManyRequests", 60)) });
        let (silent, refused, ()) = tokio::join!(silent, refused, async { stop.insist("enough") });
        assert_eq!(silent, Err(Refusal::Stopped { last: "no answer yet".into() }));
        assert_eq!(refused, Err(Refusal::Stopped { last: "words (429)".into() }));
    }

    #[test]
    fn a_right_that_is_missing_is_named_as_the_installation_takes_it() {
        let refused = |words: &str| Refusal::Server { code: 403, reason: "Forbidden".into(), words: words.into() };
        let rbac = refused(
            "secrets \"a\" is forbidden: User \"system:serviceaccount:simkube:sk-driver\" cannot patch resource \"secrets\" \
             in API group \"\" in the namespace \"virtual-a\"",
        );
        assert!(rbac.hint("secrets", "", true).unwrap().contains("`skctl install sim --also secrets`"));
        assert!(rbac.hint("widgets", "example.com", true).unwrap().contains("--also widgets.example.com`"));
        assert!(rbac.hint("planets", "example.com", false).unwrap().contains("--also-cluster planets.example.com`"));
        assert_eq!(refused("exceeded quota: pods=100").hint("pods", "", true), None);
    }
}
