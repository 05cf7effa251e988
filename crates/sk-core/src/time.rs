//! Times and durations of the simulation, in whole microseconds.
//!
//! Integers with a unit, never floats: two runs must agree to the last bit. Nothing here reads a clock; `now` always
//! comes from the caller. Arithmetic saturates, because a trace may hold any number and must never cause a panic.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MICROS_PER_SECOND: i64 = 1_000_000;

/// A number of microseconds. The least number, 292,000 years before the epoch, becomes the next one; it stands for "none", so an
/// optional time takes no more memory than a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Micros(NonZeroU64);

impl Micros {
    /// The sign turned round, the order of unsigned numbers is that of the signed ones.
    const SIGN: u64 = 1 << 63;

    const fn new(micros: i64) -> Self {
        match NonZeroU64::new(micros as u64 ^ Self::SIGN) {
            Some(bits) => Self(bits),
            None => Self(NonZeroU64::MIN),
        }
    }

    const fn get(self) -> i64 {
        (self.0.get() ^ Self::SIGN) as i64
    }
}

impl Default for Micros {
    fn default() -> Self {
        Self::new(0)
    }
}

impl fmt::Debug for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i64::deserialize(deserializer).map(Self::new)
    }
}

/// A time: microseconds since the Unix epoch, on the trace's own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SimTime(Micros);

/// A span of time in microseconds; may be negative as a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SimDuration(Micros);

impl SimTime {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(Micros::new(0));
    /// Later than anything.
    pub const MAX: Self = Self(Micros::new(i64::MAX));

    /// From microseconds since the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(Micros::new(micros))
    }

    /// From whole seconds since the epoch, as trace format v2 has them.
    pub const fn from_secs(secs: i64) -> Self {
        Self(Micros::new(secs.saturating_mul(MICROS_PER_SECOND)))
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0.get()
    }

    /// Whole seconds since the epoch, rounded down.
    pub const fn as_secs(self) -> i64 {
        self.0.get().div_euclid(MICROS_PER_SECOND)
    }

    /// The second that it is in: times in objects have no fractions.
    #[must_use]
    pub const fn whole_secs(self) -> Self {
        Self::from_secs(self.as_secs())
    }

    /// The span from `earlier` to this moment; negative if `earlier` is later.
    pub const fn since(self, earlier: Self) -> SimDuration {
        SimDuration(Micros::new(self.0.get().saturating_sub(earlier.0.get())))
    }

    /// As Kubernetes' `metav1.Time` prints it: RFC 3339, UTC, whole seconds.
    pub fn to_rfc3339_secs(self) -> String {
        self.timestamp(MICROS_PER_SECOND)
    }

    /// As Kubernetes' `metav1.MicroTime` prints it: RFC 3339, UTC, six decimals.
    pub fn to_rfc3339_micros(self) -> String {
        let secs = self.timestamp(MICROS_PER_SECOND);
        let micros = self.0.get().rem_euclid(MICROS_PER_SECOND);
        format!("{}.{micros:06}Z", secs.trim_end_matches('Z'))
    }

    /// From RFC 3339 text with any offset; finer than a microsecond is cut off.
    pub fn parse_rfc3339(text: &str) -> Result<Self, jiff::Error> {
        let timestamp: jiff::Timestamp = text.parse()?;
        Ok(Self(Micros::new(timestamp.as_microsecond())))
    }

    fn timestamp(self, unit: i64) -> String {
        let floor = self.0.get().div_euclid(unit).saturating_mul(unit);
        // Outside jiff's years -9999..9999 there is no calendar date; show the nearest one that has.
        let nearest = if floor < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        jiff::Timestamp::from_microsecond(floor).unwrap_or(nearest).to_string()
    }
}

impl SimDuration {
    /// No time at all.
    pub const ZERO: Self = Self(Micros::new(0));
    /// Longer than anything.
    pub const MAX: Self = Self(Micros::new(i64::MAX));

    /// From microseconds.
    pub const fn from_micros(micros: i64) -> Self {
        Self(Micros::new(micros))
    }

    /// From milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(Micros::new(millis.saturating_mul(1_000)))
    }

    /// From seconds.
    pub const fn from_secs(secs: i64) -> Self {
        Self(Micros::new(secs.saturating_mul(MICROS_PER_SECOND)))
    }

    /// From minutes.
    pub const fn from_mins(mins: i64) -> Self {
        Self::from_secs(mins.saturating_mul(60))
    }

    /// In microseconds.
    pub const fn as_micros(self) -> i64 {
        self.0.get()
    }

    /// In seconds, for people and figures; never for deciding what happens.
    pub fn as_secs_f64(self) -> f64 {
        self.0.get() as f64 / MICROS_PER_SECOND as f64
    }

    /// Is it below zero?
    pub const fn is_negative(self) -> bool {
        self.0.get() < 0
    }
}

