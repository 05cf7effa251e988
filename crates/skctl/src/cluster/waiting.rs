//! Waits for a response of the cluster, until it arrives or the user presses Ctrl-C.

use std::future::Future;
use std::io;
use std::time::Duration;

use crate::failure::Interrupted;
use crate::progress::Progress;

/// How often Ctrl-C is looked for.
const TICK: Duration = Duration::from_millis(100);

impl Progress {
    /// Waits for work that has no end of its own to look at; stops waiting when the user does.
    pub(crate) async fn waiting<T>(&self, work: impl Future<Output = T>) -> io::Result<T> {
        let mut ticks = tokio::time::interval(TICK);
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                _ = ticks.tick() => if self.is_interrupted() { return Err(io::Error::other(Interrupted)) },
            }
        }
    }
}
