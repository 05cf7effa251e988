//! What a CronJob's sync says for people without doing anything about it (`syncCronJob`, `nextScheduleTime`, 1.36).

use sk_apiserver::kinds::{ConcurrencyPolicy, CronJobStatus, JOB};
use sk_apiserver::{Object, Uid};
use sk_core::{ObjectKey, SimDuration, SimTime};

use super::sync::Sync;
use super::{FROM, due};
use crate::events::Event;

/// More missed moments than this are spoken of.
const MANY_MISSED: i64 = 100;

impl Sync<'_> {
    /// Everything that this sync says. `newest` is the newest status that the controller knows: its view may lack its own last
    /// write. Jobs that go because the history is full leave the list first, and are not spoken of.
    pub(super) fn remarks(mut self, newest: &CronJobStatus) -> Vec<Event> {
        self.status = newest.clone();
        self.remove_history();
        let mut said = self.of_jobs();
        said.extend(self.missing());
        if !self.object.is_deleting() && !self.cron.spec.suspend {
            said.extend(self.of_schedule());
        }
        said
    }

    /// Jobs that run and that the CronJob does not know of, and those that it knows of and that are over.
    fn of_jobs(&self) -> Vec<Event> {
        let is_known = |uid: Uid| self.status.active.iter().any(|active| active.uid == uid);
        let told = self.jobs.iter().filter_map(|(job, status)| {
            let end = ["Complete", "Failed"].into_iter().find(|kind| status.true_condition(kind).is_some());
            let name = &job.key.name;
            match (is_known(job.uid), end) {
                (false, None) => {
                    let message = format!("Saw a job that the controller did not create or forgot: {name}");
                    Some(self.warning("UnexpectedJob", message))
                }
                (true, Some(end)) => {
                    Some(self.normal("SawCompletedJob", format!("Saw completed job: {name}, condition: {end}")))
                }
                (true, None) | (false, Some(_)) => None,
            }
        });
        told.collect()
    }

    /// Jobs that the CronJob knows of and that are gone.
    fn missing(&self) -> Vec<Event> {
        let is_there = |name: &str| {
            let key = ObjectKey { namespace: self.object.key.namespace.clone(), name: name.into() };
            self.view.find(&JOB, &key).is_some()
        };
        let missing = self.status.active.iter().filter(|active| !is_there(&active.name));
        missing.map(|active| self.normal("MissingJob", format!("Active job went missing: {}", active.name))).collect()
    }

    /// What keeps a moment that is due from having its Job.
    fn of_schedule(&self) -> Option<Event> {
        let spec = &self.cron.spec;
        let schedule = match spec.parsed() {
            Ok(schedule) => schedule,
            Err(error) => {
                let message = format!("unparseable schedule: {:?} : {error}", spec.schedule);
                return Some(self.warning("UnparseableSchedule", message));
            }
        };
        let Ok(past) = due::past(self.object, self.cron, &schedule, self.now, true) else {
            let why = "time difference between two schedules is less than 1 second";
            return Some(self.warning("InvalidSchedule", format!("invalid schedule: {} : {why}", spec.schedule)));
        };
        let at = past.most_recent.filter(|at| *at <= self.now)?;
        if past.missed > MANY_MISSED {
            let advice = "Set or decrease .spec.startingDeadlineSeconds or check clock skew";
            return Some(self.warning("TooManyMissedTimes", format!("too many missed start times. {advice}")));
        }
        if spec.starting_deadline_seconds.is_some_and(|secs| at + SimDuration::from_secs(secs) < self.now) {
            return Some(
                self.warning("MissSchedule", format!("Missed scheduled time to start a job: {}", rfc1123z(at))),
            );
        }
        let is_forbidden = spec.concurrency_policy == ConcurrencyPolicy::Forbid && !self.running().is_empty();
        (is_forbidden && !self.is_done(at)).then(|| {
            let why = "Not starting job because prior execution is running and concurrency policy is Forbid";
            self.normal("JobAlreadyActive", why.to_owned())
        })
    }

    fn normal(&self, reason: &str, message: String) -> Event {
        Event::normal(FROM, self.object, reason, message)
    }

    fn warning(&self, reason: &str, message: String) -> Event {
        Event::warning(FROM, self.object, reason, message)
    }
}

/// What is said of a Job that could not be made.
pub(super) fn not_made(cron: &Object, error: &sk_apiserver::ApiError) -> Option<Event> {
    let is_told = error.reason != sk_apiserver::Reason::AlreadyExists && !error.is_namespace_terminating();
    is_told.then(|| Event::warning(FROM, cron, "FailedCreate", format!("Error creating job: {error}")))
}

/// Go's `time.RFC1123Z` in UTC: `Mon, 02 Jan 2006 15:04:05 +0000`.
fn rfc1123z(at: SimTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = at.to_rfc3339_secs();
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    // The first of January 1970 was a Thursday.
    let day = usize::try_from(at.as_secs().div_euclid(86_400).rem_euclid(7)).unwrap_or(0);
    let month = part(5, 7).parse::<usize>().ok().and_then(|month| MONTHS.get(month.checked_sub(1)?)).copied();
    format!("{}, {} {} {} {} +0000", DAYS[day], part(8, 10), month.unwrap_or_default(), part(0, 4), part(11, 19))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_moment_is_told_as_go_writes_it() {
        assert_eq!(rfc1123z(SimTime::from_secs(1_136_214_245)), "Mon, 02 Jan 2006 15:04:05 +0000");
        assert_eq!(rfc1123z(SimTime::from_secs(0)), "Thu, 01 Jan 1970 00:00:00 +0000");
    }
}
