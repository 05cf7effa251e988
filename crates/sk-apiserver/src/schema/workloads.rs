//! Type table: workloads and PodDisruptionBudgets (`k8s.io/api/{apps,batch,policy}/v1`, 1.36).

use super::core::{PERSISTENT_VOLUME_CLAIM, POD_TEMPLATE_SPEC};
use super::meta::{CONDITION, DELETE_OPTIONS, LABEL_SELECTOR, OBJECT_META};
use super::volume::OBJECT_REFERENCE;
use super::{Struct, Type as T, always, nullable, omitted, pointer};

#[rustfmt::skip]
pub(super) static CONTROLLER_REVISION: Struct = Struct::new("ControllerRevision", &[
    always("metadata", T::Struct(&OBJECT_META)), always("data", T::Any), always("revision", T::Int64),
]);

#[rustfmt::skip]
pub(super) static CRON_JOB: Struct = Struct::new("CronJob", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&CRON_JOB_SPEC)),
    always("status", T::Struct(&CRON_JOB_STATUS)),
]);

#[rustfmt::skip]
pub(super) static CRON_JOB_SPEC: Struct = Struct::new("CronJobSpec", &[
    always("schedule", T::String), pointer("timeZone", T::String),
    pointer("startingDeadlineSeconds", T::Int64), omitted("concurrencyPolicy", T::String),
    pointer("suspend", T::Bool), always("jobTemplate", T::Struct(&JOB_TEMPLATE_SPEC)),
    pointer("successfulJobsHistoryLimit", T::Int32), pointer("failedJobsHistoryLimit", T::Int32),
]);

#[rustfmt::skip]
pub(super) static CRON_JOB_STATUS: Struct = Struct::new("CronJobStatus", &[
    omitted("active", T::List(&T::Struct(&OBJECT_REFERENCE))), pointer("lastScheduleTime", T::Time),
    pointer("lastSuccessfulTime", T::Time),
]);

#[rustfmt::skip]
pub(super) static DAEMON_SET: Struct = Struct::new("DaemonSet", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&DAEMON_SET_SPEC)),
    always("status", T::Struct(&DAEMON_SET_STATUS)),
]);

#[rustfmt::skip]
pub(super) static DAEMON_SET_CONDITION: Struct = Struct::new("DaemonSetCondition", &[
    always("type", T::String), always("status", T::String), nullable("lastTransitionTime", T::Time),
    omitted("reason", T::String), omitted("message", T::String),
]);

#[rustfmt::skip]
pub(super) static DAEMON_SET_SPEC: Struct = Struct::new("DaemonSetSpec", &[
    nullable("selector", T::Struct(&LABEL_SELECTOR)), always("template", T::Struct(&POD_TEMPLATE_SPEC)),
    always("updateStrategy", T::Struct(&DAEMON_SET_UPDATE_STRATEGY)), omitted("minReadySeconds", T::Int32),
    pointer("revisionHistoryLimit", T::Int32),
]);

#[rustfmt::skip]
pub(super) static DAEMON_SET_STATUS: Struct = Struct::new("DaemonSetStatus", &[
    always("currentNumberScheduled", T::Int32), always("numberMisscheduled", T::Int32),
    always("desiredNumberScheduled", T::Int32), always("numberReady", T::Int32),
    omitted("observedGeneration", T::Int64), omitted("updatedNumberScheduled", T::Int32),
    omitted("numberAvailable", T::Int32), omitted("numberUnavailable", T::Int32),
    pointer("collisionCount", T::Int32),
    omitted("conditions", T::List(&T::Struct(&DAEMON_SET_CONDITION))).merge("type"),
]);

#[rustfmt::skip]
pub(super) static DAEMON_SET_UPDATE_STRATEGY: Struct = Struct::new("DaemonSetUpdateStrategy", &[
    omitted("type", T::String), pointer("rollingUpdate", T::Struct(&ROLLING_UPDATE_DAEMON_SET)),
]);

#[rustfmt::skip]
pub(super) static DEPLOYMENT: Struct = Struct::new("Deployment", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&DEPLOYMENT_SPEC)),
    always("status", T::Struct(&DEPLOYMENT_STATUS)),
]);

