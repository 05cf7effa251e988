//! The QoS class of a pod, from its requests and limits (`ComputePodQOS`, 1.36).

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};
use sk_core::Quantity;

use super::{Container, Pod, PodSpec};

type Status = Arc<Map<String, Value>>;

/// The index of BestEffort, the class of pods without requests, in [`STATUSES`].
const BEST_EFFORT: usize = 2;

/// The three statuses that there are, each shared by all pods that have it.
static STATUSES: LazyLock<[Status; 3]> = LazyLock::new(|| {
    ["Guaranteed", "Burstable", "BestEffort"]
        .map(|class| Arc::new(Map::from_iter([("qosClass".to_owned(), Value::from(class))])))
});

/// What the status of a new pod says besides its phase.
pub(crate) fn status_of(spec: &PodSpec) -> Status {
    STATUSES[class_of(spec)].clone()
}

/// A status that a client wrote without the class gets it again.
pub(crate) fn complete(pod: &mut Pod) {
    let known = status_of(&pod.spec);
    match &mut pod.status.rest {
        None => pod.status.rest = Some(known),
        Some(rest) if rest.contains_key("qosClass") => {}
        Some(rest) => Arc::make_mut(rest).extend((*known).clone()),
    }
}

/// Does a pod ask for nothing and limit nothing?
pub(crate) fn is_best_effort(spec: &PodSpec) -> bool {
    class_of(spec) == BEST_EFFORT
}

fn class_of(spec: &PodSpec) -> usize {
    let containers = || spec.containers.iter().chain(&spec.init_containers);
    let counted =
        |name: &str, amount: &Quantity| ["cpu", "memory"].contains(&name) && *amount > Quantity::from_value(0);
    let whole = spec.resources.as_ref().filter(|whole| !whole.requests.is_empty() || !whole.limits.is_empty());
    let sections: Vec<(&_, &_)> = match whole {
        Some(whole) => vec![(&whole.requests, &whole.limits)],
        None => containers().map(|Container { resources, .. }| (&resources.requests, &resources.limits)).collect(),
    };
    let asks = sections
        .iter()
        .any(|(requests, limits)| requests.iter().chain(limits.iter()).any(|(name, amount)| counted(name, amount)));
    let is_guaranteed = sections.iter().all(|(requests, limits)| {
        ["cpu", "memory"].iter().all(|name| {
            limits
                .get(*name)
                .is_some_and(|limit| counted(name, limit) && requests.get(*name).is_none_or(|r| r == limit))
        })
    });
    match (asks, is_guaranteed) {
        (false, _) => BEST_EFFORT,
        (true, true) => 0,
        (true, false) => 1,
    }
}
