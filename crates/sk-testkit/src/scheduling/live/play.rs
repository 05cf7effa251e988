//! Carries out one step after the other, and stands in for the kubelets: a bound pod starts, a deleted one ends when
//! the scenario says.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::api;
use super::log::Follower;
use super::rest::Awaited;
use super::tracker::{self, Tracker};
use super::{Arena, PlayError};
use crate::scenario::Target;
use crate::scheduling::attempt::{Attempt, Outcome, name_of, pod_name};
use crate::scheduling::scenario::{Change, Step};

/// Start times are made up, one second after the other from here on, so that two recordings have the same.
const FIRST_START: i64 = 1_767_225_600;

/// Where all nodes are.
pub(super) const NODES: &str = "/api/v1/nodes";

/// Plays the steps of one scenario.
pub(super) struct Player<'a> {
    pub(super) arena: &'a mut Arena,
    pub(super) log: Follower,
    pub(super) tracker: Tracker,
    /// Nodes that there are.
    nodes: BTreeSet<String>,
    /// Some attempt did not look at all nodes, so the next one does not start at the first.
    moved_on: bool,
    started: i64,
    /// Every event of a pod that was let through has been carried out.
    pub(super) is_fenced: bool,
    /// So many attempts of the step were compared with what the pods' conditions say.
    pub(super) checked: usize,
}

impl<'a> Player<'a> {
    pub(super) fn new(arena: &'a mut Arena, log: Follower) -> Self {
        let (tracker, nodes) = (Tracker::default(), BTreeSet::new());
        Self { arena, log, tracker, nodes, moved_on: false, started: 0, is_fenced: false, checked: 0 }
    }

    fn begin(&mut self) {
        self.tracker.begin();
        self.checked = 0;
    }

    /// Creates the scenario's nodes, in order, and waits until the scheduler knows all of them.
    pub(super) async fn nodes(&mut self, nodes: &[Value]) -> Result<(), PlayError> {
        self.begin();
        let mut events = Vec::new();
        for node in nodes {
            self.arena.make(node).await?;
            self.nodes.insert(name_of(node));
            events.push((tracker::NODE_ADDED, name_of(node)));
        }
        self.rest(Awaited::nodes(events)).await
    }

    /// Does one step and returns what the scheduler tried because of it.
    pub(super) async fn step(&mut self, step: &Step) -> Result<Vec<Attempt>, PlayError> {
        self.begin();
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
        self.begin();
        self.arena.remove_pods().await?;
        self.rest(Awaited::default()).await?;
        let nodes = self.arena.api.get(NODES).await?;
        let nodes = nodes["items"].as_array().into_iter().flatten();
        let events = nodes.map(|node| (tracker::NODE_DELETED, name_of(node))).collect();
        self.arena.api.delete(NODES).await?;
        self.rest(Awaited::nodes(events)).await
    }

    async fn act(&mut self, step: &Step) -> Result<Awaited, PlayError> {
        Ok(match step {
            Step::Pod(pod) | Step::Bind(pod) => {
                self.arena.make(pod).await?;
                Awaited::default()
            }
            Step::Node(node) => {
                self.arena.make(node).await?;
                self.nodes.insert(name_of(node));
                Awaited::nodes(vec![(tracker::NODE_ADDED, name_of(node))])
            }
            Step::Create(object) => {
                let awaited = self.unseen(object["kind"].as_str().unwrap_or_default());
                self.arena.make(object).await?;
                awaited
            }
            Step::Change(change) => self.change(change).await?,
            Step::Delete(target) => self.delete(target).await?,
            Step::Finish => self.finish().await?,
            Step::Wait(span) => {
                tokio::time::sleep(Duration::from_micros(u64::try_from(span.as_micros()).unwrap_or(0))).await;
                Awaited::default()
            }
        })
    }

    /// What has to be waited for after something is done to an object of this kind, whose events are not logged.
    fn unseen(&self, kind: &str) -> Awaited {
        let collection = api::collection(kind).unwrap_or_default();
        let told = self.arena.gate.passed(&collection);
        Awaited::unseen(collection, told)
    }

    async fn change(&mut self, change: &Change) -> Result<Awaited, PlayError> {
        let (path, object) = place(&change.of)?;
        let path = if change.status { format!("{path}/status") } else { path };
        let awaited = match change.of.0.gvk.kind.as_str() {
            "Node" => Awaited::nodes(vec![(tracker::NODE_UPDATED, object)]),
            "Pod" => Awaited::default(),
            kind => self.unseen(kind),
        };
        if change.of.0.gvk.kind.as_str() == "Pod" {
            // A random scenario cannot know that the pod was somebody's victim.
            self.arena.api.merge_if_there(&path, &change.merge).await?;
        } else {
            self.arena.api.merge(&path, &change.merge).await?;
        }
        Ok(awaited)
    }

    async fn delete(&mut self, target: &Target) -> Result<Awaited, PlayError> {
        let (path, object) = place(target)?;
        let awaited = match target.0.gvk.kind.as_str() {
            "Node" => Awaited::going(object.clone()),
            "Pod" => Awaited::default(),
            kind => self.unseen(kind),
        };
        if !self.arena.api.delete_if_there(&path).await? {
            // A random scenario cannot know that the pod was somebody's victim.
            return Ok(Awaited::default());
        }
        self.arena.created.retain(|created| *created != path);
        self.nodes.remove(&object);
        Ok(awaited)
    }

    /// Ends every pod that is being deleted, one after the other: the scheduler rests in between, so that it is certain
    /// who of them was gone when it decided.
    async fn finish(&mut self) -> Result<Awaited, PlayError> {
        let listed = self.arena.api.get("/api/v1/pods").await?;
        let pods = listed["items"].as_array().into_iter().flatten();
        for pod in pods.filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null()) {
            self.arena.api.delete(&pod_path(&name_of(pod))).await?;
            self.rest(Awaited::default()).await?;
        }
        Ok(Awaited::default())
    }

    /// The kubelets start what was bound in this step, one second after the other.
    async fn start_bound(&mut self, step: &Step, attempts: &[Attempt]) -> Result<(), PlayError> {
        let mut bound: Vec<String> = match step {
            Step::Bind(pod) => vec![name_of(pod)],
            _ => Vec::new(),
        };
        let is_bound = |attempt: &&Attempt| matches!(attempt.outcome, Outcome::Bound { .. });
        bound.extend(attempts.iter().filter(is_bound).map(|attempt| attempt.pod.clone()));
        self.begin();
        if bound.is_empty() {
            return Ok(());
        }
        for pod in bound {
            self.started += 1;
            let since = jiff::Timestamp::from_second(FIRST_START + self.started).unwrap_or_default();
            let status = json!({"status": {"phase": "Running", "startTime": since.to_string()}});
            self.arena.api.merge(&format!("{}/status", pod_path(&pod)), &status).await?;
        }
        self.rest(Awaited::default()).await
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

/// The API path of the pod with this name in recordings.
pub(super) fn pod_path(pod: &str) -> String {
    let (namespace, name) = pod.split_once('/').unwrap_or(("default", pod));
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}
