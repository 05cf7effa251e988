//! Finds the next time of a schedule, field by field as robfig/cron v3 does (`spec.go`).
//!
//! At daylight saving changes the result is the same: an hour that does not exist is skipped, one that comes twice
//! matches twice. That follows from stepping in hours of real time and from how Go's `time.Date` chooses between two
//! offsets, which [`Walk::at`] imitates.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, date};
use jiff::tz::TimeZone;

use super::{Fields, STAR};
use crate::SimTime;

/// How many years a walk searches.
const YEARS: i16 = 5;
/// The most steps of a walk: five years of days, hours of one day, minutes of one hour, each met again a few
/// times over, are below 10,000.
const MAX_STEPS: usize = 100_000;

/// A time, and the local time of its zone.
#[derive(Clone, Copy)]
struct Walk<'a> {
    zone: &'a TimeZone,
    secs: i64,
    local: DateTime,
}

/// The first moment after `after`.
///
/// The loops are robfig's own, one within the other: each moves its field until it fits, and starts again at the top
/// only when the field came round. Where clocks skip midnight or half an hour, that is what makes the answer what it is
/// there.
pub(super) fn next(fields: &Fields, zone: &TimeZone, after: SimTime) -> Option<SimTime> {
    let mut walk = Walk::new(zone, after.as_secs().checked_add(1)?)?;
    let last_year = walk.local.year().checked_add(YEARS)?;
    // If a field was changed, everything below it is at its minimum.
    let mut moved = false;
    let mut steps = 0..MAX_STEPS;
    'again: loop {
        if walk.local.year() > last_year {
            return None;
        }
        while !has(fields.month, walk.local.month()) {
            steps.next()?;
            let begin = if moved { walk } else { walk.at(first_of_month(walk.local.date()), 0)? };
            (walk, moved) = (begin.add_month()?, true);
            if walk.local.month() == 1 {
                continue 'again;
            }
        }
        while !day_matches(fields, walk.local.date()) {
            steps.next()?;
            let begin = if moved { walk } else { walk.at(walk.local.date(), 0)? };
            (walk, moved) = (begin.add_day()?, true);
            if walk.local.day() == 1 {
                continue 'again;
            }
        }
        while !has(fields.hour, walk.local.hour()) {
            steps.next()?;
            let begin = if moved { walk } else { walk.at(walk.local.date(), i64::from(walk.local.hour()) * 3_600)? };
            (walk, moved) = (begin.plus(3_600)?, true);
            if walk.local.hour() == 0 {
                continue 'again;
            }
        }
        while !has(fields.minute, walk.local.minute()) {
            steps.next()?;
            let begin = if moved { walk } else { walk.plus(-walk.secs.rem_euclid(60))? };
            (walk, moved) = (begin.plus(60)?, true);
            if walk.local.minute() == 0 {
                continue 'again;
            }
        }
        while walk.local.second() != 0 {
            steps.next()?;
            (walk, moved) = (walk.plus(1)?, true);
            if walk.local.second() == 0 {
                continue 'again;
            }
        }
        return Some(SimTime::from_secs(walk.secs));
    }
}

/// A time as RFC 3339 in its zone.
pub(super) fn written(zone: &TimeZone, time: SimTime) -> String {
    let Ok(moment) = Timestamp::from_second(time.as_secs()) else { return time.to_rfc3339_secs() };
    let offset = zone.to_offset(moment);
    if offset.is_zero() { time.to_rfc3339_secs() } else { moment.display_with_offset(offset).to_string() }
}

impl<'a> Walk<'a> {
    fn new(zone: &'a TimeZone, secs: i64) -> Option<Self> {
        let moment = Timestamp::from_second(secs).ok()?;
        Some(Self { zone, secs, local: zone.to_offset(moment).to_datetime(moment) })
    }

    fn plus(self, secs: i64) -> Option<Self> {
        Self::new(self.zone, self.secs.checked_add(secs)?)
    }

    /// The moment at which clocks show this. Where they never do, or do twice, it is the one that Go's `time.Date`
    /// answers: the offset that holds when one takes the clock's time for UTC, or else the one that holds then.
    fn at(self, day: Date, secs_of_day: i64) -> Option<Self> {
        let as_utc = day.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second().checked_add(secs_of_day)?;
        let offset_at = |secs: i64| Some(i64::from(self.zone.to_offset(Timestamp::from_second(secs).ok()?).seconds()));
        let first = offset_at(as_utc)?;
        let offset = offset_at(as_utc - first)?;
        Self::new(self.zone, as_utc - offset)
    }

    fn secs_of_day(self) -> i64 {
        let time = self.local.time();
        i64::from(time.hour()) * 3_600 + i64::from(time.minute()) * 60 + i64::from(time.second())
    }

    fn add_month(self) -> Option<Self> {
        let (year, month) = (self.local.year(), self.local.month());
        let first = if month == 12 { Date::new(year.checked_add(1)?, 1, 1) } else { Date::new(year, month + 1, 1) };
        let days = i64::from(self.local.day()) - 1;
        let day = first.ok()?.checked_add(jiff::Span::new().try_days(days).ok()?).ok()?;
        self.at(day, self.secs_of_day())
    }

    /// The next day, at midnight or, where clocks skip it, at the hour nearest to it.
    fn add_day(self) -> Option<Self> {
        let moved = self.at(self.local.date().tomorrow().ok()?, self.secs_of_day())?;
        match i64::from(moved.local.hour()) {
            0 => Some(moved),
            hour @ 13.. => moved.plus((24 - hour) * 3_600),
            hour => moved.plus(-hour * 3_600),
        }
    }
}

fn first_of_month(day: Date) -> Date {
    date(day.year(), day.month(), 1)
}

fn has(bits: u64, value: i8) -> bool {
    bits & (1 << value) != 0
}

/// If both days are restricted, either is enough.
fn day_matches(fields: &Fields, day: Date) -> bool {
    let of_month = has(fields.day_of_month, day.day());
    let of_week = has(fields.day_of_week, day.weekday().to_sunday_zero_offset());
    let either = (fields.day_of_month | fields.day_of_week) & STAR == 0;
    if either { of_month || of_week } else { of_month && of_week }
}
