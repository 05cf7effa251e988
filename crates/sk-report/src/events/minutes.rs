//! Pods counted by owner and minute, for runs with more waits than a page can hold.

use std::collections::BTreeMap;

use sk_core::{SimDuration, SimTime};
use sk_record::EndedBy;

use super::PodLine;
use crate::step::Window;

/// Rows that a page holds: 40,000 × 40 bytes are 1.6 MB. Beyond that minutes become pairs of minutes, and so on.
const ROWS_MAX: usize = 40_000;

/// What happened to the pods of one owner in one minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Minute {
    /// Pods created then that waited.
    pub waited: i64,
    /// The longest of their waits.
    pub longest: SimDuration,
    /// Of those that waited, pods that were never placed.
    pub never_placed: i64,
    /// Pods evicted then.
    pub evicted: i64,
    /// Pods preempted then.
    pub preempted: i64,
    /// Pods that failed or lost their node then.
    pub failed: i64,
}

impl Minute {
    fn join(&mut self, other: &Self) {
        self.waited += other.waited;
        self.longest = self.longest.max(other.longest);
        self.never_placed += other.never_placed;
        self.evicted += other.evicted;
        self.preempted += other.preempted;
        self.failed += other.failed;
    }
}

/// Minutes of owners.
#[derive(Clone, Debug)]
pub struct Minutes {
    /// How long a minute is by now.
    pub width: SimDuration,
    rows: BTreeMap<(u32, i64), Minute>,
}

impl Default for Minutes {
    fn default() -> Self {
        Self { width: SimDuration::from_mins(1), rows: BTreeMap::new() }
    }
}

impl Minutes {
    /// Counts a pod: its wait in the minute of its creation, its end in the minute of its end.
    pub(super) fn add(&mut self, line: &PodLine, window: Window) {
        let from = line.created.max(window.start);
        if line.waited_for.is_some() {
            let bound = line.scheduled.filter(|at| *at <= window.end);
            let to = bound.or(line.ended).map_or(window.end, |end| end.min(window.end));
            let waited = Minute {
                waited: 1,
                longest: to.since(line.created).max(SimDuration::ZERO),
                never_placed: i64::from(bound.is_none()),
                ..Minute::default()
            };
            self.row(line.owner, from, window).join(&waited);
        }
        let ended = match line.how {
            Some(EndedBy::Evicted) => Minute { evicted: 1, ..Minute::default() },
            Some(EndedBy::Preempted) => Minute { preempted: 1, ..Minute::default() },
            Some(EndedBy::Failed | EndedBy::NodeLost) => Minute { failed: 1, ..Minute::default() },
            Some(EndedBy::Finished | EndedBy::Deleted) | None => return,
        };
        let at = line.ended.unwrap_or(window.end).min(window.end).max(window.start);
        self.row(line.owner, at, window).join(&ended);
    }

    fn row(&mut self, owner: u32, at: SimTime, window: Window) -> &mut Minute {
        while self.rows.len() >= ROWS_MAX {
            self.widen();
        }
        let minute = at.since(window.start).as_micros() / self.width.as_micros();
        self.rows.entry((owner, minute)).or_default()
    }

    /// Two neighbours become one.
    fn widen(&mut self) {
        self.width = self.width * 2;
        for ((owner, minute), row) in std::mem::take(&mut self.rows) {
            self.rows.entry((owner, minute / 2)).or_default().join(&row);
        }
    }

    /// Owner, the minute's number from the window's start, and what happened.
    pub fn rows(&self) -> impl Iterator<Item = (u32, i64, &Minute)> {
        self.rows.iter().map(|((owner, minute), row)| (*owner, *minute, row))
    }

    /// Is nothing counted?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
