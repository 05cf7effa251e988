//! CronJob schedules, parsed as Kubernetes parses them: the standard parser of robfig/cron v3 (Kubernetes 1.36).
//!
//! No cron crate has that parser's rules (lists with holes, `?` for `*`, `@every`, its error messages) and its
//! behaviour at daylight saving changes, so both are here: parsing in this file, the search for the next time in
//! `next`. `tests/oracle.rs` compares both with a table of the Go library's answers.
//!
//! The time zone database is part of the binary, so a run does not depend on the machine. Schedules without a zone are
//! in UTC, as in a controller manager whose own zone is UTC.

mod next;
mod span;

use std::sync::OnceLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::{SimDuration, SimTime};

/// When something is due, again and again.
#[derive(Clone, Debug)]
pub struct Schedule {
    zone: TimeZone,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// At these minutes, hours and days.
    Fields(Box<Fields>),
    /// So often, from whenever it is asked.
    Every(SimDuration),
}

/// One bit per value; [`STAR`] says that any value will do.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fields {
    minute: u64,
    hour: u64,
    day_of_month: u64,
    month: u64,
    day_of_week: u64,
}

/// The field was written as `*` or `?`.
const STAR: u64 = 1 << 63;

/// A schedule or time zone that cannot be parsed, with the message of Kubernetes' library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CronError(String);

/// What a field may hold.
struct Bounds {
    least: u32,
    most: u32,
    names: &'static [&'static str],
    /// The value of the first name.
    first_name: u32,
}

const MINUTES: Bounds = Bounds { least: 0, most: 59, names: &[], first_name: 0 };
const HOURS: Bounds = Bounds { least: 0, most: 23, names: &[], first_name: 0 };
const DAYS: Bounds = Bounds { least: 1, most: 31, names: &[], first_name: 0 };
const MONTHS: Bounds = Bounds {
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    first_name: 1,
};
const WEEKDAYS: Bounds =
    Bounds { least: 0, most: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"], first_name: 0 };

impl Schedule {
    /// Reads a schedule; without a zone it is in UTC.
    pub fn parse(text: &str, zone: Option<&str>) -> Result<Self, CronError> {
        let zone = match zone {
            None | Some("") => TimeZone::UTC,
            Some(name) => {
                find_zone(name).map_err(|error| CronError(format!("provided bad location {name}: {error}")))?
            }
        };
        Ok(Self { zone, kind: Kind::parse(text)? })
    }

    /// The first moment after `after`; `None` when there is none within five years, as on the 30th of February.
    pub fn next(&self, after: SimTime) -> Option<SimTime> {
        match &self.kind {
            Kind::Every(delay) => Some(after.whole_secs() + *delay),
            Kind::Fields(fields) => next::next(fields, &self.zone, after),
        }
    }

    /// The moment in the schedule's own zone, as RFC 3339 to the second.
    pub fn in_zone(&self, time: SimTime) -> String {
        next::written(&self.zone, time)
    }
}

/// The zone of this name, spelt as the database spells it.
pub fn find_zone(name: &str) -> Result<TimeZone, CronError> {
    static BUNDLED: OnceLock<TimeZoneDatabase> = OnceLock::new();
    if name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    let found = BUNDLED.get_or_init(TimeZoneDatabase::bundled).get(name).ok();
    let spelt_so = found.filter(|zone| zone.iana_name() == Some(name));
    spelt_so.ok_or_else(|| CronError(format!("unknown time zone {name}")))
}

impl Kind {
    fn parse(text: &str) -> Result<Self, CronError> {
        if text.is_empty() {
            return Err(CronError("empty spec string".into()));
        }
        if text.starts_with('@') {
            return Self::parse_descriptor(text);
        }
        let fields: Vec<_> = text.split_whitespace().collect();
        let [minute, hour, day_of_month, month, day_of_week] = fields[..] else {
            let found = fields.join(" ");
            return Err(CronError(format!("expected exactly 5 fields, found {}: [{found}]", fields.len())));
        };
        Ok(Self::Fields(Box::new(Fields {
            minute: parse_field(minute, &MINUTES)?,
            hour: parse_field(hour, &HOURS)?,
            day_of_month: parse_field(day_of_month, &DAYS)?,
            month: parse_field(month, &MONTHS)?,
            day_of_week: parse_field(day_of_week, &WEEKDAYS)?,
        })))
    }

    fn parse_descriptor(text: &str) -> Result<Self, CronError> {
        let fields = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            _ => return Self::parse_every(text),
        };
        Self::parse(fields)
    }

    fn parse_every(text: &str) -> Result<Self, CronError> {
        let Some(span) = text.strip_prefix("@every ") else {
            return Err(CronError(format!("unrecognized descriptor: {text}")));
        };
        let nanos = span::parse(span).map_err(|why| CronError(format!("failed to parse duration {text}: {why}")))?;
        // Whole seconds, and at least one.
        Ok(Self::Every(SimDuration::from_secs((nanos / 1_000_000_000).max(1))))
    }
}

