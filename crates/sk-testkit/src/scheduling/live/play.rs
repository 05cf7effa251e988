//! Does one step after the other, and plays the kubelets: a bound pod starts, a deleted one ends when the scenario says.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::api;
use super::log::{Follower, Line};
use super::tracker::{self, Tracker};
use super::{Arena, PlayError};
use crate::scenario::Target;
use crate::scheduling::answer::{Attempt, Outcome, name_of, pod_name};
use crate::scheduling::scenario::{Change, Step};

/// How long the scheduler may take to come to rest. A pod that failed waits at most its back-off of ten seconds.
const REST_LIMIT: Duration = Duration::from_secs(40);
/// How often the log is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// The scheduler looks at all waiting pods within the handler of an event, which takes microseconds; a loaded machine may
/// let it wait in between.
const QUIET_WITH_WAITING_PODS: Duration = Duration::from_millis(80);
/// On a loaded machine everything takes longer: it must be quiet for so many times what an event took to arrive, ...
const QUIET_PER_LATENCY: u32 = 2;
/// ... but not for longer than this.
const MAX_QUIET: Duration = Duration::from_secs(2);
/// An event of a kind whose arrival the log does not tell has to be waited for blindly.
const QUIET_AFTER_UNSEEN_EVENT: Duration = Duration::from_millis(400);
/// Start times are made up, one second after the other from here on, so that two recordings have the same.
const FIRST_START: i64 = 1_767_225_600;

