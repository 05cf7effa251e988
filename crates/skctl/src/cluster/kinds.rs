//! Finds the API resource of a kind by discovery, once per kind.

use std::collections::BTreeMap;

use kube::api::{Api, DynamicObject};
use kube::core::GroupVersionKind;
use kube::discovery::{self, ApiCapabilities, ApiResource, Scope};
use sk_core::Gvk;

use super::Cluster;

/// The kinds of a cluster, as far as they were asked about.
pub(crate) struct Kinds<'a> {
    cluster: &'a Cluster,
    known: BTreeMap<Gvk, (ApiResource, ApiCapabilities)>,
}

/// Why a kind cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KindError {
    #[error("the cluster does not know the kind {0}")]
    Unknown(Gvk),
    #[error(transparent)]
    Request(Box<kube::Error>),
}

impl<'a> Kinds<'a> {
    pub(crate) fn of(cluster: &'a Cluster) -> Self {
        Self { cluster, known: BTreeMap::new() }
    }

    /// The objects of a kind: in this namespace, if the kind has any.
    pub(crate) async fn api(&mut self, kind: &Gvk, namespace: &str) -> Result<Api<DynamicObject>, KindError> {
        let client = self.cluster.client.clone();
        let (resource, capabilities) = self.look_up(kind).await?;
        Ok(match capabilities.scope {
            Scope::Namespaced => Api::namespaced_with(client, namespace, resource),
            Scope::Cluster => Api::all_with(client, resource),
        })
    }

    /// The objects of a kind in all namespaces.
    pub(crate) async fn api_everywhere(&mut self, kind: &Gvk) -> Result<Api<DynamicObject>, KindError> {
        let client = self.cluster.client.clone();
        Ok(Api::all_with(client, &self.look_up(kind).await?.0))
    }

    async fn look_up(&mut self, kind: &Gvk) -> Result<&(ApiResource, ApiCapabilities), KindError> {
        if !self.known.contains_key(kind) {
            let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
            let found = discovery::pinned_kind(&self.cluster.client, &gvk).await.map_err(|error| match error {
                kube::Error::Api(status) if status.code == 404 => KindError::Unknown(kind.clone()),
                kube::Error::Discovery(_) => KindError::Unknown(kind.clone()),
                error => KindError::Request(Box::new(error)),
            })?;
            self.known.insert(kind.clone(), found);
        }
        Ok(&self.known[kind])
    }
}
