//! One driver at a time where no controller sees to it: a Lease that the driver holds while it runs.
//!
//! A driver begins by removing what an earlier one of the same name has left; two at once would take each other's objects
//! away. The Lease has the name that the controller uses, in the namespace of the kubeconfig's context, so that a driver
//! does not begin beside an installation's simulation there either. Who finds it held waits long enough to see whether the
//! holder still renews it: a live one is named and left alone, a dead one is followed. No two clocks are compared, except
//! that what was renewed long ago is dead.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, Preconditions};
use kube::{Client, ResourceExt};
use serde_json::json;
use sk_api::simulation::names;

use super::request::{Patience, Refusal, patiently};
use super::stop::Stop;

/// A holder that has not renewed for so long is dead. An API server that restarts is away for less.
const HELD: Duration = Duration::from_secs(15);
/// How often it is renewed: three tries fit into the time.
const RENEW: Duration = Duration::from_secs(5);
/// How often somebody who waits looks.
const LOOK: Duration = Duration::from_millis(500);
/// What was renewed so long ago is dead whatever the clocks say: they are minutes apart at most.
const LONG_AGO: Duration = Duration::from_secs(600);

/// Why the Lease was not had.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Somebody runs.
    #[error(
        "{holder} is running on this cluster (Lease {namespace}/{}); wait for its end. If it is certain that it does not \
         run any more: kubectl -n {namespace} delete lease {}",
        names::LEASE,
        names::LEASE
    )]
    Held {
        /// Who.
        holder: String,
        /// Where the Lease is.
        namespace: String,
    },
    /// The API server refused.
    #[error("cannot take the Lease {namespace}/{}: {refusal}", names::LEASE)]
    Refused {
        /// Where it is.
        namespace: String,
        /// What was said.
        refusal: Refusal,
    },
}

/// What one look at the Lease means for whoever wants it.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// Its holder is dead, or nobody holds it.
    Free,
    /// Its holder renews it, or never has to.
    Alive,
    /// Not known yet.
    Wait,
}

/// The Lease while it is held.
pub(crate) struct Held {
    api: Api<Lease>,
    lease: Arc<tokio::sync::Mutex<Lease>>,
    holder: String,
}

impl Held {
    /// Takes the Lease, or says who has it.
    pub(crate) async fn take(client: &Client, patience: &Patience, simulation: &str) -> Result<Self, LeaseError> {
        let namespace = client.default_namespace().to_owned();
        let api: Api<Lease> = Api::default_namespaced(client.clone());
        let refused = |refusal| LeaseError::Refused { namespace: namespace.clone(), refusal };
        let holder = holder(simulation);
        let (began, mut first) = (Instant::now(), None);
        loop {
            let there = patiently(patience, || api.get_opt(names::LEASE)).await.map_err(refused)?;
            let wanted = match &there {
                None => written(&holder, None),
                Some(lease) => match judge(lease, first.get_or_insert_with(|| lease.clone()), began.elapsed()) {
                    Found::Free => written(&holder, lease.metadata.resource_version.as_deref()),
                    Found::Alive => {
                        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
                        return Err(LeaseError::Held { holder: holder.unwrap_or_default(), namespace });
                    }
                    Found::Wait => {
                        if !patience.pause(LOOK).await {
                            return Err(refused(Refusal::Stopped { last: "the Lease is held".to_owned() }));
                        }
                        continue;
                    }
                },
            };
            match put(&api, &wanted, patience).await {
                Ok(Some(lease)) => return Ok(Self { api, lease: Arc::new(tokio::sync::Mutex::new(lease)), holder }),
                // Somebody was quicker: the next look says who.
                Ok(None) => first = None,
                Err(refusal) => return Err(refused(refusal)),
            }
        }
    }