impl Add<SimDuration> for SimTime {
    type Output = Self;
    fn add(self, span: SimDuration) -> Self {
        Self(Micros::new(self.0.get().saturating_add(span.0.get())))
    }
}

impl AddAssign<SimDuration> for SimTime {
    fn add_assign(&mut self, span: SimDuration) {
        *self = *self + span;
    }
}

impl Sub<SimDuration> for SimTime {
    type Output = Self;
    fn sub(self, span: SimDuration) -> Self {
        Self(Micros::new(self.0.get().saturating_sub(span.0.get())))
    }
}

impl Add for SimDuration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(Micros::new(self.0.get().saturating_add(other.0.get())))
    }
}

impl AddAssign for SimDuration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for SimDuration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(Micros::new(self.0.get().saturating_sub(other.0.get())))
    }
}

impl Mul<i64> for SimDuration {
    type Output = Self;
    fn mul(self, factor: i64) -> Self {
        Self(Micros::new(self.0.get().saturating_mul(factor)))
    }
}

impl Div<i64> for SimDuration {
    type Output = Self;
    fn div(self, divisor: i64) -> Self {
        Self(Micros::new(self.0.get().checked_div(divisor).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for SimTime {
    /// RFC 3339 in UTC, with as many decimals as it has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.timestamp(1))
    }
}

impl fmt::Display for SimDuration {
    /// For people, at most two units: `7d`, `1h30m`, `1m12s`, `2.5s`, `340ms`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.get() < 0 {
            f.write_str("-")?;
        }
        let micros = self.0.get().unsigned_abs();
        if micros < 1_000_000 {
            return match micros {
                0 => f.write_str("0s"),
                1..1_000 => write!(f, "{micros}µs"),
                _ => write!(f, "{}ms", micros / 1_000),
            };
        }
        if micros < 10_000_000 && !micros.is_multiple_of(1_000_000) {
            let tenths = micros / 100_000;
            return if tenths.is_multiple_of(10) {
                write!(f, "{}s", tenths / 10)
            } else {
                write!(f, "{}.{}s", tenths / 10, tenths % 10)
            };
        }
        let secs = micros / 1_000_000;
        let (days, hours, mins, secs) = (secs / 86_400, secs / 3_600 % 24, secs / 60 % 60, secs % 60);
        match (days, hours, mins, secs) {
            (0, 0, 0, s) => write!(f, "{s}s"),
            (0, 0, m, 0) => write!(f, "{m}m"),
            (0, 0, m, s) => write!(f, "{m}m{s:02}s"),
            (0, h, 0, _) => write!(f, "{h}h"),
            (0, h, m, _) => write!(f, "{h}h{m:02}m"),
            (d, 0, ..) => write!(f, "{d}d"),
            (d, h, ..) => write!(f, "{d}d{h:02}h"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_order_and_take_no_room_for_being_there() {
        let numbers = [i64::MIN + 1, -1_000_000, -1, 0, 1, 1_000_000, i64::MAX];
        let times = numbers.map(SimTime::from_micros);
        assert!(times.is_sorted() && times.map(SimTime::as_micros) == numbers);
        assert_eq!(SimTime::from_micros(i64::MIN), times[0]);
        assert_eq!(size_of::<Option<SimTime>>(), size_of::<SimTime>());
        let json = serde_json::to_string(&times).unwrap();
        assert_eq!(
            (serde_json::from_str(&json).ok(), format!("{:?}", times[4])),
            (Some(times), "SimTime(1)".to_owned())
        );
    }

    #[test]
    fn times_print_as_kubernetes_prints_them() {
        let time = SimTime::from_micros(1_700_000_000_123_456);
        assert_eq!(time.to_rfc3339_secs(), "2023-11-14T22:13:20Z");
        assert_eq!(time.to_rfc3339_micros(), "2023-11-14T22:13:20.123456Z");
        assert_eq!(SimTime::parse_rfc3339(&time.to_rfc3339_micros()).unwrap(), time);
        assert_eq!(time.to_string(), "2023-11-14T22:13:20.123456Z");
    }

    #[test]
    fn absurd_times_saturate_instead_of_panicking() {
        let absurd = SimTime::from_secs(i64::MAX) + SimDuration::MAX;
        assert!(absurd.to_rfc3339_secs().starts_with("9999-"));
        assert!(SimTime::from_micros(i64::MIN).to_string().starts_with("-009999-"));
    }

    #[test]
    fn spans_read_like_a_person_says_them() {
        let cases = [
            (0, "0s"),
            (340_000, "340ms"),
            (2_500_000, "2.5s"),
            (12_000_000, "12s"),
            (72_000_000, "1m12s"),
            (600_000_000, "10m"),
            (5_400_000_000, "1h30m"),
            (604_800_000_000, "7d"),
            (-72_000_000, "-1m12s"),
        ];
        for (micros, text) in cases {
            assert_eq!(SimDuration::from_micros(micros).to_string(), text);
        }
    }
}