#[rustfmt::skip]
pub(super) static DEPLOYMENT_CONDITION: Struct = Struct::new("DeploymentCondition", &[
    always("type", T::String), always("status", T::String), nullable("lastUpdateTime", T::Time),
    nullable("lastTransitionTime", T::Time), omitted("reason", T::String), omitted("message", T::String),
]);

#[rustfmt::skip]
pub(super) static DEPLOYMENT_SPEC: Struct = Struct::new("DeploymentSpec", &[
    pointer("replicas", T::Int32), nullable("selector", T::Struct(&LABEL_SELECTOR)),
    always("template", T::Struct(&POD_TEMPLATE_SPEC)),
    always("strategy", T::Struct(&DEPLOYMENT_STRATEGY)).retain_keys(), omitted("minReadySeconds", T::Int32),
    pointer("revisionHistoryLimit", T::Int32), omitted("paused", T::Bool),
    pointer("progressDeadlineSeconds", T::Int32),
]);

#[rustfmt::skip]
pub(super) static DEPLOYMENT_STATUS: Struct = Struct::new("DeploymentStatus", &[
    omitted("observedGeneration", T::Int64), omitted("replicas", T::Int32),
    omitted("updatedReplicas", T::Int32), omitted("readyReplicas", T::Int32),
    omitted("availableReplicas", T::Int32), omitted("unavailableReplicas", T::Int32),
    pointer("terminatingReplicas", T::Int32),
    omitted("conditions", T::List(&T::Struct(&DEPLOYMENT_CONDITION))).merge("type"),
    pointer("collisionCount", T::Int32),
]);

#[rustfmt::skip]
pub(super) static DEPLOYMENT_STRATEGY: Struct = Struct::new("DeploymentStrategy", &[
    omitted("type", T::String), pointer("rollingUpdate", T::Struct(&ROLLING_UPDATE_DEPLOYMENT)),
]);

#[rustfmt::skip]
pub(super) static EVICTION: Struct = Struct::new("Eviction", &[
    always("metadata", T::Struct(&OBJECT_META)), pointer("deleteOptions", T::Struct(&DELETE_OPTIONS)),
]);

#[rustfmt::skip]
pub(super) static JOB: Struct = Struct::new("Job", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&JOB_SPEC)),
    always("status", T::Struct(&JOB_STATUS)),
]);

#[rustfmt::skip]
pub(super) static JOB_CONDITION: Struct = Struct::new("JobCondition", &[
    always("type", T::String), always("status", T::String), nullable("lastProbeTime", T::Time),
    nullable("lastTransitionTime", T::Time), omitted("reason", T::String), omitted("message", T::String),
]);

#[rustfmt::skip]
pub(super) static JOB_SPEC: Struct = Struct::new("JobSpec", &[
    pointer("parallelism", T::Int32), pointer("completions", T::Int32),
    pointer("activeDeadlineSeconds", T::Int64), pointer("podFailurePolicy", T::Struct(&POD_FAILURE_POLICY)),
    pointer("successPolicy", T::Struct(&SUCCESS_POLICY)), pointer("backoffLimit", T::Int32),
    pointer("backoffLimitPerIndex", T::Int32), pointer("maxFailedIndexes", T::Int32),
    pointer("selector", T::Struct(&LABEL_SELECTOR)), pointer("manualSelector", T::Bool),
    always("template", T::Struct(&POD_TEMPLATE_SPEC)), pointer("ttlSecondsAfterFinished", T::Int32),
    pointer("completionMode", T::String), pointer("suspend", T::Bool),
    pointer("podReplacementPolicy", T::String), pointer("managedBy", T::String),
]);

#[rustfmt::skip]
pub(super) static JOB_STATUS: Struct = Struct::new("JobStatus", &[
    omitted("conditions", T::List(&T::Struct(&JOB_CONDITION))).merge("type").atomic(), pointer("startTime", T::Time),
    pointer("completionTime", T::Time), omitted("active", T::Int32), omitted("succeeded", T::Int32),
    omitted("failed", T::Int32), pointer("terminating", T::Int32), omitted("completedIndexes", T::String),
    pointer("failedIndexes", T::String),
    pointer("uncountedTerminatedPods", T::Struct(&UNCOUNTED_TERMINATED_PODS)), pointer("ready", T::Int32),
]);

