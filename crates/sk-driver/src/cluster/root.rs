//! The run's root: an object that owns everything the run creates, so that all of it goes with it.
//!
//! Created first, deleted last, in the foreground: Kubernetes' garbage collector then removes what it owns, and the root
//! itself only afterwards. A driver that was killed leaves its root behind; the next one of the same simulation finds it
//! by its labels and removes it before it begins. Nothing else is ever deleted.

use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use sk_api::simulation::{SimulationRoot, crds, names};

use super::dress::Root;
use super::request::{Refusal, patiently};
use super::tally::Tally;

/// How long garbage collection may take: 20,000 pods at 100 a second are 200 s.
const GONE_PATIENCE: Duration = Duration::from_secs(600);
const GONE_LOOK: Duration = Duration::from_millis(250);
/// How long the API server may take to serve a new kind.
const ESTABLISHED_PATIENCE: Duration = Duration::from_secs(60);

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
    /// It was deleted, but something that it owns does not go.
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
    pub(crate) tally: &'r Tally,
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
        let metaroot = patiently(self.tally, || api.get_metadata_opt(&above)).await;
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
        let made = patiently(self.tally, || api.create(&parameters, &root)).await;
        let made = match made {
            // The first try's answer was lost: an earlier one would have been removed before.
            Err(refusal) if refusal.is_already_there() => patiently(self.tally, || api.get(&name)).await,
            made => made,
        };
        let made = made.map_err(Self::refused("create", &name))?;
        Ok(Root { uid: made.uid().unwrap_or_default().into(), name: name.into() })
    }

    /// Removes what earlier drivers of this simulation have left, and says how many roots that were.
    pub(crate) async fn remove_leftovers(&self) -> Result<usize, RootError> {
        let selector =
            format!("{}={},{}={}", names::SIMULATION_LABEL, self.simulation, names::COMPONENT_LABEL, names::DRIVER);
        let (api, parameters) = (self.api(), ListParams::default().labels(&selector));
        let found = patiently(self.tally, || api.list(&parameters)).await;
        let found = found.map_err(Self::refused("find", &selector))?;
        for root in &found.items {
            let name = root.name_any();
            tracing::info!(kind = "SimulationRoot", name, "removing what an earlier driver left");
            let root = Root { uid: root.uid().unwrap_or_default().into(), name: name.into() };
            self.remove(&root).await?;
        }
        Ok(found.items.len())
    }

    /// Deletes a root and waits until everything that it owned is gone.
    pub(crate) async fn remove(&self, root: &Root) -> Result<(), RootError> {
        let api = self.api();
        let this_one = Preconditions { uid: Some(root.uid.to_string()), resource_version: None };
        let parameters = DeleteParams::foreground().preconditions(this_one);
        match patiently(self.tally, || api.delete(&root.name, &parameters)).await {
            Err(refusal) if refusal.is_not_found() => return Ok(()),
            Err(refusal) => return Err(Self::refused("delete", &root.name)(refusal)),
            Ok(_) => {}
        }
        let began = Instant::now();
        while began.elapsed() < GONE_PATIENCE {
            let there = patiently(self.tally, || api.get_metadata_opt(&root.name)).await;
            let there = there.map_err(Self::refused("find", &root.name))?;
            if there.is_none_or(|there| there.uid().as_deref() != Some(root.uid.as_str())) {
                return Ok(());
            }
            tokio::time::sleep(GONE_LOOK).await;
        }
        Err(RootError::Lingers { root: root.name.to_string(), waited: GONE_PATIENCE })
    }

    /// Makes sure that the cluster knows roots. Where no controller is installed, the driver brings the kind itself,
    /// marked with the simulation's name, so that it can take it away again.
    pub(crate) async fn need_kind(&self) -> Result<(), RootError> {
        let wrong = |problem: &dyn std::fmt::Display| RootError::Kind(problem.to_string());
        let (api, name) = (self.kinds(), root_kind());
        if patiently(self.tally, || api.get_metadata_opt(&name)).await.map_err(|error| wrong(&error))?.is_some() {
            return Ok(());
        }
        let mut kind = crds().into_iter().find(|kind| kind.name_any() == name).expect("it is one of the two");
        kind.labels_mut().insert(names::SIMULATION_LABEL.to_owned(), self.simulation.to_owned());
        let parameters = PostParams::default();
        match patiently(self.tally, || api.create(&parameters, &kind)).await {
            Err(refusal) if !refusal.is_already_there() => return Err(wrong(&refusal)),
            _ => tracing::info!("installed the kind SimulationRoot for this run"),
        }
        let began = Instant::now();
        while began.elapsed() < ESTABLISHED_PATIENCE {
            // Served means that it can be listed; the condition says so a moment earlier.
            let parameters = ListParams::default().limit(1);
            if self.api().list(&parameters).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(GONE_LOOK).await;
        }
        Err(wrong(&format!("it is not served after {ESTABLISHED_PATIENCE:?}")))
    }

    /// Takes the kind away if this simulation brought it and nobody else has come to use it.
    pub(crate) async fn release_kind(&self) -> Result<(), RootError> {
        let wrong = |refusal: Refusal| RootError::Kind(refusal.to_string());
        let (api, name) = (self.kinds(), root_kind());
        let Some(kind) = patiently(self.tally, || api.get_metadata_opt(&name)).await.map_err(wrong)? else {
            return Ok(());
        };
        let is_ours = kind.labels().get(names::SIMULATION_LABEL).is_some_and(|name| name == self.simulation);
        let roots = self.api();
        let parameters = ListParams::default().limit(1);
        if !is_ours || !patiently(self.tally, || roots.list(&parameters)).await.map_err(wrong)?.items.is_empty() {
            return Ok(());
        }
        let this_one = Preconditions { uid: kind.uid(), resource_version: kind.resource_version() };
        let parameters = DeleteParams::default().preconditions(this_one);
        match patiently(self.tally, || api.delete(&name, &parameters)).await {
            Err(refusal) if !refusal.is_not_found() => Err(wrong(refusal)),
            _ => Ok(()),
        }
    }

    fn kinds(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.client.clone())
    }
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