    /// Renews the Lease until it is dropped. If somebody else has taken it, the run stops.
    pub(crate) fn keep(&self, stop: Stop) -> tokio::task::JoinHandle<()> {
        let (api, lease, holder) = (self.api.clone(), self.lease.clone(), self.holder.clone());
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(RENEW).await;
                let mut lease = lease.lock().await;
                let wanted = written(&holder, lease.metadata.resource_version.as_deref());
                match tokio::time::timeout(RENEW, api.replace(names::LEASE, &Default::default(), &wanted)).await {
                    Ok(Ok(renewed)) => *lease = renewed,
                    Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                        // Perhaps by us, if the answer to an earlier try was lost.
                        match tokio::time::timeout(RENEW, api.get_opt(names::LEASE)).await {
                            Ok(Ok(Some(there))) if is_held_by(&there, &holder) => *lease = there,
                            Ok(Ok(_)) => return stop.ask("another driver has taken the Lease of this cluster"),
                            _ => {}
                        }
                    }
                    // An API server that is away gives the Lease to nobody else either.
                    Ok(Err(error)) => tracing::debug!("the Lease was not renewed: {error}"),
                    Err(_) => tracing::debug!("the Lease was not renewed: no answer within {RENEW:?}"),
                }
            }
        })
    }

    /// Gives the Lease up, if it is still ours.
    pub(crate) async fn release(&self, patience: &Patience) {
        let uid = self.lease.lock().await.uid();
        let there = patiently(patience, || self.api.get_opt(names::LEASE)).await;
        let Ok(Some(there)) = there else { return };
        if !is_held_by(&there, &self.holder) || there.uid() != uid {
            return;
        }
        let this_one = Preconditions { uid, resource_version: there.resource_version() };
        let parameters = DeleteParams::default().preconditions(this_one);
        // Whatever is refused here is over in a quarter of a minute by itself.
        if let Err(error) = self.api.delete(names::LEASE, &parameters).await {
            tracing::debug!("the Lease was not given up: {error}");
        }
    }
}

/// Creates or replaces the Lease; `None` if somebody else was quicker.
async fn put(api: &Api<Lease>, wanted: &Lease, patience: &Patience) -> Result<Option<Lease>, Refusal> {
    let parameters = Default::default();
    let taken = patiently(patience, || async {
        let put = match wanted.metadata.resource_version {
            None => api.create(&parameters, wanted).await,
            Some(_) => api.replace(names::LEASE, &parameters, wanted).await,
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

fn judge(lease: &Lease, first: &Lease, watched: Duration) -> Found {
    let Some(spec) = &lease.spec else { return Found::Free };
    if spec.holder_identity.as_deref().unwrap_or_default().is_empty() {
        return Found::Free;
    }
    // The controller's says nothing of time: it is held until it is deleted.
    let (Some(renewed), Some(seconds)) = (&spec.renew_time, spec.lease_duration_seconds) else { return Found::Alive };
    let held = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    let age = jiff::Timestamp::now().duration_since(renewed.0);
    if lease.metadata.resource_version != first.metadata.resource_version {
        Found::Alive
    } else if watched >= held || age > jiff::SignedDuration::try_from(held + LONG_AGO).unwrap_or_default() {
        Found::Free
    } else {
        Found::Wait
    }
}

fn is_held_by(lease: &Lease, holder: &str) -> bool {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()) == Some(holder)
}

fn written(holder: &str, version: Option<&str>) -> Lease {
    let now = jiff::Timestamp::now();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": names::LEASE, "resourceVersion": version, "labels": {names::COMPONENT_LABEL: names::DRIVER}},
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
    fn a_holder_that_renews_is_alive_and_one_that_does_not_is_followed() {
        let at = |version: &str| written("s-1", Some(version));
        let short = Duration::from_secs(1);
        assert_eq!(judge(&at("1"), &at("1"), short), Found::Wait);
        assert_eq!(judge(&at("2"), &at("1"), short), Found::Alive);
        assert_eq!(judge(&at("1"), &at("1"), HELD), Found::Free);
        let mut old = at("1");
        let long_ago = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1);
        old.spec.as_mut().unwrap().renew_time =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(long_ago));
        assert_eq!(judge(&old, &old, short), Found::Free);
        let mut controllers = at("1");
        controllers.spec.as_mut().unwrap().renew_time = None;
        assert_eq!(judge(&controllers, &controllers, HELD * 9), Found::Alive);
        assert_eq!(judge(&Lease::default(), &Lease::default(), short), Found::Free);
    }

    #[test]
    fn two_drivers_of_one_name_are_two() {
        assert_ne!(holder("s"), holder("s"));
        assert!(holder("s").starts_with("s-"));
    }
}
