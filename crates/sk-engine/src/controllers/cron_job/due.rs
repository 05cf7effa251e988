//! The most recent scheduled time that is due, and the time until the next (`pkg/controller/cronjob/utils.go`, 1.36).

use sk_apiserver::Object;
use sk_apiserver::kinds::CronJob;
use sk_core::cron::Schedule;
use sk_core::{SimDuration, SimTime};

/// Clocks differ: a CronJob is looked at this long after it is due (`nextScheduleDelta`).
const PADDING: SimDuration = SimDuration::from_millis(100);
/// A missed moment is looked for in at most so many steps. Kubernetes knows no such bound; it begins its search one step
/// before now for a regular schedule, and a minute-wise one is irregular by a day at most, which is 1,440 steps.
const MAX_STEPS: usize = 10_000;

/// The past of a schedule, as seen now.
pub(super) struct Past {
    /// From when on moments count.
    earliest: SimTime,
    /// The newest moment that is due.
    pub(super) most_recent: Option<SimTime>,
    /// How many moments were missed, if more than one is due.
    pub(super) missed: i64,
}

/// A schedule without two moments a second apart or more: the 31st of February.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Never;

/// The newest moment that is due and has no Job; `None`: none is.
pub(super) fn due(
    object: &Object,
    cron: &CronJob,
    schedule: &Schedule,
    now: SimTime,
) -> Result<Option<SimTime>, Never> {
    past(object, cron, schedule, now, true).map(|past| past.most_recent.filter(|at| *at <= now))
}

/// How long until the CronJob must be looked at again; `None` when it is never due.
pub(super) fn wait(object: &Object, cron: &CronJob, schedule: &Schedule, now: SimTime) -> Option<SimDuration> {
    let from = match past(object, cron, schedule, now, false) {
        Err(Never) => now,
        Ok(Past { most_recent: Some(most_recent), .. }) => most_recent,
        Ok(Past { missed: 1.., .. }) => now,
        Ok(Past { earliest, .. }) => earliest,
    };
    Some((schedule.next(from)? + PADDING).since(now))
}

/// The past of a schedule; `deadline`: as far as its starting deadline allows.
pub(super) fn past(
    object: &Object,
    cron: &CronJob,
    schedule: &Schedule,
    now: SimTime,
    deadline: bool,
) -> Result<Past, Never> {
    let begin = cron.status.last_schedule_time.unwrap_or(object.created.whole_secs());
    let too_late = cron.spec.starting_deadline_seconds.filter(|_| deadline);
    let too_late = too_late.map(|secs| now + SimDuration::from_secs(secs.saturating_neg()));
    let earliest = too_late.map_or(begin, |too_late| begin.max(too_late));
    let first = schedule.next(earliest).ok_or(Never)?;
    if now < first {
        return Ok(Past { earliest, most_recent: None, missed: 0 });
    }
    let second = schedule.next(first);
    if second.is_some_and(|second| now < second) {
        return Ok(Past { earliest, most_recent: Some(first), missed: 0 });
    }
    let between = second.map_or(0, |second| second.as_secs() - first.as_secs());
    if between < 1 {
        return Err(Never);
    }
    let missed = now.since(first).as_micros() / 1_000_000 / between + 1;
    // One interval before the newest that a regular schedule would have.
    let almost = first + SimDuration::from_secs((missed - 2).saturating_mul(between));
    let moments = std::iter::successors(schedule.next(almost), |last| schedule.next(*last));
    let most_recent = moments.take(MAX_STEPS).take_while(|at| *at <= now).last();
    Ok(Past { earliest, most_recent, missed })
}
