//! One request to the API server, tried until it is answered or refused.
//!
//! What may pass (too many requests, a server error, a conflict, a lost connection) is tried again with growing pauses,
//! for as long as a restarted API server needs and then some. What will not pass is a refusal with the server's words.

use std::future::Future;
use std::time::{Duration, Instant};

use super::tally::Tally;

/// An API server that is upgraded or restarted is back within a minute or two.
const PATIENCE: Duration = Duration::from_secs(180);
/// A request that is not answered for so long is lost: the API server itself ends ordinary ones after a minute.
const ANSWER_LIMIT: Duration = Duration::from_secs(65);
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
    #[error("given up after {PATIENCE:?}: {last}")]
    NoAnswer {
        /// What was heard last.
        last: String,
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

    /// Is there already one of that name?
    pub fn is_already_there(&self) -> bool {
        matches!(self, Self::Server { code: 409, reason, .. } if reason == "AlreadyExists")
    }
}

/// What an error means for a request.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Try again, after so long if the server said so.
    Again(Option<Duration>, String),
    Refused(Refusal),
}

/// Makes a request until it is answered or refused. Each further try is counted.
pub(crate) async fn patiently<T, Fut>(tally: &Tally, mut request: impl FnMut() -> Fut) -> Result<T, Refusal>
where
    Fut: Future<Output = Result<T, kube::Error>>,
{
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let (asked, last) = match tokio::time::timeout(ANSWER_LIMIT, request()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => match judge(&error) {
                Verdict::Refused(refusal) => return Err(refusal),
                Verdict::Again(asked, last) => (asked, last),
            },
            Err(_) => (None, format!("no answer within {ANSWER_LIMIT:?}")),
        };
        if began.elapsed() >= PATIENCE {
            return Err(Refusal::NoAnswer { last });
        }
        tracing::debug!("trying again: {last}");
        tally.count(|totals| totals.retries += 1);
        tokio::time::sleep(asked.unwrap_or(pause).min(PATIENCE)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
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
        _ => Verdict::Again(None, error.to_string()),
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
        let tally = Tally::default();
        let mut left = 3;
        let answer = patiently(&tally, || {
            left -= 1;
            let answer = if left == 0 { Ok(7) } else { Err(status(503, "x", 0)) };
            async move { answer }
        });
        assert_eq!(answer.await, Ok(7));
        assert_eq!(tally.totals().retries, 2);
    }
}
