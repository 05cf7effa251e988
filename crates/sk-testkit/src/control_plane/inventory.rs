//! Lists everything in a cluster, for tests that must leave nothing behind.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};
use kube::discovery::{ApiGroup, Discovery, verbs};

use super::{ControlError, ControlPlane, eventually};

/// How long the kinds of a cluster may take to be told: a group that is just going away answers 404 for a moment.
const LIMIT: Duration = Duration::from_secs(60);
/// What comes and goes by itself: Events are forgotten, and the leases of nodes are renewed by whoever plays them.
const BY_ITSELF: [&str; 2] = ["Event", "ComponentStatus"];

impl ControlPlane {
    /// Every object of every kind, as `Pod default/web-1`, but what comes and goes by itself.
    pub async fn everything(&self) -> Result<BTreeSet<String>, ControlError> {
        Ok(self.inventory().await?.into_iter().map(|(object, _)| object).collect())
    }

    /// The same with uids, as `Pod default/web-1 1f0c…`: one that was made again is another one.
    pub async fn everything_and_uids(&self) -> Result<BTreeSet<String>, ControlError> {
        Ok(self.inventory().await?.into_iter().map(|(object, uid)| format!("{object} {uid}")).collect())
    }

    async fn inventory(&self) -> Result<Vec<(String, String)>, ControlError> {
        eventually("a list of everything", LIMIT, || async {
            let discovery = Discovery::new(self.client()).run().await?;
            let mut all = Vec::new();
            for (resource, capabilities) in discovery.groups().flat_map(ApiGroup::recommended_resources) {
                if BY_ITSELF.contains(&resource.kind.as_str()) || !capabilities.supports_operation(verbs::LIST) {
                    continue;
                }
                let api: Api<DynamicObject> = Api::all_with(self.client(), &resource);
                for object in api.list_metadata(&ListParams::default()).await?.items {
                    let (name, uid) = (object.name_any(), object.uid().unwrap_or_default());
                    match object.namespace().as_deref() {
                        Some("kube-node-lease") => {}
                        Some(namespace) => all.push((format!("{} {namespace}/{name}", resource.kind), uid)),
                        None => all.push((format!("{} {name}", resource.kind), uid)),
                    }
                }
            }
            Ok(Some(all))
        })
        .await
    }
}
