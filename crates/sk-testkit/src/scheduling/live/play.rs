//! Does one step after the other, and plays the kubelets: a bound pod starts, a deleted one ends when the scenario says.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::api;
use super::log::Follower;
use super::rest::Awaited;
use super::tracker::{self, FENCE, Tracker};
use super::{Arena, PlayError};
use crate::scenario::Target;
use crate::scheduling::answer::{Attempt, Outcome, name_of, pod_name};
use crate::scheduling::scenario::{Change, Step};

/// Start times are made up, one second after the other from here on, so that two recordings have the same.
const FIRST_START: i64 = 1_767_225_600;

/// Plays the steps of one scenario.
pub(super) struct Player<'a> {
    pub(super) arena: &'a mut Arena,
    pub(super) log: Follower,
    pub(super) tracker: Tracker,
    /// The schedulers that run.
    schedulers: BTreeSet<String>,
    /// Pods that are on a node.
    assigned: BTreeSet<String>,
    /// Nodes that there are.
    nodes: BTreeSet<String>,
    /// Some attempt did not look at all nodes, so the next one does not start at the first.
    moved_on: bool,
    started: i64,
}

impl<'a> Player<'a> {
    pub(super) fn new(arena: &'a mut Arena, log: Follower, configuration: &Value) -> Self {
        let profiles = configuration["profiles"].as_array().cloned().unwrap_or_else(|| vec![json!({})]);
        let name = |profile: &Value| profile["schedulerName"].as_str().unwrap_or("default-scheduler").to_owned();
        let schedulers = profiles.iter().map(name).collect();
        Self {
            arena,
            log,
            tracker: Tracker::default(),
            schedulers,
            assigned: BTreeSet::new(),
            nodes: BTreeSet::new(),
            moved_on: false,
            started: 0,
        }
    }

    /// Creates the scenario's nodes, in order, and waits until the scheduler knows all of them.
    pub(super) async fn nodes(&mut self, nodes: &[Value]) -> Result<(), PlayError> {
        self.tracker.begin();
        let mut events = Vec::new();
        for node in nodes {
            self.arena.make(node).await?;
            self.nodes.insert(name_of(node));
            events.push((tracker::NODE_ADDED, name_of(node)));
        }
        self.rest(Awaited::all(events)).await
    }

    /// Does one step and returns what the scheduler tried because of it.
    pub(super) async fn step(&mut self, step: &Step) -> Result<Vec<Attempt>, PlayError> {
        self.tracker.begin();
        let awaited = self.act(step).await?;
        self.rest(awaited).await?;
        let attempts = self.tracker.attempts();
        self.moved_on |= attempts.iter().any(|attempt| !looks_at_all(attempt, self.nodes.len()));
        self.start_bound(step, &attempts).await?;
        Ok(attempts)
    }

    /// The scenario is over: its log, if the scheduler can serve another one that begins like this one did.
    pub(super) fn end(self) -> Option<Follower> {
        (!self.moved_on).then_some(self.log)
    }

    /// Empties the cluster under a scheduler that goes on, and waits until it has seen that.
    pub(super) async fn clear(&mut self) -> Result<(), PlayError> {
        self.tracker.begin();
        let mut events = Vec::new();
        let pods = self.arena.api.get("/api/v1/pods").await?;
        let pods = pods["items"].as_array().into_iter().flatten();
        for pod in pods.filter(|pod| name_of(pod) != FENCE) {
            let scheduler = pod["spec"]["schedulerName"].as_str().unwrap_or_default();
            match pod["spec"]["nodeName"].as_str() {
                Some(_) if pod["status"]["phase"] == "Succeeded" => {}
                Some(_) => events.push((tracker::ASSIGNED_DELETED, name_of(pod))),
                None if self.schedulers.contains(scheduler) => events.push((tracker::PENDING_DELETED, name_of(pod))),
                None => {}
            }
        }
        let nodes = self.arena.api.get("/api/v1/nodes").await?;
        let nodes = nodes["items"].as_array().into_iter().flatten();
        events.extend(nodes.map(|node| (tracker::NODE_DELETED, name_of(node))));
        self.arena.empty().await?;
        self.rest(Awaited::all(events)).await
    }

    async fn act(&mut self, step: &Step) -> Result<Awaited, PlayError> {
        let seen = |event, object: String| Awaited::all(vec![(event, object)]);
        let unseen = Awaited::unseen;
        Ok(match step {
            Step::Pod(pod) => {
                self.arena.make(pod).await?;
                let scheduler = pod["spec"]["schedulerName"].as_str().unwrap_or("default-scheduler");
                if self.schedulers.contains(scheduler) {
                    Awaited { pod: Some(name_of(pod)), ..seen(tracker::PENDING_ADDED, name_of(pod)) }
                } else {
                    unseen()
                }
            }
            Step::Bind(pod) => {
                self.arena.make(pod).await?;
                seen(tracker::ASSIGNED_ADDED, name_of(pod))
            }
            Step::Node(node) => {
                self.arena.make(node).await?;
                self.nodes.insert(name_of(node));
                seen(tracker::NODE_ADDED, name_of(node))
            }
            Step::Create(object) => {
                self.arena.make(object).await?;
                unseen()
            }
            Step::Change(change) => self.change(change).await?,
            Step::Delete(target) => self.delete(target).await?,
            Step::Finish => self.finish().await?,
            Step::Wait(span) => {
                tokio::time::sleep(Duration::from_micros(u64::try_from(span.as_micros()).unwrap_or(0))).await;
                unseen()
            }
        })
    }

