//! Finds the API resource of a kind by discovery, once per kind.

use std::collections::BTreeMap;

use kube::api::{Api, DynamicObject};
use sk_cluster::discovery::{self, Served};
use sk_core::Gvk;

use super::Cluster;

/// The kinds of a cluster, as far as they were asked about.
pub(crate) struct Kinds<'a> {
    cluster: &'a Cluster,
    known: BTreeMap<Gvk, Served>,
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
        let Served { resource, is_namespaced } = self.look_up(kind).await?;
        // Without one, the kubeconfig's, as kubectl does.
        let namespace = if namespace.is_empty() { client.default_namespace().to_owned() } else { namespace.to_owned() };
        Ok(if *is_namespaced {
            Api::namespaced_with(client, &namespace, resource)
        } else {
            Api::all_with(client, resource)
        })
    }

    /// The objects of a kind in all namespaces.
    pub(crate) async fn api_everywhere(&mut self, kind: &Gvk) -> Result<Api<DynamicObject>, KindError> {
        let client = self.cluster.client.clone();
        Ok(Api::all_with(client, &self.look_up(kind).await?.resource))
    }

    async fn look_up(&mut self, kind: &Gvk) -> Result<&Served, KindError> {
        if !self.known.contains_key(kind) {
            let found = discovery::find(&self.cluster.client, kind).await;
            let found = found.map_err(|error| KindError::Request(Box::new(error)))?;
            self.known.insert(kind.clone(), found.ok_or_else(|| KindError::Unknown(kind.clone()))?);
        }
        Ok(&self.known[kind])
    }
}