/// What a step waits for: an event that reaches the scheduler, and how long nothing must happen after it.
struct Awaited {
    events: Vec<(&'static str, String)>,
    /// A pod that the queue has yet to take in.
    pod: Option<String>,
    quiet: Duration,
}

/// Plays the steps of one scenario.
pub(super) struct Player<'a> {
    arena: &'a mut Arena,
    log: Follower,
    tracker: Tracker,
    /// The schedulers that run.
    schedulers: BTreeSet<String>,
    /// Pods that are on a node.
    assigned: BTreeSet<String>,
    /// Nodes that there are.
    nodes: BTreeSet<String>,
    /// Some attempt did not look at all nodes, so the next one does not start at the first.
    moved_on: bool,
    /// How long the last event took from the request to the log.
    latency: Duration,
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
            latency: Duration::ZERO,
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
        self.rest(Awaited { events, pod: None, quiet: Duration::ZERO }).await
    }

    /// Does one step and returns what the scheduler tried because of it.
    pub(super) async fn step(&mut self, step: &Step) -> Result<Vec<Attempt>, PlayError> {
        self.tracker.begin();
        let awaited = self.act(step).await?;
        self.rest(awaited).await?;
        let attempts = self.tracker.attempts();
        self.moved_on |= attempts.iter().any(|attempt| !looks_at_all(attempt, self.nodes.len()));
        self.check(&attempts).await?;
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
        for pod in pods["items"].as_array().into_iter().flatten() {
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
        self.rest(Awaited { events, pod: None, quiet: QUIET_WITH_WAITING_PODS }).await
    }

    async fn act(&mut self, step: &Step) -> Result<Awaited, PlayError> {
        let seen = |event, object: String| Awaited { events: vec![(event, object)], pod: None, quiet: Duration::ZERO };
        let unseen = || Awaited { events: Vec::new(), pod: None, quiet: QUIET_AFTER_UNSEEN_EVENT };
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
            _ => return Ok(Awaited { events: Vec::new(), pod: None, quiet: QUIET_AFTER_UNSEEN_EVENT }),
        };
        Ok(Awaited { events: vec![(event, object)], pod: None, quiet: Duration::ZERO })
    }

    async fn delete(&mut self, target: &Target) -> Result<Awaited, PlayError> {
        let (path, object) = place(target)?;
        if !self.arena.api.delete_if_there(&path).await? {
            // A random scenario cannot know that the pod was somebody's victim.
            return Ok(Awaited { events: Vec::new(), pod: None, quiet: Duration::ZERO });
        }
        self.arena.created.retain(|created| *created != path);
        self.nodes.remove(&object);
        let event = match target.0.gvk.kind.as_str() {
            "Node" => tracker::NODE_DELETED,
            "Pod" if self.assigned.remove(&object) => tracker::ASSIGNED_DELETED,
            "Pod" => tracker::PENDING_DELETED,
            _ => return Ok(Awaited { events: Vec::new(), pod: None, quiet: QUIET_AFTER_UNSEEN_EVENT }),
        };
        Ok(Awaited { events: vec![(event, object)], pod: None, quiet: Duration::ZERO })
    }

    /// Ends every pod that is being deleted.
    async fn finish(&mut self) -> Result<Awaited, PlayError> {
        let listed = self.arena.api.get("/api/v1/pods").await?;
        let pods = listed["items"].as_array().into_iter().flatten();
        let ending: Vec<&Value> = pods.filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null()).collect();
        let mut events = Vec::new();
        for pod in ending {
            let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
            self.arena.api.delete(&format!("/api/v1/namespaces/{}/pods/{}", text("namespace"), text("name"))).await?;
            self.assigned.remove(&name_of(pod));
            events.push((tracker::ASSIGNED_DELETED, name_of(pod)));
        }
        Ok(Awaited { events, pod: None, quiet: Duration::ZERO })
    }

    /// Follows the log until the events have arrived, nothing is left to do, and it has been quiet for long enough.
    async fn rest(&mut self, awaited: Awaited) -> Result<(), PlayError> {
        let began = Instant::now();
        let mut last_word = Instant::now();
        let mut arrived = awaited.events.is_empty();
        loop {
            let lines = self.log.lines()?;
            if !lines.is_empty() {
                last_word = Instant::now();
            }
            for line in lines.iter().filter_map(|line| Line::parse(line)) {
                self.tracker.take(&line);
            }
            let missing = awaited.events.iter().find(|(event, object)| !self.tracker.has_seen(event, object));
            if missing.is_none() && !arrived {
                (self.latency, arrived) = (began.elapsed(), true);
            }
            let patience = (self.latency * QUIET_PER_LATENCY).clamp(QUIET_WITH_WAITING_PODS, MAX_QUIET);
            let quiet = if self.tracker.someone_waits() { awaited.quiet.max(patience) } else { awaited.quiet };
            let taken_in = awaited.pod.as_ref().is_none_or(|pod| self.tracker.has_taken_in(pod));
            if missing.is_none() && taken_in && self.tracker.is_idle() && last_word.elapsed() >= quiet {
                return Ok(());
            }
            if began.elapsed() > REST_LIMIT {
                let what = match missing {
                    Some((event, object)) => format!("the log says `{event}` of {object}"),
                    None => format!("the scheduler rests: {}", self.tracker.unfinished()),
                };
                return Err(PlayError::Restless { what, waited: REST_LIMIT });
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Does the status of each pod that found no node say what the log said?
    async fn check(&self, attempts: &[Attempt]) -> Result<(), PlayError> {
        let last =
            |index: usize, attempt: &Attempt| !attempts[index + 1..].iter().any(|later| later.pod == attempt.pod);
        for (_, attempt) in attempts.iter().enumerate().filter(|(index, attempt)| last(*index, attempt)) {
            let Outcome::Unschedulable { unschedulable, .. } = &attempt.outcome else { continue };
            let began = Instant::now();
            // The log tells of the condition before it is written.
            while let message = self.condition(&attempt.pod).await?
                && message != *unschedulable
            {
                if began.elapsed() > REST_LIMIT {
                    let (pod, log) = (attempt.pod.clone(), unschedulable.clone());
                    return Err(PlayError::Disagree { pod, condition: message, log });
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(())
    }

    /// The message of a pod's condition `PodScheduled`.
    async fn condition(&self, pod: &str) -> Result<String, PlayError> {
        let pod = self.arena.api.get(&pod_path(pod)).await?;
        let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let condition = conditions.find(|condition| condition["type"] == "PodScheduled");
        Ok(condition.and_then(|condition| condition["message"].as_str()).unwrap_or_default().to_owned())
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
        if events.is_empty() { Ok(()) } else { self.rest(Awaited { events, pod: None, quiet: Duration::ZERO }).await }
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
fn pod_path(pod: &str) -> String {
    let (namespace, name) = pod.split_once('/').unwrap_or(("default", pod));
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}
