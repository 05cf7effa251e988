//! Parses and prints durations, times and flags in a scenario.
//!
//! Printed values parse back exactly, so nothing is rounded here; `SimDuration`'s `Display` rounds for people.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use sk_core::{SimDuration, TimeSpec};

/// The units a duration is written in, each with its microseconds.
const UNITS: [(&str, u64); 6] =
    [("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)];

/// A duration to the last microsecond: `1h30m`, `250ms`, `0s`.
pub(crate) fn span(span: SimDuration) -> String {
    if span == SimDuration::ZERO {
        return "0s".to_owned();
    }
    let mut text = if span.is_negative() { "-".to_owned() } else { String::new() };
    let mut rest = span.as_micros().unsigned_abs();
    for (unit, micros) in UNITS {
        if rest >= micros {
            text.push_str(&format!("{}{unit}", rest / micros));
            rest %= micros;
        }
    }
    text
}

/// A moment, in the form it was given.
fn moment_text(moment: TimeSpec) -> String {
    match moment {
        TimeSpec::Now => "now".to_owned(),
        TimeSpec::BeforeNow(before) => format!("-{}", span(before)),
        TimeSpec::AfterStart(after) => format!("+{}", span(after)),
        TimeSpec::At(time) => time.to_string(),
        TimeSpec::OnClocks(clocks) => clocks.to_string(),
    }
}

/// For `#[serde(with)]`: a duration that is not negative.
pub(crate) mod duration {
    use serde::{Deserializer, Serializer};
    use sk_core::SimDuration;

    pub(crate) fn serialize<S: Serializer>(span: &SimDuration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::span(*span))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SimDuration, D::Error> {
        deserializer.deserialize_any(super::Spelt { what: "a duration such as 60s", read: super::read_span })
    }
}

/// For `#[serde(with)]`: a duration that may be absent.
pub(crate) mod some_duration {
    use serde::{Deserializer, Serialize, Serializer};
    use sk_core::SimDuration;

    pub(crate) fn serialize<S: Serializer>(span: &Option<SimDuration>, serializer: S) -> Result<S::Ok, S::Error> {
        span.map(super::span).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SimDuration>, D::Error> {
        super::duration::deserialize(deserializer).map(Some)
    }
}

/// For `#[serde(with)]`: a moment that may be absent.
pub(crate) mod some_moment {
    use serde::{Deserializer, Serialize, Serializer};
    use sk_core::TimeSpec;

    pub(crate) fn serialize<S: Serializer>(moment: &Option<TimeSpec>, serializer: S) -> Result<S::Ok, S::Error> {
        moment.map(super::moment_text).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TimeSpec>, D::Error> {
        let read = |text: &str| TimeSpec::parse(text).map_err(super::with_causes);
        deserializer.deserialize_any(super::Spelt { what: "a time such as 2026-11-10T14:00 or +30m", read }).map(Some)
    }
}

/// For `#[serde(with)]`: the value of a flag, which people paste with quotes as often as without.
pub(crate) mod flag {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display> + super::Flag,
        D: Deserializer<'de>,
    {
        deserializer.deserialize_any(super::Spelt { what: T::WHAT, read: super::flag_value::<T> })
    }
}

/// What a flag's value can be.
pub(crate) trait Flag {
    const WHAT: &'static str;
}

impl Flag for bool {
    const WHAT: &'static str = "true or false";
}

impl Flag for u32 {
    const WHAT: &'static str = "a whole number from 0 to 4294967295";
}

impl Flag for i32 {
    const WHAT: &'static str = "a whole number from -2147483648 to 2147483647";
}

impl Flag for f64 {
    const WHAT: &'static str = "a number";
}

fn flag_value<T: FromStr + Flag>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{}` is not {}", super::error::shown(text), T::WHAT))
}

/// A duration that is not negative.
pub(crate) fn read_span(text: &str) -> Result<SimDuration, String> {
    let span: SimDuration = text.parse().map_err(with_causes)?;
    if span.is_negative() { Err(format!("`{text}` is negative: write a duration of 0s or more")) } else { Ok(span) }
}

fn with_causes(error: impl std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Reads a scalar by its text, whatever YAML took it for.
struct Spelt<F> {
    what: &'static str,
    read: F,
}

impl<T, F: FnOnce(&str) -> Result<T, String>> Visitor<'_> for Spelt<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).map_err(E::custom)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }
}
