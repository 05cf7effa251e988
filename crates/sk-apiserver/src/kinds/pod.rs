//! Pods: the part of the spec that scheduling and lifecycle read, and a compact status.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sk_core::{Quantity, SimDuration, SimTime, SmolStr, Toleration};

use super::{Condition, Kind, Why, condition, container_statuses, read};
use crate::error::Invalid;
use crate::object::Rest;

/// A pod. The spec is shared by all pods of a template; the node it is bound to stands outside it.
#[derive(Clone, Debug, Default)]
pub struct Pod {
    /// What to run.
    pub spec: Arc<PodSpec>,
    /// Where it runs, once decided.
    pub node_name: Option<SmolStr>,
    /// What the driver wants its node to do with it; shown as annotations.
    pub directives: Option<Directives>,
    /// How it is doing.
    pub status: PodStatus,
}

/// What the driver's admission hook decided for a pod: how long it takes to start and how long it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directives {
    /// From being bound until its image is there.
    pub create_delay: SimDuration,
    /// From its image being there until it runs and is ready.
    pub ready_delay: SimDuration,
    /// How long it runs before it ends; `None`: until it is deleted.
    pub lifetime: Option<SimDuration>,
    /// What its containers end with; `None`: 0, or what an annotation says.
    pub exit_code: Option<u8>,
    /// The number of the recorded life that it was given.
    pub sequence: Option<u64>,
}

/// What to run and where it may run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Init containers, sidecars (`restartPolicy: Always`) among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Container>,
    /// The main containers.
    pub containers: Vec<Container>,
    /// Labels a node must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<SmolStr, SmolStr>,
    /// Rules on nodes and other pods, as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Value>,
    /// Taints it puts up with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Higher goes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Where the priority comes from.
    #[serde(skip_serializing_if = "SmolStr::is_empty")]
    pub priority_class_name: SmolStr,
    /// `Never`: waits instead of preempting others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption_policy: Option<SmolStr>,
    /// `Always`, `OnFailure` or `Never`.
    #[serde(skip_serializing_if = "SmolStr::is_empty")]
    pub restart_policy: SmolStr,
    /// Seconds between asking it to stop and killing it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<i64>,
    /// What the runtime itself needs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub overhead: BTreeMap<SmolStr, Quantity>,
    /// Requests and limits of the pod as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Not to be scheduled while there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scheduling_gates: Vec<Value>,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A container, as far as the engine reads it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Its name.
    pub name: SmolStr,
    /// What it asks for.
    #[serde(skip_serializing_if = "ResourceRequirements::is_empty")]
    pub resources: ResourceRequirements,
    /// `Always` on an init container makes it a sidecar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<SmolStr>,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Requests and limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceRequirements {
    /// At most this.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<SmolStr, Quantity>,
    /// At least this.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<SmolStr, Quantity>,
    /// Claims and all other sources.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl ResourceRequirements {
    fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.requests.is_empty() && self.rest.is_empty()
    }
}

impl Container {
    /// A sidecar is an init container that runs as long as the pod does.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PodPhase {
    /// Not all containers have started.
    #[default]
    Pending,
    /// At least one container runs.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended and one did not end well.
    Failed,
    /// The node cannot be asked.
    Unknown,
}

impl PodPhase {
    /// As Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }

    /// Will it never run again?
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// A pod's status. Container statuses are derived from it when a client asks for JSON, because in a simulation all containers
/// of a pod start and end together; those that a client wrote come back as long as they tell the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodStatus {
    /// Where it is in its life.
    pub phase: PodPhase,
    /// PodScheduled, Ready and the like.
    pub conditions: Vec<Condition>,
    /// When its node took it on.
    pub start_time: Option<SimTime>,
    /// When its containers started.
    pub started: Option<SimTime>,
    /// When its containers ended.
    pub finished: Option<SimTime>,
    /// What its containers ended with.
    pub exit_code: i32,
    /// How often each of its containers was started again.
    pub restarts: i32,
    /// How its containers ended before they were started again.
    pub last_run: Option<Arc<LastRun>>,
    /// The node it will get once its victims are deleted.
    pub nominated_node_name: Option<SmolStr>,
    /// Why it failed.
    pub why: Option<Arc<Why>>,
    /// All other fields, as they came.
    pub rest: Rest,
}

