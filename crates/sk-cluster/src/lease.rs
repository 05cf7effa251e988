//! Whether the holder of a Lease still renews it, by our own clock: clocks of two machines are never compared, except
//! that a Lease renewed very long ago counts as expired.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

/// What was renewed so long before its end is over whatever the clocks say: they are minutes apart at most.
const LONG_AGO: Duration = Duration::from_secs(600);

/// From one look to the next, so much counts as silent at most: while the API server is away nobody can renew anything,
/// and nobody looks.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// What one look at a Lease says of its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Nobody holds it.
    Nobody,
    /// The Lease has no times: its holder keeps it until it is deleted.
    Untimed,
    /// It was renewed since it was first read.
    Renews,
    /// Not renewed since the first look, which was too short a time ago to say more.
    Unknown,
    /// Not renewed for as long as it is good.
    Silent,
}

/// What was seen of another's Lease.
#[derive(Clone, Debug, Default)]
pub struct Liveness(Option<Seen>);

#[derive(Clone, Debug)]
struct Seen {
    version: Option<String>,
    last_look: Instant,
    unchanged: Duration,
    was_renewed: bool,
}

impl Liveness {
    /// What a look that was answered `at` says; `now` is what the clock on our wall shows.
    pub fn look(&mut self, lease: &Lease, at: Instant, now: Timestamp) -> Holder {
        let Some(spec) = &lease.spec else { return Holder::Nobody };
        if spec.holder_identity.as_deref().unwrap_or_default().is_empty() {
            return Holder::Nobody;
        }
        let (Some(renewed), Some(seconds)) = (&spec.renew_time, spec.lease_duration_seconds) else {
            return Holder::Untimed;
        };
        let good_for = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        let forgotten = SignedDuration::try_from(good_for + LONG_AGO).unwrap_or_default();
        if now.duration_since(renewed.0) > forgotten
            || self.is_silent(lease.metadata.resource_version.clone(), good_for, at)
        {
            return Holder::Silent;
        }
        if self.0.as_ref().is_some_and(|seen| seen.was_renewed) { Holder::Renews } else { Holder::Unknown }
    }

    /// Has another's Lease been in this version for as long as it is good? Every question is a look, answered `at`.
    pub fn is_silent(&mut self, version: Option<String>, good_for: Duration, at: Instant) -> bool {
        match &mut self.0 {
            Some(seen) if seen.version == version => {
                seen.unchanged += at.saturating_duration_since(seen.last_look).min(LONGEST_LOOK);
                seen.last_look = at;
                seen.unchanged >= good_for
            }
            seen => {
                let was_renewed = seen.is_some();
                *seen = Some(Seen { version, last_look: at, unchanged: Duration::ZERO, was_renewed });
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RENEWED: &str = "2026-11-10T13:55:00.000000Z";

    fn now() -> Timestamp {
        // The holder's clock is five minutes late.
        "2026-11-10T14:00:00Z".parse().unwrap()
    }

    fn lease(version: &str, renewed: Option<&str>) -> Lease {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"resourceVersion": version},
            "spec": {
                "holderIdentity": "demo-1", "renewTime": renewed, "leaseDurationSeconds": renewed.map(|_| 15),
            },
        });
        serde_json::from_value(lease).unwrap()
    }

    #[test]
    fn a_holder_lives_as_long_as_it_renews_whatever_its_clock_says() {
        let (mut at, mut liveness) = (Instant::now(), Liveness::default());
        for (version, expected) in [("1", Holder::Unknown), ("2", Holder::Renews), ("3", Holder::Renews)] {
            let held = lease(version, Some(RENEWED));
            assert_eq!(liveness.look(&held, at, now()), expected);
            // For a minute nobody answered; then it is looked at every second.
            at += Duration::from_secs(60);
            for _ in 0..13 {
                assert_eq!(liveness.look(&held, at, now()), expected);
                at += Duration::from_secs(1);
            }
        }
        assert_eq!(liveness.look(&lease("3", Some(RENEWED)), at, now()), Holder::Silent, "for 15 s");
    }

    #[test]
    fn nobody_waits_for_a_holder_of_long_ago() {
        let old = lease("4", Some("2026-11-10T13:49:00.000000Z"));
        assert_eq!(Liveness::default().look(&old, Instant::now(), now()), Holder::Silent);
    }

    #[test]
    fn a_lease_without_a_time_or_a_holder_is_told_apart() {
        let look = |lease: &Lease| Liveness::default().look(lease, Instant::now(), now());
        assert_eq!(look(&lease("5", None)), Holder::Untimed);
        assert_eq!(look(&Lease::default()), Holder::Nobody);
        let mut given_back = lease("6", Some(RENEWED));
        given_back.spec.as_mut().unwrap().holder_identity = Some(String::new());
        assert_eq!(look(&given_back), Holder::Nobody);
    }
}
