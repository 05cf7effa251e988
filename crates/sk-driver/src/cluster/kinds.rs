//! The resource name and scope of a kind, by discovery; requested once per kind.

use std::collections::BTreeMap;

use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{self, Scope};
use sk_core::Gvk;
use tokio::sync::Mutex;

use super::request::{Patience, Refusal, patiently};

/// One kind as the cluster has it.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) resource: ApiResource,
    pub(crate) is_namespaced: bool,
}

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
    pub(crate) async fn get(&self, gvk: &Gvk, patience: &Patience) -> Result<Kind, Refusal> {
        if let Some(kind) = self.known.lock().await.get(gvk) {
            return Ok(kind.clone());
        }
        let asked = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
        let found = patiently(patience, || discovery::pinned_kind(&self.client, &asked)).await;
        let (resource, capabilities) = found.map_err(|refusal| match refusal {
            unknown if unknown.is_not_found() => Refusal::UnknownKind { kind: gvk.to_string() },
            Refusal::UnknownKind { .. } => Refusal::UnknownKind { kind: gvk.to_string() },
            other => other,
        })?;
        let kind = Kind { resource, is_namespaced: capabilities.scope == Scope::Namespaced };
        self.known.lock().await.insert(gvk.clone(), kind.clone());
        Ok(kind)
    }
}
