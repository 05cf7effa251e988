//! The kinds that the engine understands.
//!
//! A kind is one entry in the list below, with a body that implements [`Kind`]: how to read and write it, which part
//! is status, which part is spec, what is valid. Neither here nor where defaults, rules and generations of typed kinds
//! are looked up has a `match` on kinds a wildcard arm, so a listed kind has all of it; [`Other`] stores every other kind whole. A typed body holds the fields that the engine reads and, in
//! `rest`, all other fields as they came, so nothing from a trace is lost.

mod condition;
mod container_statuses;
mod cron_job;
mod daemon_set;
mod job;
mod job_indexes;
mod job_policy;
mod job_validation;
mod namespace;
mod node;
mod other;
mod pod;
pub(crate) mod qos;
mod replication_controller;
mod requests;
mod stateful_set;
mod workload;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sk_core::{Gvk, ObjectKey};

use crate::error::Invalid;

pub use condition::{Condition, ConditionStatus, Why};
pub(crate) use cron_job::invalid_cron_job;
pub use cron_job::{ActiveJob, ConcurrencyPolicy, CronJob, CronJobSpec, CronJobStatus, JobTemplate};
pub use daemon_set::{DaemonSet, DaemonSetSpec, DaemonSetStatus, DaemonSetSteps, DaemonSetStrategy};
pub use job::{
    COMPLETION_INDEX, CompletionMode, JOB_CONTROLLER, JOB_TRACKING, Job, JobCondition, JobSpec, JobStatus,
    PodReplacementPolicy, UncountedTerminatedPods,
};
pub use job_indexes::Indexes;
pub use job_policy::{
    ExitCodeOperator, OnExitCodes, OnPodCondition, PodFailureAction, PodFailurePolicy, PodFailureRule, SuccessPolicy,
    SuccessRule,
};
pub(crate) use job_validation::invalid_job;
pub(crate) use namespace::KUBERNETES_FINALIZER;
pub use namespace::{Namespace, NamespacePhase};
pub use node::{Node, NodeSpec, NodeStatus};
pub use other::Other;
pub use pod::{Container, Directives, LastRun, Pod, PodPhase, PodSpec, PodStatus, ResourceRequirements};
pub use replication_controller::ReplicationController;
pub use stateful_set::{
    ClaimRetention, Ordinals, Partition, PodManagementPolicy, Retention, SetStrategyType, StatefulSet, StatefulSetSpec,
    StatefulSetStatus, StatefulSetStrategy,
};
pub use workload::{
    Deployment, DeploymentSpec, DeploymentStatus, IntOrPercent, PodTemplate, ReplicaSet, ReplicaSetSpec,
    ReplicaSetStatus, RollingUpdate, Strategy, StrategyType, TemplateMeta,
};

/// `scheduling.k8s.io/v1.PriorityClass`, which admission reads though it is kept as it came.
pub static PRIORITY_CLASS: Gvk = Gvk::new_static("scheduling.k8s.io", "v1", "PriorityClass");

/// `policy/v1.PodDisruptionBudget`, which evictions ask though it is kept as it came.
pub static POD_DISRUPTION_BUDGET: Gvk = Gvk::new_static("policy", "v1", "PodDisruptionBudget");

/// What the API server must know of a kind to store it.
pub(crate) trait Kind: PartialEq + Sized {
    /// Takes its own sections out of `fields`; what is left there is kept beside it.
    fn read(fields: &mut Map<String, Value>) -> Result<Self, serde_json::Error>;

    /// Writes its sections.
    fn write(&self, fields: &mut Map<String, Value>);

    /// Prepares the body of a new object for storage: creating an object resets its status.
    fn prepare_for_create(&mut self);

    /// Makes the status what it is in `other`.
    fn set_status(&mut self, other: &Self);

    /// After an update: restores from the `stored` object what an update cannot change.
    fn prepare_for_update(&mut self, stored: &Self);

    /// Do both desire the same? Then the generation stays.
    fn same_desire(&self, other: &Self) -> bool;

    /// Would a server take it? The rules without which a controller or the scheduler would run wild.
    fn validate(&self) -> Result<(), Invalid>;

    /// Would a server take it in place of what is `stored`? Of the rules without which a controller would run wild, most
    /// are about the object alone.
    fn validate_update(&self, stored: &Self) -> Result<(), Invalid>;

    /// Is this a name that objects of the kind may have?
    fn is_name(name: &str) -> bool {
        sk_core::label::is_dns_subdomain(name)
    }
}

