//! Quantities of cpu, memory and the rest, exactly as Kubernetes' `resource.Quantity` parses, rounds, compares and
//! prints them (apimachinery v0.36.4, pkg/api/resource).
//!
//! A quantity is a whole number of nano-units in an `i128`, so sums and comparisons are one machine operation and
//! never a float. Kubernetes' decimal quantities are unbounded; here the largest is 1.7·10²⁹, ten orders of magnitude
//! above the largest `i64`, and a larger one is refused by name. Where Kubernetes' own conversions overflow into
//! nonsense ([`Quantity::value`] of 10²⁰), ours saturate.

mod parse;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use parse::{ParseQuantityError, as_answered};

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// How a quantity was written, and so how it is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// `128Mi`: powers of 1024.
    BinarySi,
    /// `500m`, `2`, `10G`: powers of 1000.
    #[default]
    DecimalSi,
    /// `12e6`.
    DecimalExponent,
}

/// A number with nano precision that remembers how it was written. Equality and order look at the number alone:
/// `1Ki` equals `1024`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Nothing, printed `0`.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi };

    /// A whole number of units, in decimal format.
    pub const fn from_value(value: i64) -> Self {
        Self { nanos: value as i128 * NANOS_PER_UNIT, format: Format::DecimalSi }
    }

    /// A whole number of thousandths, in decimal format: `from_milli(500)` is `500m`.
    pub const fn from_milli(milli: i64) -> Self {
        Self { nanos: milli as i128 * NANOS_PER_MILLI, format: Format::DecimalSi }
    }

    /// The same number, printed otherwise.
    pub const fn with_format(self, format: Format) -> Self {
        Self { nanos: self.nanos, format }
    }

    /// How it was written.
    pub const fn format(self) -> Format {
        self.format
    }

    /// Is it nothing?
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Is it below zero?
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whole units, rounded away from zero, saturating.
    pub fn value(self) -> i64 {
        saturate(div_away_from_zero(self.nanos, NANOS_PER_UNIT))
    }

    /// Whole thousandths, rounded away from zero, saturating.
    pub fn milli_value(self) -> i64 {
        saturate(div_away_from_zero(self.nanos, NANOS_PER_MILLI))
    }

    /// Rounded away from zero to whole thousandths, as defaulting does to every entry of a resource list
    /// (pkg/apis/core/v1/defaults.go, `SetDefaults_ResourceList`).
    pub fn rounded_up_to_milli(self) -> Self {
        let milli = div_away_from_zero(self.nanos, NANOS_PER_MILLI);
        Self { nanos: milli.saturating_mul(NANOS_PER_MILLI), format: self.format }
    }

    /// The format it can be printed in without losing anything: a binary quantity that is small or has a fraction is
    /// printed as a decimal one.
    fn printable_format(self) -> Format {
        let small = self.nanos.unsigned_abs() < 1024 * NANOS_PER_UNIT.unsigned_abs();
        match self.format {
            Format::BinarySi if small || self.nanos % NANOS_PER_UNIT != 0 => Format::DecimalSi,
            format => format,
        }
    }

    fn write_binary(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mantissa, times) = remove_factors(self.nanos / NANOS_PER_UNIT, 1024);
        write!(f, "{mantissa}{}", parse::binary_suffix(times * 10))
    }

    fn write_decimal(self, f: &mut fmt::Formatter<'_>, format: Format) -> fmt::Result {
        let (mut mantissa, times) = remove_factors(self.nanos, 10);
        let mut exponent = times - 9;
        // At most as many factors come back as were just removed, so this cannot overflow.
        while exponent % 3 != 0 {
            mantissa *= 10;
            exponent -= 1;
        }
        match (format, exponent) {
            (Format::DecimalExponent, 0) => write!(f, "{mantissa}"),
            (Format::DecimalExponent, _) => write!(f, "{mantissa}e{exponent}"),
            _ => write!(f, "{mantissa}{}", parse::decimal_suffix(exponent)),
        }
    }
}

/// Divides out `factor` as often as it goes: `number == result · factor^times`.
fn remove_factors(mut number: i128, factor: i128) -> (i128, i32) {
    let mut times = 0;
    while number != 0 && number % factor == 0 {
        number /= factor;
        times += 1;
    }
    (number, times)
}

fn div_away_from_zero(number: i128, divisor: i128) -> i128 {
    let quotient = number / divisor;
    if number % divisor == 0 { quotient } else { quotient + number.signum() }
}

fn saturate(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

impl fmt::Display for Quantity {
    /// The canonical form: no fraction, the largest suffix that loses nothing.
    ///
    /// A decimal multiple of 10²¹ has no suffix left (`1000E` would be `1Z`) and Kubernetes then prints none at all;
    /// so do we, because an API server's answer is what is imitated here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        match self.printable_format() {
            Format::BinarySi => self.write_binary(f),
            format => self.write_decimal(f, format),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl AddAssign for Quantity {
    /// As in Kubernetes, zero takes the other's format; otherwise the left one's stays.
    fn add_assign(&mut self, other: Self) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.nanos = self.nanos.saturating_add(other.nanos);
    }
}

impl SubAssign for Quantity {
    fn sub_assign(&mut self, other: Self) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.nanos = self.nanos.saturating_sub(other.nanos);
    }
}

impl Add for Quantity {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Sub for Quantity {
    type Output = Self;
    fn sub(mut self, other: Self) -> Self {
        self -= other;
        self
    }
}

impl Neg for Quantity {
    type Output = Self;
    fn neg(self) -> Self {
        Self { nanos: self.nanos.saturating_neg(), format: self.format }
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(quantities: I) -> Self {
        quantities.fold(Self::ZERO, Add::add)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    /// From a string, a number, or null (zero). Kubernetes sees a JSON number's own text; by the time it comes here
    /// only its value is left, so a number written `1e3` is read as `1k`: equal, but in decimal format.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as \"500m\" or \"128Mi\", or a number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        text.trim().parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Quantity, E> {
        Ok(Quantity::from_value(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Quantity, E> {
        Ok(Quantity { nanos: i128::from(value) * NANOS_PER_UNIT, format: Format::DecimalSi })
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Quantity, E> {
        // Rust prints a float's shortest exact digits and never an exponent.
        value.to_string().parse().map_err(E::custom)
    }

    fn visit_unit<E: Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::ZERO)
    }
}

#[cfg(test)]
mod tests;
