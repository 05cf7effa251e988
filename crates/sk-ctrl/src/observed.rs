//! The state that the controller decides on: plain data, read before every decision.
//!
//! Nothing here comes from a cache. A run has a dozen steps and a cluster runs one Simulation at a time, so reading
//! from the API server is cheap, and no decision is based on stale data.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use sk_api::simulation::{HookProgress, Simulation, SimulationStatus, State, names};

use crate::driver::Driver;

/// The condition that says how a run ended, written before anything is taken down.
pub const CONCLUDED: &str = "Concluded";

/// What is known of one Simulation and everything around it.
#[derive(Clone, Debug)]
pub struct Observed {
    /// When this was seen.
    pub now: Timestamp,
    /// The Simulation.
    pub simulation: Simulation,
    /// The Simulation whose turn it is.
    pub turn: Turn,
    /// A driver that runs here without a controller, and the Lease that it holds.
    pub other_driver: Option<LeaseHolder>,
    /// What is there of the parts of its run.
    pub parts: BTreeMap<Part, Seen>,
    /// How its driver does.
    pub driver: Driver,
    /// What the cluster offers beyond Kubernetes.
    pub offers: Offers,
    /// What is the matter with the Secrets that it wants to hand to its driver; those that may be handed are not here.
    pub refused_secrets: BTreeMap<String, SecretRefusal>,
    /// Replayed namespaces, roots and driver's pods of this Simulation that are still there.
    pub left: Vec<Left>,
    /// Does the controller keep anything of it, be it only a log?
    pub kept: bool,
    /// Does the controller keep a record of it?
    pub recorded: bool,
}

/// Why a Secret is not handed to a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretRefusal {
    /// There is none.
    Missing,
    /// The Secret has no label that allows it: otherwise whoever may create Simulations could read any Secret.
    Unlabelled,
}

/// A replayed namespace, a root or a driver's pod that is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// A driver without a controller that holds a Lease on this cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    /// How it calls itself.
    pub holder: String,
    /// The namespace of the Lease that it holds.
    pub namespace: String,
}

/// Whose turn it is: one simulation runs at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// This one has the Lease.
    Mine,
    /// The Lease is free, and this Simulation is the first in line.
    Free,
    /// Another one has it, or is before this one in line.
    Blocked {
        /// Which.
        by: String,
    },
}

/// One object that a run needs, in the order in which they are made. All but the first belong to the root, so that
/// whatever happens, deleting the root takes everything away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The SimulationRoot.
    Root,
    /// The driver's namespace.
    Namespace,
    /// The driver's ServiceAccount.
    Account,
    /// What gives that account the driver's rights.
    Binding,
    /// The certificate authority that the driver trusts when it uploads its record.
    Trust,
    /// The webhook's certificate.
    Certificate,
    /// What leads to the webhook.
    Service,
    /// The webhook's configuration.
    Webhook,
    /// A Prometheus.
    Metrics,
    /// The driver.
    Job,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Root,
        Self::Namespace,
        Self::Account,
        Self::Binding,
        Self::Trust,
        Self::Certificate,
        Self::Service,
        Self::Webhook,
        Self::Metrics,
        Self::Job,
    ];
}

/// What is there under a part's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing.
    Absent,
    /// What this run has made.
    Ours,
    /// Something that this run has not made.
    Foreign,
    /// What this run has made, on its way out.
    Going,
    /// What this run has made, but it has to be renewed.
    Stale,
    /// Another controller is still at work on it.
    Pending {
        /// Since when.
        since: Timestamp,
    },
}

/// What the cluster offers beyond Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// The Prometheus operator's kinds.
    pub prometheus: Offer,
    /// cert-manager's kinds.
    pub cert_manager: Offer,
}

/// What can be had of something that not every cluster has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// It is not installed, or not requested.
    #[default]
    Absent,
    /// It is installed, but the controller has no permission for it.
    Forbidden,
    /// It can be used.
    Open,
}

/// How a run ended: kept in the condition [`CONCLUDED`], and in the end the Simulation's reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Finished, or Failed?
    pub success: bool,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

impl Verdict {
    /// All repetitions are done.
    pub fn success(message: impl Into<String>) -> Self {
        Self { success: true, reason: "Succeeded".to_owned(), message: message.into() }
    }

