//! Waits until every watch has delivered what the API server had when an export was requested.
//!
//! Events of an owner can arrive after those of its children, because they come by different watches, and an object that a
//! user has just applied may not have arrived at all. So before an export the tracer reads the newest resource version, and
//! every watch must reach it. The watch of a quiet kind sends nothing for a minute, which looks like a slow one. To tell the
//! two apart, the tracer opens a second, short watch from the position of the first. The API server sends it every event
//! since then and, two seconds before its end, a bookmark. If the bookmark is at the requested version, the events before it
//! are all there were, and the first watch only has to reach the last of them. This holds for any replica of the API server.
//! A list with that minimum version comes first: it makes the watch cache ask etcd for its progress; otherwise the bookmarks
//! of a quiet kind would stay at its last event (apiserver/pkg/storage/cacher/cacher.go, `dispatchEvents`, v0.36.4).
//!
//! A watcher that is in backoff, because its kind is not served or its watch broke, tries again at once.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kube::Client;
use sk_core::Gvk;
use sk_ingest::Role;

use super::lines::Lines;
use super::resource::Depth;
use super::status::{Phase, Progress, Status};
use super::wire::{self, Event, Page};
use crate::access::Access;

/// How long an export waits. Events usually arrive within milliseconds; a bookmark takes two seconds, and more from a
/// busy server.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);
/// How long the API server may take to say what its newest version is.
const NEWEST_LIMIT: Duration = Duration::from_secs(5);
/// How long the second watch lives: its bookmark comes two seconds before its end, and the server looks once a second.
const PROBE_SECONDS: u64 = 3;
/// Between two attempts, if a probe fails.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits, at most for [`LIMIT`]. Returns the kinds that did not catch up: all of them, if nobody says with what. Then they
/// have at least seen what any of them has seen, so that owners are known.
pub(crate) async fn wait(access: &Access, watchers: &[Arc<Status>]) -> Vec<Gvk> {
    let newest = newest(access, watchers).await;
    let seen = || watchers.iter().map(|status| status.progress().version).max();
    let wanted = newest.or_else(seen).unwrap_or(0);
    let behind = watchers.iter().filter(|status| status.passed() < wanted);
    let waits = behind.map(|status| async move {
        let proven = tokio::time::timeout(LIMIT, until_passed(access, status, wanted)).await;
        proven.is_err().then(|| status.kind().clone())
    });
    let behind = join_all(waits).await.into_iter().flatten().collect();
    if newest.is_some() { behind } else { watchers.iter().map(|status| status.kind().clone()).collect() }
}

/// The newest version that the API server has, if it says so.
async fn newest(access: &Access, watchers: &[Arc<Status>]) -> Option<u64> {
    let problem = match tokio::time::timeout(NEWEST_LIMIT, ask_for_newest(access, watchers)).await {
        Ok(Ok(newest)) => return Some(newest),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it does not answer".to_owned(),
    };
    tracing::warn!(problem, "the API server does not say what its newest version is");
    None
}

/// Pods are asked for: they are always watched, and always the API server's own.
async fn ask_for_newest(access: &Access, watchers: &[Arc<Status>]) -> Result<u64, ProbeError> {
    let pods = watchers.iter().find(|status| status.task.role == Role::Pod);
    let pods = pods.and_then(|status| status.resource()).ok_or(ProbeError::NotWatching)?;
    let text = access.client().request_text(pods.newest()?).await?;
    let page: Page<'_> = serde_json::from_str(&text)?;
    Ok(number(&page.metadata.resource_version))
}

async fn until_passed(access: &Access, status: &Status, newest: u64) {
    let nudged = status.nudge();
    let mut progress = status.follow();
    let by_itself = async {
        // A kind that is still not served has no events. The sender lives as long as the status, which is borrowed here.
        let absent = |progress: &Progress| progress.phase == Phase::NotServed && progress.looked >= nudged;
        let _ = progress.wait_for(|progress| progress.version >= newest || absent(progress)).await;
    };
    let by_probe = async {
        while let Err(error) = probe(&access.client(), status, newest).await {
            tracing::debug!(kind = %status.kind(), %error, "cannot tell yet whether this watch has caught up");
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = by_itself => {}
        () = by_probe => status.prove(newest),
    }
}

/// Why a probe proves nothing.
#[derive(Debug, thiserror::Error)]
enum ProbeError {
    #[error("the kind is not being watched yet")]
    NotWatching,
    #[error("ask the API server: {0}")]
    Request(#[from] kube::Error),
    #[error("read the probe: {0}")]
    Read(#[from] std::io::Error),
    #[error("understand the probe: {0}")]
    Rubbish(#[from] serde_json::Error),
    #[error("the probe ended before its bookmark")]
    Ended,
}

/// Finds the kind's last event up to `newest`, and waits until its watcher has seen it.
async fn probe(client: &Client, status: &Status, newest: u64) -> Result<(), ProbeError> {
    let resource = status.resource().ok_or(ProbeError::NotWatching)?;
    let from = status.progress().version;
    if from == 0 {
        return Err(ProbeError::NotWatching);
    }
    client.request_text(resource.not_older_than(newest)?).await?;
    let request = resource.watch(Depth::Metadata, &from.to_string(), PROBE_SECONDS)?;
    let last = last_event(client, request, from, newest).await?;
    // As above: the sender lives on.
    let _ = status.follow().wait_for(|progress| progress.version >= last).await;
    Ok(())
}

/// The version of the last event of a watch up to `newest`; `from` if there is none.
async fn last_event(
    client: &Client,
    request: http::Request<Vec<u8>>,
    from: u64,
    newest: u64,
) -> Result<u64, ProbeError> {
    let mut lines = Lines::new(Box::pin(client.request_stream(request).await?));
    let mut last = from;
    loop {
        while let Some(line) = lines.arrived() {
            let version = match Event::read(line)? {
                Some(Event::Applied(object) | Event::Deleted(object)) => wire::version_of(object)?,
                Some(Event::Bookmark(version)) if number(&version) >= newest => return Ok(last),
                Some(Event::Failed(_)) => return Err(ProbeError::Ended),
                Some(Event::Bookmark(_)) | None => continue,
            };
            // Events come in order: one beyond the wanted version means that all up to it have come.
            match number(&version) {
                beyond if beyond > newest => return Ok(last),
                version => last = version,
            }
        }
        if !lines.more().await? {
            return Err(ProbeError::Ended);
        }
    }
}

fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}