/// Declares the typed kinds: the body enum, the tag that tells bodies apart, and every question that is asked of a
/// body.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident($constant:ident = $group:literal, $name:literal)),+ $(,)?) => {
        $($(#[doc = $doc])+ pub static $constant: Gvk = Gvk::new_static($group, "v1", $name);)+

        /// The part of an object that depends on its kind.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Body {
            $($(#[doc = $doc])+ $kind($kind),)+
            /// Any other kind, kept as it came.
            Other(Other),
        }

        /// Which body an object has: what components declare to watch.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum KindTag {
            $($(#[doc = $doc])+ $kind,)+
            /// Any other kind.
            Other,
        }

        impl KindTag {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind,)+ Self::Other];

            /// Which body objects of a kind have.
            pub(crate) fn of(gvk: &Gvk) -> Self {
                known(gvk).map_or(Self::Other, tag_of)
            }
        }

        /// The typed kinds.
        #[cfg(test)]
        pub(crate) static TYPED: &[&Gvk] = &[$(&$constant),+];

        /// The typed kind that this is, if it is one.
        pub(crate) fn known(gvk: &Gvk) -> Option<&'static Gvk> {
            $(if *gvk == $constant { return Some(&$constant); })+
            None
        }

        /// Which body objects of a typed kind have.
        pub(crate) fn tag_of(known: &'static Gvk) -> KindTag {
            $(if std::ptr::eq(known, &$constant) { return KindTag::$kind; })+
            KindTag::Other
        }

        impl Body {
            /// Which body it is.
            pub fn tag(&self) -> KindTag {
                match self {
                    $(Self::$kind(_) => KindTag::$kind,)+
                    Self::Other(_) => KindTag::Other,
                }
            }

            pub(crate) fn read(gvk: &Gvk, fields: &mut Map<String, Value>) -> Result<Self, serde_json::Error> {
                $(if *gvk == $constant { return $kind::read(fields).map(Self::$kind); })+
                Other::read(fields).map(Self::Other)
            }

            pub(crate) fn write(&self, fields: &mut Map<String, Value>) {
                match self {
                    $(Self::$kind(body) => body.write(fields),)+
                    Self::Other(body) => body.write(fields),
                }
            }

            pub(crate) fn prepare_for_create(&mut self) {
                match self {
                    $(Self::$kind(body) => body.prepare_for_create(),)+
                    Self::Other(body) => body.prepare_for_create(),
                }
            }

            pub(crate) fn set_status(&mut self, other: &Self) {
                match (self, other) {
                    $((Self::$kind(body), Self::$kind(other)) => body.set_status(other),)+
                    (Self::Other(body), Self::Other(other)) => body.set_status(other),
                    // The kind is part of a request's target: an object of another kind is never found there.
                    ($(Self::$kind(_))|+ | Self::Other(_), _) => {}
                }
            }

            pub(crate) fn prepare_for_update(&mut self, stored: &Self) {
                match (self, stored) {
                    $((Self::$kind(body), Self::$kind(stored)) => body.prepare_for_update(stored),)+
                    (Self::Other(body), Self::Other(stored)) => body.prepare_for_update(stored),
                    ($(Self::$kind(_))|+ | Self::Other(_), _) => {}
                }
            }

            pub(crate) fn same_desire(&self, other: &Self) -> bool {
                match (self, other) {
                    $((Self::$kind(body), Self::$kind(other)) => body.same_desire(other),)+
                    (Self::Other(body), Self::Other(other)) => body.same_desire(other),
                    ($(Self::$kind(_))|+ | Self::Other(_), _) => false,
                }
            }

            pub(crate) fn validate(&self) -> Result<(), Invalid> {
                match self {
                    $(Self::$kind(body) => body.validate(),)+
                    Self::Other(body) => body.validate(),
                }
            }

            pub(crate) fn validate_update(&self, stored: &Self) -> Result<(), Invalid> {
                match (self, stored) {
                    $((Self::$kind(body), Self::$kind(stored)) => body.validate_update(stored),)+
                    (Self::Other(body), Self::Other(stored)) => body.validate_update(stored),
                    ($(Self::$kind(_))|+ | Self::Other(_), _) => Ok(()),
                }
            }

            pub(crate) fn is_name(&self, name: &str) -> bool {
                match self {
                    $(Self::$kind(_) => $kind::is_name(name),)+
                    Self::Other(_) => Other::is_name(name),
                }
            }
        }
    };
}

