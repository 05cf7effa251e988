//! Durations and times in flags and scenarios: `60s`, `1h30m`, `7d`, and the one time grammar of all flags: `now`,
//! `-7d`, `+30m`, RFC 3339 and `2026-11-10T14:00`.
//!
//! Parsing is pure. The caller supplies "now", the trace's start and the time zone, see [`TimeSpec::resolve`]; nothing
//! here reads a clock or a time zone database.

use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::{SimDuration, SimTime};

/// The longest text that is read. Four units with as many digits as an `i64` has need 84.
const MAX_TEXT_BYTES: usize = 100;

/// Decimals that count: one more would be below a nanosecond even of a day (8.64·10¹³ ns).
const MAX_DECIMALS: usize = 14;

const UNITS: [(&str, i128); 9] = [
    ("ns", 1),
    ("us", 1_000),
    // The micro sign and the Greek letter look alike; Go reads both.
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3_600 * 1_000_000_000),
    ("d", 86_400 * 1_000_000_000),
];

/// Why a text is not a span of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseDurationError {
    /// It is not made of numbers with units.
    #[error("`{0}` is not a duration: write numbers with units, like 250ms, 60s, 1h30m or 7d")]
    Form(String),
    /// A number without a unit.
    #[error("`{text}` is not a duration: `{number}` has no unit; write {number}s or {number}m")]
    NoUnit {
        /// The whole text.
        text: String,
        /// The bare number.
        number: String,
    },
    /// More microseconds than an `i64` holds.
    #[error("`{0}` is too long: durations end at about 106,000,000 days")]
    TooLong(String),
}

impl FromStr for SimDuration {
    type Err = ParseDurationError;

    /// As Go's `time.ParseDuration`, with days besides: numbers, perhaps with decimals, each with its unit, in any
    /// order and perhaps with a sign before all. Finer than a microsecond is cut off.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix('-') {
            Some(span) => parse_unsigned(span, text).map(|span| Self::ZERO - span),
            None => parse_unsigned(text.strip_prefix('+').unwrap_or(text), text),
        }
    }
}

/// `span` is `text` without its sign; messages show the whole.
fn parse_unsigned(span: &str, text: &str) -> Result<SimDuration, ParseDurationError> {
    let shown = || text.chars().take(MAX_TEXT_BYTES).collect::<String>();
    if span.is_empty() || text.len() > MAX_TEXT_BYTES {
        return Err(ParseDurationError::Form(shown()));
    }
    if span == "0" {
        return Ok(SimDuration::ZERO);
    }
    let mut rest = span;
    let mut nanos: i128 = 0;
    while !rest.is_empty() {
        let (number, unit, after) = split_part(rest);
        if unit.is_empty() && times(number, 1).is_some() {
            return Err(ParseDurationError::NoUnit { text: shown(), number: number.to_owned() });
        }
        let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, nanos)| *nanos);
        let part = unit.and_then(|unit| times(number, unit)).ok_or_else(|| ParseDurationError::Form(shown()))?;
        nanos = nanos.saturating_add(part);
        rest = after;
    }
    let micros = i64::try_from(nanos / 1_000).map_err(|_| ParseDurationError::TooLong(shown()))?;
    Ok(SimDuration::from_micros(micros))
}

/// The first number, the unit behind it, and the rest.
fn split_part(text: &str) -> (&str, &str, &str) {
    let in_number = |c: char| c.is_ascii_digit() || c == '.';
    let (number, rest) = text.split_at(text.find(|c| !in_number(c)).unwrap_or(text.len()));
    let (unit, rest) = rest.split_at(rest.find(in_number).unwrap_or(rest.len()));
    (number, unit, rest)
}

/// A decimal number of units, in nanoseconds; `None` if it is not a number.
fn times(number: &str, unit: i128) -> Option<i128> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && decimals.is_empty() || decimals.contains('.') {
        return None;
    }
    let decimals = &decimals[..decimals.len().min(MAX_DECIMALS)];
    let scale = decimals.bytes().fold(1, |scale, _| scale * 10);
    Some(digits(whole).saturating_mul(unit).saturating_add(digits(decimals) * unit / scale))
}

fn digits(text: &str) -> i128 {
    text.bytes().fold(0_i128, |sum, digit| sum.saturating_mul(10).saturating_add(i128::from(digit - b'0')))
}

