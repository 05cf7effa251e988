//! Leader election: only the controller that holds the Lease `sk-ctrl` acts.
//!
//! An installation has one controller, and its Deployment stops the old pod before it starts a new one. Still two can run
//! for a while: a node that lost its network keeps running its pod after Kubernetes has started another one elsewhere.
//! Steps on the cluster are idempotent, but hooks are not. So a controller acts only while it holds and renews the Lease. If
//! it cannot renew, it stops acting, and kills a running hook, well before another controller may take the Lease.
//!
//! A restarted container of the same pod continues at once: the pod's name is its identity, and a pod never runs the same
//! container twice.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, PostParams, Preconditions};
use kube::{Client, ResourceExt};
use serde_json::json;
use sk_api::simulation::names;
use sk_cluster::lease::Liveness;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::cluster::holder;

/// Lease duration, renew deadline and retry period.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// How long a Lease is valid without a renewal.
    good_for: Duration,
    /// How long a holder acts without a renewal.
    acts_for: Duration,
    /// How often it is renewed.
    renewal: Duration,
    /// The retry period of a candidate.
    look: Duration,
}

/// A restart of the API server takes seconds, that of a cluster's only one perhaps half a minute: two renewals may fail.
/// The 20 s between the end of acting and the next holder are for clocks of different speed and a hook that has to die.
const PACE: Pace = Pace {
    good_for: Duration::from_secs(60),
    acts_for: Duration::from_secs(40),
    renewal: Duration::from_secs(10),
    look: Duration::from_secs(2),
};

/// What a controller needs to be the one that acts.
#[derive(Clone)]
pub(crate) struct LeaderElection {
    api: Api<Lease>,
    identity: String,
}

