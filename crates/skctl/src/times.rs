//! From `-s`, `-t` and `-D` to the part of the trace that is replayed.

use anyhow::{Context, Result, anyhow, bail};
use jiff::tz::TimeZone;
use sk_core::duration::TimeSpec;
use sk_core::{SimDuration, SimTime};
use sk_driver::plan::Window;

/// A trace without any length (plain manifests) is simulated for this long when nobody says.
pub(crate) const ASSUMED_DURATION: SimDuration = SimDuration::from_mins(60);

/// What was asked for, as typed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'a> {
    pub(crate) start: Option<&'a str>,
    pub(crate) end: Option<&'a str>,
    pub(crate) duration: Option<&'a str>,
}

/// The window, and whether its length was assumed.
pub(crate) fn window(asked: Asked<'_>, span: (SimTime, SimTime), now: SimTime) -> Result<(Window, bool)> {
    let (first, last) = span;
    let start = asked.start.map_or(Ok(first), |text| moment("--start", text, first, now))?;
    let asked_end = match (asked.end, asked.duration) {
        (Some(text), _) => Some(moment("--end", text, first, now)?),
        (None, Some(text)) => {
            let duration: SimDuration = text.parse().context("--duration")?;
            Some(start + duration)
        }
        (None, None) => None,
    };
    let assumed = asked_end.is_none() && last <= start;
    let end = asked_end.unwrap_or(if assumed { start + ASSUMED_DURATION } else { last });
    if start < first {
        bail!("--start {start} is before the trace begins, which is {first}; +30m means 30 minutes after that");
    }
    if end <= start {
        bail!("the part to replay is empty: it begins {start} and ends {end}; the trace is from {first} to {last}");
    }
    Ok((Window { start, end }, assumed))
}

fn moment(flag: &str, text: &str, first: SimTime, now: SimTime) -> Result<SimTime> {
    if flag == "--start" && text.parse::<f64>().is_ok() {
        return Err(anyhow!("{text} is no time; did you mean --speed {text}? (-s is the start everywhere)"));
    }
    let spec = TimeSpec::parse(text).with_context(|| flag.to_owned())?;
    spec.resolve(now, first, &TimeZone::UTC).with_context(|| flag.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: (SimTime, SimTime) = (SimTime::from_secs(1_000), SimTime::from_secs(4_600));

    fn ask(asked: Asked<'_>) -> Result<(i64, i64, bool)> {
        let (window, assumed) = window(asked, SPAN, SimTime::from_secs(9_000))?;
        Ok((window.start.as_secs(), window.end.as_secs(), assumed))
    }

    #[test]
    fn without_flags_the_whole_trace_is_replayed() {
        assert_eq!(ask(Asked::default()).unwrap(), (1_000, 4_600, false));
    }

    #[test]
    fn a_part_is_named_from_the_traces_start() {
        let asked = Asked { start: Some("+10m"), duration: Some("5m"), ..Asked::default() };
        assert_eq!(ask(asked).unwrap(), (1_600, 1_900, false));
        let asked = Asked { end: Some("+10m"), ..Asked::default() };
        assert_eq!(ask(asked).unwrap(), (1_000, 1_600, false));
    }

    #[test]
    fn a_trace_of_one_moment_is_given_an_hour_and_that_is_said() {
        let (window, assumed) = window(Asked::default(), (SPAN.0, SPAN.0), SPAN.0).unwrap();
        assert_eq!((window.end.since(window.start), assumed), (ASSUMED_DURATION, true));
    }

    #[test]
    fn an_empty_part_and_an_old_speed_are_refused_with_advice() {
        let asked = Asked { start: Some("+2h"), ..Asked::default() };
        assert!(ask(asked).unwrap_err().to_string().contains("the trace is from"));
        let asked = Asked { start: Some("2"), ..Asked::default() };
        assert!(ask(asked).unwrap_err().to_string().contains("--speed 2"));
    }
}