/// A list of ranges; holes in it are passed over.
fn parse_field(text: &str, bounds: &Bounds) -> Result<u64, CronError> {
    text.split(',').filter(|range| !range.is_empty()).try_fold(0, |bits, range| Ok(bits | parse_range(range, bounds)?))
}

/// `number | number-number [/ number]`, where `*` and `?` are the whole field and `5/15` begins at five.
fn parse_range(text: &str, bounds: &Bounds) -> Result<u64, CronError> {
    let refuse = |why: String| Err(CronError(format!("{why}: {text}")));
    let parts: Vec<_> = text.split('/').collect();
    let ends: Vec<_> = parts[0].split('-').collect();
    let (first, mut last, mut star) = match ends[..] {
        ["*" | "?", ..] => (bounds.least, bounds.most, STAR),
        [one] => {
            let one = parse_value(one, bounds)?;
            (one, one, 0)
        }
        [first, last] => (parse_value(first, bounds)?, parse_value(last, bounds)?, 0),
        [first, ..] => {
            parse_value(first, bounds)?;
            return refuse("too many hyphens".into());
        }
        [] => return refuse("empty range".into()),
    };
    let step = match parts[..] {
        [_] => 1,
        [_, step] => {
            let step = parse_number(step)?;
            if ends.len() == 1 {
                last = bounds.most;
            }
            if step > 1 {
                star = 0;
            }
            step
        }
        _ => return refuse("too many slashes".into()),
    };
    if first < bounds.least {
        return refuse(format!("beginning of range ({first}) below minimum ({})", bounds.least));
    }
    if last > bounds.most {
        return refuse(format!("end of range ({last}) above maximum ({})", bounds.most));
    }
    if first > last {
        return refuse(format!("beginning of range ({first}) beyond end of range ({last})"));
    }
    if step == 0 {
        return refuse("step of range should be a positive number".into());
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    Ok((first..=last).step_by(step).fold(star, |bits, value| bits | 1 << value))
}

fn parse_value(text: &str, bounds: &Bounds) -> Result<u32, CronError> {
    let lower = text.to_lowercase();
    let named = (bounds.first_name..).zip(bounds.names).find(|(_, name)| **name == lower);
    named.map_or_else(|| parse_number(text), |(value, _)| Ok(value))
}

/// A number as Go's `Atoi` parses it, with its error messages.
fn parse_number(text: &str) -> Result<u32, CronError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let failed =
        |why: &str| CronError(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}"));
    if !is_number {
        return Err(failed("invalid syntax"));
    }
    let number: i64 = text.parse().map_err(|_| failed("value out of range"))?;
    if number < 0 {
        return Err(CronError(format!("negative number ({number}) not allowed: {text}")));
    }
    // Beyond every field's range anyway.
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Schedule::parse(text, None).unwrap_err().to_string()
    }

    #[test]
    fn strings_from_hell_are_refused_and_never_hang() {
        let cases = [
            ("*/99999999999999999999 * * * *", "value out of range"),
            ("5-* * * * *", "failed to parse int from *"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("-- * * * *", "failed to parse int from "),
            ("TZ=UTC 0 0 * * *", "expected exactly 5 fields, found 6"),
            ("@every 9999999999999h", "time: invalid duration"),
            ("@every 5", "time: missing unit in duration \"5\""),
            ("@every 5d", "time: unknown unit \"d\" in duration \"5d\""),
            ("@", "unrecognized descriptor: @"),
            ("\u{0} * * * *", "failed to parse int from"),
        ];
        for (text, words) in cases {
            assert!(refused(text).contains(words), "{text}: {}", refused(text));
        }
        assert!(refused(&"* ".repeat(100_000)).starts_with("expected exactly 5 fields, found 100000"));
        let never = Schedule::parse("59 23 31 2 *", None).unwrap();
        assert_eq!(never.next(SimTime::from_secs(1_767_600_000)), None);
        let stars = Schedule::parse(&format!("{} * * * *", "*,".repeat(100_000)), None).unwrap();
        assert!(stars.next(SimTime::EPOCH).is_some());
    }

    #[test]
    fn the_longest_and_the_oddest_spans_stay_within_time() {
        let rare = Schedule::parse("@every 2562047h47m16s", None).unwrap();
        assert!(rare.next(SimTime::EPOCH).is_some_and(|next| next > SimTime::EPOCH));
        let late = Schedule::parse("0 0 1 1 *", Some("Europe/Berlin")).unwrap();
        assert_eq!(late.next(SimTime::from_micros(i64::MAX)), None, "after the end of time there is nothing");
    }

    #[test]
    fn zones_are_spelt_as_the_database_spells_them() {
        assert!(find_zone("Europe/Berlin").is_ok());
        for name in ["europe/berlin", "Local", "local", "Nowhere/Land", "../UTC", ""] {
            assert!(find_zone(name).is_err(), "{name}");
        }
    }
}
