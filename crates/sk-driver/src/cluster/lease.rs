//! A Lease that the driver holds while it runs, for runs without a controller: one driver at a time.
//!
//! A driver starts by deleting what an earlier one of the same name has left. Two at once would delete each other's
//! objects, and two of different names would share nodes and spoil each other's figures. The Lease is in one namespace
//! for the whole cluster, whatever the kubeconfig's context says. A driver that finds the Lease held waits long enough
//! to see whether the holder renews it: it refuses to run beside a live holder and names it; it takes over from a dead
//! one. Clocks of two machines are never compared, except that a Lease renewed very long ago counts as expired.
//!
//! A controller has its own Lease. Both first acquire their own and then check the other's, so if both start at the
//! same moment, at least one sees the other.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, ListParams, Preconditions};
use kube::{Client, ResourceExt};
use serde_json::json;
use sk_api::simulation::status::State;
use sk_api::simulation::{Simulation, names};
use sk_cluster::lease::{Holder, Liveness};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::request::{Refusal, RetryPolicy, with_retries};
use super::stop::Stop;

/// A holder that has not renewed for this long is dead. A restarting API server is unreachable for less.
const HELD: Duration = Duration::from_secs(15);
/// How often it is renewed: three tries fit into the time.
const RENEW: Duration = Duration::from_secs(5);
/// Poll interval while waiting.
const LOOK: Duration = Duration::from_millis(500);

use names::{DRIVER_LEASE_NAMESPACE as NAMESPACE, LEASE};

/// Why the Lease was not had.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another driver without a controller runs.
    #[error(
        "{holder} is running on this cluster (Lease {NAMESPACE}/{LEASE}); wait for its end. If it is certain that it does \
         not run any more: kubectl -n {NAMESPACE} delete lease {LEASE}"
    )]
    Held {
        /// Who.
        holder: String,
    },
    /// A controller runs a simulation.
    #[error("the Simulation {simulation} runs on this cluster; wait until it is over, or delete it")]
    Turn {
        /// Which.
        simulation: String,
    },
    /// The API server refused.
    #[error("cannot take the Lease {NAMESPACE}/{LEASE}: {0}")]
    Refused(#[source] Refusal),
}

/// The Lease while it is held. It is renewed until it is dropped.
pub(crate) struct Held {
    api: Api<Lease>,
    lease: Arc<tokio::sync::Mutex<Lease>>,
    holder: String,
    renewing: JoinHandle<()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

impl Held {
    /// Acquires the Lease, or returns who holds it. If another driver takes it later, the run stops.
    pub(crate) async fn take(
        client: &Client,
        retry: &RetryPolicy,
        simulation: &str,
        stop: &Stop,
    ) -> Result<Self, LeaseError> {
        let api: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
        let holder = holder(simulation);
        let lease = Arc::new(tokio::sync::Mutex::new(acquire(&api, retry, &holder).await?));
        let renewing = tokio::spawn(renew(api.clone(), lease.clone(), holder.clone(), stop.clone()));
        let held = Self { api, lease, holder, renewing };
        let why_not = match controllers_turn(client, retry).await {
            Ok(None) => return Ok(held),
            Ok(Some(simulation)) => LeaseError::Turn { simulation },
            Err(refusal) => LeaseError::Refused(refusal),
        };
        held.release(retry).await;
        Err(why_not)
    }

