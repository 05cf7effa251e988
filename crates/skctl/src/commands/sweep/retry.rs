//! Retries while an object store is unreachable.
//!
//! A store that is unreachable for a minute should not cost a run that took an hour. Permanent failures, such as a missing
//! bucket or refused credentials, are not retried.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result};
use sk_store::location::AWAY;

use crate::failure::each_once;
use crate::output;

/// How long a store may be unreachable, besides the retries of each request.
const LIMIT: Duration = Duration::from_secs(180);
/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(5);

/// Repeats it until the store answers, up to [`LIMIT`] or an interruption.
pub(super) fn with_retries<T>(is_interrupted: impl Fn() -> bool, mut act: impl FnMut() -> Result<T>) -> Result<T> {
    let since = Instant::now();
    loop {
        match act() {
            Err(error) if is_unreachable(&error) && since.elapsed() < LIMIT && !is_interrupted() => {
                let reason = each_once(error.chain());
                anstream::eprintln!("the object store does not answer, trying again: {}", output::moved_in(&reason));
                thread::sleep(PAUSE);
            }
            ended => return ended,
        }
    }
}

/// Did the store not answer?
pub(super) fn is_unreachable(error: &Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == AWAY))
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};

    use super::*;

    #[test]
    fn only_a_store_that_does_not_answer_is_waited_for() {
        let away = Err::<(), _>(io::Error::new(AWAY, "connection refused")).context("cannot list s3://b/x");
        assert!(is_unreachable(&away.unwrap_err()));
        assert!(!is_unreachable(&anyhow!("no such bucket")));
        let mut tries = 0;
        let refused: Result<()> = with_retries(
            || false,
            || {
                tries += 1;
                Err(anyhow!("no such bucket"))
            },
        );
        assert!(refused.is_err() && tries == 1);
        let interrupted: Result<()> = with_retries(
            || true,
            || {
                tries += 1;
                Err(io::Error::new(AWAY, "connection refused").into())
            },
        );
        assert!(interrupted.is_err() && tries == 2, "Ctrl-C ends the waiting");
    }
}
