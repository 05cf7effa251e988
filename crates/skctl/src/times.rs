//! Resolves `-s`, `-t` and `-D` to a window of a trace.

use anyhow::{Context, Result, bail};
use jiff::tz::TimeZone;
use sk_core::duration::TimeSpec;
use sk_core::limits::MAX_WINDOW;
use sk_core::{SimDuration, SimTime};
use sk_replay::plan::Window;

use crate::cli::{Global, PartArgs};

/// A trace without any length (plain manifests) is simulated for this long by default.
pub(crate) const ASSUMED_DURATION: SimDuration = SimDuration::from_mins(60);

/// What times like `-2h` and `2026-11-10T14:00` are counted from. It never reaches a simulation.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    pub(crate) now: SimTime,
    pub(crate) zone: TimeZone,
}

impl Clock {
    /// The wall clock, in the zone that was asked for.
    pub(crate) fn of(global: &Global) -> Self {
        Self { now: SimTime::from_micros(jiff::Timestamp::now().as_microsecond()), zone: global.tz.clone() }
    }

    /// The moment that `text` means in a trace that begins at `first`.
    pub(crate) fn moment(&self, text: &str, first: SimTime) -> Result<SimTime> {
        Ok(TimeSpec::parse(text)?.resolve(self.now, first, &self.zone)?)
    }
}

/// The window that the flags ask for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) start: Option<TimeSpec>,
    pub(crate) end: Option<TimeSpec>,
    pub(crate) duration: Option<SimDuration>,
}

impl Asked {
    /// What was typed.
    pub(crate) fn new(args: &PartArgs) -> Result<Self> {
        let time = |flag: &str, text: &Option<String>| {
            text.as_deref().map(|text| TimeSpec::parse(text).with_context(|| flag.to_owned())).transpose()
        };
        let duration = args.duration.as_deref().map(|text| text.parse().context("--duration")).transpose()?;
        Ok(Self { start: time("--start", &args.start)?, end: time("--end", &args.end)?, duration })
    }

    /// What was typed; where nothing was, what the scenario says.
    pub(crate) fn of_run(args: &PartArgs, scenario: &sk_api::scenario::Trace) -> Result<Self> {
        if let Some(text) = [&args.start, &args.end].into_iter().flatten().find(|text| text.parse::<f64>().is_ok()) {
            bail!("{text} is not a time; did you mean --speed {text}? (-s is --start)");
        }
        let Self { start, end, duration } = Self::new(args)?;
        // An end that was typed is not to be cut short by the scenario's duration, nor the other way round.
        let (scenario_end, scenario_duration) = match (&end, duration) {
            (None, None) => (scenario.end, scenario.duration),
            _ => (None, None),
        };
        let duration = duration.or(scenario_duration);
        if let Some(duration) = duration.filter(|duration| *duration > MAX_WINDOW) {
            bail!("a duration of {duration} is longer than {MAX_WINDOW}, the most that a run replays; ask for less");
        }
        Ok(Self { start: start.or(scenario.start), end: end.or(scenario_end), duration })
    }

    /// When the part begins and ends, where that was asked for, in a trace that begins at `first`.
    pub(crate) fn moments(&self, first: SimTime, clock: &Clock) -> Result<(Option<SimTime>, Option<SimTime>)> {
        let moment = |spec: TimeSpec| spec.resolve(clock.now, first, &clock.zone);
        let start = self.start.map(moment).transpose()?;
        let end = match (self.end, self.duration) {
            (Some(end), _) => Some(moment(end)?),
            (None, duration) => duration.map(|duration| start.unwrap_or(first) + duration),
        };
        Ok((start, end))
    }

    /// Was any part asked for?
    pub(crate) fn is_anything(&self) -> bool {
        self.start.is_some() || self.end.is_some() || self.duration.is_some()
    }
}

