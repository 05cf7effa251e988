//! What a pod needs that its placement does not take into account.
//!
//! The scheduler passes through the plugins that would check it. A run counts and names the pods that need them, so
//! that nobody trusts their placement too much.

use serde_json::Value;

/// One such need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PassedThrough {
    /// Volumes that NodeVolumeLimits counts or VolumeRestrictions keeps apart.
    Volumes,
    /// `resourceClaims`, or extended resources that a DeviceClass backs, which DynamicResources allocates. A pod alone shows
    /// only the former; whoever knows the DeviceClasses counts the others.
    ResourceClaims,
    /// Something that NodeDeclaredFeatures asks of a node's kubelet: `restartPolicyRules` that restart all containers, or a
    /// user namespace on the host's network (`component-helpers/nodedeclaredfeatures/features`, 1.36).
    DeclaredFeatures,
    /// `schedulingGroup`, which gang scheduling looks at where its feature gate is on.
    SchedulingGroup,
}

/// Volumes that `nodevolumelimits/csi.go` counts (claims, and inline disks that are migrated to CSI) and
/// `volumerestrictions/volume_restrictions.go` compares.
const VOLUMES: [&str; 11] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cinder",
    "ephemeral",
    "gcePersistentDisk",
    "iscsi",
    "persistentVolumeClaim",
    "portworxVolume",
    "rbd",
    "vsphereVolume",
];

impl PassedThrough {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Volumes, Self::ResourceClaims, Self::DeclaredFeatures, Self::SchedulingGroup];

    /// What a pod of this spec needs.
    pub fn of(spec: &Value) -> Vec<Self> {
        Self::ALL.into_iter().filter(|need| need.is_needed_by(spec)).collect()
    }

    fn is_needed_by(self, spec: &Value) -> bool {
        let list = |name: &str| spec.get(name).and_then(Value::as_array).into_iter().flatten();
        match self {
            Self::Volumes => list("volumes").any(|volume| VOLUMES.iter().any(|source| is_set(volume, source))),
            Self::ResourceClaims => list("resourceClaims").next().is_some(),
            Self::DeclaredFeatures => {
                let is_true = |name: &str, wanted: bool| spec.get(name).and_then(Value::as_bool) == Some(wanted);
                let on_host_network = is_true("hostNetwork", true) && is_true("hostUsers", false);
                on_host_network || list("containers").chain(list("initContainers")).any(restarts_all)
            }
            Self::SchedulingGroup => is_set(spec, "schedulingGroup"),
        }
    }

    /// Stable and short.
    pub fn code(self) -> &'static str {
        match self {
            Self::Volumes => "volume-limits",
            Self::ResourceClaims => "dra",
            Self::DeclaredFeatures => "declared-features",
            Self::SchedulingGroup => "scheduling-group",
        }
    }

    /// What placement leaves out, as the beginning of a sentence for a person.
    pub fn message(self) -> &'static str {
        match self {
            Self::Volumes => "how many volumes a node takes, and which pods may share one, is not looked at",
            Self::ResourceClaims => "dynamic resource claims are not modelled",
            Self::DeclaredFeatures => "whether a node has the features that pods require is not looked at",
            Self::SchedulingGroup => "pods of a scheduling group are placed one by one",
        }
    }
}

fn is_set(object: &Value, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

fn restarts_all(container: &Value) -> bool {
    let rules = container.get("restartPolicyRules").and_then(Value::as_array).into_iter().flatten();
    rules.into_iter().any(|rule| rule.get("action").and_then(Value::as_str) == Some("RestartAllContainers"))
}
