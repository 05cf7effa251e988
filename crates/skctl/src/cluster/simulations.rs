//! Creates, reads, pauses and deletes Simulations.
//!
//! Only the Simulation itself is changed here; the controller does the rest.

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use sk_api::simulation::{Simulation, State, names};
use sk_ctrl::install::mark;

use super::apply::FIELD_MANAGER;
use super::{Cluster, words};

/// Simulations that are listed. A person reads no more, and each is a few kilobytes.
const MAX_LISTED: u32 = 500;
/// Events of one Simulation; Kubernetes forgets them after an hour.
const MAX_EVENTS: u32 = 200;

/// Why something could not be done with a Simulation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SimulationError {
    #[error("there is no Simulation {name} in {cluster}; `skctl list --cluster` shows all of them")]
    NoSuch { name: String, cluster: String },
    #[error("{cluster} does not know Simulations; `skctl install sim` prepares it")]
    NotInstalled { cluster: String },
    #[error(
        "{cluster} is not marked as one for simulations, so nothing is replayed there: they make thousands of objects. \
         If it is meant: skctl --context {context} install sim"
    )]
    NotMarked { cluster: String, context: String },
    #[error(
        "there is a Simulation {name} already in {cluster}; choose another --name, look at it with `skctl report {name} \
         --cluster`, or remove it with `skctl delete {name}`"
    )]
    Exists { name: String, cluster: String },
    #[error("you may not {step} in {cluster}: {message}; ask for the ClusterRole {role}", role = names::USER_ROLE)]
    Forbidden { step: String, cluster: String, message: String },
    #[error("the server refuses to {step}: {message}")]
    Refused { step: String, message: String },
    #[error(
        "the server refuses to {step}: {message}; if its definition of Simulations is older than this skctl, `skctl \
         install sim` renews it"
    )]
    Invalid { step: String, message: String },
    #[error("cannot {step} in {cluster}: {reason}")]
    Request { step: String, cluster: String, reason: String },
    #[error("Simulation {name} is over ({state}); there is nothing to {verb}")]
    Over { name: String, state: String, verb: &'static str },
}

/// The Simulations of one cluster.
pub(crate) struct Simulations<'a> {
    cluster: &'a Cluster,
    pub(crate) api: Api<Simulation>,
}

impl<'a> Simulations<'a> {
    pub(crate) fn of(cluster: &'a Cluster) -> Self {
        Self { cluster, api: Api::all(cluster.client.clone()) }
    }

    /// Refuses a cluster that is not marked for simulations.
    pub(crate) async fn check_mark(&self) -> Result<(), SimulationError> {
        let marked = mark::is_there(&self.cluster.client, &self.cluster.namespace).await;
        if marked.map_err(|error| self.failure("look for the mark of an installation", error))? {
            return Ok(());
        }
        let (cluster, context) = (self.cluster.to_string(), self.cluster.context.clone());
        Err(SimulationError::NotMarked { cluster, context })
    }

    /// Refuses a name that a Simulation has already.
    pub(crate) async fn check_free(&self, name: &str) -> Result<(), SimulationError> {
        let found = self.api.get_metadata_opt(name).await;
        match found.map_err(|error| self.failure(&format!("look for Simulation {name}"), error))? {
            Some(_) => Err(SimulationError::Exists { name: name.to_owned(), cluster: self.cluster.to_string() }),
            None => Ok(()),
        }
    }

    pub(crate) async fn create(&self, simulation: &Simulation) -> Result<Simulation, SimulationError> {
        let name = simulation.metadata.name.clone().unwrap_or_default();
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        self.api.create(&params, simulation).await.map_err(|error| match error {
            kube::Error::Api(status) if status.code == 409 => {
                SimulationError::Exists { name, cluster: self.cluster.to_string() }
            }
            error => self.failure(&format!("create Simulation {name}"), error),
        })
    }

    pub(crate) async fn get(&self, name: &str) -> Result<Simulation, SimulationError> {
        let found =
            self.api.get_opt(name).await.map_err(|error| self.failure(&format!("get Simulation {name}"), error))?;
        found.ok_or_else(|| SimulationError::NoSuch { name: name.to_owned(), cluster: self.cluster.to_string() })
    }

    pub(crate) async fn list(&self) -> Result<Vec<Simulation>, SimulationError> {
        let listed = self.api.list(&ListParams::default().limit(MAX_LISTED)).await;
        Ok(listed.map_err(|error| self.failure("list Simulations", error))?.items)
    }

    /// The controller's Events about it, oldest first.
    pub(crate) async fn events(&self, simulation: &Simulation) -> Result<Vec<Event>, SimulationError> {
        let api: Api<Event> = Api::all(self.cluster.client.clone());
        let uid = simulation.metadata.uid.as_deref().unwrap_or_default();
        let params = ListParams::default().fields(&format!("involvedObject.uid={uid}")).limit(MAX_EVENTS);
        let listed = api.list(&params).await.map_err(|error| self.failure("list its Events", error))?;
        let mut events = listed.items;
        events.sort_by_key(|event| event_time(event).map(|time| time.0));
        Ok(events)
    }

    /// Lets it wait from now on, or go on.
    pub(crate) async fn set_paused(&self, name: &str, since: Option<Time>) -> Result<(), SimulationError> {
        let verb = if since.is_some() { "pause" } else { "resume" };
        let state = self.get(name).await?.status.and_then(|status| status.state);
        if let Some(state) = state.filter(|state| state.is_final()) {
            return Err(SimulationError::Over { name: name.to_owned(), state: state_name(Some(state)), verb });
        }
        let patch = Patch::Merge(json!({"spec": {"pausedTime": since}}));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patched = self.api.patch(name, &params, &patch).await;
        patched.map(drop).map_err(|error| self.failure(&format!("{verb} Simulation {name}"), error))
    }

    /// Requests its deletion; the controller cleans up first.
    pub(crate) async fn delete(&self, name: &str) -> Result<(), SimulationError> {
        match self.api.delete(name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => self.get(name).await.map(drop),
            Err(error) => Err(self.failure(&format!("delete Simulation {name}"), error)),
        }
    }

    pub(crate) fn failure(&self, step: &str, error: kube::Error) -> SimulationError {
        let (step, cluster) = (step.to_owned(), self.cluster.to_string());
        match error {
            // The path itself is unknown, not an object on it: then the kind is.
            kube::Error::Api(status) if status.code == 404 => SimulationError::NotInstalled { cluster },
            kube::Error::Api(status) if status.code == 403 => {
                SimulationError::Forbidden { step, cluster, message: status.message.clone() }
            }
            kube::Error::Api(status) if status.code == 422 => {
                SimulationError::Invalid { step, message: status.message.clone() }
            }
            kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 401 => {
                SimulationError::Refused { step, message: status.message.clone() }
            }
            error => SimulationError::Request { step, cluster, reason: words(&error) },
        }
    }
}

/// The last time of an Event.
pub(crate) fn event_time(event: &Event) -> Option<Time> {
    let micro = event.event_time.as_ref().map(|time| Time(time.0));
    event.last_timestamp.clone().or(micro).or_else(|| event.metadata.creation_timestamp.clone())
}

/// The state as it is written; one that the controller has not seen yet is new.
pub(crate) fn state_name(state: Option<State>) -> String {
    state.map_or_else(|| "New".to_owned(), |state| format!("{state:?}"))
}
