//! How fast the control plane and the nodes are.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sk_core::SimDuration;

use super::error::shown;
use super::suggest::did_you_mean;
use super::text_or::TextOr;
use super::{schema, spelling};

/// From a pod's image being there until it runs, in the `real-like` profile, unless something else is said. The kubelet
/// looks at its containers once a second (`genericPlegRelistPeriod`, Kubernetes 1.36, pkg/kubelet/kubelet.go): one look
/// for the sandbox and one for the container. An assumption, not a measurement.
const REAL_LIKE_POD_STARTUP: SimDuration = SimDuration::from_secs(2);

/// How long a pod of a Job runs when neither its recorded life nor its annotation `static.simkube.io/lifetime` says. An
/// assumption; a run that needs it says so.
const ASSUMED_JOB_DURATION: SimDuration = SimDuration::from_mins(1);

/// Latencies of the control plane and of pods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", rename_all = "camelCase")]
pub struct Timing {
    /// How fast the control plane is.
    pub profile: Profile,
    /// From a pod being bound until its image is there.
    #[serde(with = "spelling::duration")]
    pub image_pull_delay: SimDuration,
    /// The maximum of a uniformly distributed jitter on top.
    #[serde(with = "spelling::duration")]
    pub image_pull_jitter: SimDuration,
    /// From its image being there until a pod runs and is ready.
    #[serde(with = "spelling::duration")]
    pub pod_startup_delay: SimDuration,
    /// The maximum of a uniformly distributed jitter on top.
    #[serde(with = "spelling::duration")]
    pub pod_startup_jitter: SimDuration,
    /// How long a pod of a Job runs when the trace does not say.
    #[serde(with = "spelling::duration")]
    pub job_duration: SimDuration,
}

impl Default for Timing {
    fn default() -> Self {
        Written::default().into()
    }
}

// How `Timing` is written: what is left out depends on the profile. The doc comments here are the schema's descriptions.
/// Latencies of the control plane and of pods.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase", expecting = "a mapping such as {profile: real-like}")]
#[schemars(rename = "Timing")]
pub(crate) struct Written {
    /// How fast the control plane is: `ideal` (no latencies), `real-like` (Kubernetes' own limits), or each latency and
    /// limit by itself. Default: `real-like`.
    #[schemars(schema_with = "profile_schema")]
    profile: Profile,
    /// From a pod being bound until its image is there. Default: `0s`, the image is on the node.
    #[serde(with = "spelling::some_duration", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    image_pull_delay: Option<SimDuration>,
    /// The maximum of a uniformly distributed jitter on top. Default: `0s`.
    #[serde(with = "spelling::some_duration", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    image_pull_jitter: Option<SimDuration>,
    /// From its image being there until a pod runs and is ready. Default: `2s` when `real-like`, an assumption; `0s`
    /// when `ideal`.
    #[serde(with = "spelling::some_duration", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pod_startup_delay: Option<SimDuration>,
    /// The maximum of a uniformly distributed jitter on top. Default: `0s`.
    #[serde(with = "spelling::some_duration", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pod_startup_jitter: Option<SimDuration>,
    /// How long a pod of a Job runs when neither its recorded life nor its annotation `static.simkube.io/lifetime` says.
    /// Default: `1m`, an assumption.
    #[serde(with = "spelling::some_duration", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    job_duration: Option<SimDuration>,
}

impl From<Written> for Timing {
    fn from(written: Written) -> Self {
        let pod_startup_delay = match written.profile {
            Profile::Ideal => SimDuration::ZERO,
            Profile::RealLike | Profile::Custom(_) => REAL_LIKE_POD_STARTUP,
        };
        Self {
            profile: written.profile,
            image_pull_delay: written.image_pull_delay.unwrap_or_default(),
            image_pull_jitter: written.image_pull_jitter.unwrap_or_default(),
            pod_startup_delay: written.pod_startup_delay.unwrap_or(pod_startup_delay),
            pod_startup_jitter: written.pod_startup_jitter.unwrap_or_default(),
            job_duration: written.job_duration.unwrap_or(ASSUMED_JOB_DURATION),
        }
    }
}

