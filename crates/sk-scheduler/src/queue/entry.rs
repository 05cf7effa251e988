//! One waiting pod: in which queue, in which order, for how long.

use std::cmp::Reverse;

use sk_core::{SimDuration, SimTime};

use super::groups::Seat;
use super::ranked::Stamp;
use crate::framework::plugin::{PluginId, PluginSet};
use crate::ids::ClassId;

/// The queue's times; the defaults are kube-scheduler's (`backend/queue/scheduling_queue.go`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// First backoff.
    pub initial_backoff: SimDuration,
    /// Longest backoff; zero: none.
    pub max_backoff: SimDuration,
    /// A pod that waited longer than this is tried again whatever happens.
    pub flush_after: SimDuration,
    /// How often that is looked at.
    pub flush_period: SimDuration,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            initial_backoff: SimDuration::from_secs(1),
            max_backoff: SimDuration::from_secs(10),
            flush_after: SimDuration::from_mins(5),
            flush_period: SimDuration::from_secs(30),
        }
    }
}

/// Backoffs end at whole seconds, so that those of one second are ordered by priority (`backoff_queue.go`).
const WINDOW_MICROS: i64 = 1_000_000;

/// Priority first, then age; the number makes the order total.
pub(super) type Rank = (Reverse<i32>, SimTime, u64);

/// Where a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In no queue for the moment.
    Nowhere,
    Active,
    Backoff(SimTime),
    /// Backing off after an error: such pods are not popped early.
    ErrorBackoff(SimTime),
    Unschedulable,
    /// It is being tried; so many events had happened when it was taken.
    InFlight(u64),
}

/// A pod in the queue.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) class: ClassId,
    pub(super) priority: i32,
    /// When it came, or when it last failed.
    pub(super) since: SimTime,
    pub(super) number: u64,
    pub(super) attempts: u32,
    unschedulable_count: u32,
    error_count: u32,
    /// Who rejected it when it was last tried, or holds it back.
    pub(super) rejectors: PluginSet,
    /// Who holds it back before the queue.
    pub(super) gate: Option<PluginId>,
    pub(super) flushed: Option<SimTime>,
    pub(super) place: Place,
    /// The insertion into its place that counts.
    pub(super) stamp: Stamp,
    /// Its place among those that wait for something to happen.
    pub(super) seat: Seat,
}

/// The start of the second.
fn aligned(time: SimTime) -> SimTime {
    SimTime::from_micros(time.as_micros().div_euclid(WINDOW_MICROS) * WINDOW_MICROS)
}

impl Entry {
    pub(super) fn new(class: ClassId, priority: i32, now: SimTime, number: u64) -> Self {
        Self {
            class,
            priority,
            since: now,
            number,
            attempts: 0,
            unschedulable_count: 0,
            error_count: 0,
            rejectors: PluginSet::EMPTY,
            gate: None,
            flushed: None,
            place: Place::Nowhere,
            stamp: 0,
            seat: Seat::default(),
        }
    }

    pub(super) fn rank(&self) -> Rank {
        (Reverse(self.priority), self.since, self.number)
    }

    /// The pod was tried and these plugins rejected it; none: an error.
    pub(super) fn failed(&mut self, now: SimTime, rejectors: PluginSet) {
        if rejectors.is_empty() {
            self.error_count += 1;
        } else {
            self.unschedulable_count += 1;
            self.error_count = 0;
        }
        (self.since, self.rejectors, self.flushed) = (now, rejectors, None);
    }

    /// When its backoff ends (`getBackoffTime`); `None`: it has none.
    pub(super) fn backoff_end(&self, settings: &QueueSettings) -> Option<SimTime> {
        let count = if self.error_count > 0 { self.error_count } else { self.unschedulable_count };
        if count == 0 || settings.max_backoff == SimDuration::ZERO {
            return None;
        }
        let doubled =
            settings.initial_backoff * 1_i64.checked_shl(count - 1).filter(|factor| *factor > 0).unwrap_or(i64::MAX);
        Some(aligned(self.since + doubled.min(settings.max_backoff)))
    }

    /// Is it still backing off?
    pub(super) fn is_backing_off(&self, settings: &QueueSettings, now: SimTime) -> bool {
        self.backoff_end(settings).is_some_and(|end| end >= aligned(now))
    }

    /// From when on it is looked at whether it has waited too long.
    pub(super) fn waits_since(&self) -> SimTime {
        self.flushed.map_or(self.since, |flushed| flushed.max(self.since))
    }
}

/// The first moment at which a backoff that ends then has ended.
pub(super) fn ended_from(end: SimTime) -> SimTime {
    aligned(end) + SimDuration::from_micros(WINDOW_MICROS)
}

/// Has the backoff that ends then ended?
pub(super) fn has_ended(end: SimTime, now: SimTime) -> bool {
    end < aligned(now)
}