    /// It has failed.
    pub fn failure(reason: &str, message: impl Into<String>) -> Self {
        Self { success: false, reason: reason.to_owned(), message: message.into() }
    }
}

impl Observed {
    /// The Simulation's name.
    pub fn name(&self) -> &str {
        self.simulation.metadata.name.as_deref().unwrap_or_default()
    }

    /// What is there under a part's name.
    pub fn seen(&self, part: Part) -> Seen {
        self.parts.get(&part).copied().unwrap_or(Seen::Absent)
    }

    /// Its status, an empty one if it has none.
    pub fn status(&self) -> SimulationStatus {
        self.simulation.status.clone().unwrap_or_default()
    }

    /// Which hooks have run.
    pub fn hooks(&self) -> HookProgress {
        self.status().hooks.unwrap_or_default()
    }

    /// Will the API server keep it until the controller has cleaned up?
    pub fn is_claimed(&self) -> bool {
        self.simulation.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == names::FINALIZER)
    }

    /// Where its record is: in the folder that it asked for, or with the controller if that has one.
    pub fn record_path(&self) -> Option<String> {
        let kept = self.recorded.then(|| format!("/records/{}", self.name()));
        self.simulation.spec.record.path.clone().or(kept)
    }

    /// How the run ended, if it has.
    pub fn verdict(&self) -> Option<Verdict> {
        let conditions = self.simulation.status.as_ref().map(|status| &status.conditions[..]).unwrap_or_default();
        let condition = conditions.iter().find(|condition| condition.type_ == CONCLUDED)?;
        Some(Verdict {
            success: condition.status == "True",
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        })
    }
}

/// Whose turn it is, given who holds the Lease and all Simulations. A holder that is no more holds nothing; one that never
/// was a Simulation is a [`LeaseHolder`]. Of those that wait, the oldest is the first; of two of the same second, the first by name.
pub fn turn(name: &str, holder: Option<&str>, simulations: &[Simulation]) -> Turn {
    let named = |wanted: &str| simulations.iter().any(|simulation| simulation.metadata.name.as_deref() == Some(wanted));
    match holder {
        Some(holder) if holder == name => return Turn::Mine,
        Some(holder) if named(holder) => return Turn::Blocked { by: holder.to_owned() },
        _ => {}
    }
    let waiting = simulations.iter().filter(|simulation| {
        let state = simulation.status.as_ref().and_then(|status| status.state);
        simulation.metadata.deletion_timestamp.is_none() && !state.is_some_and(State::is_final)
    });
    let first = waiting
        .min_by_key(|simulation| {
            (simulation.metadata.creation_timestamp.as_ref().map(|time| time.0), simulation.metadata.name.clone())
        })
        .and_then(|simulation| simulation.metadata.name.clone());
    match first {
        Some(first) if first != name => Turn::Blocked { by: first },
        _ => Turn::Free,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn simulation(name: &str, created: &str, state: Option<&str>) -> Simulation {
        serde_json::from_value(json!({
            "apiVersion": "simkube.io/v1", "kind": "Simulation",
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {"driver": {"tracePath": "/a"}}, "status": {"state": state},
        }))
        .unwrap()
    }

    #[test]
    fn simulations_get_their_turn_in_the_order_of_their_creation() {
        let (early, late) = ("2026-11-10T14:00:00Z", "2026-11-10T14:00:01Z");
        let all = [
            simulation("done", "2026-11-10T13:00:00Z", Some("Finished")),
            simulation("b", early, Some("Blocked")),
            simulation("a", early, None),
            simulation("late", late, None),
        ];
        let blocked = |by: &str| Turn::Blocked { by: by.to_owned() };
        for (name, holder, wanted) in [
            ("a", None, Turn::Free),
            ("b", None, blocked("a")),
            ("late", None, blocked("a")),
            ("late", Some("late"), Turn::Mine),
            ("a", Some("late"), blocked("late")),
            ("a", Some("deleted long ago"), Turn::Free),
            ("b", Some("done"), blocked("done")),
        ] {
            assert_eq!(turn(name, holder, &all), wanted, "{name} when {holder:?} holds the Lease");
        }
    }
}
