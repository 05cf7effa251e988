//! Asking a run to stop: by a signal, by a refusal that must not pass, by the caller.
//!
//! Whoever was asked to stop has only so long: a pod is killed when its grace is over. So a stop knows since when it holds,
//! and what is still under way then asks here when its share of that time is over.

use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Whether a run is to stop, why and since when. Clones are the same question.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<Option<Asked>>);

#[derive(Clone, Debug)]
struct Asked {
    why: String,
    at: Instant,
}

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Stop {
    /// Asks for it. The first reason is the one that counts.
    pub fn ask(&self, why: &str) {
        self.0.send_if_modified(|asked| match asked {
            Some(_) => false,
            None => {
                *asked = Some(Asked { why: why.to_owned(), at: Instant::now() });
                true
            }
        });
    }

    /// Why the run is to stop, if it is.
    pub fn reason(&self) -> Option<String> {
        self.0.borrow().as_ref().map(|asked| asked.why.clone())
    }

    /// Waits until somebody asks.
    pub async fn asked(&self) {
        self.over(Duration::ZERO).await;
    }

    /// Waits until somebody asks, and then until `grace` is over.
    pub(crate) async fn over(&self, grace: Duration) {
        let mut questions = self.0.subscribe();
        // The sender is this value itself, so the channel cannot be closed while somebody waits.
        let at = questions.wait_for(Option::is_some).await.ok().and_then(|asked| asked.as_ref().map(|asked| asked.at));
        match at {
            Some(at) => tokio::time::sleep_until((at + grace).into()).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_grace_begins_when_somebody_asks_and_the_first_reason_counts() {
        let stop = Stop::default();
        let waiting = tokio::time::timeout(Duration::from_millis(20), stop.over(Duration::ZERO));
        assert!(waiting.await.is_err(), "nobody has asked");
        let before = Instant::now();
        stop.ask("first");
        stop.ask("second");
        assert_eq!(stop.reason().as_deref(), Some("first"));
        stop.asked().await;
        stop.over(Duration::from_millis(50)).await;
        assert!(before.elapsed() >= Duration::from_millis(50));
    }
}
