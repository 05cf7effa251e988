//! Finds the API resource that serves a kind, by discovery.

use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{self, Scope};
use sk_core::Gvk;

/// A kind as a cluster serves it.
#[derive(Clone, Debug)]
pub struct Served {
    /// Its plural and its group and version.
    pub resource: ApiResource,
    /// Do its objects live in namespaces?
    pub is_namespaced: bool,
}

/// Asks the cluster for a kind; `None` if it does not serve it. Nothing is remembered: a kind may be installed at any time.
pub async fn find(client: &Client, kind: &Gvk) -> Result<Option<Served>, kube::Error> {
    let wanted = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
    match discovery::pinned_kind(client, &wanted).await {
        Ok((resource, capabilities)) => {
            let is_namespaced = capabilities.scope == Scope::Namespaced;
            Ok(Some(Served { resource, is_namespaced }))
        }
        // The group and version are there, and the kind is not.
        Err(kube::Error::Discovery(_)) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}