#[rustfmt::skip]
pub(super) static JOB_TEMPLATE_SPEC: Struct = Struct::new("JobTemplateSpec", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&JOB_SPEC)),
]);

#[rustfmt::skip]
pub(super) static POD_DISRUPTION_BUDGET: Struct = Struct::new("PodDisruptionBudget", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&POD_DISRUPTION_BUDGET_SPEC)),
    always("status", T::Struct(&POD_DISRUPTION_BUDGET_STATUS)),
]);

#[rustfmt::skip]
pub(super) static POD_DISRUPTION_BUDGET_SPEC: Struct = Struct::new("PodDisruptionBudgetSpec", &[
    pointer("minAvailable", T::IntOrString), pointer("selector", T::Struct(&LABEL_SELECTOR)).replace(),
    pointer("maxUnavailable", T::IntOrString), pointer("unhealthyPodEvictionPolicy", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_DISRUPTION_BUDGET_STATUS: Struct = Struct::new("PodDisruptionBudgetStatus", &[
    omitted("observedGeneration", T::Int64), omitted("disruptedPods", T::Map(&T::Time)),
    always("disruptionsAllowed", T::Int32), always("currentHealthy", T::Int32),
    always("desiredHealthy", T::Int32), always("expectedPods", T::Int32),
    omitted("conditions", T::List(&T::Struct(&CONDITION))).merge("type"),
]);

#[rustfmt::skip]
pub(super) static POD_FAILURE_POLICY: Struct = Struct::new("PodFailurePolicy", &[
    always("rules", T::List(&T::Struct(&POD_FAILURE_POLICY_RULE))),
]);

#[rustfmt::skip]
pub(super) static POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT: Struct = Struct::new("PodFailurePolicyOnExitCodesRequirement", &[
    pointer("containerName", T::String), always("operator", T::String),
    always("values", T::List(&T::Int32)).set(),
]);

#[rustfmt::skip]
pub(super) static POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN: Struct = Struct::new("PodFailurePolicyOnPodConditionsPattern", &[
    always("type", T::String), always("status", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_FAILURE_POLICY_RULE: Struct = Struct::new("PodFailurePolicyRule", &[
    always("action", T::String),
    pointer("onExitCodes", T::Struct(&POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT)),
    omitted("onPodConditions", T::List(&T::Struct(&POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN))),
]);

#[rustfmt::skip]
pub(super) static REPLICA_SET: Struct = Struct::new("ReplicaSet", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&REPLICA_SET_SPEC)),
    always("status", T::Struct(&REPLICA_SET_STATUS)),
]);

#[rustfmt::skip]
pub(super) static REPLICA_SET_CONDITION: Struct = Struct::new("ReplicaSetCondition", &[
    always("type", T::String), always("status", T::String), nullable("lastTransitionTime", T::Time),
    omitted("reason", T::String), omitted("message", T::String),
]);

#[rustfmt::skip]
pub(super) static REPLICA_SET_SPEC: Struct = Struct::new("ReplicaSetSpec", &[
    pointer("replicas", T::Int32), omitted("minReadySeconds", T::Int32),
    nullable("selector", T::Struct(&LABEL_SELECTOR)), always("template", T::Struct(&POD_TEMPLATE_SPEC)),
]);

#[rustfmt::skip]
pub(super) static REPLICA_SET_STATUS: Struct = Struct::new("ReplicaSetStatus", &[
    always("replicas", T::Int32), omitted("fullyLabeledReplicas", T::Int32),
    omitted("readyReplicas", T::Int32), omitted("availableReplicas", T::Int32),
    pointer("terminatingReplicas", T::Int32), omitted("observedGeneration", T::Int64),
    omitted("conditions", T::List(&T::Struct(&REPLICA_SET_CONDITION))).merge("type"),
]);

#[rustfmt::skip]
pub(super) static ROLLING_UPDATE_DAEMON_SET: Struct = Struct::new("RollingUpdateDaemonSet", &[
    pointer("maxUnavailable", T::IntOrString), pointer("maxSurge", T::IntOrString),
]);

#[rustfmt::skip]
pub(super) static ROLLING_UPDATE_DEPLOYMENT: Struct = Struct::new("RollingUpdateDeployment", &[
    pointer("maxUnavailable", T::IntOrString), pointer("maxSurge", T::IntOrString),
]);

#[rustfmt::skip]
pub(super) static ROLLING_UPDATE_STATEFUL_SET_STRATEGY: Struct = Struct::new("RollingUpdateStatefulSetStrategy", &[
    pointer("partition", T::Int32), pointer("maxUnavailable", T::IntOrString),
]);

#[rustfmt::skip]
pub(super) static STATEFUL_SET: Struct = Struct::new("StatefulSet", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&STATEFUL_SET_SPEC)),
    always("status", T::Struct(&STATEFUL_SET_STATUS)),
]);

