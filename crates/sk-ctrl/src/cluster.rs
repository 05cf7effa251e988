//! Reads, creates and deletes objects whose kind is known at run time only.
//!
//! One rule is enforced here for all of them: an object without the run's label and its root as owner is never changed
//! or deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, ResourceExt};
use serde_json::Value;
use sk_api::simulation::{Simulation, names};
use sk_cluster::certificate;
use sk_cluster::lease::{Holder, Liveness};
use tokio::time::Instant;

use crate::observed::{LeaseHolder, Left, Offer, Part, Seen};
use crate::parts::{Place, Plan};

/// Why a step could not be carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    /// The API server did not do it.
    #[error("{step}: {source}")]
    Request {
        /// What was to be done.
        step: String,
        /// The error.
        #[source]
        source: Box<kube::Error>,
    },
    /// What is there is not what was expected.
    #[error("{step}: {what}")]
    Unexpected {
        /// What was to be done.
        step: String,
        /// What is there.
        what: String,
    },
    /// A certificate could not be made.
    #[error("make the webhook's certificate: {0}")]
    Certificate(#[from] certificate::Error),
    /// The records' folder does not do it.
    #[error(transparent)]
    Records(#[from] crate::records::StoreError),
}

impl ClusterError {
    /// For `map_err`: what was to be done when the request failed.
    pub(crate) fn request(step: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let step = step.into();
        move |source| Self::Request { step, source: Box::new(source) }
    }

    /// Is it a missing permission?
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self.refusal(), Some(("Forbidden", _)))
    }

    /// A refusal that a retry does not change, with the API server's message.
    pub(crate) fn refusal(&self) -> Option<(&'static str, String)> {
        let Self::Request { step, source } = self else { return None };
        let kube::Error::Api(status) = source.as_ref() else { return None };
        let reason = match status.code {
            403 => "Forbidden",
            400 | 422 => "Refused",
            // A namespace that is not there, or a kind that is not installed.
            404 => "Missing",
            _ => return None,
        };
        Some((reason, format!("{step}: {}", status.message)))
    }
}

/// The cluster, seen through one client.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    /// Liveness of the Leases that drivers without a controller may hold, by namespace: ours and the drivers'.
    liveness: Arc<Mutex<BTreeMap<String, Liveness>>>,
}