kinds! {
    /// `v1.Pod`
    Pod(POD = "", "Pod"),
    /// `v1.Node`
    Node(NODE = "", "Node"),
    /// `v1.Namespace`
    Namespace(NAMESPACE = "", "Namespace"),
    /// `apps/v1.Deployment`
    Deployment(DEPLOYMENT = "apps", "Deployment"),
    /// `apps/v1.ReplicaSet`
    ReplicaSet(REPLICA_SET = "apps", "ReplicaSet"),
    /// `batch/v1.Job`
    Job(JOB = "batch", "Job"),
    /// `batch/v1.CronJob`
    CronJob(CRON_JOB = "batch", "CronJob"),
    /// `apps/v1.StatefulSet`
    StatefulSet(STATEFUL_SET = "apps", "StatefulSet"),
    /// `apps/v1.DaemonSet`
    DaemonSet(DAEMON_SET = "apps", "DaemonSet"),
    /// `v1.ReplicationController`
    ReplicationController(REPLICATION_CONTROLLER = "", "ReplicationController"),
}

impl Body {
    /// Are its insides understood?
    pub(crate) fn is_typed(&self) -> bool {
        self.tag() != KindTag::Other
    }

    /// The template of the pods that it makes, to change.
    fn template_mut(&mut self) -> Option<&mut PodTemplate> {
        use std::sync::Arc;
        match self {
            Self::Deployment(body) => Some(&mut Arc::make_mut(&mut body.spec).template),
            Self::ReplicaSet(body) | Self::ReplicationController(ReplicationController(body)) => {
                Some(&mut Arc::make_mut(&mut body.spec).template)
            }
            Self::StatefulSet(body) => Some(&mut Arc::make_mut(&mut body.spec).template),
            Self::DaemonSet(body) => Some(&mut Arc::make_mut(&mut body.spec).template),
            Self::Job(body) => Some(&mut Arc::make_mut(&mut body.spec).template),
            Self::CronJob(body) => {
                let job = &mut Arc::make_mut(&mut body.spec).job_template.spec;
                Some(&mut Arc::make_mut(job).template)
            }
            Self::Pod(_) | Self::Node(_) | Self::Namespace(_) | Self::Other(_) => None,
        }
    }

    /// An applied configuration leaves out what the server generated.
    pub(crate) fn keep_generated(&mut self, stored: &Self) {
        if let (Self::Job(job), Self::Job(stored)) = (self, stored) {
            job.keep_generated(stored);
        }
    }

    pub(crate) fn template(&self) -> Option<&PodTemplate> {
        match self {
            Self::Deployment(body) => Some(&body.spec.template),
            Self::ReplicaSet(body) | Self::ReplicationController(ReplicationController(body)) => {
                Some(&body.spec.template)
            }
            Self::StatefulSet(body) => Some(&body.spec.template),
            Self::DaemonSet(body) => Some(&body.spec.template),
            Self::Job(body) => Some(&body.spec.template),
            Self::CronJob(body) => Some(&body.spec.job_template.spec.template),
            Self::Pod(_) | Self::Node(_) | Self::Namespace(_) | Self::Other(_) => None,
        }
    }

    /// Holds the same pod spec as `other` where both say the same, so that a template is kept once.
    pub(crate) fn share_template(&mut self, other: &Self) {
        let Some(known) = other.template() else { return };
        let Some(template) = self.template_mut() else { return };
        if template.spec == known.spec {
            template.spec = known.spec.clone();
        }
    }
}

/// A missing or null section reads as an empty one.
pub(crate) fn read<T: DeserializeOwned + Default>(value: Option<Value>) -> Result<T, serde_json::Error> {
    match value {
        None | Some(Value::Null) => Ok(T::default()),
        Some(value) => serde_json::from_value(value),
    }
}

/// Where an object of a kind without a namespace of its own lives, given what it says.
pub(crate) fn place(gvk: &Gvk, namespace: Option<sk_core::SmolStr>, name: sk_core::SmolStr) -> ObjectKey {
    use sk_core::registry::Scope;
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    let namespace = match (sk_core::registry::scope(gvk), namespace) {
        (Some(Scope::Cluster), _) => None,
        (Some(Scope::Namespaced), None) => Some(sk_core::SmolStr::new_static("default")),
        (_, namespace) => namespace,
    };
    ObjectKey { namespace, name }
}