/// A time in a flag, before "now" and the trace's start are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSpec {
    /// `now`.
    Now,
    /// `-2h`: this long before now.
    BeforeNow(SimDuration),
    /// `+30m`: this long after the trace's start.
    AfterStart(SimDuration),
    /// RFC 3339.
    At(SimTime),
    /// `2026-11-10T14:00`: on the clocks of a time zone that is chosen elsewhere.
    OnClocks(DateTime),
}

/// Why a text is not a moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeSpecError {
    /// It follows none of the forms.
    #[error(
        "`{0}` is not a time: use now, -2h (before now), +30m (after the trace's start), 2026-11-10T14:00 or RFC 3339"
    )]
    Form(String),
    /// What follows the sign is not a duration.
    #[error("`{text}` is not a time: a duration follows the sign")]
    Span {
        /// The whole text.
        text: String,
        /// What is wrong with the duration.
        #[source]
        source: ParseDurationError,
    },
    /// The zone's offset carries it past the last day of the calendar.
    #[error("{0} is beyond the calendar in that time zone: use a year from -9998 to 9998")]
    OutOfRange(DateTime),
}

impl TimeSpec {
    /// Reads one of the forms.
    pub fn parse(text: &str) -> Result<Self, TimeSpecError> {
        let span = |span: &str| {
            parse_unsigned(span, span).map_err(|source| TimeSpecError::Span { text: text.to_owned(), source })
        };
        match text.as_bytes().first() {
            _ if text == "now" => Ok(Self::Now),
            Some(b'-') => span(&text[1..]).map(Self::BeforeNow),
            Some(b'+') => span(&text[1..]).map(Self::AfterStart),
            _ => Self::parse_date(text).ok_or_else(|| TimeSpecError::Form(text.chars().take(MAX_TEXT_BYTES).collect())),
        }
    }