impl Cluster {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, liveness: Arc::default() }
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(crate) fn simulations(&self) -> Api<Simulation> {
        Api::all(self.client())
    }

    fn api(&self, place: &Place) -> Api<DynamicObject> {
        match &place.namespace {
            Some(namespace) => Api::namespaced_with(self.client(), namespace, &place.resource),
            None => Api::all_with(self.client(), &place.resource),
        }
    }

    pub(crate) async fn find(&self, place: &Place) -> Result<Option<DynamicObject>, ClusterError> {
        self.api(place).get_opt(&place.name).await.map_err(ClusterError::request(format!("get {place}")))
    }

    /// What is there under a part's name.
    pub(crate) async fn see(&self, plan: &Plan<'_>, part: Part) -> Result<Seen, ClusterError> {
        let found = self.find(&plan.place(part)).await?;
        Ok(found.map_or(Seen::Absent, |object| recognise(plan, part, &object)))
    }

    /// Creates an object. An existing one counts as success if it belongs to the run.
    pub(crate) async fn make(&self, plan: &Plan<'_>, part: Part, object: Value) -> Result<(), ClusterError> {
        let place = plan.place(part);
        let step = format!("create {place}");
        let parsed: DynamicObject = parse(&step, object)?;
        match self.api(&place).create(&manager(), &parsed).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => match self.see(plan, part).await? {
                // The next look at the cluster sees it, and decides.
                Seen::Ours | Seen::Foreign | Seen::Going | Seen::Stale | Seen::Pending { .. } => Ok(()),
                Seen::Absent => {
                    Err(ClusterError::Unexpected { step, what: "it is created and deleted again and again".to_owned() })
                }
            },
            result => result.map(drop).map_err(ClusterError::request(step)),
        }
    }

    /// Replaces an object of the run, by server-side apply.
    pub(crate) async fn renew(&self, plan: &Plan<'_>, part: Part, object: Value) -> Result<(), ClusterError> {
        let place = plan.place(part);
        let step = format!("renew {place}");
        let seen = self.see(plan, part).await?;
        if matches!(seen, Seen::Foreign) {
            return Err(ClusterError::Unexpected { step, what: "it is not the simulation's".to_owned() });
        }
        let parameters = PatchParams::apply(names::CONTROLLER_MANAGER).force();
        let renewed = self.api(&place).patch(&place.name, &parameters, &Patch::Apply(object)).await;
        renewed.map(drop).map_err(ClusterError::request(step))
    }

    /// Deletes an object with this uid, in the foreground. 404, or 409 for another uid, counts as success.
    pub(crate) async fn delete(&self, place: &Place, uid: Option<String>) -> Result<(), ClusterError> {
        let preconditions = Some(Preconditions { uid, resource_version: None });
        let parameters = DeleteParams { preconditions, ..DeleteParams::foreground() };
        match self.api(place).delete(&place.name, &parameters).await {
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
            result => result.map(drop).map_err(ClusterError::request(format!("delete {place}"))),
        }
    }

    /// What is still there of a simulation: its roots, and what was replayed. A driver without a controller may replay
    /// under the same name; its root belongs to nothing, and neither that nor what it owns is the Simulation's.
    pub(crate) async fn left(&self, name: &str) -> Result<Vec<Left>, ClusterError> {
        let parameters = ListParams::default().labels(&format!("{}={name}", names::SIMULATION_LABEL));
        let mut theirs = BTreeSet::new();
        let mut left = Vec::new();
        for (group, kind, plural) in
            [(names::GROUP, "SimulationRoot", "simulationroots"), ("", "Namespace", "namespaces")]
        {
            let resource = crate::parts::resource(group, kind, plural);
            let api: Api<DynamicObject> = Api::all_with(self.client(), &resource);
            let listed = api.list_metadata(&parameters).await;
            for object in listed.map_err(ClusterError::request(format!("list {plural}")))? {
                if is_anothers(&object.metadata, &theirs) {
                    theirs.extend(object.uid());
                } else {
                    left.push(Left { kind: kind.to_owned(), name: object.name_any() });
                }
            }
        }
        Ok(left)
    }

    /// The driver's pods that are still there: whoever deletes a Job may leave them running for a while.
    pub(crate) async fn driver_pods(&self, namespace: &str, name: &str) -> Result<Vec<Left>, ClusterError> {
        let of_driver = format!("{}={name},{}={}", names::SIMULATION_LABEL, names::COMPONENT_LABEL, names::DRIVER);
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let listed = api.list_metadata(&ListParams::default().labels(&of_driver)).await;
        let listed = listed.map_err(ClusterError::request("list the driver's pods"))?;
        Ok(listed.iter().map(|pod| Left { kind: "Pod".to_owned(), name: pod.name_any() }).collect())
    }

    /// Can a part be had whose kind not every cluster has? A controller that was installed without it has no right to it,
    /// and asking again is in vain.
    pub(crate) async fn offers(&self, plan: &Plan<'_>, part: Part) -> Result<Offer, ClusterError> {
        let place = plan.place(part);
        if !self.serves(&place.resource.api_version).await? {
            return Ok(Offer::Absent);
        }
        match self.find(&place).await {
            Err(error) if error.is_forbidden() => Ok(Offer::Forbidden),
            found => found.map(|_| Offer::Open),
        }
    }

    /// Does the cluster serve this group and version?
    async fn serves(&self, group_version: &str) -> Result<bool, ClusterError> {
        match self.client.list_api_group_resources(group_version).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(false),
            Err(error) => Err(ClusterError::request(format!("ask for {group_version}"))(error)),
        }
    }

    fn leases(&self, namespace: &str) -> Api<Lease> {
        Api::namespaced(self.client(), namespace)
    }

    /// The Lease, if it exists.
    pub(crate) async fn lease(&self, namespace: &str) -> Result<Option<Lease>, ClusterError> {
        let step = format!("get Lease {namespace}/{}", names::LEASE);
        self.leases(namespace).get_opt(names::LEASE).await.map_err(ClusterError::request(step))
    }

    /// The driver without a controller that holds a Lease, if it lives.
    fn living_driver(&self, namespace: &str, lease: &Lease) -> Option<LeaseHolder> {
        let mut all = self.liveness.lock().unwrap_or_else(PoisonError::into_inner);
        let liveness = all.entry(namespace.to_owned()).or_default();
        match liveness.look(lease, Instant::now(), Timestamp::now()) {
            Holder::Renews | Holder::Unknown => {
                let holder = holder(lease)?.to_owned();
                Some(LeaseHolder { holder, namespace: namespace.to_owned() })
            }
            // A Lease that says nothing of time is a Simulation's, which holds it until it gives it back.
            Holder::Nobody | Holder::Untimed | Holder::Silent => None,
        }
    }

    /// A driver that runs on this cluster without a controller. Its Lease is where such drivers have it, or, of those
    /// that take it from their kubeconfig, perhaps in our own namespace.
    pub(crate) async fn other_driver(&self, namespace: &str) -> Result<Option<LeaseHolder>, ClusterError> {
        for namespace in [namespace, names::DRIVER_LEASE_NAMESPACE] {
            let lease = self.lease(namespace).await?;
            let other_driver = lease.and_then(|lease| self.living_driver(namespace, &lease));
            if other_driver.is_some() {
                return Ok(other_driver);
            }
        }
        Ok(None)
    }

    /// Takes the Lease: creating is what only one can do. One whose holder is gone is removed first; one whose holder
    /// exists, or is a driver that lives, stays, because between the decision and now somebody may have been quicker. The next look at the cluster
    /// shows who.
    pub(crate) async fn take_lease(&self, namespace: &str, holder: &str) -> Result<(), ClusterError> {
        if let Some(found) = self.lease(namespace).await? {
            if self.has_holder(&found).await? || self.living_driver(namespace, &found).is_some() {
                return Ok(());
            }
            self.drop_lease(namespace, &found).await?;
        }
        let step = format!("create Lease {namespace}/{}", names::LEASE);
        let lease = parse(
            &step,
            serde_json::json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": names::LEASE},
                "spec": {"holderIdentity": holder, "acquireTime": micro_now()},
            }),
        )?;
        match self.leases(namespace).create(&manager(), &lease).await {
            // Somebody was quicker; the next look at the cluster shows who.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            result => result.map(drop).map_err(ClusterError::request(step)),
        }
    }

    /// Is the Simulation that a Lease names still there? A finished one gives its Lease back itself.
    async fn has_holder(&self, lease: &Lease) -> Result<bool, ClusterError> {
        let Some(holder) = holder(lease) else { return Ok(false) };
        let found = self.simulations().get_metadata_opt(holder).await;
        Ok(found.map_err(ClusterError::request(format!("get Simulation {holder}")))?.is_some())
    }

    /// Deletes the Lease, if it is still the very one that was seen.
    pub(crate) async fn drop_lease(&self, namespace: &str, seen: &Lease) -> Result<(), ClusterError> {
        let preconditions = Some(Preconditions { uid: seen.uid(), resource_version: seen.resource_version() });
        let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
        match self.leases(namespace).delete(names::LEASE, &parameters).await {
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
            result => {
                let step = format!("delete Lease {namespace}/{}", names::LEASE);
                result.map(drop).map_err(ClusterError::request(step))
            }
        }
    }
}