/// One run of a pod's containers that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// When they started.
    pub started: SimTime,
    /// When they ended.
    pub finished: SimTime,
    /// What they ended with.
    pub exit_code: i32,
}

impl PodStatus {
    /// Have its containers ended, to be started again?
    pub fn is_waiting(&self) -> bool {
        self.phase == PodPhase::Running && self.finished.is_some()
    }

    /// The condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.is(kind))
    }

    /// Sets a condition; its transition time changes only when its status does. `false`: nothing changed.
    pub fn set_condition(&mut self, condition: Condition) -> bool {
        condition::set(&mut self.conditions, condition)
    }
}

impl PartialEq for Pod {
    fn eq(&self, other: &Self) -> bool {
        self.same_spec(other)
            && self.node_name == other.node_name
            && self.directives == other.directives
            && self.status == other.status
    }
}

impl Pod {
    /// Versions of one pod share their spec, which is seen at a glance.
    fn same_spec(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.spec, &other.spec) || self.spec == other.spec
    }

    /// A pod that nobody has seen: no node, no status.
    pub fn new(spec: Arc<PodSpec>) -> Self {
        Self { spec, node_name: None, directives: None, status: PodStatus::default() }
    }

    /// The same pod in another state.
    pub(crate) fn with_status(&self, status: PodStatus) -> Self {
        Self { spec: self.spec.clone(), node_name: self.node_name.clone(), directives: self.directives, status }
    }

    /// Containers that have ended, and with what.
    pub fn exit_codes(&self) -> impl Iterator<Item = (&SmolStr, i32)> {
        let ended = self.status.finished.is_some();
        self.spec.containers.iter().filter(move |_| ended).map(|container| (&container.name, self.status.exit_code))
    }

    /// How often containers were started again, all of them together.
    pub fn restart_count(&self) -> i32 {
        let containers = i32::try_from(self.spec.containers.len()).unwrap_or(i32::MAX);
        self.status.restarts.saturating_mul(containers)
    }
}

impl Kind for Pod {
    fn read(fields: &mut Map<String, Value>) -> Result<Self, serde_json::Error> {
        let mut spec = fields.remove("spec");
        let node_name = spec.as_mut().and_then(Value::as_object_mut).and_then(|spec| spec.remove("nodeName"));
        let node_name: Option<SmolStr> = read(node_name)?;
        Ok(Self {
            spec: Arc::new(read(spec)?),
            node_name: node_name.filter(|name| !name.is_empty()),
            directives: None,
            status: read_status(fields.remove("status"))?,
        })
    }

    fn write(&self, fields: &mut Map<String, Value>) {
        let mut spec = json!(*self.spec);
        if let (Some(node), Some(spec)) = (&self.node_name, spec.as_object_mut()) {
            spec.insert("nodeName".into(), node.as_str().into());
        }
        fields.insert("spec".into(), spec);
        fields.insert("status".into(), write_status(self));
    }

    fn prepare_for_create(&mut self) {
        self.status = PodStatus::default();
    }

    fn set_status(&mut self, other: &Self) {
        self.status.clone_from(&other.status);
    }

    fn prepare_for_update(&mut self, stored: &Self) {
        self.set_status(stored);
        // A binding is not undone by an update.
        self.node_name = self.node_name.take().or_else(|| stored.node_name.clone());
        self.directives = stored.directives;
    }

    fn same_desire(&self, other: &Self) -> bool {
        self.same_spec(other) && self.node_name == other.node_name
    }