#[rustfmt::skip]
pub(super) static STATEFUL_SET_CONDITION: Struct = Struct::new("StatefulSetCondition", &[
    always("type", T::String), always("status", T::String), nullable("lastTransitionTime", T::Time),
    omitted("reason", T::String), omitted("message", T::String),
]);

#[rustfmt::skip]
pub(super) static STATEFUL_SET_ORDINALS: Struct = Struct::new("StatefulSetOrdinals", &[
    always("start", T::Int32),
]);

#[rustfmt::skip]
pub(super) static STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY: Struct = Struct::new("StatefulSetPersistentVolumeClaimRetentionPolicy", &[
    omitted("whenDeleted", T::String), omitted("whenScaled", T::String),
]);

#[rustfmt::skip]
pub(super) static STATEFUL_SET_SPEC: Struct = Struct::new("StatefulSetSpec", &[
    pointer("replicas", T::Int32), nullable("selector", T::Struct(&LABEL_SELECTOR)),
    always("template", T::Struct(&POD_TEMPLATE_SPEC)),
    omitted("volumeClaimTemplates", T::List(&T::Struct(&PERSISTENT_VOLUME_CLAIM))),
    always("serviceName", T::String), omitted("podManagementPolicy", T::String),
    always("updateStrategy", T::Struct(&STATEFUL_SET_UPDATE_STRATEGY)),
    pointer("revisionHistoryLimit", T::Int32), omitted("minReadySeconds", T::Int32),
    pointer("persistentVolumeClaimRetentionPolicy", T::Struct(&STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY)),
    pointer("ordinals", T::Struct(&STATEFUL_SET_ORDINALS)),
]);

#[rustfmt::skip]
pub(super) static STATEFUL_SET_STATUS: Struct = Struct::new("StatefulSetStatus", &[
    omitted("observedGeneration", T::Int64), always("replicas", T::Int32),
    omitted("readyReplicas", T::Int32), omitted("currentReplicas", T::Int32),
    omitted("updatedReplicas", T::Int32), omitted("currentRevision", T::String),
    omitted("updateRevision", T::String), pointer("collisionCount", T::Int32),
    omitted("conditions", T::List(&T::Struct(&STATEFUL_SET_CONDITION))).merge("type"),
    always("availableReplicas", T::Int32),
]);

#[rustfmt::skip]
pub(super) static STATEFUL_SET_UPDATE_STRATEGY: Struct = Struct::new("StatefulSetUpdateStrategy", &[
    omitted("type", T::String), pointer("rollingUpdate", T::Struct(&ROLLING_UPDATE_STATEFUL_SET_STRATEGY)),
]);

#[rustfmt::skip]
pub(super) static SUCCESS_POLICY: Struct = Struct::new("SuccessPolicy", &[
    always("rules", T::List(&T::Struct(&SUCCESS_POLICY_RULE))),
]);

#[rustfmt::skip]
pub(super) static SUCCESS_POLICY_RULE: Struct = Struct::new("SuccessPolicyRule", &[
    pointer("succeededIndexes", T::String), pointer("succeededCount", T::Int32),
]);

#[rustfmt::skip]
pub(super) static UNCOUNTED_TERMINATED_PODS: Struct = Struct::new("UncountedTerminatedPods", &[
    omitted("succeeded", T::List(&T::String)).set(), omitted("failed", T::List(&T::String)).set(),
]);
