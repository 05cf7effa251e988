//! The run's root: an object that owns everything the run creates.
//!
//! It is created first and deleted last, with foreground propagation: the garbage collector deletes what it owns, then
//! the root. A driver that was killed leaves its root behind; the next driver of the same Simulation finds it by its
//! labels and deletes it before it starts. Nothing else is ever deleted.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::PartialObjectMeta;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use sk_api::simulation::{SimulationRoot, crds, names};

use super::request::{Refusal, RetryPolicy, with_retries};
use super::virtualise::Root;

/// How long garbage collection may take: 20,000 pods at 100 a second are 200 s.
const GONE_PATIENCE: Duration = Duration::from_secs(600);
const GONE_LOOK: Duration = Duration::from_millis(250);
/// How long the API server may take to serve a new kind.
const ESTABLISHED_PATIENCE: Duration = Duration::from_secs(60);
/// On a kind that a driver brought, followed by a simulation's name: who uses it.
const USED_BY: &str = "used-by.simkube.io/";
/// How often removing the CRD is tried while others change it. After that it stays, which is harmless.
const RELEASE_TRIES: usize = 5;

/// Why a root could not be made or removed.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// The API server refused.
    #[error("cannot {step} the root {root}: {refusal}")]
    Refused {
        /// `create`, `delete` or `find`.
        step: &'static str,
        /// Which.
        root: String,
        /// What it said.
        refusal: Refusal,
    },
    /// A root of the same simulation, but of the other sort of driver.
    #[error(
        "the root {0} belongs to another simulation of this name, which has a controller where this one has none or the \
         other way round; choose another name, or delete it if it is over: kubectl delete simulationroot {0}"
    )]
    Others(String),
    /// The root was deleted, but an object that it owns remains.
    #[error(
        "the root {root} was deleted {waited:?} ago, but what it owns is not all gone; look for objects with a \
         deletionTimestamp and the label {} (is KWOK running, which ends the pods?)",
        names::SIMULATION_LABEL
    )]
    Lingers {
        /// Which.
        root: String,
        /// For how long it was waited.
        waited: Duration,
    },
    /// The controller's root of the simulation is not there, or going.
    #[error(
        "the simulation's root {0} is not there or being deleted, so nobody would remove what this run makes; \
         the simulation is over, or its controller has not begun it"
    )]
    NoMetaroot(String),
    /// The kind of roots could not be installed.
    #[error("the cluster does not know SimulationRoot, and it cannot be installed: {0}; `skctl install sim` does it")]
    Kind(String),
}

/// Makes and removes the roots of one simulation.
pub(crate) struct Roots<'r> {
    pub(crate) client: &'r Client,
    pub(crate) retry: &'r RetryPolicy,
    pub(crate) simulation: &'r str,
}