/// The window of a run, and whether its length was assumed.
pub(crate) fn window(asked: &Asked, span: (SimTime, SimTime), clock: &Clock) -> Result<(Window, bool)> {
    let (first, last) = span;
    let (start, asked_end) = asked.moments(first, clock)?;
    let start = start.unwrap_or(first);
    let assumed = asked_end.is_none() && last <= start;
    let end = asked_end.unwrap_or(if assumed { start + ASSUMED_DURATION } else { last });
    if start < first {
        bail!("the start {start} is before the trace begins, which is {first}; +30m means 30 minutes after that");
    }
    if assumed && start > first {
        bail!("the start {start} is not before the trace ends, which is {last}; it begins {first}");
    }
    if end <= start {
        bail!("the part to replay is empty: it begins {start} and ends {end}; the trace is from {first} to {last}");
    }
    if end.since(start) > MAX_WINDOW && asked_end.is_none() {
        bail!(
            "the trace says that it is from {first} to {last}, and a run replays at most {MAX_WINDOW} of it; \
             say which part with --duration, or with --start and --end (`skctl validate` tells more)"
        );
    }
    if end.since(start) > MAX_WINDOW {
        bail!("from {start} to {end} is longer than {MAX_WINDOW}, the most that a run replays; ask for less");
    }
    Ok((Window { start, end, includes_end: asked_end.is_none() }, assumed))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: (SimTime, SimTime) = (SimTime::from_secs(1_000), SimTime::from_secs(4_600));

    fn clock(zone: &str) -> Clock {
        Clock { now: SimTime::from_secs(9_000), zone: TimeZone::get(zone).unwrap() }
    }

    fn ask(start: Option<&str>, end: Option<&str>, duration: Option<&str>) -> Result<(i64, i64, bool)> {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let (start, end, duration) = (text(start), text(end), text(duration));
        let asked = Asked::of_run(&PartArgs { start, end, duration }, &sk_api::scenario::Trace::default())?;
        let (window, assumed) = window(&asked, SPAN, &clock("UTC"))?;
        Ok((window.start.as_secs(), window.end.as_secs(), assumed))
    }

    #[test]
    fn without_flags_the_whole_trace_is_replayed() {
        assert_eq!(ask(None, None, None).unwrap(), (1_000, 4_600, false));
    }

    #[test]
    fn a_part_is_named_from_the_traces_start() {
        assert_eq!(ask(Some("+10m"), None, Some("5m")).unwrap(), (1_600, 1_900, false));
        assert_eq!(ask(None, Some("+10m"), None).unwrap(), (1_000, 1_600, false));
    }

    #[test]
    fn a_trace_of_one_moment_is_given_an_hour_and_that_is_said() {
        let (window, assumed) = window(&Asked::default(), (SPAN.0, SPAN.0), &clock("UTC")).unwrap();
        assert_eq!((window.end.since(window.start), assumed), (ASSUMED_DURATION, true));
    }

    #[test]
    fn a_window_without_end_is_refused_or_needs_a_duration() {
        let refuse = |start, end, duration| format!("{:#}", ask(start, end, duration).unwrap_err());
        assert!(refuse(None, None, Some("9999999d")).contains("9999999d is longer than 400d"));
        assert!(refuse(None, Some("2126-01-01T00:00:00Z"), None).contains("longer than 400d"));
        let endless = (SimTime::from_micros(i64::MIN), SimTime::MAX);
        let refused = window(&Asked::default(), endless, &clock("UTC")).unwrap_err().to_string();
        assert!(refused.contains("--duration") && refused.contains("at most 400d"), "{refused}");
        let asked = Asked { duration: Some(ASSUMED_DURATION), ..Asked::default() };
        let (window, _) = window(&asked, endless, &clock("UTC")).unwrap();
        assert_eq!(window.end.since(window.start), ASSUMED_DURATION, "what was asked for is replayed");
    }

    #[test]
    fn a_time_without_a_zone_is_on_the_clocks_that_were_asked_for() {
        let noon = |zone| clock(zone).moment("2026-07-01T12:00", SPAN.0).unwrap().to_string();
        assert_eq!(noon("UTC"), "2026-07-01T12:00:00Z");
        assert_eq!(noon("Europe/Berlin"), "2026-07-01T10:00:00Z");
    }

    #[test]
    fn an_empty_part_and_an_old_speed_are_refused_with_advice() {
        let refuse = |start| format!("{:#}", ask(Some(start), None, None).unwrap_err());
        assert!(refuse("+2h").contains("is not before the trace ends"));
        assert!(refuse("2").contains("--speed 2"));
    }
}
