//! Stops a run: on a signal, on a permanent refusal, or on request of the caller.
//!
//! A pod is killed when its grace period is over. So a stop also carries a deadline, and everything that is still in
//! progress asks here whether its share of the time is over.

use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Whether a run is to stop, why, and since when it has a deadline. Clones share the state.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<Asked>);

#[derive(Clone, Debug, Default)]
struct Asked {
    why: Option<String>,
    insisted: Option<Instant>,
}

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(Asked::default()))
    }
}

impl Stop {
    /// Asks for it; the run takes the time that it needs to end well. The first reason is the one that counts.
    pub fn ask(&self, why: &str) {
        self.0.send_modify(|asked| {
            asked.why.get_or_insert_with(|| why.to_owned());
        });
    }

    /// Asks for it, and there is only so much time.
    pub fn insist(&self, why: &str) {
        self.ask(why);
        self.0.send_modify(|asked| {
            asked.insisted.get_or_insert_with(Instant::now);
        });
    }

    /// Why the run is to stop, if it is.
    pub fn reason(&self) -> Option<String> {
        self.0.borrow().why.clone()
    }

    /// Waits until a stop is requested.
    pub async fn asked(&self) {
        // The sender is this value itself, so the channel cannot be closed while somebody waits.
        let _ = self.0.subscribe().wait_for(|asked| asked.why.is_some()).await;
    }

    /// Waits until the deadline runs, and then until `grace` is over.
    pub(crate) async fn over(&self, grace: Duration) {
        let mut questions = self.0.subscribe();
        let insisted = questions.wait_for(|asked| asked.insisted.is_some()).await.map(|asked| asked.insisted);
        match insisted {
            Ok(Some(at)) => tokio::time::sleep_until((at + grace).into()).await,
            // Not while the sender is this value itself.
            _ => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_grace_begins_when_somebody_insists_and_the_first_reason_counts() {
        let stop = Stop::default();
        stop.ask("first");
        stop.asked().await;
        let waiting = tokio::time::timeout(Duration::from_millis(20), stop.over(Duration::ZERO));
        assert!(waiting.await.is_err(), "nobody insists");
        let before = Instant::now();
        stop.insist("second");
        assert_eq!(stop.reason().as_deref(), Some("first"));
        stop.over(Duration::from_millis(50)).await;
        assert!(before.elapsed() >= Duration::from_millis(50));
    }
}