    async fn change(&mut self, change: &Change) -> Result<Awaited, PlayError> {
        let (path, object) = place(&change.of)?;
        let path = if change.status { format!("{path}/status") } else { path };
        self.arena.api.merge(&path, &change.merge).await?;
        let event = match change.of.0.gvk.kind.as_str() {
            "Node" => tracker::NODE_UPDATED,
            // The scheduler watches only pods that have not ended.
            "Pod" if change.merge["status"]["phase"] == "Succeeded" && self.assigned.remove(&object) => {
                tracker::ASSIGNED_DELETED
            }
            "Pod" if self.assigned.contains(&object) => tracker::ASSIGNED_UPDATED,
            "Pod" => tracker::PENDING_UPDATED,
            _ => return Ok(Awaited::unseen()),
        };
        Ok(Awaited::all(vec![(event, object)]))
    }

    async fn delete(&mut self, target: &Target) -> Result<Awaited, PlayError> {
        let (path, object) = place(target)?;
        if !self.arena.api.delete_if_there(&path).await? {
            // A random scenario cannot know that the pod was somebody's victim.
            return Ok(Awaited::all(Vec::new()));
        }
        self.arena.created.retain(|created| *created != path);
        self.nodes.remove(&object);
        let event = match target.0.gvk.kind.as_str() {
            "Node" => tracker::NODE_DELETED,
            "Pod" if self.assigned.remove(&object) => tracker::ASSIGNED_DELETED,
            "Pod" => tracker::PENDING_DELETED,
            _ => return Ok(Awaited::unseen()),
        };
        Ok(Awaited::all(vec![(event, object)]))
    }

    /// Ends every pod that is being deleted, one after the other: the scheduler rests in between, so that it is certain
    /// who of them was gone when it decided.
    async fn finish(&mut self) -> Result<Awaited, PlayError> {
        let listed = self.arena.api.get("/api/v1/pods").await?;
        let pods = listed["items"].as_array().into_iter().flatten();
        for pod in pods.filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null()) {
            self.arena.api.delete(&pod_path(&name_of(pod))).await?;
            self.assigned.remove(&name_of(pod));
            self.rest(Awaited::all(vec![(tracker::ASSIGNED_DELETED, name_of(pod))])).await?;
        }
        Ok(Awaited::all(Vec::new()))
    }

    /// The kubelets start what was bound in this step, one second after the other.
    async fn start_bound(&mut self, step: &Step, attempts: &[Attempt]) -> Result<(), PlayError> {
        let mut bound: Vec<String> = match step {
            Step::Bind(pod) => vec![name_of(pod)],
            _ => Vec::new(),
        };
        let is_bound = |attempt: &&Attempt| matches!(attempt.outcome, Outcome::Bound { .. });
        bound.extend(attempts.iter().filter(is_bound).map(|attempt| attempt.pod.clone()));
        self.tracker.begin();
        let mut events = Vec::new();
        for pod in bound {
            self.started += 1;
            let since = jiff::Timestamp::from_second(FIRST_START + self.started).unwrap_or_default();
            let status = json!({"status": {"phase": "Running", "startTime": since.to_string()}});
            self.arena.api.merge(&format!("{}/status", pod_path(&pod)), &status).await?;
            events.push((tracker::ASSIGNED_UPDATED, pod.clone()));
            self.assigned.insert(pod);
        }
        if events.is_empty() { Ok(()) } else { self.rest(Awaited::all(events)).await }
    }
}

/// Did the scheduler look at all nodes? If it did, the next search starts where this one did (schedule_one.go,
/// `nextStartNodeIndex`).
fn looks_at_all(attempt: &Attempt, nodes: usize) -> bool {
    match &attempt.outcome {
        Outcome::Bound { evaluated, .. } => *evaluated == nodes as u64,
        Outcome::Unschedulable { unschedulable, .. } => !unschedulable.contains("didn't satisfy plugin(s)"),
        Outcome::Failed { .. } => false,
    }
}

/// Where an object is, and how the tracker calls it.
fn place(target: &Target) -> Result<(String, String), PlayError> {
    let (gvk, key) = (&target.0.gvk, &target.0.key);
    let namespace = key.namespace.as_deref();
    let object = pod_name(namespace.unwrap_or("default"), &key.name);
    Ok((api::path(gvk, namespace, &key.name)?, object))
}

/// Where the pod is that answers call so.
pub(super) fn pod_path(pod: &str) -> String {
    let (namespace, name) = pod.split_once('/').unwrap_or(("default", pod));
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}
