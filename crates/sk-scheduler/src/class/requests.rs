//! A pod's resource requests (component-helpers `resource/helpers.go`; `framework/types.go`, `CalculateResource`).

use sk_core::resources::{Amounts, pod_requests};
use sk_core::{Quantity, SmolStr};

/// CPU counted for a container that names none, where spreading is scored (`util/pod_resources.go`).
const DEFAULT_CPU: Quantity = Quantity::from_milli(100);
/// Memory counted for a container that names none, where spreading is scored.
const DEFAULT_MEMORY: Quantity = Quantity::from_value(200 * 1024 * 1024);

/// A pod's requests in whole millicores, bytes and units.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requests {
    /// CPU in millicores.
    pub cpu: i64,
    /// Memory in bytes.
    pub memory: i64,
    /// Local disk in bytes.
    pub ephemeral: i64,
    /// Extended resources, huge pages and the like, by name.
    pub scalars: Vec<(SmolStr, i64)>,
    /// CPU as a node counts it where missing requests count too.
    pub nonzero_cpu: i64,
    /// Memory as a node counts it where missing requests count too.
    pub nonzero_memory: i64,
    /// CPU as the pod's own score counts it: of its containers, whatever the pod as a whole asks for.
    pub scored_cpu: i64,
    /// Memory as the pod's own score counts it.
    pub scored_memory: i64,
}

/// What the containers of one pod ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    pub(super) containers: Vec<Amounts>,
    /// With `true` for a sidecar.
    pub(super) init: Vec<(Amounts, bool)>,
    pub(super) pod_level: Amounts,
    pub(super) overhead: Amounts,
}

impl Asked {
    fn total(&self, missing: &Amounts, pod_level: &Amounts) -> Amounts {
        let fill = |asked: &Amounts| {
            let mut filled = asked.clone();
            for (name, amount) in missing {
                filled.entry(name.clone()).or_insert(*amount);
            }
            filled
        };
        let containers = self.containers.iter().map(fill);
        let init = self.init.iter().map(|(asked, sidecar)| (fill(asked), *sidecar));
        pod_requests(containers, init, pod_level, &self.overhead)
    }
}

impl Requests {
    pub(super) fn of(asked: &Asked) -> Self {
        let none = Amounts::new();
        let plain = asked.total(&none, &asked.pod_level);
        let both = Amounts::from([("cpu".into(), DEFAULT_CPU), ("memory".into(), DEFAULT_MEMORY)]);
        // A pod with requests of its own gets the defaults only for what no container names either.
        let mut missing = both.clone();
        if !asked.pod_level.is_empty() {
            missing.retain(|name, _| !plain.contains_key(name));
        }
        // NodeResourcesFit's scorer is never told that pod-level resources are on (`NewFit`): it looks at containers only.
        let (nonzero, scored) = (asked.total(&missing, &asked.pod_level), asked.total(&both, &none));
        let cpu = |amounts: &Amounts| amounts.get("cpu").map_or(0, |amount| amount.milli_value());
        let value = |amounts: &Amounts, name: &str| amounts.get(name).map_or(0, |amount| amount.value());
        let scalars = plain.iter().filter(|(name, _)| is_scalar(name));
        Self {
            cpu: cpu(&plain),
            memory: value(&plain, "memory"),
            ephemeral: value(&plain, "ephemeral-storage"),
            scalars: scalars.map(|(name, amount)| (name.clone(), amount.value())).collect(),
            nonzero_cpu: cpu(&nonzero),
            nonzero_memory: value(&nonzero, "memory"),
            scored_cpu: cpu(&scored),
            scored_memory: value(&scored, "memory"),
        }
    }

    /// Is nothing asked for that NodeResourcesFit checks beside the count of pods?
    pub fn is_empty(&self) -> bool {
        self.cpu == 0 && self.memory == 0 && self.ephemeral == 0 && self.scalars.is_empty()
    }
}

/// `IsScalarResourceName` (`util/utils.go`): the resources that are counted beside CPU, memory and disk.
pub(crate) fn is_scalar(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    let extended = !native && !name.starts_with("requests.");
    extended
        || name.contains("kubernetes.io/")
        || name.starts_with("hugepages-")
        || name.starts_with("attachable-volumes-")
}
