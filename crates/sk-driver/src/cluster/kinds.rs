//! The resource name and scope of a kind, by discovery; requested once per kind.

use std::collections::BTreeMap;

use kube::Client;
use sk_cluster::discovery;
pub(crate) use sk_cluster::discovery::Served as Kind;
use sk_core::Gvk;
use tokio::sync::Mutex;

use super::request::{Refusal, RetryPolicy, with_retries};

/// The kinds met so far. A trace has dozens; each is a few hundred bytes.
pub(crate) struct Kinds {
    client: Client,
    known: Mutex<BTreeMap<Gvk, Kind>>,
}

impl Kinds {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// Looks a kind up. One that the cluster does not have is asked for again next time: a trace may bring it.
    pub(crate) async fn get(&self, gvk: &Gvk, retry: &RetryPolicy) -> Result<Kind, Refusal> {
        if let Some(kind) = self.known.lock().await.get(gvk) {
            return Ok(kind.clone());
        }
        let found = with_retries(retry, || discovery::find(&self.client, gvk)).await?;
        let kind = found.ok_or_else(|| Refusal::UnknownKind { kind: gvk.to_string() })?;
        self.known.lock().await.insert(gvk.clone(), kind.clone());
        Ok(kind)
    }
}
