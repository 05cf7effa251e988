//! Changes to workloads that are large enough to explain the curves.
//!
//! Every step of every autoscaled Deployment would hide the one rollout that matters. A change is shown if it asks for
//! at least a tenth as many pods as ever ran at once; of those, the largest.

use std::collections::BTreeMap;

use sk_core::SimTime;
use sk_record::{Error, SeriesRow};

use crate::source::Source;
use crate::step::Window;

/// Changes that are shown.
pub const CHANGES_MAX: usize = 100;
/// A change is shown if it is at least this share of the most pods that ran at once.
const SHARE: f64 = 0.1;

/// One change of an owner's desired replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: SimTime,
    /// `ns/Kind/name`.
    pub owner: String,
    /// Before; nothing if it was not there.
    pub old: Option<f64>,
    /// The value from then on; nothing if the object was deleted.
    pub new: Option<f64>,
}

impl Change {
    /// How many pods more or fewer.
    fn size(&self) -> f64 {
        (self.new.unwrap_or(0.0) - self.old.unwrap_or(0.0)).abs()
    }
}

/// The largest changes, in order of time. What was there at the window's start is not a change.
pub(crate) fn of(source: &impl Source, window: Window, running_max: i64) -> Result<Vec<Change>, Error> {
    let least = (running_max as f64 * SHARE).max(1.0);
    let mut current: BTreeMap<String, Option<f64>> = BTreeMap::new();
    let mut changes: Vec<Change> = Vec::new();
    for row in source.series()? {
        let SeriesRow { time, series, key, value } = row?;
        if series != SeriesRow::REPLICAS {
            continue;
        }
        let old = current.insert(key.clone(), value).flatten();
        let change = Change { at: time, owner: key, old, new: value };
        if window.start < time && time <= window.end && change.size() >= least {
            changes.push(change);
        }
        if changes.len() >= 2 * CHANGES_MAX {
            keep_largest(&mut changes);
        }
    }
    keep_largest(&mut changes);
    changes.sort_by_key(|change| change.at);
    Ok(changes)
}

fn keep_largest(changes: &mut Vec<Change>) {
    changes.sort_by(|a, b| b.size().total_cmp(&a.size()).then(a.at.cmp(&b.at)));
    changes.truncate(CHANGES_MAX);
}
