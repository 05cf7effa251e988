//! Which attempts the log cannot place among the events around them.
//!
//! Informers and the scheduling loop are goroutines of their own. An event is logged before it is carried out, an attempt
//! after its pod was taken from the queue. What was logged before the pod came into the queue was carried out before it
//! was taken; what is logged after the decision was carried out after it. In between nobody can say.

use std::collections::BTreeMap;

use super::{ASSIGNED_ADDED, PENDING_ADDED, PENDING_DELETED, PENDING_UPDATED};
use crate::scheduling::answer::Raced;

/// The log's lines are counted; an event is known by the number of its line.
#[derive(Debug, Default)]
pub(super) struct Races {
    line: u64,
    /// The last event that may have another pod tried again.
    last_event: u64,
    /// The last event that changes what a decision sees.
    last_change: u64,
    /// In this step pods were chosen to go: goroutines take back nominations and mark victims.
    preempted: bool,
    /// When each pod came into the queue.
    enqueued: BTreeMap<String, u64>,
}

impl Races {
    /// A step begins, with a scheduler at rest.
    pub(super) fn begin(&mut self) {
        self.preempted = false;
        self.enqueued.clear();
    }

    /// An event was logged.
    pub(super) fn event(&mut self, event: &'static str) {
        self.line += 1;
        self.last_event = self.line;
        // A bound pod was counted in when it was assumed, and then leaves the queue. A waiting pod matters to others by its
        // nomination alone, which its own failure changes at once, and somebody else's preemption later.
        let is_change = match event {
            ASSIGNED_ADDED | PENDING_ADDED | PENDING_DELETED => false,
            PENDING_UPDATED => self.preempted,
            _ => true,
        };
        if is_change {
            self.last_change = self.line;
        }
    }

    /// A goroutine has begun to make room.
    pub(super) fn preemption(&mut self) {
        self.line += 1;
        (self.preempted, self.last_change) = (true, self.line);
    }

    /// A pod came into the queue.
    pub(super) fn enqueued(&mut self, pod: &str) {
        self.line += 1;
        self.enqueued.insert(pod.to_owned(), self.line);
    }

    /// A pod was taken some time ago: may an event have come between, or not?
    pub(super) fn attempted(&self, pod: &str) -> Raced {
        let since = self.enqueued.get(pod).copied().unwrap_or_default();
        Raced { retry: self.last_event > since, decision: self.last_change > since }
    }

    /// A decision was taken some time ago: may a change have come between, or not?
    pub(super) fn decided(&self, pod: &str) -> bool {
        self.last_change > self.enqueued.get(pod).copied().unwrap_or_default()
    }
}