impl Roots<'_> {
    fn api(&self) -> Api<SimulationRoot> {
        Api::all(self.client.clone())
    }

    fn refused(step: &'static str, root: &str) -> impl FnOnce(Refusal) -> RootError {
        let root = root.to_owned();
        move |refusal| RootError::Refused { step, root, refusal }
    }

    /// Creates the root of one repetition. It belongs to the controller's root of the simulation, which must be there
    /// if the simulation is a controller's: a root without it would stay when the simulation is gone.
    pub(crate) async fn create(&self, repetition: u32, has_controller: bool) -> Result<Root, RootError> {
        let name = names::driver_root(self.simulation, repetition);
        let (api, above) = (self.api(), names::metaroot(self.simulation));
        let metaroot = with_retries(self.retry, || api.get_metadata_opt(&above)).await;
        let metaroot = metaroot.map_err(Self::refused("find", &above))?;
        let owner = owner(&above, metaroot.map(|root| root.metadata));
        if has_controller && owner.is_none() {
            return Err(RootError::NoMetaroot(above));
        }
        let labels = json!({names::SIMULATION_LABEL: self.simulation, names::COMPONENT_LABEL: names::DRIVER});
        let root: SimulationRoot = serde_json::from_value(json!({
            "apiVersion": "simkube.io/v1", "kind": "SimulationRoot",
            "metadata": {"name": name, "labels": labels, "ownerReferences": Vec::from_iter(owner)}, "spec": {},
        }))
        .expect("this is a SimulationRoot");
        let parameters = PostParams::default();
        let made = with_retries(self.retry, || api.create(&parameters, &root)).await;
        let made = match made {
            // The first try's answer was lost: an earlier one would have been removed before.
            Err(refusal) if refusal.is_already_there() => with_retries(self.retry, || api.get(&name)).await,
            made => made,
        };
        let made = made.map_err(Self::refused("create", &name))?;
        Ok(Root { uid: made.uid().unwrap_or_default().into(), name: name.into() })
    }

    /// Removes what earlier drivers of this simulation have left, and says how many roots that were. A controller's driver
    /// and one without a controller may have simulations of the same name: neither touches what the other has.
    pub(crate) async fn remove_leftovers(&self, has_controller: bool) -> Result<usize, RootError> {
        let selector =
            format!("{}={},{}={}", names::SIMULATION_LABEL, self.simulation, names::COMPONENT_LABEL, names::DRIVER);
        let (api, parameters) = (self.api(), ListParams::default().labels(&selector));
        let found = with_retries(self.retry, || api.list(&parameters)).await;
        let found = found.map_err(Self::refused("find", &selector))?;
        for root in &found.items {
            let name = root.name_any();
            if root.owner_references().is_empty() == has_controller {
                return Err(RootError::Others(name));
            }
            tracing::info!(kind = "SimulationRoot", name, "removing what an earlier driver left");
            let root = Root { uid: root.uid().unwrap_or_default().into(), name: name.into() };
            self.remove(&root).await?;
        }
        Ok(found.items.len())
    }

    /// Deletes a root and waits until everything that it owned is gone.
    pub(crate) async fn remove(&self, root: &Root) -> Result<(), RootError> {
        self.close_namespaces(root).await;
        let api = self.api();
        let this_one = Preconditions { uid: Some(root.uid.to_string()), resource_version: None };
        let parameters = DeleteParams::foreground().preconditions(this_one);
        let deleting = with_retries(self.retry, || async {
            match api.delete(&root.name, &parameters).await {
                Ok(_) => Ok(true),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
                // Not what may pass: another one of that name stands there, so ours is gone.
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
                Err(error) => Err(error),
            }
        });
        if !deleting.await.map_err(Self::refused("delete", &root.name))? {
            return Ok(());
        }
        let began = Instant::now();
        while began.elapsed() < GONE_PATIENCE {
            let there = with_retries(self.retry, || api.get_metadata_opt(&root.name)).await;
            let there = there.map_err(Self::refused("find", &root.name))?;
            if there.is_none_or(|there| there.uid().as_deref() != Some(root.uid.as_str())) {
                return Ok(());
            }
            if !self.retry.pause(GONE_LOOK).await {
                break;
            }
        }
        let waited = Duration::from_secs(began.elapsed().as_secs());
        Err(RootError::Lingers { root: root.name.to_string(), waited })
    }

    /// Deletes the namespaces of a root before it. Garbage collection takes what a root owns in any order, the webhook's
    /// configuration too; where an operator can still make pods then, they would go to real nodes.
    async fn close_namespaces(&self, root: &Root) {
        let (api, ours) =
            (Api::<Namespace>::all(self.client.clone()), format!("{}={}", names::SIMULATION_LABEL, self.simulation));
        let parameters = ListParams::default().labels(&ours);
        let namespaces = with_retries(self.retry, || api.list_metadata(&parameters)).await.map(|list| list.items);
        let is_ours = |namespace: &PartialObjectMeta<Namespace>| {
            namespace.owner_references().iter().any(|owner| owner.uid == root.uid.as_str())
        };
        for namespace in namespaces.unwrap_or_default().into_iter().filter(is_ours) {
            let this_one = Preconditions { uid: namespace.uid(), resource_version: None };
            let (name, parameters) = (namespace.name_any(), DeleteParams::background().preconditions(this_one));
            // What is refused here goes with the root.
            if let Err(error) = api.delete(&name, &parameters).await {
                tracing::debug!(kind = "Namespace", name, "not deleted before the root: {error}");
            }
        }
    }

    /// Makes sure that the cluster knows roots. Where no controller is installed, the driver brings the kind itself; all
    /// drivers that use such a kind are written on it, so that the last one can take it away again.
    pub(crate) async fn need_kind(&self) -> Result<(), RootError> {
        let (api, name) = (self.kinds(), root_kind());
        let began = Instant::now();
        while began.elapsed() < ESTABLISHED_PATIENCE {
            let there =
                with_retries(self.retry, || api.get_metadata_opt(&name)).await.map_err(|error| wrong(&error))?;
            let is_noted = match there.map(|kind| kind.metadata) {
                None => self.bring_kind().await?,
                // The last of its users has just taken it away; it has to be gone first.
                Some(kind) if kind.deletion_timestamp.is_some() => false,
                Some(kind) if is_brought(&kind) => self.note_use(kind.uid, json!("driver")).await?.is_some(),
                Some(_) => true,
            };
            // Served means that it can be listed; the condition says so a moment earlier.
            if is_noted && self.api().list(&ListParams::default().limit(1)).await.is_ok() {
                return Ok(());
            }
            if !self.retry.pause(GONE_LOOK).await {
                break;
            }
        }
        Err(wrong(&format!("it is not served after {:.0} s", began.elapsed().as_secs_f64())))
    }

    /// Creates the CRD. `false`: it exists.
    async fn bring_kind(&self) -> Result<bool, RootError> {
        let mut kind = crds().into_iter().find(|kind| kind.name_any() == root_kind()).expect("it is one of the two");
        kind.labels_mut().insert(names::SIMULATION_LABEL.to_owned(), self.simulation.to_owned());
        kind.annotations_mut().insert(self.use_annotation(), "driver".to_owned());
        let (api, parameters) = (self.kinds(), PostParams::default());
        match with_retries(self.retry, || api.create(&parameters, &kind)).await {
            Err(refusal) if refusal.is_already_there() => Ok(false),
            Err(refusal) => Err(wrong(&refusal)),
            Ok(_) => {
                tracing::info!("installed the kind SimulationRoot for this run");
                Ok(true)
            }
        }
    }

    /// Writes on the kind that this simulation uses it, or with null that it does not any more. `None`: it is gone, or
    /// another one.
    async fn note_use(&self, uid: Option<String>, note: Value) -> Result<Option<ObjectMeta>, RootError> {
        let (api, name) = (self.kinds(), root_kind());
        let patch = Patch::Merge(json!({"metadata": {"uid": uid, "annotations": {self.use_annotation(): note}}}));
        let parameters = PatchParams::default();
        let noted = with_retries(self.retry, || async {
            match api.patch_metadata(&name, &parameters, &patch).await {
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(None),
                noted => noted.map(|kind| Some(kind.metadata)),
            }
        });
        noted.await.map_err(|refusal| wrong(&refusal))
    }

    /// Takes the kind away if drivers brought it and this was the last of them. Whoever comes meanwhile changes it, and
    /// then it is not the one any more that is to be deleted.
    pub(crate) async fn release_kind(&self) -> Result<(), RootError> {
        for _ in 0..RELEASE_TRIES {
            let (api, name) = (self.kinds(), root_kind());
            let there =
                with_retries(self.retry, || api.get_metadata_opt(&name)).await.map_err(|error| wrong(&error))?;
            let Some(kind) = there.map(|kind| kind.metadata).filter(is_brought) else { return Ok(()) };
            let Some(kind) = self.note_use(kind.uid, Value::Null).await? else { continue };
            if self.is_used(&kind).await? {
                return Ok(());
            }
            let this_one = Preconditions { uid: kind.uid.clone(), resource_version: kind.resource_version };
            let parameters = DeleteParams::default().preconditions(this_one);
            match api.delete(&name, &parameters).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(kube::Error::Api(status)) if status.code != 404 => return Err(wrong(&status)),
                Err(error) if !matches!(error, kube::Error::Api(_)) => return Err(wrong(&error)),
                _ => return self.wait_until_kind_is_gone(kind.uid.as_deref()).await,
            }
        }
        Ok(())
    }

    /// The API server takes a moment to stop serving a kind. One that lingers is harmless.
    async fn wait_until_kind_is_gone(&self, uid: Option<&str>) -> Result<(), RootError> {
        let (api, name, began) = (self.kinds(), root_kind(), Instant::now());
        while began.elapsed() < ESTABLISHED_PATIENCE {
            let there =
                with_retries(self.retry, || api.get_metadata_opt(&name)).await.map_err(|error| wrong(&error))?;
            let is_there = there.is_some_and(|kind| kind.uid().as_deref() == uid);
            if !is_there || !self.retry.pause(GONE_LOOK).await {
                break;
            }
        }
        Ok(())
    }

    /// Does somebody else use the kind: another driver, an installation, or a root that nobody accounts for?
    async fn is_used(&self, kind: &ObjectMeta) -> Result<bool, RootError> {
        let mut notes = kind.annotations.iter().flatten();
        if notes.any(|(name, _)| name.starts_with(USED_BY)) {
            return Ok(true);
        }
        let (kinds, installed) = (self.kinds(), format!("simulations.{}", names::GROUP));
        let there = with_retries(self.retry, || kinds.get_metadata_opt(&installed)).await;
        if there.map_err(|refusal| wrong(&refusal))?.is_some() {
            return Ok(true);
        }
        let (roots, parameters) = (self.api(), ListParams::default().limit(1));
        let roots = with_retries(self.retry, || roots.list(&parameters)).await.map_err(|refusal| wrong(&refusal))?;
        Ok(!roots.items.is_empty())
    }

    fn use_annotation(&self) -> String {
        format!("{USED_BY}{}", self.simulation)
    }

    fn kinds(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.client.clone())
    }
}

