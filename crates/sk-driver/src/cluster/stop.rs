//! Asking a run to stop: by a signal, by a refusal that must not pass, by the caller.

use tokio::sync::watch;

/// Whether a run is to stop, and why. Clones are the same question.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<Option<String>>);

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
                *asked = Some(why.to_owned());
                true
            }
        });
    }

    /// Why the run is to stop, if it is.
    pub fn reason(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// Waits until somebody asks.
    pub async fn asked(&self) {
        // The sender is this value itself, so the channel cannot be closed while somebody waits.
        let _ = self.0.subscribe().wait_for(Option::is_some).await;
    }
}