/// How fast the control plane is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "TextOr<Latencies>", into = "TextOr<Latencies>")]
pub enum Profile {
    /// `ideal`: no latencies and no limits.
    Ideal,
    /// `real-like`: Kubernetes' own limits, and the latencies of a healthy small cluster.
    #[default]
    RealLike,
    /// Each latency and limit by itself.
    Custom(Box<Latencies>),
}

/// How fast the parts of the control plane are; what is left out is as in `real-like`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    default,
    rename_all = "camelCase",
    expecting = "`ideal`, `real-like`, or a mapping such as {requestLatency: 10ms}"
)]
pub struct Latencies {
    /// From a change until informers deliver it to controllers, scheduler and nodes. Default: `2ms`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub watch_latency: SimDuration,
    /// From sending a request until it is carried out. Default: `3ms`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub request_latency: SimDuration,
    /// How long the scheduler takes for one pod. Default: `3ms`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub scheduling_cycle: SimDuration,
    /// From being asked to stop until a pod has stopped, at most its grace. Default: `0s`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub pod_termination: SimDuration,
    /// How long a loop of the cluster autoscaler takes. Default: `20ms`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub autoscaler_loop: SimDuration,
    /// The client rate limit of each controller of kube-controller-manager. Default: `{qps: 20, burst: 30}`.
    pub controller_limit: Limit,
    /// The client rate limit of the garbage collector. Default: `{qps: 40, burst: 60}`.
    pub garbage_limit: Limit,
    /// The client rate limit of the namespace controller. Default: `{qps: 400, burst: 3000}`.
    pub namespace_limit: Limit,
    /// The client rate limit of the scheduler, unless its own configuration has one. Default: `{qps: 50, burst: 100}`.
    pub scheduler_limit: Limit,
}

impl Default for Latencies {
    /// As in `real-like`.
    fn default() -> Self {
        Self {
            watch_latency: SimDuration::from_millis(2),
            request_latency: SimDuration::from_millis(3),
            scheduling_cycle: SimDuration::from_millis(3),
            pod_termination: SimDuration::ZERO,
            autoscaler_loop: SimDuration::from_millis(20),
            controller_limit: Limit { qps: 20, burst: 30 },
            garbage_limit: Limit { qps: 40, burst: 60 },
            namespace_limit: Limit { qps: 400, burst: 3000 },
            scheduler_limit: Limit { qps: 50, burst: 100 },
        }
    }
}

/// A client's rate limit, as client-go has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping such as {qps: 20, burst: 30}")]
pub struct Limit {
    /// Requests per second in the long run.
    pub qps: u32,
    /// Requests at once after an idle time.
    pub burst: u32,
}

impl TryFrom<TextOr<Latencies>> for Profile {
    type Error = String;

    fn try_from(written: TextOr<Latencies>) -> Result<Self, String> {
        match written {
            TextOr::Long(latencies) => Ok(Self::Custom(Box::new(latencies))),
            TextOr::Text(text) => match text.as_str() {
                "ideal" => Ok(Self::Ideal),
                "real-like" => Ok(Self::RealLike),
                _ => {
                    let advice = did_you_mean(&text, ["ideal", "real-like"]);
                    Err(format!("`{}` is neither `ideal` nor `real-like`{advice}", shown(&text)))
                }
            },
        }
    }
}

impl From<Profile> for TextOr<Latencies> {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Ideal => Self::Text("ideal".to_owned()),
            Profile::RealLike => Self::Text("real-like".to_owned()),
            Profile::Custom(latencies) => Self::Long(*latencies),
        }
    }
}

fn profile_schema(generator: &mut SchemaGenerator) -> Schema {
    schema::either(&json_schema!({ "enum": ["ideal", "real-like"] }), &generator.subschema_for::<Latencies>())
}
