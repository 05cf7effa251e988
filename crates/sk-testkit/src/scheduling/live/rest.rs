//! When is the scheduler idle? When the log shows that it has received and handled everything.
//!
//! An event is logged when its handler begins, so the log alone never says that one has ended. But handlers of one
//! informer run one after the other: an event of the *fence*, a pod of nobody's on a node that is not there, follows the
//! event, and when that is logged the event's handler has ended. So a step ends by proof and not by the clock, however
//! loaded the machine is. A changed node is fenced by another change to itself, because nodes have an informer of their
//! own. Kinds whose events are not logged at all can only be waited for, once they have passed the gate.
//!
//! Events of pods wait at the gate. When the scheduler is idle one is let through, and the next one when the scheduler is
//! idle again. What has been written and is not yet at the gate is waited for: the answers to writes say which event will
//! tell of them. Only of deletions they do not; then the fence is changed at the API server, whose event comes after theirs.

use std::time::{Duration, Instant};

use serde_json::json;

use super::PlayError;
use super::log::Line;
use super::play::Player;
use super::tracker;
use crate::scheduling::attempt::{Attempt, Outcome};

/// How long the scheduler may take to come to rest. A pod that failed waits at most its back-off of ten seconds.
const REST_LIMIT: Duration = Duration::from_secs(60);
/// How often the log is looked at. A pod is waited for about ten times, so this is a tenth of what a pod costs.
const LOOK: Duration = Duration::from_micros(150);
/// An event of a kind whose arrival the log does not tell has to be waited for blindly.
const QUIET_AFTER_UNSEEN_EVENT: Duration = Duration::from_millis(400);

/// What a step waits for, besides what waits at the gate.
#[derive(Default)]
pub(super) struct Awaited {
    /// Events of nodes that reach the scheduler.
    nodes: Vec<(&'static str, String)>,
    /// A collection whose watch has something to tell, and how much it had told before.
    watch: Option<(String, u64)>,
    /// How long nothing must happen.
    quiet: Duration,
}

impl Awaited {
    /// All of these events of nodes.
    pub(super) fn nodes(nodes: Vec<(&'static str, String)>) -> Self {
        Self { nodes, ..Self::default() }
    }

    /// A node goes: that is logged before the scheduler's cache has forgotten the node.
    pub(super) fn going(node: String) -> Self {
        Self { nodes: vec![(tracker::NODE_DELETED, node)], quiet: QUIET_AFTER_UNSEEN_EVENT, ..Self::default() }
    }

    /// Something that the log does not tell, of a collection whose watch has told so much, if there is one.
    pub(super) fn unseen(collection: String, told: Option<u64>) -> Self {
        Self { watch: told.map(|told| (collection, told)), quiet: QUIET_AFTER_UNSEEN_EVENT, ..Self::default() }
    }
}

impl Player<'_> {
    /// Waits until the events have been carried out and nothing is left to do about them.
    pub(super) async fn rest(&mut self, awaited: Awaited) -> Result<(), PlayError> {
        self.idle(&awaited).await?;
        self.fence_nodes(&awaited).await?;
        loop {
            // Whatever the attempts before have caused waits at the gate, and whatever was let through has been carried out
            // when the fence moves.
            let tried = self.tracker.tried();
            self.all_at_the_gate().await?;
            self.fence_pods().await?;
            self.idle(&Awaited::default()).await?;
            self.check()?;
            if let Some(during) = self.tracker.disturbed() {
                return Err(PlayError::Disturbed { plays: 1, during });
            }
            if self.tracker.tried() == tried {
                if !self.arena.gate.let_one_through() {
                    return Ok(());
                }
                self.is_fenced = false;
            }
        }
    }

    /// Everything that was done to pods so far waits at the gate, or has passed it, when this returns.
    async fn all_at_the_gate(&mut self) -> Result<(), PlayError> {
        loop {
            self.until("the scheduler's writes are answered", |player| !player.arena.gate.is_writing()).await?;
            let (api, gate) = (&self.arena.api, &self.arena.gate);
            if api.take_deleted() | gate.take_deleted() {
                self.arena.mark().await?;
            }
            let version = self.arena.api.newest();
            self.until("everything that was done to pods", |player| player.arena.gate.has_all(version)).await?;
            if !self.arena.gate.has_deleted() {
                return Ok(());
            }
        }
    }