    /// Gives the Lease up, if it is still ours.
    pub(crate) async fn release(&self, retry: &RetryPolicy) {
        self.renewing.abort();
        let uid = self.lease.lock().await.uid();
        let there = with_retries(retry, || self.api.get_opt(LEASE)).await;
        let Ok(Some(there)) = there else { return };
        if !is_held_by(&there, &self.holder) || there.uid() != uid {
            return;
        }
        let this_one = Preconditions { uid, resource_version: there.resource_version() };
        let parameters = DeleteParams::default().preconditions(this_one);
        // Whatever is refused here is over in a quarter of a minute by itself.
        if let Err(error) = self.api.delete(LEASE, &parameters).await {
            tracing::debug!("the Lease was not given up: {error}");
        }
    }
}

/// Waits until the Lease is free, and takes it.
async fn acquire(api: &Api<Lease>, retry: &RetryPolicy, holder: &str) -> Result<Lease, LeaseError> {
    let mut liveness = Liveness::default();
    loop {
        let there = with_retries(retry, || api.get_opt(LEASE)).await.map_err(LeaseError::Refused)?;
        let wanted = match &there {
            None => written(holder, None),
            Some(lease) => match liveness.look(lease, Instant::now(), jiff::Timestamp::now()) {
                Holder::Nobody | Holder::Silent => written(holder, lease.metadata.resource_version.as_deref()),
                Holder::Untimed | Holder::Renews => {
                    let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
                    return Err(LeaseError::Held { holder: holder.unwrap_or_default() });
                }
                Holder::Unknown => {
                    if !retry.pause(LOOK).await {
                        let last = "the Lease is held".to_owned();
                        return Err(LeaseError::Refused(Refusal::Stopped { last }));
                    }
                    continue;
                }
            },
        };
        match put(api, &wanted, retry).await {
            Ok(Some(lease)) => return Ok(lease),
            // Whoever was quicker has not been seen before.
            Ok(None) => liveness = Liveness::default(),
            Err(refusal) => return Err(LeaseError::Refused(refusal)),
        }
    }
}

/// Renews the Lease for ever. If it is not ours any more, the run stops.
async fn renew(api: Api<Lease>, lease: Arc<tokio::sync::Mutex<Lease>>, holder: String, stop: Stop) {
    loop {
        tokio::time::sleep(RENEW).await;
        let mut lease = lease.lock().await;
        let wanted = written(&holder, lease.metadata.resource_version.as_deref());
        match tokio::time::timeout(RENEW, api.replace(LEASE, &Default::default(), &wanted)).await {
            Ok(Ok(renewed)) => *lease = renewed,
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                match tokio::time::timeout(RENEW, api.get_opt(LEASE)).await {
                    // By us: the answer to an earlier try was lost.
                    Ok(Ok(Some(there))) if is_held_by(&there, &holder) => *lease = there,
                    Ok(Ok(Some(_))) => return stop.ask("another driver has taken the Lease of this cluster"),
                    Ok(Ok(None)) => return stop.ask("the Lease that this driver held was deleted"),
                    _ => {}
                }
            }
            // An API server that is away gives the Lease to nobody else either.
            Ok(Err(error)) => tracing::debug!("the Lease was not renewed: {error}"),
            Err(_) => tracing::debug!("the Lease was not renewed: no answer within {RENEW:?}"),
        }
    }
}

/// The Simulation of a controller that has its turn, if there is one: its status says so, or the controller's Lease does,
/// which comes first. Where nothing is installed, or may be looked at, there is none.
async fn controllers_turn(client: &Client, retry: &RetryPolicy) -> Result<Option<String>, Refusal> {
    let (leases, named) = (Api::<Lease>::all(client.clone()), format!("metadata.name={LEASE}"));
    let parameters = ListParams::default().fields(&named);
    let leases = with_retries(retry, || leases.list(&parameters)).await.map(|list| list.items).or_else(unseen)?;
    let (simulations, parameters) = (Api::<Simulation>::all(client.clone()), ListParams::default());
    let simulations =
        with_retries(retry, || simulations.list(&parameters)).await.map(|list| list.items).or_else(unseen)?;
    Ok(has_turn(&leases, &simulations))
}