fn wrong(problem: &dyn std::fmt::Display) -> RootError {
    RootError::Kind(problem.to_string())
}

/// Was the kind brought by a driver, and not by an installation?
fn is_brought(kind: &ObjectMeta) -> bool {
    kind.labels.as_ref().is_some_and(|labels| labels.contains_key(names::SIMULATION_LABEL))
}

/// The reference to the metaroot; `None` if there is none that stays.
fn owner(name: &str, metaroot: Option<ObjectMeta>) -> Option<Value> {
    let uid = metaroot.filter(|metadata| metadata.deletion_timestamp.is_none())?.uid?;
    Some(json!({
        "apiVersion": "simkube.io/v1", "kind": "SimulationRoot", "name": name, "uid": uid, "blockOwnerDeletion": true,
    }))
}

fn root_kind() -> String {
    format!("simulationroots.{}", names::GROUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metaroot_that_is_going_owns_nothing_new() {
        let metadata = |json: Value| serde_json::from_value::<ObjectMeta>(json).unwrap();
        assert_eq!(owner("m", None), None);
        let going = metadata(json!({"uid": "u", "deletionTimestamp": "2026-01-05T09:00:00Z"}));
        assert_eq!(owner("m", Some(going)), None);
        assert_eq!(owner("m", Some(metadata(json!({"uid": "u"})))).unwrap()["uid"], "u");
    }
}