/// The holder of a Lease.
pub(crate) fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// What an object under a part's name is: the run's own if it has its label and its owner. What has the label, and for
/// owner a root of the same name that somebody has deleted, is on its way out like what is being deleted.
pub(crate) fn recognise(plan: &Plan<'_>, part: Part, object: &DynamicObject) -> Seen {
    let label = object.labels().get(names::SIMULATION_LABEL).map(String::as_str);
    let owner = match part {
        Part::Root => plan.simulation.metadata.uid.as_deref().unwrap_or_default(),
        _ => plan.root_uid,
    };
    let owned = object.owner_references().iter().any(|reference| reference.uid == owner);
    let orphan = part != Part::Root && is_orphan(plan, object);
    match (label == Some(plan.name()), owned) {
        (true, true) if object.metadata.deletion_timestamp.is_none() => Seen::Ours,
        (true, true) => Seen::Going,
        (true, false) if orphan => Seen::Going,
        _ => Seen::Foreign,
    }
}

/// Is it what a driver without a controller has made: a root that belongs to nothing, or what such a root owns? A root of
/// ours always has an owner, even if that is gone.
fn is_anothers(object: &ObjectMeta, roots: &BTreeSet<String>) -> bool {
    let labels = object.labels.iter().flatten();
    let of_driver = labels.into_iter().any(|(key, of)| key == names::COMPONENT_LABEL && of == names::DRIVER);
    let mut owners = object.owner_references.iter().flatten().peekable();
    if owners.peek().is_none() { of_driver } else { owners.any(|owner| roots.contains(&owner.uid)) }
}

/// Did it belong to a root of this simulation that is no more? The garbage collector is about to take it.
fn is_orphan(plan: &Plan<'_>, object: &DynamicObject) -> bool {
    let root = names::metaroot(plan.name());
    let of_a_root = |reference: &&OwnerReference| reference.kind == "SimulationRoot" && reference.name == root;
    object.owner_references().iter().find(of_a_root).is_some_and(|reference| reference.uid != plan.root_uid)
}

fn manager() -> PostParams {
    PostParams { field_manager: Some(names::CONTROLLER_MANAGER.to_owned()), ..PostParams::default() }
}

fn micro_now() -> String {
    Timestamp::now().strftime("%FT%T%.6fZ").to_string()
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(step: &str, value: Value) -> Result<T, ClusterError> {
    serde_json::from_value(value)
        .map_err(|error| ClusterError::Unexpected { step: step.to_owned(), what: error.to_string() })
}

#[cfg(test)]
mod tests;
