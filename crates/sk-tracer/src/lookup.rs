//! Asks the API server about owners that no watch covers, mostly custom resources that are not tracked.
//!
//! One metadata request per owner, never per pod: the ledger asks once and remembers. If the API server was unreachable
//! or refused, the ledger asks again with growing delays and keeps the record of the pod meanwhile.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use sk_core::{Gvk, ObjectKey};
use sk_ingest::{LookupResult, OwnerLookup, Role, Sighting};
use tokio::sync::mpsc;

use crate::store::Message;
use crate::watch::Shared;
use crate::watch::resource::{Depth, Resource};

/// Lookups that wait; more stay with the ledger, which has a bound of its own.
pub(crate) const QUEUE_LOOKUPS: usize = 1_024;
/// Requests at a time: below client-go's default rate of 5 a second with a burst of 10, were each to take a second.
const CONCURRENT: usize = 8;
/// How long one may take.
const LIMIT: Duration = Duration::from_secs(10);
/// How long discovery results are cached.
const CACHE_TTL: Duration = Duration::from_secs(60);
/// Kinds in that cache; beyond it discovery is repeated.
const REMEMBERED: usize = 1_024;

/// Carries out lookups until the store closes the channel.
pub(crate) async fn run(shared: Arc<Shared>, lookups: mpsc::Receiver<OwnerLookup>, store: mpsc::Sender<Message>) {
    let places = Places::default();
    let asked =
        futures::stream::unfold(lookups, |mut lookups| async { lookups.recv().await.map(|lookup| (lookup, lookups)) });
    let done = asked.map(|lookup| async {
        let result = look_up(&shared, &places, &lookup).await;
        (lookup, result)
    });
    let mut done = std::pin::pin!(done.buffer_unordered(CONCURRENT));
    while let Some(ended) = done.next().await {
        if store.send(Message::LookupEnded(Box::new(ended))).await.is_err() {
            return;
        }
    }
}

async fn look_up(shared: &Shared, places: &Places, lookup: &OwnerLookup) -> LookupResult {
    let kind = &lookup.kind;
    let key = ObjectKey { namespace: lookup.namespace.clone(), name: lookup.name.clone() };
    let asked = tokio::time::timeout(LIMIT, ask(shared, places, kind, &key)).await;
    let (label, result) = match asked {
        Ok(Ok(Some(sighting))) => ("found", LookupResult::Found(Box::new(sighting))),
        Ok(Ok(None)) => ("absent", LookupResult::Absent),
        Ok(Err(error)) => {
            tracing::debug!(%kind, namespace = key.namespace_or_empty(), name = %key.name, %error, "cannot read an owner");
            ("failed", LookupResult::Failed)
        }
        Err(_) => ("failed", LookupResult::Failed),
    };
    shared.metrics.lookup(label);
    result
}

async fn ask(shared: &Shared, places: &Places, kind: &Gvk, key: &ObjectKey) -> Result<Option<Sighting>, kube::Error> {
    let client = shared.access.client();
    // The name comes from an owner reference, in which anybody may have written anything.
    if !is_path_part(&key.name) {
        return Ok(None);
    }
    let resource = match places.remembered(kind) {
        Some(known) => known,
        None => places.remember(kind, Resource::find(&client, kind).await?),
    };
    let Some(resource) = resource else { return Ok(None) };
    match client.request_text(resource.one(Depth::Metadata, key)?).await {
        Ok(text) => Ok(shared.rules.sieve(kind, Role::Link, text.as_bytes()).ok().flatten()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Is it a valid name in a path? Kubernetes refuses these for every kind (apimachinery/pkg/api/validation/path, v0.36.4).
fn is_path_part(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '%'])
}

/// Where kinds are served, remembered for a while.
#[derive(Default)]
struct Places(Mutex<HashMap<Gvk, (Instant, Option<Resource>)>>);

impl Places {
    fn remembered(&self, kind: &Gvk) -> Option<Option<Resource>> {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, resource) = places.get(kind)?;
        (asked.elapsed() < CACHE_TTL).then(|| resource.clone())
    }

    fn remember(&self, kind: &Gvk, resource: Option<Resource>) -> Option<Resource> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= REMEMBERED {
            places.clear();
        }
        places.insert(kind.clone(), (Instant::now(), resource.clone()));
        resource
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_elsewhere_is_not_asked_for() {
        for name in ["", ".", "..", "a/status", "a%2fb"] {
            assert!(!is_path_part(name), "{name}");
        }
        assert!(is_path_part("web") && is_path_part("system:node"));
    }
}
