//! Reads pods again whose owner became known too late: after a restart, after a gap, or when the owner's watch lagged
//! by minutes. The ledger knows the owner then, but only the pod says which template it was made from, and its next
//! event can be hours away.
//!
//! There are only a few requests at a time, and none if no pod needs one. The answers do not follow the order of the
//! pod watch, so the ledger takes the template from them and nothing else.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use sk_core::ObjectKey;
use sk_ingest::{Role, Sighting};
use tokio::sync::mpsc;

use crate::store::Message;
use crate::watch::Shared;
use crate::watch::resource::{Depth, Resource};
use crate::watch::status::Status;

/// Between two rounds.
pub(crate) const PAUSE: Duration = Duration::from_secs(5);
/// Pods of one round: 40 requests a second at most, so that the 10,000 pods that a tracer had listed when it was killed
/// before it could list their owners take four minutes.
pub(crate) const PODS: usize = 200;
/// Requests at a time.
const CONCURRENT: usize = 8;
/// How long one may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Reads pods again, round by round, until the store closes the channel.
pub(crate) async fn run(
    shared: Arc<Shared>,
    pods: Arc<Status>,
    mut rounds: mpsc::Receiver<Vec<ObjectKey>>,
    store: mpsc::Sender<Message>,
) {
    while let Some(round) = rounds.recv().await {
        // The resource of pods is known as soon as their watch has begun.
        let Some(resource) = pods.resource() else { continue };
        let reads = round.into_iter().map(|key| reread(&shared, &pods, &resource, key));
        let seen: Vec<_> = futures::stream::iter(reads).buffer_unordered(CONCURRENT).collect().await;
        let seen: Vec<_> = seen.into_iter().flatten().collect();
        if !seen.is_empty() && store.send(Message::Reread(seen)).await.is_err() {
            return;
        }
    }
}

/// Reads one pod. If that fails, the ledger asks for it again, unless the watch reports its end before.
async fn reread(shared: &Shared, pods: &Status, resource: &Resource, key: ObjectKey) -> Option<Sighting> {
    let client = shared.access.client();
    let request = resource.one(Depth::Whole, &key).ok()?;
    let seen = match tokio::time::timeout(LIMIT, client.request_text(request)).await {
        Ok(Ok(text)) => shared.rules.sieve(pods.kind(), Role::Pod, text.as_bytes()).ok().flatten(),
        Ok(Err(problem)) => {
            tracing::debug!(namespace = key.namespace_or_empty(), name = %key.name, %problem, "cannot read a pod again");
            None
        }
        Err(_) => None,
    };
    shared.metrics.reread(if seen.is_some() { "seen" } else { "failed" });
    seen
}