impl LeaderElection {
    pub(crate) fn new(client: Client, namespace: &str, identity: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), identity: identity.to_owned() }
    }

    /// Waits until this controller is the one that acts.
    pub(crate) async fn acquire(&self) {
        let mut liveness = Liveness::default();
        let mut told = None;
        loop {
            match self.try_acquire(&mut liveness).await {
                Ok(None) => return info!(identity = self.identity, "this controller acts"),
                Ok(by) if by != told => {
                    info!(
                        ?by,
                        "another controller is the leader: waiting until it stops renewing its Lease for {:?}",
                        PACE.good_for
                    );
                    told = by;
                }
                Ok(_) => {}
                Err(error) => warn!(%error, "the Lease {} cannot be acquired; retrying", names::CONTROLLER_NAME),
            }
            tokio::time::sleep(PACE.look).await;
        }
    }

    /// Renews the Lease; ends when this controller may no longer act.
    pub(crate) async fn renew(&self) {
        let mut renewed = Instant::now();
        while renewed.elapsed() < PACE.acts_for {
            let left = || PACE.acts_for.saturating_sub(renewed.elapsed());
            tokio::time::sleep(PACE.renewal.min(left())).await;
            let asked = Instant::now();
            match tokio::time::timeout(left(), self.try_acquire(&mut Liveness::default())).await {
                Ok(Ok(None)) => renewed = asked,
                Ok(Ok(Some(by))) => return warn!(by, "another controller has become the leader"),
                Ok(Err(error)) => warn!(%error, "the Lease {} was not renewed", names::CONTROLLER_NAME),
                // The time is over, and so is the loop.
                Err(_) => {}
            }
        }
        warn!("the Lease was not renewed for {:?}: this controller is no longer the leader", PACE.acts_for);
    }

    /// Releases the Lease, so that another controller need not wait for its expiry.
    pub(crate) async fn release(&self) {
        let Ok(Some(lease)) = self.api.get_opt(names::CONTROLLER_NAME).await else { return };
        if holder(&lease) == Some(&self.identity) {
            let preconditions = Some(Preconditions { uid: lease.uid(), resource_version: lease.resource_version() });
            let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
            // One that stays runs out.
            let _ = self.api.delete(names::CONTROLLER_NAME, &parameters).await;
        }
    }

    /// Takes or renews the Lease, or says who has it. Of two who try, the API server lets one.
    async fn try_acquire(&self, liveness: &mut Liveness) -> Result<Option<String>, kube::Error> {
        let found = self.api.get_opt(names::CONTROLLER_NAME).await?;
        let other = found.as_ref().and_then(holder).filter(|by| *by != self.identity).map(str::to_owned);
        let version = found.as_ref().and_then(ResourceExt::resource_version);
        if other.is_some() && !liveness.is_silent(version.clone(), PACE.good_for, Instant::now()) {
            return Ok(other);
        }
        let lease = self.lease(version.as_deref());
        let written = match found {
            Some(_) => self.api.replace(names::CONTROLLER_NAME, &PostParams::default(), &lease).await,
            None => self.api.create(&PostParams::default(), &lease).await,
        };
        match written {
            Ok(_) => Ok(None),
            // Somebody was quicker; the next look shows who.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Some("somebody".to_owned())),
            Err(error) => Err(error),
        }
    }

    fn lease(&self, version: Option<&str>) -> Lease {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": names::CONTROLLER_NAME, "resourceVersion": version},
            "spec": {
                "holderIdentity": self.identity, "leaseDurationSeconds": PACE.good_for.as_secs(),
                "renewTime": jiff::Timestamp::now().strftime("%FT%T%.6fZ").to_string(),
            },
        });
        serde_json::from_value(lease).expect("a Lease of plain words and numbers")
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use http::{Method, Request, Response};
    use kube::client::Body;
    use serde_json::Value;

    use super::*;

    // The clock stands still while anything is to be done, and jumps ahead when all wait: a slow machine changes nothing.

    /// An API server with one Lease at most, which knows versions, and which may be away.
    #[derive(Clone, Default)]
    struct Server(Arc<Mutex<(Option<Value>, u64, bool)>>);

    impl Server {
        fn answer(&self, method: &Method, body: Value) -> (u16, Value) {
            let mut state = self.0.lock().unwrap();
            let (lease, version, away) = &mut *state;
            let wanted = body["metadata"]["resourceVersion"].as_str().map(str::to_owned);
            let current = lease.as_ref().and_then(|lease| lease["metadata"]["resourceVersion"].as_str());
            let refuse = |code: u16| {
                let reason = if code == 404 { "NotFound" } else { "Conflict" };
                (code, json!({"kind": "Status", "status": "Failure", "reason": reason, "code": code}))
            };
            match *method {
                _ if *away => refuse(503),
                Method::DELETE => {
                    *lease = None;
                    (200, json!({"kind": "Status", "status": "Success"}))
                }
                Method::GET => lease.clone().map_or_else(|| refuse(404), |lease| (200, lease)),
                Method::POST if lease.is_some() => refuse(409),
                Method::PUT if wanted.as_deref() != current => refuse(409),
                _ => {
                    *version += 1;
                    let mut kept = body;
                    kept["metadata"]["resourceVersion"] = version.to_string().into();
                    *lease = Some(kept.clone());
                    (200, kept)
                }
            }
        }

        fn leader_election(&self, identity: &str) -> LeaderElection {
            let server = self.clone();
            let service = tower::service_fn(move |request: Request<Body>| {
                let server = server.clone();
                async move {
                    let method = request.method().clone();
                    let bytes = request.into_body().collect_bytes().await.unwrap();
                    let (code, body) = server.answer(&method, serde_json::from_slice(&bytes).unwrap_or_default());
                    let body = Body::from(body.to_string().into_bytes());
                    Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
                }
            });
            LeaderElection::new(Client::new(service, "default"), "simkube", identity)
        }

        fn holder(&self) -> Option<String> {
            self.0
                .lock()
                .unwrap()
                .0
                .as_ref()
                .and_then(|lease| lease["spec"]["holderIdentity"].as_str().map(str::to_owned))
        }

        fn is_away(&self, away: bool) {
            self.0.lock().unwrap().2 = away;
        }
    }

    /// Takes the Lease at the first look, or says who has it.
    async fn take(leader_election: &LeaderElection) -> Option<String> {
        leader_election.try_acquire(&mut Liveness::default()).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_controller_waits_as_long_as_the_first_renews() {
        let server = Server::default();
        let (first, second) = (server.leader_election("a"), server.leader_election("b"));
        assert_eq!(take(&first).await, None);
        let keeps = tokio::spawn({
            let first = first.clone();
            async move { first.renew().await }
        });
        let takes = tokio::spawn(async move { second.acquire().await });
        tokio::time::sleep(10 * PACE.good_for).await;
        assert!(!takes.is_finished());
        // Silent, it is succeeded, and finds that out.
        keeps.abort();
        takes.await.unwrap();
        first.renew().await;
        assert_eq!(server.holder().as_deref(), Some("b"));
    }

    #[tokio::test(start_paused = true)]
    async fn who_cannot_renew_stops_acting_and_may_go_on_at_once_when_it_can() {
        let server = Server::default();
        let leader_election = server.leader_election("a");
        assert_eq!(take(&leader_election).await, None);
        server.is_away(true);
        let began = Instant::now();
        leader_election.renew().await;
        assert!((PACE.acts_for..PACE.good_for).contains(&began.elapsed()), "{:?}", began.elapsed());
        server.is_away(false);
        // Nobody else has taken it in between, so that nothing has to run out.
        assert_eq!(take(&leader_election).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_was_given_back_is_anybodys_and_of_two_one_gets_it() {
        let server = Server::default();
        let (first, second) = (server.leader_election("a"), server.leader_election("b"));
        assert_eq!(take(&first).await, None);
        second.release().await;
        assert_eq!(server.holder().as_deref(), Some("a"), "who does not hold it gives nothing back");
        first.release().await;
        assert_eq!(server.holder(), None);
        let (one, other) = tokio::join!(take(&first), take(&second));
        assert_eq!([one, other].iter().filter(|by| by.is_none()).count(), 1);
    }

    #[test]
    fn a_holder_has_stopped_acting_before_another_may_begin() {
        assert!(PACE.acts_for + PACE.renewal < PACE.good_for);
        assert!(2 * PACE.renewal < PACE.acts_for, "two renewals may fail");
    }
}