    fn parse_date(text: &str) -> Option<Self> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        if let Ok(time) = SimTime::parse_rfc3339(text) {
            return Some(Self::At(time));
        }
        // jiff would read and ignore an offset or a zone's name behind a civil time.
        let clock = text.split_once(['T', ' ']).map_or("", |(_, clock)| clock);
        let plain = clock.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
        text.parse().ok().filter(|_| plain).map(Self::OnClocks)
    }

    /// The moment itself. A clock time that a zone skips or has twice is taken as most programs take it: the later one
    /// of a gap, the earlier one of a fold.
    pub fn resolve(self, now: SimTime, trace_start: SimTime, zone: &TimeZone) -> Result<SimTime, TimeSpecError> {
        match self {
            Self::Now => Ok(now),
            Self::BeforeNow(span) => Ok(now - span),
            Self::AfterStart(span) => Ok(trace_start + span),
            Self::At(time) => Ok(time),
            Self::OnClocks(clocks) => {
                let timestamp = zone.to_ambiguous_timestamp(clocks).compatible();
                let timestamp = timestamp.map_err(|_| TimeSpecError::OutOfRange(clocks))?;
                Ok(SimTime::from_micros(timestamp.as_microsecond()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let cases = [
            ("0", 0),
            ("250ms", 250_000),
            ("60s", 60_000_000),
            ("10m", 600_000_000),
            ("1h30m", 5_400_000_000),
            ("7d", 604_800_000_000),
            ("1d12h", 129_600_000_000),
            ("1.5h", 5_400_000_000),
            ("1h15m30.918273645s", 4_530_918_273),
            (".5s", 500_000),
            ("5.s", 5_000_000),
            ("52763797000ns", 52_763_797),
            ("39h9m14.425s", 140_954_425_000),
            ("12\u{b5}s", 12),
            ("12\u{3bc}s", 12),
            ("999ns", 0),
            ("-1m12s", -72_000_000),
            ("+5s", 5_000_000),
            ("0.3333333333333333333h", 1_199_999_999),
        ];
        for (text, micros) in cases {
            assert_eq!(text.parse(), Ok(SimDuration::from_micros(micros)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_examples() {
        for text in ["", "-", "+", "s", ".", ".s", "1x", "1 s", "--1s", "1..5s", "1.2.3s", "1s-1s", "s1", "7D", "1e3s"]
        {
            let error = text.parse::<SimDuration>().unwrap_err();
            assert!(error.to_string().contains("1h30m"), "{text}: {error}");
        }
        let error = "1h30".parse::<SimDuration>().unwrap_err();
        assert!(error.to_string().contains("30s"), "{error}");
        for text in ["106751992d", "99999999999999999999999999999999999999999999999999d", "9223372036855s"] {
            assert!(matches!(text.parse::<SimDuration>(), Err(ParseDurationError::TooLong(_))), "{text}");
        }
        assert!("1".repeat(1_000).parse::<SimDuration>().is_err());
    }

    #[test]
    fn moments_are_read_in_each_form() {
        let hour = SimDuration::from_mins(60);
        assert_eq!(TimeSpec::parse("now"), Ok(TimeSpec::Now));
        assert_eq!(TimeSpec::parse("-2h"), Ok(TimeSpec::BeforeNow(hour * 2)));
        assert_eq!(TimeSpec::parse("-7d"), Ok(TimeSpec::BeforeNow(hour * 24 * 7)));
        assert_eq!(TimeSpec::parse("+30m"), Ok(TimeSpec::AfterStart(SimDuration::from_mins(30))));
        for text in ["2023-11-14T22:13:20Z", "2023-11-14T23:13:20+01:00", "2023-11-14T17:13:20-05:00"] {
            assert_eq!(TimeSpec::parse(text), Ok(TimeSpec::At(SimTime::from_secs(1_700_000_000))), "{text}");
        }
        for text in ["2026-11-10T14:00", "2026-11-10 14:00", "2026-11-10T14:00:00", "2026-11-10T14:00:00.0"] {
            let expected = jiff::civil::date(2026, 11, 10).at(14, 0, 0, 0);
            assert_eq!(TimeSpec::parse(text), Ok(TimeSpec::OnClocks(expected)), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_refused_with_the_forms() {
        let wrong =
            ["", "2", "Now", "tomorrow", "2h", "2026-13-01T00:00", "2026-11-10T14:00[Europe/Berlin]", "14:00", "٣"];
        for text in wrong {
            let error = TimeSpec::parse(text).unwrap_err();
            assert!(error.to_string().contains("2026-11-10T14:00"), "{text}: {error}");
        }
        for text in ["-", "-2", "+-2h", "--2h", "-x"] {
            assert!(matches!(TimeSpec::parse(text), Err(TimeSpecError::Span { .. })), "{text}");
        }
    }

    #[test]
    fn moments_are_resolved_against_now_the_trace_and_the_zone() {
        let (now, start) = (SimTime::from_secs(10_000), SimTime::from_secs(500));
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let resolve = |text: &str, zone: &TimeZone| TimeSpec::parse(text).unwrap().resolve(now, start, zone).unwrap();
        assert_eq!(resolve("now", &TimeZone::UTC), now);
        assert_eq!(resolve("-1h", &TimeZone::UTC), SimTime::from_secs(6_400));
        assert_eq!(resolve("+30m", &TimeZone::UTC), SimTime::from_secs(2_300));
        assert_eq!(resolve("2023-11-14T22:13:20", &TimeZone::UTC), SimTime::from_secs(1_700_000_000));
        assert_eq!(resolve("2023-11-14T23:13:20", &berlin), SimTime::from_secs(1_700_000_000));
        // 02:30 does not exist on this night, and exists twice on that one.
        assert_eq!(resolve("2026-03-29T02:30", &berlin).to_string(), "2026-03-29T01:30:00Z");
        assert_eq!(resolve("2026-10-25T02:30", &berlin).to_string(), "2026-10-25T00:30:00Z");
    }

    #[test]
    fn a_clock_time_beyond_the_calendar_is_refused() {
        let far = TimeSpec::parse("9999-12-31T23:59").unwrap();
        let west = TimeZone::fixed(jiff::tz::offset(-12));
        assert!(matches!(far.resolve(SimTime::EPOCH, SimTime::EPOCH, &west), Err(TimeSpecError::OutOfRange(_))));
    }

    proptest! {
        #[test]
        fn whole_seconds_below_a_minute_and_whole_units_read_back_as_printed(secs in 0_i64..60, days in 1_i64..1_000) {
            for span in [SimDuration::from_secs(secs), SimDuration::from_mins(days * 24 * 60)] {
                prop_assert_eq!(span.to_string().parse::<SimDuration>().unwrap(), span);
            }
        }

        #[test]
        fn no_text_makes_reading_a_time_panic(text in r"([0-9.+\-:TZdhmsnuµ ]|.){0,40}") {
            let _ = text.parse::<SimDuration>();
            let _ = TimeSpec::parse(&text).map(|time| time.resolve(SimTime::MAX, SimTime::MAX, &TimeZone::UTC));
        }
    }
}