    fn validate(&self) -> Result<(), Invalid> {
        self.spec.validate("spec")
    }

    fn validate_update(&self, _stored: &Self) -> Result<(), Invalid> {
        Ok(())
    }
}

impl PodSpec {
    /// Requests and limits that are not negative; `field` is the path of the spec.
    pub(super) fn validate(&self, field: &str) -> Result<(), Invalid> {
        let containers = self.containers.iter().chain(&self.init_containers).map(|container| &container.resources);
        for resources in containers.chain(&self.resources) {
            let negative = resources.requests.iter().chain(&resources.limits).find(|(_, amount)| amount.is_negative());
            if let Some((name, amount)) = negative {
                let why = format!("Invalid value: \"{amount}\": must be greater than or equal to 0");
                return Err(Invalid::new(format!("{field}.containers.resources.{name}"), why));
            }
        }
        Ok(())
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodStatusJson {
    phase: PodPhase,
    conditions: Vec<Condition>,
    #[serde(with = "crate::json::optional_time")]
    start_time: Option<SimTime>,
    nominated_node_name: SmolStr,
    reason: SmolStr,
    message: SmolStr,
    container_statuses: Vec<Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

fn read_status(value: Option<Value>) -> Result<PodStatus, serde_json::Error> {
    let mut json: PodStatusJson = read(value)?;
    let ContainerRun { started, finished, exit_code, restarts, last_run } =
        ContainerRun::read(&json.container_statuses, json.phase);
    if !json.container_statuses.is_empty() {
        json.rest.insert(CONTAINER_STATUSES.to_owned(), Value::Array(json.container_statuses));
    }
    let why = Why { reason: json.reason, message: json.message, ..Why::default() };
    Ok(PodStatus {
        phase: json.phase,
        conditions: json.conditions,
        start_time: json.start_time,
        started,
        finished,
        exit_code,
        restarts,
        last_run: last_run.map(Arc::new),
        nominated_node_name: Some(json.nominated_node_name).filter(|node| !node.is_empty()),
        why: (why != Why::default()).then(|| Arc::new(why)),
        rest: (!json.rest.is_empty()).then(|| Arc::new(json.rest)),
    })
}

/// The parts of a status that are derived from [`ContainerRun`], unless a client wrote them.
const CONTAINER_STATUSES: &str = "containerStatuses";
const INIT_CONTAINER_STATUSES: &str = "initContainerStatuses";

/// What is kept of container statuses: when containers started and ended, all of a pod together.
#[derive(PartialEq)]
struct ContainerRun {
    started: Option<SimTime>,
    finished: Option<SimTime>,
    exit_code: i32,
    restarts: i32,
    last_run: Option<LastRun>,
}

impl ContainerRun {
    fn of(status: &PodStatus) -> Self {
        let PodStatus { started, finished, exit_code, restarts, .. } = *status;
        Self { started, finished, exit_code, restarts, last_run: status.last_run.as_deref().copied() }
    }

    fn read(statuses: &[Value], phase: PodPhase) -> Self {
        let times = |pointers: &[&str]| {
            let texts = statuses.iter().flat_map(|status| pointers.iter().filter_map(|at| status.pointer(at)));
            texts.filter_map(|text| SimTime::parse_rfc3339(text.as_str()?).ok()).collect::<Vec<_>>()
        };
        let finished = times(&["/state/terminated/finishedAt"]).into_iter().max();
        let numbers = |at: &str| statuses.iter().filter_map(|status| status.pointer(at)?.as_i64()).max();
        let number = |at: &str| numbers(at).and_then(|number| i32::try_from(number).ok()).unwrap_or(0);
        Self {
            started: times(&["/state/running/startedAt", "/state/terminated/startedAt"]).into_iter().min(),
            finished: finished.filter(|_| phase.is_final()),
            exit_code: number("/state/terminated/exitCode"),
            restarts: number("/restartCount"),
            last_run: read_last_run(statuses),
        }
    }
}

/// Are the container statuses still those that a client wrote? No longer, once the kubelet has changed what they say.
fn has_written_statuses(status: &PodStatus) -> bool {
    let Some(rest) = status.rest.as_deref() else { return false };
    let written = rest.get(CONTAINER_STATUSES).and_then(Value::as_array);
    written.is_some_and(|written| ContainerRun::read(written, status.phase) == ContainerRun::of(status))
}

/// How the first container that was started again had ended.
fn read_last_run(statuses: &[Value]) -> Option<LastRun> {
    let ended = statuses.iter().find_map(|status| status.pointer("/lastState/terminated"))?;
    let time = |name: &str| SimTime::parse_rfc3339(ended.get(name)?.as_str()?).ok();
    let exit_code = i32::try_from(ended.get("exitCode")?.as_i64()?).ok()?;
    Some(LastRun { started: time("startedAt")?, finished: time("finishedAt")?, exit_code })
}

fn write_status(pod: &Pod) -> Value {
    let status = &pod.status;
    let mut fields = Map::new();
    fields.insert("phase".into(), json!(status.phase));
    if !status.conditions.is_empty() {
        fields.insert("conditions".into(), json!(status.conditions));
    }
    if let Some(node) = &status.nominated_node_name {
        fields.insert("nominatedNodeName".into(), node.as_str().into());
    }
    if let Some(why) = &status.why {
        let texts = [("reason", &why.reason), ("message", &why.message)];
        for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            fields.insert(name.into(), text.as_str().into());
        }
    }
    if let Some(time) = status.start_time {
        fields.insert("startTime".into(), time.to_rfc3339_secs().into());
    }
    let is_written = has_written_statuses(status);
    let derived = status.started.filter(|_| !is_written);
    if let Some(started) = derived {
        if !pod.spec.init_containers.is_empty() {
            fields.insert(INIT_CONTAINER_STATUSES.into(), container_statuses::of_init(pod, started));
        }
        fields.insert(CONTAINER_STATUSES.into(), container_statuses::of_main(pod, started));
    }
    let rest = status.rest.iter().flat_map(|rest| rest.iter());
    let is_derived = |name: &str| derived.is_some() && [CONTAINER_STATUSES, INIT_CONTAINER_STATUSES].contains(&name);
    fields.extend(rest.filter(|(name, _)| !is_derived(name)).map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_statuses_come_back_as_they_were_written_until_the_kubelet_changes_what_they_say() {
        let written = json!([{
            "name": "main", "ready": true, "restartCount": 2, "image": "a:1", "imageID": "a@sha256:1",
            "state": {"running": {"startedAt": "2026-01-05T09:00:00Z"}},
        }]);
        let Value::Object(mut fields) = json!({
            "spec": {"containers": [{"name": "main", "image": "a:1"}]},
            "status": {"phase": "Running", "containerStatuses": written},
        }) else {
            unreachable!("an object was written")
        };
        let mut pod = Pod::read(&mut fields).unwrap();
        assert_eq!(write_status(&pod)[CONTAINER_STATUSES], written);
        let mut waits = pod.clone();
        let init = json!([{"name": "first", "ready": false, "state": {"waiting": {}}}]);
        let rest = Map::from_iter([(INIT_CONTAINER_STATUSES.to_owned(), init.clone())]);
        waits.status = PodStatus { rest: Some(Arc::new(rest)), ..PodStatus::default() };
        assert_eq!(write_status(&waits)[INIT_CONTAINER_STATUSES], init, "also without those of the others");
        pod.status.restarts = 3;
        let derived = write_status(&pod);
        assert_eq!(derived[CONTAINER_STATUSES][0]["restartCount"], 3);
        assert_eq!(derived[CONTAINER_STATUSES][0].get("imageID"), Some(&json!("")));
    }
}