/// What cannot be there or may not be looked at is not there.
fn unseen<T>(refusal: Refusal) -> Result<Vec<T>, Refusal> {
    match refusal {
        Refusal::Server { code: 404, .. } => Ok(Vec::new()),
        Refusal::Server { code: 403, words, .. } => {
            tracing::warn!("cannot find out whether a controller runs a Simulation on this cluster: {words}");
            Ok(Vec::new())
        }
        refusal => Err(refusal),
    }
}

fn has_turn(leases: &[Lease], simulations: &[Simulation]) -> Option<String> {
    let controllers = |lease: &&Lease| lease.namespace().as_deref() != Some(NAMESPACE);
    let holds = |name: &str| leases.iter().filter(controllers).any(|lease| is_held_by(lease, name));
    let runs = |simulation: &&Simulation| match simulation.status.as_ref().and_then(|status| status.state) {
        Some(State::Initializing | State::Running | State::Paused | State::Retrying) => true,
        Some(State::Finished | State::Failed) => false,
        Some(State::Blocked) | None => holds(&simulation.name_any()),
    };
    simulations.iter().find(runs).map(ResourceExt::name_any)
}

/// Creates or replaces the Lease; `None` on a conflict.
async fn put(api: &Api<Lease>, wanted: &Lease, retry: &RetryPolicy) -> Result<Option<Lease>, Refusal> {
    let parameters = Default::default();
    let taken = with_retries(retry, || async {
        let put = match wanted.metadata.resource_version {
            None => api.create(&parameters, wanted).await,
            Some(_) => api.replace(LEASE, &parameters, wanted).await,
        };
        match put {
            // Trying that again would only be refused again.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
            Err(kube::Error::Api(status)) if status.code == 404 && wanted.metadata.resource_version.is_some() => {
                Ok(None)
            }
            put => put.map(Some),
        }
    });
    taken.await
}

fn is_held_by(lease: &Lease, holder: &str) -> bool {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()) == Some(holder)
}

fn written(holder: &str, version: Option<&str>) -> Lease {
    let now = jiff::Timestamp::now();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": LEASE, "resourceVersion": version, "labels": {names::COMPONENT_LABEL: names::DRIVER}},
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": HELD.as_secs(),
            "acquireTime": format!("{now:.6}"), "renewTime": format!("{now:.6}"),
        },
    });
    serde_json::from_value(lease).expect("this is a Lease")
}

/// The simulation and a part that no other driver has: two of the same name are two.
fn holder(simulation: &str) -> String {
    // The standard library seeds each of these from the system's randomness.
    format!("{simulation}-{:016x}", RandomState::new().build_hasher().finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controllers_simulation_has_the_turn_as_soon_as_its_lease_is_taken_and_not_longer() {
        let simulation = |state: serde_json::Value| -> Simulation {
            let json = json!({
                "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "a"},
                "spec": {"driver": {"tracePath": "/t"}}, "status": {"state": state},
            });
            serde_json::from_value(json).unwrap()
        };
        let lease = |namespace: &str| {
            let mut lease = written("a", None);
            lease.metadata.namespace = Some(namespace.to_owned());
            lease
        };
        let turn = |state: &str, leases: &[Lease]| has_turn(leases, &[simulation(json!(state))]).is_some();
        for state in ["Initializing", "Running", "Paused", "Retrying"] {
            assert!(turn(state, &[]), "{state}");
        }
        assert!(!turn("Blocked", &[]) && !turn("Blocked", &[lease(NAMESPACE)]));
        assert!(turn("Blocked", &[lease("simkube")]));
        assert!(has_turn(&[lease("simkube")], &[simulation(json!(null))]).is_some());
        assert!(!turn("Finished", &[lease("simkube")]) && !turn("Failed", &[lease("simkube")]));
        assert_eq!(has_turn(&[lease("simkube")], &[]), None, "of a simulation that is gone");
    }

    #[test]
    fn two_drivers_of_one_name_are_two() {
        assert_ne!(holder("s"), holder("s"));
        assert!(holder("s").starts_with("s-"));
    }
}