    /// Follows the log until the events have arrived and the scheduler does nothing.
    async fn idle(&mut self, awaited: &Awaited) -> Result<(), PlayError> {
        let began = Instant::now();
        let mut last_word = Instant::now();
        loop {
            if self.read()? {
                last_word = Instant::now();
            }
            let missing = awaited.nodes.iter().find(|(event, node)| !self.tracker.has_seen(event, node));
            let watched = awaited.watch.as_ref();
            let untold = watched.is_some_and(|(path, told)| self.arena.gate.passed(path) <= Some(*told));
            if untold {
                last_word = Instant::now();
            }
            if missing.is_none() && self.tracker.is_idle() && last_word.elapsed() >= awaited.quiet {
                return Ok(());
            }
            if began.elapsed() > REST_LIMIT {
                let what = match missing {
                    Some((event, object)) => format!("the log says `{event}` of {object}"),
                    None => format!("the scheduler rests: {}", self.tracker.unfinished()),
                };
                return Err(PlayError::Restless { what, waited: REST_LIMIT });
            }
            pause();
        }
    }

    /// Takes in what the log says by now; did it say anything?
    fn read(&mut self) -> Result<bool, PlayError> {
        let added = self.log.added()?;
        for line in added.lines().filter_map(Line::parse) {
            self.tracker.take(&line);
        }
        Ok(!added.is_empty())
    }

    /// Every event of a pod that was let through has been carried out when this returns.
    async fn fence_pods(&mut self) -> Result<(), PlayError> {
        if self.is_fenced {
            return Ok(());
        }
        let before = self.tracker.fences();
        self.arena.move_fence();
        self.until("the fence moves", |player| player.tracker.fences() > before).await?;
        self.is_fenced = true;
        Ok(())
    }

    /// Every event of these nodes so far has been carried out when this returns: they have all been seen, so the last one's
    /// next change comes after them.
    async fn fence_nodes(&mut self, awaited: &Awaited) -> Result<(), PlayError> {
        let is_there = |(event, _): &&(&str, String)| [tracker::NODE_ADDED, tracker::NODE_UPDATED].contains(event);
        let Some((_, node)) = awaited.nodes.iter().rfind(is_there) else { return Ok(()) };
        let before = self.tracker.node_updates(node);
        let mark = json!({"metadata": {"annotations": {"fence": before.to_string()}}});
        self.arena.api.merge(&format!("/api/v1/nodes/{node}"), &mark).await?;
        self.until(node, |player| player.tracker.node_updates(node) > before).await
    }

    async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) -> Result<(), PlayError> {
        let began = Instant::now();
        while !is_so(self) {
            if began.elapsed() > REST_LIMIT {
                return Err(PlayError::Restless { what: format!("the log says of {what}"), waited: REST_LIMIT });
            }
            pause();
            self.read()?;
        }
        Ok(())
    }

    /// Does the status of each pod that found no node say what the log said? Until it does, the request is under way.
    fn check(&mut self) -> Result<(), PlayError> {
        if self.tracker.tried() == self.checked {
            return Ok(());
        }
        let attempts = self.tracker.attempts();
        let unchecked = std::mem::replace(&mut self.checked, attempts.len());
        let last = |index: usize, pod: &str| !attempts[index + 1..].iter().any(|later| later.pod == pod);
        let is_new = |(index, attempt): &(usize, &Attempt)| *index >= unchecked && last(*index, &attempt.pod);
        for (_, attempt) in attempts.iter().enumerate().filter(is_new) {
            let Outcome::Unschedulable { unschedulable, .. } = &attempt.outcome else { continue };
            // A pod that is tried again before the scheduler has seen its own last word keeps that one: the new word is
            // compared with the status that the scheduler knows, and is not written if it is the same.
            let is_unwritten = self.arena.gate.told(&attempt.pod).as_ref() == Some(unschedulable);
            let was_said = |message: &str| {
                attempts.iter().any(|earlier| match &earlier.outcome {
                    Outcome::Unschedulable { unschedulable, .. } => {
                        earlier.pod == attempt.pod && unschedulable == message
                    }
                    Outcome::Bound { .. } | Outcome::Failed { .. } => false,
                })
            };
            let began = Instant::now();
            // The log tells of the condition before it is written.
            while let Some(message) = self.arena.gate.condition(&attempt.pod)
                && message != *unschedulable
                && !(is_unwritten && was_said(&message))
            {
                if began.elapsed() > REST_LIMIT {
                    let (pod, log) = (attempt.pod.clone(), unschedulable.clone());
                    return Err(PlayError::Disagree { pod, condition: message, log });
                }
                pause();
            }
        }
        Ok(())
    }
}

/// Waits for a moment that is shorter than the runtime's clock can measure. Whoever plays waits on a thread of its own, so that
/// the gate goes on meanwhile.
fn pause() {
    tokio::task::block_in_place(|| std::thread::sleep(LOOK));
}
