//! Whether the holder of a Lease still renews it, by our own clock: clocks of two machines are never compared, except
//! that a Lease renewed very long ago counts as expired.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use tokio::time::Instant;

/// What was renewed so long before its end is over whatever the clocks say: they are minutes apart at most.
const LONG_AGO: Duration = Duration::from_secs(600);

/// From one look to the next, so much counts as silent at most: while the API server is away nobody can renew anything,
/// and nobody looks.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// What was seen of another's Lease.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseLiveness(Option<Seen>);

#[derive(Clone, Debug)]
struct Seen {
    version: Option<String>,
    last_look: Instant,
    unchanged: Duration,
}

impl LeaseLiveness {
    /// Has another's Lease been unchanged for as long as it is good? Every question is a look.
    pub(crate) fn is_silent(&mut self, version: Option<String>, good_for: Duration) -> bool {
        let now = Instant::now();
        match &mut self.0 {
            Some(seen) if seen.version == version => {
                seen.unchanged += (now - seen.last_look).min(LONGEST_LOOK);
                seen.last_look = now;
                seen.unchanged >= good_for
            }
            _ => {
                self.0 = Some(Seen { version, last_look: now, unchanged: Duration::ZERO });
                false
            }
        }
    }

    /// The driver that runs without a controller and holds this Lease, unless it is silent. Other Leases say nothing of
    /// time: a Simulation holds one until it gives it back.
    pub(crate) fn living_driver(&mut self, lease: &Lease, now: Timestamp) -> Option<String> {
        let spec = lease.spec.as_ref()?;
        let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty())?;
        let renewed = spec.renew_time.as_ref()?.0;
        let good_for = Duration::from_secs(u64::try_from(spec.lease_duration_seconds?).unwrap_or_default());
        let forgotten = SignedDuration::try_from(good_for + LONG_AGO).unwrap_or_default();
        let silent = now.duration_since(renewed) > forgotten || self.is_silent(lease.resource_version(), good_for);
        (!silent).then_some(holder)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(version: &str, renewed: Option<&str>) -> Lease {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"resourceVersion": version},
            "spec": {
                "holderIdentity": "demo-1", "renewTime": renewed, "leaseDurationSeconds": renewed.map(|_| 15),
            },
        });
        serde_json::from_value(lease).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_driver_lives_as_long_as_it_renews_whatever_its_clock_says() {
        let now: Timestamp = "2026-11-10T14:00:00Z".parse().unwrap();
        let mut lease_liveness = LeaseLiveness::default();
        // Its clock is five minutes late.
        for version in ["1", "2", "3"] {
            let held = lease(version, Some("2026-11-10T13:55:00.000000Z"));
            assert_eq!(lease_liveness.living_driver(&held, now).as_deref(), Some("demo-1"));
            // For a minute nobody answered; then it is looked at every second.
            tokio::time::sleep(Duration::from_secs(60)).await;
            for _ in 0..13 {
                assert_eq!(lease_liveness.living_driver(&held, now).as_deref(), Some("demo-1"));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        let silent = lease("3", Some("2026-11-10T13:55:00.000000Z"));
        assert_eq!(lease_liveness.living_driver(&silent, now), None, "for 15 s");
        let old = lease("4", Some("2026-11-10T13:49:00.000000Z"));
        assert_eq!(lease_liveness.living_driver(&old, now), None, "nobody has to wait for one of long ago");
        assert_eq!(lease_liveness.living_driver(&lease("5", None), now), None, "a Simulation's says nothing of time");
    }
}
